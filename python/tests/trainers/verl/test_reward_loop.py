"""Tests of verl's reward loop: groups whose rollouts are scattered over several reward workers."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import fixtures
import numpy as np
import plaudit
import pytest

RECIPE = {
    "name": "pairs",
    "components": {
        "quality": {
            "reward": "principle",
            "mode": "pairwise",
            "principles": ["helpfulness"],
            "aggregate": "winrate",
        },
        "format": {"reward": "reasoning_format", "weight": 0.05},
        "ngram": {"reward": "ngram_repetition_penalty", "weight": 0.5, "n": 2},
        "total_length": {"reward": "total_length", "weight": 0.2, "max": 12, "band": 8, "unit": "token"},
        "thought_length": {"reward": "thought_length", "weight": 0},
    },
    "judges": {"words": {"kind": "overlap"}},
    "groups": {"timeout": "60s"},
}
# The group's time where siblings come, however slow the machine; and where one is missing and it must pass.
TIMEOUT_S = 300
HASTY_S = 12
REFERENCE = "the answer is forty two"
RESPONSES = [
    "<think> the cat </think> <answer> the answer is forty two </answer>",
    "the answer is red",
    "no no no no no no",
    "dog",
]
TUTORIAL = {
    "reward_principle",
    "reward_format",
    "reward_ngram",
    "thought_lengths",
    "scores_thought_length",
    "scores_total_lengths",
}


def written(recipe: dict[str, Any], folder: Any) -> str:
    import json

    path = folder / "recipe.yaml"
    path.write_text(json.dumps(recipe))
    return str(path)


@pytest.fixture(scope="module")
def loop(loops: Any, words: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return started_loop(loops, words, tmp_path_factory.mktemp("recipe"), TIMEOUT_S)


@pytest.fixture(scope="module")
def hasty(loops: Any, words: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """It takes the place of `loop`, so the tests that use it come last."""
    return started_loop(loops, words, tmp_path_factory.mktemp("recipe"), HASTY_S)


def started_loop(loops: Any, words: Any, folder: Any, timeout: float) -> Any:
    recipe = written(RECIPE, folder)
    started = loops(
        *fixtures.plaudit(
            recipe,
            f"+reward.reward_kwargs.group_timeout={timeout}",
            "+reward.reward_kwargs.aliases=True",
        ),
        "reward.num_workers=3",
        "actor_rollout_ref.rollout.n=4",
    )
    # Workers take their time to start, and a group's time runs from its first member.
    warm = fixtures.rollout(words, "yes", split="test", reference=REFERENCE)
    started.answers([worker.compute_score.remote(warm) for worker in started.manager.reward_loop_workers])
    return started


def groups(words: Any, count: int, **kwargs: Any) -> list[Any]:
    rollouts = []
    for group in range(count):
        order = list(range(4))
        random.Random(group).shuffle(order)
        uid = f"{kwargs.get('step', 1)}-{group}-{time.monotonic_ns()}"
        rollouts += [
            fixtures.rollout(
                words, RESPONSES[place], uid=uid, session=at, reference=REFERENCE, padding=group % 3, **kwargs
            )
            for at, place in enumerate(order)
        ]
    return rollouts


def expected(words: Any, rollouts: list[Any], validate: bool = False) -> np.ndarray:
    """What the engine says of the same rollouts when it gets them at once."""
    texts = []
    for data in rollouts:
        ids = data.batch["responses"][0]
        width = len(ids)
        texts.append(
            words.decode(ids[: int(data.batch["attention_mask"][0][-width:].sum())], skip_special_tokens=True)
        )
    tokens = [len(text.split()) for text in texts]
    uids = [data.non_tensor_batch["uid"][0] for data in rollouts]
    prompts = [list(data.non_tensor_batch["raw_prompt"][0]) for data in rollouts]
    report = plaudit.Engine(RECIPE).score(
        prompts, texts, [REFERENCE] * len(texts), uids, tokens, validate=validate
    )
    return report.totals


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_and_routing_gives_the_scores_of_whole_groups(loop: Any, words: Any, seed: int) -> None:
    rollouts = groups(words, 6)
    answers = loop.score(rollouts, seed)
    assert np.array([answer["reward_score"] for answer in answers]) == pytest.approx(
        expected(words, rollouts), abs=1e-9
    )
    assert {answer["reward_extra_info"]["plaudit/group_size"] for answer in answers} == {4.0}


def test_columns_are_constant_plain_finite_floats(loop: Any, words: Any) -> None:
    rollouts = groups(words, 2)
    rollouts += [fixtures.rollout(words, text, split="test", reference=REFERENCE) for text in RESPONSES]
    answers = loop.score(rollouts)
    columns = [list(answer["reward_extra_info"]) for answer in answers]
    assert all(names == columns[0] for names in columns)
    assert TUTORIAL | {"acc", "score", "plaudit/quality", "plaudit/invalid", "plaudit/win"} <= set(columns[0])
    taken = {"reward", "uid", "data_source", "reward_model", "extra_info", "index", "ability", "raw_prompt"}
    assert not taken & set(columns[0])
    for answer in answers:
        assert set(answer) == {"reward_score", "reward_extra_info"}
        for value in (answer["reward_score"], *answer["reward_extra_info"].values()):
            assert type(value) is float and math.isfinite(value)


def test_validation_is_scored_at_once_against_the_reference(loop: Any, words: Any) -> None:
    from verl.trainer.ppo.metric_utils import process_validation_metrics

    texts = [f"<think> x </think> <answer> {REFERENCE} </answer>", REFERENCE, "dog", "the cat"]
    rollouts = [
        fixtures.rollout(words, text, split="test", reference=REFERENCE, source="val") for text in texts
    ]
    began = time.monotonic()
    answers = loop.score(rollouts)
    assert time.monotonic() - began < TIMEOUT_S - 1, "validation waited for siblings"
    infos = [answer["reward_extra_info"] for answer in answers]
    assert [info["plaudit/compared"] for info in infos] == [1.0] * 4
    assert [info["plaudit/win_and"] for info in infos][1:] == [1.0, 0.0, 0.0]
    assert [info["acc"] for info in infos] == [info["plaudit/win"] for info in infos]
    assert infos[2]["plaudit/comparison_score"] < infos[1]["plaudit/comparison_score"]
    columns = {name: [info[name] for info in infos] for name in infos[0]}
    columns["reward"] = [answer["reward_score"] for answer in answers]
    uids = [data.non_tensor_batch["uid"][0] for data in rollouts]
    digested = process_validation_metrics(["val"] * 4, uids, columns)
    assert digested["val"]["plaudit/win_and"]["mean@1"] == 0.25
    assert "mean@1" in digested["val"]["acc"]


def test_the_batch_path_places_scores_at_the_last_valid_token(loop: Any, words: Any) -> None:
    from verl import DataProto

    rollouts = groups(words, 3)  # As many as three workers can share: verl 0.7 does not fill up.
    width = max(data.batch["responses"].shape[1] for data in rollouts)
    padded = []
    for data in rollouts:
        texts = words.decode(data.batch["responses"][0], skip_special_tokens=True)
        length = len(texts.split())
        fields = {name: column[0] for name, column in data.non_tensor_batch.items()}
        padded.append(
            fixtures.rollout(
                words,
                texts,
                uid=fields["uid"],
                session=fields["session_id"],
                reference=REFERENCE,
                padding=width - length,
            )
        )
    batch = DataProto.concat(padded)
    scored = loop.manager.compute_rm_score(batch)
    scores = scored.batch["rm_scores"]
    assert (
        tuple(scores.shape) == tuple(batch.batch["responses"].shape) and str(scores.dtype) == "torch.float32"
    )
    assert scores.sum(dim=1).tolist() == pytest.approx(expected(words, padded), abs=1e-6)
    lengths = batch.batch["attention_mask"][:, -width:].sum(dim=1)
    for row, length in zip(scores, lengths, strict=True):
        assert row.nonzero().flatten().tolist() in ([], [int(length) - 1])
    assert "plaudit/quality" in scored.non_tensor_batch


def test_a_killed_engine_is_started_anew_and_nobody_is_lost(loop: Any, words: Any, cluster: Any) -> None:
    name = next(each["name"] for each in named(cluster) if each["name"].startswith("plaudit-"))
    actor = cluster.get_actor(name)
    before = cluster.get(actor.status.remote(), timeout=60)["incarnation"]
    rollouts = groups(words, 4)
    held = [data for place, data in enumerate(rollouts) if place % 4 == 3]
    early = [data for place, data in enumerate(rollouts) if place % 4 != 3]
    calls = loop.send(early)
    waits_for(lambda: cluster.get(actor.status.remote(), timeout=60)["join"]["waiting"] == len(early))
    cluster.kill(actor, no_restart=False)
    answers = loop.answers(calls + loop.send(held))
    assert {answer["reward_extra_info"]["plaudit/invalid"] for answer in answers} == {0.0}
    assert {answer["reward_extra_info"]["plaudit/group_size"] for answer in answers} == {4.0}
    assert [answer["reward_score"] for answer in answers] == pytest.approx(
        expected(words, early + held), abs=1e-9
    )
    after = cluster.get(cluster.get_actor(name).status.remote(), timeout=60)["incarnation"]
    assert after != before


def test_steps_are_summed_up_and_fed_back(loop: Any, words: Any, cluster: Any) -> None:
    name = next(each["name"] for each in named(cluster) if each["name"].startswith("plaudit-"))
    actor = cluster.get_actor(name)
    rollouts = groups(words, 3, step=101)
    loop.score(rollouts)
    loop.score(groups(words, 1, step=102))
    closed = cluster.get(actor.status.remote(), timeout=60)["steps"][101]
    totals = expected(words, rollouts)
    assert closed["total"]["count"] == 12
    assert closed["total"]["mean"] == pytest.approx(totals.mean())
    assert closed["total"]["std"] == pytest.approx(totals.std())
    assert {"quality", "format", "ngram"} <= set(closed)


def test_a_missing_sibling_costs_the_groups_time_and_no_more(hasty: Any, words: Any) -> None:
    rollouts = groups(words, 1)[:3]
    began = time.monotonic()
    answers = hasty.score(rollouts)
    assert HASTY_S - 0.5 < time.monotonic() - began < HASTY_S + 30
    for answer in answers:
        info = answer["reward_extra_info"]
        assert (info["plaudit/partial"], info["plaudit/group_size"], info["plaudit/invalid"]) == (
            1.0,
            3.0,
            0.0,
        )
        assert info["plaudit/waited_s"] >= HASTY_S - 1
    assert [answer["reward_score"] for answer in answers] == pytest.approx(
        expected(words, rollouts), abs=1e-9
    )


def test_a_late_sibling_is_scored_with_the_group_that_went_ahead(hasty: Any, words: Any) -> None:
    rollouts = groups(words, 1)
    hasty.score(rollouts[:3])
    began = time.monotonic()
    (late,) = hasty.score(rollouts[3:])
    assert time.monotonic() - began < HASTY_S - 1
    assert late["reward_score"] == pytest.approx(expected(words, rollouts)[3], abs=1e-9)


def named(ray: Any) -> list[dict[str, str]]:
    from ray.util import list_named_actors

    return [{"name": name} for name in list_named_actors()]


def waits_for(condition: Any, patience: float = 60.0) -> None:
    """Asks again until it is so."""
    due = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < due, "it did not come about"
