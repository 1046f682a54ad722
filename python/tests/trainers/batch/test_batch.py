"""Tests of the whole-batch manager on plain lists, without verl."""

import json
import math
import pathlib
import pickle
import threading

import plaudit
import pytest
from plaudit.values import plain
from plaudit.verl.batch import (
    DGRRewardManager,
    PlauditBatchRewardManager,
    RMGalleryRewardManager,
    column,
    fill,
    spread,
)
from plaudit.verl.rollout_reader import RolloutBatch

RULES = {"name": "rules", "components": {"format": {"reward": "reasoning_format"}}}
#: A rollout without a reference is invalid by this one, and its siblings are not.
NEEDS_REFERENCE = {
    "name": "needs_reference",
    "components": {"right": {"reward": "accuracy", "required": True}},
}


def test_missing_values_get_the_mean_of_their_siblings():
    groups = [[0, 2], [1, 3], [4]]
    values = [1.0, None, None, None, 5.0]
    assert fill(values, groups, across=False) == [1.0, 0.0, 1.0, 0.0, 5.0]
    assert fill(values, groups, across=True) == [1.0, 3.0, 1.0, 3.0, 5.0]
    assert fill([None, None], [[0, 1]], across=True) == [0.0, 0.0]


def test_columns_are_finite_floats_or_texts():
    assert column([True, float("nan"), None, 2], [[0, 1], [2, 3]]) == [1.0, 1.0, 2.0, 2.0]
    assert column(["a", None], [[0, 1]]) == ["a", ""]
    assert column([[1], None], [[0, 1]]) == ["[1]", ""]


def test_the_spread_of_a_group_is_that_of_its_valid_rollouts():
    means, deviations = spread([1.0, 3.0, None, None], [[0, 1, 2], [3]])
    assert means == [2.0, 2.0, 2.0, 0.0] and deviations == [1.0, 1.0, 1.0, 0.0]


def test_scattered_rows_are_ranked_within_their_groups(judged, rollouts):
    rows = rollouts(groups=5, size=4)
    manager = PlauditBatchRewardManager(**judged())
    found = manager.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    assert not any(found.invalid)
    for pairs in rows.by_group(found.info["reward_principle"]).values():
        values = [value for _, value in pairs]
        assert values == sorted(values) and values[0] < 0 < values[-1]
    # The total is what the tutorial makes of its terms.
    info = found.info
    for at, reward in enumerate(found.rewards):
        judged_and_format = 0.95 * info["reward_principle"][at] + 0.05 * info["reward_format"][at]
        expected = judged_and_format + info["scores_total_lengths"][at] + info["reward_ngram"][at]
        assert reward == pytest.approx(expected, abs=1e-6)


def test_all_keys_are_there_as_finite_floats(judged, rollouts):
    rows = rollouts()
    manager = RMGalleryRewardManager(None, 0, **judged())
    info = manager.score_batch(
        rows["prompt"], rows["response"], groups=rows["uid"], tokens=[9] * len(rows)
    ).info
    wanted = {
        "acc",
        "score",
        "reward_principle",
        "reward_rubric",
        "reward_format",
        "reward_ngram",
        "thought_lengths",
        "scores_thought_length",
        "scores_total_lengths",
        "reward_mean",
        "reward_std",
        "plaudit/invalid",
    }
    assert wanted <= set(info) and "reward" not in info
    for key, values in info.items():
        assert len(values) == len(rows), key
        assert all(type(value) is float and math.isfinite(value) for value in values), key
    assert set(info["thought_lengths"]) != {0.0}


def test_equal_prompts_are_a_group_where_none_is_named(judged, rollouts):
    rows = rollouts()
    manager = PlauditBatchRewardManager(**judged())
    named = manager.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    unnamed = manager.score_batch(rows["prompt"], rows["response"])
    assert named.rewards == unnamed.rewards


def test_validation_compares_with_the_reference(judged, rollouts):
    rows = rollouts(groups=3, size=4, reference_quality=1.7)
    manager = PlauditBatchRewardManager(is_val_mode=True, **judged())
    found = manager.score_batch(rows["prompt"], rows["response"], rows["reference"], rows["uid"])
    assert found.info["win"] == [float(quality > 1.7) for quality in rows["quality"]]
    assert found.info["acc"] == found.info["win"] and found.info["plaudit/compared"] == [1.0] * len(rows)
    assert all(winner <= at_least for winner, at_least in zip(found.info["win"], found.info["win_and"]))
    assert len(set(found.info["comparison_score"])) > 1


