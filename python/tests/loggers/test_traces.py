"""Traces of the service: what a real OTLP receiver gets of requests, batches and judge calls, and what a bad one costs."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

ROOT = Path(__file__).parents[3]
BINARY = os.environ.get("PLAUDIT_BIN", str(ROOT / "target/release/plaudit"))
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRETS = ("the-prompt-text", "the-better-text", "the-worse-text", "the-group-key")


class Receiver(ThreadingHTTPServer):
    """An OTLP/HTTP collector: parses what is posted with the official messages."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.requests: list[tuple[dict[str, str], ExportTraceServiceRequest]] = []
        self.raw = b""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Span]:
        batches = [batch for _, request in list(self.requests) for batch in request.resource_spans]
        return [span for batch in batches for scope in batch.scope_spans for span in scope.spans]

    def wait(self, count: int) -> list[Span]:
        """The spans, once so many have come."""
        end = time.monotonic() + 60
        while len(self.spans()) < count:
            assert time.monotonic() < end, [span.name for span in self.spans()]
            time.sleep(0.02)
        return self.spans()


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
        if self.server.status == 200:
            request = ExportTraceServiceRequest.FromString(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.raw += body
            self.server.requests.append((headers, request))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Judge(ThreadingHTTPServer):
    """Passes every call on to a simulated judge, and notes its `traceparent`."""

    daemon_threads = True

    def __init__(self, sim: str) -> None:
        super().__init__(("127.0.0.1", 0), JudgeHandler)
        self.sim = sim
        self.seen: list[str | None] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class JudgeHandler(BaseHTTPRequestHandler):
    server: Judge
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(self.headers.get("traceparent"))
        asked = urllib.request.Request(self.server.sim + self.path.removeprefix("/v1"), body)
        asked.add_header("content-type", "application/json")
        with urllib.request.urlopen(asked) as reply:
            status, answer = reply.status, reply.read()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


class Served:
    """A running `plaudit serve`."""

    def __init__(self, folder: Path, recipe: dict[str, Any], *flags: str, **environment: str) -> None:
        (folder / "recipe.json").write_text(json.dumps(recipe))
        command = [BINARY, "serve", "--bind", "127.0.0.1:0", "--recipe", str(folder / "recipe.json")]
        command += ["--state", str(folder / "state"), *flags]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env={**clean, **environment}
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.log.read_text()

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers=headers)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=60) as reply:
            return reply.read().decode()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(recipe: dict[str, Any], *flags: str, **environment: str) -> Served:
        started.append(Served(tmp_path, recipe, *flags, **environment))
        return started[-1]

    yield start
    for served in started:
        served.process.kill()
        served.process.wait()


