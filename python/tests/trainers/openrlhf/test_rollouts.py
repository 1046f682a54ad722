"""OpenRLHF's own rollout actors and sample generator with plaudit's rewards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fixtures
import plaudit
import pytest
import ray
from conftest import pairwise, written

RULES = {
    "name": "rules",
    "components": {
        "overlap": {"reward": "f1_score", "tokenizer_type": "simple"},
        "length": {"reward": "total_length", "weight": 0.5, "unit": "token", "max": 16, "band": 8},
    },
}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def whole(recipe: dict[str, Any], experiences: list[Any], samples: int) -> list[float]:
    """What the engine gives to the same groups in one piece; OpenRLHF keeps the samples of a prompt together."""
    groups = [str(row // samples) for row in range(len(experiences))]
    prompts = [each.prompts[0] for each in experiences]
    labels = [each.labels[0] for each in experiences]
    tokens = [int(each.action_mask.sum()) for each in experiences]
    report = plaudit.Engine(recipe).score(prompts, fixtures.texts(experiences), labels, groups, tokens)
    return report.totals.tolist()


def rewards(experiences: list[Any]) -> list[float]:
    assert all(each.rewards is not None and each.rewards.shape == (1,) for each in experiences)
    return [each.rewards.item() for each in experiences]


def test_a_rule_recipe_scores_single_samples(tmp_path: Path) -> None:
    recipe = {**RULES, "components": {"overlap": RULES["components"]["overlap"]}}
    engines = fixtures.actors(2, {"PLAUDIT_RECIPE": written(tmp_path, recipe)})
    got = fixtures.generate(engines, ["q1 q2", "q3 q4"], ["red green", "blue"], 3)
    assert rewards(got) == pytest.approx(whole(recipe, got, 3))
    assert [each.info["plaudit/overlap"].item() for each in got] == pytest.approx(rewards(got))
    assert [each.info["plaudit/invalid"].item() for each in got] == [0.0] * 6
    assert [each.scores.item() for each in got] == pytest.approx(rewards(got))


def test_groups_are_compared_through_reward_func(tmp_path: Path, judge: str) -> None:
    """24 groups of four at once, two of them with the same prompt, wait in more threads than asyncio has by default."""
    engines = fixtures.actors(
        2, {"PLAUDIT_RECIPE": written(tmp_path, pairwise(judge)), "PLAUDIT_GROUP_SIZE": "4"}
    )
    prompts = [f"q{number} q0" for number in range(22)] + ["q63", "q63"]
    got = fixtures.generate(engines, prompts, [""] * 24, 4)
    assert rewards(got) == pytest.approx(whole(pairwise(judge), got, 4), abs=1e-5)
    assert {each.info["plaudit/group_size"].item() for each in got} == {4.0}
    assert {each.info["plaudit/partial"].item() for each in got} == {0.0}, "none was closed by its deadline"


def test_the_agent_compares_groups_of_any_size(tmp_path: Path, judge: str) -> None:
    recipe = pairwise(judge)
    recipe["components"]["length"] = RULES["components"]["length"]
    engines = fixtures.actors(2, {"PLAUDIT_RECIPE": written(tmp_path, recipe)}, agent=True)
    for samples in (4, 3):
        got = fixtures.generate(engines, ["q1", "q2", "q2", "q3"], [""] * 4, samples)
        assert rewards(got) == pytest.approx(whole(recipe, got, samples), abs=1e-5)
        assert {each.info["plaudit/group_size"].item() for each in got} == {float(samples)}
        assert {each.info["plaudit/length"].item() for each in got} == {-0.625}, (
            "13 tokens, the end among them"
        )


def test_experiences_can_be_split_and_batched_again(tmp_path: Path) -> None:
    """OpenRLHF demands the same keys of every sample."""
    from openrlhf.trainer.ppo_utils.experience import make_experience_batch, split_experience_batch

    engines = fixtures.actors(1, {"PLAUDIT_RECIPE": written(tmp_path, RULES)}, agent=True)
    got = fixtures.generate(engines, ["q1", "q2"], ["red", ""], 2)
    batch = make_experience_batch([item for each in got for item in split_experience_batch(each)])
    assert batch.rewards.shape == (4,)
    missing = [float(value) for value in batch.info["plaudit/overlap_missing"]]
    assert missing == [float(each.labels[0] == "") for each in got]


def test_one_engine_serves_all_actors_through_ray(tmp_path: Path, judge: str) -> None:
    environment = {
        "PLAUDIT_RECIPE": written(tmp_path, pairwise(judge)),
        "PLAUDIT_JOIN": "ray",
        "PLAUDIT_TIMEOUT": "300",
    }
    for agent in (True, False):
        size = {} if agent else {"PLAUDIT_GROUP_SIZE": "4"}
        engines = fixtures.actors(2, {**environment, **size}, agent=agent)
        got = fixtures.generate(engines, ["q1", "q2", "q2", "q3"], [""] * 4, 4)
        assert rewards(got) == pytest.approx(whole(pairwise(judge), got, 4), abs=1e-5)
