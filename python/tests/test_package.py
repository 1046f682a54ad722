"""The package as a whole: imports, memory, threads, public names and their documentation."""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import plaudit
import pytest
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
    heavy = {"ray", "torch", "verl", "trl", "pyarrow", "pandas", "transformers", "wandb", "mlflow", "trackio"}
    assert not heavy & set(found)


def test_import_is_quick():
    """It takes less time of the processor than numpy, which it imports: the quickest of several fresh processes."""
    source = (
        "import json; from time import process_time as now; begin = now(); import numpy; middle = now(); "
        "import plaudit; print(json.dumps([middle - begin, now() - middle]))"
    )
    times = [run(source) for _ in range(5)]
    numpy, own = (min(column) for column in zip(*times, strict=True))
    print(f"import plaudit: {own * 1000:.0f} ms beside numpy's {numpy * 1000:.0f} ms")
    assert own < numpy


def test_third_party_licences_are_up_to_date():
    check = [sys.executable, ROOT / "python/third_party.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


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


GUIDE = (ROOT / "docs/guide/python.md").read_text().partition("## All names")[2]
CLASSES = [thing for name in plaudit.__all__ if inspect.isclass(thing := getattr(plaudit, name))]


def guide_members() -> dict[str, set[str]]:
    """The attributes and methods of each class in the table of the guide."""
    found: dict[str, set[str]] = {}
    for line in GUIDE.splitlines():
        if line.startswith("| `"):
            names, *members = line.strip("|").split("|")
            for name in re.findall(r"`(\w+)`", names):
                found[name] = set(re.findall(r"`(\w+)`", " ".join(members)))
    return found


def public_members(kind: type) -> set[str]:
    """The public names of a class: its own, its annotations, and what its constructor sets."""
    own = {name for base in kind.__mro__[:-1] if base.__module__.startswith("plaudit") for name in vars(base)}
    own |= set(getattr(kind, "__annotations__", {}))
    made: dict[type, object] = {
        plaudit.Join: plaudit.Engine("quickstart").join(),
        plaudit.SingleReward: plaudit.reward("accuracy"),
    }
    own |= set(vars(made[kind])) if kind in made else set()
    own |= {plaudit.RecipeError: {"errors"}, plaudit.RunError: {"code"}}.get(kind, set())
    return {name for name in own if not name.startswith("_")}


def test_public_names_are_those_of_the_guide():
    functions = re.findall(r"`(\w+)`", GUIDE.rpartition("Functions:")[2])
    members = guide_members()
    assert {*functions, *members} == set(plaudit.__all__)
    for kind in CLASSES:
        assert members[kind.__name__] == public_members(kind), kind.__name__


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_public_methods_have_arguments_errors_and_an_example(kind: type):
    assert inspect.getdoc(kind), f"{kind.__name__} has no docstring"
    for name in public_members(kind):
        thing = inspect.getattr_static(kind, name, None)
        if isinstance(thing, (property, functools.cached_property)):
            assert inspect.getdoc(thing), f"{kind.__name__}.{name} has no docstring"
        elif callable(thing) or isinstance(thing, classmethod):
            check_docstring(f"{kind.__name__}.{name}", getattr(kind, name))


def test_public_functions_have_arguments_errors_and_an_example():
    for name in plaudit.__all__:
        if inspect.isfunction(thing := getattr(plaudit, name)):
            check_docstring(name, thing)


def check_docstring(name: str, function: object) -> None:
    text = inspect.getdoc(function) or ""
    parameters = [each for each in inspect.signature(function).parameters if each != "self"]  # type: ignore[arg-type]
    assert "Example:" in text, f"{name} has no example"
    assert not parameters or "Args:" in text, f"{name} does not describe its arguments"
    for parameter in parameters:
        assert re.search(rf"^    (\w+, )*{parameter}\b.*:", text, re.M), (
            f"{name} does not describe {parameter}"
        )
    returns = inspect.signature(function).return_annotation  # type: ignore[arg-type]
    assert returns in ("None", None) or "Returns:" in text, f"{name} does not say what it returns"
