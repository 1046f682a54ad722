"""`Engine`: the columns and arguments that it takes, and those that it refuses."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import plaudit
import pyarrow as pa
import pytest

FORMAT = {"components": {"format": {"reward": "reasoning_format"}}}
GOOD = "<think>Six sevens.</think><answer>42</answer>"


@pytest.fixture(scope="module")
def engine() -> plaudit.Engine:
    return plaudit.Engine("quickstart")


def test_a_shipped_recipe_a_file_and_a_dict(tmp_path: Path):
    place = tmp_path / "mine.yaml"
    place.write_text("name: mine\ncomponents:\n  format: { reward: reasoning_format, weight: 0.5 }\n")
    for recipe in (
        place,
        str(place),
        {"name": "mine", "components": {"format": {"reward": "reasoning_format", "weight": 0.5}}},
    ):
        engine = plaudit.Engine(recipe)
        assert (engine.name, engine.components, engine.weights) == ("mine", ("format",), {"format": 0.5})
        assert engine.score(None, [GOOD, "no"]).totals.tolist() == [0.5, 0.0]


def test_the_numbers_are_those_of_the_recipe(engine: plaudit.Engine):
    report = engine.score(["6 * 7?", "6 * 7?"], [GOOD, "forty-two"], ["42", "42"])
    assert report.totals.tolist() == pytest.approx([1.2, 0.0])
    assert report.totals.dtype == np.float64 and report.totals_or_invalid_value.dtype == np.float32
    assert len(report) == 2 and report.outcomes == ["scored", "scored"]


def test_what_an_engine_says_of_itself(engine: plaudit.Engine):
    assert engine.components == ("accuracy", "format", "length", "ngram", "privacy", "thought")
    assert engine.weights["format"] == 0.2 and engine.weights["thought"] == 0.0
    assert engine.rewards["ngram"] == "ngram_repetition_penalty"
    assert not engine.compares_groups and plaudit.Engine("lengths").compares_groups
    assert engine.invalid_value is None and plaudit.Engine("tutorial").invalid_value == -999.0
    assert engine.timeout == 300.0 and engine.judge_usage == [] and engine.judges == {}
    assert plaudit.Engine("tutorial").judges["main"]["concurrency"] == 256
    assert "quickstart" in repr(engine)


def test_a_dict_keeps_the_order_of_its_components():
    names = ["zebra", "ape", "mole", "bee"]
    engine = plaudit.Engine({"components": {name: {"reward": "reasoning_format"} for name in names}})
    assert list(engine.components) == names == list(engine.score(None, [GOOD]).components)


def test_overrides_replace_single_values():
    overrides = {"components.format.weight": 0.7, "groups.timeout": "60s", "name": "other"}
    engine = plaudit.Engine("quickstart", overrides=overrides)
    assert (engine.weights["format"], engine.timeout, engine.name) == (0.7, 60.0, "other")
    with pytest.raises(plaudit.RecipeError, match="components.format.wieght"):
        plaudit.Engine("quickstart", overrides={"components.format.wieght": 1})


def test_a_share_of_the_limits():
    overrides = {
        "judges.main.concurrency": 10,
        "judges.main.calls_per_minute": 90,
        "judges.main.budget": {"calls": 7},
    }
    judge = plaudit.Engine("tutorial", overrides=overrides, share=4).judges["main"]
    assert (judge["concurrency"], judge["calls_per_minute"], judge["budget_calls"]) == (2, 22, 1)


@pytest.mark.parametrize(
    "responses",
    [
        [GOOD, "no", GOOD],
        (GOOD, "no", GOOD),
        np.array([GOOD, "no", GOOD], dtype=object),
        np.array([GOOD, "no", GOOD]),
        pa.array([GOOD, "no", GOOD]),
        pa.array([GOOD, "no", GOOD], pa.large_string()),
        pa.array([GOOD, "no", GOOD], pa.string_view()),
        pa.chunked_array([[GOOD], ["no", GOOD]]),
    ],
    ids=["list", "tuple", "objects", "unicode", "arrow", "large", "view", "chunks"],
)
def test_sequences_of_every_kind(responses):
    assert plaudit.Engine(FORMAT).score(None, responses).totals.tolist() == [1.0, 0.0, 1.0]


def test_a_generator_is_taken_whole():
    engine = plaudit.Engine(FORMAT)
    assert engine.score(None, (text for text in (GOOD, "no"))).totals.tolist() == [1.0, 0.0]


def test_nothing_is_scored_as_nothing():
    report = plaudit.Engine(FORMAT).score([], [])
    assert len(report) == 0 and report.totals.shape == (0,) and report.rows == []
    assert report.to_arrow().num_rows == 0


def test_groups_by_name_by_number_and_by_prompt():
    engine = plaudit.Engine("lengths")
    assert engine.score(None, ["a"] * 4, groups=["x", "y", "x", "y"]).groups == [[0, 2], [1, 3]]
    assert engine.score(None, ["a"] * 4, groups=[1, 2, 1, 2]).groups == [[0, 2], [1, 3]]
    assert engine.score(None, ["a"] * 4, groups=np.array([1, 2, 1, 2])).groups == [[0, 2], [1, 3]]
    assert engine.score(["p", "q", "p", None], ["a"] * 4).groups == [[0, 2], [1], [3]]
    messages = [[{"role": "user", "content": "p"}], [{"content": "p", "role": "user"}]]
    assert engine.score(messages, ["a"] * 2).groups == [[0, 1]]


def test_tokens_and_extras_reach_the_rewards():
    recipe = {"components": {"length": {"reward": "total_length", "max": 100, "band": 20, "unit": "token"}}}
    for tokens in ([90, 200], np.array([90, 200]), (90, 200), pa.array([90, 200])):
        assert plaudit.Engine(recipe).score(None, ["a", "a"], tokens=tokens).totals.tolist() == [-0.5, -1.0]
    cosine = plaudit.Engine({"components": {"it": {"reward": "open_r1.cosine_length"}}})
    assert cosine.score(None, ["a", "a"], extras=[{"correct": True}, {"correct": np.False_}]).totals[1] < 0


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("responses", "b\ud800"),
        ("prompts", "\udfff"),
        ("prompts", [{"role": "user", "content": "\udfff"}]),
        ("references", "\ud83d"),
        ("groups", "\ud83d"),
        ("extras", {"a": {"b": "\ud800"}}),
    ],
)
def test_a_rollout_that_is_not_valid_unicode_is_invalid_alone(column: str, value: Any, waits: bool):
    columns: dict[str, list[Any]] = {
        "prompts": ["p"] * 4,
        "responses": ["<answer>1</answer>", "22", "333", "4"],
        "references": ["1"] * 4,
        "groups": ["g", "g", "h", "h"],
        "extras": [{}] * 4,
    }
    engine = plaudit.Engine({"components": {"kimi": {"reward": "kimi.length"}}})
    wanted = engine.score(**{name: [*given[:1], *given[2:]] for name, given in columns.items()})
    columns[column][1] = value
    report = engine.score(**columns) if waits else asyncio.run(engine.ascore(**columns))
    assert report.outcomes == [wanted.outcomes[0], "invalid", *wanted.outcomes[1:]]
    assert report.reasons[1]["code"] == "input.utf8"
    assert f"{column}[1]" in report.reasons[1]["message"] and "Unicode" in report.reasons[1]["message"]
    assert report.groups == [[0], [2, 3]]
    assert report.statistics["rollouts"] == 4 and len(report.rows) == 4


def test_rollouts_none_of_which_can_be_read():
    report = plaudit.Engine("quickstart").score(None, ["\ud800"] * 2)
    assert report.outcomes == ["invalid", "invalid"] and report.statistics["rollouts"] == 2


@pytest.mark.parametrize(
    ("column", "value", "error", "message"),
    [
        ("responses", "text", TypeError, "responses: a list is wanted, not one string"),
        ("responses", ["a", None], TypeError, r"responses\[1\]: text is wanted, not None"),
        ("responses", ["a", 1.5], TypeError, r"responses\[1\]: text or a whole number is wanted, not 1.5"),
        ("responses", ["a", b"b"], TypeError, r"responses\[1\]: text is wanted, not bytes"),
        ("responses", 7, TypeError, "responses: a list is wanted, not int"),
        ("validate", "yes", TypeError, "validate is True, False or None, not 'yes'"),
        ("responses", None, TypeError, "responses: a list is wanted, not None"),
        ("prompts", ["a", 3], TypeError, r"prompts\[1\]: text or a list of messages is wanted, not int"),
        ("prompts", ["a"], ValueError, "prompts has 1 items, but responses has 2"),
        ("references", ["a"] * 3, ValueError, "references has 3 items, but responses has 2"),
        ("groups", ["a"], ValueError, "groups has 1 items, but responses has 2"),
        ("tokens", [1], ValueError, "tokens has 1 items, but responses has 2"),
        ("tokens", [1, -1], ValueError, r"tokens\[1\]: a whole number from 0 is wanted, not -1"),
        ("tokens", [1, "2"], TypeError, r"tokens\[1\]: a whole number from 0 is wanted, not '2'"),
        ("responses", {"a", "b"}, TypeError, "responses: a list is wanted, not set"),
        ("responses", {"a": 1, "b": 2}, TypeError, "responses: a list is wanted, not dict"),
        ("references", ["a", math.inf], TypeError, r"references\[1\]: text or a finite number is wanted"),
        ("groups", [1, 1.5], TypeError, r"groups\[1\]: text or a whole number is wanted, not 1.5"),
        ("extras", [{}], ValueError, "extras has 1 items, but responses has 2"),
        ("extras", [{}, 3], TypeError, r"extras\[1\]: a dict is wanted, not int"),
        (
            "extras",
            [{}, {"a": {"b": object()}}],
            TypeError,
            r'extras\[1\]\["a"\]\["b"\]: object cannot be handed over',
        ),
        ("ids", ["a"], ValueError, "ids has 1 items, but responses has 2"),
    ],
)
def test_what_does_not_fit_is_named(column, value, error, message):
    columns = {"prompts": ["p", "p"], "responses": ["a", "b"], column: value}
    with pytest.raises(error, match=message):
        plaudit.Engine(FORMAT).score(**columns)


def test_one_response_too_long_is_floored_and_not_lost():
    engine = plaudit.Engine({**FORMAT, "limits": {"response_bytes": 10}})
    report = engine.score(None, ["short", "x" * 11])
    assert report.outcomes == ["scored", "floored"]
    assert report.reasons[1]["code"] == "model.too_long"


def test_missing_references_are_skipped_and_not_zero():
    engine = plaudit.Engine({"components": {"accuracy": {"reward": "number_accuracy"}}})
    report = engine.score(None, ["42", "42"], ["42", None])
    assert (
        report.outcomes == ["scored", "skipped"] and report.totals[0] == 1.0 and math.isnan(report.totals[1])
    )
    assert report.reasons[1]["code"] == "input.missing_reference"


def test_every_mistake_of_a_recipe_is_told_at_once():
    recipe = {
        "components": {"a": {"reward": "lenght_penalty"}, "b": {"reward": "length_penalty", "wieght": 1.0}},
        "combine": "some",
    }
    with pytest.raises(plaudit.RecipeError) as caught:
        plaudit.Engine(recipe)
    error = caught.value
    assert isinstance(error, plaudit.PlauditError) and not isinstance(error, plaudit.RunError)
    assert {error["path"] for error in error.errors} == {
        "components.a.reward",
        "components.b.wieght",
        "combine",
    }
    assert [error["code"] for error in error.errors if error["path"] == "components.a.reward"] == [
        "recipe.unknown_reward"
    ]
    assert all(error["message"] for error in error.errors)
    assert str(error).count("\n") == 2 and 'did you mean "length_penalty"?' in str(error)
    with pytest.raises(plaudit.RecipeError, match="quickstart"):
        plaudit.Engine("quickstrat")


def test_a_missing_key_is_named_before_anything_is_asked():
    overrides = {"judges.main.api_key_env": "PLAUDIT_TEST_NO_SUCH_KEY"}
    with pytest.raises(plaudit.RunError, match="PLAUDIT_TEST_NO_SUCH_KEY") as caught:
        plaudit.Engine("tutorial", overrides=overrides)
    assert caught.value.code == "judge.missing_key"


def test_uneven_groups_are_refused_where_the_recipe_says_so():
    engine = plaudit.Engine({**FORMAT, "groups": {"same_size": True}})
    with pytest.raises(plaudit.RunError, match="size") as caught:
        engine.score(None, ["a", "b", "c"], groups=["x", "x", "y"])
    assert caught.value.code == "group.uneven"


def test_the_lists_of_names():
    assert {"rouge", "principle", "kimi.length"} <= set(plaudit.rewards())
    assert {"quickstart", "tutorial", "math"} <= set(plaudit.recipes())
    for name in plaudit.recipes():
        assert plaudit.Engine(name).name == name


def test_one_reward_by_itself():
    reward = plaudit.reward("ngram_repetition_penalty", n=3, tokenizer_type="simple", penalty_threshold=0.1)
    outcome = reward.score("a b c a b c a b c a b c")
    assert outcome.outcome == "scored" and outcome.value < 0 and outcome.reason is None and outcome.info
    assert plaudit.reward("accuracy").score("a").outcome == "skipped"
    assert plaudit.reward("accuracy").score("a", reference="a").value == 1.0
    with pytest.raises(plaudit.RecipeError, match="m_typo"):
        plaudit.reward("ngram_repetition_penalty", m_typo=3)


def test_comparisons_become_scores():
    made = plaudit.aggregate("bradley_terry", n=3, comparisons=[(0, 1, 0), (0, 2, None), (1, 2, 2)])
    assert len(made.scores) == 3 == len(made.errors) and made.scores[0] > made.scores[1]
    with pytest.raises(ValueError, match="no_such"):
        plaudit.aggregate("no_such", n=2, comparisons=[])
    with pytest.raises(ValueError, match="response 2"):
        plaudit.aggregate("winrate", n=3, comparisons=[(0, 1, 0)])


def test_responses_alone_are_enough(engine: plaudit.Engine):
    assert engine.score(responses=[GOOD]).totals.tolist() == engine.score(None, [GOOD]).totals.tolist()
    with pytest.raises(TypeError, match="responses: a list is wanted, not None"):
        engine.score()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (42, "42"),
        (42.0, "42"),
        (0.5, "0.5"),
        (np.float32(0.1), "0.1"),
        (np.int64(-3), "-3"),
        (Decimal("1.50"), "1.50"),
        ("0.50", "0.50"),
    ],
)
def test_numbers_are_taken_as_their_decimal_text(given: Any, text: str):
    seen: list[Any] = []
    name = "test_engine.seen"

    def seeing(prompts, responses, references, extras):
        seen.extend(references)
        return [0.0] * len(responses)

    plaudit.register(name)(seeing)
    engine = plaudit.Engine({"components": {"mine": {"reward": name}}})
    engine.score(None, ["a"], [given])
    plaudit.reward(name).score("a", reference=given)
    engine.join().score(7, 1, "a", reference=given)
    assert seen == [text] * 3


def test_references_may_be_lists_truths_and_dicts():
    engine = plaudit.Engine({"components": {"right": {"reward": "accuracy"}}})
    for references in (
        [["a", "b"], ("a",), True, {"target": ["c", "d"]}, {"x": 1}],
        (["a", "b"], ["a"], True, {"target": ["c", "d"]}, {"x": 1}),
    ):
        report = engine.score(responses=["b", "b", "true", "d", "d"], references=references)
        assert report.outcomes == ["scored"] * 4 + ["invalid"]
        assert report.totals[:4].tolist() == [1.0, 0.0, 1.0, 1.0]
        assert report.reasons[4]["code"] == "input.reference_unparsable"
    lists = engine.score(responses=["b", "c"], references=pa.array([["a", "b"], ["a"]]))
    assert lists.totals.tolist() == [1.0, 0.0]
    assert engine.score(responses=["true"], references=pa.array([True])).totals.tolist() == [1.0]
    assert plaudit.reward("accuracy").score("b", reference=["a", "b"]).value == 1.0
    assert engine.join().score(7, 1, "b", reference=["a", "b"]).total == 1.0


def test_references_and_tools_are_found_in_the_extras(caplog: pytest.LogCaptureFixture):
    engine = plaudit.Engine({"components": {"right": {"reward": "accuracy"}}})
    for _ in range(2):
        report = engine.score(responses=["4", "5"], extras=[{"answer": 4}, {"ground_truth": ["5", "6"]}])
        assert report.totals.tolist() == [1.0, 1.0]
    assert report.statistics["references_from"] == {"answer": 1, "ground_truth": 1}
    assert caplog.text.count("read from `answer` of 1, `ground_truth` of 1") == 1
    valid = plaudit.Engine({"components": {"valid": {"reward": "tool_call_validity"}}})
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    assert valid.score(responses=[[call]], extras=[{"tools": [{"name": "f"}]}]).totals.tolist() == [1.0]
    assert valid.score(responses=[[call]], extras=[{"tools": "f"}]).outcomes == ["skipped"]


def test_fractions_of_arrow_keep_their_own_width():
    references = pa.array([0.1, 2.0, None], pa.float32())
    engine = plaudit.Engine({"components": {"right": {"reward": "accuracy"}}})
    report = engine.score(None, ["0.1", "2", "3"], references)
    assert report.totals[:2].tolist() == [1.0, 1.0] and report.outcomes[2] == "skipped"


def test_ids_and_groups_may_be_numbers(engine: plaudit.Engine):
    rows = engine.score(None, ["a", "b"], ids=[7, np.int64(8)], groups=[1, 1]).rows
    assert [(row["id"], row["group"]) for row in rows] == [("7", "1"), ("8", "1")]


def test_the_recipe_as_it_is_used():
    engine = plaudit.Engine(FORMAT, overrides={"components.format.weight": 0.25})
    assert engine.recipe["components"]["format"] == {"reward": "reasoning_format", "weight": 0.25}
    assert plaudit.Engine(engine.recipe).weights == engine.weights


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"recipe": None}, TypeError, "a file or a dict, not NoneType"),
        ({"recipe": FORMAT, "overrides": ["a=1"]}, TypeError, "overrides is a dict such as .*, not list"),
        (
            {"recipe": FORMAT, "overrides": {"a": math.nan}},
            ValueError,
            r"overrides\['a'\]: nan is not finite",
        ),
        ({"recipe": {"components": {"a": {"weight": math.nan}}}}, ValueError, "not finite"),
        ({"recipe": FORMAT, "share": 0}, ValueError, "share is 1 or more engines, not 0"),
        ({"recipe": FORMAT, "share": -1}, ValueError, "share is 1 or more engines, not -1"),
        ({"recipe": FORMAT, "share": 1.5}, TypeError, "share is a whole number of engines, not 1.5"),
        ({"recipe": FORMAT, "on_error": "log"}, ValueError, "on_error is 'invalid' or 'raise', not 'log'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        plaudit.Engine(**arguments)


def test_an_engine_that_was_not_made_can_be_shown():
    engine = plaudit.Engine.__new__(plaudit.Engine)
    with pytest.raises(plaudit.RecipeError):
        engine.__init__("no-such-recipe")
    assert repr(engine) == "plaudit.Engine(not made)"


def test_numpy_says_yes_too(engine: plaudit.Engine):
    assert engine.score(None, ["a"], validate=np.False_).outcomes == ["scored"]


def test_one_reward_is_called_as_it_is_scored():
    reward = plaudit.reward("accuracy")
    assert reward("42", reference=42) == reward.score("42", reference="42")
    assert reward.score("a", reference="\ud800").reason["code"] == "input.utf8"
    assert reward.score("\ud800").outcome == reward.score("a", prompt="\ud800").outcome == "invalid"
    with pytest.raises(TypeError, match="reference: text is wanted, not object"):
        reward.score("a", reference=object())
    assert reward.score("a", reference=[]).reason["code"] == "input.empty_reference"
    with pytest.raises(ValueError, match="tokens: a whole number from 0 is wanted, not -1"):
        reward.score("a", tokens=-1)


def test_errors_of_one_reward_are_told_without_a_recipe():
    with pytest.raises(plaudit.RecipeError) as caught:
        plaudit.reward("acuracy")
    assert caught.value.errors[0]["path"] == "reward" and "components" not in str(caught.value)


def test_comparisons_of_every_kind():
    wanted = plaudit.aggregate("winrate", 3, [(0, 1, 0), (1, 2, 1)]).scores
    assert plaudit.aggregate("winrate", np.int64(3), np.array([[0, 1, 0], [1, 2, 1]])).scores == wanted
    for comparison, error in [((0, -1, 0), ValueError), ((0, 1), TypeError), ((0, 1, "0"), TypeError)]:
        with pytest.raises(error, match=r"comparisons\[1\]"):
            plaudit.aggregate("winrate", 3, [(0, 1, 0), comparison])
    with pytest.raises(ValueError, match="at most 1000000 responses"):
        plaudit.aggregate("winrate", 10**12, [])
