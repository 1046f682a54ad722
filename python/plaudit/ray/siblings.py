"""Totals of recent groups, for recipes that score single responses: an invalid rollout gets the mean of its siblings.

Such recipes answer at once and nothing waits for the group. Only an invalid rollout waits, until all its siblings are scored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict

from plaudit.result import fill_with_group_means

# Groups that are remembered: several steps of a large run, at about 200 bytes for a group of eight.
MAX_GROUPS = 65_536


class GroupTotals:
    """The totals of one group so far, and the event of its being complete, where somebody waits for that."""

    __slots__ = ("totals", "complete")

    def __init__(self) -> None:
        self.totals: list[float | None] = []
        self.complete: asyncio.Event | None = None

    def wake(self) -> None:
        if self.complete is not None:
            self.complete.set()


class SiblingTotals:
    """LRU of groups by key."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self.max_groups = max_groups
        self.groups: OrderedDict[str, GroupTotals] = OrderedDict()

    def add(self, key: str, size: int, total: float | None) -> None:
        """Adds a scored member; None for one that is invalid, or that will never be scored."""
        group = self._group(key)
        group.totals.append(total)
        if len(group.totals) >= size:
            group.wake()

    async def mean(self, key: str, size: int, timeout: float) -> float | None:
        """The mean of the valid members, once all are scored or the time is up; None where none is valid."""
        group = self._group(key)
        if len(group.totals) < size:
            group.complete = group.complete or asyncio.Event()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(group.complete.wait(), timeout)
        return fill_with_group_means([None, *group.totals], [range(len(group.totals) + 1)])[0]

    def _group(self, key: str) -> GroupTotals:
        group = self.groups.setdefault(key, GroupTotals())
        if len(self.groups) > self.max_groups:
            self.groups.popitem(last=False)[1].wake()
        return group
