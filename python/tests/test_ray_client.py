"""Tests of the shared engine's client and actor: exactly once, restarts, deadlines, back-pressure.

The actor's class runs in the test's own process, without Ray: `FakeActor` stands for Ray's handle, and loses calls.
"""

from __future__ import annotations

import asyncio
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import plaudit
import pytest
from plaudit.ray import actor as actor_module
from plaudit.ray import client as client_module
from plaudit.ray.actor import ActorConfig, Rollout, SharedEngine, UnknownClientError
from plaudit.ray.client import EngineClient, SyncClient
from plaudit.result import Result

RULES = {"components": {"format": {"reward": "reasoning_format"}}, "groups": {"timeout": "60s"}}
COMPARED = {**RULES, "components": {"kimi": {"reward": "kimi.length"}, **RULES["components"]}}


class LostCallError(ConnectionError):
    """What Ray's many exceptions for a lost call stand for."""


class FakeActor:
    """Stands for Ray's handle of an actor: pickles what goes through, and loses calls as `lose` says."""

    def __init__(self, recipe: Any) -> None:
        self.config = ActorConfig(recipe)
        self.engine = SharedEngine(self.config)
        self.died = asyncio.Event()
        self.lose: Callable[[str], str | None] = lambda method: None
        self.calls: list[str] = []

    def __getattr__(self, method: str) -> Any:
        return type("Method", (), {"remote": staticmethod(lambda *given: self.call(method, *given))})

    async def call(self, method: str, *given: Any) -> Any:
        """Runs a method of the current incarnation; raises if that dies before it returns, or where the call is lost."""
        self.calls.append(method)
        lost = self.lose(method)
        if lost == "request":
            raise LostCallError(method)
        called = getattr(self.engine, method)(*pickle.loads(pickle.dumps(given)))
        work, death = asyncio.ensure_future(called), asyncio.ensure_future(self.died.wait())
        try:
            await asyncio.wait([work, death], return_when=asyncio.FIRST_COMPLETED)
            if not work.done() or lost == "reply":
                raise LostCallError(method)
            return pickle.loads(pickle.dumps(work.result()))
        finally:
            death.cancel()

    def restart(self) -> None:
        """Ends this incarnation with all calls that are under way, and begins another."""
        self.died.set()
        self.died, self.engine = asyncio.Event(), SharedEngine(self.config)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], FakeActor]:
    """Makes the actor that clients of this test find."""

    def make(recipe: Any) -> FakeActor:
        made = FakeActor(recipe)
        monkeypatch.setattr(client_module, "get_or_start_actor", lambda config, shard: made)
        monkeypatch.setattr(client_module, "RETRY_S", 0.01)
        return made

    return make


def groups(count: int, size: int = 4, **more: Any) -> list[Rollout]:
    """Groups in an order that keeps none together."""
    rollouts = [
        Rollout(
            f"g{group}",
            str(at),
            size,
            f"<think>{'so ' * (3 * at + group)}</think><answer>{at}</answer>",
            **more,
        )
        for group in range(count)
        for at in range(size)
    ]
    random.Random(5).shuffle(rollouts)
    return rollouts


def totals(recipe: Any, rollouts: list[Rollout]) -> list[float]:
    columns = [[getattr(each, name) for each in rollouts] for name in ("response", "reference", "group")]
    return plaudit.Engine(recipe).score(None, *columns).totals.tolist()


async def score(client: EngineClient, rollouts: list[Rollout], patience: float = 60.0) -> list[Result]:
    return await asyncio.wait_for(asyncio.gather(*(client.score(each) for each in rollouts)), patience)


async def until(so: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not so():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), 60)


def hanging(per: str) -> dict[str, Any]:
    """A recipe with a reward that hangs for some responses."""

    async def hangs(prompts: Any, responses: Any, references: Any, extras: Any) -> Any:
        if "hangs" in responses:
            await asyncio.sleep(60)
        return 1.0 if per == "rollout" else [1.0] * len(responses)

    plaudit.register(f"hangs_{per}", per=per)(hangs)  # type: ignore[arg-type]
    return {"components": {"own": {"reward": f"hangs_{per}"}}, "groups": {"timeout": "1s"}}


