"""Fork, spawn, pickle, the end of a process, and Ctrl-C."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import plaudit
import pytest
from conftest import ROOT

RECIPE = {
    "name": "mine",
    "components": {"format": {"reward": "reasoning_format"}, "kimi": {"reward": "kimi.length"}},
}
RESPONSES = ["<think>a</think><answer>b</answer>", "no", "nor this one"]
GROUPS = ["g"] * 3


@plaudit.register("test_processes.length")
def length(prompts, responses, references, extras, *, by=1.0):
    """The length of a response."""
    return [by * len(response) for response in responses]


def totals(engine: plaudit.Engine) -> list[float]:
    return engine.score(None, RESPONSES, groups=GROUPS).totals.tolist()


def python(source: str, *arguments: str, **more) -> subprocess.Popen[str]:
    """A Python of its own that runs some lines, and hears Ctrl-C even where these tests were started without it."""
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", hears + textwrap.dedent(source), *arguments]
    path = os.pathsep.join([str(ROOT / "python"), str(Path(__file__).parent)])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **{**pipes, **more})


def finished(process: subprocess.Popen[str], within: float = 60.0) -> str:
    out, err = process.communicate(timeout=within)
    assert process.returncode == 0, err
    return out


def in_a_fork(work) -> list[float]:
    """What a forked child finds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = json.loads(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    return found


def test_an_engine_that_was_never_used_works_in_a_fork():
    engine = plaudit.Engine(RECIPE)
    assert in_a_fork(lambda: totals(engine)) == totals(plaudit.Engine(RECIPE))


def test_an_engine_that_was_used_works_in_a_fork_and_after_it():
    engine = plaudit.Engine(RECIPE)
    wanted = totals(engine)
    assert in_a_fork(lambda: totals(engine)) == wanted == totals(engine)


def test_a_judged_engine_works_in_a_fork_and_after_it(judge_sim):
    engine = plaudit.Engine(
        "tutorial", overrides={"judges.main.base_url": judge_sim().url, "groups.same_size": False}
    )
    wanted = totals(engine)
    assert in_a_fork(lambda: totals(engine)) == wanted == totals(engine)


def test_a_custom_reward_works_in_a_fork():
    engine = plaudit.Engine({"components": {"mine": {"reward": "test_processes.length"}}})
    wanted = totals(engine)
    assert in_a_fork(lambda: totals(engine)) == wanted


def test_a_join_that_was_used_works_in_a_fork_and_after_it():
    join = plaudit.Engine(RECIPE).join(timeout=30)

    def met(group: str) -> list[float]:
        with ThreadPoolExecutor(3) as threads:
            return [
                result.total for result in threads.map(lambda each: join.score(group, 3, each), RESPONSES)
            ]

    def anew() -> list[float]:
        signal.alarm(60)
        assert join.timeout == 30 and join.status["scored"] == 0
        return met("h")

    wanted = totals(plaudit.Engine(RECIPE))
    assert met("g") == wanted
    assert in_a_fork(anew) == wanted == met("h")
    assert join.status["scored"] == 6


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(method: str):
    engine = plaudit.Engine(RECIPE)
    wanted = totals(engine)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(totals, [engine] * 4) == [wanted] * 4


def test_an_engine_is_pickled_by_its_recipe():
    overrides = {
        "components.format.weight": 0.25,
        "components.mine": {"reward": "test_processes.length", "by": 2.0},
    }
    engine = plaudit.Engine(RECIPE, overrides=overrides, share=2)
    again = pickle.loads(pickle.dumps(engine))
    assert (again.name, again.components, again.weights) == (engine.name, engine.components, engine.weights)
    assert totals(again) == totals(engine)


def test_a_custom_reward_goes_with_its_engine_to_another_process():
    engine = plaudit.Engine({"components": {"mine": {"reward": "test_processes.length", "by": 3.0}}})
    source = "import pickle, sys; print(pickle.load(sys.stdin.buffer).score(None, ['aa']).totals.tolist())"
    process = python(source, stdin=subprocess.PIPE, text=False)
    out, err = process.communicate(pickle.dumps(engine), timeout=60)
    assert out.decode().strip() == "[6.0]", err.decode()


def first_version(prompts, responses, references, extras):
    return [1.0] * len(responses)


def second_version(prompts, responses, references, extras):
    return [2.0] * len(responses)


VERSIONED = {"components": {"mine": {"reward": "test_processes.versioned"}}}


def versions() -> tuple[plaudit.Engine, plaudit.Engine]:
    """An engine made with the first version of a function, and one made with the second."""
    engines = []
    for function in (first_version, second_version):
        plaudit.register("test_processes.versioned")(function)
        engines.append(plaudit.Engine(VERSIONED))
    return engines[0], engines[1]


def test_an_engine_keeps_its_function_wherever_it_goes():
    first, second = versions()
    for again in (copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))):
        assert totals(again(first)) == totals(first) == [1.0] * 3
        assert totals(again(again(second))) == totals(second) == [2.0] * 3
    # What is registered here stays.
    assert totals(plaudit.Engine(VERSIONED)) == [2.0] * 3


def test_a_worker_that_has_seen_the_name_runs_the_new_function():
    first, second = versions()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        scored = [pool.submit(totals, engine).result() for engine in (first, second, first)]
    assert scored == [[1.0] * 3, [2.0] * 3, [1.0] * 3]


