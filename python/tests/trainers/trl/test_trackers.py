"""A real training that reports to TensorBoard and trackio: what the reward logs is read back from their files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fixtures
import pytest
from plaudit.trl import Reward
from test_training import ANSWER, WORDS

CHOSEN = ["groups/std/mean", "components/*/values/*", "length_correlation*"]


def test_tensorboard_has_the_metrics_and_the_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    trained = fixtures.trainer(
        tmp_path,
        Reward(WORDS, statistics=CHOSEN),
        fixtures.questions(answer=ANSWER),
        max_steps=2,
        report_to=["tensorboard"],
    )
    trained.train()
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    curve = {
        tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]
    }
    ours = {tag.removeprefix("train/") for tag in curve if tag.startswith("train/words/")}
    assert {"words/overlap", "words/length", "words/invalid", "words/zero_variance"} <= ours
    assert {"words/groups/std/mean", "words/components/overlap/values/std"} <= ours
    # The mean of a component is there once, under its short name.
    assert "words/components/overlap/values/mean" not in ours
    assert not any(name.startswith("words/total/") for name in ours), "only what was asked for"
    for name in ("words/overlap", "words/groups/std/mean"):
        logged = fixtures.logged(trained, name)
        assert [step for step, _ in curve[f"train/{name}"]] == [1, 2]
        assert [value for _, value in curve[f"train/{name}"]] == pytest.approx(logged, rel=1e-5)
    spread = fixtures.logged(trained, "words/groups/std/mean")
    assert all(value > 0 for value in spread)


def test_trackio_has_the_metrics_and_the_statistics(tmp_path: Path) -> None:
    """In a process of its own: trackio reads its folder at import."""
    source = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import fixtures, torch
from pathlib import Path
from plaudit.trl import Reward
from test_training import ANSWER, WORDS
torch.set_num_threads(1)
trained = fixtures.trainer(
    Path({str(tmp_path)!r}), Reward(WORDS, statistics=True), fixtures.questions(answer=ANSWER), max_steps=2,
    report_to=["trackio"], run_name="first", project="rewards",
)
trained.train()
from trackio.sqlite_storage import SQLiteStorage
rows = [row for row in SQLiteStorage.get_logs("rewards", "first") if "train/words/overlap" in row]
spread = [row["train/words/total/quantiles/p50"] for row in rows]
assert spread == fixtures.logged(trained, "words/total/quantiles/p50"), spread
assert not any(name.startswith("train/words/components/overlap/values/mean") for row in rows for name in row)
print(len(rows))
"""
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "2"


def test_statistics_are_those_of_an_engine_here() -> None:
    with pytest.raises(ValueError, match="statistics= is for an engine in this process"):
        Reward(WORDS, statistics=True, join="ray")
    with pytest.raises(ValueError, match="a list of patterns"):
        Reward(WORDS, statistics="groups/*")
