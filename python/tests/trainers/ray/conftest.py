"""Where do these tests run? On a Ray of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a local Ray."""
    # Workers that give way to everything else on the machine would never come to a test's end on a busy one.
    os.environ["RAY_worker_niceness"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, logging_level="warning", object_store_memory=1 << 30)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The address of a Redis that ends with the test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "redis-server",
        "--port",
        str(port),
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(tmp_path),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert time.monotonic() < end and server.poll() is None, "redis-server did not start"
            time.sleep(0.01)
    yield f"redis://127.0.0.1:{port}/0"
    server.kill()
    server.wait()
