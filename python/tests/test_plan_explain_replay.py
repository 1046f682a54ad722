"""`Engine.plan`, `Engine.explain` and `plaudit.replay`, against the commands of the same names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import plaudit
import pytest
from conftest import BINARY

PROMPTS = ["question"] * 4
RESPONSES = [f"[[quality:{at}.5]]" for at in range(4)]
PAIRS = 6


def recipe(judge: dict) -> dict:
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    return {"components": {"principle": principle}, "judges": {"main": judge}}


def command(*arguments: str | Path) -> str:
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def files(judge_sim, tmp_path: Path) -> tuple[Path, Path, dict]:
    """A recipe and rollouts for the command, and the recipe as a dict."""
    written = recipe(judge_sim().judge(price={"input": 1.0, "output": 1.0}))
    (tmp_path / "recipe.json").write_text(json.dumps(written))
    rows = [
        {"id": f"r{at}", "prompt": prompt, "response": response}
        for at, (prompt, response) in enumerate(zip(PROMPTS, RESPONSES, strict=True))
    ]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "recipe.json", tmp_path / "rollouts.jsonl", written


def test_plan_is_that_of_the_command(files):
    name, rollouts, written = files
    told = json.loads(command("plan", rollouts, "--recipe", name, "--json"))
    planned = plaudit.Engine(written).plan(PROMPTS, RESPONSES)
    assert planned == told and planned["components"][0]["calls"] == PAIRS


def test_a_plan_asks_nobody_and_knows_the_state(judge_sim, tmp_path: Path):
    sim = judge_sim()
    with plaudit.Engine(recipe(sim.judge()), state=tmp_path / "state") as engine:
        assert engine.plan(PROMPTS, RESPONSES)["components"][0]["known"] == 0 and not sim.calls()
        engine.score(PROMPTS, RESPONSES)
        assert engine.plan(PROMPTS, RESPONSES)["components"][0]["known"] == PAIRS
    assert len(sim.calls()) == PAIRS
    assert plaudit.Engine("quickstart").plan(responses=["a"]) == {"rollouts": 1, "components": []}
    with pytest.raises(plaudit.RunError, match="closed"):
        engine.plan(PROMPTS, RESPONSES)


def test_explaining_what_was_scored_asks_nobody(judge_sim):
    sim = judge_sim()
    engine = plaudit.Engine(recipe(sim.judge()))
    report = engine.score(PROMPTS, RESPONSES)
    explained = engine.explain(PROMPTS, RESPONSES)
    assert len(sim.calls()) == PAIRS and [each["result"] for each in explained] == report.rows
    assert [len(each["exchanges"]) for each in explained] == [3, 3, 3, 3]
    first = explained[0]["exchanges"][0]
    assert first["judge"] == "main" and first["component"] == "principle" and "1" in first["shown"]
    assert "is better" in first["verdict"] and first["reply"] and "prompt" not in first
    full = engine.explain(PROMPTS, RESPONSES, full=True)[0]["exchanges"][0]
    assert RESPONSES[0] in full["prompt"]


def test_unreadable_rollouts_are_explained_too():
    explained = plaudit.Engine("quickstart").explain(responses=["\ud800", "a"], ids=["x", "y"])
    assert [each["result"]["id"] for each in explained] == ["x", "y"]
    assert explained[0]["result"]["reason"]["code"] == "input.utf8" and explained[0]["exchanges"] == []


def test_replay_and_explain_are_those_of_the_commands(files, tmp_path: Path):
    name, rollouts, written = files
    results = command("score", rollouts, "--recipe", name, "--state", tmp_path / "state")
    rows = plaudit.replay(tmp_path / "state")
    assert rows == [json.loads(line) for line in results.splitlines()] and len(rows) == 4
    told = json.loads(command("explain", "r1", "--state", tmp_path / "state", "--json"))
    engine = plaudit.Engine(written, state=tmp_path / "state")
    ids = [row["id"] for row in rows]
    assert engine.explain(PROMPTS, RESPONSES, ids=ids)[1] == told


def test_replay_names_what_is_missing(tmp_path: Path):
    with pytest.raises(plaudit.RunError, match="there is no folder") as missing:
        plaudit.replay(tmp_path / "none")
    assert missing.value.code == "run.arguments"
    plaudit.Engine("quickstart", state=tmp_path / "state").close()
    with pytest.raises(plaudit.RunError, match="holds no run that has finished"):
        plaudit.replay(str(tmp_path / "state"))
