"""What scores a trainer's rows: an engine in each rank's process, the one engine of a Ray cluster, or a `plaudit serve`."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import plaudit
from plaudit._plaudit import ArgumentError, check_state
from plaudit.fork import PerProcess
from plaudit.remote import Service
from plaudit.result import Result
from plaudit.tables import of_rollouts

from .call import Call, Row
from .ranks import RankExchange, cut_places, whole_size, world


class EngineBackend:
    """An engine that is made when the first rows come: only then is it known which rank this is.

    All ranks together keep to the recipe's limits of calls and money. A state folder belongs to one process, so each rank has
    its own below `state`.
    """

    def __init__(self, recipe: Any, overrides: Any, state: str | os.PathLike[str] | None) -> None:
        self._state = None if state is None else os.fspath(state)
        if self._state is not None:
            check_state(self._state)
        self.plan = plaudit.Engine(recipe, overrides=overrides)
        self._process: PerProcess[plaudit.Engine] = PerProcess()

    def open(self) -> None:
        """Nothing to agree on with other ranks."""

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The result of each row, by place."""
        if not rows:
            return {}
        return _results(call, rows, self._engine._score(_columns(call, rows), validate or None))

    async def ascore(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The same, without blocking the loop."""
        if not rows:
            return {}
        return _results(call, rows, await self._engine._ascore(_columns(call, rows), validate or None))

    @property
    def _engine(self) -> plaudit.Engine:
        return self._process.get(self._make)

    def _make(self) -> plaudit.Engine:
        rank, ranks = world()
        state = self._state
        if state is not None and ranks > 1 and "://" not in state:
            state = str(Path(state) / f"rank-{rank}")
        # With the functions that were registered where the reward was made, also in another process.
        return self.plan._again(state=state, share=ranks)


def _columns(call: Call, rows: Mapping[int, Row]) -> dict[str, Any]:
    """The columns of the rows, each with its group."""
    columns = of_rollouts([row.fields() for row in rows.values()])
    return {**columns, "group": [str(group) for group in call.groups_of(rows)]}


def _results(call: Call, rows: Mapping[int, Row], report: plaudit.Report) -> dict[int, Result]:
    """The results by place; those of a group with fewer rows than the trainer's groups have are partial."""
    call.statistics = report.statistics
    size = call.size or 0
    return {
        place: replace(result, partial=True) if result.group_size < size else result
        for place, result in zip(rows, report, strict=True)
    }


class _SharedBackend:
    """What scores the rows of all ranks in one place, under a name for the run that the ranks agree on.

    Ranks call in step, so the number of a call is the same on all of them.
    """

    def __init__(self, ranks: RankExchange) -> None:
        self._ranks = ranks
        self._run_id = ""
        self._number = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run_id": "", "_number": 0}

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The result of each row, by place."""
        raise NotImplementedError

    async def ascore(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The same, without blocking the loop."""
        return await asyncio.to_thread(self.score, call, rows, validate)


class RayBackend(_SharedBackend):
    """A client of the shared actor (`plaudit.ray`), which joins the groups of all ranks and scores each once.

    So there is one engine, with one limit for each judge and one journal, whatever the number of ranks. The actor belongs to
    the Ray job, so all ranks must be of one job, as under Ray Train.
    """

    def __init__(
        self, recipe: Any, overrides: Any, state: str | None, ranks: RankExchange, timeout: float
    ) -> None:
        from plaudit.ray.actor import ActorConfig
        from plaudit.ray.client import SyncClient

        super().__init__(ranks)
        self.plan = plaudit.Engine(recipe, overrides=overrides)
        recipe = os.fspath(recipe) if isinstance(recipe, os.PathLike) else recipe
        config = ActorConfig(recipe, dict(overrides) if overrides else None, state)
        self._timeout = timeout
        self._client = SyncClient(config, deadline=timeout)

    def open(self) -> None:
        """Agrees with the other ranks on a name for this run, so that no group is taken for one of another run."""
        if self._run_id:
            return
        import ray

        if not ray.is_initialized():
            raise RuntimeError("join='ray' needs a Ray cluster: call ray.init() first")
        mine = (ray.get_runtime_context().get_job_id(), uuid.uuid4().hex)
        jobs = self._ranks.agree(mine) if world()[1] > 1 else [mine]
        if len({job for job, _ in jobs}) > 1:
            raise RuntimeError(
                "join='ray' needs all ranks in one Ray job, as under Ray Train, but these ranks are drivers of their own; "
                "join='ranks' joins their groups without Ray"
            )
        self._run_id = jobs[0][1]

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        self._number += 1
        groups = call.groups_of(rows)
        if world()[1] == 1:
            sizes = dict(Counter(groups))
        elif call.size is None or not call.in_order:
            raise ArgumentError(
                "join='ray' on several ranks needs the completions of a prompt next to one another, and size="
            )
        else:
            sizes = {group: whole_size(call, group) for group in groups}
        submitted = {
            place: self._client.submit(
                f"{self._run_id}/{self._number}/{group}",
                sizes[group],
                member=str(place),
                validate=validate,
                **row.fields(),
            )
            for (place, row), group in zip(rows.items(), groups, strict=True)
        }
        # The client answers everything by its deadline; the bound here is for the unforeseen.
        return {place: future.result(1.5 * self._timeout + 10.0) for place, future in submitted.items()}


class ServicePlan:
    """The properties of a recipe that only the service has, named as those of `plaudit.Engine`."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self.name = str(recipe["name"])
        self.weights = {part["name"]: float(part["weight"]) for part in recipe["components"]}
        self.components = list(self.weights)
        self.compares_groups = bool(recipe["compares"])
        # The service does not say; a recipe that cannot be split shows it with its first total.
        self.additive_error: str | None = None

    def check_group_size(self, size: int) -> None:
        """Nothing: the service makes a group that is too large invalid."""


class ServiceBackend(_SharedBackend):
    """A client of the service, for one reward.

    Whole groups are sent in one request. Where the border between two ranks cuts a group, each rank hands its rows in one by
    one, and the service joins them; the ranks exchange nothing but, once, a name for the run.
    """

    def __init__(
        self, service: Service, recipe: str, run: str | None, ranks: RankExchange, joins: bool
    ) -> None:
        super().__init__(ranks)
        self.plan = ServicePlan(service.recipe(recipe))
        self._service = service
        self._recipe = recipe
        self._run = run
        self._joins = joins

    def open(self) -> None:
        """Agrees with the other ranks on a name for this run, so that no group is taken for one of another run."""
        if self._run_id:
            return
        mine = uuid.uuid4().hex
        agrees = world()[1] > 1 and (self.plan.compares_groups or self._run is None)
        self._run_id = self._ranks.agree(mine)[0] if agrees else mine

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
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
                    f"{self._run_id}/{self._number}/{groups[place]}",
                    whole_size(call, groups[place]),
                    rows[place].fields(),
                    member=str(place),
                    **settings,
                )
                for place in rows
                if place in cut
            }
            rollouts = [
                {**rows[place].fields(), "group": f"{self._number}/{groups[place]}"} for place in whole
            ]
            results = dict(zip(whole, self._service.score(self._recipe, rollouts, **settings), strict=True))
            results.update((place, asked.result()) for place, asked in joined.items())
        finally:
            threads.shutdown(wait=False)
        counts = Counter(groups.values())
        for place in whole:
            # Fewer than the trainer says, and nobody was there to join them.
            if call.size is not None and counts[groups[place]] < call.size:
                results[place] = replace(results[place], partial=True)
        return results

    def _cut(self, call: Call) -> set[int]:
        """The rows whose group is not all rows, where somebody else can hand in the rest of it."""
        known = call.size is not None and call.in_order
        joins = self._joins and self.plan.compares_groups and world()[1] > 1 and known
        return cut_places(call) if joins else set()

    def _name(self, call: Call) -> str:
        """The run that the service keeps the figures under; those of an evaluation are kept apart."""
        run = self._run or f"{self.plan.name}-{self._run_id[:8]}"
        return f"{run}-eval" if call.evaluates else run