def test_hanging_rollout_delays_nobody_and_gets_siblings_mean(start: Callable[[Any], FakeActor]):
    actor = start(hanging("rollout"))
    rollouts = [Rollout("g", str(at), 4, "hangs" if at == 1 else "fine") for at in range(4)]

    async def main() -> list[Result]:
        client = EngineClient(actor.config, deadline=60)
        calls = [asyncio.ensure_future(client.score(each)) for each in rollouts]
        others = [calls[at] for at in (0, 2, 3)]
        await asyncio.wait_for(asyncio.gather(*others), 60)
        assert not calls[1].done()
        return await asyncio.wait_for(asyncio.gather(*calls), 60)

    results = asyncio.run(main())
    assert [result.outcome for result in results] == ["scored", "invalid", "scored", "scored"]
    late = results[1]
    assert late.reason is not None and late.reason["code"] == "group.deadline"
    assert late.siblings_mean == 1.0 and late.group_size > 0


def test_batch_function_gets_many_rollouts(start: Callable[[Any], FakeActor]):
    seen: list[int] = []

    def counts(prompts: Any, responses: Any, references: Any, extras: Any) -> list[float]:
        seen.append(len(responses))
        return [1.0] * len(responses)

    plaudit.register("counts_many")(counts)
    actor = start({"components": {"own": {"reward": "counts_many"}}})

    async def main() -> list[Result]:
        return await score(EngineClient(actor.config, deadline=60), groups(4))

    assert {result.total for result in asyncio.run(main())} == {1.0}
    assert max(seen) > 1


def test_result_that_cannot_be_counted_is_sent(
    start: Callable[[Any], FakeActor], caplog: pytest.LogCaptureFixture
):
    for recipe in (RULES, COMPARED):
        actor = start(recipe)
        actor.engine.steps.examine = "abc"  # type: ignore[assignment]

        async def main(config: Any = actor.config) -> list[Result]:
            return await score(EngineClient(config, deadline=60), groups(2))

        assert {result.outcome for result in asyncio.run(main())} == {"scored"}
        assert "not counted" in caplog.text
        caplog.clear()


def test_groups_of_many_clients_are_scored_whole(start: Callable[[Any], FakeActor]):
    actor, rollouts = start(COMPARED), groups(64)

    async def main() -> list[Result]:
        clients = [EngineClient(actor.config, deadline=60) for _ in range(5)]
        chance = random.Random(3)
        results = await asyncio.gather(*(chance.choice(clients).score(each) for each in rollouts))
        # Results are acknowledged, and then the actor keeps nothing of them.
        states = actor.engine.clients
        assert len(states) == 5
        await until(lambda: not any(state.results or state.pending for state in states.values()))
        return results

    results = asyncio.run(main())
    assert [result.total for result in results] == totals(COMPARED, rollouts)
    assert {(result.group_size, result.partial, result.duplicate) for result in results} == {
        (4, False, False)
    }
    assert results[0].info["format.has_answer_tag"] is True and results[0].waited >= 0.0
    # Rollouts share calls, in both directions.
    assert actor.calls.count("submit") < len(rollouts) / 4
    assert actor.calls.count("take_results") < len(rollouts)


@pytest.mark.parametrize("recipe", [COMPARED, RULES], ids=["compared", "single"])
@pytest.mark.parametrize("lost", ["request", "reply"])
def test_lost_calls_lose_and_double_nothing(
    start: Callable[[Any], FakeActor], monkeypatch: pytest.MonkeyPatch, recipe: Any, lost: str
):
    monkeypatch.setattr(client_module, "MAX_ITEMS", 16)
    monkeypatch.setattr(actor_module, "MAX_RESULTS", 16)
    actor, rollouts = start(recipe), groups(100, reference="a " * 100)
    chance, losses = random.Random(7), 0

    def lose(method: str) -> str | None:
        nonlocal losses
        if losses >= 60 or chance.random() < 0.4:
            return None
        losses += 1
        return lost

    actor.lose = lose
    client = EngineClient(actor.config, deadline=60)
    results = asyncio.run(score(client, rollouts))
    assert losses > 10, "hardly a call was lost"
    assert [result.total for result in results] == totals(recipe, rollouts)
    assert not any(result.duplicate or result.late or result.partial for result in results)
    if actor.engine.join is not None:
        status = actor.engine.join.status
        assert (status["scored"], status["duplicates"], status["late"]) == (400, 0, 0)
    assert actor.engine.steps.current["total"].count == 400, "a result was counted twice"


