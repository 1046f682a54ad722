"""What does the environment tell the file that OpenRLHF loads? OpenRLHF passes no arguments on."""

from __future__ import annotations

import difflib
import json
import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from plaudit._plaudit import ArgumentError

_ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""What ends a turn in the chat formats of the usual models; OpenRLHF decodes with these in place."""

KNOWN = (
    "RECIPE",
    "SET",
    "STATE",
    "GROUP_SIZE",
    "SHARE",
    "JOIN",
    "TIMEOUT",
    "INVALID",
    "SCORE",
    "STOP",
)
"""What may be set, each after `PLAUDIT_`."""

_OTHERS = ("PLAUDIT_BIN", "PLAUDIT_TOKEN")
"""Variables of other parts of plaudit."""


class Settings(NamedTuple):
    """What the environment says."""

    recipe: str
    overrides: dict[str, object]
    state: str | None
    size: int | None
    share: int
    join: str | None
    timeout: float
    invalid: str
    score: str | None
    ends: tuple[str, ...]

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Reads the variables, and says which one is wrong."""
        said = {name: environment.get(f"PLAUDIT_{name}") or None for name in KNOWN}
        recipe, join, timeout, invalid = (said[name] for name in ("RECIPE", "JOIN", "TIMEOUT", "INVALID"))
        if recipe is None:
            raise ArgumentError("PLAUDIT_RECIPE must name a recipe, such as `math` or the path of a file")
        for name in ("GROUP_SIZE", "SHARE"):
            number = said[name]
            if number is not None and not (number.isdecimal() and int(number) > 0):
                raise ArgumentError(f"PLAUDIT_{name} must be a whole number above 0, not `{number}`")
        if join not in (None, "ray"):
            raise ArgumentError(f"PLAUDIT_JOIN is `ray` or not set, not `{join}`")
        try:
            seconds = float(timeout or 1800.0)
        except ValueError:
            raise ArgumentError(f"PLAUDIT_TIMEOUT is a number of seconds, not `{timeout}`") from None
        if invalid not in (None, "mean", "raise"):
            raise ArgumentError(f"PLAUDIT_INVALID is `mean` or `raise`, not `{invalid}`")
        return cls(
            recipe=recipe,
            overrides=dict(_override(word) for word in shlex.split(said["SET"] or "")),
            state=said["STATE"],
            size=int(said["GROUP_SIZE"]) if said["GROUP_SIZE"] else None,
            share=int(said["SHARE"] or 1),
            join=join,
            timeout=seconds,
            invalid=invalid or "mean",
            score=said["SCORE"],
            ends=(*_ENDS, *shlex.split(said["STOP"] or "")),
        )


def unknown(environment: Mapping[str, str] = os.environ) -> list[str]:
    """What is said of variables that look like settings and are none."""
    known = [f"PLAUDIT_{name}" for name in KNOWN]
    told = []
    for name in sorted(environment):
        if name.startswith("PLAUDIT_") and name not in (*known, *_OTHERS):
            near = difflib.get_close_matches(name, known, 1)
            told.append(
                f"{name} is no setting of plaudit.openrlhf" + (f"; did you mean {near[0]}?" if near else "")
            )
    return told


def _override(word: str) -> tuple[str, object]:
    key, equals, value = word.partition("=")
    if not equals:
        raise ArgumentError(f"PLAUDIT_SET takes KEY=VALUE, not `{word}`")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
