"""Statistics of training rollouts by step: mean and spread of the total and of every component, and samples to print.

Rewards find the statistics of the step before under `last_mean_std` in a rollout's extra, as in RM-Gallery's VERL tutorial. A
step ends when the first training rollout of a later step is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from plaudit.result import Result

# Steps, and keys of samples, that are remembered.
MAX_REMEMBERED = 100
# The key in a result's info that marks a rollout to be printed.
SAMPLED = "plaudit.sampled"


class SampleKey(NamedTuple):
    """What a rollout is counted under."""

    step: int | None
    validate: bool
    source: str


class RunningStatistics:
    """Count, mean and standard deviation of numbers that come one by one (Welford)."""

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
        deviation = math.sqrt(self.squares / self.count) if self.count else 0.0
        return {"count": float(self.count), "mean": self.mean, "std": deviation}


class StepStatistics:
    """The statistics of the current and of past steps, and how many samples of each key were marked."""

    def __init__(self, components: Sequence[str], examine: int = 0) -> None:
        """`examine`: how many rollouts of each step, split and data source are marked to be printed."""
        self.names = ("total", *components)
        self.examine = examine
        self.step: int | None = None
        self.current = {name: RunningStatistics() for name in self.names}
        self.closed: dict[int, dict[str, dict[str, float]]] = {}
        self.last: dict[str, dict[str, float]] | None = None
        self.sampled: dict[SampleKey, int] = {}

    def add_last_step(self, extra: dict[str, Any] | None) -> dict[str, Any] | None:
        """The extra of a rollout, with the last step's statistics once there are some."""
        return extra if self.last is None else {"last_mean_std": self.last, **(extra or {})}

    def count(self, key: SampleKey, result: Result) -> Result:
        """Counts a result towards its step, and marks it where it is to be printed."""
        if not key.validate:
            self._enter(key.step)
            for name, value in (("total", result.total), *result.components.items()):
                if name in self.current and value is not None:
                    self.current[name].add(value)
        sampled = self.sampled.get(key, 0)
        if sampled >= self.examine:
            return result
        self.sampled[key] = sampled + 1
        while len(self.sampled) > MAX_REMEMBERED:
            del self.sampled[next(iter(self.sampled))]
        return replace(result, info={**result.info, SAMPLED: True})

    def _enter(self, step: int | None) -> None:
        if step is None or (self.step is not None and step <= self.step):
            return
        if self.step is not None and self.current["total"].count:
            self.last = {name: numbers.summary() for name, numbers in self.current.items() if numbers.count}
            self.closed[self.step] = self.last
            while len(self.closed) > MAX_REMEMBERED:
                del self.closed[next(iter(self.closed))]
        self.current = {name: RunningStatistics() for name in self.names}
        self.step = step
