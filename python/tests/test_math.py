"""The verifier of math answers from Python: the same verdicts in threads, forks and event loops."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plaudit

RECIPE = {"components": {"math": {"reward": "math"}}}
VECTORS = Path(__file__).parents[2] / "golden" / "math_verify.jsonl"


def columns() -> dict[str, list[str]]:
    rows = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    return {
        "responses": [row["response"] for row in rows],
        "references": [row["reference"] for row in rows],
    }


def verdicts(report: plaudit.Report) -> list[bool | None]:
    return list(report.correct)


def in_a_process(sender) -> None:
    # Another process, and so another secret.
    sender.send(verdicts(plaudit.Engine(RECIPE).score(**columns())))
    sender.close()


def test_verdicts_are_the_same_wherever_they_are_made():
    engine = plaudit.Engine(RECIPE)
    first = verdicts(engine.score(**columns()))
    assert len(first) > 1000 and first.count(True) > 300 and first.count(False) > 300
    with ThreadPoolExecutor(4) as threads:
        for report in threads.map(lambda _: engine.score(**columns()), range(4)):
            assert verdicts(report) == first

    async def together() -> list[plaudit.Report]:
        return await asyncio.gather(*(engine.ascore(**columns()) for _ in range(3)))

    for report in asyncio.run(together()):
        assert verdicts(report) == first
    for method in ("spawn", "fork") if hasattr(os, "fork") else ("spawn",):
        context = multiprocessing.get_context(method)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=in_a_process, args=(sender,))
        process.start()
        assert receiver.poll(120), method
        assert receiver.recv() == first, method
        process.join(60)
        assert process.exitcode == 0
