"""Responses that are conversations: every wire form, what is read of them, right or wrong, and rewards per turn."""

from __future__ import annotations

import plaudit
import pytest

RECIPE = {
    "components": {
        "right": {"reward": "number_accuracy", "weight": 1.0, "per_turn": True},
        "brief": {"reward": "total_length", "weight": 0.5, "unit": "word", "max": 100, "band": 50},
    },
    "turn_rewards": {"mode": "state_delta"},
}
CALL = {"name": "multiply", "arguments": {"a": 6, "b": 7}}
CHAT = [
    {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": CALL}]},
    {"role": "tool", "content": "42"},
    {"role": "assistant", "content": "It is 42."},
]
ITEMS = {
    "output": [
        {"type": "function_call", "call_id": "c", "name": "multiply", "arguments": '{"a": 6, "b": 7}'},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 42."}]},
    ]
}


def test_conversations_and_text_are_scored_side_by_side():
    engine = plaudit.Engine(RECIPE)
    unknown = [*CHAT[:2], {"role": "assistant", "content": "I do not know."}]
    report = engine.score(
        responses=[CHAT, ITEMS, unknown, CHAT[:2], "It is 42."],
        references=["42"] * 5,
        finish_reasons=["stop", "stop", "stop", "tool_calls", True],
    )
    assert report.totals.tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert report.correct == [True, True, False, False, True]
    assert report.turn_rewards == [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0], [1.0]]
    assert [result.correct for result in report] == report.correct
    assert report.statistics["correctness"] == {"right": 3, "wrong": 2}
    assert report.rows[0]["correct"] is True and report.rows[0]["turn_rewards"] == [0.0, 1.0]


def test_a_column_of_messages_is_read_from_arrow():
    pa = pytest.importorskip("pyarrow")
    other = [{"role": "assistant", "content": "41", "tool_calls": None}]
    table = pa.table({"responses": [CHAT, other]})
    report = plaudit.Engine(RECIPE).score(responses=table["responses"], references=["42", "42"])
    assert report.correct == [True, False]


def test_a_join_takes_conversations():
    join = plaudit.Engine(RECIPE).join()
    result = join.score("g", 1, CHAT, reference="42", finish_reason="stop", tools=[{"name": "multiply"}])
    assert (result.total, result.correct, result.turn_rewards) == (1.0, True, [0.0, 1.0])
    assert plaudit.reward("number_accuracy").score(CHAT, reference="42").value == 1.0


def test_a_conversation_that_cannot_be_read_is_one_invalid_rollout():
    engine = plaudit.Engine(RECIPE)
    report = engine.score(
        responses=[CHAT, [{"role": "wizard"}], "42", "\ud800", [{"text": "a", "mask": 2}]],
        references=["42"] * 5,
    )
    assert [result.total for result in report] == [1.0, None, 1.0, None, None]
    assert [result.reason and result.reason["code"] for result in report] == [
        None,
        "input.response",
        None,
        "input.utf8",
        "input.response",
    ]
    assert 'responses[1][0].role: "wizard" is not known' in list(report)[1].reason["message"]
    assert report.statistics["outcomes"]["invalid"] == 3
    alone = plaudit.reward("number_accuracy").score([{"role": "wizard"}], reference="42")
    assert (alone.value, alone.reason["code"]) == (None, "input.response")


def test_a_bad_shape_is_named_by_its_path():
    engine = plaudit.Engine(RECIPE)
    with pytest.raises(plaudit.ArgumentError, match="finish_reasons has 1 items"):
        engine.score(responses=["a", "b"], finish_reasons=["stop"])
    with pytest.raises(plaudit.ArgumentError, match=r"tools\[0\]: a tool with a name is wanted"):
        engine.score(responses=["a"], tools=[{"parameters": {}}])


def test_components_are_normalised_over_their_group():
    recipe = {"components": {"right": {"reward": "number_accuracy", "weight": 2.0, "normalize": "group"}}}
    report = plaudit.Engine(recipe).score(
        responses=["1", "2", "3"], references=["1", "1", "1"], groups=["g", "g", "g"]
    )
    std = (2 / 9 + 4 / 9) ** 0.5 / 2**0.5
    expected = [2 * (value - 1 / 3) / (std + 1e-4) for value in (1.0, 0.0, 0.0)]
    assert report.totals.tolist() == pytest.approx(expected, abs=1e-6)
    assert report.components["right"].tolist() == [1.0, 0.0, 0.0]
