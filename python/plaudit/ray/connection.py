"""How does a process reach the shared engine? By one stream: rollouts go out as they come, answers come back as they are made.

A connection belongs to one event loop. `score` notes a rollout and waits; everything that was noted in the same moment is
prepared on a thread and goes out together. Ray finds or starts the actor and tells where it listens. When the stream is
lost, because the actor died or the network blinked, Ray is asked anew, and what was not answered is handed in once more.

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
from typing import Any, NamedTuple

from plaudit.ray.actor import Answer, Left, Rollout, SharedEngine, Terms, failed
from plaudit.ray.door import Life
from plaudit.ray.frames import End, encoded

log = logging.getLogger("plaudit")

# How long rollouts are gathered before they go out together. A group is scored when its last member has arrived, so
# this is also what a group waits longer than it must.
GATHER_S = 0.001
# Answers that have come are acknowledged with the next rollouts, or after this long.
ACKNOWLEDGE_S = 0.25
# How often deadlines are looked at.
WATCH_S = 0.5
# How long opening a stream may take.
CONNECT_S = 10.0
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
        line = self._line(group)
        line.add(encoded(Left(group, member, size))[1:], time.monotonic() + self.deadline, None)
        line.send()

    def _line(self, group: str) -> Line:
        return self.lines[zlib.crc32(group.encode("utf-8", "replace")) % len(self.lines)]

    def _flush(self) -> None:
        """Sends what was gathered; the next rollout begins to gather anew."""
        self.flushing = False
        items, self.gathered = self.gathered, []
        rollouts = [item for item, _ in items]
        if self.prepare is None:
            self._send(items, [pack(rollout) for rollout in rollouts])
            return
        work = asyncio.get_running_loop().run_in_executor(self.thread, self._prepare_all, rollouts)
        work.add_done_callback(lambda done: self._send(items, done.result()))

    def _prepare_all(self, items: Sequence[Any]) -> list[Packed | Answer | Exception]:
        prepared: list[Packed | Answer | Exception] = []
        for item in items:
            try:
                assert self.prepare is not None
                prepared.append(pack(self.prepare(item)))
            except Exception as error:  # noqa: BLE001 - it belongs to this one rollout, and is raised there.
                prepared.append(error)
        return prepared

    def _send(
        self,
        items: Sequence[tuple[Any, asyncio.Future[Answer]]],
        prepared: Sequence[Packed | Answer | Exception],
    ) -> None:
        due = time.monotonic() + self.deadline
        touched: dict[int, Line] = {}
        for (_, future), packed in zip(items, prepared, strict=True):
            if future.done():
                continue
            if isinstance(packed, Exception):
                future.set_exception(packed)
            elif isinstance(packed, Answer):
                future.set_result(packed)
            else:
                line = self._line(packed.group)
                line.add(packed.body, due, future)
                touched[line.shard] = line
        for line in touched.values():
            line.send()


class Packed(NamedTuple):
    """A rollout as it travels: JSON without the bracket that its ticket stands after."""

    group: str
    body: bytes


def pack(rollout: Rollout) -> Packed | Answer:
    """The rollout as it travels, or the answer to one that cannot."""
    try:
        return Packed(rollout.group, encoded(rollout)[1:])
    except Exception as error:  # noqa: BLE001 - an odd rollout must not keep the others from going out.
        return failed(error)


class Waiting(NamedTuple):
    """What was handed in and is not answered: a rollout, or word of a sibling that will never come, which nobody waits for."""

    body: bytes
    due: float
    future: asyncio.Future[Answer] | None


class Stream(End):
    """A line's end of the stream to the actor."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line
        self.over = asyncio.get_running_loop().create_future()

    def received(self, frame: Any) -> None:
        self.line.deliver(frame)

    def lost(self, error: Exception) -> None:
        if not self.over.done():
            self.over.set_result(error)

    def free(self) -> None:
        self.line.send()

    def open(self, caller: str, seen: int, token: bytes) -> None:
        """Says the token, who is calling, and how many answers came before."""
        assert self.transport is not None
        self.transport.write(token)
        self.send([encoded(caller), b"%d" % seen])


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
        # Ray ends an actor that nobody holds a handle of.
        self.actor: Any = None
        self.stream: Stream | None = None
        self.life = ""
        self.tickets = 0
        self.seen = 0
        self.acknowledged = 0
        self.acknowledging = False
        self.waiting: dict[int, Waiting] = {}
        self.unsent: list[int] = []
        self.keeping: asyncio.Task[None] | None = None
        self.watching: asyncio.Task[None] | None = None
        self.said = False

    def add(self, body: bytes, due: float, future: asyncio.Future[Answer] | None) -> None:
        """Takes what is to be handed in with the next `send`."""
        self.tickets += 1
        self.waiting[self.tickets] = Waiting(body, due, future)
        self.unsent.append(self.tickets)

    def send(self) -> None:
        """Hands in what has not gone out, if the actor reads; otherwise it goes when it does."""
        loop = asyncio.get_running_loop()
        if self.waiting:
            if self.keeping is None or self.keeping.done():
                self.keeping = loop.create_task(self._keep())
            if self.watching is None or self.watching.done():
                self.watching = loop.create_task(self._watch())
        if self.stream is None or not self.stream.writable:
            return
        tickets, self.unsent = self.unsent, []
        items = [
            b"[%d,%b" % (ticket, self.waiting[ticket].body) for ticket in tickets if ticket in self.waiting
        ]
        if items or self.acknowledged != self.seen:
            self.acknowledged = self.seen
            self.stream.send(items, before=b"%d" % self.seen)

    def deliver(self, answers: Sequence[Sequence[Any]]) -> None:
        """Tells everybody the answers that have come."""
        self.seen += len(answers)
        if not self.acknowledging:
            self.acknowledging = True
            asyncio.get_running_loop().call_later(ACKNOWLEDGE_S, self._acknowledge)
        for ticket, *said in answers:
            held = self.waiting.pop(ticket, None)
            if held is not None and held.future is not None and not held.future.done():
                held.future.set_result(Answer(*said))

    def _acknowledge(self) -> None:
        self.acknowledging = False
        self.send()

    async def _keep(self) -> None:
        """Keeps a stream open while somebody waits, over every loss of the actor."""
        while self.waiting:
            try:
                self.stream = await self._connect()
                # Everything that waits, since what was sent before may have been lost on the way.
                self.unsent = list(self.waiting)
                if self.said:
                    log.warning(
                        "plaudit: the shared engine is back; %d rollouts are handed in again",
                        len(self.unsent),
                    )
                    self.said = False
                self.send()
                self._lost(await self.stream.over)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - Ray has many ways to say that an actor is gone.
                if "creation task" in str(error):
                    # It cannot even start, so waiting does not help; whoever waits is told why.
                    self._refuse(error)
                else:
                    self._lost(error)
            await asyncio.sleep(RETRY_S)

    async def _connect(self) -> Stream:
        """Finds or starts the actor, and opens a stream to it."""
        loop = asyncio.get_running_loop()
        self.actor = await loop.run_in_executor(None, start, self.terms, self.shard)
        life: Life = await self.actor.alive.remote()
        if life.name != self.life:
            self.life, self.seen = life.name, 0
        opening = loop.create_connection(lambda: Stream(self), life.address, life.port)
        try:
            _, stream = await asyncio.wait_for(opening, CONNECT_S)
        except (OSError, asyncio.TimeoutError) as error:
            raise ConnectionError(
                f"no connection to its address {life.address}, port {life.port}: {error!r}"
            ) from error
        stream.open(self.caller, self.seen, life.token)
        return stream

    def _lost(self, error: Exception) -> None:
        self.stream = None
        if self.waiting and not self.said:
            self.said = True
            log.error(
                "plaudit: the shared engine is lost (%s); %d rollouts wait for it", error, len(self.waiting)
            )

    def _refuse(self, error: Exception) -> None:
        self.stream = None
        refused, self.waiting = self.waiting, {}
        for held in refused.values():
            if held.future is not None and not held.future.done():
                held.future.set_exception(RuntimeError(f"plaudit: the shared engine cannot start: {error}"))

    async def _watch(self) -> None:
        """Answers whoever has waited too long, and forgets whoever has gone away."""
        while self.waiting:
            await asyncio.sleep(WATCH_S)
            now = time.monotonic()
            for ticket, (_, due, future) in list(self.waiting.items()):
                if now > due or (future is not None and future.done()):
                    del self.waiting[ticket]
                    if future is not None and not future.done():
                        future.set_result(
                            Answer.invalid(
                                "group.deadline", "no answer from the shared engine before the deadline"
                            )
                        )
