"""Scores the rows of all ranks with the one engine of a Ray cluster.

Every rank hands all its rows to the shared actor (`plaudit.ray`), which joins the groups and scores each once. So there is one
engine, with one limit for each judge and one journal, whatever the number of ranks.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import plaudit
from plaudit._plaudit import ArgumentError

from .call import Call, Row
from .ranks import RankExchange, world

if TYPE_CHECKING:
    from plaudit.result import Result


class RayBackend:
    """A client of the shared actor. The actor belongs to the Ray job, so all ranks must be of one job, as under Ray Train."""

    def __init__(
        self, recipe: Any, overrides: Any, state: str | None, ranks: RankExchange, timeout: float
    ) -> None:
        from plaudit.ray.actor import ActorConfig
        from plaudit.ray.sync_client import SyncClient

        self.plan = plaudit.Engine(recipe, overrides=overrides)
        recipe = os.fspath(recipe) if isinstance(recipe, os.PathLike) else recipe
        config = ActorConfig(recipe, dict(overrides) if overrides else None, state)
        self._ranks = ranks
        self._timeout = timeout
        self._client = SyncClient(config, deadline=timeout)
        self._run = ""
        self._number = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": "", "_number": 0}

    def open(self) -> None:
        """Agrees with the other ranks on a name for this run, so that no group is taken for one of another run."""
        if self._run:
            return
        import ray

        if not ray.is_initialized():
            raise RuntimeError("join='ray' needs a Ray cluster: call ray.init() first")
        mine = (ray.get_runtime_context().get_job_id(), uuid.uuid4().hex)
        if world()[1] > 1:
            self._ranks.open()
            jobs = self._ranks.agree(mine)
            if len({job for job, _ in jobs}) > 1:
                raise RuntimeError(
                    "join='ray' needs all ranks in one Ray job, as under Ray Train, but these ranks are drivers of their own; "
                    "join='ranks' joins their groups without Ray"
                )
            mine = jobs[0]
        self._run = mine[1]

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The result of each row, by place. Ranks call in step, so the number of the call is the same on all of them."""
        return self._wait(self._submit(call, rows, validate))

    async def ascore(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The same, without blocking the loop."""
        return await asyncio.to_thread(self._wait, self._submit(call, rows, validate))

    def _submit(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Future[Result]]:
        self._number += 1
        groups = call.groups_of(rows)
        sizes = _sizes(call, groups)
        return {
            place: self._client.submit(
                f"{self._run}/{self._number}/{group}",
                sizes[group],
                row.response,
                member=str(place),
                prompt=row.prompt,
                reference=row.reference,
                tokens=row.tokens,
                extra=row.extra,
                validate=validate,
            )
            for (place, row), group in zip(rows.items(), groups, strict=True)
        }

    def _wait(self, submitted: Mapping[int, Future[Result]]) -> dict[int, Result]:
        # The client answers everything by its deadline; the bound here is for the unforeseen.
        return {place: future.result(1.5 * self._timeout + 10.0) for place, future in submitted.items()}


def _sizes(call: Call, groups: list[int]) -> dict[int, int]:
    """How many members each group has on all ranks together."""
    _, ranks = world()
    if ranks > 1:
        if call.size is None or not call.in_order:
            raise ArgumentError(
                "join='ray' on several ranks needs the completions of a prompt next to one another, and size="
            )
        rows = ranks * len(call.rows)
        return {group: min(call.size, rows - group * call.size) for group in groups}
    return {group: groups.count(group) for group in set(groups)}
