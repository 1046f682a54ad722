"""Questions to a judge from inside a custom reward: answers, failures, the journal, budgets and deadlines."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plaudit
import pytest
from conftest import ROOT

names = (f"test_ask_{number}" for number in itertools.count())


class Judge:
    """An endpoint of chat completions that answers as a function says: a text, or a status."""

    def __init__(self, answer: Callable[[dict], str | int]) -> None:
        self.requests: list[dict] = []
        self.released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(asked)
                said = answer(asked)
                body = {"error": {"message": "no"}} if isinstance(said, int) else outer.completion(said)
                data = json.dumps(body).encode()
                self.send_response(said if isinstance(said, int) else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def completion(text: str) -> dict:
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}

    def settings(self, **more) -> dict:
        address = f"http://127.0.0.1:{self.server.server_port}/v1"
        return {
            "base_url": address,
            "model": "m",
            "hedge_share": 0.0,
            "attempts": 1,
            "patience": "1ms",
            **more,
        }

    def end(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def judge() -> Iterator[Callable[..., Judge]]:
    started: list[Judge] = []

    def start(answer: Callable[[dict], str | int]) -> Judge:
        started.append(Judge(answer))
        return started[-1]

    yield start
    for one in started:
        one.end()


def polite(asked: dict) -> str | int:
    """Says whether the last message has a please in it."""
    text = asked["messages"][-1]["content"]
    if "broken" in text:
        return 400
    said = "yes" if "please" in text else "no"
    return json.dumps({"answer": said}) if "response_format" in asked else said


def engine(function, judges: dict, per: str = "batch", state: Path | None = None, **groups) -> plaudit.Engine:
    name = next(names)
    plaudit.register(name, function, per=per)  # type: ignore[arg-type]
    recipe = {"components": {"mine": {"reward": name}}, "judges": judges, "groups": groups}
    return plaudit.Engine(recipe, state=state)


def politeness(prompts, responses, references, extras):
    """Whether a judge finds the response polite."""
    said = plaudit.judge("main").ask_many(
        [f"Is this polite? {text}" for text in responses], choices=["yes", "no"]
    )
    return [each if isinstance(each, plaudit.JudgeError) else float(each == "yes") for each in said]


def test_many_questions_at_once(judge):
    asked = judge(polite)
    own = engine(politeness, {"main": asked.settings(price={"input": 1.0, "output": 1.0})})
    report = own.score(None, ["please", "now", "broken", "please"])
    assert report.outcomes == ["scored", "scored", "invalid", "scored"]
    assert report.totals[[0, 1, 3]].tolist() == [1.0, 0.0, 1.0]
    assert report.reasons[2]["code"] == "judge.client_error" and report.reasons[2]["component"] == "mine"
    # Two rollouts that ask the same share one call.
    usage = own.judge_usage[0]
    assert usage["calls"] == len(asked.requests) == 3 and usage["cost"] > 0
    assert asked.requests[0]["response_format"]["type"] == "json_schema"


def test_a_failure_that_is_let_through_is_the_rollouts(judge):
    def one(prompt, response, reference, extra):
        return float(plaudit.judge().ask(response, choices=["yes", "no"]) == "yes")

    report = engine(one, {"main": judge(polite).settings()}, per="rollout").score(None, ["please", "broken"])
    assert report.outcomes == ["scored", "invalid"] and report.reasons[1]["code"] == "judge.client_error"


def test_a_score_may_say_why_the_judge_has_no_answer(judge):
    def one(prompt, response, reference, extra):
        try:
            return float(plaudit.judge().ask(response, choices=["yes", "no"]) == "yes")
        except plaudit.JudgeError as error:
            assert error.code == "judge.client_error" and str(error) == error.message
            return plaudit.Score(outcome="invalid", reason=error)

    report = engine(one, {"main": judge(polite).settings()}, per="rollout").score(None, ["broken"])
    assert report.reasons[0]["code"] == "judge.client_error"


def test_texts_messages_and_schemas(judge):
    def answer(asked: dict) -> str:
        if "response_format" in asked:
            return json.dumps({"points": 7, "roles": [message["role"] for message in asked["messages"]]})
        return "<think>Hm.</think>\nIt is fine."

    seen = []

    def one(prompt, response, reference, extra):
        main = plaudit.judge("main")
        seen.append(main.ask("How is it?"))
        schema = {"type": "object", "properties": {"points": {"type": "integer"}}, "required": ["points"]}
        messages = [{"role": "system", "content": "You judge."}, {"role": "user", "content": response}]
        seen.append(main.ask(messages, schema=schema))
        return seen[-1]["points"]

    report = engine(one, {"main": judge(answer).settings()}, per="rollout").score(None, ["a"])
    assert report.totals.tolist() == [7.0], report.reasons
    assert seen == ["It is fine.", {"points": 7, "roles": ["system", "user"]}]


def test_an_answer_of_another_shape_is_none(judge):
    def one(prompt, response, reference, extra):
        return float(plaudit.judge("main").ask(response, choices=["yes", "no"]) == "yes")

    settings = judge(lambda asked: "perhaps").settings(answer_format="tag")
    report = engine(one, {"main": settings}, per="rollout").score(None, ["a"])
    assert report.reasons[0]["code"] == "judge.schema"


def test_coroutines_ask_at_once(judge):
    gate = threading.Barrier(4)

    def answer(asked: dict) -> str:
        # One after the other, the first would wait for the others until the barrier breaks.
        if asked["messages"][-1]["content"] != "first":
            gate.wait(60)
        return "yes"

    async def one(prompt, response, reference, extra):
        return float(await plaudit.judge("main").aask(response) == "yes")

    own = engine(one, {"main": judge(answer).settings()}, per="rollout")
    # The first call finds out what the endpoint can do, and the others wait for it.
    assert own.score(None, ["first"]).totals.tolist() == [1.0]
    assert own.score(None, list("abcd"), groups=list(range(4))).totals.tolist() == [1.0] * 4


def test_other_threads_of_the_reward_may_ask(judge):
    def batch(prompts, responses, references, extras):
        main = plaudit.judge("main")
        with ThreadPoolExecutor(2) as threads:
            return [float(said == "yes") for said in threads.map(main.ask, responses)]

    own = engine(batch, {"main": judge(polite).settings()})
    assert own.score(None, ["please", "no"]).totals.tolist() == [1.0, 0.0]


def test_a_second_run_pays_nothing(judge, tmp_path: Path):
    asked = judge(polite)
    judges = {"main": asked.settings()}
    with engine(politeness, judges, state=tmp_path / "state") as first:
        assert first.score(None, ["please", "now"]).totals.tolist() == [1.0, 0.0]
    with engine(politeness, judges, state=tmp_path / "state") as again:
        assert again.score(None, ["please", "now"]).totals.tolist() == [1.0, 0.0]
        assert again.judge_usage[0]["cached"] == 2
    assert len(asked.requests) == 2


def test_a_budget_holds_for_questions_too(judge):
    asked = judge(polite)
    report = engine(politeness, {"main": asked.settings(budget={"calls": 2})}).score(None, list("abcd"))
    assert len(asked.requests) == 2 and report.outcomes.count("scored") == 2
    assert {reason["code"] for reason in report.reasons if reason} == {"judge.budget"}


def test_a_plan_counts_questions_and_asks_none(judge):
    asked = judge(polite)
    own = engine(politeness, {"main": asked.settings()})
    (estimate,) = own.plan(None, ["a", "b"])["components"]
    assert (estimate["component"], estimate["judge"], estimate["calls"]) == ("mine", "main", 2)
    assert estimate["prompt_tokens"] > 0 and not estimate["exact"] and not asked.requests


def test_the_deadline_of_the_group_holds(judge):
    def answer(asked: dict) -> str:
        if "slow" in asked["messages"][-1]["content"]:
            stuck.released.wait(60)
        return json.dumps({"answer": "yes"})

    stuck = judge(answer)
    report = engine(politeness, {"main": stuck.settings()}, timeout="2s").score(None, ["a", "slow"])
    # The reward still says what it knows.
    assert report.outcomes == ["scored", "invalid"] and report.reasons[1]["code"] == "judge.deadline"


def test_unknown_judges_are_told_with_the_known_ones(judge):
    def batch(prompts, responses, references, extras):
        return [plaudit.judge(responses[0]).ask("Is it?")]

    judges = {"main": judge(polite).settings(), "overlap": {"kind": "overlap"}}
    for name in ["other", "overlap"]:
        told = engine(batch, judges).score(None, [name]).reasons[0]
        assert f"there is no judge {name!r}; those that take questions are main" in told["message"]
    with pytest.raises(plaudit.ArgumentError, match="inside a registered reward"):
        plaudit.judge("main")

    def wrong(prompts, responses, references, extras):
        return [plaudit.judge().ask(3)]  # type: ignore[arg-type]

    assert (
        "text or chat messages are wanted" in engine(wrong, judges).score(None, ["a"]).reasons[0]["message"]
    )


def test_a_reward_alone_may_ask(judge):
    name = next(names)
    plaudit.register(name, politeness)
    own = plaudit.reward(name, judges={"main": judge(polite).settings()})
    assert own("please").value == 1.0 and own("now").value == 0.0


def test_asking_inside_a_running_loop(judge):
    own = engine(politeness, {"main": judge(polite).settings()})

    async def main() -> list[float]:
        return (await own.ascore(None, ["please", "now"])).totals.tolist()

    assert asyncio.run(main()) == [1.0, 0.0]


WAITING = """
import sys, plaudit

@plaudit.register("waits")
def waits(prompts, responses, references, extras):
    print("asked", flush=True)
    return plaudit.judge("main").ask_many(responses)

judges = {"main": {"base_url": sys.argv[1], "model": "m"}}
engine = plaudit.Engine({"components": {"mine": {"reward": "waits"}}, "judges": judges})
try:
    engine.score(None, ["a"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_question(judge):
    stuck = judge(lambda asked: "yes" if stuck.released.wait(60) else "no")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", WAITING, stuck.settings()["base_url"]]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(60) == 0
