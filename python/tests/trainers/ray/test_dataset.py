"""Tests of `score_dataset`: every rollout scored once, with its group, within the judge limits, also when actors die."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fatal
import numpy as np
import plaudit
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from gate import Gate
from plaudit.ray import score_dataset
from rollouts import RULES, pairwise, rollouts, write

HERE = Path(__file__).parent
DEADLINE = 600.0


def read(place: Path):
    """The data set of a folder, from memory: Ray starts several processes to read files."""
    return ray.data.from_arrow([pq.read_table(part) for part in sorted(place.iterdir())])


def by_id(ds) -> dict[str, dict]:
    rows = ds.take_all()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "an id came back twice"
    return found


def calls(sim) -> int:
    return len(sim.calls())


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.01)


def test_50_000_scattered_rollouts_and_a_killed_actor(cluster, tmp_path: Path):
    table = rollouts(groups=6_250, size=8)
    marker = tmp_path / "killed"
    fatal_once = {
        "reward": fatal.fatal_once.__name__,
        "weight": 0,
        "mark": "<answer>3000<",
        "marker": str(marker),
    }
    recipe = {**RULES, "components": {**RULES["components"], "fatal": fatal_once}}
    began = time.monotonic()
    out = tmp_path / "out"
    ds = ray.data.read_parquet(str(write(table, tmp_path / "data", 20)))
    scored = score_dataset(ds, recipe, actors=2, shards=32, out=out)
    found = by_id(scored)
    took = time.monotonic() - began
    assert marker.exists(), "no actor was killed"
    assert len(found) == 50_000
    report = plaudit.Engine(recipe).score(
        table["prompt"], table["response"], table["reference"], table["group"], ids=table["id"]
    )
    assert set(report.outcomes) == {"scored"}
    totals = np.array([found[name]["total"] for name in table["id"].to_pylist()])
    assert np.array_equal(totals, report.totals), "the totals are not those of one engine"
    print(f"50,000 rollouts with a killed actor: {took:.1f} s")


def test_a_run_that_was_ended_goes_on_where_it_was(cluster, tmp_path: Path, judge_sim):
    sim = judge_sim("--latency", "20ms")
    groups, size = 96, 4
    pairs = groups * size * (size - 1) // 2
    data = write(rollouts(groups, size), tmp_path / "data", 4)
    recipe, out = pairwise(sim.judge(concurrency=8)), tmp_path / "out"
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    arguments = [
        sys.executable,
        str(HERE / "drive.py"),
        cluster,
        str(data),
        str(out),
        str(tmp_path / "recipe.json"),
    ]
    driver = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)

    def notes() -> dict[Path, int]:
        return {place: place.stat().st_mtime_ns for place in (out / "notes").glob("shard-*.json")}

    until(lambda: len(notes()) >= 4 or driver.poll() is not None, "the fourth shard")
    driver.kill()
    driver.wait()
    before, first = notes(), calls(sim)
    assert 4 <= len(before) < 16, driver.stderr and driver.stderr.read()
    assert 0 < first < pairs

    found = by_id(score_dataset(read(data), recipe, out=out, actors=2))
    assert len(found) == groups * size
    assert {row["outcome"] for row in found.values()} == {"scored"}
    assert {place: time for place, time in notes().items() if place in before} == before, (
        "finished shards were redone"
    )
    # What was asked twice belongs to the shards that the actors had in hand when they ended.
    kept = sum(json.loads(place.read_text())["rows"] for place in before) // size * 6
    assert pairs <= sum(call["status"] == 200 for call in sim.calls()) <= pairs + (pairs - kept)

    total = calls(sim)
    again = by_id(score_dataset(read(data), recipe, out=out, actors=2))
    assert again == found and calls(sim) == total, "a finished run asks nothing"


def test_four_actors_keep_to_one_limit(cluster, tmp_path: Path, judge_sim):
    data = write(rollouts(groups=64, size=4), tmp_path / "data", 4)
    sim = judge_sim()
    # Each may have two calls in flight, so a third is another actor's; Ray does not say how many of them it gives work.
    gate = Gate(sim.url, wanted=3)
    recipe = pairwise({**sim.judge(concurrency=8, timeout="600s"), "base_url": gate.url})
    try:
        found = by_id(score_dataset(read(data), recipe, actors=4, shards=32, state=tmp_path / "state"))
    finally:
        gate.close()
    assert len(found) == 256 and {row["outcome"] for row in found.values()} == {"scored"}
    assert 2 < gate.most <= 8, f"{gate.most} calls were in flight"
    assert len(list((tmp_path / "state").glob("actor-*"))) == 4


def test_state_stores_judgments(cluster, tmp_path: Path, judge_sim):
    sim = judge_sim()
    data = write(rollouts(groups=16, size=4), tmp_path / "data", 2)
    recipe = pairwise(sim.judge(budget={"calls": 96}))
    first = by_id(score_dataset(read(data), recipe, actors=1, shards=4, state=tmp_path / "state"))
    assert calls(sim) == 96 and {row["outcome"] for row in first.values()} == {"scored"}
    assert by_id(score_dataset(read(data), recipe, actors=1, shards=4, state=tmp_path / "state")) == first
    assert calls(sim) == 96


def test_redis_shares_judgments_and_budgets(cluster, tmp_path: Path, judge_sim, redis: str):
    sim = judge_sim()
    data = write(rollouts(groups=16, size=4), tmp_path / "data", 2)
    recipe = pairwise(sim.judge(budget={"calls": 97}))
    first = by_id(score_dataset(read(data), recipe, actors=2, shards=8, state=redis))
    assert calls(sim) == 96 and {row["outcome"] for row in first.values()} == {"scored"}
    assert by_id(score_dataset(read(data), recipe, actors=1, shards=3, state=redis)) == first
    assert calls(sim) == 96, "another number of actors finds every judgment"
    more = write(rollouts(groups=4, size=4, seed=2), tmp_path / "more", 1)
    spent = by_id(score_dataset(read(more), recipe, actors=2, shards=4, state=redis))
    assert calls(sim) == 97 and "invalid" in {row["outcome"] for row in spent.values()}


def test_a_budget_wants_a_state(cluster, tmp_path: Path, judge_sim):
    data = write(rollouts(groups=1, size=2), tmp_path / "data", 1)
    with pytest.raises(ValueError, match="judge main has a budget.*give state="):
        score_dataset(read(data), pairwise(judge_sim().judge(budget={"calls": 10})))


def test_another_recipe_and_other_data_are_refused(cluster, tmp_path: Path, judge_sim):
    sim, table = judge_sim(), rollouts(groups=12, size=3)
    recipe, out = pairwise(sim.judge()), tmp_path / "out"
    terms = {"out": out, "actors": 1, "shards": 4}
    data = write(table, tmp_path / "data", 2)
    score_dataset(read(data), recipe, **terms)
    asked = calls(sim)
    other = {**recipe, "components": {"principle": {**recipe["components"]["principle"], "ties": False}}}
    with pytest.raises(ValueError, match="recipe_fingerprint was"):
        score_dataset(read(data), other, **terms)
    with pytest.raises(ValueError, match="overrides was {}, now"):
        score_dataset(read(data), recipe, overrides={"components.principle.weight": 2.0}, **terms)
    with pytest.raises(ValueError, match="shards was 4, now 5"):
        score_dataset(read(data), recipe, **{**terms, "shards": 5})
    fewer = write(table.slice(1), tmp_path / "fewer", 2)
    with pytest.raises(ValueError, match="the data have changed.*was made from 12 rows, now it has 11"):
        score_dataset(read(fewer), recipe, **terms)
    responses = ["other", *table["response"].to_pylist()[1:]]
    changed = write(table.set_column(3, "response", pa.array(responses)), tmp_path / "changed", 2)
    with pytest.raises(ValueError, match="the data have changed.*now it has 12 others"):
        score_dataset(read(changed), recipe, **terms)
    # Where the judge is may change, and the order of the rows.
    turned = write(table.take(pa.array(range(table.num_rows - 1, -1, -1))), tmp_path / "turned", 3)
    same = score_dataset(
        read(turned), recipe, overrides={"judges.main.base_url": "http://127.0.0.1:9/v1"}, **terms
    )
    assert same.count() == 36 and calls(sim) == asked


def test_invalid_shards_are_scored_again_on_demand(cluster, tmp_path: Path, judge_sim):
    sim = judge_sim()
    data = write(rollouts(groups=6, size=3), tmp_path / "data", 1)
    recipe, out = pairwise(sim.judge(attempts=1)), tmp_path / "out"
    down = {"judges.main.base_url": "http://127.0.0.1:9/v1", "judges.main.patience": "1ms"}
    terms = {"out": out, "actors": 1, "shards": 3}
    failed = by_id(score_dataset(read(data), recipe, overrides=down, **terms))
    assert {row["outcome"] for row in failed.values()} == {"invalid"}
    assert {row["total"] for row in failed.values()} == {None}
    assert by_id(score_dataset(read(data), recipe, **terms)) == failed
    healed = by_id(score_dataset(read(data), recipe, again=True, **terms))
    assert {row["outcome"] for row in healed.values()} == {"scored"} and len(healed) == 18


def test_other_names_prompts_as_groups_and_columns(cluster, tmp_path: Path):
    table = rollouts(groups=5, size=4)
    messages = [[{"role": "user", "content": text}] for text in table["prompt"].to_pylist()]
    data = pa.table(
        {
            "question": messages,
            "completion": table["response"],
            "reward_model": [{"ground_truth": text} for text in table["reference"].to_pylist()],
            "uid": table["id"],
            "source": ["here"] * 20,
        }
    )
    fields = {
        "prompt": "question",
        "response": "completion",
        "reference": "reward_model.ground_truth",
        "id": "uid",
    }
    scored = score_dataset(
        read(write(data, tmp_path / "data", 3)),
        RULES,
        fields=fields,
        group="prompt",
        actors=1,
        shards=3,
        keep_columns=True,
    )
    found = by_id(scored)
    report = plaudit.Engine(RULES).score(messages, table["response"], table["reference"])
    assert [found[name]["total"] for name in table["id"].to_pylist()] == report.totals.tolist()
    assert {row["source"] for row in found.values()} == {"here"}
    assert len({row["group"] for row in found.values()}) == 5


def test_rows_of_other_types_are_invalid_and_end_nothing(cluster, tmp_path: Path):
    single = {"components": {"format": {"reward": "reasoning_format"}}}
    for reference in ([0.5, 2.0, None, 4.0], [["a"], None, None, ["b"]]):
        table = pa.table(
            {
                "id": ["a", "b", "c", "d"],
                "group": [1.0, 1.0, 2.5, 2.0],
                "response": ["x", "y", "z", "z"],
                "reference": reference,
            }
        )
        found = by_id(score_dataset(ray.data.from_arrow(table), single, actors=1, shards=2))
        wrong = {name for name, row in found.items() if row["reason_code"] == "input.schema"}
        assert wrong == ({"a", "c"} if reference[1] else {"a", "c", "d"})
        assert {row["outcome"] for name, row in found.items() if name not in wrong} == {"scored"}
        assert found["b"]["group"] == "1"


def test_engine_that_cannot_be_made_is_an_error(cluster, tmp_path: Path, judge_sim):
    data = write(rollouts(groups=1, size=2), tmp_path / "data", 1)
    recipe = pairwise(judge_sim().judge(api_key_env="PLAUDIT_TEST_NO_SUCH_KEY"))
    with pytest.raises(plaudit.RunError, match="PLAUDIT_TEST_NO_SUCH_KEY"):
        score_dataset(read(data), recipe, actors=1, shards=2)
    with pytest.raises(plaudit.RecipeError):
        score_dataset(read(data), {"components": {"a": {"reward": "no_such_reward"}}})


def test_state_in_use_is_an_error(cluster, tmp_path: Path, judge_sim):
    data = write(rollouts(groups=1, size=2), tmp_path / "data", 1)
    recipe = pairwise(judge_sim().judge())
    held = plaudit.Engine(recipe, state=tmp_path / "state" / "actor-0")
    with pytest.raises(Exception, match="in use: is another run going on"):
        score_dataset(read(data), recipe, actors=1, shards=2, state=tmp_path / "state").take_all()
    assert held.name == "pairwise"


def test_a_data_set_without_rows_has_no_results(cluster, tmp_path: Path):
    none = ray.data.from_arrow(rollouts(groups=1, size=2).slice(0, 0))
    assert score_dataset(none, RULES, actors=1, shards=2, out=tmp_path / "out").count() == 0


def test_missing_column_is_an_error_before_workers_start(cluster):
    ds = ray.data.from_items([{"prompt": "p", "answer": "a"}])
    with pytest.raises(
        ValueError, match="no column 'response' for the field 'response', only prompt, answer"
    ):
        score_dataset(ds, RULES)
    with pytest.raises(ValueError, match="no column 'gold' for the field 'reference'"):
        score_dataset(ds, RULES, fields={"response": "answer", "reference": "gold"})
    with pytest.raises(ValueError, match="no column 'uid' for the field 'group'"):
        score_dataset(ds, RULES, fields={"response": "answer"}, group="uid")
    with pytest.raises(TypeError, match=r"a data set of Ray is wanted, not list: ray.data.from_items"):
        score_dataset([{"response": "a"}], RULES)  # type: ignore[arg-type]
    with pytest.raises(plaudit.RunError, match="neither a folder nor a Redis"):
        score_dataset(ds, RULES, fields={"response": "answer"}, state="redis:/127.0.0.1:6379")


def first_version(prompts, responses, references, extras):
    return [1.0] * len(responses)


def second_version(prompts, responses, references, extras):
    return [2.0] * len(responses)


@ray.remote(num_cpus=0)
class Reused:
    """A worker that scores with whatever engine it is given."""

    def score(self, engine: plaudit.Engine) -> list[float]:
        return engine.score(None, ["a"]).totals.tolist()


def test_a_worker_that_has_seen_a_function_runs_the_new_one(cluster):
    worker, found = Reused.remote(), []
    for function in (first_version, second_version, first_version):
        plaudit.register("test_dataset.versioned")(function)
        engine = plaudit.Engine({"components": {"mine": {"reward": "test_dataset.versioned"}}})
        found.append(ray.get(worker.score.remote(engine)))
    assert found == [[1.0], [2.0], [1.0]]
