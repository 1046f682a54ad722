"""Totals of recent groups, for recipes that score single responses: an invalid rollout gets the mean of its siblings.

Such recipes answer at once and nothing waits for the group. Only an invalid rollout waits, until all its siblings are scored.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from plaudit.result import fill_with_group_means

# Groups that are remembered: several steps of a large run, at about 200 bytes for a group of eight.
MAX_GROUPS = 65_536


class GroupTotals:
    """The totals of one group so far."""

    __slots__ = ("totals", "waiting")

    def __init__(self) -> None:
        self.totals: list[float | None] = []
        self.waiting: list[asyncio.Future[None]] = []


class SiblingTotals:
    """LRU of groups by key."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self.max_groups = max_groups
        self.groups: OrderedDict[str, GroupTotals] = OrderedDict()

    def add(self, key: str, size: int, total: float | None) -> None:
        """Adds a scored member; None for an invalid one."""
        group = self._group(key)
        group.totals.append(total)
        if len(group.totals) >= size:
            _wake(group)

    def withdraw(self, key: str, size: int) -> None:
        """Counts a member that will never be scored."""
        self.add(key, size, None)

    async def mean(self, key: str, size: int, timeout: float) -> float | None:
        """The mean of the valid members, once all are scored or the time is up; None where none is valid."""
        group = self._group(key)
        if len(group.totals) < size:
            scored = asyncio.get_running_loop().create_future()
            group.waiting.append(scored)
            try:
                await asyncio.wait_for(scored, timeout)
            except asyncio.TimeoutError:
                pass
        totals = [None, *group.totals]
        return fill_with_group_means(totals, [range(len(totals))])[0]

    def _group(self, key: str) -> GroupTotals:
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = GroupTotals()
            if len(self.groups) > self.max_groups:
                _, oldest = self.groups.popitem(last=False)
                _wake(oldest)
        return group


def _wake(group: GroupTotals) -> None:
    for waiting in group.waiting:
        if not waiting.done():
            waiting.set_result(None)
    group.waiting.clear()
