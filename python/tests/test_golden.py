"""The golden vectors through the package.

A vector that plaudit answers otherwise on purpose stands in `golden/differences.jsonl` with our answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import plaudit
import pytest
from conftest import ROOT

GOLDEN = ROOT / "golden"
METHODS = ("winrate", "copeland", "elo", "dgr")


def lines(name: str) -> list[dict[str, Any]]:
    with open(GOLDEN / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


OURS = {line["id"]: line["ours"] for line in lines("differences.jsonl")}
# Programs are run by the tests of crates/plaudit-code, with both isolations of the sandbox; from Python by test_code.py.
PROGRAMS = {"code_execution"}
# Rows with several instructions have a form of their own: see below.
ROWS = {"instructions"}
RULES = [
    name for name in plaudit.rewards() if (GOLDEN / f"{name}.jsonl").exists() and name not in PROGRAMS | ROWS
]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return abs(ours - theirs) <= 1e-12 * max(abs(theirs), 1.0)
    return ours == theirs


def wanted(vector: dict[str, Any]) -> list[Any]:
    """What plaudit is to say of each response of a vector."""
    if vector["id"] in OURS:
        ours = OURS[vector["id"]]
        return ours if isinstance(ours, list) else [ours]
    expected = vector["expected"]
    return expected.get("scores") or [expected["score"]]


def params(vector: dict[str, Any]) -> dict[str, Any]:
    """RM-Gallery's name of the instance is the component's key in a recipe."""
    return {key: value for key, value in vector["params"].items() if key != "name"}


def rows(vector: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The responses of a vector, each with its extra."""
    responses = vector.get("responses") or [vector["response"]]
    for at, response in enumerate(responses):
        correct = vector.get("correct")
        if isinstance(correct, list):
            correct = correct[at]
        extra = vector.get("extra", {})
        yield response, extra if correct is None else {**extra, "correct": correct}


def said(outcome: str, value: float | None, reason: dict[str, Any] | None) -> Any:
    """A number, or words such as `skipped input.missing_reference`."""
    return value if reason is None else f"{outcome} {reason['code']}"


def refused(error: plaudit.RecipeError, wanted: Any) -> bool:
    """Whether a vector is to be refused, and for the parameter that it was refused for."""
    word, _, key = str(wanted[0]).partition(" ")
    return word == "refused" and any(error["path"].endswith(key) for error in error.errors)


def test_every_rule_has_vectors():
    judged = set(plaudit.rewards()) - set(RULES)
    assert len(RULES) >= 19, RULES
    assert all(plaudit.aggregate(name, 2, [(0, 1, 0)]).scores for name in METHODS)
    assert not {"accuracy", "rouge", "kimi.length"} & judged


@pytest.mark.parametrize("name", RULES)
def test_rewards_by_themselves(name: str):
    wrong = []
    for vector in lines(f"{name}.jsonl"):
        if "responses" in vector:
            continue  # Compared within a group: see below.
        try:
            reward = plaudit.reward(name, **params(vector))
        except plaudit.RecipeError as error:
            if not refused(error, wanted(vector)):
                wrong.append((vector["id"], str(error)))
            continue
        (response, extra), *_ = rows(vector)
        tokens = vector.get("tokens")
        outcome = reward.score(response, reference=vector.get("reference"), tokens=tokens, extra=extra)
        ours = [said(outcome.outcome, outcome.value, outcome.reason)]
        if not same(ours, wanted(vector)):
            wrong.append((vector["id"], ours, wanted(vector)))
    assert not wrong


