"""Ray actor that hosts one engine for many client processes.

One process holds the judge limits, the journal, the groups that wait for their members, and the running statistics. Clients
(`plaudit.ray.client`) submit batches of rollouts and long-poll for batches of results, so that a Ray call is shared by many
rollouts.

Exactly once: a client numbers its rollouts. The actor ignores a number that it knows already, and keeps each result until the
client acknowledges it, so both calls may be repeated. A restarted actor knows no client; a client that finds itself unknown
connects and submits again whatever has no result.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import plaudit
from plaudit.abort import AbortAfter, StepCounter, tally
from plaudit.imports import load as load_module
from plaudit.ray.steps import SampleKey, StepStatistics
from plaudit.report import flat
from plaudit.result import Result, fill_with_group_means
from plaudit.tables import of_rollouts

log = logging.getLogger("plaudit")

# A long poll returns empty after this time, so that a client notices a lost call.
POLL_S = 20.0
# Results are gathered for this long before they are sent together.
GATHER_S = 0.004
# The most results of one reply.
MAX_RESULTS = 1024
# Back-pressure: a client with so many rollouts being scored, or results not acknowledged, must wait before it submits more.
# Rollouts that wait for siblings do not count: the siblings have to get in.
MAX_PENDING = 8192
# How often, and how long, a call of `submit` waits for that.
ROOM_CHECK_S, ROOM_WAIT_S = 0.02, 20.0
# Groups whose totals are remembered: several steps of a large run, at about 200 bytes for a group of eight.
MAX_GROUPS = 65_536
# A client that has not called for this long is gone, and its results are dropped.
FORGET_S = 3600.0
# The key in a result's info that says why the run ends.
ENDING = "plaudit.ending"
# Custom rewards score at most so many single rollouts at a time, since each takes a thread or two.
MAX_CUSTOM_CALLS = 128


class ActorConfig(NamedTuple):
    """The settings of a shared engine. Processes with equal settings share one actor."""

    recipe: Any
    overrides: dict[str, Any] | None = None
    state: str | None = None
    imports: tuple[str, ...] = ()
    timeout: float | None = None
    quiet: float | None = None
    examine: int = 0
    share: int = 1
    abort_after: AbortAfter = "never"
    # For `abort_after`: how many training rollouts a step has, how the trainer's settings name the column of the reference, and
    # how they switch it off.
    step_rollouts: int = 0
    rename: str = ""
    switch: str = ""

    def engine(self, *, state: bool = True) -> plaudit.Engine:
        """Makes the engine; `state=False` for a process that only reads its properties."""
        for module in self.imports:
            load_module(module)
        return plaudit.Engine(
            self.recipe, overrides=self.overrides, state=self.state if state else None, share=self.share
        )


class Rollout(NamedTuple):
    """One response, as clients submit it. All values are plain, so that it can be pickled."""

    group: str
    member: str | None
    size: int
    response: str | list[Any]
    prompt: Any = None
    reference: str | None = None
    tokens: int | None = None
    extra: dict[str, Any] | None = None
    validate: bool = False
    source: str = ""
    step: int | None = None
    # The fields of `plaudit.rollout.Others`.
    others: dict[str, Any] | None = None
    # What the row has, where it has no reference.
    columns: tuple[str, ...] = ()

    def fields(self, extra: Any) -> dict[str, Any]:
        """The rollout by the names of its fields, with what the actor adds to its `extra`."""
        named = {"prompt": self.prompt, "reference": self.reference, "tokens": self.tokens, "extra": extra}
        return {"response": self.response, **named, **(self.others or {})}

    def sample_key(self) -> SampleKey:
        """The step, split and data source that the result is counted under."""
        return SampleKey(self.step, self.validate, self.source)


class Withdrawal(NamedTuple):
    """The notice that a member of a group will never be submitted."""

    group: str
    member: str | None
    size: int


# What clients submit, under a number of the client.
Item = tuple[int, Rollout | Withdrawal]


class UnknownClientError(RuntimeError):
    """The actor does not know the client, because the actor was restarted or the client was silent for too long."""


class ClientState:
    """What one client has submitted, and the results that it has not acknowledged."""

    def __init__(self) -> None:
        self.pending: set[int] = set()
        self.results: dict[int, Result | None] = {}
        self.ready = asyncio.Event()
        self.scoring = 0
        self.last_call = time.monotonic()

    def accept(self, items: Iterable[Item]) -> list[Item]:
        """Returns the items that were not submitted before."""
        new = [item for item in items if item[0] not in self.pending and item[0] not in self.results]
        self.pending.update(number for number, _ in new)
        return new

    def put(self, number: int, result: Result | None = None) -> None:
        """Stores the result of an item; that of a withdrawal is None."""
        self.pending.discard(number)
        self.results[number] = result
        self.ready.set()

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Drops results that the client has received."""
        for number in numbers:
            self.results.pop(number, None)
        if not self.results:
            self.ready.clear()

    def is_full(self) -> bool:
        return self.scoring + len(self.results) >= MAX_PENDING


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
    """LRU of groups by key, for recipes that score single responses: an invalid rollout gets the mean of its siblings.

    Such recipes answer at once and nothing waits for the group. Only an invalid rollout waits, until all its siblings are
    scored.
    """

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


