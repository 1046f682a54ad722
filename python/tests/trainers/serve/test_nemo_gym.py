"""NeMo-Gym with rewards from the service.

Everything but the model is NeMo-Gym's own, from the package index: the collection of rollouts, the agent, the client between its
servers, and the base of the resources server, whose twenty lines are those that the guide prints.
"""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documented
import pytest
import uvicorn
from aiohttp import ClientResponseError
from conftest import ROOT, RULES, Running, taste
from fastapi import FastAPI, Request
from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse
from nemo_gym.config_types import AggregateMetrics, AggregateMetricsRequest, BaseServerConfig
from nemo_gym.reward_profile import compute_aggregate_metrics
from nemo_gym.rollout_collection import NG_FAILURE_CLASS_KEY, RolloutCollectionHelper
from nemo_gym.server_utils import (
    GlobalAIOHTTPAsyncClientConfig,
    ServerClient,
    get_response_json,
    global_aiohttp_client_exit,
    request,
    set_global_aiohttp_client,
)
from omegaconf import OmegaConf
from pydantic import ConfigDict
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig


def forwarder(folder: Path) -> dict[str, Any]:
    """The names of the file that the guide prints for NeMo-Gym."""
    guide = (ROOT / "docs/guide/serve-clients.md").read_text()
    (source,) = re.findall(r"```python\n(# resources_servers/plaudit/app.py\n.*?)```", guide, re.DOTALL)
    file = folder / "app.py"
    file.write_text(source)
    return runpy.run_path(str(file))


def said(text: str) -> dict[str, Any]:
    """A response as a model server of NeMo-Gym gives it."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return {
        "id": "r",
        "created_at": 0.0,
        "model": "stand-in",
        "object": "response",
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def model() -> FastAPI:
    """Says the next of the words in the prompt, each time that it is asked the same."""
    app, asked = FastAPI(), Counter[str]()

    @app.post("/v1/responses")
    async def responses(request: Request) -> dict[str, Any]:
        words = (await request.json())["input"][-1]["content"].split()
        asked[words[0]] += 1
        return said(words[asked[words[0]]])

    return app


def row(task: int, rollout: int, words: str, **fields: Any) -> dict[str, Any]:
    return {
        "responses_create_params": {"input": [{"role": "user", "content": words}]},
        "agent_ref": {"name": "agent"},
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        **fields,
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def collect(folder: Path, url: str, rows: list[dict[str, Any]]) -> list[Any]:
    """The results of NeMo-Gym's own collection, in the order of the rows; an exception is a result, too."""
    ports = {name: free_port() for name in ("model", "plaudit", "agent")}
    kinds = {"model": "responses_api_models", "plaudit": "resources_servers", "agent": "responses_api_agents"}
    config = {
        name: {kinds[name]: {name: {"host": "127.0.0.1", "port": port}}} for name, port in ports.items()
    }
    client = ServerClient(
        head_server_config=BaseServerConfig(host="127.0.0.1", port=1),
        global_config_dict=OmegaConf.create(config),
    )
    names = forwarder(folder)
    common = {"host": "127.0.0.1", "entrypoint": "app.py"}
    resources = names["Plaudit"](
        config=names["PlauditConfig"](name="plaudit", port=ports["plaudit"], url=url, **common),
        server_client=client,
    )
    agent = SimpleAgent(
        config=SimpleAgentConfig(
            name="agent",
            port=ports["agent"],
            resources_server={"type": "resources_servers", "name": "plaudit"},
            model_server={"type": "responses_api_models", "name": "model"},
            **common,
        ),
        server_client=client,
    )

    class Helper(RolloutCollectionHelper):
        model_config = ConfigDict(arbitrary_types_allowed=True)

        def setup_server_client(self, head_server_config: Any = None) -> ServerClient:
            return client

    async def all_of_them() -> list[Any]:
        set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
        apps = {
            "model": model(),
            "plaudit": resources.setup_webserver(),
            "agent": agent.setup_webserver(),
        }
        for server, app in ((resources, apps["plaudit"]), (agent, apps["agent"])):
            server.setup_exception_middleware(app)
        servers = [
            uvicorn.Server(uvicorn.Config(app, port=ports[name], log_level="error"))
            for name, app in apps.items()
        ]
        tasks = [asyncio.create_task(server.serve()) for server in servers]
        while not all(server.started for server in servers):
            await asyncio.sleep(0.01)
        results: dict[int, Any] = {}
        for future in Helper().run_examples(rows):
            try:
                asked, result = await future
                results[rows.index(asked)] = result
            except ClientResponseError as error:
                results[len(rows) + len(results)] = error
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)
        return [results[at] for at in sorted(results)]

    try:
        return asyncio.run(all_of_them())
    finally:
        global_aiohttp_client_exit()


