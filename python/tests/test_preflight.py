"""Tests of `plaudit doctor --trainer`: the columns of a data set as an adapter reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plaudit.verl.rollout_reader import paths


def doctor(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", "doctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def written(folder: Path, **row: Any) -> str:
    path = folder / "train.jsonl"
    path.write_text(json.dumps({"prompt": "6 * 7?", **row}) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("trainer", "row", "said"),
    [
        ("trl", {"answer": "42"}, "train.jsonl: answer"),
        ("verl", {"reward_model": {"ground_truth": "42"}, "data_source": "d"}, "reward_model.ground_truth"),
    ],
)
def test_the_reference_is_found_as_the_adapter_finds_it(
    tmp_path: Path, trainer: str, row: dict[str, Any], said: str
) -> None:
    code, text = doctor("--trainer", trainer, written(tmp_path, **row), "--recipe", "math")
    assert f"FAIL  {trainer}" in text and "is not installed" in text, (
        "the trainer is in an environment of its own"
    )
    assert said in text and "has no reference" not in text, text
    assert code == 1


@pytest.mark.parametrize(
    ("trainer", "fix"),
    [("trl", 'Reward(columns={"gold": "reference"})'), ("verl", "+reward.reward_kwargs.reference=gold")],
)
def test_a_misnamed_column_is_told_with_the_fix(tmp_path: Path, trainer: str, fix: str) -> None:
    data = written(tmp_path, gold="42", data_source="d")
    code, text = doctor(f"--trainer={trainer}", data, "--recipe", "math")
    assert code == 1 and fix in text and "The rollout has no reference" in text, text


def test_modules_that_are_imported_take_no_lines_away(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text(
        "import plaudit\nprint('importing')\nplaudit.register('mine', lambda prompts, responses, references, extras: [1.0] * len(responses))\n"
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("components: { mine: { reward: mine } }\n")
    done = subprocess.run(
        [sys.executable, "-m", "plaudit", "doctor", "--trainer", "trl", written(tmp_path, gold="42")]
        + ["--recipe", str(recipe), "--import", str(module)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "warn  reference" in done.stdout and "importing" not in done.stdout, done.stdout + done.stderr


def test_wrong_arguments_and_files_are_told(tmp_path: Path) -> None:
    code, text = doctor("--trainer", "tlr")
    assert code == 2 and "trl" in text
    code, text = doctor("--trainer", "trl", str(tmp_path / "none.jsonl"))
    assert code == 1 and "cannot be read" in text
    code, text = doctor("--trainer", "trl", "--help")
    assert code == 0 and "--trainer" in text


def test_columns_that_verl_makes_itself_are_not_offered() -> None:
    row = {"uid": "u", "dummy_tensor": 0, "gold": "42", "extra_info": {"index": 3}}
    assert paths(row) == ("extra_info.index", "gold")
