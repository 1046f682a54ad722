"""The guide page how-right.md as a test: its tables are those of the records, and its Python prints what stands below it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import documented
import plaudit
from conftest import BINARY

sys.path.insert(0, str(documented.ROOT / "bench"))
from public_data import page  # noqa: E402


def test_the_tables_are_those_of_the_records():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.tables(documented.ROOT / "bench/runs")) == text, (
        "run bench/public.py --page"
    )


def test_labels_of_your_own():
    documented.run("docs/guide/how-right.md", "On your own files", plaudit=plaudit)


def test_a_run_counts_what_agrees(tmp_path):
    solutions = [("So 2.\nA: 2", True), ("So 3.\nA: 3", False), ("So 4.\nA: 4", True)]
    said = {f"6b_{n}": {"solution": text, "is_correct": label} for n, (text, label) in enumerate(solutions)}
    file = tmp_path / "grade-school-math/grade_school_math/data/example_model_solutions.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"ground_truth": "It is 2.\nA: 2", **said}) + "\n")
    command = [
        sys.executable,
        documented.ROOT / "bench/public.py",
        tmp_path,
        "--only",
        "mathematics",
        "--bin",
        BINARY,
    ]
    run = subprocess.run([*command, "--failing", tmp_path / "failing"], capture_output=True, text=True)
    assert re.search(r"openai/grade-school-math +four models +3 +2 +0 +1 +0\n", run.stdout), (
        run.stdout + run.stderr
    )
    # The rows are fewer than in the record, which is told.
    assert run.returncode == 1 and "3 rows, and 5276 in the record" in run.stderr
    (kept,) = (tmp_path / "failing").glob("*.jsonl")
    assert json.loads(kept.read_text())["response"] == "So 4.\nA: 4"
