"""Fixtures of the Ray Data tests: a local Ray."""

from __future__ import annotations

import os
import sys
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
