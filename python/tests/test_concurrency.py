"""Threads and event loops beside a working engine, and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import plaudit
import pytest

RECIPE = {
    "components": {
        "format": {"reward": "reasoning_format"},
        "rouge": {"reward": "rouge"},
        "kimi": {"reward": "kimi.length"},
    }
}


def pairwise(judge: dict) -> dict:
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    return {"components": {"principle": principle}, "judges": {"main": judge}}


def responses(seed: int, count: int = 64) -> list[str]:
    return [f"<think>{'so ' * (at + seed)}</think><answer>{at * seed}</answer>" for at in range(count)]


def test_eight_threads_get_what_one_gets():
    engine = plaudit.Engine(RECIPE)
    groups = [at // 4 for at in range(64)]
    references = ["so so so 7"] * 64
    wanted = [engine.score(None, responses(seed), references, groups).totals.tolist() for seed in range(8)]

    def work(seed: int) -> bool:
        same = (engine.score(None, responses(seed), references, groups).totals.tolist() for _ in range(10))
        return all(each == wanted[seed] for each in same)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))


def test_engines_are_made_and_dropped_by_eight_threads():
    def work(seed: int) -> list[float]:
        return plaudit.Engine(RECIPE).score(None, responses(seed), groups=[0] * 64).totals.tolist()

    with ThreadPoolExecutor(8) as threads:
        assert len(list(threads.map(work, range(32)))) == 32


def test_other_threads_run_while_a_judge_is_waited_for(judge_sim):
    engine = plaudit.Engine(pairwise(judge_sim("--latency", "400ms", "--jitter", "0").judge()))
    ticks, over = [], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begin = time.monotonic()
    report = engine.score(["p", "p"], ["a", "b"])
    end = time.monotonic()
    over.set()
    ticker.join()
    assert report.outcomes == ["scored", "scored"]
    meanwhile = [tick for tick in ticks if begin <= tick <= end]
    assert len(meanwhile) > 100, f"{len(meanwhile)} ticks in {end - begin:.2f} s"


def test_ascore_gives_what_score_gives():
    engine = plaudit.Engine(RECIPE)
    groups = [at // 4 for at in range(64)]

    async def main() -> list[list[float]]:
        calls = (engine.ascore(None, responses(seed), None, groups) for seed in range(16))
        return [report.totals.tolist() for report in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [
        engine.score(None, responses(seed), None, groups).totals.tolist() for seed in range(16)
    ]


def test_ascore_never_blocks_the_loop(judge_sim):
    engine = plaudit.Engine(pairwise(judge_sim("--latency", "400ms", "--jitter", "0").judge()))

    async def main() -> tuple[plaudit.Report, int]:
        task = asyncio.ensure_future(engine.ascore(["p", "p"], ["a", "b"]))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return task.result(), ticks

    report, ticks = asyncio.run(main())
    assert report.outcomes == ["scored", "scored"] and ticks > 100


def test_a_cancelled_task_lets_go_of_its_work():
    asked, gone = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        engine = plaudit.Engine(pairwise({"base_url": f"http://127.0.0.1:{port}/v1", "model": "none"}))
        task = asyncio.ensure_future(engine.ascore(["p", "p"], ["a", "b"]))
        await asyncio.wait_for(asked.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)
        server.close()

    asyncio.run(main())


def test_a_deadline_of_asyncio_is_kept(judge_sim):
    engine = plaudit.Engine(pairwise(judge_sim("--latency", "60s", "--jitter", "0").judge()))

    async def main() -> None:
        await asyncio.wait_for(engine.ascore(["p", "p"], ["a", "b"]), 0.2)

    began = time.monotonic()
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main())
    assert time.monotonic() - began < 2.0


def test_errors_of_ascore_are_raised_where_it_is_awaited():
    engine = plaudit.Engine({**RECIPE, "groups": {"same_size": True}})
    with pytest.raises(plaudit.RunError) as caught:
        asyncio.run(engine.ascore(None, ["a", "b", "c"], groups=[1, 1, 2]))
    assert caught.value.code == "group.uneven"
    with pytest.raises(TypeError, match=r"responses\[0\]"):
        asyncio.run(engine.ascore(None, [None]))


def test_one_engine_serves_one_loop_after_another():
    engine = plaudit.Engine(RECIPE)
    for _ in range(3):
        assert len(asyncio.run(engine.ascore(None, responses(1), groups=[0] * 64))) == 64


def test_tables_are_awaited_too():
    import pyarrow as pa

    engine = plaudit.Engine(RECIPE)
    table = pa.table({"response": responses(3), "group": [str(at // 4) for at in range(64)]})
    awaited = asyncio.run(engine.ascore_table(table))
    assert awaited.totals.tolist() == engine.score_table(table).totals.tolist()


def test_stop_lets_no_further_call_begin(judge_sim):
    sim = judge_sim("--latency", "200ms", "--jitter", "0")
    engine = plaudit.Engine(pairwise(sim.judge(concurrency=1)))
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(engine.score, ["p"] * 6, list("abcdef"))
        while not engine.judge_usage[0]["calls"]:
            time.sleep(0.001)
        engine.stop()
        report = future.result(timeout=30)
    assert "invalid" in report.outcomes
    assert len(sim.calls()) < 15, "all pairs were asked"
    assert plaudit.Engine(pairwise(sim.judge())).score(["p", "p"], ["a", "b"]).outcomes == [
        "scored",
        "scored",
    ]
