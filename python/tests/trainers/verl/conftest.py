"""Fixtures of the verl tests: one local Ray, a tokenizer, and verl's own reward loop with several workers."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import fixtures
import pytest

# Ray gives a machine half a minute to start its processes, and lets its workers stand back behind all others; where others
# work as well, that is not enough.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
os.environ.setdefault("RAY_worker_register_timeout_seconds", "300")
os.environ.setdefault("RAY_worker_niceness", "0")
# An answer that has not come by then never comes.
PATIENCE_S = 300


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    import plaudit
    import ray

    home = str(pathlib.Path(plaudit.__file__).parents[1])
    here = str(pathlib.Path(__file__).parent)
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join((home, here))}},
    )
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return fixtures.tokenizer(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def words(model: pathlib.Path) -> Any:
    from verl.utils import hf_tokenizer

    return hf_tokenizer(str(model))


class Loop:
    """verl's reward loop with its workers, which are asked as the agent loop asks them."""

    def __init__(self, ray: Any, config: Any) -> None:
        from verl.experimental.reward_loop import RewardLoopManager

        self.ray = ray
        self.manager = RewardLoopManager(config)

    def send(self, rollouts: list[Any], seed: int = 0) -> list[Any]:
        """One call a rollout to a worker chosen by chance, in the order given; returns what Ray will answer with."""
        chance = random.Random(seed)
        return [
            chance.choice(self.manager.reward_loop_workers).compute_score.remote(data) for data in rollouts
        ]

    def answers(self, calls: list[Any]) -> list[dict[str, Any]]:
        return self.ray.get(calls, timeout=PATIENCE_S)

    def score(self, rollouts: list[Any], seed: int = 0) -> list[dict[str, Any]]:
        """All rollouts in shuffled order; answers in the order given."""
        order = list(range(len(rollouts)))
        random.Random(seed).shuffle(order)
        calls = self.send([rollouts[place] for place in order], seed)
        answers: list[Any] = [None] * len(rollouts)
        for place, answer in zip(order, self.answers(calls), strict=True):
            answers[place] = answer
        return answers

    def end(self) -> None:
        """Ends the workers and the engine that they share, so that a later loop has one of its own."""
        from ray.util import list_named_actors

        for worker in self.manager.reward_loop_workers:
            self.ray.kill(worker)
        for name in list_named_actors():
            if name.startswith("plaudit-"):
                with contextlib.suppress(ValueError):  # It has ended by itself.
                    self.ray.kill(self.ray.get_actor(name))


@pytest.fixture(scope="module")
def loops(cluster: Any, model: pathlib.Path) -> Iterator[Callable[..., Loop]]:
    """Starts reward loops of these config changes; one at a time, since verl gives its workers fixed names."""
    running: list[Loop] = []

    def start(*changes: str) -> Loop:
        while running:
            running.pop().end()
        running.append(Loop(cluster, fixtures.compose(model, *changes)))
        return running[0]

    yield start
    while running:
        running.pop().end()
