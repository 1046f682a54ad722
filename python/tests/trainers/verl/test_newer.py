"""Tests of what only verl 0.9 has: the entry point, and the sampler's metrics."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest

if importlib.util.find_spec("verl.trainer.ppo.v1") is None:
    pytest.skip("this verl has no V1 trainer", allow_module_level=True)


def test_the_entry_point_registers_the_manager(tmp_path: pathlib.Path) -> None:
    import plaudit

    metadata = tmp_path / "plaudit_entry-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plaudit-entry\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[verl.plugins]\nplaudit = plaudit.verl.plugin\n")
    code = (
        "import verl; from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls as get;"
        "print(get('plaudit').__name__)"
    )
    home = str(pathlib.Path(plaudit.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((home, str(tmp_path)))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["PlauditRewardManager"], done.stderr


def test_metrics_are_of_the_rollouts_that_have_a_value() -> None:
    from plaudit.verl.sampler import summary

    row = {
        "acc": 1.0,
        "plaudit/invalid": 0.0,
        "plaudit/compared": 0.0,
        "plaudit/win": 0.0,
        "plaudit/waited_s": 1.0,
    }
    rows = [
        row,
        {**row, "acc": 0.0, "plaudit/compared": 1.0, "plaudit/win": 1.0, "plaudit/waited_s": 3.0},
        {**row, "acc": 0.0, "plaudit/invalid": 1.0},
    ]
    metrics = summary(rows)
    assert metrics["plaudit/acc/mean"] == 0.5 and metrics["plaudit/acc/std"] == 0.5
    assert metrics["plaudit/win/mean"] == 1.0
    assert metrics["plaudit/invalid/mean"] == pytest.approx(1 / 3)
    assert metrics["plaudit/waited_s/max"] == 3.0
    assert summary([]) == {}


def test_groups_are_told_by_the_prompt_of_their_rollouts() -> None:
    from plaudit.verl.sampler import group_summary

    rows = {
        "a_0_0": {"score": 1.0, "plaudit/invalid": 0.0},
        "a_1_0": {"score": 3.0, "plaudit/invalid": 0.0},
        "b_0_0": {"score": 2.0, "plaudit/invalid": 0.0},
        "b_1_0": {"score": 2.0, "plaudit/invalid": 0.0},
        "b_2_0": {"score": -9.0, "plaudit/invalid": 1.0},
        "c_0_0": {"score": 5.0, "plaudit/invalid": 0.0},
    }
    assert group_summary(rows) == {"plaudit/groups/std/mean": 0.5, "plaudit/groups/zero_variance_share": 0.5}
    assert group_summary({}) == {}


def test_a_run_of_wandb_gets_a_table_of_groups(tmp_path: Any, monkeypatch: Any) -> None:
    """As verl has it: its own metrics of a step come after the sampler's table, with the same step."""
    import wandb
    from plaudit.verl.sampler import write_group_table
    from verl.utils.tracking import Tracking

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    row = {"acc": 1.0, "score": 1.0, "plaudit/invalid": 0.0, "plaudit/format": 0.25, "plaudit/win": 0.0}
    rows = {
        "a_0_0": row,
        "a_1_0": {**row, "score": 3.0, "plaudit/format": 0.75},
        "b_0_0": {**row, "plaudit/invalid": 1.0},
    }
    write_group_table(rows, 1)
    assert not list(tmp_path.iterdir()), "without a run there is nowhere to write to"
    tracking = Tracking("project", "experiment", default_backend=["wandb"], config=None)
    for step in (1, 2):
        write_group_table(rows, step)
        tracking.log({"actor/loss": 0.5}, step=step)
    assert wandb.run is not None and wandb.run.step == 2
    wandb.finish()
    tables = sorted(tmp_path.glob("wandb/offline-run-*/files/media/table/**/*.table.json"))
    assert len(tables) == 2
    table = json.loads(tables[0].read_text())
    assert table["columns"] == ["group", "size", "mean", "std", "min", "max", "invalid", "components/format"]
    assert table["data"] == [["a", 2, 2.0, 1.0, 1.0, 3.0, 0, 0.5], ["b", 1, None, None, None, None, 1, None]]


def test_the_filter_of_groups_is_not_lost(model: Any) -> None:
    from plaudit.verl import PlauditSampler, PlauditSamplerAsync
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    config = fixtures.compose(
        model,
        "algorithm.filter_groups.enable=True",
        "algorithm.filter_groups.metric=acc",
        "data.train_batch_size=16",
        "trainer.v1.sampler.custom_sampler.path=pkg://plaudit.verl",
        "trainer.v1.sampler.custom_sampler.name=PlauditSampler",
    )
    trainer: Any = SimpleNamespace(config=config, trainer_mode="sync")
    for name in ("_resolve_filter_groups_metric", "_add_prompts_to_generate"):
        setattr(trainer, name, getattr(PPOTrainer, name).__get__(trainer))
    sampler = PPOTrainer._build_replay_buffer(trainer)
    assert type(sampler) is PlauditSampler
    assert (sampler.filter_groups_metric, sampler.train_batch_size, sampler.gen_batch_size) == ("acc", 16, 1)
    trainer.trainer_mode = "colocate_async"
    config.trainer.v1.sampler.custom_sampler.name = "PlauditSamplerAsync"
    assert type(PPOTrainer._build_replay_buffer(trainer)) is PlauditSamplerAsync
