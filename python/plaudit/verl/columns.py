"""Columns of `reward_extra_info`: the same names with plain finite floats, for every rollout of a run.

verl takes the names of a whole batch from its first rollout, averages the values under each, and knows no missing values. So
the recipe fixes the names before the first rollout. Where a rollout has no value, the column is 0.0, and the flags
`plaudit/invalid` and `plaudit/compared` say why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from plaudit import _plaudit
from plaudit.result import Result

# The column names of RM-Gallery's VERL tutorial by reward: the name of the value, and the names of facts in its info.
TUTORIAL: dict[str, tuple[str, dict[str, str]]] = {
    "principle": ("reward_principle", {}),
    "reasoning_format": ("reward_format", {}),
    "ngram_repetition_penalty": ("reward_ngram", {}),
    "thought_length": ("scores_thought_length", {"length": "thought_lengths"}),
    "total_length": ("scores_total_lengths", {}),
}

# Facts of a comparison with the reference.
AGAINST_REFERENCE = ("win", "win_and", "comparison_score")

# Columns that every rollout has, whatever the recipe.
FIXED = (
    "acc",
    "score",
    "plaudit/invalid",
    "plaudit/group_size",
    "plaudit/partial",
    "plaudit/waited_s",
    "plaudit/compared",
    *(f"plaudit/{name}" for name in AGAINST_REFERENCE),
)


class Columns:
    """The columns of a recipe, and how a result fills them."""

    def __init__(self, rewards: Mapping[str, str], *, aliases: bool = False) -> None:
        """`rewards`: the reward of each component, in the order of the recipe; `aliases` adds the tutorial's names."""
        self.components = tuple(rewards)
        traits = {component: _plaudit.reward_traits(reward) for component, reward in rewards.items()}
        # The first component that tells right from wrong is the accuracy of the recipe.
        self.correctness = next(
            (name for name, (tells_correctness, _) in traits.items() if tells_correctness), None
        )
        # The source of each column: a component and a fact of its info, or no fact for the component's value.
        self.sources: dict[str, tuple[str, str | None]] = {}
        for component, (_, facts) in traits.items():
            self.sources[f"plaudit/{component}"] = (component, None)
            for fact in facts:
                self.sources[f"plaudit/{component}.{fact}"] = (component, fact)
        for component, reward in rewards.items() if aliases else ():
            value, facts = TUTORIAL.get(reward, (None, {}))
            if value is not None:
                self.sources.setdefault(value, (component, None))
            for fact, name in facts.items():
                self.sources.setdefault(name, (component, fact))
        self.names = (*FIXED, *self.sources)

    def fill(self, result: Result, score: float, invalid: bool) -> dict[str, float]:
        """All columns of one rollout; `score` is the number that the trainer gets for it."""
        against = {name: find_fact(result.info, self.components, name) for name in AGAINST_REFERENCE}
        compared = against["win"] is not None
        tells = self.correctness is not None or result.correct is not None
        right = result.correct if tells else score
        columns = {
            "acc": finite_or_zero(against["win"] if compared else right),
            "score": score,
            "plaudit/invalid": float(invalid),
            "plaudit/group_size": float(max(1, result.group_size)),
            "plaudit/partial": float(result.partial),
            "plaudit/waited_s": finite_or_zero(result.waited),
            "plaudit/compared": float(compared),
        }
        for name, value in against.items():
            columns[f"plaudit/{name}"] = finite_or_zero(value)
        for name, (component, fact) in self.sources.items():
            value = (
                result.components.get(component) if fact is None else result.info.get(f"{component}.{fact}")
            )
            columns[name] = finite_or_zero(value)
        return columns


def find_fact(info: Mapping[str, Any], components: Iterable[str], name: str) -> Any:
    """A fact by its bare name, or of the first component that has it."""
    if name in info:
        return info[name]
    return next(
        (info[key] for key in (f"{component}.{name}" for component in components) if key in info), None
    )


def finite_or_zero(value: Any) -> float:
    """The number, or 0.0 where there is none; the flags beside it say which."""
    if value is None:
        return 0.0
    number = float(value)
    return number if math.isfinite(number) else 0.0
