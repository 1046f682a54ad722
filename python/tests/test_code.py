"""Programs from Python: the same results in threads, forks and event loops, and nothing left of a killed process."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plaudit
import pytest

RECIPE = {"components": {"tests": {"reward": "code", "timeout": 2}}}
TESTS = {"inputs": ["1 2", "3 4"], "outputs": ["3", "7"]}
PROGRAMS = ["print(sum(map(int, input().split())))", "print(3)", "import os; os._exit(0)", "1 / 0"]


def columns() -> dict[str, list]:
    return {
        "responses": [f"```python\n{program}\n```" for program in PROGRAMS],
        "extras": [{"inputs_outputs": TESTS}] * len(PROGRAMS),
    }


def totals(report: plaudit.Report) -> list[float]:
    return [float(total) for total in report.totals]


EXPECTED = [1.0, 0.5, 0.0, 0.0]


def test_large_integers_are_compared_exactly():
    big = 10**20 + 1
    tests = [
        {"fn_name": "f", "inputs": [[big]], "outputs": [big + 2]},
        {"fn_name": "f", "inputs": [[10**5000 + 1]], "outputs": [[10**5000 + 3]]},
        {"fn_name": "f", "inputs": [[float("inf")]], "outputs": [float("inf")]},
    ]
    programs = ["x + 2 if x == float('inf') or x & 1 else 0", "x + 1 if x < float('inf') else 0"]
    engine = plaudit.Engine(RECIPE)
    responses = [f"```python\ndef f(x): return {program}\n```" for _ in tests for program in programs]
    extras = [{"inputs_outputs": each} for each in tests for _ in programs]
    assert totals(engine.score(None, responses=responses, extras=extras)) == [1.0, 0.0] * 3


def in_a_process(sender, engine) -> None:
    sender.send(totals(engine.score(None, **columns())))
    sender.close()


def test_results_are_the_same_wherever_they_are_made():
    engine = plaudit.Engine(RECIPE)
    report = engine.score(None, **columns())
    assert totals(report) == EXPECTED
    assert report.rows[1]["components"]["tests"]["info"]["verdicts"] == ["passed", "wrong"]
    with ThreadPoolExecutor(4) as threads:
        for report in threads.map(lambda _: engine.score(None, **columns()), range(4)):
            assert totals(report) == EXPECTED

    async def together() -> list[plaudit.Report]:
        return await asyncio.gather(*(engine.ascore(None, **columns()) for _ in range(3)))

    for report in asyncio.run(together()):
        assert totals(report) == EXPECTED
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=in_a_process, args=(sender, engine))
        process.start()
        assert receiver.poll(120), method
        assert receiver.recv() == EXPECTED, method
        process.join(60)
        assert process.exitcode == 0


def test_the_operators_flag_is_kept_where_an_engine_goes():
    engine = pickle.loads(pickle.dumps(plaudit.Engine(RECIPE, unsafe_no_sandbox=True)))
    assert engine._unsafe_no_sandbox is True
    # Where there is a sandbox, it is used.
    info = engine.score(None, **columns()).rows[0]["components"]["tests"]["info"]
    assert info["sandbox"] in ("namespaces", "landlock")


def test_a_missing_language_is_an_error_of_the_run():
    run = ["/no/such/interpreter", "main.x"]
    tests = {"reward": "code", "language": "x", "languages": {"x": {"file": "main.x", "run": run}}}
    with pytest.raises(plaudit.RunError, match="sandbox.no_language"):
        plaudit.Engine({"components": {"tests": tests}})


def endless(started) -> None:
    engine = plaudit.Engine({"components": {"tests": {"reward": "code", "timeout": 60}}})
    started.set()
    tests = {"inputs": ["1"] * 8, "outputs": ["1"] * 8}
    responses = [f"```python\nwhile True: pass  # {at}\n```" for at in range(8)]
    engine.score(None, responses, extras=[{"inputs_outputs": tests}] * 8)


def children(parent: int) -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        state, owner = text.rsplit(")", 1)[1].split()[:2]
        if int(owner) == parent and state != "Z":
            found.add(int(stat.parent.name))
    return found


def test_a_killed_process_leaves_no_program_running():
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=endless, args=(started,))
    process.start()
    assert started.wait(120) and process.pid
    deadline = time.monotonic() + 60
    while len(boxes := children(process.pid)) < 2:
        assert time.monotonic() < deadline, boxes
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    deadline = time.monotonic() + 2
    while left := {pid for pid in boxes if Path(f"/proc/{pid}").exists()}:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
