"""One rank of two without a trainer, with its half of a batch. Run by test_ranks.py under torchrun."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import plaudit
import torch.distributed as dist
from plaudit.trl import Reward

PROMPTS = ["q0"] * 8 + ["q1"] * 4
TEXTS = [f"[[quality:{number % 4}]] w{number}" for number in (3, 0, 2, 1, 7, 6, 5, 4, 8, 10, 9, 11)]


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    half = slice(6 * rank, 6 * rank + 6)
    recipe = json.loads((folder / "recipe.json").read_text())

    def ask(function: Any, answers: list[Any]) -> Any:
        """What a call gives or raises, and how long it took."""
        began = time.monotonic()
        try:
            said = function(PROMPTS[half], TEXTS[half], None, answer=answers[half])
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        return {"said": said, "seconds": time.monotonic() - began}

    good = ["red"] * 12
    written: dict[str, Any] = {}
    joined = Reward(recipe, join="ranks", size=4, timeout=120.0)
    written["joined"] = [ask(joined, good) for _ in range(2)]
    written["columns"] = [[ask(column, good) for column in joined.as_columns()] for _ in range(1)]
    written["unread"] = ask(joined, [*good[:11], {"a set"}])
    written["no size"] = ask(Reward(recipe, join="ranks", timeout=120.0), good)
    # Only rank 0 has nothing valid, then both; then one cannot read its rows.
    written["half valid"] = ask(Reward("math", timeout=120.0), [None] * 6 + ["3"] * 6)
    written["nothing valid"] = ask(Reward("math", timeout=120.0), [None] * 12)
    written["unread alone"] = ask(Reward("math", timeout=120.0), ["3"] * 11 + [{"a set"}])
    # The folder of rank 1 is in use by rank 0.
    holder = plaudit.Engine(recipe, state=folder / "state" / "rank-1") if rank == 0 else None
    dist.barrier()
    written["folder in use"] = ask(Reward(recipe, join="ranks", size=4, state=folder / "state"), good)
    assert (holder is None) == (rank == 1)
    alone = Reward(recipe, join="ranks", size=4, timeout=2.0)
    written["together"] = ask(alone, good)
    if rank == 0:
        written["alone"] = ask(alone, good)
    (folder / f"rank-{rank}.json").write_text(json.dumps(written))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
