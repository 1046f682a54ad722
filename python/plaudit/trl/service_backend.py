"""Scores a trainer's rows with a running `plaudit serve`.

Whole groups are sent in one request. Where the border between two ranks cuts a group, each rank hands its rows in one by one, and
the service joins them; the ranks exchange nothing but, once, a name for the run.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from plaudit.remote import Service
from plaudit.result import Result

from .call import Call, Row
from .ranks import RankExchange, cut_places, world


class ServicePlan:
    """The properties of a recipe that only the service has, named as those of `plaudit.Engine`."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self.name = str(recipe["name"])
        self.weights = {part["name"]: float(part["weight"]) for part in recipe["components"]}
        self.components = list(self.weights)
        self.compares_groups = bool(recipe["compares"])
        # The service does not say; a recipe that cannot be split shows it with its first total.
        self.indivisible: str | None = None

    def check_group_size(self, size: int) -> None:
        """Nothing: the service makes a group that is too large invalid."""


class ServiceBackend:
    """A client of the service, for one reward."""

    def __init__(
        self, service: Service, recipe: str, run: str | None, ranks: RankExchange, joins: bool
    ) -> None:
        self.plan = ServicePlan(service.recipe(recipe))
        self._service = service
        self._recipe = recipe
        self._run = run
        self._ranks = ranks
        self._joins = joins
        self._nonce = ""
        self._number = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_nonce": "", "_number": 0}

    def open(self) -> None:
        """Agrees with the other ranks on a name for this run, so that no group is taken for one of another run."""
        if self._nonce:
            return
        mine = uuid.uuid4().hex
        if world()[1] > 1 and (self.plan.compares_groups or self._run is None):
            self._ranks.open()
            mine = self._ranks.agree(mine)[0]
        self._nonce = mine

    async def ascore(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """As `score`, without blocking the loop."""
        return await asyncio.to_thread(self.score, call, rows, validate)

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The result of each row, by place. Ranks call in step, so the number of the call is the same on all of them."""
        self._number += 1
        groups = dict(zip(rows, call.groups_of(rows), strict=True))
        settings: dict[str, Any] = {
            "run": self._name(call),
            # Groups of different steps are different groups there, so all ranks must name the same one.
            "step": self._number if call.step is None else call.step,
            "validate": True if validate else None,
        }
        cut = self._cut(call)
        whole = [place for place in rows if place not in cut]
        threads = ThreadPoolExecutor(max(1, len(cut)), thread_name_prefix="plaudit")
        try:
            joined = {
                place: threads.submit(
                    self._service.join,
                    self._recipe,
                    f"{self._nonce}/{self._number}/{groups[place]}",
                    _size(call, groups[place]),
                    _rollout(rows[place]),
                    member=str(place),
                    **settings,
                )
                for place in rows
                if place in cut
            }
            rollouts = [
                {**_rollout(rows[place]), "group": f"{self._number}/{groups[place]}"} for place in whole
            ]
            results = dict(zip(whole, self._service.score(self._recipe, rollouts, **settings), strict=True))
            results.update((place, asked.result()) for place, asked in joined.items())
        finally:
            threads.shutdown(wait=False)
        counts = list(groups.values())
        for place in whole:
            # Fewer than the trainer says, and nobody was there to join them.
            if call.size is not None and counts.count(groups[place]) < call.size:
                results[place] = replace(results[place], partial=True)
        return results

    def _cut(self, call: Call) -> set[int]:
        """The rows whose group is not all rows, where somebody else can hand in the rest of it."""
        known = call.size is not None and call.in_order
        joins = self._joins and self.plan.compares_groups and world()[1] > 1 and known
        return cut_places(call) if joins else set()

    def _name(self, call: Call) -> str:
        """The run that the service keeps the figures under; those of an evaluation are kept apart."""
        run = self._run or f"{self.plan.name}-{self._nonce[:8]}"
        return f"{run}-eval" if call.evaluates else run


def _size(call: Call, group: int) -> int:
    """How many members a group has on all ranks together; the last one of a batch may have fewer than the others."""
    size = call.size or 1
    return min(size, world()[1] * len(call.rows) - group * size)


def _rollout(row: Row) -> dict[str, Any]:
    """A row as the service reads it."""
    fields = {
        "prompt": row.prompt,
        "response": row.response,
        "reference": row.reference,
        "tokens": row.tokens,
        "extra": row.extra or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