def test_one_response_against_its_reference_is_enough(judged, rollouts):
    rows = rollouts(groups=6, size=1, reference_quality=0.2)
    found = PlauditBatchRewardManager(is_val_mode=True, **judged()).score_batch(
        rows["prompt"], rows["response"], rows["reference"]
    )
    assert not any(found.invalid) and found.info["win"] == [
        float(quality > 0.2) for quality in rows["quality"]
    ]


def test_validation_keys_do_not_depend_on_references(judged, rollouts):
    manager = PlauditBatchRewardManager(is_val_mode=True, **judged())
    rows = rollouts(reference_quality=1.7)
    with_references = manager.score_batch(rows["prompt"], rows["response"], rows["reference"], rows["uid"])
    without = manager.score_batch(rows["prompt"], rows["response"], None, rows["uid"])
    assert set(with_references.info) == set(without.info)
    assert without.info["plaudit/compared"] == [0.0] * len(rows) and without.info["acc"] == without.rewards


def test_an_invalid_rollout_gets_the_mean_of_its_siblings():
    prompts, responses = ["a", "b", "a", "b", "a", "b"], ["x", "y", "no", "no", "x", "y"]
    references = ["x", "y", "x", "y", None, None]
    found = PlauditBatchRewardManager(recipe=NEEDS_REFERENCE).score_batch(prompts, responses, references)
    assert found.rewards == [1.0, 1.0, 0.0, 0.0, 0.5, 0.5]
    assert found.invalid == [False] * 4 + [True] * 2
    assert found.info["plaudit/invalid"] == [0.0] * 4 + [1.0] * 2
    assert found.reasons[4] is not None and "input.missing_reference" in found.reasons[4]
    assert found.info["reward_std"] == [0.5] * 6


def test_a_group_without_a_valid_rollout_teaches_nothing(rollouts):
    rows = rollouts(groups=2, size=3)
    dead = {"judges.main.base_url": "http://127.0.0.1:9/v1", "judges.main.patience": "1ms"}
    manager = PlauditBatchRewardManager(overrides=dead, timeout=5.0)
    found = manager.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    assert found.rewards == [0.0] * 6 and all(found.invalid)
    assert all(reason and reason.startswith("judge.") for reason in found.reasons)


def test_a_fixed_number_can_be_chosen_for_the_invalid():
    for chosen in (-999.0, "-999", "value:-999"):
        manager = PlauditBatchRewardManager(recipe=NEEDS_REFERENCE, invalid=chosen)
        assert manager.score_batch(["a", "a"], ["x", "x"], ["x", None]).rewards == [1.0, -999.0]
    for nonsense in ("zero", "drop", float("nan")):
        with pytest.raises(ValueError, match="'mean' or a number"):
            PlauditBatchRewardManager(recipe=RULES, invalid=nonsense)


def test_groups_of_different_sizes_are_named():
    manager = PlauditBatchRewardManager(recipe=RULES)
    prompts = ["one", "two", "one", "three", "three"]
    with pytest.raises(ValueError, match=r"most have 2 rollouts, but 'two' has 1"):
        manager.score_batch(prompts, ["r"] * 5)
    assert len(manager.score_batch(prompts, ["r"] * 5, validate=True).rewards) == 5
    relaxed = PlauditBatchRewardManager(recipe=RULES, same_size=False)
    assert len(relaxed.score_batch(prompts, ["r"] * 5).rewards) == 5


def test_one_at_a_time_where_groups_are_not_wanted(judged, rollouts):
    rows = rollouts(groups=2, size=1)
    manager = PlauditBatchRewardManager(use_group_reward=False, **judged())
    found = manager.score_batch(rows["prompt"], rows["response"])
    assert not any(found.invalid) and all(0.0 <= value <= 1.0 for value in found.info["reward_principle"])
    with pytest.raises(ValueError, match="compares the group"):
        PlauditBatchRewardManager(
            recipe={"name": "k", "components": {"length": {"reward": "kimi.length"}}}, use_group_reward=False
        )


def test_details_are_the_evidence(rollouts):
    rows = rollouts(groups=1, size=2)
    found = PlauditBatchRewardManager(recipe=RULES, return_details=True).score_batch(
        rows["prompt"], rows["response"]
    )
    detail = json.loads(found.info["details"][0])
    assert detail["components"]["format"]["outcome"] == "scored"
    without = PlauditBatchRewardManager(recipe=RULES, return_statistics=False)
    assert not {"details", "reward_std"} & set(without.score_batch(rows["prompt"], rows["response"]).info)


