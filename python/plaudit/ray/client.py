"""Clients of the shared engine: batch rollouts into few Ray calls and long-poll for their results.

An `EngineClient` belongs to one event loop; a `SyncClient` runs one for callers in threads. For each shard it has at most one `submit` and one `take_results` call under way: rollouts
that arrive meanwhile go out with the next `submit`, which is also how the actor holds a client back. When a call fails, the
client finds or starts the actor again and submits whatever has no result; the actor ignores what it knows already.

Deadline: every `score` returns by its deadline, whatever Ray does.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import pickle
import threading
import uuid
import zlib
from concurrent.futures import Future
from typing import Any, NamedTuple

from plaudit.fork import PerProcess
from plaudit.ray.actor import ActorConfig, Item, Rollout, SharedEngine, Withdrawal, result_of_error
from plaudit.result import Result
from plaudit.rollout import OTHERS
from plaudit.values import plain

log = logging.getLogger("plaudit")

# Rollouts are gathered for this long before they are submitted together: a Ray call costs more than scoring a rollout. A
# group is scored when its last member has arrived, so this also delays each group.
GATHER_S = 0.005
# The most items and bytes of a batch: Ray sends arguments below 100 KB with the call, and larger ones through its object
# store.
MAX_ITEMS, MAX_BYTES = 256, 90_000
# A call that takes longer is lost. The actor answers every call within 20 seconds.
CALL_S = 60.0
# Pause before a lost actor is looked for again.
RETRY_S = 0.5


def actor_name(config: ActorConfig, shard: int = 0) -> str:
    """The name of the actor: equal for equal settings in one Ray job."""
    import ray

    job = ray.get_runtime_context().get_job_id()
    key = json.dumps([config._asdict(), job, shard], sort_keys=True, default=str)
    return f"plaudit-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def get_or_start_actor(config: ActorConfig, shard: int = 0) -> Any:
    """The handle of the actor with these settings, which is started where it does not run yet.

    The actor belongs to the job and ends with it. It reserves no CPU, and runs on the machine that asked first, where the
    recipe's files are.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=True)
    options = {
        "name": actor_name(config, shard),
        "get_if_exists": True,
        "num_cpus": 0,
        "max_restarts": -1,
        # Not retried by Ray, since a restarted actor must learn first which clients there are.
        "max_task_retries": 0,
        "max_concurrency": 10_000,
        "scheduling_strategy": here,
    }
    return ray.remote(SharedEngine).options(**options).remote(config)


class EngineClient:
    """The client of one shared engine, or of several where groups are spread over shards."""

    def __init__(self, config: ActorConfig, *, deadline: float, shards: int = 1) -> None:
        """`deadline`: the longest that one `score` may take, in seconds."""
        self.shards = [ShardClient(_shard_config(config, at, shards), at, deadline) for at in range(shards)]

    async def score(self, rollout: Rollout) -> Result:
        """The result of one rollout, by the deadline. A rollout that cannot be sent is invalid."""
        try:
            rollout = rollout._replace(
                prompt=plain(rollout.prompt), extra=plain(rollout.extra), others=plain(rollout.others)
            )
            size = len(pickle.dumps(rollout))
        except Exception as error:  # noqa: BLE001 - one odd rollout must not fail the batch that it is sent with.
            return result_of_error(error)
        result = await self._shard(rollout.group).submit(rollout, size)
        assert result is not None
        return result

    def withdraw(self, group: str, member: str | None, size: int) -> None:
        """Tells the actor that a member of a group will never be submitted."""
        self._shard(group).submit(Withdrawal(group, member, size))

    def _shard(self, group: str) -> ShardClient:
        return self.shards[zlib.crc32(group.encode("utf-8", "replace")) % len(self.shards)]


class SyncClient:
    """A client that any thread may call, for trainers that call from threads, or from event loops that come and go.

    Its event loop runs in a thread of its own, which starts with the first call.
    """

    def __init__(self, config: ActorConfig, *, deadline: float) -> None:
        self._config = config
        self._deadline = deadline
        self._process: PerProcess[tuple[asyncio.AbstractEventLoop, EngineClient]] = PerProcess()

    def submit(
        self, group: str, size: int, response: str, *, member: str | None = None, **fields: Any
    ) -> Future[Result]:
        """Submits one rollout; its result comes by the deadline."""
        others = {name: fields.pop(name) for name in OTHERS if name in fields}
        rollout = Rollout(group, member, size, response, others=others, **fields)
        loop, client = self._process.get(self._start)
        return asyncio.run_coroutine_threadsafe(client.score(rollout), loop)

    def withdraw(self, group: str, size: int, member: str | None = None) -> None:
        """Tells the actor that a member of a group will never be submitted."""
        loop, client = self._process.get(self._start)
        loop.call_soon_threadsafe(client.withdraw, group, member, size)

    def _start(self) -> tuple[asyncio.AbstractEventLoop, EngineClient]:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="plaudit-shared", daemon=True).start()
        return loop, EngineClient(self._config, deadline=self._deadline)


class Pending(NamedTuple):
    """An item that has no result yet."""

    item: Rollout | Withdrawal
    size: int
    future: asyncio.Future[Result | None]


