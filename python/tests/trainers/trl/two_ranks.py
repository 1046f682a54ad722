"""One rank of a real training on two, with the calls of its reward. Run by test_ranks.py under torchrun."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import fixtures
import torch
import torch.distributed as dist
from plaudit.trl import Reward


class Recorded:
    """A reward that writes down every call."""

    __name__ = "recorded"

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.calls: list[dict[str, Any]] = []

    def __call__(
        self, prompts: list[Any], completions: list[Any], completion_ids: Any = None, **kwargs: Any
    ) -> Any:
        got = self.reward(prompts, completions, completion_ids, **kwargs)
        self.calls.append({"prompts": prompts, "completions": completions, "rewards": got})
        return got


def main(folder: Path, task: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    reward = Recorded(Reward(task["recipe"], join=task["join"], timeout=60.0))
    trained = fixtures.trainer(
        folder / "out",
        reward,
        fixtures.questions(),
        per_device_train_batch_size=6,
        num_generations=4,
        max_steps=3,
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trained.train()
    told = [str(warning.message) for warning in said if "only a part was here" in str(warning.message)]
    cut = fixtures.logged(trained, "taste/cut_groups")
    varied = fixtures.logged(trained, "taste/varied")
    written = {"calls": reward.calls, "told": told, "cut": cut, "varied": varied}
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(written))
    # A rank that leaves while the other one's threads still wait for it makes that one abort.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[1], "task.json").read_text()))
