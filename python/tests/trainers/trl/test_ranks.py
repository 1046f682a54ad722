"""`join="ranks"`: groups that the border between two ranks of a real trainer cuts.

Two ranks take six completions each, of groups of four: rank 0 holds four and two, rank 1 two and four.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import half_batch
import plaudit
import pytest
from conftest import Judge, pairwise

HERE = Path(__file__).parent


def on_two_ranks(script: str, folder: Path) -> list[dict[str, Any]]:
    """Runs a script as both ranks, and gives what each of them wrote."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(HERE / script), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


def taste(judge: Judge) -> dict[str, Any]:
    """Completions compared, and a rule that is only measured."""
    recipe = pairwise(judge)
    recipe["components"]["varied"] = {"reward": "ngram_repetition_penalty", "n": 1, "weight": 0}
    return recipe


def train(folder: Path, judge: Judge, join: str | None) -> list[dict[str, Any]]:
    """Trains on two ranks, and gives what each of them saw."""
    (folder / "task.json").write_text(json.dumps({"recipe": taste(judge), "join": join}))
    return on_two_ranks("two_ranks.py", folder)


def uncut(
    ranks: list[dict[str, Any]], step: int, recipe: dict[str, Any]
) -> tuple[list[float], plaudit.Report]:
    """What both ranks got in a step, and what the engine says of the same batch in one piece."""
    prompts, texts, got = (
        [value for rank in ranks for value in rank["calls"][step][name]]
        for name in ("prompts", "completions", "rewards")
    )
    assert all(prompts[row] == prompts[row // 4 * 4] for row in range(12)), "the batch is in groups of four"
    report = plaudit.Engine(recipe).score(prompts, texts, groups=[str(row // 4) for row in range(12)])
    return got, report


def test_joined_ranks_score_like_the_uncut_batch(tmp_path: Path, judge: Judge) -> None:
    ranks = train(tmp_path, judge, "ranks")
    calls = 0
    for step in range(3):
        got, report = uncut(ranks, step, taste(judge))
        assert got == pytest.approx(report.totals.tolist(), abs=2.0**-16)
        assert len(set(got)) > 3
        # The mean over all ranks, although one of them scores two groups and the other one.
        assert ranks[0]["varied"][step] == pytest.approx(report.components["varied"].mean(), abs=1e-4)
        calls += 3 * 6
    assert [rank["told"] for rank in ranks] == [[], []]
    assert ranks[0]["cut"] == [0.0] * 3
    # The check above asks each question once, and so did the training: none is paid twice.
    assert judge.asked() <= 2 * calls


def test_without_a_join_the_local_part_is_scored_and_said(tmp_path: Path, judge: Judge) -> None:
    ranks = train(tmp_path, judge, None)
    differences = 0
    for step in range(3):
        got, report = uncut(ranks, step, taste(judge))
        whole = report.totals.tolist()
        assert got[:4] == pytest.approx(whole[:4], abs=2.0**-16), "a group that no border cuts is whole"
        differences += got[4:8] != pytest.approx(whole[4:8], abs=2.0**-16)
    assert differences == 3
    assert all(len(rank["told"]) == 1 and "join='ranks'" in rank["told"][0] for rank in ranks)
    assert ranks[0]["cut"] == [0.5] * 3


def test_ranks_without_a_trainer(tmp_path: Path, judge: Judge) -> None:
    """Columns, failures of one rank, and a rank that never comes: nobody waits without end, and all hear of it."""
    recipe = pairwise(judge)
    recipe["components"]["format"] = {"reward": "reasoning_format", "weight": 0}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    ranks = on_two_ranks("half_batch.py", tmp_path)
    groups = [str(row // 4) for row in range(12)]
    whole = plaudit.Engine(recipe).score(half_batch.PROMPTS, half_batch.TEXTS, groups=groups).totals.tolist()

    for call in range(2):
        got = [value for rank in ranks for value in rank["joined"][call]["said"]]
        assert got == pytest.approx(whole, abs=2.0**-16)
    quality, shape = ([value for rank in ranks for value in rank["columns"][0][at]["said"]] for at in (0, 1))
    assert quality == pytest.approx(whole, abs=2.0**-16)
    assert shape == [0.0] * 12

    for rank, said in (
        (0, "RuntimeError: rank 1 could not score its part of the batch: ArgumentError: the column `answer`"),
        (1, "ArgumentError: the column `answer`"),
    ):
        assert ranks[rank]["unread"]["said"].startswith(said)
        assert ranks[rank]["unread"]["seconds"] < 60.0
        assert "give size=" in ranks[rank]["no size"]["said"]
    half, other = (ranks[rank]["half valid"]["said"] for rank in (0, 1))
    assert half == [None] * 6 and None not in other, "one rank is no batch"
    for rank in ranks:
        assert rank["nothing valid"]["said"].startswith("NothingScored:"), "all ranks end"
    assert ranks[0]["unread alone"]["said"].startswith("RuntimeError: rank 1 could not score its part")
    assert ranks[0]["unread alone"]["seconds"] < 60.0
    assert "journal.in_use" in ranks[1]["folder in use"]["said"]
    assert ranks[0]["folder in use"]["said"].startswith(
        "RuntimeError: rank 1 could not score its part of the batch: RunError"
    )
    assert [value for rank in ranks for value in rank["together"]["said"]] == pytest.approx(
        whole, abs=2.0**-16
    )
    assert "did not meet within 2 s" in ranks[0]["alone"]["said"]
    assert ranks[0]["alone"]["seconds"] < 30.0
