"""Tests of `python -m plaudit.verl check`: a run is checked before a GPU is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fixtures
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def data(folder: Path, name: str, **reward_model: Any) -> str:
    row = {
        "data_source": "sums",
        "prompt": [{"role": "user", "content": "6 * 7?"}],
        "reward_model": {"style": "rule", **reward_model},
        "extra_info": {"split": "test" if name == "test" else "train", "index": 0},
    }
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    return str(path)


def check(*overrides: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit.verl", "check", *overrides],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def files(folder: Path, **reward_model: Any) -> list[str]:
    train, test = (data(folder, name, **reward_model) for name in ("train", "test"))
    return [f"data.train_files={train}", f"data.val_files={test}", "actor_rollout_ref.rollout.n=4"]


def test_a_sound_run_passes(tmp_path: Path) -> None:
    code, text = check(*fixtures.plaudit("math"), *files(tmp_path, ground_truth="42"))
    assert code == 0, text
    for said in (
        "verl 0.",
        "PlauditRewardManager",
        "train.parquet: reward_model.ground_truth",
        "8 reward workers",
    ):
        assert said in text, text
    assert "FAIL" not in text


def test_every_mistake_is_told_with_its_remedy(tmp_path: Path) -> None:
    code, text = check(*fixtures.plaudit("math"), *files(tmp_path, answer="42"))
    assert code == 1 and "The rollout has no reference" in text, text
    assert "+reward.reward_kwargs.reference=" in text and "reward_model.answer" in text
    wrong = "+reward.reward_kwargs.reference=reward_model.gold"
    code, text = check(*fixtures.plaudit("math", wrong), *files(tmp_path, ground_truth="42"))
    assert code == 1 and "FAIL  reference" in text and "reference=reward_model.ground_truth" in text, text
    code, text = check(*fixtures.plaudit("math", "+reward.reward_kwargs.group_timout=5"), *files(tmp_path))
    assert code == 1 and "did you mean `group_timeout`?" in text, text
    code, text = check(*fixtures.plaudit("maht"), *files(tmp_path))
    assert code == 1 and "maht" in text, text
    code, text = check("+reward.reward_kwargs.recipe=math", *files(tmp_path, ground_truth="42"))
    assert code == 1 and "verl will ask" in text and "PlauditRewardManager" in text, text
    code, text = check(*fixtures.plaudit("math"), "data.train_files=/nowhere.parquet", "data.val_files=null")
    assert code == 1 and "/nowhere.parquet does not exist" in text, text
    code, text = check(*fixtures.plaudit("math"), "reward.num_wokers=2")
    assert code == 2 and "num_wokers" in text, text


def test_recipes_with_rewards_of_ones_own_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "import plaudit\n"
        "@plaudit.register('mine')\n"
        "def mine(prompts, responses, references, extras):\n"
        "    return [extra['index'] / 2 for extra in extras]\n"
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("components: { mine: { reward: mine }, answer: { reward: math, required: true } }\n")
    monkeypatch.chdir(tmp_path)
    given = [*fixtures.plaudit(recipe), "+reward.reward_kwargs.imports=mine.py"]
    code, text = check(*given, *files(tmp_path, ground_truth="42"))
    assert code == 0 and "warn  mine" in text and "KeyError" in text, text
    code, text = check(*given, *files(tmp_path, answer="42"))
    assert code == 1 and "FAIL  answer" in text, text


def test_workers_and_judges_are_looked_at(tmp_path: Path) -> None:
    judge = "+reward.reward_kwargs.overrides.judges.main.base_url=http://127.0.0.1:9/v1"
    given = [
        *fixtures.plaudit("tutorial", judge),
        *files(tmp_path, ground_truth="42"),
        "reward.num_workers=1",
    ]
    code, text = check(*given)
    assert code == 1 and "Set reward.num_workers=" in text and "judge.connect" in text, text
