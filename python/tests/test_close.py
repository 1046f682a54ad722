"""`Engine.close`, `with`, and engines of one process that share a state folder."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import plaudit
import pytest
from conftest import BINARY, ROOT

PRINCIPLE = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"], "judge": "main"}
RESPONSES = ["one", "two words", "three whole words"]
PROMPTS = ["p"] * 3


def recipe(judge: dict) -> dict:
    return {"components": {"principle": PRINCIPLE}, "judges": {"main": judge}}


def holder(state: Path) -> str | None:
    """What another process says of a state folder: the code of its refusal, or None where it may have it."""
    source = """
import sys, plaudit
try:
    plaudit.Engine("overlap", state=sys.argv[1]).close()
except plaudit.RunError as error:
    print(error.code)
"""
    command = [sys.executable, "-c", source, str(state)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() or None


def test_a_cell_may_be_run_twice(judge_sim, tmp_path: Path):
    sim = judge_sim()
    for _ in range(3):
        # The old engine lives until the new one is made.
        engine = plaudit.Engine(recipe(sim.judge()), state=tmp_path / "s")
        first = engine.score(PROMPTS, RESPONSES).totals.tolist()
    assert engine.score(PROMPTS, RESPONSES).totals.tolist() == first and len(sim.calls()) == 3


def test_one_folder_has_one_journal_whatever_it_is_called(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "s")
    engines = [plaudit.Engine("overlap", state=name) for name in ("s", "./s/../s", tmp_path / "s", "link")]
    assert [engine.score(["p"] * 2, ["a", "b"], ["a", "a"]).outcomes for engine in engines]
    assert holder(tmp_path / "s") == "journal.in_use"


def test_a_pickle_of_an_engine_with_a_state_works_beside_it(tmp_path: Path):
    engine = plaudit.Engine("overlap", state=tmp_path)
    assert pickle.loads(pickle.dumps(engine)).components == engine.components


def test_an_engine_that_was_let_go_of_is_not_in_the_way(judge_sim, tmp_path: Path):
    sim = judge_sim()
    for _ in range(20):
        plaudit.Engine(recipe(sim.judge()), state=tmp_path).score(PROMPTS, RESPONSES)
    assert len(sim.calls()) == 3


def test_engines_of_many_threads_share_a_folder(judge_sim, tmp_path: Path):
    sim = judge_sim()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                with plaudit.Engine(recipe(sim.judge()), state=tmp_path) as engine:
                    assert engine.score(PROMPTS, RESPONSES).outcomes == ["scored"] * 3
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and holder(tmp_path) is None


def test_close_frees_the_folder_before_it_returns(judge_sim, tmp_path: Path):
    sim = judge_sim()
    engine = plaudit.Engine(recipe(sim.judge()), state=tmp_path)
    engine.score(PROMPTS, RESPONSES)
    assert holder(tmp_path) == "journal.in_use"
    engine.close()
    engine.close()
    command = [BINARY, "plan", str(ROOT / "examples/rollouts.jsonl"), "--recipe", "quickstart"]
    subprocess.run([*command, "--state", str(tmp_path)], check=True, capture_output=True, timeout=120)
    assert holder(tmp_path) is None
    again = plaudit.Engine(recipe(sim.judge()), state=tmp_path)
    again.score(PROMPTS, RESPONSES)
    assert len(sim.calls()) == 3


def test_the_last_engine_that_is_closed_frees_the_folder(tmp_path: Path):
    one, other = (plaudit.Engine("overlap", state=tmp_path) for _ in range(2))
    one.close()
    assert holder(tmp_path) == "journal.in_use"
    assert other.score(["p"] * 2, ["a", "b"], ["a", "a"]).outcomes == ["scored"] * 2
    other.close()
    assert holder(tmp_path) is None


def test_a_closed_engine_says_so():
    with plaudit.Engine("quickstart") as engine:
        join = engine.join()
        assert engine.score(None, ["a"]).outcomes == ["scored"]
    for call in (
        lambda: engine.score(None, ["a"]),
        lambda: asyncio.run(engine.ascore(None, ["a"])),
        lambda: engine.join(),
    ):
        with pytest.raises(plaudit.RunError, match="the engine was closed") as caught:
            call()
        assert caught.value.code == "engine.closed"
    assert join.score("g", 1, "a").reason["code"] == "group.closed"
    assert engine.name == "quickstart" and repr(engine).startswith("<closed plaudit.Engine('quickstart'")
    assert pickle.loads(pickle.dumps(engine)).score(None, ["a"]).outcomes == ["scored"]


def test_async_with(tmp_path: Path):
    async def main() -> list[str]:
        async with plaudit.Engine("overlap", state=tmp_path) as engine:
            return (await engine.ascore(["p"] * 2, ["a", "b"], ["a", "a"])).outcomes

    assert asyncio.run(main()) == ["scored"] * 2
    assert holder(tmp_path) is None


def test_close_waits_for_what_is_under_way(tmp_path: Path):
    began, goes_on = threading.Event(), threading.Event()

    @plaudit.register("test_close.slow")
    def slow(prompts, responses, references, extras):
        began.set()
        goes_on.wait(60)
        return [1.0] * len(responses)

    engine = plaudit.Engine({"components": {"mine": {"reward": "test_close.slow"}}}, state=tmp_path)
    found: list[list[str]] = []
    scoring = threading.Thread(target=lambda: found.append(engine.score(None, ["a"]).outcomes))
    scoring.start()
    assert began.wait(60)
    closing = threading.Thread(target=engine.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive() and not found
    goes_on.set()
    closing.join(60)
    scoring.join(60)
    assert found == [["scored"]] and not closing.is_alive()


def test_close_answers_whoever_waits_in_a_join(tmp_path: Path):
    engine = plaudit.Engine("overlap", state=tmp_path)
    join = engine.join()
    found: list[plaudit.Result] = []
    waiting = threading.Thread(target=lambda: found.append(join.score("g", 2, "a", reference="a")))
    waiting.start()
    while join.status["waiting"] == 0:
        gc.collect()
    engine.close()
    waiting.join(60)
    assert found[0].reason["code"] == "group.closed" and holder(tmp_path) is None


def test_a_forked_child_does_not_end_its_parents_engine(tmp_path: Path):
    engine = plaudit.Engine("overlap", state=tmp_path)
    child = os.fork()
    if child == 0:
        try:
            engine.close()
            os._exit(0 if engine.name == "overlap" else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert engine.score(["p"] * 2, ["a", "b"], ["a", "a"]).outcomes == ["scored"] * 2
    assert holder(tmp_path) == "journal.in_use"


@pytest.mark.parametrize("state", ["redis:/127.0.0.1:6379", "http://127.0.0.1:1", "reddis://127.0.0.1"])
def test_a_misspelt_address_makes_no_folder(state: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(plaudit.RunError, match="neither a folder nor a Redis") as caught:
        plaudit.Engine("overlap", state=state)
    assert caught.value.code == "journal.address" and not list(tmp_path.iterdir())


def test_addresses_are_found_whatever_their_case(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for state in ("REDIS://127.0.0.1:1", "valkey://127.0.0.1:1"):
        with pytest.raises(plaudit.RunError) as caught:
            plaudit.Engine("overlap", state=state)
        assert caught.value.code == "journal.unreachable" and not list(tmp_path.iterdir())