class SharedEngine:
    """The class of the actor. `plaudit.ray.client` starts it by name; Ray restarts it when its process dies."""

    def __init__(self, config: ActorConfig) -> None:
        self.config = config
        self.engine = config.engine()
        # Only recipes that compare responses wait for the group.
        compares = self.engine.compares_groups
        self.join = self.engine.join(timeout=config.timeout, quiet=config.quiet) if compares else None
        self.completions = self.join._completion_queue(self._wake) if self.join is not None else None
        self.timeout = config.timeout if config.timeout is not None else self.engine.timeout
        self.incarnation = uuid.uuid4().hex
        self.clients: dict[str, ClientState] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        # Rollouts in the join, by the number under which the completion queue returns their results.
        self.joining: dict[int, tuple[ClientState, int, SampleKey]] = {}
        self.joined = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.siblings = SiblingTotals()
        self.steps = StepStatistics(self.engine.components, config.examine)
        self.abort = StepCounter(config.abort_after)
        self.unscored: list[Result] = []
        self.columns: tuple[str, ...] = ()
        # Why the run ends, where it does.
        self.ending: str | None = None
        self.count_failed = False
        custom = {each.per for each in self.engine._functions.values()}
        # A rollout that takes long must not delay the others of its batch. Functions of a batch still get whole batches.
        self.score_singly = bool(custom or self.engine.judges) and "batch" not in custom
        self.custom_calls = asyncio.Semaphore(MAX_CUSTOM_CALLS if custom else 1 << 30)

    async def connect(self, client: str) -> str:
        """Registers a client, which may be known already, and returns the id of this incarnation of the actor."""
        self.loop = asyncio.get_running_loop()
        if client not in self.clients:
            now = time.monotonic()
            for name in [name for name, state in self.clients.items() if now - state.last_call > FORGET_S]:
                del self.clients[name]
            self.clients[client] = ClientState()
        return self.incarnation

    async def submit(self, client: str, items: Sequence[Item]) -> bool:
        """Takes items, each once. Returns False, and takes none, while too many items of the client are pending."""
        state = self._client(client)
        until = time.monotonic() + ROOM_WAIT_S
        while state.is_full():
            if time.monotonic() > until:
                return False
            await asyncio.sleep(ROOM_CHECK_S)
        self._accept(state, state.accept(items))
        return True

    async def take_results(self, client: str, acknowledged: Sequence[int]) -> list[tuple[int, Result | None]]:
        """Long poll: the results that the client has not acknowledged, as soon as there are some."""
        state = self._client(client)
        state.acknowledge(acknowledged)
        if not state.results:
            try:
                await asyncio.wait_for(state.ready.wait(), POLL_S)
            except asyncio.TimeoutError:
                return []
            await asyncio.sleep(GATHER_S)
        return list(state.results.items())[:MAX_RESULTS]

    async def status(self) -> dict[str, Any]:
        """The state of the actor, for people and tests."""
        return {
            "incarnation": self.incarnation,
            "pid": os.getpid(),
            "join": None if self.join is None else dict(self.join.status),
            "clients": {name: len(state.results) for name, state in self.clients.items()},
            "scoring": len(self.tasks) + len(self.joining),
            "steps": self.steps.closed,
            "judge_usage": list(self.engine.judge_usage),
            "ending": self.ending,
        }

    def _client(self, client: str) -> ClientState:
        state = self.clients.get(client)
        if state is None:
            raise UnknownClientError("the shared engine was restarted")
        state.last_call = time.monotonic()
        return state

    def _accept(self, state: ClientState, items: Sequence[Item]) -> None:
        single: list[tuple[int, Rollout]] = []
        for number, item in items:
            if isinstance(item, Rollout) and item.columns:
                self.columns = item.columns
            if isinstance(item, Withdrawal):
                self.siblings.add(item.group, item.size, None)
                self._leave_join(item.group, item.member)
                state.put(number)
            elif self.completions is None or item.validate:
                single.append((number, item))
            else:
                self._submit_to_join(state, number, item)
        state.scoring += len(single)
        for validate in (False, True):
            chosen = [item for item in single if item[1].validate is validate]
            for batch in [[item] for item in chosen] if self.score_singly else [chosen] if chosen else []:
                self._start(self._score_single(state, batch))

    def _leave_join(self, group: str, member: str | None) -> None:
        if self.join is not None:
            with contextlib.suppress(TypeError):  # A name that the join does not take is no member.
                self.join.leave(group, member)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _submit_to_join(self, state: ClientState, number: int, rollout: Rollout) -> None:
        """Submits a rollout that is compared with its siblings to the engine's join, which waits for them."""
        assert self.completions is not None
        self.joined += 1
        self.joining[self.joined] = (state, number, rollout.sample_key())
        group, member, size, *_ = rollout
        fields = rollout.fields(self.steps.add_last_step(rollout.extra))
        try:
            self.completions.submit(self.joined, group, size, member, fields)
        except Exception as error:  # noqa: BLE001 - every error becomes a result, since the client waits for one.
            self._leave_join(group, member)
            self._finish_joined(self.joined, error)

    def _wake(self) -> None:
        """Called on a thread of the engine when the join has results."""
        try:
            assert self.loop is not None
            self.loop.call_soon_threadsafe(self._take_completions)
        except RuntimeError:
            pass  # The event loop is closed, so nobody waits any more.

    def _take_completions(self) -> None:
        assert self.completions is not None
        for joined, fields in self.completions.take():
            self._finish_joined(joined, fields)

    def _finish_joined(self, joined: int, fields: Any) -> None:
        """Turns the fields of a join's answer, or an exception, into the result of a rollout."""
        state, number, key = self.joining.pop(joined)
        if isinstance(fields, BaseException):
            result = result_of_error(fields)
        else:
            total, outcome, reason, components, info, *rest, _ = fields
            result = Result(total, outcome, reason, components, numbers(flat(info)), *rest)
        self._finish(state, number, key, result)

    def _finish(self, state: ClientState, number: int, key: SampleKey, result: Result) -> None:
        """Counts a result and stores it for the client; a result that cannot be counted is stored all the same."""
        try:
            if not key.validate:
                result = self._count_for_abort(result)
            result = self.steps.count(key, result)
        except Exception:
            if not self.count_failed:
                self.count_failed = True
                log.exception(
                    "plaudit: a result was not counted towards its step; further ones are not logged"
                )
        state.put(number, result)

    def _count_for_abort(self, result: Result) -> Result:
        """Counts a training rollout. Once nothing can be scored, every result says so, until one is valid again."""
        if not self.abort.is_on:
            return result
        if result.outcome == "scored":
            self.unscored.clear()
            self.ending = None
            self.abort.observe((True, {}))
            return result
        self.unscored.append(result)
        if len(self.unscored) >= max(1, self.config.step_rollouts):
            ending = self.abort.observe(tally(self.unscored))
            self.unscored.clear()
            if ending is not None:
                self.ending = ending.advise(self.columns, self.config.rename, self.config.switch)
        return result if self.ending is None else replace(result, info={**result.info, ENDING: self.ending})

    async def _score_single(self, state: ClientState, items: Sequence[tuple[int, Rollout]]) -> None:
        """Scores rollouts that nothing compares with their siblings: validation, and recipes of single responses."""
        async with self.custom_calls:
            results = await self._score_or_halve([rollout for _, rollout in items])
        state.scoring -= len(items)
        for (number, rollout), result in zip(items, results, strict=True):
            if not rollout.validate:
                self.siblings.add(rollout.group, rollout.size, result.total)
            if result.total is None and not rollout.validate and rollout.size > 1:
                self._start(self._wait_for_siblings(state, number, rollout, result))
            else:
                self._finish(state, number, rollout.sample_key(), result)

    async def _score_or_halve(self, rollouts: Sequence[Rollout]) -> list[Result]:
        """Scores a batch. If that raises, halves it until the rollout at fault is alone; only that one is invalid."""
        try:
            return await self._score(rollouts)
        except Exception as error:  # noqa: BLE001 - every error becomes a result, since the client waits for one.
            if len(rollouts) == 1:
                return [result_of_error(error)]
        half = len(rollouts) // 2
        return [*await self._score_or_halve(rollouts[:half]), *await self._score_or_halve(rollouts[half:])]

    async def _score(self, rollouts: Sequence[Rollout]) -> list[Result]:
        """Scores rollouts that are all for validation, or all for training, each as a group of its own."""
        began = time.monotonic()
        columns = of_rollouts(
            [rollout.fields(self.steps.add_last_step(rollout.extra)) for rollout in rollouts]
        )
        report = await self.engine._ascore({**columns, "group": range(len(rollouts))}, rollouts[0].validate)
        waited = time.monotonic() - began
        return [replace(result, info=numbers(result.info), waited=waited) for result in report]

    async def _wait_for_siblings(
        self, state: ClientState, number: int, rollout: Rollout, result: Result
    ) -> None:
        """Finishes a rollout without a total once its siblings are scored, because it gets their mean."""
        began = time.monotonic()
        mean = await self.siblings.mean(rollout.group, rollout.size, self.timeout)
        waited = result.waited + time.monotonic() - began
        result = replace(result, siblings_mean=mean, group_size=1, waited=waited)
        self._finish(state, number, rollout.sample_key(), result)


def numbers(info: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers among the evidence; texts and lists stay in the actor."""
    return {name: value for name, value in info.items() if isinstance(value, (bool, int, float))}


def result_of_error(error: BaseException) -> Result:
    """The result of a rollout whose scoring raised."""
    code = getattr(error, "code", None) or "engine.error"
    return Result.invalid(str(code), f"{type(error).__name__}: {error}")
