"""What may a user set under `reward.reward_kwargs`, and what does it mean?"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from plaudit._plaudit import check_state
from plaudit.ray.actor import Terms

# What verl's own data scripts, and most others, write into `extra_info.split` of validation data.
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

    @classmethod
    def read(cls, config: Any) -> Options:
        """The settings of a trainer's config; every mistake is named, with what was probably meant."""
        given = plain(config.reward.get("reward_kwargs")) or {}
        known = [field.name for field in fields(cls)]
        mistakes = []
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}"
                mistakes.append(f"`{name}` is not a setting of plaudit{hint}")
        if given.get("recipe") is None:
            mistakes.append("`recipe` is missing: +reward.reward_kwargs.recipe=NAME_OR_PATH")
        if mistakes:
            raise ValueError("reward.reward_kwargs: " + "; ".join(mistakes))
        options = cls(**given)
        options.check()
        return options

    def check(self) -> None:
        """Raises where a value makes no sense."""
        self.invalid_value()
        for name in ("group_timeout", "quiet"):
            if getattr(self, name) is not None:
                self._must(name, seconds(getattr(self, name)), "a number of seconds above 0")
        self._must("shards", whole(self.shards, 1), "at least 1")
        self._must("num_examine", whole(self.num_examine, 0), "how many samples to print, 0 or more")
        self._must(
            "state", self.state is None or isinstance(self.state, str), "a folder or redis://host:port/db"
        )
        if self.state is not None:
            check_state(self.state)
        self._must("aliases", isinstance(self.aliases, bool), "true or false")
        self._must("router", self.router is None or isinstance(self.router, str), "the name of a judge")
        overrides = self.overrides is None or isinstance(self.overrides, Mapping)
        self._must("overrides", overrides, "paths with their values, as in overrides.judges.main.model=NAME")
        self._must("imports", texts(self.imports), "the name of a module, or a list of them")
        self._must(
            "reference",
            texts(self.reference) and bool(self.reference),
            "a path into a row, or a list of them",
        )
        size = self.size is None or isinstance(self.size, str) or whole(self.size, 1)
        self._must("size", size, "a number of rollouts, or the field of a row that has it")
        chosen = self.validation
        known = chosen is None or (isinstance(chosen, Mapping) and set(chosen) <= {"field", "values"})
        self._must("validation", known, "{field: FIELD, values: [VALUE, ...]}")

    def _must(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise ValueError(f"reward.reward_kwargs.{name} is {wanted}, not {getattr(self, name)!r}")

    def invalid_value(self) -> float | str:
        """`mean`, `drop`, or the number that every invalid rollout gets."""
        said = str(self.invalid)
        if said in ("mean", "drop"):
            return said
        try:
            value = float(said.removeprefix("value:"))
        except ValueError:
            value = math.nan
        self._must("invalid", math.isfinite(value), "mean, drop or value:NUMBER")
        return value

    def terms(self, router_address: str | None = None, model: str | None = None) -> Terms:
        """What the shared engine is made of. Paths are made absolute, since the engine runs in another process."""
        recipe = self.recipe
        if isinstance(recipe, (str, os.PathLike)) and os.path.exists(recipe):
            recipe = os.path.abspath(recipe)
        overrides = dict(flat(self.overrides or {}))
        if self.router is not None and router_address is not None:
            overrides.setdefault(f"judges.{self.router}.base_url", f"http://{router_address}/v1")
            if model is not None:
                overrides.setdefault(f"judges.{self.router}.model", model)
        state = self.state
        if state is not None and "://" not in state:
            state = os.path.abspath(state)
        return Terms(
            recipe=recipe,
            overrides=overrides or None,
            state=state,
            imports=modules(self.imports),
            timeout=None if self.group_timeout is None else float(self.group_timeout),
            quiet=None if self.quiet is None else float(self.quiet),
            examine=self.num_examine,
        )


def modules(said: str | Sequence[str]) -> tuple[str, ...]:
    """The modules to import; a text is one."""
    return (said,) if isinstance(said, str) else tuple(said)


def texts(said: Any) -> bool:
    """Whether it is a text or a list of texts."""
    if isinstance(said, str):
        return True
    return isinstance(said, Sequence) and all(isinstance(each, str) for each in said)


def whole(said: Any, least: int) -> bool:
    return isinstance(said, int) and not isinstance(said, bool) and said >= least


def seconds(said: Any) -> bool:
    return isinstance(said, (int, float)) and not isinstance(said, bool) and math.isfinite(said) and said > 0


def plain(value: Any) -> Any:
    """The same without OmegaConf."""
    from omegaconf import OmegaConf

    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def flat(tree: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """`{"judges": {"main": {"model": "m"}}}` as `judges.main.model`, which is how overrides are written."""
    found: list[tuple[str, Any]] = []
    for name, value in tree.items():
        here = f"{path}.{name}" if path else str(name)
        found.extend(flat(value, here) if isinstance(value, Mapping) and value else [(here, value)])
    return found
