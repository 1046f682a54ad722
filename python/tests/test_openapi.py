"""The service's OpenAPI document, and real answers against its schemas."""

from __future__ import annotations

import copy
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import BINARY, Sim
from openapi_schema_validator import OAS30ReadValidator, OAS30WriteValidator
from openapi_spec_validator import validate
from plaudit.rollout import EXAMPLES

GROUP = [
    {"group": "g", "prompt": "colours?", "response": text, "reference": "red green"}
    for text in ("red", "green", "red green", "red")
]
VERIFY = {
    "responses_create_params": {"input": "which colour?"},
    "response": {
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "red"}]}
        ]
    },
    "expected_answer": "red",
    "level": 3,
}


class Service:
    """A running service that every answer is checked of."""

    def __init__(self, folder: Path, sim: Sim) -> None:
        judged = {
            "name": "judged",
            "components": {
                "words": {"reward": "principle", "mode": "pairwise", "judge": "main", "audit": 0.5},
                "right": {"reward": "accuracy", "weight": 0.5},
            },
            "judges": {"main": sim.judge(price={"input": 1.0, "output": 4.0})},
        }
        rules = {"name": "rules", "components": {"right": {"reward": "accuracy", "required": True}}}
        command = [BINARY, "serve", "--bind", "127.0.0.1:0", "--state", str(folder / "state")]
        for recipe in (judged, rules):
            (folder / f"{recipe['name']}.yaml").write_text(json.dumps(recipe))
            command += ["--recipe", str(folder / f"{recipe['name']}.yaml")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.document = json.loads(self.fetch("GET", "/openapi.json")[2])
        self.strict = strict(self.document)
        self.seen: set[tuple[str, str]] = set()

    def fetch(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, str]:
        """The status, the type and the text of an answer."""
        data = None if body is None else json.dumps(body).encode()
        heads = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data, heads, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers.get_content_type(), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get_content_type(), error.read().decode()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: str = "",
        expect: int = 200,
        headers: dict[str, str] | None = None,
        described: bool = True,
        **parts: str,
    ) -> Any:
        """What comes back, which is as the description says. So is the request, unless it is one with a mistake."""
        status, kind, text = self.fetch(method, path.format(**parts) + query, body, headers)
        assert status == expect, f"{method} {path}: {status} {text[:500]}"
        self.seen.add((method.lower(), path))
        operation = self.document["paths"][path][method.lower()]
        if body is not None and expect < 400 and described:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            sent = OAS30WriteValidator({**schema, "components": self.document["components"]})
            faults = [
                f"{list(fault.absolute_path)}: {fault.message[:300]}" for fault in sent.iter_errors(body)
            ]
            assert not faults, f"the request of {method} {path}: {faults[:5]}"
        for pair in filter(None, query.lstrip("?").split("&")):
            name = pair.partition("=")[0]
            assert any(known["name"] == name for known in operation["parameters"]), f"{path}: {name}"
        said = operation["responses"].get(str(status), operation["responses"]["default"])
        said = self.document["components"]["responses"]["Refused"] if "$ref" in said else said
        schema = said["content"][kind]["schema"]
        if kind == "text/plain":
            values = [text]
        else:
            values = [json.loads(line) for line in (text.splitlines() if kind.endswith("ndjson") else [text])]
        checker = OAS30ReadValidator({**strict(schema), "components": self.strict["components"]})
        for value in values:
            faults = [
                f"{list(fault.absolute_path)}: {fault.message[:300]}" for fault in checker.iter_errors(value)
            ]
            assert not faults, f"{method} {path}: {faults[:5]}"
        return values if kind.endswith("ndjson") else values[0]


def strict(schema: Any) -> Any:
    """The same, where nothing may come that is not described."""
    schema = copy.deepcopy(schema)
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict):
                part.setdefault("additionalProperties", False)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return schema


@pytest.fixture
def service(tmp_path: Path, judge_sim: Callable[..., Sim]) -> Iterator[Service]:
    found = Service(tmp_path, judge_sim())
    yield found
    found.process.terminate()
    found.process.wait(20)


