"""What does a trainer see of an answer? The same names with plain finite floats, for every rollout of a run.

verl takes the names of a whole batch from its first rollout, averages what it finds under them, and has no word for
"there is none". So the names are fixed by the recipe before the first rollout, and where a rollout has no value for a
name it says 0.0 there and the flags beside it say why: `plaudit/invalid` and `plaudit/compared`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

# The names of RM-Gallery's VERL tutorial, by the reward that gives the value: the key of the value itself, and the keys
# of what stands in its info.
TUTORIAL: dict[str, tuple[str, dict[str, str]]] = {
    "principle": ("reward_principle", {}),
    "reasoning_format": ("reward_format", {}),
    "ngram_repetition_penalty": ("reward_ngram", {}),
    "thought_length": ("scores_thought_length", {"length": "thought_lengths"}),
    "total_length": ("scores_total_lengths", {}),
}

# Numbers that these rewards find in every response, and that one wants to watch over a training.
FACTS: dict[str, tuple[str, ...]] = {
    "dapo.overlong": ("length",),
    "f1_score": ("precision", "recall"),
    "kimi.length": ("length",),
    "length_penalty": ("length",),
    "open_r1.cosine_length": ("length",),
    "thought_length": ("length",),
    "total_length": ("length",),
}

# Rewards that say whether an answer is right: the first of them is the accuracy of a recipe.
CORRECTNESS = ("accuracy", "number_accuracy")

# What a comparison with the reference finds.
AGAINST_REFERENCE = ("win", "win_and", "comparison_score")

# Columns that every rollout has, whatever the recipe.
STANDING = (
    "acc",
    "score",
    "plaudit/invalid",
    "plaudit/group_size",
    "plaudit/partial",
    "plaudit/waited_s",
    "plaudit/compared",
    *(f"plaudit/{name}" for name in AGAINST_REFERENCE),
)


class Scored(Protocol):
    """The part of an answer that becomes columns; `plaudit.ray.Answer` and `plaudit.Result` have it."""

    @property
    def components(self) -> Mapping[str, float | None]: ...
    @property
    def info(self) -> Mapping[str, Any]: ...
    @property
    def group_size(self) -> int: ...
    @property
    def partial(self) -> bool: ...
    @property
    def waited(self) -> float: ...


class Keys:
    """The names that a recipe gives to a trainer, and how an answer fills them."""

    def __init__(self, rewards: Mapping[str, str], *, aliases: bool = False) -> None:
        """`rewards` names the reward behind each component, in the order of the recipe; `aliases` adds the tutorial's names."""
        self.components = tuple(rewards)
        self.correctness = next((name for name, reward in rewards.items() if reward in CORRECTNESS), None)
        # A column and where its value is: in a component's value (no fact) or in its info.
        self.sources: dict[str, tuple[str, str | None]] = {}
        for component, reward in rewards.items():
            self.sources[f"plaudit/{component}"] = (component, None)
            for fact in FACTS.get(reward, ()):
                self.sources[f"plaudit/{component}.{fact}"] = (component, fact)
        for component, reward in rewards.items() if aliases else ():
            value, facts = TUTORIAL.get(reward, (None, {}))
            if value is not None:
                self.sources.setdefault(value, (component, None))
            for fact, name in facts.items():
                self.sources.setdefault(name, (component, fact))
        self.names = (*STANDING, *self.sources)

    def fill(self, answer: Scored, score: float, invalid: bool) -> dict[str, float]:
        """All columns of one rollout; `score` is the number that the trainer gets for it."""
        against = {name: found(answer.info, self.components, name) for name in AGAINST_REFERENCE}
        compared = against["win"] is not None
        right = answer.components.get(self.correctness) if self.correctness is not None else score
        columns = {
            "acc": finite(against["win"] if compared else right),
            "score": score,
            "plaudit/invalid": float(invalid),
            "plaudit/group_size": float(answer.group_size),
            "plaudit/partial": float(answer.partial),
            "plaudit/waited_s": finite(answer.waited),
            "plaudit/compared": float(compared),
        }
        for name, value in against.items():
            columns[f"plaudit/{name}"] = finite(value)
        for name, (component, fact) in self.sources.items():
            value = (
                answer.components.get(component) if fact is None else answer.info.get(f"{component}.{fact}")
            )
            columns[name] = finite(value)
        return columns


def found(info: Mapping[str, Any], components: Iterable[str], name: str) -> Any:
    """A fact by its bare name, or of the first component that has it."""
    if name in info:
        return info[name]
    return next(
        (info[key] for key in (f"{component}.{name}" for component in components) if key in info), None
    )


def finite(value: Any) -> float:
    """The number, or 0.0 where there is none: the flags beside it tell which."""
    if value is None:
        return 0.0
    number = float(value)
    return number if math.isfinite(number) else 0.0
