"""Fixtures of the TRL tests: one thread, no network, and a simulated judge."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[4]
PLAUDIT = os.environ.get("PLAUDIT_BIN", str(ROOT / "target" / "release" / "plaudit"))

os.environ["HF_HUB_OFFLINE"] = "1"
torch.set_num_threads(1)


class Judge:
    """A running `plaudit judge-sim`, and what it has been asked."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.ledger = folder / "ledger.jsonl"
        self.process = subprocess.Popen(
            [PLAUDIT, "judge-sim", "--port", "0", "--latency", "0", "--ledger", str(self.ledger), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http"), "judge-sim says its address first"

    def asked(self) -> int:
        """How many requests came; the judge has to end first, for its ledger to be whole."""
        self.stop()
        return len([json.loads(line) for line in self.ledger.read_text().splitlines()])

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)


@pytest.fixture
def judge(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Judge]:
    """A judge that prefers the higher `[[quality:N]]`; `indirect` parameters are further options of it."""
    running = Judge(tmp_path, *getattr(request, "param", ()))
    yield running
    running.stop()


def pairwise(judge: Judge, **groups: object) -> dict[str, object]:
    """A recipe with one component that compares the completions of a group."""
    return {
        "name": "taste",
        "components": {"quality": {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}},
        "judges": {"main": {"base_url": judge.url, "model": "sim", "hedge_share": 0}},
        "groups": {"timeout": "60s", **groups},
    }
