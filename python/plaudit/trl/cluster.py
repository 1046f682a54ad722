"""How are the rows of all ranks scored by one engine of a Ray cluster?

Every rank hands all its rows to the shared actor (`plaudit.ray`), which gathers the groups and scores each once. There is one
engine then, with one limit for each judge and one journal, whatever the number of ranks.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from plaudit._plaudit import ArgumentError

from .call import Call, Row
from .ranks import Ranks, world

if TYPE_CHECKING:
    from plaudit.ray.actor import ActorConfig
    from plaudit.result import Result


class Cluster:
    """The way to the shared actor. It belongs to the Ray job, so all ranks must be of one job, as under Ray Train."""

    def __init__(self, config: ActorConfig, ranks: Ranks, timeout: float) -> None:
        from plaudit.ray.sync_client import SyncClient

        self._ranks = ranks
        self._timeout = timeout
        self._calls = SyncClient(config, deadline=timeout)
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

    def hand_in(self, call: Call, here: Mapping[int, Row], validate: bool) -> dict[int, Future[Result]]:
        """Hands in all rows of a call; ranks call in step, so the number of the call is the same on all of them."""
        self._number += 1
        groups = call.groups_of(here)
        sizes = _sizes(call, groups)
        return {
            place: self._calls.submit(
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
            for (place, row), group in zip(here.items(), groups, strict=True)
        }

    def wait(self, asked: Mapping[int, Future[Result]]) -> dict[int, Result]:
        """The answers. The connection answers everything by its deadline; the bound here is for the unforeseen."""
        return {place: future.result(1.5 * self._timeout + 10.0) for place, future in asked.items()}


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
