"""Settings of the reward manager under `reward.reward_kwargs`: parsing, validation, and the shared engine's configuration."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from plaudit._plaudit import check_state
from plaudit.abort import DEFAULT, AbortAfter, StepCounter
from plaudit.ray.actor import ActorConfig
from plaudit.values import plain

# The values that verl's own data scripts, and most others, write into `extra_info.split` of validation data.
VALIDATION = ("test", "val", "valid", "validation", "dev", "eval")
# Where the reference of a row is: verl's own place, then that of RM-Gallery's VERL tutorial.
REFERENCE = ("reward_model.ground_truth", "extra_info.y.0.content")


@dataclass(frozen=True)
class Options:
    """One field a setting; docs/guide/verl.md describes them for users."""

    recipe: Any
    overrides: Mapping[str, Any] | None = None
    state: str | None = None
    imports: str | Sequence[str] = ()
    group_timeout: float | None = None
    quiet: float | None = None
    invalid: str = "mean"
    num_examine: int = 0
    shards: int = 1
    size: int | str | None = None
    validation: Mapping[str, Any] | None = None
    reference: str | Sequence[str] = REFERENCE
    router: str | None = None
    aliases: bool = False
    abort_after: AbortAfter = DEFAULT

    @classmethod
    def read(cls, config: Any) -> Options:
        """The settings of a trainer's config; the error names every mistake, with what was probably meant."""
        given = plain(config.reward.get("reward_kwargs")) or {}
        known = [field.name for field in fields(cls)]
        errors = []
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}"
                errors.append(f"`{name}` is not a setting of plaudit{hint}")
        if given.get("recipe") is None:
            errors.append("`recipe` is missing: +reward.reward_kwargs.recipe=NAME_OR_PATH")
        if errors:
            raise ValueError("reward.reward_kwargs: " + "; ".join(errors))
        options = cls(**given)
        options.check()
        return options

    def check(self) -> None:
        """Raises where a value makes no sense."""
        self.invalid_value()
        StepCounter(self.abort_after)
        for name in ("group_timeout", "quiet"):
            given = getattr(self, name)
            self._require(name, given is None or is_seconds(given), "a number of seconds above 0")
        for name, wanted in {
            "state": "a folder or redis://host:port/db",
            "router": "the name of a judge",
        }.items():
            given = getattr(self, name)
            self._require(name, given is None or isinstance(given, str), wanted)
        if self.state is not None:
            check_state(self.state)
        self._require("shards", is_whole(self.shards, 1), "at least 1")
        self._require("num_examine", is_whole(self.num_examine, 0), "how many samples to print, 0 or more")
        self._require("aliases", isinstance(self.aliases, bool), "true or false")
        paths = "paths with their values, as in overrides.judges.main.model=NAME"
        self._require("overrides", self.overrides is None or isinstance(self.overrides, Mapping), paths)
        self._require("imports", is_texts(self.imports), "the name of a module, or a list of them")
        places = is_texts(self.reference) and bool(self.reference)
        self._require("reference", places, "a path into a row, or a list of them")
        size = self.size is None or isinstance(self.size, str) or is_whole(self.size, 1)
        self._require("size", size, "a number of rollouts, or the field of a row that has it")
        chosen = self.validation
        known = chosen is None or (isinstance(chosen, Mapping) and set(chosen) <= {"field", "values"})
        self._require("validation", known, "{field: FIELD, values: [VALUE, ...]}")

    def _require(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise ValueError(f"reward.reward_kwargs.{name} is {wanted}, not {getattr(self, name)!r}")

    def invalid_value(self) -> float | str:
        """`mean`, `drop`, or the number that every invalid rollout gets."""
        text = str(self.invalid)
        if text in ("mean", "drop"):
            return text
        try:
            value = float(text.removeprefix("value:"))
        except ValueError:
            value = math.nan
        self._require("invalid", math.isfinite(value), "mean, drop or value:NUMBER")
        return value

    def actor_config(
        self, router_address: str | None = None, model: str | None = None, step_rollouts: int = 0
    ) -> ActorConfig:
        """The settings of the shared engine. Paths are made absolute, since the engine runs in another process.

        `step_rollouts`: how many rollouts a training step has.
        """
        recipe = self.recipe
        if isinstance(recipe, (str, os.PathLike)) and os.path.exists(recipe):
            recipe = os.path.abspath(recipe)
        overrides = dict(flatten(self.overrides or {}))
        if self.router is not None and router_address is not None:
            overrides.setdefault(f"judges.{self.router}.base_url", f"http://{router_address}/v1")
            if model is not None:
                overrides.setdefault(f"judges.{self.router}.model", model)
        state = self.state
        if state is not None and "://" not in state:
            state = os.path.abspath(state)
        return ActorConfig(
            recipe=recipe,
            overrides=overrides or None,
            state=state,
            imports=modules(self.imports),
            timeout=None if self.group_timeout is None else float(self.group_timeout),
            quiet=None if self.quiet is None else float(self.quiet),
            examine=self.num_examine,
            abort_after=self.abort_after,
            # Each shard sees its part of a step.
            step_rollouts=-(-step_rollouts // self.shards),
            rename="+reward.reward_kwargs.reference=COLUMN",
            switch="+reward.reward_kwargs.abort_after=never",
        )


def modules(names: str | Sequence[str]) -> tuple[str, ...]:
    """The modules to import; a text is one."""
    return (names,) if isinstance(names, str) else tuple(names)


def is_texts(value: Any) -> bool:
    """Whether it is a text or a list of texts."""
    if isinstance(value, str):
        return True
    return isinstance(value, Sequence) and all(isinstance(each, str) for each in value)


def is_whole(value: Any, least: int) -> bool:
    """Whether it is a whole number from `least` on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_seconds(value: Any) -> bool:
    """Whether it is a finite number above 0."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def flatten(tree: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """`{"judges": {"main": {"model": "m"}}}` as `judges.main.model`, which is how overrides are written."""
    found: list[tuple[str, Any]] = []
    for name, value in tree.items():
        here = f"{path}.{name}" if path else str(name)
        found.extend(flatten(value, here) if isinstance(value, Mapping) and value else [(here, value)])
    return found