def test_same_item_submitted_twice_is_scored_once():
    async def main() -> None:
        engine = SharedEngine(ActorConfig(RULES))
        await engine.connect("c")
        items = [(at, rollout) for at, rollout in enumerate(groups(2))]
        for _ in range(2):
            assert await engine.submit("c", items)
        results = await engine.take_results("c", [])
        while len(results) < len(items):
            results = await engine.take_results("c", [])
        assert sorted(number for number, _ in results) == list(range(8))
        # Until they are acknowledged they are sent again, and a third submission is still known.
        assert await engine.submit("c", items)
        assert await engine.take_results("c", []) == results
        assert engine.steps.current["total"].count == 8

    asyncio.run(asyncio.wait_for(main(), 60))


def test_restarted_actor_gets_unanswered_rollouts_again(start: Callable[[Any], FakeActor]):
    actor, rollouts = start(COMPARED), groups(16)
    early = [each for each in rollouts if each.member != "2"]
    late = [each for each in rollouts if each.member == "2"]

    async def main() -> list[Result]:
        client = EngineClient(actor.config, deadline=60)
        waiting = asyncio.ensure_future(score(client, early))
        join = actor.engine.join
        assert join is not None
        await until(lambda: join.status["waiting"] == len(early))
        first = actor.engine.incarnation
        actor.restart()
        rest = await score(client, late)
        assert actor.engine.incarnation != first
        return [*await waiting, *rest]

    results = asyncio.run(main())
    assert [result.total for result in results] == totals(COMPARED, early + late)


def test_restarted_actor_knows_no_client():
    async def main() -> None:
        engine = SharedEngine(ActorConfig(RULES))
        with pytest.raises(UnknownClientError):
            await engine.submit("c", [])
        with pytest.raises(UnknownClientError):
            await engine.take_results("c", [])

    asyncio.run(main())


def test_restart_while_idle_is_noticed_with_the_next_rollout(
    start: Callable[[Any], FakeActor], caplog: pytest.LogCaptureFixture
):
    actor, rollouts = start(RULES), groups(4)

    async def main() -> list[Result]:
        client = EngineClient(actor.config, deadline=60)
        first = await score(client, rollouts[:8])
        actor.restart()
        await until(lambda: client.shards[0].running is not None and client.shards[0].running.done())
        return [*first, *await score(client, rollouts[8:])]

    assert [result.total for result in asyncio.run(main())] == totals(RULES, rollouts)
    assert "lost" not in caplog.text, "nobody waited"


@pytest.mark.parametrize("silent", ["start", "connect", "submit", "take_results", "answer"])
def test_every_call_returns_by_its_deadline(
    start: Callable[[Any], FakeActor], monkeypatch: pytest.MonkeyPatch, silent: str
):
    actor, release = start(RULES), threading.Event()
    if silent == "start":
        monkeypatch.setattr(client_module, "get_or_start_actor", lambda *_: release.wait(60))
    elif silent == "answer":
        monkeypatch.setattr(actor.engine, "_accept", lambda *_: None)
    else:

        async def never(*_: Any) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(actor.engine, silent, never)

    async def main() -> list[Result]:
        try:
            return await score(EngineClient(actor.config, deadline=0.1), groups(3))
        finally:
            release.set()

    results = asyncio.run(main())
    assert {(result.total, result.outcome) for result in results} == {(None, "invalid")}
    assert all(result.reason and result.reason["code"] == "group.deadline" for result in results)
    assert {result.group_size for result in results} == {0}, "nothing is known of the siblings"


