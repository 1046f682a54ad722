"""What are the siblings of an invalid rollout worth, where nothing waits for the group anyway?

Recipes that look at one response at a time answer at once. Only a rollout that turns out invalid needs to know its
siblings, since a trainer that compares within the group is misled least by their mean. So the totals of the last groups
are kept, and an invalid rollout waits until all of its siblings have been scored.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

# How many groups are remembered: several steps of a large run, at about 200 bytes a group of eight.
REMEMBER = 65_536


class Group:
    """The totals of one group so far."""

    __slots__ = ("count", "seen", "total", "waiting")

    def __init__(self) -> None:
        self.seen = 0
        self.count = 0
        self.total = 0.0
        self.waiting: list[asyncio.Future[None]] = []


class Siblings:
    """The last groups, by their key."""

    def __init__(self, remember: int = REMEMBER) -> None:
        self.remember = remember
        self.groups: OrderedDict[str, Group] = OrderedDict()

    def add(self, key: str, size: int, total: float | None) -> None:
        """A member was scored; `None`: it is invalid, and settled nevertheless."""
        group = self._group(key)
        group.seen += 1
        if total is not None:
            group.count += 1
            group.total += total
        self._settle(group, size)

    def leave(self, key: str, size: int) -> None:
        """A member will never be scored."""
        group = self._group(key)
        group.seen += 1
        self._settle(group, size)

    async def mean(self, key: str, size: int, timeout: float) -> float | None:
        """The mean of the valid members, once all are settled or the time is up; `None` where none is valid."""
        group = self._group(key)
        if group.seen < size:
            settled = asyncio.get_running_loop().create_future()
            group.waiting.append(settled)
            try:
                await asyncio.wait_for(settled, timeout)
            except asyncio.TimeoutError:
                pass
        return group.total / group.count if group.count else None

    def _group(self, key: str) -> Group:
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group()
            if len(self.groups) > self.remember:
                _, oldest = self.groups.popitem(last=False)
                self._settle(oldest, 0)
        return group

    def _settle(self, group: Group, size: int) -> None:
        if group.seen >= size:
            for waiting in group.waiting:
                if not waiting.done():
                    waiting.set_result(None)
            group.waiting.clear()
