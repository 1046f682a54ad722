"""What does the package do to a process that only imports it, and to one that uses it for long?"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import plaudit
from conftest import ROOT

MIB = 1 << 20


def run(source: str) -> dict:
    """What a fresh Python prints as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LOOK = """
import json, os, sys
def look():
    links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
    return {"threads": len(os.listdir("/proc/self/task")), "sockets": sum(link.startswith("socket:") for link in links)}
"""


def test_nothing_starts_at_import():
    found = run(LOOK + "before = look(); import plaudit; print(json.dumps([before, look()]))")
    assert found[0] == found[1] and found[1]["threads"] == 1


def test_no_thread_starts_before_the_first_batch():
    found = run(LOOK + "import plaudit; plaudit.Engine('tutorial'); print(json.dumps(look()))")
    assert found == {"threads": 1, "sockets": 0}


def test_trainers_are_not_imported():
    found = run("import sys, json, plaudit; print(json.dumps(sorted(sys.modules)))")
    heavy = {"ray", "torch", "verl", "trl", "pyarrow", "pandas", "transformers"}
    assert not heavy & set(found)


def test_import_is_quick():
    """Of several imports in fresh processes the quickest, less what numpy takes by itself, in time of the processor."""
    source = (
        "import json; from time import process_time as now; begin = now(); import numpy; middle = now(); "
        "import plaudit; print(json.dumps([middle - begin, now() - middle]))"
    )
    times = [run(source) for _ in range(5)]
    own = min(took for _, took in times)
    print(
        f"import plaudit: {own * 1000:.0f} ms beside numpy's {min(took for took, _ in times) * 1000:.0f} ms"
    )
    assert own < 0.150


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_no_leak_over_200_calls():
    """All of a call's text is several times the bound, so that a leak of any column would show."""
    engine = plaudit.Engine("quickstart")
    responses = [f"<think>{at}</think><answer>{'x' * 4096}</answer>" for at in range(32)]
    prompts, extras = ["a question"] * 32, [{"k": ["v"] * 8}] * 32

    def call() -> None:
        report = engine.score(prompts, responses, responses, extras=extras)
        _ = report.totals, report.info, report.rows, report.statistics

    for _ in range(20):
        call()
    gc.collect()
    before = resident()
    grown = []
    for at in range(200):
        call()
        if at % 20 == 19:
            gc.collect()
            grown.append(resident() - before)
    print(f"grown by {max(grown) / MIB:.1f} MiB over 200 calls")
    assert statistics.median(grown[5:]) < 16 * MIB


def test_engines_are_let_go_of():
    recipe = {"components": {"format": {"reward": "reasoning_format"}}}
    plaudit.Engine(recipe).score(None, ["a"])
    gc.collect()
    before = len(os.listdir("/proc/self/task")), resident()
    for _ in range(50):
        plaudit.Engine(recipe).score(None, ["a" * 4096] * 64)
    gc.collect()
    after = len(os.listdir("/proc/self/task")), resident()
    assert after[0] <= before[0] + 4, "threads were left behind"
    assert after[1] - before[1] < 32 * MIB


def test_the_package_is_typed():
    folder = Path(plaudit.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_plaudit.pyi").exists()
    for name in plaudit.__all__:
        assert getattr(plaudit, name, None) is not None
        thing = getattr(plaudit, name)
        assert name == "__version__" or thing.__doc__, f"{name} says nothing of itself"
