"""Verdicts of one tiny judge behind every server: each form by hand, the form that `auto` ends with, and nonsense, which is no number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from launch import Scored, Server

# How many calls three groups of three take.
CALLS = {"pairwise": 9, "pointwise": 9, "listwise": 3}
FORMS = ["logprobs", "json", "tag"]
# A ranking is not one token.
ASKED = [(mode, form) for mode in CALLS for form in FORMS if (mode, form) != ("listwise", "logprobs")]
QUALITIES = [[2, 9, 5], [7, 1, 4], [3, 6, 8]]
# How many replies `auto` may pay for beyond those of the form that it ends with: three for each of two better forms.
FEW = 6


def recipe(server: Server, mode: str, form: str, **settings: Any) -> dict[str, Any]:
    quality = {"reward": "principle", "mode": mode, "principles": ["helpfulness"]}
    quality |= {"scale": 9} if mode == "pointwise" else {}
    return {
        "components": {"quality": quality},
        "judges": {"main": server.judge(answer_format=form, max_tokens=90, **settings)},
    }


def groups(behaviour: str, qualities: list[list[int]] = QUALITIES) -> list[tuple[str, list[str]]]:
    return [
        (f"{behaviour} {at}", [f"quality {quality}" for quality in group])
        for at, group in enumerate(qualities)
    ]


def assert_right(scored: Scored, mode: str) -> None:
    """Every response is scored, and as it deserves."""
    assert scored.outcomes == {"scored"}, (scored.reasons, scored.said)
    totals = [total for total in scored.totals if total is not None]
    for at, group in enumerate(QUALITIES):
        of = totals[3 * at : 3 * at + 3]
        if mode == "pointwise":
            assert of == pytest.approx([quality / 9 for quality in group])
        else:
            assert sorted(range(3), key=of.__getitem__) == sorted(range(3), key=group.__getitem__)
            assert len(set(of)) == 3


def best(server: Server, mode: str, behaviour: str) -> str:
    """The best form that can be had: of rankings there are no probabilities, and a chatty judge does not say one letter."""
    left = {"logprobs"} if mode == "listwise" or behaviour == "Chatty" else set()
    return next(form for form in server.forms if form not in left)


@pytest.mark.parametrize(("mode", "form"), ASKED)
def test_forms_by_hand(server: Server, score: Callable[..., Scored], mode: str, form: str) -> None:
    scored = score(recipe(server, mode, form), groups("Plain"))
    if form in server.forms:
        assert_right(scored, mode)
        assert scored.judge["calls"] == CALLS[mode]
    else:
        assert scored.outcomes == {"invalid"} and set(scored.totals) == {None}, scored.said


@pytest.mark.parametrize("behaviour", ["Plain", "Chatty"])
@pytest.mark.parametrize("mode", CALLS)
def test_auto_ends_with_the_best_form(
    server: Server, score: Callable[..., Scored], mode: str, behaviour: str
) -> None:
    found = score(recipe(server, mode, "auto"), groups(behaviour))
    assert_right(found, mode)
    assert found.judge["calls"] <= CALLS[mode] + FEW, found.judge
    [choice] = found.judge["formats"]
    assert choice["format"] == best(server, mode, behaviour), choice


@pytest.mark.parametrize("behaviour", ["Nonsense", "Endless"])
@pytest.mark.parametrize("form", ["auto", *FORMS])
@pytest.mark.parametrize("mode", ["pairwise", "pointwise"])
def test_nonsense_is_never_a_number(
    server: Server, score: Callable[..., Scored], mode: str, form: str, behaviour: str
) -> None:
    scored = score(recipe(server, mode, form), groups(behaviour, [[3, 8]]))
    assert scored.outcomes == {"invalid"} and set(scored.totals) == {None}, scored.rows
    assert all(code.startswith("judge.") for code in scored.reasons)
