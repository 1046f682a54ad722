"""Fixtures: the models, each server that is tested, and the command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import models
import pytest
from launch import CHOSEN, JUDGES, OFFLINE, PLAUDIT, Scored, Server, running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the models."""
    folder = tmp_path_factory.mktemp("models")
    models.make(folder)
    return folder


@pytest.fixture(scope="session", params=JUDGES)
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[Server]:
    """Each of the servers with the judge, one after the other."""
    with running(request.param, folder) as server:
        yield server


@pytest.fixture(scope="session", params=[name for name in CHOSEN if name not in JUDGES])
def reward_server(request: pytest.FixtureRequest, folder: Path) -> Iterator[Server]:
    """Each of the servers with the reward model."""
    with running(request.param, folder) as server:
        yield server


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., Scored]:
    """Scores groups, each a prompt with its responses, by `plaudit score`."""

    def run(recipe: dict[str, Any] | str, groups: list[tuple[str, list[str]]], *more: str) -> Scored:
        lines = [json.dumps({"prompt": prompt, "responses": responses}) for prompt, responses in groups]
        (tmp_path / "rollouts.jsonl").write_text("\n".join(lines))
        # JSON is YAML.
        (tmp_path / "recipe.yaml").write_text(recipe if isinstance(recipe, str) else json.dumps(recipe))
        command = [PLAUDIT, "score", "rollouts.jsonl", "--recipe", "recipe.yaml", *more]
        command += ["--out", "out.jsonl", "--summary", "summary.json"]
        # Exit code 1: some rows are invalid.
        ran = subprocess.run(
            command, cwd=tmp_path, env=os.environ | OFFLINE, capture_output=True, text=True, timeout=600
        )
        assert ran.returncode in (0, 1), ran.stderr
        rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        [judge] = json.loads((tmp_path / "summary.json").read_text())["judges"]
        return Scored(rows, judge, ran.stderr)

    return run