def test_a_reward_keeps_its_function_too():
    plaudit.register("test_processes.versioned")(first_version)
    reward = plaudit.reward("test_processes.versioned")
    plaudit.register("test_processes.versioned")(second_version)
    assert pickle.loads(pickle.dumps(reward)).score("a").value == reward.score("a").value == 1.0


def test_rewards_are_pickled_too():
    reward = plaudit.reward("reasoning_format", think_token="thought")
    assert pickle.loads(pickle.dumps(reward)).score("<thought>a</thought><answer>b</answer>").value == 1.0


SLOW = """
    import os, sys, time, signal, threading
    import plaudit
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    judge = {"base_url": sys.argv[1], "model": "sim", "hedge_share": 0}
    engine = plaudit.Engine({"components": {"principle": principle}, "judges": {"main": judge}})
"""


def test_ctrl_c_is_heard_within_200_ms(judge_sim):
    source = (
        SLOW
        + """
    def interrupt():
        while not engine.judge_usage[0]["calls"]:
            time.sleep(0.001)
        global sent
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        engine.score(["p", "p"], ["a", "b"])
    except KeyboardInterrupt:
        print(time.monotonic() - sent)
    """
    )
    url = judge_sim("--latency", "5s", "--jitter", "0").url
    # The best of several, because the processor may be busy with something else at that moment.
    for _ in range(10):
        took = float(finished(python(source, url)))
        if took <= 0.2:
            break
    print(f"KeyboardInterrupt after {took * 1000:.0f} ms")
    assert took <= 0.2


def test_an_engine_works_after_ctrl_c(judge_sim):
    source = (
        SLOW
        + """
    def interrupt():
        while not engine.judge_usage[0]["calls"]:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        engine.score(["p", "p"], ["a", "b"])
    except KeyboardInterrupt:
        print(engine.score(["q", "q"], ["a", "b"]).outcomes)
    """
    )
    out = finished(python(source, judge_sim("--latency", "1s", "--jitter", "0").url))
    assert out.strip() == "['scored', 'scored']"


def test_ctrl_c_stops_a_custom_reward_that_never_ends():
    source = """
    import os, signal, threading, time
    import plaudit
    begun = threading.Event()

    @plaudit.register("endless")
    def endless(prompts, responses, references, extras):
        begun.set()
        while True:
            time.sleep(0.01)

    engine = plaudit.Engine({"components": {"endless": {"reward": "endless"}}})
    threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
    try:
        engine.score(None, ["a"])
    except KeyboardInterrupt:
        print("heard", flush=True)
        os._exit(0)
    """
    assert finished(python(source)).strip() == "heard"


def test_the_interpreter_ends_while_a_daemon_thread_waits(judge_sim):
    source = (
        SLOW
        + """
    threading.Thread(target=engine.score, args=(["p", "p"], ["a", "b"]), daemon=True).start()
    while not engine.judge_usage[0]["calls"]:
        time.sleep(0.001)
    print("over", flush=True)
    """
    )
    began = time.monotonic()
    process = python(source, judge_sim("--latency", "60s", "--jitter", "0").url)
    assert finished(process, within=40).strip() == "over"
    assert time.monotonic() - began < 40


def test_the_interpreter_ends_while_a_task_waits_for_a_judge(judge_sim):
    source = (
        SLOW
        + """
    import asyncio

    async def main():
        task = asyncio.ensure_future(engine.ascore(["p", "p"], ["a", "b"]))
        while not engine.judge_usage[0]["calls"]:
            await asyncio.sleep(0.001)

    asyncio.run(main())
    print("over", flush=True)
    """
    )
    assert (
        finished(python(source, judge_sim("--latency", "60s", "--jitter", "0").url), within=40).strip()
        == "over"
    )


def test_ctrl_c_stops_the_command(judge_sim, tmp_path: Path):
    sim = judge_sim("--latency", "60s", "--jitter", "0")
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_text("".join(json.dumps({"prompt": "p", "response": text}) + "\n" for text in "abcd"))
    state = tmp_path / "state"
    command = [
        "score",
        str(rollouts),
        "--recipe",
        "tutorial",
        "--state",
        str(state),
        "--out",
        str(tmp_path / "out.jsonl"),
    ]
    command += ["--set", f"judges.main.base_url={sim.url}", "--quiet"]
    process = python(
        "import runpy, sys; runpy.run_module('plaudit', run_name='__main__', alter_sys=True)", *command
    )
    journal, end = state / "judgments.log", time.monotonic() + 60
    empty = 64
    while not (journal.exists() and journal.stat().st_size > empty):
        assert time.monotonic() < end and process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    # It waits at most ten seconds for what was asked; the judge would have taken sixty.
    assert process.returncode == 130 and time.monotonic() - began < 20
    assert not (tmp_path / "out.jsonl").exists()


def test_the_command_is_the_command(tmp_path: Path):
    source = "from plaudit.__main__ import main; raise SystemExit(main())"
    assert "ngram_repetition_penalty" in finished(python(source, "rewards"))
    process = python(source, "score", str(tmp_path / "none.jsonl"))
    process.communicate(timeout=60)
    assert process.returncode == 2