class ShardClient:
    """The client of one actor."""

    def __init__(self, config: ActorConfig, shard: int, deadline: float) -> None:
        self.config = config
        self.shard = shard
        self.deadline = deadline
        self.client = uuid.uuid4().hex
        # Ray ends an actor that nobody holds a handle of.
        self.actor: Any = None
        self.numbers = itertools.count(1)
        # By number. A withdrawal is among them until the actor has confirmed it.
        self.waiting: dict[int, Pending] = {}
        self.unsent: list[int] = []
        self.has_unsent = asyncio.Event()
        self.running: asyncio.Task[None] | None = None
        self.loss_logged = False

    def submit(self, item: Rollout | Withdrawal, size: int = 0) -> asyncio.Future[Result | None]:
        """Queues an item of so many bytes. The future has its result by the deadline."""
        loop = asyncio.get_running_loop()
        number, future = next(self.numbers), loop.create_future()
        self.waiting[number] = Pending(item, size, future)
        timer = loop.call_later(self.deadline, self._expire, number)

        def forget(_: asyncio.Future[Result | None]) -> None:
            timer.cancel()
            self.waiting.pop(number, None)

        # Also where the caller was cancelled.
        future.add_done_callback(forget)
        self.unsent.append(number)
        self.has_unsent.set()
        if self.running is None or self.running.done():
            self.running = loop.create_task(self._run())
        return future

    async def _run(self) -> None:
        """Keeps the exchange with the actor going while anything waits, over every loss of the actor."""
        while self.waiting:
            try:
                await self._connect()
                await self._exchange()
            except Exception as error:  # noqa: BLE001 - Ray has many exceptions for an actor that is gone.
                if "creation task" in str(error):
                    self._fail_all(error)
                elif self.waiting and not self.loss_logged:
                    self.loss_logged = True
                    log.error(
                        "plaudit: the shared engine is lost (%s); %d rollouts wait for it",
                        error,
                        len(self.waiting),
                    )
            await asyncio.sleep(RETRY_S)

    async def _connect(self) -> None:
        """Finds or starts the actor, and queues everything that waits, since any of it may be lost."""
        loop = asyncio.get_running_loop()
        self.actor = await loop.run_in_executor(None, get_or_start_actor, self.config, self.shard)
        await _within(CALL_S, self.actor.connect.remote(self.client))
        self.unsent = list(self.waiting)
        if self.loss_logged:
            self.loss_logged = False
            log.warning(
                "plaudit: the shared engine is back; %d rollouts are handed in again", len(self.unsent)
            )

    async def _exchange(self) -> None:
        """Submits and receives until either fails."""
        loops = [asyncio.ensure_future(self._submit_batches()), asyncio.ensure_future(self._take_results())]
        try:
            done, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    async def _submit_batches(self) -> None:
        batch: list[Item] = []
        while True:
            if not batch:
                if not self.unsent:
                    self.has_unsent.clear()
                    await self.has_unsent.wait()
                    await asyncio.sleep(GATHER_S)
                batch = self._next_batch()
                continue
            if await _within(CALL_S, self.actor.submit.remote(self.client, batch)):
                batch = []

    def _next_batch(self) -> list[Item]:
        """Takes queued items that somebody still waits for."""
        batch: list[Item] = []
        taken = size = 0
        for number in self.unsent:
            pending = self.waiting.get(number)
            if pending is not None:
                size += pending.size
                if batch and (len(batch) == MAX_ITEMS or size > MAX_BYTES):
                    break
                batch.append((number, pending.item))
            taken += 1
        del self.unsent[:taken]
        return batch

    async def _take_results(self) -> None:
        received: list[int] = []
        while True:
            results = await _within(CALL_S, self.actor.take_results.remote(self.client, received))
            received = [number for number, _ in results]
            for number, result in results:
                self._resolve(number, result)

    def _resolve(self, number: int, result: Result | None) -> None:
        pending = self.waiting.get(number)
        if pending is not None and not pending.future.done():
            pending.future.set_result(result)

    def _expire(self, number: int) -> None:
        message = "no answer from the shared engine before the deadline"
        self._resolve(number, Result.invalid("group.deadline", message, waited=self.deadline))

    def _fail_all(self, error: Exception) -> None:
        """Raises where anybody waits: an actor that cannot start will not start later."""
        for number, pending in list(self.waiting.items()):
            if isinstance(pending.item, Withdrawal):
                self._resolve(number, None)
            elif not pending.future.done():
                pending.future.set_exception(
                    RuntimeError(f"plaudit: the shared engine cannot start: {error}")
                )
        self.waiting.clear()


async def _within(seconds: float, reference: Any) -> Any:
    """The result of a Ray call. Not `asyncio.wait_for`, which ignores a cancellation that comes with the result."""
    call = asyncio.ensure_future(reference)
    # Marks an exception as seen, where this was cancelled before.
    call.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        if not (await asyncio.wait([call], timeout=seconds))[0]:
            raise TimeoutError(f"no reply from the shared engine within {seconds:g} s")
        return call.result()
    finally:
        call.cancel()


def _shard_config(config: ActorConfig, shard: int, shards: int) -> ActorConfig:
    """The settings of one of several actors, which together keep to the recipe's limits."""
    if shards == 1:
        return config
    # A state folder serves one process at a time.
    is_folder = config.state is not None and "://" not in config.state
    return config._replace(share=shards, state=f"{config.state}/shard-{shard}" if is_folder else config.state)