@pytest.fixture
def judge() -> Iterator[Judge]:
    sim = subprocess.Popen(
        [BINARY, "judge-sim", "--port", "0", "--latency", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert sim.stdout is not None
    running = Judge(sim.stdout.readline().strip())
    yield running
    running.shutdown()
    sim.kill()
    sim.wait()


def rules() -> dict[str, Any]:
    return {"name": "lengths", "components": {"length": {"reward": "length_penalty"}}}


def judged(judge: Judge) -> dict[str, Any]:
    return {
        "name": "taste",
        "components": {
            "quality": {
                "reward": "principle",
                "mode": "pairwise",
                "principles": ["helpfulness"],
                "weight": 1.0,
            }
        },
        "judges": {"main": {"base_url": judge.url, "model": "sim-32b", "hedge_share": 0.0}},
    }


def group() -> dict[str, Any]:
    responses = ["the-better-text [[quality:3]]", "the-worse-text [[quality:1]]"]
    return {"group": "the-group-key", "prompt": "the-prompt-text", "responses": responses}


def attributes(span: Span) -> dict[str, Any]:
    values = {item.key: item.value for item in span.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values.items()}


def named(spans: list[Span], name: str) -> Span:
    (found,) = (span for span in spans if span.name == name)
    return found


def test_spans_nest_from_the_request_to_the_judge(serve: Any, judge: Judge) -> None:
    receiver = Receiver()
    served = serve(judged(judge), "--otlp-endpoint", receiver.url)
    body = {"run": "training-7", "step": 3, "rollouts": [group()]}
    status, reply = served.post("/v1/score", body, traceparent=f"00-{TRACE}-{PARENT}-01")
    assert status == 200 and [row["outcome"] for row in reply["results"]] == ["scored"] * 2
    spans = receiver.wait(4)
    assert sorted(span.name for span in spans) == [
        "POST /v1/score",
        "chat sim-32b",
        "judge quality",
        "score taste",
    ]
    chain = [
        named(spans, name) for name in ("POST /v1/score", "score taste", "judge quality", "chat sim-32b")
    ]
    assert all(span.trace_id.hex() == TRACE for span in spans)
    assert chain[0].parent_span_id.hex() == PARENT
    for outer, inner in zip(chain, chain[1:]):
        assert inner.parent_span_id == outer.span_id, (outer.name, inner.name)
        assert outer.start_time_unix_nano <= inner.start_time_unix_nano
        assert inner.end_time_unix_nano <= outer.end_time_unix_nano
    assert [span.kind for span in chain] == [
        Span.SPAN_KIND_SERVER,
        Span.SPAN_KIND_INTERNAL,
        Span.SPAN_KIND_INTERNAL,
        Span.SPAN_KIND_CLIENT,
    ]
    request, scoring, judging, call = map(attributes, chain)
    assert request == {
        "http.request.method": "POST",
        "http.route": "/v1/score",
        "http.response.status_code": 200,
        "plaudit.run": reply["run"],
        "plaudit.step": 3,
    }
    assert scoring == {
        "plaudit.recipe": "taste",
        "plaudit.rollouts": 2,
        "plaudit.groups": 1,
        "plaudit.invalid": 0,
    }
    assert judging == {"plaudit.component": "quality", "plaudit.judge": "main", "plaudit.responses": 2}
    tokens = [call.pop(f"gen_ai.usage.{side}_tokens") for side in ("input", "output")]
    assert all(count > 0 for count in tokens)
    host, port = judge.url.removeprefix("http://").removesuffix("/v1").split(":")
    assert call == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "sim-32b",
        "plaudit.judge": "main",
        "plaudit.attempts": 1,
        "server.address": host,
        "server.port": int(port),
    }
    # The judge is told the span of its call.
    assert judge.seen == [f"00-{TRACE}-{chain[3].span_id.hex()}-01"]
    for secret in SECRETS:
        assert secret.encode() not in receiver.raw
    # What the journal answers is no call.
    served.post("/v1/score", body)
    again = receiver.wait(7)[4:]
    assert sorted(span.name for span in again) == ["POST /v1/score", "judge quality", "score taste"]
    assert len({span.trace_id for span in again}) == 1 and again[0].trace_id.hex() != TRACE


def test_a_joined_group_is_scored_in_the_trace_of_its_last_member(serve: Any, judge: Judge) -> None:
    receiver = Receiver()
    served = serve(judged(judge), "--otlp-endpoint", receiver.url)
    responses, replies = group()["responses"], queue.Queue()

    def hand_in(member: int) -> None:
        rollout = {"prompt": "the-prompt-text", "response": responses[member]}
        body = {"group": "the-group-key", "size": 2, "member": str(member), "rollout": rollout}
        replies.put(served.post("/v1/join", body, traceparent=f"00-{TRACE[:-1]}{member}-{PARENT}-01"))

    first = threading.Thread(target=hand_in, args=(0,))
    first.start()
    while "plaudit_rollouts_joining 1" not in served.get("/metrics"):
        time.sleep(0.01)
    hand_in(1)
    first.join()
    assert [replies.get()[0] for _ in range(2)] == [200, 200]
    spans = receiver.wait(5)
    requests = [span for span in spans if span.name == "POST /v1/join"]
    assert sorted(span.trace_id.hex()[-1] for span in requests) == ["0", "1"]
    scoring = named(spans, "score taste")
    last = next(span for span in requests if span.trace_id.hex().endswith("1"))
    assert scoring.parent_span_id == last.span_id and scoring.trace_id == last.trace_id
    assert named(spans, "chat sim-32b").trace_id == last.trace_id


def test_failures_are_marked_by_their_code(serve: Any, judge: Judge) -> None:
    receiver = Receiver()
    recipe = judged(judge)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    recipe["judges"]["main"] |= {"base_url": down, "attempts": 1, "patience": "1ms"}
    served = serve(recipe, "--otlp-endpoint", receiver.url)
    status, reply = served.post("/v1/score", {"rollouts": [group()]})
    assert status == 200 and reply["results"][0]["outcome"] == "invalid"
    spans = receiver.wait(4)
    call = named(spans, "chat sim-32b")
    assert call.status.code == 2 and attributes(call)["error.type"].startswith("judge.")
    assert attributes(named(spans, "score taste"))["plaudit.invalid"] == 2
    assert named(spans, "POST /v1/score").status.code == 0, "the service itself has not failed"
    status, _ = served.post("/v1/score", {"rollouts": [], "recipe": "unknown"})
    assert status == 404
    refused = receiver.wait(5)[-1]
    assert refused.name == "POST /v1/score" and attributes(refused)["plaudit.error"] == "recipe.unknown"


def test_jobs_are_traces_of_their_own(serve: Any) -> None:
    receiver = Receiver()
    served = serve(rules(), "--otlp-endpoint", receiver.url)
    status, _ = served.post("/v1/jobs", {"rollouts": [group()]}, traceparent=f"00-{TRACE}-{PARENT}-01")
    assert status in (200, 201, 202)
    spans = receiver.wait(3)
    job, scoring = named(spans, "job"), named(spans, "score lengths")
    assert not job.parent_span_id and scoring.parent_span_id == job.span_id
    assert named(spans, "POST /v1/jobs").trace_id.hex() == TRACE


def test_the_environment_names_collector_key_and_service(serve: Any) -> None:
    receiver = Receiver()
    served = serve(
        rules(),
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20abc",
        OTEL_SERVICE_NAME="rewards",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    served.post("/v1/score", {"rollouts": [group()]})
    receiver.wait(2)
    headers, request = receiver.requests[0]
    assert headers["authorization"] == "Bearer abc"
    resource = {item.key: item.value.string_value for item in request.resource_spans[0].resource.attributes}
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.split()[1]
    assert resource == {
        "service.name": "rewards",
        "service.version": version,
        "deployment.environment.name": "test",
    }
    assert request.resource_spans[0].scope_spans[0].scope.name == "plaudit"
    # What the dashboard, Prometheus and orchestrators ask is not traced.
    for path in ("/healthz", "/metrics", "/", "/v1/runs"):
        served.get(path)
    assert served.end() == 0
    assert {span.name for span in receiver.spans()} == {"POST /v1/score", "score lengths"}
    assert "Bearer" not in served.log.read_text()


def test_what_the_caller_does_not_record_is_not_exported(serve: Any, judge: Judge) -> None:
    receiver = Receiver()
    served = serve(judged(judge), "--otlp-endpoint", receiver.url)
    served.post("/v1/score", {"rollouts": [group()]}, traceparent=f"00-{TRACE}-{PARENT}-00")
    (told,) = judge.seen
    assert told is not None and told.startswith(f"00-{TRACE}-") and told.endswith("-00")
    assert served.end() == 0
    assert receiver.spans() == []


def test_without_an_endpoint_nothing_is_traced(serve: Any, judge: Judge) -> None:
    served = serve(judged(judge))
    served.post("/v1/score", {"rollouts": [group()]}, traceparent=f"00-{TRACE}-{PARENT}-01")
    assert judge.seen == [None]
    assert "plaudit_spans_total" not in served.get("/metrics")
    threads = Path(f"/proc/{served.process.pid}/task").glob("*/comm")
    assert "plaudit-traces" not in {path.read_text().strip() for path in threads}


def test_the_end_flushes_what_waits(serve: Any) -> None:
    receiver = Receiver()
    served = serve(rules(), "--otlp-endpoint", receiver.url)
    for _ in range(5):
        served.post("/v1/score", {"rollouts": [group()]})
    assert served.end() == 0
    assert len(receiver.spans()) == 10


def test_a_collector_that_never_answers_holds_nothing_up(serve: Any) -> None:
    """It takes the first batch and is silent; all requests are answered meanwhile, and the service ends."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        served = serve(rules(), "--otlp-endpoint", f"http://127.0.0.1:{silent.getsockname()[1]}")
        served.post("/v1/score", {"rollouts": [group()]})
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(64).startswith(b"POST /v1/traces")
            for _ in range(200):
                status, _ = served.post("/v1/score", {"rollouts": [group()]})
                assert status == 200
            assert 'plaudit_spans_total{outcome="exported"} 0' in served.get("/metrics")
            assert served.end() == 0


def test_a_collector_that_is_away_or_refuses_is_counted(serve: Any, tmp_path: Path) -> None:
    for number, status in enumerate((None, 500)):
        receiver = Receiver(status or 200)
        if status is None:
            receiver.shutdown()
            receiver.server_close()
        folder = tmp_path / str(number)
        folder.mkdir()
        served = Served(folder, rules(), "--otlp-endpoint", receiver.url)
        try:
            for _ in range(20):
                assert served.post("/v1/score", {"rollouts": [group()]})[0] == 200
            while 'plaudit_spans_total{outcome="failed"} 0' in served.get("/metrics"):
                time.sleep(0.02)
            assert served.end() == 0
        finally:
            served.process.kill()
            served.process.wait()
        log = served.log.read_text()
        assert "the collector of traces did not take spans" in log
        assert log.count("did not take spans") == 1, "once a minute"
        assert "spans were not exported" in log


@pytest.mark.parametrize("flag", ["collector:4317", "ftp://collector", ""])
def test_an_endpoint_that_is_none_is_refused(tmp_path: Path, flag: str) -> None:
    command = [BINARY, "serve", "--bind", "127.0.0.1:0", "--state", str(tmp_path), "--otlp-endpoint", flag]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "OTLP endpoint" in done.stderr
