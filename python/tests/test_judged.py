"""Judged recipes from Python: calls, the state, and comparison with references."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import plaudit
import pytest

GROUPS = [at // 4 for at in range(16)]
PROMPTS = [f"question {group}" for group in GROUPS]
RESPONSES = [f"[[quality:{(at * 7) % 5}.{at}]]" for at in range(16)]
PAIRS = 4 * 6


def recipe(judge: dict, **more) -> dict:
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    return {"name": "judged", "components": {"principle": principle}, "judges": {"main": judge}, **more}


def test_every_pair_is_asked_once_and_counted(judge_sim):
    sim = judge_sim()
    engine = plaudit.Engine(recipe(sim.judge(price={"input": 1.0, "output": 1.0})))
    report = engine.score(PROMPTS, RESPONSES)
    assert report.outcomes == ["scored"] * 16 and len(sim.calls()) == PAIRS
    usage = engine.judge_usage[0]
    assert (usage["judge"], usage["calls"], usage["cached"]) == ("main", PAIRS, 0)
    assert usage["cost"] > 0 and usage["peak"] <= 64
    for group in range(4):
        places = [at for at in range(16) if GROUPS[at] == group]
        qualities = [float(RESPONSES[at][10:-2]) for at in places]
        assert np.argmax(report.totals[places]) == np.argmax(qualities)


def test_groups_come_from_equal_prompts(judge_sim):
    engine = plaudit.Engine(recipe(judge_sim().judge()))
    assert engine.compares_groups
    assert (
        engine.score(PROMPTS, RESPONSES).totals.tolist()
        == engine.score(PROMPTS, RESPONSES, groups=GROUPS).totals.tolist()
    )


def test_nothing_is_bought_twice_with_a_state(judge_sim, tmp_path: Path):
    sim = judge_sim()
    first = plaudit.Engine(recipe(sim.judge()), state=tmp_path / "state").score(PROMPTS, RESPONSES)
    again = plaudit.Engine(recipe(sim.judge()), state=str(tmp_path / "state"))
    assert again.score(PROMPTS, RESPONSES).totals.tolist() == first.totals.tolist()
    assert len(sim.calls()) == PAIRS and again.judge_usage[0]["cached"] == PAIRS


def test_statistics_have_the_same_keys_where_nothing_was_scored(judge_sim):
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "none", "attempts": 1, "patience": "1ms"}
    down = plaudit.Engine(recipe(judge)).score(PROMPTS, RESPONSES)
    up = plaudit.Engine(recipe(judge_sim().judge())).score(PROMPTS, RESPONSES)
    assert set(down.outcomes) == {"invalid"} and set(up.outcomes) == {"scored"}
    none, some = down.statistics["total"], up.statistics["total"]
    assert set(none) == set(some) and set(none["quantiles"]) == set(some["quantiles"])
    assert math.isnan(none["mean"]) and f"{none['quantiles']['p50']:.2f}" == "nan"
    assert down.info["wins"] == [None] * len(RESPONSES) and "win" not in down.info
    compared = plaudit.Engine(recipe(judge)).score(PROMPTS, RESPONSES, RESPONSES, validate=True)
    assert compared.info["win"] == [None] * len(RESPONSES)
    assert not down.valid.any() and up.valid.all()


def test_a_judge_that_is_down_gives_no_number():
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "none", "attempts": 1, "patience": "1ms"}
    report = plaudit.Engine(recipe(judge, invalid_value=-999.0)).score(PROMPTS, RESPONSES)
    assert report.outcomes == ["invalid"] * 16
    assert np.isnan(report.totals).all() and set(report.totals_or_invalid_value.tolist()) == {-999.0}
    assert all(reason["code"].startswith("judge.") for reason in report.reasons)


def test_a_budget_holds_exactly(judge_sim):
    sim = judge_sim()
    report = plaudit.Engine(recipe(sim.judge(budget={"calls": 10}))).score(PROMPTS, RESPONSES)
    assert len(sim.calls()) == 10 and "invalid" in report.outcomes


def test_references_join_on_demand(judge_sim):
    references = ["[[quality:2.5]]"] * 16
    engine = plaudit.Engine(recipe(judge_sim().judge()))
    assert not engine.validates
    plain = engine.score(PROMPTS, RESPONSES, references)
    assert "win" not in plain.info and len(plain) == 16
    report = engine.score(PROMPTS, RESPONSES, references, validate=True)
    assert len(report) == 16
    qualities = [float(response[10:-2]) for response in RESPONSES]
    wins = report.info["win"]
    assert set(wins) <= {True, False} and len(wins) == 16
    sure = [at for at, quality in enumerate(qualities) if abs(quality - 2.5) > 1.0]
    assert sum(bool(wins[at]) == (qualities[at] > 2.5) for at in sure) >= 0.8 * len(sure)
    assert all(bool(both) >= bool(win) for win, both in zip(wins, report.info["win_and"], strict=True))
    assert all(isinstance(score, float) for score in report.info["comparison_score"])
    assert report.info["principle.win"] == wins


def test_the_recipe_decides_where_nothing_is_said(judge_sim):
    engine = plaudit.Engine(recipe(judge_sim().judge(), validation={"reference": "include"}))
    assert engine.validates
    references = ["[[quality:2.5]]"] * 16
    assert "win" in engine.score(PROMPTS, RESPONSES, references).info
    assert "win" not in engine.score(PROMPTS, RESPONSES, references, validate=False).info


def test_the_embedded_judge_needs_no_network():
    report = plaudit.Engine("overlap").score(["p", "p"], ["the cat sat", "a dog ran"], ["the cat sat"] * 2)
    assert report.outcomes == ["scored", "scored"] and report.totals[0] > report.totals[1]


def test_one_judged_reward_by_itself(judge_sim):
    judges = {"main": judge_sim().judge()}
    reward = plaudit.reward("principle", mode="pointwise", principles=["honesty"], judges=judges)
    outcome = reward.score("[[quality:3.0]]", prompt="p")
    assert outcome.outcome == "scored" and 0.0 <= outcome.value <= 1.0


def test_too_large_groups_are_refused_before_any_call(judge_sim):
    sim = judge_sim()
    written = recipe(sim.judge())
    written["components"]["principle"]["aggregate"] = "dgr"
    engine = plaudit.Engine(written)
    assert engine.group_limit == ("principle", "dgr", 16)
    engine.check_group_size(16)
    with pytest.raises(
        ValueError, match="groups of 17 are too large for the component `principle`: .* dgr takes at most 16"
    ):
        engine.check_group_size(17)
    report = engine.score(["q"] * 17, [f"response {at}" for at in range(17)])
    assert report.outcomes == ["invalid"] * 17 and sim.calls() == []
    assert plaudit.Engine("quickstart").group_limit is None


def test_a_prompt_without_a_fence_is_warned_of(judge_sim):
    own = {
        "reward": "judge",
        "mode": "pointwise",
        "prompt": "Rate {{ response }}",
        "answer": {"json": "s", "min": 0, "max": 1},
    }
    written = {"components": {"own": own}, "judges": {"main": judge_sim().judge()}}
    with pytest.warns(UserWarning, match="components.own.prompt: shows responses without"):
        plaudit.Engine(written)
