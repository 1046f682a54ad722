"""Tests of the example that retraces the tutorial, with the embedded judge and with a served one."""

import importlib.util
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]


def run(*words):
    command = [sys.executable, str(ROOT / "examples" / "tutorial.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def means(said, step):
    """The figures that a step prints, by their names."""
    part = said.split(f"== {step}.")[1].split("\n==")[0]
    lines = [line.split() for line in part.splitlines() if line.endswith("in the mean")]
    return {words[0]: float(words[1]) for words in lines}


def test_with_the_embedded_judge():
    said = run()
    batch = means(said, 3)
    assert batch["plaudit/invalid"] == 0.0 and batch["reward_std"] > 0.1
    assert {"reward_principle", "reward_format", "reward_ngram", "thought_lengths"} <= set(batch)
    validation = means(said, 4)
    assert 0.0 <= validation["win"] <= validation["win_and"] <= 1.0
    assert re.search(r"invalid=mean: \d+ of 32 are flagged; the first gets 0: judge\.", said)
    assert re.search(r"invalid=-999.0: \d+ of 32 are flagged; the first gets -999: judge\.", said)
    if importlib.util.find_spec("verl") is not None:
        assert "judged as the plain lists were: True" in said


def test_with_a_judge_that_is_served(judge_sim):
    batch = means(run("--judge", judge_sim(), "--groups", "2"), 3)
    assert batch["plaudit/invalid"] == 0.0 and batch["reward_std"] > 0.1