def test_call_that_never_returns_is_made_again(
    start: Callable[[Any], FakeActor], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_module, "CALL_S", 0.05)
    monkeypatch.setattr(actor_module, "POLL_S", 0.01)
    actor, stuck = start(RULES), ["submit", "take_results", "submit"]
    answer = actor.call

    async def call(method: str, *given: Any) -> Any:
        if method in stuck:
            stuck.remove(method)
            await asyncio.Event().wait()
        return await answer(method, *given)

    monkeypatch.setattr(actor, "call", call)
    rollouts = groups(4)
    results = asyncio.run(score(EngineClient(actor.config, deadline=60), rollouts))
    assert not stuck and [result.total for result in results] == totals(RULES, rollouts)


def test_actor_that_cannot_start_raises(start: Callable[[Any], FakeActor], monkeypatch: pytest.MonkeyPatch):
    actor = start(RULES)

    def fails(*_: Any) -> None:
        raise RuntimeError("The actor died because of an error raised in its creation task")

    monkeypatch.setattr(client_module, "get_or_start_actor", fails)
    with pytest.raises(RuntimeError, match="the shared engine cannot start"):
        asyncio.run(score(EngineClient(actor.config, deadline=60), groups(1)))


def test_cancelled_caller_is_forgotten(start: Callable[[Any], FakeActor]):
    actor = start(COMPARED)

    async def main() -> None:
        client = EngineClient(actor.config, deadline=60)
        call = asyncio.ensure_future(client.score(groups(1)[0]))
        await until(lambda: actor.engine.join is not None and actor.engine.join.status["waiting"] == 1)
        call.cancel()
        await until(lambda: not client.shards[0].waiting)

    asyncio.run(main())


def test_withdrawn_sibling_is_counted_once_though_calls_are_lost(start: Callable[[Any], FakeActor]):
    actor = start(COMPARED)
    rollouts = [each for each in groups(1) if each.member in ("0", "1")]

    async def main() -> list[Result]:
        client = EngineClient(actor.config, deadline=60)
        shard = client.shards[0]
        waiting = asyncio.ensure_future(score(client, rollouts))
        await until(lambda: actor.engine.join is not None and actor.engine.join.status["waiting"] == 2)
        replies = ["reply"]
        actor.lose = lambda method: replies.pop() if method == "submit" and replies else None
        client.withdraw("g0", None, 4)
        await until(lambda: not replies and len(shard.waiting) == 2)
        assert not waiting.done(), "one of two missing siblings was counted as both"
        client.withdraw("g0", None, 4)
        return await asyncio.wait_for(waiting, 60)

    assert [result.group_size for result in asyncio.run(main())] == [2, 2]


@pytest.mark.parametrize("recipe", [COMPARED, RULES], ids=["compared", "single"])
def test_odd_rollout_is_invalid_and_no_other(start: Callable[[Any], FakeActor], recipe: Any):
    actor = start(recipe)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    odd = {
        "text": Rollout("g", "a", 1, "\ud800"),
        "deep": Rollout("g", "c", 1, "c", extra={"x": deep}),
        "long": Rollout("g", "d", 1, "d", tokens=10**5000),
        "bytes": Rollout("g", "b", 1, b"b"),  # type: ignore[arg-type]
        "member": Rollout("g", 7, 1, "b\ud800"),  # type: ignore[arg-type]
    }
    good = {
        "numpy": Rollout(
            "g", "e", 1, "e", extra={"x": np.float32(1), "y": np.arange(3), np.int64(1): {"z": ()}}
        ),
        "surrogate": Rollout("g", "f", 1, "f", source="\ud800"),
        "infinite": Rollout("g", "g", 1, "g", extra={"x": float("nan"), "y": float("-inf")}),
        "object": Rollout("g", "h", 1, "h", extra={"x": object(), "lock": threading.Lock()}),
    }

    async def main() -> list[Result]:
        rollouts = [each._replace(group=name) for name, each in (odd | good).items()]
        return await score(EngineClient(actor.config, deadline=60), rollouts)

    # In a recipe that compares, a group of one is too small; but it was read.
    fine = "group.too_small" if recipe is COMPARED else None
    codes = [result.reason["code"] if result.reason else None for result in asyncio.run(main())]
    assert None not in codes[: len(odd)] and fine not in codes[: len(odd)]
    assert codes[len(odd) :] == [fine] * len(good)


