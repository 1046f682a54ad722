"""Does every rollout that a process hands to the shared engine get its one answer, whatever happens to the stream?

The actor's class runs here in the test's own process, and nothing of Ray: what Ray does is to find it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import plaudit
import pytest
from plaudit.ray import connection, door, frames
from plaudit.ray.actor import Answer, Rollout, SharedEngine, Terms
from plaudit.ray.connection import Connection

HERE = "127.0.0.1"
RULES = {"components": {"format": {"reward": "reasoning_format"}}, "groups": {"timeout": "60s"}}
COMPARED = {**RULES, "components": {"kimi": {"reward": "kimi.length"}, **RULES["components"]}}


class Stand:
    """Stands where Ray's handle of the actor does: tells who lives now, and where a stream to it is opened."""

    def __init__(self, recipe: Any) -> None:
        self.terms = Terms(recipe)
        self.engine = SharedEngine(self.terms)
        self.asked = 0
        self.port: int | None = None
        self.alive = self

    async def remote(self) -> door.Life:
        self.asked += 1
        life = await self.engine.open(HERE)
        return life if self.port is None else life._replace(port=self.port)

    def restart(self) -> None:
        """Ends the engine with all its streams, and begins another life."""
        old, self.engine = self.engine.door, SharedEngine(self.terms)
        assert old._server is not None
        old._server.close()
        for outbox in old.outboxes.values():
            if outbox.visit is not None:
                outbox.visit.close(ConnectionResetError("the process ended"))


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Stand]:
    """Makes a stand-in for the actor that connections of this test find."""

    def make(recipe: Any) -> Stand:
        made = Stand(recipe)
        monkeypatch.setattr(connection, "start", lambda terms, shard: made)
        monkeypatch.setattr(connection, "RETRY_S", 0.01)
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


async def score(to: Connection, rollouts: list[Rollout], patience: float = 60.0) -> list[Answer]:
    return await asyncio.wait_for(asyncio.gather(*(to.score(each) for each in rollouts)), patience)


async def until(so: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not so():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), 60)


def hanging(per: str) -> dict[str, Any]:
    """A recipe with a reward that hangs where it is told so."""

    async def hangs(prompts: Any, responses: Any, references: Any, extras: Any) -> Any:
        if "hangs" in responses:
            await asyncio.sleep(60)
        return 1.0 if per == "rollout" else [1.0] * len(responses)

    plaudit.register(f"hangs_{per}", per=per)(hangs)  # type: ignore[arg-type]
    return {"components": {"own": {"reward": f"hangs_{per}"}}, "groups": {"timeout": "1s"}}


def test_one_that_hangs_holds_up_nobody_and_gets_the_mean_of_its_siblings(stand: Callable[[Any], Stand]):
    actor = stand(hanging("rollout"))
    rollouts = [Rollout("g", str(at), 4, "hangs" if at == 1 else "fine") for at in range(4)]

    async def main() -> list[Answer]:
        to = Connection(actor.terms, deadline=60)
        calls = [asyncio.ensure_future(to.score(each)) for each in rollouts]
        done, pending = await asyncio.wait(calls, timeout=0.9)
        assert pending == {calls[1]} and len(done) == 3
        return await asyncio.wait_for(asyncio.gather(*calls), 60)

    answers = asyncio.run(main())
    assert [answer.outcome for answer in answers] == ["scored", "invalid", "scored", "scored"]
    late = answers[1]
    assert late.reason is not None and late.reason["code"] == "group.deadline"
    assert (late.siblings_mean, late.siblings_known) == (1.0, True)


def test_a_function_of_many_is_given_many(stand: Callable[[Any], Stand]):
    seen: list[int] = []

    def counts(prompts: Any, responses: Any, references: Any, extras: Any) -> list[float]:
        seen.append(len(responses))
        return [1.0] * len(responses)

    plaudit.register("counts_many")(counts)
    actor = stand({"components": {"own": {"reward": "counts_many"}}})

    async def main() -> list[Answer]:
        return await score(Connection(actor.terms, deadline=60), groups(4))

    assert {answer.total for answer in asyncio.run(main())} == {1.0}
    assert max(seen) > 1


