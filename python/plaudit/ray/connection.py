"""How does a process reach the shared engine? By few calls: many rollouts go out together, answers come back together.

A connection belongs to one event loop. `score` notes a rollout and waits; a few milliseconds later everything that was
noted meanwhile is prepared on a thread and handed in by one call, and one open `collect` call brings the answers. When
the actor dies, Ray starts it again (or the connection does), and what was not answered is handed in once more.

What must hold: every `score` returns by its deadline, even if the actor never answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from plaudit.ray.actor import Answer, Delivery, Rollout, SharedEngine, Terms

log = logging.getLogger("plaudit")

# How long rollouts are gathered before they go out together. A group is scored when its last member has arrived, so
# this is also what a group waits longer than it must.
GATHER_S = 0.008
# How long one `collect` call stays open; Ray reports a dead actor by itself, so this only bounds what is unforeseen.
COLLECT_S = 20.0
# How often deadlines are looked at.
WATCH_S = 0.5
# How long a lost actor is waited for before it is asked for again.
RETRY_S = 0.5


def name_of(terms: Terms, shard: int = 0) -> str:
    """The actor's name: the same for the same terms in the same job."""
    import ray

    job = ray.get_runtime_context().get_job_id()
    said = json.dumps([terms._asdict(), job, shard], sort_keys=True, default=str)
    return f"plaudit-{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def start(terms: Terms, shard: int = 0) -> Any:
    """The handle of the actor with these terms; it is started where it does not run yet.

    It belongs to the job and ends with it. It reserves no CPU, and stands on the machine that asked first, where the
    recipe's files are.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=True)
    return (
        ray.remote(SharedEngine)
        .options(
            name=name_of(terms, shard),
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=10_000,
            scheduling_strategy=here,
        )
        .remote(terms)
    )


class Connection:
    """The way of one process to the shared engine, or to several where groups are spread over shards."""

    def __init__(
        self,
        terms: Terms,
        *,
        deadline: float,
        shards: int = 1,
        prepare: Callable[[Any], Rollout] | None = None,
    ) -> None:
        """`deadline` is the longest that one `score` may take; `prepare` makes a rollout of what `score` is given."""
        self.deadline = deadline
        self.prepare = prepare
        self.lines = [Line(terms, shard, shards) for shard in range(shards)]
        self.gathered: list[tuple[Any, asyncio.Future[Answer]]] = []
        self.flushing = False
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="plaudit-prepare")

    async def score(self, rollout: Any) -> Answer:
        """The answer to one rollout, by the deadline."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.gathered.append((rollout, future))
        if not self.flushing:
            self.flushing = True
            asyncio.get_running_loop().call_later(GATHER_S, self._flush)
        return await future

    def leave(self, group: str, member: str | None, size: int) -> None:
        """Tells that a sibling will never come."""
        self._line(group).leave(group, member, size)

    def _line(self, group: str) -> Line:
        return self.lines[zlib.crc32(group.encode("utf-8", "replace")) % len(self.lines)]

    def _flush(self) -> None:
        """Sends what was gathered; the next rollout begins to gather anew."""
        self.flushing = False
        items, self.gathered = self.gathered, []
        if self.prepare is None:
            self._send(items, [item for item, _ in items])
            return
        work = asyncio.get_running_loop().run_in_executor(
            self.thread, self._prepare_all, [item for item, _ in items]
        )
        work.add_done_callback(lambda done: self._send(items, done.result()))

    def _prepare_all(self, items: Sequence[Any]) -> list[Rollout | Exception]:
        prepared: list[Rollout | Exception] = []
        for item in items:
            try:
                assert self.prepare is not None
                prepared.append(self.prepare(item))
            except Exception as error:  # noqa: BLE001 - it belongs to this one rollout, and is raised there.
                prepared.append(error)
        return prepared

    def _send(
        self, items: Sequence[tuple[Any, asyncio.Future[Answer]]], rollouts: Sequence[Rollout | Exception]
    ) -> None:
        due = time.monotonic() + self.deadline
        touched: dict[int, Line] = {}
        for (_, future), rollout in zip(items, rollouts, strict=True):
            if isinstance(rollout, Exception):
                if not future.done():
                    future.set_exception(rollout)
                continue
            line = self._line(rollout.group)
            line.add(rollout, future, due)
            touched[line.shard] = line
        for line in touched.values():
            line.send()


