"""The service's routes for other trainers' clients: payloads as they go over the wire, without the trainers."""

from __future__ import annotations

import base64
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import BINARY
from plaudit.remote import Service
from plaudit.trl import Reward

RULES = {"name": "rules", "components": {"right": {"reward": "accuracy", "required": True}}}
TASTE = {
    "name": "taste",
    "components": {"words": {"reward": "principle", "mode": "pairwise", "judge": "main"}},
    "judges": {"main": {"kind": "overlap"}},
    "groups": {"timeout": "20s"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service that asks for tokens, and a token."""
    folder = tmp_path_factory.mktemp("service")
    for recipe in (RULES, TASTE):
        (folder / f"{recipe['name']}.yaml").write_text(json.dumps(recipe))
    tokens = str(folder / "tokens.json")
    made = [BINARY, "token", "create", "trainer", "--scope", "score", "--file", tokens]
    token = subprocess.run(made, capture_output=True, text=True, check=True).stdout.split()[-1]
    command = [BINARY, "serve", "--bind", "127.0.0.1:0", "--token-file", tokens]
    command += ["--state", str(folder / "state")]
    command += ["--recipe", str(folder / "rules.yaml"), "--recipe", str(folder / "taste.yaml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip(), token
    process.terminate()
    process.wait(20)


def post(service: tuple[str, str], path: str, body: Any) -> tuple[int, Any]:
    """The status and the body of an answer; the token goes as clients send it that only have an address."""
    url, token = service
    shown = base64.b64encode(f"trainer:{token}".encode()).decode()
    request = urllib.request.Request(
        url + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Basic {shown}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["code"]


def verify(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {
        "responses_create_params": {"input": "which colour?"},
        "response": {"output": [{"type": "message", "role": "assistant", "content": content}]},
        **fields,
    }


def test_each_gets_its_answer(service: tuple[str, str]) -> None:
    asked = {"query": ["q red</s>"], "prompts": ["q "], "labels": ["red"]}
    status, told = post(service, "/openrlhf/rules/a-run", asked)
    assert (status, told["rewards"], told["scores"]) == (200, 1.0, 1.0)
    assert told["extra_logs"]["plaudit/right"] == 1.0
    assert post(service, "/slime/rules", {"prompt": "q", "response": "red", "label": "red"}) == (200, 1.0)
    status, told = post(service, "/nemo-gym/rules/verify", verify("red", expected_answer="red", level=3))
    assert (status, told["reward"], told["reward_components"], told["level"]) == (200, 1.0, {"right": 1.0}, 3)


def test_what_has_no_number_gets_none(service: tuple[str, str]) -> None:
    missing = (422, "input.missing_reference")
    assert (
        post(service, "/openrlhf/rules", {"query": ["q red"], "prompts": ["q "], "labels": [""]}) == missing
    )
    assert post(service, "/slime/rules", {"prompt": "q", "response": "red", "label": None}) == missing
    assert post(service, "/nemo-gym/rules/verify", verify("red")) == missing
    status, told = post(service, "/nemo-gym/rules/verify?failure=class", verify("red"))
    assert (status, told["_ng_failure_class"], told["mask_sample"]) == (200, "verify_failed", True)


def test_samples_of_one_prompt_make_a_group(service: tuple[str, str]) -> None:
    """All three ways at once, each with a group of its own; one request holds a whole group."""
    texts = ["the sky is blue", "grass", "blue sky"]
    slime = [{"prompt": "q", "response": text, "label": "the sky is blue today"} for text in texts]
    gym = [
        verify(text, answer="the sky is blue today", _ng_rollout_index=at) for at, text in enumerate(texts)
    ]
    batch = {
        "query": [f"q {text}" for text in texts],
        "prompts": ["q "] * 3,
        "labels": ["the sky is blue today"] * 3,
    }
    with ThreadPoolExecutor(7) as threads:
        asked = [threads.submit(post, service, "/slime/taste?size=3", body) for body in slime]
        asked += [threads.submit(post, service, "/nemo-gym/taste/verify?size=3", body) for body in gym]
        one = threads.submit(post, service, "/openrlhf/taste?size=3", batch)
        got = [each.result() for each in asked]
        status, told = one.result()
    assert [status for status, _ in got] == [200] * 6 and status == 200
    rewards = told["rewards"]
    assert rewards[0] > rewards[2] > rewards[1]
    assert [reward for _, reward in got[:3]] == rewards
    assert [answer["reward"] for _, answer in got[3:]] == rewards
    assert told["extra_logs"]["plaudit/group_size"] == [3.0] * 3


def test_mistakes_have_a_status_and_a_code(service: tuple[str, str]) -> None:
    sample = {"prompt": "q", "response": "x"}
    assert post(service, "/slime/taste", sample) == (400, "input.group_size")
    assert post(service, "/slime/rules?length=3", sample) == (400, "http.query")
    assert post(service, "/slime/nothing", sample) == (404, "recipe.unknown")
    assert post(service, "/slime/rules", {"prompt": "q"}) == (400, "http.body")
    assert post(service, "/nemo-gym/rules/compare", sample)[0] == 404
    assert post((service[0], "wrong"), "/slime/rules", sample)[0] == 401


def test_a_trainer_here_gets_what_the_service_says(service: tuple[str, str]) -> None:
    """A token that may have rollouts scored may ask by which recipes."""
    url, token = service
    reward = Reward("taste", url=url, token=token, run="here")
    texts = ["the sky is blue", "grass"]
    got = reward(["q", "q"], texts, answer=["the sky is blue today"] * 2)
    assert got == Reward(TASTE)(["q", "q"], texts, answer=["the sky is blue today"] * 2)
    asked = Service(url, token=token)
    with ThreadPoolExecutor(2) as threads:
        joined = [
            threads.submit(
                asked.join, "taste", "g", 2, {"response": text, "reference": "the sky is blue today"}
            )
            for text in texts
        ]
        assert [each.result().total for each in joined] == pytest.approx(got, abs=2.0**-16)