def test_an_answer_that_cannot_be_counted_goes_out(
    stand: Callable[[Any], Stand], caplog: pytest.LogCaptureFixture
):
    for recipe in (RULES, COMPARED):
        actor = stand(recipe)
        actor.engine.steps.examine = "abc"  # type: ignore[assignment]

        async def main(to: Any = actor) -> list[Answer]:
            return await score(Connection(to.terms, deadline=60), groups(2))

        assert {answer.outcome for answer in asyncio.run(main())} == {"scored"}
        assert "not counted" in caplog.text


def test_groups_that_many_callers_hand_in_are_scored_as_if_they_were_whole(stand: Callable[[Any], Stand]):
    actor, rollouts = stand(COMPARED), groups(64)

    async def main() -> list[Answer]:
        callers = [Connection(actor.terms, deadline=60) for _ in range(5)]
        chance = random.Random(3)
        answers = await asyncio.gather(*(chance.choice(callers).score(each) for each in rollouts))
        # What has come is acknowledged before long, and then the actor keeps nothing of it.
        await until(lambda: not any(box.answers or box.known for box in actor.engine.door.outboxes.values()))
        return answers

    answers = asyncio.run(main())
    assert [answer.total for answer in answers] == totals(COMPARED, rollouts)
    assert {(answer.group_size, answer.partial, answer.duplicate) for answer in answers} == {
        (4, False, False)
    }
    assert answers[0].info["format.has_answer_tag"] is True and answers[0].waited >= 0.0


