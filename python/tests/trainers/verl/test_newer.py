"""Tests of what only verl 0.9 has: the entry point, and the sampler's metrics."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import stage

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


def test_the_filter_of_groups_is_not_lost(model: Any) -> None:
    from plaudit.verl import PlauditSampler, PlauditSamplerAsync
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    config = stage.compose(
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
