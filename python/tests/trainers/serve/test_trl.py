"""A real TRL trainer with rewards from the service, and without an answer of the service."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plaudit
import pytest
from conftest import RULES, Processes, Running, new_token, taste
from plaudit.remote import ServiceError
from plaudit.trl import Reward

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "trl"))

import fixtures  # noqa: E402


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def test_the_same_rewards_as_from_an_engine_here(serve: Callable[..., str]) -> None:
    remote, here = Reward("rules", url=serve(RULES)), Reward(RULES)
    assert (remote.__name__, remote.components, remote.weights) == ("rules", here.components, here.weights)
    handed = {
        "prompts": ["q", "q", "r"],
        "completions": ["red", "<think>a</think><answer>red</answer>", "red"],
        "completion_ids": [[1], [1, 2], [1]],
        "answer": ["red", "red", None],
        "source": ["a", "b", "c"],
    }
    assert remote(**handed) == here(**handed) == [1.0, 0.0, None]
    assert asyncio.run(remote.as_async()(**handed)) == here(**handed)
    assert [column(**handed) for column in remote.as_columns()] == [
        column(**handed) for column in here.as_columns()
    ]
    assert pickle.loads(pickle.dumps(remote))(**handed) == here(**handed)


def test_a_training_learns_and_the_service_keeps_its_steps(
    serve: Callable[..., str], judge: Running, tmp_path: Path
) -> None:
    url = serve(taste(judge.url))
    reward = Reward("taste", url=url, run="tiny", timeout=60.0)
    trained = fixtures.trainer(tmp_path / "out", reward, fixtures.questions(), max_steps=6)
    trained.train()
    rewards = fixtures.logged(trained, "rewards/taste/mean")
    assert len(rewards) == 6 and fixtures.logged(trained, "taste/invalid") == [0.0] * 6
    assert fixtures.logged(trained, "taste/cut_groups") == [0.0] * 6
    (run,) = get(f"{url}/v1/runs")["runs"]
    assert (run["name"], run["recipe"], run["rollouts"]) == ("tiny", "taste", 6 * 32)
    steps = get(f"{url}/v1/runs/{run['id']}/steps")["steps"]
    assert [step["step"] for step in steps] == list(range(6))
    assert all(step["statistics"]["groups"]["count"] == 4 for step in steps)


def test_groups_that_the_border_of_a_rank_cuts_are_joined_there(
    serve: Callable[..., str], judge: Running, tmp_path: Path
) -> None:
    """Two ranks take six completions each, of groups of four."""
    (tmp_path / "task.json").write_text(json.dumps({"url": serve(taste(judge.url))}))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(HERE / "rank.py"), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    ranks = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(2)]
    for step in range(3):
        prompts, texts, got = (
            [value for rank in ranks for value in rank["calls"][step][name]]
            for name in ("prompts", "completions", "rewards")
        )
        groups = [str(row // 4) for row in range(12)]
        whole = plaudit.Engine(taste(judge.url)).score(prompts, texts, groups=groups).totals.tolist()
        assert got == pytest.approx(whole, abs=2.0**-16) and len(set(got)) > 3
    assert [rank["told"] for rank in ranks] == [[], []]
    assert [rank["cut"] for rank in ranks] == [[0.0] * 3] * 2


def test_evaluations_compare_with_references_and_stay_apart(
    serve: Callable[..., str], judge: Running
) -> None:
    url = serve(taste(judge.url))
    reward = Reward("taste", url=url, run="tiny")
    logged: dict[str, float] = {}

    class Trainer:
        model = SimpleNamespace(training=False)
        num_generations_eval = 2

        def log_metric(self, name: str, value: float) -> None:
            logged[name] = value

    handed = {"completions": ["[[quality:3]]", "[[quality:1]]"], "answer": ["[[quality:2]]"] * 2}
    reward(["q", "q"], **handed, log_metric=Trainer().log_metric)
    assert logged["taste/win"] == 0.5
    assert [run["name"] for run in get(f"{url}/v1/runs")["runs"]] == ["tiny-eval"]


def test_a_service_that_is_gone_gives_none_and_never_a_number(
    serve: Callable[..., str], running: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    reward = Reward("rules", url=serve(RULES), timeout=1.5)
    handed = {"prompts": ["q"] * 2, "completions": ["red"] * 2, "answer": ["red"] * 2}
    assert reward(**handed) == [1.0, 1.0]
    noted: dict[str, Any] = {}
    running.stop()
    begun = time.monotonic()
    assert reward(**handed, log_extra=noted.__setitem__) == [None, None]
    assert time.monotonic() - begun < 10.0
    assert noted["rules/reason"] == ["engine.unreachable"] * 2
    assert "2 of 2 completions have no reward" in caplog.text
    with pytest.raises(ServiceError, match="gave no answer"):
        Reward("rules", url="http://127.0.0.1:9", timeout=0.5)


def test_a_service_that_comes_back_in_time_is_waited_for(running: Processes, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(RULES))
    command = ("serve", "--recipe", str(tmp_path / "rules.yaml"), "--state", str(tmp_path / "state"))
    first = running(*command, "--bind", "127.0.0.1:0")
    reward = Reward("rules", url=first.url, timeout=60.0)
    first.stop()
    again = threading.Timer(1.0, running, (*command, "--bind", first.url.removeprefix("http://")))
    again.start()
    assert reward(["q"], ["red"], answer=["red"]) == [1.0]
    again.join()


def test_tokens(serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file)
    url = serve(RULES, flags=("--token-file", str(file)))
    assert Reward("rules", url=url, token=token)(["q"], ["red"], answer=["red"]) == [1.0]
    monkeypatch.setenv("REWARD_TOKEN", token)
    reward = Reward("rules", url=url, token_env="REWARD_TOKEN")
    assert token.encode() not in pickle.dumps(reward)
    with pytest.raises(ServiceError) as refused:
        Reward("rules", url=url)
    assert refused.value.status == 401


def test_mistakes_are_told_at_once(serve: Callable[..., str]) -> None:
    url = serve(RULES)
    with pytest.raises(ServiceError, match="no recipe 'maths'"):
        Reward("maths", url=url)
    for wrong in (
        {"recipe": RULES, "url": url},
        {"recipe": "rules", "url": url, "join": "ray"},
        {"recipe": "rules", "url": url, "state": "folder"},
        {"recipe": "rules", "url": url, "overrides": {"a": 1}},
        {"recipe": RULES, "token": "x"},
        {"recipe": RULES, "run": "x"},
    ):
        with pytest.raises(ValueError, match="url|service"):
            Reward(**wrong)