def test_rewards_come_through_the_agent(serve: Callable[..., str], tmp_path: Path) -> None:
    url = f"{serve(RULES)}/nemo-gym/rules/my-run/verify"
    rows = [row(0, at, "q red blue", expected_answer="red") for at in range(2)]
    got = collect(tmp_path, url, rows)
    assert sorted(each["reward"] for each in got) == [0.0, 1.0]
    for each in got:
        assert sum(each["reward_components"].values()) == pytest.approx(each["reward"], rel=1e-5, abs=1e-6)
        assert each["response"]["output"] and each["responses_create_params"]["input"]
        assert each["plaudit"]["components"]["right"] == each["reward"]


def test_rollouts_of_one_task_are_compared(serve: Callable[..., str], judge: Running, tmp_path: Path) -> None:
    url = f"{serve(taste(judge.url))}/nemo-gym/taste/verify?size=3"
    words = " ".join(f"[[quality:{mark}]]" for mark in range(3))
    rows = [row(task, at, f"q{task} {words}") for at in range(3) for task in range(2)]
    for _ in range(2):  # The same tasks come back in the next step.
        got = collect(tmp_path, url, rows)
        for task in range(2):
            of_task = [each for each in got if each["_ng_task_index"] == task]
            marks = sorted(
                (each["response"]["output"][0]["content"][0]["text"], each["reward"]) for each in of_task
            )
            rewards = [reward for _, reward in marks]
            assert rewards == sorted(rewards) and rewards[0] < 0.0 < rewards[2]
            assert all(each["plaudit"]["group_size"] == 3 for each in of_task)


def test_a_failure_is_a_class_for_those_who_ask(serve: Callable[..., str], tmp_path: Path) -> None:
    service = serve(RULES)
    rows = [row(0, 0, "q red"), row(1, 0, "r red", expected_answer="red")]
    failed, scored = collect(tmp_path, f"{service}/nemo-gym/rules/verify?failure=class", rows)
    assert failed[NG_FAILURE_CLASS_KEY] == "verify_failed" and failed["mask_sample"] is True
    assert "input.missing_reference" in failed["_ng_failure_judge_error"]
    assert scored["reward"] == 1.0 and NG_FAILURE_CLASS_KEY not in scored


def test_a_failure_is_a_status_for_all_others(serve: Callable[..., str], tmp_path: Path) -> None:
    (got,) = collect(tmp_path, f"{serve(RULES)}/nemo-gym/rules/verify", [row(0, 0, "q red")])
    assert isinstance(got, ClientResponseError) and got.status >= 400


def test_the_service_is_a_resources_server_by_itself(serve: Callable[..., str]) -> None:
    """For clients that take an address with a path, as those of other projects do."""
    base = f"{serve(RULES)}/nemo-gym/rules"

    async def all_of_them() -> tuple[Any, Any, Any, Any]:
        set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
        body = {**row(3, 0, "q"), "response": said("red"), "expected_answer": "red"}
        seeded = await request("POST", f"{base}/seed_session", json=body)
        verified = await request("POST", f"{base}/verify", json=body)
        rows = [{"_ng_task_index": at // 2, "_ng_rollout_index": at % 2, "reward": at / 4} for at in range(4)]
        asked = AggregateMetricsRequest(verify_responses=rows).model_dump()
        told = await request("POST", f"{base}/aggregate_metrics", json=asked)
        answers = [await get_response_json(answer) for answer in (seeded, verified, told)]
        return (*answers, rows)

    try:
        seeded, verified, told, rows = asyncio.run(all_of_them())
    finally:
        global_aiohttp_client_exit()
    assert seeded == {}
    assert BaseVerifyResponse.model_validate(verified).reward == 1.0
    told, own = AggregateMetrics.model_validate(told), compute_aggregate_metrics(rows)
    assert told.key_metrics["mean/reward"] == pytest.approx(own.key_metrics["mean/reward"])
    for ours, theirs in zip(told.group_level_metrics, own.group_level_metrics, strict=True):
        assert {name: theirs[name] for name in ours} == pytest.approx(ours)
    assert json.dumps(told.agent_metrics)


def test_a_server_of_ones_own_takes_a_failure_for_a_zero() -> None:
    """The "before" of the page "If you use X"; its "after" is what the guide to the clients says."""

    async def ask_judge(text: str) -> float:
        raise TimeoutError

    before, after = documented.blocks("docs/guide/if-you-use.md", "NeMo-Gym")
    assert after in documented.blocks("docs/guide/serve-clients.md", "NeMo-Gym")
    names: dict[str, Any] = {"ask_judge": ask_judge}
    exec(before[1], names)
    client = ServerClient(
        head_server_config=BaseServerConfig(host="127.0.0.1", port=1),
        global_config_dict=OmegaConf.create({}),
    )
    config = BaseResourcesServerConfig(name="mine", host="127.0.0.1", port=1, entrypoint="app.py")
    body = BaseVerifyRequest.model_validate({**row(0, 0, "q"), "response": said("red")})
    assert asyncio.run(names["Mine"](config=config, server_client=client).verify(body)).reward == 0.0
