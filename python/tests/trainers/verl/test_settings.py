"""Tests of the verl settings, configuration checks, rollout reader, columns and step statistics."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any

import fixtures
import numpy as np
import pytest
from omegaconf import OmegaConf
from plaudit.ray.actor import Rollout, SiblingTotals
from plaudit.ray.steps import SAMPLED, StepStatistics
from plaudit.result import Result
from plaudit.verl import config_checks
from plaudit.verl.columns import Columns
from plaudit.verl.options import Options
from plaudit.verl.rollout_reader import RolloutReader, extra, last_row
from plaudit.verl.scorer import InvalidRollout, RolloutScorer, print_sample


def options(**said: Any) -> Options:
    return Options.read(OmegaConf.create({"reward": {"reward_kwargs": {"recipe": "math", **said}}}))


def check(model: Any, *changes: str, compares: bool = True, waits_in_ray: bool = True, **said: Any) -> None:
    config = fixtures.compose(model, *changes)
    size = int(config.actor_rollout_ref.rollout.n)
    config_checks.check(config, options(**said), compares=compares, size=size, waits_in_ray=waits_in_ray)


def test_an_unknown_setting_names_the_near_one() -> None:
    with pytest.raises(
        ValueError, match="`group_timeouts` is not a setting of plaudit; did you mean `group_timeout`"
    ):
        options(group_timeouts=3)


def test_groups_that_are_too_large_are_refused(model: Any, tmp_path: Any) -> None:
    recipe = tmp_path / "dgr.yaml"
    compared = "{ reward: principle, principles: [helpfulness], aggregate: dgr }"
    recipe.write_text(f"components: {{ q: {compared} }}\njudges: {{ j: {{ kind: overlap }} }}\n")
    config = fixtures.compose(model, *fixtures.plaudit(recipe), "actor_rollout_ref.rollout.n=17")
    with pytest.raises(ValueError, match="groups of 17 are too large .* dgr takes at most 16"):
        RolloutScorer(config, None, waits_in_ray=False)


def test_the_recipe_must_be_named() -> None:
    with pytest.raises(ValueError, match=r"\+reward.reward_kwargs.recipe=NAME_OR_PATH"):
        Options.read(OmegaConf.create({"reward": {}}))


@pytest.mark.parametrize(
    "said",
    [
        {"invalid": "zero"},
        {"group_timeout": 0},
        {"quiet": "5s"},
        {"shards": 0},
        {"validation": {"fields": 1}},
        {"validation": "test"},
        {"invalid": "value:nan"},
        {"num_examine": "abc"},
        {"num_examine": -1},
        {"state": 3},
        {"overrides": "judges.main.model"},
        {"reference": {"a": 1}},
        {"reference": []},
        {"imports": {"a": 1}},
        {"size": 0},
    ],
)
def test_values_without_sense_are_refused(said: dict[str, Any]) -> None:
    ((name, value),) = said.items()
    with pytest.raises(ValueError, match=f"reward_kwargs.{name} is ") as told:
        options(**said)
    assert str(told.value).endswith(f"not {value!r}")


def test_one_module_may_be_named_without_a_list() -> None:
    assert options(imports="json").actor_config().imports == ("json",)
    assert options(imports=["json", "math"]).actor_config().imports == ("json", "math")


def test_overrides_may_be_a_tree() -> None:
    config = options(overrides={"judges": {"main": {"model": "m", "base_url": "u"}}}).actor_config()
    assert config.overrides == {"judges.main.model": "m", "judges.main.base_url": "u"}


def test_a_hosted_judge_is_found_at_the_router() -> None:
    config = options(router="main").actor_config("10.0.0.1:8000", "judge-model")
    assert config.overrides == {
        "judges.main.base_url": "http://10.0.0.1:8000/v1",
        "judges.main.model": "judge-model",
    }


def test_too_few_workers_for_the_waiting_calls_are_refused(model: Any) -> None:
    batch = ("data.train_batch_size=1024", "actor_rollout_ref.rollout.n=16", "reward.num_workers=8")
    with pytest.raises(ValueError, match="Set reward.num_workers=19"):
        check(model, *batch)
    check(model, *batch, waits_in_ray=False)
    check(model, *batch, compares=False)
    check(model, *batch[:2], "reward.num_workers=19")


def test_too_few_workers_at_worst_is_a_warning(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    batch = ("data.train_batch_size=1024", "actor_rollout_ref.rollout.n=8")
    with caplog.at_level("WARNING", logger="plaudit"):
        check(model, *batch, "reward.num_workers=8")
    assert "at worst 7168 rollouts may wait" in caplog.text and "Set reward.num_workers=9" in caplog.text
    with pytest.raises(ValueError, match="Set reward.num_workers=9"):
        check(model, *batch, "reward.num_workers=4")
    caplog.clear()
    check(model, *batch, "reward.num_workers=9")
    assert "may wait" not in caplog.text


def test_groups_of_one_cannot_be_compared(model: Any) -> None:
    with pytest.raises(ValueError, match=r"actor_rollout_ref.rollout.n to 2 or more"):
        check(model, "actor_rollout_ref.rollout.n=1")
    check(model, "actor_rollout_ref.rollout.n=1", compares=False)


def test_a_reward_model_that_bypasses_the_manager_is_refused(model: Any) -> None:
    group = ("actor_rollout_ref.rollout.n=4", "reward.reward_model.enable=True")
    with pytest.raises(ValueError, match="never the reward manager"):
        check(model, *group)
    judge = (*group, "reward.custom_reward_function.path=pkg://plaudit.verl")
    with pytest.raises(ValueError, match="without their group"):
        check(model, *judge)
    check(model, *judge, "reward.reward_model.enable_resource_pool=True")


def test_ignored_keys_are_a_warning(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "plaudit"):
        check(
            model,
            "actor_rollout_ref.rollout.n=4",
            "reward_model.reward_manager=dapo",
            "custom_reward_function.path=/x.py",
        )
    assert (
        "verl ignores reward_model.reward_manager=dapo; what it reads is reward.reward_manager.name"
        in caplog.text
    )
    assert "reward.custom_reward_function.path" in caplog.text


def test_dropping_needs_a_trainer_that_survives_it(model: Any) -> None:
    old = "trainer.use_v1" not in str(fixtures.compose(model)) and not config_checks.runs_v1(
        fixtures.compose(model)
    )
    if not old:
        check(model, "actor_rollout_ref.rollout.n=4", invalid="drop")
    changes = () if old else ("trainer.use_v1=False",)
    with pytest.raises(ValueError, match="invalid=drop needs verl's V1 trainer"):
        check(model, "actor_rollout_ref.rollout.n=4", *changes, invalid="drop")


def scorer(**said: Any) -> RolloutScorer:
    """A scorer without a client, which turns results into rewards."""
    made = RolloutScorer.__new__(RolloutScorer)
    made.options = options(**said)
    made.invalid = made.options.invalid_value()
    made.logged = {}
    return made


def test_an_invalid_rollout_is_worth_what_was_chosen() -> None:
    failed = replace(Result.invalid("judge.timeout", "late"), siblings_mean=0.4)
    assert scorer().reward_of(failed, False) == (0.4, True)
    assert scorer().reward_of(replace(failed, siblings_mean=None), False) == (0.0, True)
    assert scorer().reward_of(failed, True) == (0.0, True)
    assert scorer(invalid="value:-999").reward_of(failed, False) == (-999.0, True)
    assert scorer(invalid=-1).reward_of(failed, False) == (-1.0, True)
    with pytest.raises(InvalidRollout, match="judge.timeout: late"):
        scorer(invalid="drop").reward_of(failed, False)
    for odd in (math.nan, math.inf):
        assert scorer().reward_of(replace(failed, total=odd, siblings_mean=odd), False) == (0.0, True)


def test_failure_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    made = scorer()
    failed = Result.invalid("judge.timeout", "late")
    with caplog.at_level(logging.ERROR, "plaudit"):
        for _ in range(5):
            made.reward_of(replace(failed, group_size=4), False)
        assert len(caplog.records) == 1 and "no rollout of a group is valid" in caplog.text
        caplog.clear()
        assert made.reward_of(failed, False) == (0.0, True)
    assert "nothing is known of its siblings" in caplog.text and "no rollout" not in caplog.text


def test_missing_validation_reference_names_its_places(words: Any) -> None:
    made = scorer(reference=["extra_info.gold", "extra_info.y"])
    made.reader = RolloutReader(words, made.options, 1)
    small = Result.invalid("group.too_small", "The group is too small.")
    row = made.reader.read({"uid": "u", "extra_info": {"split": "test"}}, [], [])
    named = made.name_missing_reference(small, row)
    assert named.reason is not None and named.reason["code"] == "input.missing_reference"
    assert "extra_info.gold or extra_info.y" in named.reason["message"]
    there = made.reader.read({"uid": "u", "extra_info": {"split": "test", "gold": "yes"}}, [], [])
    assert made.name_missing_reference(small, there) is small
    late = Result.invalid("judge.timeout", "late")
    assert made.name_missing_reference(late, row) is late


def test_accuracy_is_the_win_or_the_right_answer_or_the_total() -> None:
    scored = Result(0.7, "scored", components={"right": 1.0, "style": 0.2}, correct=True)
    partly = replace(scored, components={"right": 0.5, "style": 0.2}, correct=False)
    shaped = replace(scored, components={"style": 0.2}, correct=None)
    rewards = {"format": "reasoning_format", "ngram": "ngram_repetition_penalty"}
    assert {"reward_format", "reward_ngram"} <= set(Columns(rewards, aliases=True).names)
    assert not {"reward_format", "reward_ngram"} & set(Columns(rewards).names)
    columns_of = Columns({"right": "number_accuracy", "style": "rouge"})
    assert columns_of.fill(scored, 0.7, False)["acc"] == 1.0
    assert columns_of.fill(partly, 0.7, False)["acc"] == 0.0
    # A component that the recipe names by `right_from` tells as well.
    assert Columns({"style": "rouge"}).fill(scored, 0.7, False)["acc"] == 1.0
    assert Columns({"style": "rouge"}).fill(shaped, 0.7, False)["acc"] == 0.7
    lost = replace(scored, info={"style.win": False, "style.win_and": True, "style.comparison_score": -0.5})
    columns = columns_of.fill(lost, 0.7, False)
    assert (columns["acc"], columns["plaudit/win_and"], columns["plaudit/comparison_score"]) == (
        0.0,
        1.0,
        -0.5,
    )
    assert set(columns) == set(columns_of.names)


def reader(words: Any, **said: Any) -> RolloutReader:
    return RolloutReader(words, options(**said), 4)


def test_rollouts_are_read_from_either_trainer(words: Any) -> None:
    new = reader(words)
    made = new.read(*last_row(fixtures.rollout(words, "yes no", uid="u", session=2, step=7, padding=3)))
    assert (made.group, made.member, made.size, made.response, made.tokens) == ("u", "2", 4, "yes no", 2)
    assert (made.step, made.source, made.validate, made.reference) == (7, "words", False, "yes")
    assert made.prompt == [{"role": "user", "content": "is the answer forty two"}]
    assert made.extra == {"split": "train", "index": 0, "data_source": "words"}
    old = fixtures.rollout(words, "", session=None, step=8)
    old.non_tensor_batch["priority"] = np.array([11])
    made = new.read(*last_row(old))
    assert (made.member, made.step, made.response, made.tokens) == ("11", 8, "", 0)


def test_several_outputs_are_scored_by_the_last(words: Any) -> None:
    from verl import DataProto

    both = [fixtures.rollout(words, text, uid="u") for text in ("yes yes", "no dog")]
    new = reader(words)
    assert new.read(*last_row(DataProto.concat(both))).response == "no dog"


def test_a_rollout_without_a_group_is_refused(words: Any) -> None:
    with pytest.raises(KeyError, match="no `uid`"):
        reader(words).read({}, [], [])


def test_group_size_is_read_from_the_row(words: Any) -> None:
    new = RolloutReader(words, options(), "extra_info.n")
    made = fixtures.rollout(words, "yes", uid="u", extra={"n": 3})
    assert new.read(*last_row(made)).size == 3
    with pytest.raises(KeyError, match="this row has no `extra_info.n`, which `size` names"):
        new.read(*last_row(fixtures.rollout(words, "yes", uid="u")))
    with pytest.raises(ValueError, match="`extra_info.n`, which `size` names, is 'x'"):
        new.read(*last_row(fixtures.rollout(words, "yes", uid="u", extra={"n": "x"})))
    assert new.read(*last_row(fixtures.rollout(words, "yes", uid="u", split="test"))).validate


def test_size_other_than_the_trainers_is_a_warning(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "plaudit"):
        check(model, "actor_rollout_ref.rollout.n=4", size=4)
        assert "reward_kwargs.size" not in caplog.text
        check(model, "actor_rollout_ref.rollout.n=4", size=2)
    assert "reward_kwargs.size=2" in caplog.text and "rollout.n=4" in caplog.text


def test_references_are_where_verl_or_the_tutorial_puts_them(words: Any) -> None:
    new = reader(words)
    assert new.reference({"reward_model": {"ground_truth": 42}}) == "42"
    tests = {"reward_model": {"ground_truth": {"tests": np.array([1, 2])}}}
    assert new.reference(tests) == {"tests": [1, 2]}
    assert new.reference({"reward_model": {"ground_truth": np.array(["a", "b"])}}) == ["a", "b"]
    chat = [{"role": "assistant", "content": "from the tutorial"}]
    assert (
        new.reference({"reward_model": {"ground_truth": ""}, "extra_info": {"y": chat}})
        == "from the tutorial"
    )
    assert new.reference({"reward_model": None, "extra_info": {"y": []}}) is None
    assert reader(words, reference="extra_info.answer").reference({"extra_info": {"answer": "a"}}) == "a"


def test_validation_is_recognised_by_a_field_of_the_data(words: Any) -> None:
    new = reader(words)
    assert [
        new.is_validation({"extra_info": {"split": split}}) for split in ("test", "val", "train", None)
    ] == [
        True,
        True,
        False,
        False,
    ]
    other = reader(words, validation={"field": "data_source", "values": ["aime"]})
    assert other.is_validation({"data_source": "aime"}) and not other.is_validation({"data_source": "gsm8k"})


def test_extras_are_plain(words: Any) -> None:
    fields = {
        "extra_info": {"index": np.int64(3), "list": np.array([1.5])},
        "ability": "math",
        "uid": "u",
        "__x": 1,
    }
    assert extra(fields) == {"index": 3, "list": [1.5], "ability": "math"}


def test_samples_are_chosen_once_a_step_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    steps = StepStatistics(("a",), examine=1)
    result = Result(1.0, "scored", components={"a": 1.0})
    shown = [
        SAMPLED in steps.count(Rollout("g", None, 2, "r", source=source, step=step).sample_key(), result).info
        for step in (1, 1, 2)
        for source in ("x", "x", "y")
    ]
    assert shown == [True, False, True, False, False, False, True, False, True]
    print_sample(Rollout("g", None, 2, "said", prompt="asked", reference="right"), {"score": 0.5})
    assert capsys.readouterr().out == "[prompt] asked\n[response] said\n[reference] right\n[score] 0.5\n"


def test_the_last_step_is_fed_to_rewards() -> None:
    steps = StepStatistics(("a",))
    for step, total in ((1, 1.0), (1, 3.0), (2, 5.0)):
        steps.count(
            Rollout("g", None, 2, "r", step=step).sample_key(),
            Result(total, "scored", components={"a": total / 2}),
        )
    fed = steps.add_last_step({"index": 1})
    assert fed == {
        "index": 1,
        "last_mean_std": {
            "total": {"count": 2.0, "mean": 2.0, "std": 1.0},
            "a": {"count": 2.0, "mean": 1.0, "std": 0.5},
        },
    }


def test_siblings_are_waited_for_and_forgotten() -> None:
    import asyncio

    async def play() -> None:
        siblings = SiblingTotals(max_groups=2)
        siblings.add("g", 3, 1.0)
        siblings.add("g", 3, None)
        waiting = asyncio.ensure_future(siblings.mean("g", 3, 60.0))
        await asyncio.sleep(0)
        assert not waiting.done()
        siblings.add("g", 3, 2.0)
        assert await waiting == 1.5
        assert await siblings.mean("h", 2, 0.0) is None
        waiting = asyncio.ensure_future(siblings.mean("i", 2, 60.0))
        await asyncio.sleep(0)
        for other in "jkl":
            siblings.add(other, 2, None)
        assert await waiting is None, "a forgotten group must not be waited for"

    asyncio.run(play())
