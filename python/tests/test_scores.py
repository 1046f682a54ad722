"""What a custom reward may return for a rollout: `Score`, dicts with `score`, errors; and what cannot be read."""

from __future__ import annotations

import math

import numpy as np
import plaudit
import pytest
from plaudit import Score
from test_custom import engine


def scored(*items, **recipe) -> plaudit.Report:
    """The report of a reward that returns these, one a rollout."""
    responses = [str(at) for at in range(len(items))]
    return engine(lambda prompts, responses, references, extras: list(items), **recipe).score(None, responses)


def test_a_score_has_evidence():
    report = scored(
        Score(0.5, info={"tone": "curt", "marks": 3, "parts": {"a": [1, None]}}, reason="too curt"), 1.0
    )
    assert report.totals.tolist() == [0.5, 1.0] and report.outcomes == ["scored", "scored"]
    assert report.info["tone"] == ["curt", None] and report.info["mine.marks"] == [3, None]
    assert report.info["parts"][0] == {"a": [1, None]} and report.info["reason"][0] == "too curt"
    assert report.rows[0]["components"]["mine"]["info"]["parts"] == {"a": [1, None]}


def test_dicts_of_verl_are_scores():
    report = scored({"score": 1, "acc": True, "pred": "42"}, {"score": None, "acc": False}, {"acc": 1.0})
    assert report.outcomes == ["scored", "skipped", "invalid"] and report.totals[0] == 1.0
    assert report.info["acc"] == [True, None, None] and report.info["pred"][0] == "42"
    assert report.reasons[2]["message"] == "the reward gave back a dict without `score`"


def test_each_outcome_has_its_reason():
    report = scored(
        Score(outcome="floored", reason="three exclamation marks"),
        Score(outcome="skipped", reason="no question"),
        Score(outcome="invalid", reason="the table is gone"),
        Score(outcome="invalid", reason=KeyError("row")),
        Score(outcome="floored"),
        floor=-2.0,
    )
    assert report.outcomes == ["floored", "skipped", "invalid", "invalid", "floored"]
    codes = ["reward.floored", "reward.abstained", "reward.failed", "reward.failed", "reward.floored"]
    assert [reason["code"] for reason in report.reasons] == codes
    messages = [reason["message"] for reason in report.reasons]
    assert messages[:4] == ["three exclamation marks", "no question", "the table is gone", "KeyError: 'row'"]
    # The floor is that of the component.
    assert report.totals[0] == report.totals[4] == -2.0 and np.isnan(report.totals[1:4]).all()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (Score(math.nan), "the reward gave back nan"),
        (Score("good"), "the reward gave back str in place of a number"),
        (Score(), "a scored Score needs a value"),
        (Score(outcome="invalid"), "an invalid Score needs a reason"),
        (
            Score(1.0, outcome="floored", reason="x"),
            "a Score with the outcome floored has no value of its own",
        ),
        (Score(1.0, outcome="good"), "the outcome of a Score is scored, floored, skipped or invalid"),  # type: ignore[arg-type]
        (Score(1.0, info=["a"]), "the info of a Score is a dict, not list"),  # type: ignore[arg-type]
        ({"score": math.inf}, "the reward gave back inf"),
        (ValueError("odd"), "ValueError: odd"),
        (math.nan, "the reward gave back nan"),
        (object(), "the reward gave back object in place of a number"),
    ],
)
def test_what_cannot_be_read_is_invalid_alone(item, message: str):
    report = scored(1.0, item, 3.0)
    assert report.outcomes == ["scored", "invalid", "scored"]
    assert report.reasons[1]["code"] == "reward.failed" and message in report.reasons[1]["message"]


def test_a_single_answer_may_be_a_score():
    def one(prompt, response, reference, extra):
        return Score(len(response), info={"length": len(response)})

    report = engine(one, per="rollout").score(None, ["a", "bb"])
    assert report.totals.tolist() == [1.0, 2.0] and report.info["length"] == [1, 2]


def test_evidence_is_bounded_and_never_a_failure():
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    itself: list = []
    itself.append(itself)
    info = {
        "long": "x" * 100_000,
        "list": list(range(100_000)),
        "odd": Odd(),
        "itself": itself,
        "huge": 10**400,
        "nan": math.nan,
        "surrogate": "\ud800",
        "array": np.arange(3),
        7: np.float32(0.5),
        **{f"fact {at}": at for at in range(100)},
    }
    report = scored(Score(1.0, info=info))
    assert report.outcomes == ["scored"]
    found = report.rows[0]["components"]["mine"]["info"]
    assert len(found) == 32 and all(len(str(fact)) <= 2000 for fact in found.values())
    assert found["long"].endswith("x…") and found["odd"] == "Odd" and found["itself"] == "list"
    assert (
        found["nan"] is None
        and found["surrogate"] == "?"
        and found["array"] == [0, 1, 2]
        and found["7"] == 0.5
    )


def test_a_reward_alone_says_whether_the_answer_is_right():
    math_reward = plaudit.reward("math")
    assert math_reward("\\boxed{42}", reference="42").correct is True
    assert math_reward("\\boxed{41}", reference="42").correct is False
    assert plaudit.reward("length_penalty")("text").correct is None


def test_registering_again_leaves_engines_as_they_were():
    name = "test_scores_again"
    recipe = {"components": {"mine": {"reward": name}}}
    plaudit.register(name, lambda prompts, responses, references, extras: [1.0] * len(responses))
    before = plaudit.Engine(recipe)
    plaudit.register(name, lambda prompts, responses, references, extras: [2.0] * len(responses))
    assert before.score(None, ["a"]).totals.tolist() == [1.0]
    assert plaudit.Engine(recipe).score(None, ["a"]).totals.tolist() == [2.0]
