"""Tests of the actor that scores one shard, in this process."""

from __future__ import annotations

import fcntl
from pathlib import Path

import plaudit
import pyarrow as pa
import pytest
from plaudit.ray.dataset import fit
from plaudit.ray.run_folder import RunFolder
from plaudit.ray.shard_scorer import ScoringConfig, ShardScorer
from plaudit.ray.shards import DIGEST, SHARD, Rows
from rollouts import RULES, pairwise, rollouts

ROWS = Rows(1, "group", {})


def work(recipe: dict, **more) -> ScoringConfig:
    terms = {"state": None, "out": None, "keep_columns": False, **more}
    return ScoringConfig(plaudit.Engine(recipe), actors=1, rows=ROWS, **terms)


def shard(table: pa.Table) -> pa.Table:
    table = ROWS.read(table)
    numbers, digests = ROWS.split(table)
    table = table.append_column(SHARD, pa.array(numbers, pa.int32()))
    return table.append_column(DIGEST, pa.array(digests, pa.uint64()))


def test_results_do_not_depend_on_the_order_of_rows():
    table, scorer = rollouts(groups=5, size=3), ShardScorer(work(RULES))
    results = scorer(shard(table))
    assert results.equals(scorer(shard(table.take(pa.array(range(14, -1, -1))))))
    assert results["id"].to_pylist() == sorted(table["id"].to_pylist())


def test_shard_finished_by_another_actor_is_not_scored_again(tmp_path: Path, judge_sim):
    sim = judge_sim()
    table = shard(rollouts(groups=3, size=3))

    def score() -> pa.Table:
        return ShardScorer(work(pairwise(sim.judge()), out=str(tmp_path)))(table)

    with RunFolder(str(tmp_path)).owned():
        first = score()
        assert len(sim.calls()) == 9 and first["rows"].to_pylist() == [9]
        assert score().equals(first) and len(sim.calls()) == 9
        RunFolder(str(tmp_path)).forget(0)
        assert score().equals(first) and len(sim.calls()) == 18


def test_shard_without_a_readable_row_is_invalid():
    table = pa.table({"id": ["b", "a"], "group": ["g", "g"], "response": pa.array([None, None], pa.string())})
    results = ShardScorer(work(RULES))(shard(table)).to_pylist()
    assert [row["id"] for row in results] == ["a", "b"]
    assert all(row["outcome"] == "invalid" and row["total"] is None for row in results)
    assert all(row["reason_code"] == "input.response" and row["group"] == "g" for row in results)


def test_kept_columns_stay_with_their_row():
    table = rollouts(groups=3, size=3)
    table = table.append_column("copy", table["id"])
    responses = table["response"].to_pylist()
    responses[3] = None
    table = table.set_column(3, "response", pa.array(responses))
    results = ShardScorer(work(RULES, keep_columns=True))(shard(table)).to_pylist()
    assert len(results) == 9 and all(row["id"] == row["copy"] for row in results)
    assert [row["id"] for row in results if row["outcome"] == "invalid"] == [table["id"][3].as_py()]
    assert all((row["response"] is None) == (row["outcome"] == "invalid") for row in results)


def test_actors_take_the_parts_of_a_folder_that_are_free(tmp_path: Path, judge_sim):
    recipe = pairwise(judge_sim().judge(concurrency=8))
    told = work(recipe, state=str(tmp_path))._replace(actors=2)
    (tmp_path / "actor-0").mkdir()
    with open(tmp_path / "actor-0" / "lock", "w") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        scorer = ShardScorer(told)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["actor-0", "actor-1"]
    assert (tmp_path / "actor-1" / "judgments.log").exists()
    assert scorer.engine.judges["main"]["concurrency"] == 4


def ones(prompts, responses, references, extras):
    return [1.0] * len(responses)


def test_an_actor_with_a_state_has_the_functions_of_the_driver(tmp_path: Path):
    plaudit.register("test_scorer.ones")(ones)
    told = work({"components": {"mine": {"reward": "test_scorer.ones"}}}, state=str(tmp_path))
    # What is registered here later does not count: the actor has what came with the work.
    plaudit.register("test_scorer.ones")(
        lambda prompts, responses, references, extras: [2.0] * len(responses)
    )
    assert ShardScorer(told).engine.score(None, ["a"]).totals.tolist() == [1.0]


def test_actors_are_limited_by_the_judge_limits(judge_sim):
    def actors(wanted: int, state: str | None = None, **limits) -> int:
        return fit(plaudit.Engine(pairwise(judge_sim().judge(**limits))), wanted, state)

    assert actors(3, concurrency=64) == 3
    assert actors(3, concurrency=2) == 2
    assert actors(300, concurrency=512, calls_per_minute=200) == 200
    assert actors(8, "folder", budget={"calls": 5}) == 5
    assert actors(8, "redis://127.0.0.1:6379/0", budget={"calls": 5}) == 8
    with pytest.raises(ValueError, match="at least one is wanted, not 0"):
        actors(0)
