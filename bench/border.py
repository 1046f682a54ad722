#!/usr/bin/env python3
"""Benchmark of the way from Python to the engine and back, and of other threads meanwhile. Exit code 1 above a limit.

    python3 bench/border.py

1,024 rollouts of 4 KB, scored by rules. The border is the time of `engine.score` and of its totals as a numpy array, less
the time that the engine says it worked. The other thread counts in pure Python, beside an engine that uses one core.
"""

import datetime
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venvs" / "dev" / "bin" / "python"
COUNT, SIZE = 1024, 4096
BORDER_MS, SPEED = 0.5, 0.95
RECIPE = {
    "components": {
        "format": {"reward": "reasoning_format"},
        "length": {"reward": "length_penalty"},
        "ngram": {"reward": "ngram_repetition_penalty", "n": 5},
    },
    "groups": {"parallel": 1},
}


def texts(kind):
    word = {"ascii": "reason about {} and go on; ", "chinese": "第{}步推理继续，"}[kind]
    made = []
    for at in range(COUNT):
        text, step = f"<think>{at} ", 0
        while len(text.encode()) < SIZE:
            text += word.format(at * 31 + step)
            step += 1
        made.append(text)
    return made


def border(engine, prompts, responses, rounds=60):
    """The best and the middle of some rounds, in milliseconds."""
    costs = []
    for _ in range(rounds):
        began = time.perf_counter()
        report = engine.score(prompts, responses)
        totals = report.totals
        costs.append((time.perf_counter() - began - report.seconds) * 1e3)
        assert len(totals) == COUNT
        # Letting go of a report is not part of the next call.
        del report, totals
    return {"best_ms": min(costs), "median_ms": statistics.median(costs), "first_ms": costs[0]}


def count(seconds):
    """How often a pure Python loop runs in so many seconds."""
    until, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        turns += 1
    return turns / seconds


def beside(engine, prompts, responses, seconds=2.0):
    """The speed of another thread while the engine works, as a share of its speed alone."""
    over, calls = threading.Event(), [0]

    def score():
        while not over.is_set():
            engine.score(prompts, responses)
            calls[0] += 1

    alone = count(seconds)
    worker = threading.Thread(target=score)
    worker.start()
    try:
        both = count(seconds)
    finally:
        over.set()
        worker.join()
    return {"share": both / alone, "calls_beside": calls[0]}


def measure():
    import plaudit

    engine = plaudit.Engine(RECIPE)
    figures = {}
    for kind in ("ascii", "chinese"):
        responses = texts(kind)
        prompts = [f"question {at // 8}" for at in range(COUNT)]
        engine.score(prompts, responses)
        gc.collect()
        figures[kind] = border(engine, prompts, responses)
    responses = texts("ascii")
    shares = [beside(engine, prompts, responses) for _ in range(3)]
    figures["beside"] = max(shares, key=lambda share: share["share"])
    print(json.dumps(figures))


def main():
    if "--measure" in sys.argv:
        return measure()
    done = subprocess.run([PYTHON, __file__, "--measure"], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    figures = json.loads(done.stdout)
    good = True
    for kind in ("ascii", "chinese"):
        cost = figures[kind]
        fine = cost["median_ms"] < BORDER_MS
        good &= fine
        print(f"border, {kind:8} {cost['median_ms']:8.3f} ms (best {cost['best_ms']:.3f}), limit {BORDER_MS}  {'ok' if fine else 'MISSED'}")
    share = figures["beside"]["share"]
    fine = share >= SPEED
    good &= fine
    print(f"another thread   {share:8.1%} of its speed, floor {SPEED:.0%}  {'ok' if fine else 'MISSED'}")
    figures["load"] = os.getloadavg()
    name = ROOT / "bench" / "runs" / f"{datetime.date.today()}-border.json"
    name.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
