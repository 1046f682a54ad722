"""Fixtures of the service's clients: a running `plaudit serve`, and a simulated judge behind it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
PLAUDIT = os.environ.get("PLAUDIT_BIN", str(ROOT / "target" / "debug" / "plaudit"))

RULES: dict[str, Any] = {
    "name": "rules",
    "components": {
        "right": {"reward": "accuracy", "weight": 1.0, "required": True},
        "shape": {"reward": "reasoning_format", "weight": 0},
    },
}


def taste(url: str, **groups: Any) -> dict[str, Any]:
    """A recipe with one component that compares the samples of a group."""
    return {
        "name": "taste",
        "components": {"quality": {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}},
        "judges": {"main": {"base_url": url, "model": "sim", "hedge_share": 0.0}},
        "groups": {"timeout": "60s", **groups},
    }


def new_token(file: Path) -> str:
    """Makes a token that allows nothing but to have rollouts scored."""
    command = [PLAUDIT, "token", "create", "trainer", "--scope", "score", "--file", str(file)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    return made.stdout.strip().split()[-1]


class Running:
    """A process that says its address in its first line."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [PLAUDIT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline().strip()
        assert "http" in line, f"{command}: {line!r} {self.process.stderr.read()}"
        self.url = line[line.index("http") :].split()[0].rstrip("/")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Processes:
    """Starts processes, which end with the test at the latest."""

    def __init__(self) -> None:
        self._started: list[Running] = []

    def __call__(self, *command: str) -> Running:
        self._started.append(Running(*command))
        return self._started[-1]

    def stop(self) -> None:
        for process in reversed(self._started):
            process.stop()


@pytest.fixture
def running() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.stop()


@pytest.fixture
def judge(running: Processes) -> Running:
    """A judge that prefers the higher `[[quality:N]]`."""
    return running("judge-sim", "--port", "0", "--latency", "0")


@pytest.fixture
def serve(running: Processes, tmp_path: Path) -> Callable[..., str]:
    """Starts a service with these recipes, and gives its address."""

    def start(*recipes: dict[str, Any], flags: tuple[str, ...] = ()) -> str:
        folder = tmp_path / "service"
        folder.mkdir()
        for recipe in recipes:
            (folder / f"{recipe['name']}.yaml").write_text(json.dumps(recipe))
        config = folder / "serve.yaml"
        config.write_text(json.dumps({"recipes": [f"{recipe['name']}.yaml" for recipe in recipes]}))
        command = (
            "serve",
            "--bind",
            "127.0.0.1:0",
            "--config",
            str(config),
            "--state",
            str(folder / "state"),
        )
        return running(*command, *flags).url

    return start