def test_custom_function_scores_groups(rollouts):
    rows = rollouts(groups=3, size=4, reference_quality=1.0)
    seen = {}

    def compute_score(prompt, responses, extras, **kwargs):
        seen[prompt] = (len(responses), kwargs)
        scores = [float(text.split("quality:")[1].split("]")[0]) for text in responses]
        return scores, {"reward_own": scores}

    manager = PlauditBatchRewardManager(None, 0, compute_score, max_workers=2, mine=5)
    found = manager.score_batch(rows["prompt"], rows["response"], rows["reference"], rows["uid"])
    assert found.rewards == rows["quality"] and found.info["reward_own"] == rows["quality"]
    assert set(seen) == set(rows["prompt"]) and "win" not in found.info
    assert all(held == (4, {"max_workers": 2, "mine": 5}) for held in seen.values())
    found = manager.score_batch(
        rows["prompt"], rows["response"], rows["reference"], rows["uid"], validate=True
    )
    assert found.info["win"] == [float(quality > 1.0) for quality in rows["quality"]]
    assert found.info["win_and"] == [float(quality >= 1.0) for quality in rows["quality"]]
    assert found.rewards == rows["quality"]


def test_a_failing_group_keeps_its_columns(rollouts):
    rows = rollouts(groups=3, size=2)

    def compute_score(prompt, responses, extras):
        if any(name in prompt for name in down):
            raise RuntimeError("judge is down")
        return [1.0, 3.0], {"reward_own": [1.0, 3.0]}

    down = ["question 1"]
    manager = PlauditBatchRewardManager(None, 0, compute_score)
    found = manager.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    bad = [uid == "uid-1" for uid in rows["uid"]]
    assert found.invalid == bad and [reward == 0.0 for reward in found.rewards] == bad
    assert [found.info["reward_own"][at] for at in range(6) if bad[at]] == [2.0, 2.0]

    down = ["question"]
    later = manager.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    assert list(later.info) == list(found.info) and all(later.invalid)


def test_a_function_and_a_recipe_are_one_too_many():
    with pytest.raises(ValueError, match="plaudit.register"):
        PlauditBatchRewardManager(None, 0, lambda prompt, responses, extras: [], recipe="tutorial")


def test_errors_are_raised_when_the_manager_is_made():
    with pytest.raises(ValueError, match="did you mean 'overrides'"):
        PlauditBatchRewardManager(recipe=RULES, override={})
    with pytest.raises(plaudit.RecipeError):
        PlauditBatchRewardManager(recipe={"name": "x", "components": {"a": {"reward": "no_such_reward"}}})


def test_a_recipe_and_a_function_are_one_too_many():
    with pytest.raises(ValueError, match="give one of them"):
        PlauditBatchRewardManager(None, 0, lambda prompt, responses, extras: [], state="somewhere")


