"""A reward model behind vLLM: plaudit's number is the model's own, as transformers computes it."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from launch import OFFLINE, Scored, Server, program

PROMPT = "What is two and two?"
RESPONSES = ["4", "It is four.", "I will not say."]

LOGITS = """
import json, sys
from transformers import AutoModelForSequenceClassification, AutoTokenizer
folder, prompt, responses = json.loads(sys.argv[1])
model = AutoModelForSequenceClassification.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
for response in responses:
    turns = [{"role": "user", "content": prompt}, {"role": "assistant", "content": response}]
    tokens = tokenizer.apply_chat_template(turns, return_tensors="pt", return_dict=True)
    print(model(**tokens).logits.item())
"""


@pytest.fixture(scope="module")
def logits(folder: Path) -> list[float]:
    """What transformers computes."""
    question = json.dumps([str(folder / "reward"), PROMPT, RESPONSES])
    command = [program("vllm", "python"), "-c", LOGITS, question]
    printed = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | OFFLINE
    ).stdout
    logits = [float(line) for line in printed.split()]
    # Numbers that show whether a logistic function was put on them, and how often.
    assert len(set(logits)) == 3 and max(map(abs, logits)) > 1
    return logits


@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("kind", ["classify", "pooling"])
def test_the_number_is_the_models_own(
    reward_server: Server, score: Callable[..., Scored], logits: list[float], kind: str, sigmoid: bool
) -> None:
    component = {"reward": "reward_model", "sigmoid": sigmoid}
    if not sigmoid:
        component |= {"min": -1000, "max": 1000}
    judge = {"kind": kind, "base_url": reward_server.address, "model": "reward", "hedge_share": 0.0}
    scored = score({"components": {"quality": component}, "judges": {"main": judge}}, [(PROMPT, RESPONSES)])
    expected = [1 / (1 + math.exp(-logit)) for logit in logits] if sigmoid else logits
    assert scored.totals == pytest.approx(expected, abs=1e-4), scored.said
