"""`Service`: retries, deadlines, errors and connections of the HTTP client."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import plaudit
import pytest
from conftest import BINARY
from plaudit import Result
from plaudit.remote import Job, Service, ServiceError

SCORED = {"id": "a", "group": "g", "total": 0.5, "outcome": "scored", "components": {}}


class FakeService:
    """A service that answers what it is told to, one after the other, and notes what it was asked."""

    def __init__(self, *replies: tuple[int, dict[str, str], Any]) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.connections = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                fake.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fake.asked.append((self.path, dict(self.headers), json.loads(body) if body else None))
                status, headers, said = fake.replies.pop(0) if len(fake.replies) > 1 else fake.replies[0]
                if status == 0:
                    self.close_connection = True
                    return
                text = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_DELETE = do_POST

            def log_message(self, *said: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def fake() -> Iterator[Callable[..., FakeService]]:
    fakes: list[FakeService] = []

    def make(*replies: tuple[int, dict[str, str], Any]) -> FakeService:
        fakes.append(FakeService(*replies))
        return fakes[-1]

    yield make
    for each in fakes:
        each.server.shutdown()
        each.server.server_close()


def ok(*results: Any, errors: Any = ()) -> tuple[int, dict[str, str], Any]:
    return 200, {}, {"run": "r", "results": list(results), "errors": list(errors)}


def refused(status: int, code: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    return status, headers, {"error": {"code": code, "message": "because"}}


def test_what_is_asked(fake: Callable[..., FakeService]) -> None:
    at = fake(ok(SCORED))
    service = Service(at.url + "/", token="secret\n")
    assert service.score("math", [{"response": "x"}], run="r", step=3)[0].total == 0.5
    path, headers, body = at.asked[0]
    assert path == "/v1/score" and headers["Authorization"] == "Bearer secret"
    assert body == {"recipe": "math", "run": "r", "step": 3, "rollouts": [{"response": "x"}]}
    assert service.score("math", []) == [] and len(at.asked) == 1


def test_connections_are_kept_and_a_closed_one_is_no_failure(
    fake: Callable[..., FakeService], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = fake(ok(SCORED), ok(SCORED), (0, {}, None), ok(SCORED))
    service = Service(at.url, timeout=5.0)
    service.score("math", [{"response": "x"}])
    service.score("math", [{"response": "x"}])
    assert at.connections == 1
    pauses: list[float] = []
    monkeypatch.setattr("plaudit.remote.time.sleep", pauses.append)
    assert service.score("math", [{"response": "x"}])[0].total == 0.5
    assert at.connections == 2 and pauses == []


def test_what_could_not_be_read_is_invalid_in_its_place(fake: Callable[..., FakeService]) -> None:
    wrong = {"index": 1, "code": "input.response", "message": "no text"}
    at = fake(ok(SCORED, {**SCORED, "total": 0.25}, errors=[wrong]))
    got = Service(at.url).score("math", [{"response": "x"}, {"response": 1}, {"response": "y"}])
    assert [answer.total for answer in got] == [0.5, None, 0.25]
    assert got[1] == Result.invalid("input.response", "no text")


def test_large_batches_are_split_between_groups(
    fake: Callable[..., FakeService], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaudit.remote.MAX_ROLLOUTS", 4)
    at = fake(
        ok(*({**SCORED, "total": total} for total in (0.0, 2.0, 1.0))), ok({**SCORED, "total": 3.0}, SCORED)
    )
    rollouts = [{"group": group, "response": "x"} for group in ("a", "b", "a")]
    rollouts += [{"prompt": [{"role": "user", "content": "q"}], "response": "x"}] * 2
    got = Service(at.url).score("math", rollouts)
    assert [answer.total for answer in got] == [0.0, 1.0, 2.0, 3.0, 0.5]
    assert [len(body["rollouts"]) for _, _, body in at.asked] == [3, 2]
    assert [rollout["group"] for rollout in at.asked[0][2]["rollouts"]] == ["a", "a", "b"]


def test_a_busy_service_is_asked_again_when_it_says(fake: Callable[..., FakeService]) -> None:
    at = fake(refused(429, "engine.overloaded", **{"Retry-After": "1"}), refused(503, "draining"), ok(SCORED))
    begun = time.monotonic()
    assert Service(at.url, timeout=20.0).score("math", [{"response": "x"}])[0].total == 0.5
    assert time.monotonic() - begun >= 1.0 and len(at.asked) == 3


def test_a_wait_beyond_the_deadline_is_not_begun(fake: Callable[..., FakeService]) -> None:
    at = fake(refused(503, "draining", **{"Retry-After": "60"}))
    begun = time.monotonic()
    (got,) = Service(at.url, timeout=5.0).score("math", [{"response": "x"}])
    assert time.monotonic() - begun < 2.0
    assert (got.total, got.outcome) == (None, "invalid")
    assert got.reason is not None and got.reason["code"] == "engine.unreachable"
    assert "503 draining" in got.reason["message"]


def test_nobody_there_and_nobody_answering() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        begun = time.monotonic()
        got = Service(url, timeout=0.6).score("math", [{"response": "x"}, {"response": "y"}])
        assert time.monotonic() - begun < 3.0
        assert [answer.outcome for answer in got] == ["invalid", "invalid"]
        joined = Service(url, timeout=0.3).join("math", "g", 2, {"response": "x"})
        assert joined.total is None and joined.reason is not None
    with pytest.raises(ServiceError) as raised:
        Service(url, timeout=0.3).recipe("math")
    assert raised.value.code == "engine.unreachable"


def test_a_wrong_address_is_told_soon_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fake: Callable[..., FakeService]
) -> None:
    monkeypatch.setattr("plaudit.remote.STARTUP_S", 1.0)
    here = fake(ok(SCORED)).url
    nobody = "http://127.0.0.1:9"
    for url, meaning in [
        (nobody, "nobody listens there (ConnectionRefusedError"),
        ("http://no-such-host.invalid:7717", "the name of the host is not known (gaierror"),
        (here.replace("http", "https"), "there is no TLS with it"),
    ]:
        begun = time.monotonic()
        caplog.clear()
        with pytest.raises(ServiceError, match="gave no answer within 1 s") as raised:
            Service(url).recipe("math")
        assert time.monotonic() - begun < 20.0
        assert url in str(raised.value) and meaning in str(raised.value)
        (record,) = caplog.records
        assert url in record.getMessage() and meaning in record.getMessage()


@pytest.mark.parametrize(
    ("status", "code"), [(400, "http.body"), (401, "auth.missing"), (404, "recipe.unknown")]
)
def test_what_the_caller_must_mend_is_raised(
    fake: Callable[..., FakeService], status: int, code: str
) -> None:
    at = fake(refused(status, code))
    with pytest.raises(ServiceError, match="because") as raised:
        Service(at.url).score("math", [{"response": "x"}])
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.status, error.code, len(at.asked)) == (status, code, 1)
    assert isinstance(error, plaudit.RunError)


def test_somebody_else_answers(fake: Callable[..., FakeService]) -> None:
    with pytest.raises(ServiceError, match="answered 403"):
        Service(fake((403, {}, b"<html>")).url).score("math", [{"response": "x"}])
    with pytest.raises(ServiceError, match="not JSON"):
        Service(fake((200, {}, b"<html>")).url).score("math", [{"response": "x"}])


def test_a_join_says_who_it_is(fake: Callable[..., FakeService]) -> None:
    info = {"quality": {"outcome": "scored", "value": 0.5, "weight": 1.0, "info": {"win": 1.0}}}
    at = fake((200, {}, {"run": "r", "result": {**SCORED, "components": info}, "partial": True}))
    got = Service(at.url).join("math", "g", 4, {"response": "x"}, member="3", step=0, validate=True)
    assert got == Result(
        0.5, "scored", None, {"quality": 0.5}, {"quality.win": 1.0, "win": 1.0}, partial=True
    )
    assert at.asked[0][2] == {
        "recipe": "math",
        "group": "g",
        "size": 4,
        "member": "3",
        "rollout": {"response": "x"},
        "step": 0,
        "validate": True,
    }


def test_half_a_character_is_no_failure(fake: Callable[..., FakeService]) -> None:
    at = fake(ok(SCORED))
    Service(at.url).score("math", [{"response": "a\ud800b"}])
    assert at.asked[0][2]["rollouts"][0]["response"] == "a?b"


def test_wrong_settings_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("127.0.0.1:7717", "ftp://host", "http://me:secret@host", "http://host?x=1"):
        with pytest.raises(ValueError, match="url"):
            Service(wrong)
    with pytest.raises(ValueError, match="not both"):
        Service("http://host", token="a", token_env="B")
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(ServiceError, match="NO_SUCH_TOKEN"):
        Service("http://127.0.0.1:1", token_env="NO_SUCH_TOKEN").score("math", [{"response": "x"}])


def job(state: str, **status: Any) -> tuple[int, dict[str, str], Any]:
    return 200, {}, {"job": "j", "state": state, "rollouts": 2, "bad": 1, "message": None, **status}


def lines(*said: Any) -> tuple[int, dict[str, str], Any]:
    return 200, {}, b"".join(json.dumps(line).encode() + b"\n" for line in said)


def test_a_job_is_waited_for_and_read_in_pages(
    fake: Callable[..., FakeService], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaudit.remote.time.sleep", lambda _: None)
    wrong = {"index": 1, "error": {"code": "input.response", "message": "no text"}}
    pages = lines(SCORED, {**SCORED, "total": 0.25}), lines(wrong)
    at = fake(job("waiting"), (503, {}, {}), job("waiting"), job("running"), job("done"), *pages)
    mine = Service(at.url).submit_job("math", [{"response": "x"}, {"response": 1}, {"response": "y"}], step=2)
    got = mine.results()
    assert [answer.total for answer in got] == [0.5, None, 0.25]
    assert got[1] == Result.invalid("input.response", "no text")
    paths = [path for path, _, _ in at.asked]
    assert paths[0] == "/v1/jobs" and paths[1:5] == ["/v1/jobs/j"] * 4
    assert paths[5:] == [f"/v1/jobs/j/results?from={first}&limit=4096" for first in (0, 2)]
    assert at.asked[0][2]["step"] == 2 and len(at.asked[0][2]["rollouts"]) == 3


def test_a_job_whose_answer_is_lost_is_made_once(
    fake: Callable[..., FakeService], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaudit.remote.time.sleep", lambda _: None)
    at = fake((503, {}, {}), job("waiting"))
    service = Service(at.url)
    service.submit_job("math", [{"response": "x"}])
    service.submit_job("math", [{"response": "x"}], key="eval-7")
    first, again, named = (headers["Idempotency-Key"] for _, headers, _ in at.asked)
    assert first == again and len(first) == 32 and named == "eval-7"


def test_a_job_without_results_says_why(fake: Callable[..., FakeService]) -> None:
    failed = Job(Service(fake(job("failed", message="nothing could be scored")).url), "j")
    with pytest.raises(ServiceError, match="is failed: nothing could be scored") as raised:
        failed.results()
    assert raised.value.code == "job.failed"
    with pytest.raises(TimeoutError, match="running after 0 s"):
        Job(Service(fake(job("running")).url), "j").wait(0.0)
    short = fake(job("done"), lines(SCORED), lines())
    with pytest.raises(ServiceError, match="1 results and 0 errors for 3 rollouts"):
        Job(Service(short.url), "j").results()
    away = Service("http://127.0.0.1:9", timeout=0.01)
    with pytest.raises(ServiceError, match="gave no answer"):
        Job(away, "j").status()


def test_a_job_of_a_real_service(tmp_path: Path) -> None:
    command = [os.path.abspath(BINARY), "serve", "--bind", "127.0.0.1:0", "--state", "state"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            service = Service(served.stdout.readline().strip(), timeout=60.0)
            rollouts: list[dict[str, Any]] = [
                {
                    "prompt": "6 * 7?",
                    "response": "<think>Six sevens.</think><answer>42</answer>",
                    "reference": "42",
                },
                {"response": 3},
                {"prompt": "6 * 7?", "response": "forty-one", "reference": "42"},
            ]
            mine = service.submit_job("quickstart", rollouts, key="once")
            assert service.submit_job("quickstart", rollouts, key="once").id == mine.id
            right, unread, wrong = mine.results(timeout=60.0)
            assert unread.outcome == "invalid" and unread.reason is not None
            assert right.total is not None and wrong.total is not None and right.total > wrong.total
            assert [right, wrong] == service.score("quickstart", [rollouts[0], rollouts[2]])
            assert mine.cancel()["state"] == "done"
            with pytest.raises(ServiceError, match="404|job"):
                mine.status()
        finally:
            served.send_signal(signal.SIGINT)
        assert served.wait(60) == 0
