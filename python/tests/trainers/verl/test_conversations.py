"""Agent loops of verl: the tokens of tools are told from the model's own by the response mask."""

from __future__ import annotations

import numpy as np
import plaudit
from plaudit.verl.rollout_reader import extra, response_of


class Characters:
    """A tokenizer with one token a character."""

    def decode(self, ids, skip_special_tokens):
        text = "".join(map(chr, ids))
        return text.replace("<|im_end|>", "") if skip_special_tokens else text


def spans(*parts: tuple[str, int]):
    ids = [ord(char) for text, _ in parts for char in text]
    mask = [flag for text, flag in parts for _ in text]
    return response_of(Characters(), ids, mask)


def test_a_response_without_tools_stays_text():
    assert spans(("It is 42.<|im_end|>", 1)) == "It is 42."
    assert response_of(Characters(), [52, 50], None) == "42"
    assert response_of(Characters(), [], []) == ""


def test_what_a_tool_said_earns_nothing():
    tool = "\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    call = '<tool_call>\n{"name": "mul", "arguments": {"a": 6, "b": 7}}\n</tool_call><|im_end|>'
    right = spans((call, 1), (tool, 0), ("It is 42.<|im_end|>", 1))
    wrong = spans((call, 1), (tool, 0), ("I do not know.<|im_end|>", 1))
    engine = plaudit.Engine({"components": {"right": {"reward": "number_accuracy"}}})
    report = engine.score(responses=[right, wrong], references=["42", "42"])
    assert report.correct == [True, False]
    assert list(report.totals) == [1.0, 0.0]


def test_turns_of_an_unknown_template_are_refused():
    other = spans(("a", 1), ("[TOOL_RESULTS]42[/TOOL_RESULTS]", 0), ("b", 1))
    engine = plaudit.Engine({"components": {"right": {"reward": "number_accuracy"}}})
    (refused, read) = engine.score(responses=[other, "42"], references=["42", "42"])
    assert (refused.total, refused.reason["code"], read.total) == (None, "input.response", 1.0)
    assert "no chat template that is known" in refused.reason["message"]


def test_a_row_hands_its_rubric_on_wherever_verl_keeps_it():
    rubric = [{"criterion": "Says yes", "points": 5}]
    rows = [
        {"rubrics": np.array(rubric, dtype=object), "reward_model": {"ground_truth": ""}},
        {"reward_model": {"ground_truth": "", "rubrics": rubric}, "extra_info": {"index": 1}},
        {
            "extra_info": {"reward_model": {"rubrics": rubric}},
            "reward_model": {"ground_truth": "", "rubrics": []},
        },
    ]
    recipe = {
        "components": {"rubric": {"reward": "rubric"}},
        "judges": {"main": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "patience": "100ms"}},
    }
    report = plaudit.Engine(recipe).score(["q"] * 4, ["yes"] * 4, extras=[*map(extra, rows), {}])
    codes = [reason["code"] for reason in report.reasons]
    # All that is missing is the judge.
    assert all(code.startswith("judge.") for code in codes[:3]), codes
    assert codes[3] == "input.missing_rubric"
