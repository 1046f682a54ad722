"""Real GRPO training with plaudit's rewards."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import fixtures
import plaudit
import pytest
from conftest import Judge, pairwise
from plaudit.abort import NothingScored
from plaudit.trl import Reward

WORDS = {
    "name": "words",
    "components": {
        "overlap": {"reward": "f1_score", "weight": 1.0, "tokenizer_type": "simple"},
        "length": {"reward": "total_length", "weight": 0.25, "unit": "token", "max": 16, "band": 8},
    },
}
ANSWER = "red green blue"


def quality(completions: list[str], **_: Any) -> list[float]:
    """What the judge sees in a completion, in absolute terms: relative rewards have the same mean at every step."""
    marks = [re.findall(r"\[\[quality:(\d)\]\]", completion) for completion in completions]
    return [float(found[-1]) if found else 0.0 for found in marks]


def test_a_rule_reward_rises(tmp_path: Path) -> None:
    trained = fixtures.trainer(tmp_path, Reward(WORDS), fixtures.questions(answer=ANSWER))
    trained.train()
    first, last = fixtures.fifths(fixtures.logged(trained, "rewards/words/mean"))
    assert last > first + 0.3, f"from {first:.3f} to {last:.3f}"


def test_a_pairwise_reward_rises_as_an_absolute_monitor_shows(tmp_path: Path, judge: Judge) -> None:
    rewards = [Reward(pairwise(judge)), quality]
    trained = fixtures.trainer(
        tmp_path, rewards, fixtures.questions(), reward_weights=[1.0, 0.0], max_steps=24
    )
    trained.train()
    first, last = fixtures.fifths(fixtures.logged(trained, "rewards/quality/mean"))
    assert last > first + 0.6, f"from {first:.3f} to {last:.3f}"
    relative = fixtures.logged(trained, "rewards/taste/mean")
    assert max(map(abs, relative)) < 0.2, "a comparison within the group has a mean of about zero"
    assert judge.asked() > 0


@pytest.mark.parametrize("judge", [["--item-error", "0"]], indirect=True)
def test_a_rubric_reward_rises_with_its_met_items(tmp_path: Path, judge: Judge) -> None:
    criteria = [
        {"criterion": f'Says "{colour}"', "points": points, "tags": [f"colour:{colour}"]}
        for colour, points in [("red", 5), ("green", 3), ("white", -4)]
    ]
    recipe = {
        "name": "checklist",
        "components": {"rubric": {"reward": "rubric", "clip": [0, 1]}},
        "judges": {"main": {"base_url": judge.url, "model": "sim", "hedge_share": 0}},
    }
    reward = Reward(recipe, statistics=["*/items/*met_share"])
    trained = fixtures.trainer(tmp_path, reward, fixtures.questions(rubrics=criteria), max_steps=24)
    trained.train()
    first, last = fixtures.fifths(fixtures.logged(trained, "rewards/checklist/mean"))
    assert last > first + 0.3, f"from {first:.3f} to {last:.3f}"
    met = "checklist/components/rubric/judging/items/tags/colour:red/met_share"
    first, last = fixtures.fifths(fixtures.logged(trained, met))
    assert last > first + 0.2, f"red: from {first:.3f} to {last:.3f}"


def test_columns_train_as_the_whole_recipe_does(tmp_path: Path) -> None:
    reward = Reward(WORDS)
    columns = reward.as_columns()
    data = fixtures.questions(answer=ANSWER)
    apart = fixtures.trainer(tmp_path / "apart", columns, data, reward_weights=reward.weights, max_steps=6)
    apart.train()
    whole = fixtures.trainer(tmp_path / "whole", Reward(WORDS), data, max_steps=6)
    whole.train()
    assert fixtures.logged(apart, "reward") == pytest.approx(fixtures.logged(whole, "reward"), abs=1e-4)
    for step in range(6):
        overlap = fixtures.logged(apart, "rewards/overlap/mean")[step]
        assert fixtures.logged(apart, "words/overlap")[step] == pytest.approx(overlap, abs=1e-4)


def test_the_async_twin_trains_alike(tmp_path: Path) -> None:
    data = fixtures.questions(answer=ANSWER, chat=True)
    curves = []
    for name, reward in (("sync", Reward(WORDS)), ("async", Reward(WORDS).as_async())):
        trained = fixtures.trainer(tmp_path / name, reward, data, max_steps=4)
        trained.train()
        curves.append(fixtures.logged(trained, "reward"))
    assert curves[0] == curves[1]
    assert len(curves[0]) == 4


def test_metrics_and_tables_reach_the_trainer(tmp_path: Path) -> None:
    trained = fixtures.trainer(
        tmp_path, Reward(WORDS), fixtures.questions(answer=ANSWER), max_steps=2, log_completions=True
    )
    trained.train()
    for name in ("words/overlap", "words/length", "words/invalid", "words/zero_variance", "words/cut_groups"):
        assert len(fixtures.logged(trained, name)) == 2, name
    assert fixtures.logged(trained, "words/invalid") == [0.0, 0.0]
    table = trained._logs["extra"]
    assert list(table["words/outcome"]) == ["scored"] * 32
    assert list(table["words/reason"]) == [""] * 32
    assert all(0.0 <= value <= 1.0 for value in table["words/overlap"])


@pytest.mark.parametrize("judge", [("--error-rate", "1")], indirect=True)
def test_what_could_not_be_judged_moves_nothing(tmp_path: Path, judge: Judge) -> None:
    """A judge that always fails: no completion gets a number, TRL leaves all of them out, and no weight changes."""
    recipe = pairwise(judge, timeout="5s")
    trained = fixtures.trainer(tmp_path, Reward(recipe), fixtures.questions(), max_steps=1)
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    trained.train()
    table = trained._logs["extra"]
    # A completion without a word gets its floor without being judged; alone in its group, it has no advantage either.
    judged = [
        row for row in zip(table["taste/outcome"], table["taste/reason"], strict=True) if row[0] != "floored"
    ]
    assert len(judged) > 24
    assert all(outcome == "invalid" and reason.startswith("judge.") for outcome, reason in judged), judged
    assert fixtures.logged(trained, "taste/invalid") == [len(judged) / 32]
    assert set(trained._logs["advantages"]) == {0.0}
    assert all((before[name] == value).all() for name, value in trained.model.state_dict().items())


def test_an_evaluation_compares_with_the_reference(tmp_path: Path, judge: Judge) -> None:
    data = fixtures.questions(8, answer="[[quality:2]]")
    trained = fixtures.trainer(
        tmp_path,
        Reward(pairwise(judge)),
        data,
        max_steps=1,
        num_generations_eval=1,
        per_device_eval_batch_size=8,
    )
    trained.eval_dataset = data
    metrics = trained.evaluate()
    assert 0.0 <= metrics["eval_taste/win"] <= metrics["eval_taste/win_and"] <= 1.0
    assert metrics["eval_taste/invalid"] == 0.0


def test_a_training_without_rewards_is_ended_on_request(tmp_path: Path) -> None:
    down = {"main": {"base_url": "http://127.0.0.1:9/v1", "model": "none", "attempts": 1, "patience": "1ms"}}
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    recipe = {"name": "taste", "components": {"quality": principle}, "judges": down}
    trained = fixtures.trainer(tmp_path, Reward(recipe, abort_after=2), fixtures.questions(), max_steps=6)
    with pytest.raises(RuntimeError, match="no rollout could be scored for 2 steps in a row: judge"):
        trained.train()
    assert trained.state.global_step == 1
    with pytest.raises(ValueError, match='abort_after: a whole number from 1 is wanted, or never, not "0"'):
        Reward(recipe, abort_after=0)


def test_a_misnamed_column_ends_the_training_in_its_first_step(tmp_path: Path) -> None:
    data = fixtures.questions(gold=ANSWER, level="1")
    reward = Reward("math")
    trained = fixtures.trainer(tmp_path / "ended", reward, data, max_steps=3)
    with pytest.raises(
        NothingScored, match='rows have "gold", "level": Reward.columns={"gold": "reference"}'
    ) as ended:
        trained.train()
    assert "--field" not in str(ended.value), "a flag of the command"
    assert trained.state.global_step == 0
    for reward in (Reward("math", abort_after="never"), Reward("math", columns={"gold": "reference"})):
        trained = fixtures.trainer(tmp_path / "on", reward, data, max_steps=1)
        trained.train()
        assert trained.state.global_step == 1
    assert fixtures.logged(trained, "math/accuracy_missing") == [0.0]


def test_a_reward_that_always_raises_ends_the_training(tmp_path: Path) -> None:
    @plaudit.register("broken_in_training", per="batch")
    def broken(prompts: Any, responses: Any, references: Any, extras: Any) -> list[float]:
        raise KeyError("score")

    recipe = {"name": "own", "components": {"own": {"reward": "broken_in_training"}}}
    trained = fixtures.trainer(tmp_path, Reward(recipe).as_async(), fixtures.questions(), max_steps=3)
    with pytest.raises(NothingScored, match="reward.failed"):
        trained.train()


def test_columns_that_are_weighed_otherwise_are_told(tmp_path: Path) -> None:
    data = fixtures.questions(answer=ANSWER)
    reward = Reward(WORDS)
    with pytest.warns(RuntimeWarning, match="reward_weights=reward.weights"):
        fixtures.trainer(tmp_path / "alike", reward.as_columns(), data, max_steps=1).train()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        weights = reward.weights
        fixtures.trainer(
            tmp_path / "own", reward.as_columns(), data, reward_weights=weights, max_steps=1
        ).train()
