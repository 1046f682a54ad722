#!/usr/bin/env python3
"""Benchmark of the command on a large file: its speed, its memory, and its start.

    python3 bench/stream.py                # 1 GB
    python3 bench/stream.py --size-gb 10   # memory stays the same

The command must be built: `cargo build --release -p plaudit-cli`. Exit code 1 where a figure is not reached.
"""

import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from run import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMMAND = TARGET / "release" / "plaudit"

MB_PER_SECOND = 150
RESIDENT_MB = 300
START_MS = 30


def peak_of_child(command):
    """Runs a command and gives its wall seconds and its peak resident memory in MB."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT)
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        os.write(writer, json.dumps([done.returncode, seconds, peak]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    code, seconds, peak = json.loads(os.read(reader, 4096))
    if code:
        raise SystemExit(f"{command[0]} ended with {code}")
    return seconds, peak


def start_ms():
    """The median time of twenty runs of `plaudit rewards`."""
    times = []
    for _ in range(20):
        started = time.perf_counter()
        subprocess.run([COMMAND, "rewards"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - started)
    return sorted(times)[10] * 1000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size-gb", type=float, default=1.0)
    arguments.add_argument("--recipe", default="quickstart")
    options = arguments.parse_args()
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "plaudit-cli"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        file = pathlib.Path(folder) / "rollouts.jsonl"
        corpus = [sys.executable, HERE / "corpus.py", "--size-gb", str(options.size_gb), "--out", file]
        subprocess.run(corpus, check=True, stdout=subprocess.DEVNULL)
        size = file.stat().st_size
        results = pathlib.Path(folder) / "results.jsonl"
        score = [COMMAND, "score", file, "--recipe", options.recipe, "--out", results, "--quiet"]
        seconds, peak = peak_of_child(score)
    figures = {
        "size_gb": options.size_gb,
        "recipe": options.recipe,
        "seconds": round(seconds, 3),
        "mb_per_s": round(size / 1e6 / seconds, 1),
        "peak_mb": round(peak, 1),
        "start_ms": round(start_ms(), 2),
    }
    rows = [
        ("read, score and write", f"{figures['mb_per_s']:.0f} MB/s", f"at least {MB_PER_SECOND}", figures["mb_per_s"] >= MB_PER_SECOND),
        ("peak resident memory", f"{figures['peak_mb']:.0f} MB", f"at most {RESIDENT_MB}", figures["peak_mb"] <= RESIDENT_MB),
        ("start of `plaudit rewards`", f"{figures['start_ms']:.1f} ms", f"at most {START_MS}", figures["start_ms"] <= START_MS),
    ]
    for name, figure, wanted, good in rows:
        print(f"{name:28} {figure:>12}   {wanted:14} {'ok' if good else 'MISSED'}")
    runs = HERE / "runs"
    runs.mkdir(exist_ok=True)
    name = f"{datetime.date.today()}-stream-{options.size_gb:g}gb.json"
    (runs / name).write_text(json.dumps({"machine": machine(), "figures": figures}, indent=1) + "\n")
    return 0 if all(good for *_, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