def test_custom_rewards_are_imported_and_get_feedback(tmp_path, monkeypatch):
    (tmp_path / "rewards_of_mine.py").write_text(
        "import plaudit\n"
        "@plaudit.register('tests_fed_back')\n"
        "def fed_back(prompts, responses, references, extras):\n"
        "    return [extra.get('last_mean_std', -1.0) for extra in extras]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe = {"name": "mine", "components": {"mine": {"reward": "tests_fed_back"}}}
    manager = PlauditBatchRewardManager(recipe=recipe, imports=["rewards_of_mine"])
    assert manager.score_batch(["p", "p"], ["r", "s"]).rewards == [-1.0, -1.0]
    manager.meta_info["last_mean_std"] = 0.25
    again = pickle.loads(pickle.dumps(manager))
    assert again.score_batch(["p", "p"], ["r", "s"]).rewards == [0.25, 0.25]


def test_overrides_may_be_a_tree():
    tree = {"components": {"format": {"weight": 0.5}}}
    manager = PlauditBatchRewardManager(recipe=RULES, overrides=tree)
    response = "<think>a</think><answer>b</answer>"
    assert manager.score_batch(["p", "p"], [response, response]).rewards == [0.5, 0.5]


def test_the_tutorials_arguments_are_taken_in_its_order():
    def compute_score(prompt, responses, extras, **kwargs):
        return [1.0] * len(responses), {"kwargs": [len(kwargs)] * len(responses)}

    manager = RMGalleryRewardManager(
        None,
        3,
        True,
        compute_score,
        "source",
        max_workers=4,
        timeout=30.0,
        use_group_reward=True,
        return_details=False,
        return_statistics=True,
    )
    assert (manager.num_examine, manager.is_val_mode, manager.reward_fn_key) == (3, True, "source")
    assert (manager.max_workers, manager.timeout) == (4, 30.0)
    found = manager.score_batch(["p"], ["r"], ["reference"])
    assert found.rewards == [1.0] and found.info["win_and"] == [1.0] and found.info["kwargs"] == [5.0]
    assert DGRRewardManager(None, 0, compute_score).score_batch(["p", "p"], ["r", "s"]).rewards == [1.0, 1.0]


def one(prompts, responses, references, extras):
    return [1.0] * len(responses)


def two(prompts, responses, references, extras):
    return [2.0] * len(responses)


def test_a_function_that_was_registered_anew_is_used():
    made = []
    for function in (one, two):
        plaudit.register("test_batch.versioned")(function)
        recipe = {"components": {"mine": {"reward": "test_batch.versioned"}}}
        made.append(PlauditBatchRewardManager(recipe=recipe))
    for manager, reward in zip(made, (1.0, 2.0), strict=True):
        assert manager.score_batch(["p"], ["a"]).rewards == [reward]
        assert pickle.loads(pickle.dumps(manager)).score_batch(["p"], ["a"]).rewards == [reward]


def test_a_manager_survives_being_pickled(rollouts):
    rows = rollouts(groups=2, size=2)
    manager = PlauditBatchRewardManager(recipe=RULES)
    manager.meta_info["last_mean_std"] = 0.5
    again = pickle.loads(pickle.dumps(manager))
    ours, theirs = (one.score_batch(rows["prompt"], rows["response"]) for one in (manager, again))
    assert ours == theirs and again.meta_info == {"last_mean_std": 0.5}


def test_managers_of_one_recipe_share_a_state(tmp_path, judged, rollouts):
    rows, options = rollouts(), judged()
    training = PlauditBatchRewardManager(state=tmp_path / "state", **options)
    validation = PlauditBatchRewardManager(state=tmp_path / "state", is_val_mode=True, **options)
    first = training.score_batch(rows["prompt"], rows["response"], groups=rows["uid"])
    second = validation.score_batch(rows["prompt"], rows["response"], groups=rows["uid"], validate=False)
    assert first.rewards == second.rewards
    (usage,) = training.judge_usage
    assert usage["cached"] > 0


def test_threads_may_share_a_manager(rollouts):
    rows = rollouts(groups=4, size=4)
    manager = PlauditBatchRewardManager(recipe=RULES)
    expected = manager.score_batch(rows["prompt"], rows["response"]).rewards
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append(manager.score_batch(rows["prompt"], rows["response"]).rewards)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [expected] * 4


def test_objects_have_no_address():
    class Picture:
        pass

    shown = plain([{"role": "user", "content": [{"image": Picture()}, {"made": pathlib.Path("a/b")}]}])
    assert "0x" not in json.dumps(shown) and "Picture" in json.dumps(shown)
    assert shown[0]["content"][1] == {"made": "a/b"}
    assert shown == plain([{"role": "user", "content": [{"image": Picture()}, {"made": "a/b"}]}])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_workers": "8"}, "max_workers is how many groups .* not '8'"),
        ({"max_workers": 0}, "max_workers is how many groups .* not 0"),
        ({"timeout": "30s"}, "timeout is a number of seconds above 0, not '30s'"),
        ({"timeout": -1}, "timeout is a number of seconds above 0, not -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        PlauditBatchRewardManager(recipe=RULES, **given)


def test_one_module_may_be_named_without_a_list():
    assert PlauditBatchRewardManager(recipe=RULES, imports="json").score_batch(["p"], ["a"]).invalid == [
        False
    ]


def test_log_says_what_invalid_rollouts_get(caplog):
    manager = PlauditBatchRewardManager(recipe=NEEDS_REFERENCE, abort_after="never")
    for references, instead in (
        ([None, None], "2 of 2 rollouts are invalid and get 0:"),
        (
            ["a", None],
            "1 of 2 rollouts are invalid and get the mean of their valid siblings where they have any:",
        ),
    ):
        rows = RolloutBatch(
            ["p"] * 2, ["p"] * 2, ["a"] * 2, references, None, [1, 1], [{}, {}], [0, 0], [{}, {}]
        )
        manager._log(rows, manager.score_batch(rows.prompts, rows.responses, references))
        assert instead in caplog.text and "input.missing_reference" in caplog.text
        caplog.clear()


def test_judge_that_is_down_is_logged_with_its_address(caplog):
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "none", "attempts": 1, "patience": "1ms"}
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    manager = PlauditBatchRewardManager(
        recipe={"components": {"taste": principle}, "judges": {"main": judge}}
    )
    rows = RolloutBatch(
        ["p"] * 2, ["p"] * 2, ["a", "b"], [None] * 2, None, [1, 1], [{}, {}], [0, 0], [{}, {}]
    )
    manager._log(rows, manager.score_batch(rows.prompts, rows.responses))
    assert "(taste): " in caplog.text and "http://127.0.0.1:9/v1" in caplog.text
