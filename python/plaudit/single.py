"""How is one reward, or one way of putting comparisons together, used by itself?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plaudit import _plaudit


@dataclass(frozen=True)
class Outcome:
    """What one reward says of one response."""

    outcome: str
    value: float | None
    reason: dict[str, Any] | None = None
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Aggregate:
    """One score a response, and what they were made of."""

    scores: list[float]
    errors: list[float] | None
    info: dict[str, Any]


class Reward:
    """One reward with its parameters."""

    def __init__(self, name: str, params: Mapping[str, Any]) -> None:
        self.name, self.params = name, dict(params)
        self._single = _plaudit.Single(name, self.params)

    def __reduce__(self) -> tuple[Any, ...]:
        return Reward, (self.name, self.params)

    def __repr__(self) -> str:
        params = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"plaudit.reward({self.name!r}{params})"

    def score(
        self,
        response: str,
        prompt: Any = None,
        reference: str | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """What the reward says of one response."""
        return Outcome(*self._single.score(response, prompt, reference, tokens, extra))


def reward(name: str, **params: Any) -> Reward:
    """The reward of that name. Its parameters are those that a recipe would give it."""
    return Reward(name, params)


def aggregate(
    name: str, n: int, comparisons: Iterable[tuple[int, int, int | None]], **params: Any
) -> Aggregate:
    """Scores of `n` responses from comparisons `(first, second, winner)`; a winner of None is a tie."""
    return Aggregate(*_plaudit.aggregate(name, n, list(comparisons), params))


def rewards() -> list[str]:
    """The names of all rewards."""
    return [name for name, _ in _plaudit.rewards()]


def recipes() -> list[str]:
    """The names of the shipped recipes."""
    return _plaudit.recipes()
