"""How is one reward, or one way of putting comparisons together, used by itself?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from plaudit import _plaudit
from plaudit.custom import CustomReward, registered
from plaudit.result import Result


@dataclass(frozen=True)
class Aggregate:
    """One score a response, and what they were made of."""

    scores: list[float]
    errors: list[float] | None
    info: dict[str, Any]


class SingleReward:
    """One reward with its parameters."""

    def __init__(self, name: str, params: Mapping[str, Any], *, custom: CustomReward | None = None) -> None:
        self.name, self.params = name, dict(params)
        self._custom = custom or registered().get(name)
        kinds = [] if self._custom is None else [self._custom.kind()]
        self._single = _plaudit.Reward(name, self.params, kinds)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.name, self.params, self._custom)

    def __repr__(self) -> str:
        params = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"plaudit.reward({self.name!r}{params})"

    def score(
        self,
        response: str,
        prompt: Any = None,
        reference: str | float | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Result:
        """What the reward says of one response. Calling the reward itself does the same."""
        outcome, value, reason, info = self._single.score(response, prompt, reference, tokens, extra)
        return Result(value, outcome, reason, info=info)

    __call__ = score


def _rebuild(name: str, params: dict[str, Any], custom: CustomReward | None) -> SingleReward:
    return SingleReward(name, params, custom=custom)


def reward(name: str, **params: Any) -> SingleReward:
    """The reward of that name. Its parameters are those that a recipe would give it."""
    return SingleReward(name, params)


def aggregate(
    name: str, n: int, comparisons: Iterable[Sequence[int | None] | Any], **params: Any
) -> Aggregate:
    """Scores of `n` responses from comparisons `(first, second, winner)`; a winner of None is a tie.

    A comparison may be any sequence of three, such as a row of a numpy array.
    """
    told = [_comparison(at, each) for at, each in enumerate(comparisons)]
    return Aggregate(*_plaudit.aggregate(name, _count("n", n), told, params))


def _comparison(at: int, given: Any) -> tuple[int, int, int | None]:
    place = f"comparisons[{at}]"
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != 3:
        raise TypeError(f"{place}: (first, second, winner) is wanted, not {given!r:.80}")
    first, second, winner = given
    return (
        _count(place, first),
        _count(place, second),
        None if winner is None else _count(place, winner),
    )


def _count(place: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(f"{place}: a whole number is wanted, not {given!r:.80}")
    if given < 0:
        raise ValueError(f"{place}: a whole number from 0 is wanted, not {given}")
    return int(given)


def rewards() -> list[str]:
    """The names of all rewards."""
    return [name for name, _ in _plaudit.rewards()]


def recipes() -> list[str]:
    """The names of the shipped recipes."""
    return _plaudit.recipes()
