"""Rollouts whose groups are scattered over a data set."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Rules alone, one of which compares the lengths within a group: a group that is torn apart gets other numbers.
RULES = {
    "name": "rules",
    "components": {
        "kimi": {"reward": "kimi.length", "weight": 1.0},
        "accuracy": {"reward": "number_accuracy", "weight": 1.0, "scope": "answer"},
        "format": {"reward": "reasoning_format", "weight": 0.2},
    },
}


def rollouts(groups: int, size: int, seed: int = 1) -> pa.Table:
    """Groups of responses that differ in length and quality, in an order that keeps no group together."""
    chance = random.Random(seed)
    rows = []
    for group in range(groups):
        for member in range(size):
            thought = " ".join(
                chance.choices(("so", "then", "seven", "times", "hence"), k=chance.randrange(1, 60))
            )
            answer = group if chance.random() < 0.5 else group + 1
            quality = chance.gauss(0.0, 1.0)
            response = f"<think>{thought}</think><answer>{answer}</answer>[[quality:{quality:.3f}]]"
            rows.append((f"g{group}.{member}", f"g{group}", f"What is {group} + 0?", response, str(group)))
    chance.shuffle(rows)
    names = ("id", "group", "prompt", "response", "reference")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def write(table: pa.Table, folder: Path, files: int) -> Path:
    """The table as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-table.num_rows // files)
    for at in range(files):
        pq.write_table(table.slice(at * step, step), folder / f"part-{at:03d}.parquet")
    return folder


def pairwise(judge: dict[str, object]) -> dict[str, object]:
    """A recipe in which a judge compares all pairs of a group."""
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    return {"name": "pairwise", "components": {"principle": principle}, "judges": {"main": judge}}
