"""Fills missing rewards and columns of a batch, because trainers average whatever they get and know no "invalid".

A rollout that could not be scored gets the mean of its valid siblings: its advantage is 0, and theirs are what they would be
without it. In a group without a valid rollout all get 0, which teaches nothing. Columns that are only logged, and rewards of
validation, get the mean of the whole batch instead of that 0, so that a judge that is down for a moment does not look like
answers that got worse.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Sequence
from typing import Any

from plaudit.result import fill_with_group_means


def number(value: Any) -> float | None:
    """A finite float, or None where there is none."""
    if value is None or isinstance(value, str):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def fill(values: Sequence[float | None], groups: Sequence[Sequence[int]], *, across: bool) -> list[float]:
    """The values, with the group's mean where one is missing, or the batch's if `across`, or 0."""
    valid = [value for value in values if value is not None]
    fallback = statistics.fmean(valid) if across and valid else 0.0
    return [fallback if value is None else value for value in fill_with_group_means(values, groups)]


def column(values: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[Any]:
    """A column as a trainer logs it: finite floats, or texts where any value is one."""
    if not any(isinstance(value, str) for value in values):
        with contextlib.suppress(TypeError, ValueError):
            return fill([number(value) for value in values], groups, across=True)
    return ["" if value is None else str(value) for value in values]


def spread(
    values: Sequence[float | None], groups: Sequence[Sequence[int]]
) -> tuple[list[float], list[float]]:
    """The mean and the standard deviation of each rollout's group, over its valid rollouts."""
    means, deviations = [0.0] * len(values), [0.0] * len(values)
    for rows in groups:
        known = [value for value in (values[row] for row in rows) if value is not None]
        for row in rows if known else ():
            means[row], deviations[row] = statistics.fmean(known), statistics.pstdev(known)
    return means, deviations
