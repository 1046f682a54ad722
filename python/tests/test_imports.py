"""`--import` of the command: custom rewards of a module, by name and by file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from conftest import BINARY, ROOT

MODULE = '''
import plaudit

print("this goes to stderr")

@plaudit.register("test_import_length")
def length(prompts, responses, references, extras, *, scale=1.0):
    """How long the response is."""
    return [plaudit.Score(len(response) * scale, info={"letters": len(response)}) for response in responses]

@plaudit.register("test_import_asks")
def asks(prompts, responses, references, extras):
    return [reply if isinstance(reply, plaudit.JudgeError) else len(reply) for reply in plaudit.judge().ask_many(responses)]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_import_own.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text("components:\n  mine: { reward: test_import_length, scale: 2 }\n")
    rows = [{"id": str(at), "response": "x" * at} for at in range(1, 4)]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}


def plaudit(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plaudit", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done


SCORE = ("score", "rollouts.jsonl", "--recipe", "mine.yaml")


@pytest.mark.parametrize("module", ["test_import_own", "test_import_own.py", "./test_import_own.py"])
def test_score_with_a_reward_of_a_module(folder: Path, module: str):
    done = plaudit(folder, *SCORE, "--import", module)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["total"] for row in rows] == [2.0, 4.0, 6.0]
    assert rows[0]["components"]["mine"]["info"] == {"letters": 1} and "this goes to stderr" in done.stderr


def test_the_other_verbs(folder: Path):
    own = ("--import", "test_import_own")
    assert "test_import_length" in plaudit(folder, "recipe", "check", "mine.yaml", *own).stdout
    assert plaudit(folder, "rank", "rollouts.jsonl", "--keep", "1", "--recipe", "mine.yaml", *own).stdout
    assert "How long the response is." in plaudit(folder, "rewards", "test_import_length", *own).stdout
    plaudit(folder, "plan", "rollouts.jsonl", "--recipe", "mine.yaml", *own)
    plaudit(folder, "doctor", "rollouts.jsonl", "--recipe", "mine.yaml", *own)
    plaudit(folder, *SCORE, *own, "--state", "run", "--out", "first.jsonl")
    again = plaudit(folder, "replay", "--state", "run", *own)
    assert again.stdout == (folder / "first.jsonl").read_text()
    assert "letters" in plaudit(folder, "explain", "1", "--state", "run", *own).stdout


def test_a_replay_asks_no_judge(folder: Path, judge_sim):
    sim = judge_sim()
    judge = f'judges:\n  main: {{ base_url: "{sim.url}", model: sim, hedge_share: 0 }}\n'
    (folder / "mine.yaml").write_text("components:\n  mine: { reward: test_import_asks }\n" + judge)
    own = ("--import", "test_import_own")
    plaudit(folder, *SCORE, *own, "--state", "run", "--out", "first.jsonl")
    asked = len(sim.calls())
    assert asked == 3
    sim.end()
    assert plaudit(folder, "replay", "--state", "run", *own).stdout == (folder / "first.jsonl").read_text()
    assert len(sim.calls()) == asked


def test_what_cannot_be_imported_is_told(folder: Path):
    told = plaudit(folder, *SCORE, "--import", "no_such_module", code=2).stderr
    assert "--import no_such_module: No module named 'no_such_module'" in told and "Traceback" not in told
    assert "there is no file 'gone.py'" in plaudit(folder, *SCORE, "--import", "gone.py", code=2).stderr
    (folder / "broken_module.py").write_text("import plaudit\n\nraise ValueError('not today')\n")
    told = plaudit(folder, *SCORE, "--import", "broken_module", code=2).stderr
    assert "broken_module.py" in told and "ValueError: not today" in told and "importlib" not in told


def test_an_unknown_reward_and_a_command_without_python_say_what_is_missing(folder: Path):
    told = plaudit(folder, *SCORE, code=2).stderr
    assert "there is no reward" in told and "--import MODULE" in told
    command = [os.path.abspath(BINARY), *SCORE, "--import", "test_import_own"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "pip install plaudit" in done.stderr


def test_the_service_has_the_rewards_of_a_module(folder: Path):
    command = [sys.executable, "-m", "plaudit", "serve", "--bind", "127.0.0.1:0", "--recipe", "mine.yaml"]
    command += ["--import", "test_import_own"]
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().strip()
            body = {"recipe": "mine", "rollouts": [{"response": "xxxx"}]}
            request = urllib.request.Request(
                f"{url}/v1/score", json.dumps(body).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as reply:
                assert '"total":8.0' in reply.read().decode().replace(" ", "")
        finally:
            served.send_signal(signal.SIGINT)
        assert served.wait(60) == 0


def test_ctrl_c_ends_a_run_whose_function_hangs(folder: Path):
    (folder / "hanging.py").write_text(
        "import plaudit, sys, time\n\n"
        '@plaudit.register("test_import_length")\n'
        "def hangs(prompts, responses, references, extras, *, scale=1.0):\n"
        '    print("called", file=sys.stderr, flush=True)\n'
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "plaudit", *SCORE, "--out", "out.jsonl", "--import", "hanging"]
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while "called" not in run.stderr.readline():
            assert run.poll() is None
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
