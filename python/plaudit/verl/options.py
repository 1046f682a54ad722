"""What may a user set under `reward.reward_kwargs`, and what does it mean?"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

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
    imports: Sequence[str] = ()
    group_timeout: float | None = None
    quiet: float | None = None
    invalid: str = "mean"
    num_examine: int = 0
    shards: int = 1
    size: int | str | None = None
    validation: Mapping[str, Any] | None = None
    reference: str | Sequence[str] = REFERENCE
    router: str | None = None

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
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and value > 0):
                raise ValueError(f"reward.reward_kwargs.{name} is a number of seconds above 0, not {value!r}")
        if not isinstance(self.shards, int) or self.shards < 1:
            raise ValueError(f"reward.reward_kwargs.shards is at least 1, not {self.shards!r}")
        unknown = set(self.validation or ()) - {"field", "values"}
        if unknown:
            raise ValueError(
                f"reward.reward_kwargs.validation has `field` and `values`, not {sorted(unknown)}"
            )

    def invalid_value(self) -> float | str:
        """`mean`, `drop`, or the number that every invalid rollout gets."""
        said = str(self.invalid)
        if said in ("mean", "drop"):
            return said
        try:
            return float(said.removeprefix("value:"))
        except ValueError:
            raise ValueError(
                f"reward.reward_kwargs.invalid is mean, drop or value:NUMBER, not {said!r}"
            ) from None

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
            imports=tuple(self.imports),
            timeout=None if self.group_timeout is None else float(self.group_timeout),
            quiet=None if self.quiet is None else float(self.quiet),
            examine=self.num_examine,
        )


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