@pytest.mark.parametrize("name", RULES)
def test_rewards_in_an_engine(name: str):
    by_params: dict[str, list[dict[str, Any]]] = {}
    for vector in lines(f"{name}.jsonl"):
        by_params.setdefault(json.dumps(params(vector), sort_keys=True), []).append(vector)
    wrong = []
    for written, vectors in by_params.items():
        recipe = {"components": {"it": {"reward": name, **json.loads(written)}}}
        try:
            engine = plaudit.Engine(recipe)
        except plaudit.RecipeError as error:
            wrong += [(each["id"], str(error)) for each in vectors if not refused(error, wanted(each))]
            continue
        each = [(vector, *row) for vector in vectors for row in rows(vector)]
        report = engine.score(
            None,
            [response for _, response, _ in each],
            [vector.get("reference") for vector, _, _ in each],
            [vector["id"] for vector, _, _ in each],
            [vector.get("tokens") for vector, _, _ in each],
            [extra for _, _, extra in each],
        )
        answers: dict[str, list[Any]] = {}
        for (vector, _, _), row in zip(each, report.rows, strict=True):
            own = row["components"]["it"]
            answer = said(own["outcome"], own.get("value"), own.get("reason"))
            answers.setdefault(vector["id"], []).append(answer)
        for vector in vectors:
            ours, theirs = answers[vector["id"]], wanted(vector)
            if engine.compares_groups and len(ours) == 1:
                theirs = ["invalid group.too_small"]  # A recipe has nothing to compare such a response with.
            if not same(ours, theirs):
                wrong.append((vector["id"], ours, theirs))
    assert not wrong


def test_instructions():
    reward = plaudit.reward("instructions", semantics="published", credit="share")
    wrong, count = [], 0
    for row in lines("instructions_rows.jsonl"):
        if row["credit"]["strict"]["all"] == "error" or any(
            mark in row["response"] for mark in ("think>", "answer>", "<|assistant|>")
        ):
            continue
        count += 1
        extra = {"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"]}
        outcome = reward.score(row["response"], extra=extra)
        ids = [one["id"] for one in outcome.info["constraints"]]
        followed = [one["followed"] for one in outcome.info["constraints"]]
        if not same(outcome.value, row["credit"]["strict"]["share"]) or ids != row["instruction_id_list"]:
            wrong.append((row["id"], outcome.value))
        if followed != row["expected"]["strict"]:
            wrong.append((row["id"], followed))
    assert not wrong
    assert count > 400


def test_compositions():
    wrong = []
    for vector in lines("simple_composition.jsonl"):
        weights, rewards = vector["params"]["weights"], vector["params"]["rewards"]
        components = {
            name: {
                "reward": each["cls"],
                **each["params"],
                **({"weight": weights[name]} if name in weights else {}),
            }
            for name, each in rewards.items()
        }
        try:
            engine = plaudit.Engine({"components": components, "combine": "mean"})
        except plaudit.RecipeError as error:
            ours: Any = f"refused {error.errors[0]['code']}"
        else:
            report = engine.score(None, [vector["response"]], [vector["reference"]])
            ours = said(report.outcomes[0], report.totals[0].item(), report.reasons[0])
        if not same([ours], wanted(vector)):
            wrong.append((vector["id"], ours, wanted(vector)))
    assert not wrong


@pytest.mark.parametrize("name", METHODS)
def test_comparisons(name: str):
    wrong = []
    for vector in lines(f"pairwise_{name}.jsonl"):
        made = plaudit.aggregate(name, n=vector["n"], comparisons=map(tuple, vector["comparisons"]))
        if not same(made.scores, wanted(vector)):
            wrong.append((vector["id"], made.scores))
        if vector["id"] in OURS or name == "dgr":
            continue
        evidence = {key: value for key, value in vector["expected"].items() if key in made.info}
        if not all(same(made.info[key], value) for key, value in evidence.items()):
            wrong.append((vector["id"], made.info))
    assert not wrong


def test_hostile_recipes_are_refused(tmp_path):
    for case in lines("abuse/recipe_cases.jsonl"):
        place = tmp_path / f"{case['id']}.yaml"
        place.write_text(case["payload"], encoding="utf-8", errors="surrogatepass")
        with pytest.raises(plaudit.RecipeError) as caught:
            plaudit.Engine(place)
        assert caught.value.errors, case["id"]
        assert "THISISASECRET" not in str(caught.value) and "root:" not in str(caught.value), case["id"]
