"""Fixtures of all tests: a simulated judge with a log of its requests, and a Redis server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# A shell starts `make test &` with Ctrl-C ignored, and so would every test and every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The last lines of `make test` name what was left out."""
    if report.skipped and not hasattr(report, "wasxfail") and "PLAUDIT_LEFT_OUT" in os.environ:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        with open(os.environ["PLAUDIT_LEFT_OUT"], "a") as file:
            file.write(f"{report.nodeid}: {why}\n")


BINARY = os.environ.get("PLAUDIT_BIN", str(ROOT / "target/release/plaudit"))


class Sim:
    """A running `plaudit judge-sim`."""

    def __init__(self, ledger: Path, *flags: str) -> None:
        self._ledger = ledger
        command = [BINARY, "judge-sim", "--port", "0", "--ledger", str(ledger), *flags]
        if "--latency" not in flags:
            command += ["--latency", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), f"{command} did not start"

    def calls(self) -> list[dict[str, Any]]:
        """The requests that have been settled so far: n, key, status, latency_ms, in_flight."""
        whole = self._ledger.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def judge(self, **settings: Any) -> dict[str, Any]:
        """How a recipe names it; nothing is sent twice, so that calls can be counted."""
        return {"base_url": self.url, "model": "sim", "hedge_share": 0.0, **settings}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def judge_sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sim]]:
    """Starts simulated judges, which end with the test."""
    started: list[Sim] = []

    def start(*flags: str) -> Sim:
        started.append(Sim(tmp_path_factory.mktemp("judge") / "ledger.jsonl", *flags))
        return started[-1]

    yield start
    for sim in started:
        sim.end()


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Starts Redis servers with these settings, which end with the test, and gives their addresses."""
    started: list[subprocess.Popen[bytes]] = []
    if shutil.which("redis-server") is None:
        assert os.environ.get("PLAUDIT_TEST_ALL") != "1", (
            "redis-server is not installed: .ci/setup installs it"
        )
        pytest.skip("redis-server is not installed")

    def start(*flags: str) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        folder = str(tmp_path_factory.mktemp("redis"))
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, *flags]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        started.append(server)
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return f"redis://127.0.0.1:{port}/0"
            except OSError:
                assert time.monotonic() < end and server.poll() is None, "redis-server did not start"
                time.sleep(0.01)

    yield start
    for server in started:
        server.kill()
        server.wait()


@pytest.fixture
def redis(redis_server: Callable[..., str]) -> str:
    """The address of a Redis that keeps nothing."""
    return redis_server("--appendonly", "no")
