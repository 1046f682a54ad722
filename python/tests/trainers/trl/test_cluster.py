"""`join="ray"`: ranks that are actors of one Ray job share one engine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import plaudit
import pytest
import ray
from conftest import Judge, pairwise
from half_batch import PROMPTS, TEXTS


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@ray.remote(num_cpus=0)
class Rank:
    """One process of a training on two."""

    def __init__(self, rank: int, port: int) -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
        self.rank = rank

    def score(self, recipe: dict[str, Any]) -> list[list[float | None]]:
        """The rewards of this rank's half, in two calls, the second by the awaited twin."""
        from plaudit.trl import Reward

        half = slice(6 * self.rank, 6 * self.rank + 6)
        reward = Reward(recipe, size=4, join="ray", timeout=300.0)
        return [
            reward(PROMPTS[half], TEXTS[half]),
            asyncio.run(reward.as_async()(PROMPTS[half], TEXTS[half])),
        ]


@pytest.fixture
def ranks() -> Iterator[list[Any]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [Rank.remote(rank, port) for rank in range(2)]
    yield both
    for each in both:
        ray.kill(each)


def test_one_engine_scores_the_cut_groups_of_all_ranks(ranks: list[Any], judge: Judge) -> None:
    recipe = pairwise(judge)
    whole = (
        plaudit.Engine(recipe)
        .score(PROMPTS, TEXTS, groups=[str(row // 4) for row in range(12)])
        .totals.tolist()
    )
    first, second = ray.get([each.score.remote(recipe) for each in ranks], timeout=400)
    for call in range(2):
        assert first[call] + second[call] == pytest.approx(whole, abs=2.0**-16)