def test_batches_are_bounded_by_items_and_bytes(
    start: Callable[[Any], FakeActor], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_module, "MAX_ITEMS", 10)
    monkeypatch.setattr(client_module, "MAX_BYTES", 5_000)
    actor, sizes = start(RULES), []
    submit = actor.engine.submit

    async def measure(client: str, items: Any) -> bool:
        sizes.append((len(items), sum(len(each.response) for _, each in items)))
        return await submit(client, items)

    actor.engine.submit = measure  # type: ignore[method-assign]
    texts = ["x" * length for length in [1] * 40 + [3_000] * 4 + [100_000]]
    rollouts = [Rollout(str(at), None, 1, text) for at, text in enumerate(texts)]
    results = asyncio.run(score(EngineClient(actor.config, deadline=60), rollouts))
    assert {result.outcome for result in results} == {"scored"}
    assert sum(count for count, _ in sizes) == len(rollouts)
    assert all(count <= 10 and (size <= 5_000 or count == 1) for count, size in sizes), sizes


def test_reply_is_bounded_and_the_rest_follows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actor_module, "MAX_RESULTS", 10)

    async def main() -> None:
        engine = SharedEngine(ActorConfig(RULES))
        await engine.connect("c")
        for number in range(35):
            engine.clients["c"].put(number, Result(1.0, "scored"))
        received: list[int] = []
        taken: list[int] = []
        while len(taken) < 35:
            results = await engine.take_results("c", received)
            assert len(results) <= 10
            received = [number for number, _ in results]
            taken += received
        assert taken == list(range(35))

    asyncio.run(asyncio.wait_for(main(), 60))


def test_client_with_much_unanswered_must_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actor_module, "MAX_PENDING", 10)
    monkeypatch.setattr(actor_module, "ROOM_CHECK_S", 0.001)
    monkeypatch.setattr(actor_module, "ROOM_WAIT_S", 0.01)

    async def main() -> None:
        engine = SharedEngine(ActorConfig(RULES))
        await engine.connect("c")
        state = engine.clients["c"]
        for number in range(10):
            state.put(number, Result(1.0, "scored"))
        more = [(99, groups(1)[0])]
        assert not await engine.submit("c", more)
        assert 99 not in state.pending and 99 not in state.results
        monkeypatch.setattr(actor_module, "ROOM_WAIT_S", 60.0)
        waiting = asyncio.ensure_future(engine.submit("c", more))
        await engine.take_results("c", [0])
        assert await waiting
        await until(lambda: 99 in state.results)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_client_submits_again_what_the_actor_had_no_room_for(start: Callable[[Any], FakeActor]):
    actor, rollouts, full = start(RULES), groups(4), [True, True]
    submit = actor.engine.submit

    async def refuse(client: str, items: Any) -> bool:
        return False if full and full.pop() else await submit(client, items)

    actor.engine.submit = refuse  # type: ignore[method-assign]
    results = asyncio.run(score(EngineClient(actor.config, deadline=60), rollouts))
    assert not full and [result.total for result in results] == totals(RULES, rollouts)


def test_sync_client_serves_threads(start: Callable[[Any], FakeActor]):
    actor, rollouts = start(COMPARED), groups(4)
    client = pickle.loads(pickle.dumps(SyncClient(actor.config, deadline=60)))
    waiting = [client.submit(each.group, each.size, each.response, member=each.member) for each in rollouts]
    assert [each.result(60).total for each in waiting] == totals(COMPARED, rollouts)
    left = client.submit("gone", 2, "a", member="0")
    client.withdraw("gone", 2, "1")
    assert left.result(60).group_size == 1
