"""One rank of a training on two, whose rewards come from the service. Run by test_trl.py under torchrun."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trl"))

import fixtures  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from plaudit.trl import Reward  # noqa: E402
from two_ranks import Recorded  # noqa: E402


def main(folder: Path, task: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    reward = Recorded(Reward("taste", url=task["url"], timeout=60.0))
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
    written = {"calls": reward.calls, "told": told, "cut": fixtures.logged(trained, "taste/cut_groups")}
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(written))
    # A rank that leaves while the other one's threads still wait for it makes that one abort.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[1], "task.json").read_text()))