def test_the_document_is_openapi(service: Service) -> None:
    validate(service.document)


def test_answers_are_as_they_are_described(service: Service) -> None:
    call = service.call
    asked = {"recipe": "judged", "run": "r", "step": 0, "validate": True, "statistics": True}
    run = call("POST", "/v1/score", {**asked, "rollouts": [*GROUP, {"response": 1}]}, described=False)["run"]
    chat = [{"role": "assistant", "content": "It is 42."}]
    one = [
        {**EXAMPLES, "id": at, "response": said} for at, said in enumerate((chat, {"messages": chat}, "42"))
    ]
    several = {"responses": [chat, "42"], "truncated": [True, None], "finish_reason": [None, "stop"]}
    assert not call("POST", "/v1/score", {"recipe": "rules", "rollouts": [*one, several]})["errors"]
    lone = {"recipe": "rules", "group": "a", "size": 1, "rollout": {"response": "x"}}
    call("POST", "/v1/join", lone)
    call("POST", "/v1/score", {**asked, "step": 2**53, "rollouts": []}, expect=400)

    many = {"recipe": "rules", "rollouts": [*GROUP, {"response": 1}]}
    key = {"Idempotency-Key": "once"}
    job = call("POST", "/v1/jobs", many, headers=key, expect=202, described=False)["job"]
    call("POST", "/v1/jobs", many, headers=key, described=False)
    end = time.monotonic() + 30
    while call("GET", "/v1/jobs/{job}", job=job)["state"] != "done":
        assert time.monotonic() < end, "the job did not end"
        time.sleep(0.02)
    assert len(call("GET", "/v1/jobs/{job}/results", job=job, query="?from=0&limit=9")) == len(GROUP) + 1
    call("GET", "/v1/jobs")
    call("DELETE", "/v1/jobs/{job}", job=job)
    call("GET", "/v1/jobs/{job}", job=job, expect=404)

    trainer_clients(service)

    call("GET", "/v1/runs")
    call("GET", "/v1/runs/{run}", run=run)
    steps = call("GET", "/v1/runs/{run}/steps", run=run, query="?limit=5&whole=1")["steps"]
    assert steps[0]["judges"][0]["calls"] > 0
    group = call("GET", "/v1/runs/{run}/groups", run=run, query="?step=0&limit=5")["groups"][0]["id"]
    assert call("GET", "/v1/runs/{run}/groups/{group}", run=run, group=group)["exchanges"]
    for reward in call("GET", "/v1/rewards")["rewards"]:
        call("GET", "/v1/rewards/{reward}", reward=reward["name"])
    for path in ("recipes", "judges", "status"):
        call("GET", f"/v1/{path}")
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        call("GET", path)

    described = {(method, path) for path, methods in service.document["paths"].items() for method in methods}
    assert described == service.seen


def trainer_clients(service: Service) -> None:
    """Asks as the clients of other trainers do, for no run and for one."""
    call = service.call
    for run in ("", "/{run}"):
        where = {"recipe": "rules", "run": "other"}
        one = {"query": ["q red</s>"], "prompts": ["q "], "labels": ["red"]}
        several = {"query": ["q red", "q blue"], "prompts": ["q ", "q "], "labels": ["red", "red"]}
        path = "/openrlhf/{recipe}" + run
        call("POST", path, one, query="?size=1&step=3&validate=false&eos=x&eos=y&score=right", **where)
        call("POST", path, several, **where)
        path = "/slime/{recipe}" + run
        call("POST", path, {"prompt": "q", "response": "red", "label": "red"}, **where)
        call("POST", path, {"prompt": "q", "response": "red", "label": "red"}, query="?key=total", **where)
        path = "/nemo-gym/{recipe}" + run
        told = call("POST", path + "/verify", VERIFY, **where)
        call("POST", path + "/verify", VERIFY, query="?failure=class&reference=gone", **where)
        call("POST", path + "/seed_session", {}, **where)
        call("POST", path + "/aggregate_metrics", {"verify_responses": [told, told]}, **where)