@pytest.mark.parametrize("recipe", [COMPARED, RULES], ids=["compared", "single"])
def test_a_stream_that_breaks_again_and_again_loses_nothing_and_doubles_nothing(
    stand: Callable[[Any], Stand], monkeypatch: pytest.MonkeyPatch, recipe: Any
):
    monkeypatch.setattr(frames, "FRAME_BYTES", 4096)
    actor, rollouts = stand(recipe), groups(100, reference="a " * 100)
    cuts = 0

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hands on some bytes each way, more each time, and then breaks off in the middle of whatever there is."""
        nonlocal cuts
        life = await actor.engine.open(HERE)
        there, to = await asyncio.open_connection(HERE, life.port)

        async def hand_on(come: asyncio.StreamReader, go: asyncio.StreamWriter, allowed: int) -> None:
            while allowed > 0 and (data := await come.read(min(allowed, 4096))):
                allowed -= len(data)
                go.write(data)
                await go.drain()

        ways = [
            asyncio.ensure_future(hand_on(reader, to, 20_000 * (cuts + 1))),
            asyncio.ensure_future(hand_on(there, writer, 7_000 * (cuts + 1))),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        cuts += 1
        for way in ways:
            way.cancel()
        writer.transport.abort()
        to.transport.abort()

    async def main() -> list[Answer]:
        server = await asyncio.start_server(relay, HERE, 0)
        actor.port = server.sockets[0].getsockname()[1]
        return await score(Connection(actor.terms, deadline=60), rollouts)

    answers = asyncio.run(main())
    assert cuts > 2, "the stream never broke"
    assert [answer.total for answer in answers] == totals(recipe, rollouts)
    assert not any(answer.duplicate or answer.late or answer.partial for answer in answers)
    if actor.engine.join is not None:
        status = actor.engine.join.status
        assert (status["scored"], status["duplicates"], status["late"]) == (400, 0, 0)
    assert actor.engine.steps.sums["total"].count == 400, "an answer was counted twice"


def test_what_a_dead_actor_took_along_is_handed_in_again(stand: Callable[[Any], Stand]):
    actor, rollouts = stand(COMPARED), groups(16)
    early = [each for each in rollouts if each.member != "2"]
    late = [each for each in rollouts if each.member == "2"]

    async def main() -> list[Answer]:
        to = Connection(actor.terms, deadline=60)
        waiting = asyncio.ensure_future(score(to, early))
        join = actor.engine.join
        assert join is not None
        await until(lambda: join.status["waiting"] == len(early))
        first = actor.engine.door
        actor.restart()
        rest = await score(to, late)
        assert actor.engine.door.name != first.name and actor.engine.door.token != first.token
        return [*await waiting, *rest]

    answers = asyncio.run(main())
    assert [answer.total for answer in answers] == totals(COMPARED, early + late)


@pytest.mark.parametrize("silent", ["connection", "stream"])
def test_every_call_returns_by_its_deadline_even_if_the_actor_never_answers(
    stand: Callable[[Any], Stand], monkeypatch: pytest.MonkeyPatch, silent: str
):
    monkeypatch.setattr(connection, "WATCH_S", 0.01)
    actor = stand(RULES)
    if silent == "stream":
        monkeypatch.setattr(actor.engine, "_receive", lambda *_: None)
        actor.engine.door.receive = lambda *_: None
    else:
        actor.remote = asyncio.Event().wait  # type: ignore[assignment]
    answers = asyncio.run(score(Connection(actor.terms, deadline=0.1), groups(3)))
    assert {(answer.total, answer.outcome) for answer in answers} == {(None, "invalid")}
    assert all(answer.reason and answer.reason["code"] == "group.deadline" for answer in answers)


def test_a_sibling_that_leaves_is_counted_once_though_the_stream_breaks(
    stand: Callable[[Any], Stand], monkeypatch: pytest.MonkeyPatch
):
    actor = stand(COMPARED)
    rollouts = [each for each in groups(1) if each.member in ("0", "1")]
    broken = 0
    received = connection.Stream.received

    def breaks_once(stream: connection.Stream, frame: Any) -> None:
        nonlocal broken
        broken += 1
        if broken == 1:
            stream.close(ConnectionResetError("a cable was pulled"))
        else:
            received(stream, frame)

    monkeypatch.setattr(connection.Stream, "received", breaks_once)

    async def main() -> list[Answer]:
        to = Connection(actor.terms, deadline=60)
        waiting = asyncio.ensure_future(score(to, rollouts))
        await until(lambda: actor.engine.join is not None and actor.engine.join.status["waiting"] == 2)
        to.leave("g0", None, 4)
        await until(lambda: broken == 2 and len(to.lines[0].waiting) == 2)
        assert not waiting.done(), "one of two missing siblings was counted as both"
        to.leave("g0", None, 4)
        return await asyncio.wait_for(waiting, 60)

    assert [answer.group_size for answer in asyncio.run(main())] == [2, 2]


def test_what_cannot_be_said_makes_one_rollout_invalid_and_no_other(stand: Callable[[Any], Stand]):
    actor = stand(RULES)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    odd = {
        "text": Rollout("g", "a", 1, "\ud800"),
        "object": Rollout("g", "b", 1, "b", extra={"x": object()}),
        "deep": Rollout("g", "c", 1, "c", extra={"x": deep}),
        "long": Rollout("g", "d", 1, "d", tokens=10**5000),
    }
    good = {
        "numpy": Rollout(
            "g", "e", 1, "e", extra={"x": np.float32(1), "y": np.arange(3), np.int64(1): {"z": ()}}
        ),
        "surrogate": Rollout("g", "f", 1, "f", source="\ud800"),
        "infinite": Rollout("g", "g", 1, "g", extra={"x": float("nan"), "y": float("-inf")}),
    }

    async def main() -> list[Answer]:
        return await score(Connection(actor.terms, deadline=60), [*odd.values(), *good.values()])

    outcomes = [answer.outcome for answer in asyncio.run(main())]
    assert outcomes == ["invalid"] * len(odd) + ["scored"] * len(good)


def with_life(work: Callable[[door.Door, door.Life], Awaitable[None]]) -> list[Any]:
    """Does something with an open door, and returns what came in at it."""
    come: list[Any] = []

    async def main() -> None:
        opened = door.Door(lambda _, items: come.extend(items))
        await work(opened, await opened.open(HERE))

    asyncio.run(asyncio.wait_for(main(), 60))
    return come


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_who_does_not_say_the_token_is_sent_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(door, "STRANGER_S", 0.05)
    rest = framed(b'["c",0]') + framed(b"[0,[1,2]]")

    async def work(opened: door.Door, life: door.Life) -> None:
        assert len(life.token) == 32 and life.address == HERE
        for said in (bytes(32) + rest, life.token[:31] + b"?" + rest, life.token[:31], b"", rest * 100):
            reader, writer = await asyncio.open_connection(HERE, life.port)
            writer.write(said)
            assert await closed(reader), said
            writer.close()
        assert not opened.strangers and not opened.outboxes

    assert with_life(work) == []


def test_the_token_and_frames_may_come_in_pieces():
    async def work(opened: door.Door, life: door.Life) -> None:
        _, writer = await asyncio.open_connection(HERE, life.port)
        for byte in life.token + framed(b'["c",0]') + framed(b"[0,[1,2],[7]]"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await until(lambda: bool(opened.outboxes) and opened.outboxes["c"].known == {1, 7})

    assert with_life(work) == [[1, 2], [7]]


@pytest.mark.parametrize(
    "bad", [(1 << 31).to_bytes(4, "big"), framed(b"pickle"), framed(b"7"), framed(b"[0,5]"), framed(b"\xff")]
)
def test_what_is_no_frame_ends_the_stream_and_nothing_else(bad: bytes):
    async def work(opened: door.Door, life: door.Life) -> None:
        for _ in range(2):
            reader, writer = await asyncio.open_connection(HERE, life.port)
            writer.write(life.token + framed(b'["c",0]') + bad)
            assert await closed(reader)
            writer.close()

    assert with_life(work) == []


def test_who_does_not_read_is_not_written_to_and_gets_everything_later():
    count, size = 4_000, 10_000

    async def work(opened: door.Door, life: door.Life) -> None:
        reader, writer = await asyncio.open_connection(HERE, life.port, limit=1 << 16)
        writer.write(life.token + framed(b'["c",0]'))
        await until(lambda: "c" in opened.outboxes)
        outbox = opened.outboxes["c"]
        most = 0
        for ticket in range(count):
            outbox.put(ticket, ["x" * size])
            if ticket % 50 == 0:
                outbox.flush()
                await asyncio.sleep(0)
                assert outbox.visit is not None and outbox.visit.transport is not None
                most = max(most, outbox.visit.transport.get_write_buffer_size())
        assert most < 2 * frames.HELD_BYTES, f"{most} bytes were kept for one who does not read"
        outbox.flush()
        found: list[int] = []
        while len(found) < count:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            found += [ticket for ticket, _ in json.loads(frame)]
        assert found == list(range(count))

    with_life(work)


def test_a_caller_is_not_read_from_while_much_of_it_is_unanswered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(door, "BUSY", 10)

    async def work(opened: door.Door, life: door.Life) -> None:
        opened.receive = lambda outbox, items: setattr(outbox, "scoring", outbox.scoring + len(items))
        _, writer = await asyncio.open_connection(HERE, life.port)
        writer.write(
            life.token + framed(b'["c",0]') + framed(json.dumps([0, *([at] for at in range(11))]).encode())
        )
        await until(lambda: "c" in opened.outboxes and opened.outboxes["c"].scoring == 11)
        outbox = opened.outboxes["c"]
        assert outbox.visit is not None and outbox.visit.transport is not None
        assert not outbox.visit.transport.is_reading()
        writer.write(framed(b"[0,[99]]"))
        outbox.scoring = 1
        outbox.put(0)
        await until(lambda: 99 in outbox.known)
        assert outbox.visit.transport.is_reading()

    with_life(work)
