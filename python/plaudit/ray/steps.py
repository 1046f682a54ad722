"""What did the last step look like? Mean and spread of the total and of every component, and which samples to print.

Rewards that are fed back their own last mean and spread, as RM-Gallery's VERL tutorial does it, find them under
`last_mean_std` in a rollout's extra. A step ends when the first training rollout of a later one is answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.ray.actor import Answer, Kind, Rollout

# Steps that are remembered for `status`.
REMEMBER = 100


class Sums:
    """Count, mean and spread of numbers that come one by one (Welford)."""

    __slots__ = ("count", "mean", "squares")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        change = value - self.mean
        self.mean += change / self.count
        self.squares += change * (value - self.mean)

    def summary(self) -> dict[str, float]:
        spread = math.sqrt(self.squares / self.count) if self.count else 0.0
        return {"count": float(self.count), "mean": self.mean, "std": spread}


class Steps:
    """The statistics of training rollouts by step, and how many samples of each kind were printed."""

    def __init__(self, components: Sequence[str], examine: int = 0) -> None:
        self.names = ("total", *components)
        self.examine = examine
        self.step: int | None = None
        self.sums = {name: Sums() for name in self.names}
        self.closed: dict[int, dict[str, dict[str, float]]] = {}
        self.last: dict[str, dict[str, float]] | None = None
        self.shown: dict[Kind, int] = {}

    def feed(self, rollout: Rollout) -> dict[str, Any] | None:
        """The rollout's extra, with the last step's statistics once there are some."""
        if self.last is None:
            return rollout.extra
        return {"last_mean_std": self.last, **(rollout.extra or {})}

    def count(self, kind: Kind, answer: Answer) -> Answer:
        """Counts an answer towards its step, and marks it where it is one of those to be printed."""
        if not kind.validate:
            self._enter(kind.step)
            self._add("total", answer.total)
            for name, value in answer.components.items():
                self._add(name, value)
        if not self.examine:
            return answer
        shown = self.shown.get(kind, 0)
        if shown >= self.examine:
            return answer
        self.shown[kind] = shown + 1
        while len(self.shown) > REMEMBER:
            del self.shown[next(iter(self.shown))]
        return answer._replace(examine=True)

    def _enter(self, step: int | None) -> None:
        if step is None or (self.step is not None and step <= self.step):
            return
        if self.step is not None and self.sums["total"].count:
            self.last = {name: sums.summary() for name, sums in self.sums.items() if sums.count}
            self.closed[self.step] = self.last
            while len(self.closed) > REMEMBER:
                del self.closed[next(iter(self.closed))]
        self.sums = {name: Sums() for name in self.names}
        self.step = step

    def _add(self, name: str, value: float | None) -> None:
        sums = self.sums.get(name)
        if sums is not None and value is not None:
            sums.add(value)