class Line:
    """The connection to one actor."""

    def __init__(self, terms: Terms, shard: int, shards: int) -> None:
        if shards > 1:
            # Together they keep to the recipe's limits; and a folder of state serves one process at a time.
            folder = terms.state is not None and "://" not in terms.state
            terms = terms._replace(
                share=shards, state=f"{terms.state}/shard-{shard}" if folder else terms.state
            )
        self.terms = terms
        self.shard = shard
        self.caller = uuid.uuid4().hex
        self.actor: Any = None
        self.life = ""
        self.tickets = 0
        self.seen = 0
        self.waiting: dict[int, tuple[Rollout, asyncio.Future[Answer], float]] = {}
        self.unsent: list[int] = []
        self.left: list[tuple[str, str | None, int]] = []
        self.collecting: asyncio.Task[None] | None = None
        self.watching: asyncio.Task[None] | None = None
        self.said = False

    def add(self, rollout: Rollout, future: asyncio.Future[Answer], due: float) -> None:
        self.tickets += 1
        self.waiting[self.tickets] = (rollout, future, due)
        self.unsent.append(self.tickets)

    def leave(self, group: str, member: str | None, size: int) -> None:
        self.left.append((group, member, size))
        self.send()

    def send(self) -> None:
        """Hands in what has not gone out, if there is an actor; otherwise it goes when there is one."""
        loop = asyncio.get_running_loop()
        if self.collecting is None or self.collecting.done():
            self.collecting = loop.create_task(self._collect())
        if self.watching is None or self.watching.done():
            self.watching = loop.create_task(self._watch())
        if not self.life:
            return
        tickets, self.unsent = self.unsent, []
        left, self.left = self.left, []
        rollouts = [(ticket, self.waiting[ticket][0]) for ticket in tickets if ticket in self.waiting]
        try:
            if rollouts:
                self.actor.hand_in.options(num_returns=0).remote(self.caller, self.life, rollouts)
            for group, member, size in left:
                self.actor.leave.options(num_returns=0).remote(group, member, size)
        except Exception as error:  # noqa: BLE001 - what was not sent goes out with the next connection.
            self._lost(error)

    async def _collect(self) -> None:
        """Brings answers for as long as the process lives, over every loss of the actor."""
        while True:
            try:
                if not self.life:
                    await self._connect()
                delivery = await self.actor.collect.remote(self.caller, self.life, self.seen, COLLECT_S)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - Ray has many ways to say that an actor is gone.
                if "creation task" in str(error):
                    # It cannot even start, so waiting does not help; whoever waits is told why.
                    self._refuse(error)
                else:
                    self._lost(error)
                await asyncio.sleep(RETRY_S)
                continue
            if delivery is None:
                self._lost(RuntimeError("it was started anew"))
            else:
                self._deliver(delivery)

    async def _connect(self) -> None:
        """Finds or starts the actor, and hands in everything that waits."""
        actor = await asyncio.get_running_loop().run_in_executor(None, start, self.terms, self.shard)
        self.actor, self.life, self.seen = actor, await actor.alive.remote(), 0
        self.unsent = list(self.waiting)
        if self.said:
            log.warning(
                "plaudit: the shared engine is back; %d rollouts are handed in again", len(self.unsent)
            )
            self.said = False
        self.send()

    def _lost(self, error: Exception) -> None:
        self.life = ""
        if not self.said:
            self.said = True
            log.error(
                "plaudit: the shared engine is lost (%s); %d rollouts wait for it", error, len(self.waiting)
            )

    def _refuse(self, error: Exception) -> None:
        self.life = ""
        refused, self.waiting = self.waiting, {}
        for _, future, _ in refused.values():
            if not future.done():
                future.set_exception(RuntimeError(f"plaudit: the shared engine cannot start: {error}"))

    def _deliver(self, delivery: Delivery) -> None:
        self.seen = delivery.before + len(delivery.answers)
        for ticket, answer in delivery.answers:
            held = self.waiting.pop(ticket, None)
            if held is not None and not held[1].done():
                held[1].set_result(answer)

    async def _watch(self) -> None:
        """Answers whoever has waited too long, and forgets whoever has gone away."""
        while self.waiting:
            await asyncio.sleep(WATCH_S)
            now = time.monotonic()
            for ticket, (_, future, due) in list(self.waiting.items()):
                if future.done():
                    del self.waiting[ticket]
                elif now > due:
                    del self.waiting[ticket]
                    future.set_result(
                        Answer.invalid(
                            "group.deadline", "no answer from the shared engine before the deadline"
                        )
                    )
