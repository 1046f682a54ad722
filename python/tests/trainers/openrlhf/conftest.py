"""Fixtures of the OpenRLHF tests: a simulated judge, and recipes on disk, where OpenRLHF's processes read them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fixtures
import pytest


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a simulated judge that prefers the higher `[[quality:N]]`."""
    command = [fixtures.PLAUDIT, "judge-sim", "--port", "0", "--latency", "0", *getattr(request, "param", ())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(10)


def pairwise(url: str) -> dict[str, Any]:
    return {
        "name": "taste",
        "components": {"quality": {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}},
        "judges": {"main": {"base_url": url, "model": "sim", "hedge_share": 0}},
        "groups": {"timeout": "30s"},
    }


def written(folder: Path, recipe: dict[str, Any]) -> str:
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(recipe))
    return str(path)
