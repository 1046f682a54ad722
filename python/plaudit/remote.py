"""`Service`: an HTTP client of a running `plaudit serve`, with nothing but the standard library.

A request that the service is too busy for is retried until the deadline; after that every rollout is invalid,
`engine.unreachable`. A failure never becomes a number. An error that only the caller can fix, such as an unknown recipe or a
wrong token, is raised at once.
"""

from __future__ import annotations

import collections
import http.client
import json
import logging
import math
import os
import random
import socket
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from plaudit._plaudit import ArgumentError, RunError
from plaudit.fork import PerProcess
from plaudit.report import flat
from plaudit.result import Result
from plaudit.rollout import Rollout

_log = logging.getLogger("plaudit")

CONNECT_TIMEOUT_S = 10.0
"""The seconds that one attempt to connect may take."""

RETRYABLE = frozenset({408, 425, 429, 502, 503, 504})
"""The statuses after which the same request may succeed."""

MAX_BYTES = 32 << 20
"""The most bytes of one request, where its groups allow it: half of what a service takes by default."""

MAX_ROLLOUTS = 4096
"""The most rollouts of one request, where its groups allow it."""

STARTUP_S = 30.0
"""The seconds that a service which has never answered may take for its recipes: it may still be starting."""

_LOG_INTERVAL_S = 60.0
"""That a service gives no answer is logged once in so many seconds."""

_MAX_PAUSE_S = 10.0
"""The longest pause between two attempts, where the service sends no `Retry-After`."""


class ServiceError(RunError):
    """An error response of the service: its `code`, and the HTTP `status`."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, str(self))


class _Unreachable(Exception):
    """There was no answer before the deadline."""


class _Connections:
    """The idle connections of one process, and when it last warned that there is no answer."""

    def __init__(self) -> None:
        self.idle: collections.deque[http.client.HTTPConnection] = collections.deque()
        self.warned_at = -math.inf


class Service:
    """A client of a running `plaudit serve`.

    It may be used by several threads, pickled, and used after a fork: each process has connections of its own.

    Args:
        url: The address of the service, such as `http://10.0.0.7:7717`.
        token: The token that the service asks for.
        token_env: The environment variable that holds the token, in place of `token`.
        timeout: How many seconds one request may take, all attempts together.

    Raises:
        ArgumentError: The address is none, or holds a password or a query.

    Example:
        >>> Service("http://127.0.0.1:7717").score("math", [{"response": "42", "reference": "42"}])
    """

    def __init__(
        self, url: str, *, token: str | None = None, token_env: str | None = None, timeout: float = 1800.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError(
                f"url is the address of a service, such as http://127.0.0.1:7717, not {url!r}"
            )
        if parts.username or parts.password or parts.query:
            raise ArgumentError(
                "url has neither a password nor a query: give the token as token= or token_env="
            )
        if token is not None and token_env is not None:
            raise ArgumentError("give token= or token_env=, not both")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._secure = parts.scheme == "https"
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._token, self._token_env = token, token_env
        self._process: PerProcess[_Connections] = PerProcess()

    def __repr__(self) -> str:
        return f"<plaudit.remote.Service at {self.url}>"

    def recipe(self, name: str) -> dict[str, Any]:
        """Reads one of the service's recipes: its components, and whether it compares.

        Args:
            name: The name of the recipe.

        Returns:
            The entry of `GET /v1/recipes`.

        Raises:
            ServiceError: The service has no recipe of that name, or cannot be reached.

        Example:
            >>> service.recipe("math")["compares"]
        """
        offered = self._reach("GET", "/v1/recipes", within=STARTUP_S)["recipes"]
        for recipe in offered:
            if recipe["name"] == name:
                return recipe
        names = ", ".join(str(recipe["name"]) for recipe in offered)
        raise ServiceError(404, "recipe.unknown", f"{self.url} has no recipe {name!r}; it has {names}")

    def score(
        self,
        recipe: str,
        rollouts: Sequence[Rollout | Mapping[str, Any]],
        *,
        run: str | None = None,
        step: int | None = None,
        validate: bool | None = None,
    ) -> list[Result]:
        """Scores rollouts. Those that are too many for one request go in several, each with whole groups.

        Args:
            recipe: The name of a recipe of the service.
            rollouts: Dicts with `response` and, where there are any, the other fields of `plaudit.rollout.Rollout`.
            run: The run that the service counts them under.
            step: The step of that run.
            validate: Whether references take part in comparisons; where it is None, the recipe decides.

        Returns:
            One `Result` a rollout, in their order.

        Raises:
            ServiceError: The service refuses the request.

        Example:
            >>> [result.total for result in service.score("math", rollouts)]
        """
        asked = _given(recipe=recipe, run=run, step=step, validate=validate)
        written = [_written(rollout) for rollout in rollouts]
        answers: dict[int, Result] = {}
        for places in _batches(rollouts, written):
            body = _written(asked)[:-1] + b',"rollouts":[' + b",".join(written[at] for at in places) + b"]}"
            answers.update(zip(places, self._score(body, len(places)), strict=True))
        return [answers[at] for at in range(len(rollouts))]

    def _score(self, body: bytes, count: int) -> list[Result]:
        try:
            answer = self._request("POST", "/v1/score", body)
        except _Unreachable as error:
            return [Result.invalid("engine.unreachable", str(error))] * count
        return _placed(self.url, answer["results"], answer.get("errors") or (), count)

    def submit_job(
        self,
        recipe: str,
        rollouts: Sequence[Mapping[str, Any]],
        *,
        run: str | None = None,
        step: int | None = None,
        validate: bool | None = None,
        key: str | None = None,
    ) -> Job:
        """Hands in rollouts that the service scores in the background, also over its restarts: an evaluation, or a whole file.

        Args:
            recipe, rollouts, run, step, validate: As for `score`. All go in one request.
            key: What names the job. The same key with the same rollouts is the same job; where it is None, each call makes one.

        Returns:
            The `Job`.

        Raises:
            ServiceError: The service refuses the job, or cannot be reached.

        Example:
            >>> service.submit_job("math", rollouts).results()
        """
        asked = _given(recipe=recipe, run=run, step=step, validate=validate)
        asked["rollouts"] = [dict(rollout) for rollout in rollouts]
        # With a key, a request whose answer was lost can be sent once more.
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return Job(self, self._reach("POST", "/v1/jobs", _written(asked), headers=headers)["job"])

    def join(
        self,
        recipe: str,
        group: str,
        size: int,
        rollout: Rollout | Mapping[str, Any],
        *,
        member: str | None = None,
        run: str | None = None,
        step: int | None = None,
        validate: bool | None = None,
    ) -> Result:
        """Hands in one rollout of a group whose others come from elsewhere, and waits until the group has been scored.

        Args:
            recipe: The name of a recipe of the service.
            group: The name of the group.
            size: How many members the group has.
            rollout: A dict as for `score`.
            member: The name of the rollout in its group. With it, a request that is retried is not counted twice.
            run, step, validate: As for `score`.

        Returns:
            The `Result` of the rollout.

        Raises:
            ServiceError: The service refuses the request.

        Example:
            >>> service.join("tutorial", "prompt-17", 8, {"prompt": prompt, "response": text}, member="3")
        """
        asked = _given(
            recipe=recipe,
            group=group,
            size=size,
            rollout=dict(rollout),
            member=member,
            run=run,
            step=step,
            validate=validate,
        )
        try:
            answer = self._request("POST", "/v1/join", _written(asked))
        except _Unreachable as error:
            return Result.invalid("engine.unreachable", str(error))
        return _result(answer["result"], partial=bool(answer.get("partial")))

    def _reach(self, method: str, path: str, body: bytes | None = None, **options: Any) -> Any:
        """The response of a service that must be there."""
        try:
            return self._request(method, path, body, **options)
        except _Unreachable as error:
            raise ServiceError(0, "engine.unreachable", str(error)) from error

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        within: float = math.inf,
        headers: Mapping[str, str] | None = None,
        lines: bool = False,
    ) -> Any:
        """The response of the service, JSON or lines of it; retries until the deadline where that may help."""
        within = min(self.timeout, within)
        end = time.monotonic() + within
        pause, problem = 0.25, "no answer"
        while True:
            wait: float | None = None
            try:
                status, again, text = self._send(method, path, body, end, headers or {})
            except (OSError, http.client.HTTPException) as error:
                problem = _describe(error)
            else:
                if status < 300:
                    return _read(self.url, status, text, lines)
                refused = _error(self.url, status, text)
                if status not in RETRYABLE:
                    raise refused
                problem = f"{refused} ({status} {refused.code})"
                wait = _seconds(again)
            pause = min(2.0 * pause, _MAX_PAUSE_S)
            wait = pause * random.uniform(0.5, 1.0) if wait is None else wait
            if time.monotonic() + wait >= end:
                raise _Unreachable(
                    f"{self.url} gave no answer within {within:g} s, which is not the model's fault: {problem}"
                )
            self._warn(f"{self.url} gives no answer and is asked again for {within:g} s: {problem}")
            time.sleep(wait)

    def _warn(self, message: str) -> None:
        """A warning in the log, once a minute."""
        here, now = self._process.get(_Connections), time.monotonic()
        if now - here.warned_at > _LOG_INTERVAL_S:
            here.warned_at = now
            _log.warning("plaudit: %s", message)

    def _send(
        self, method: str, path: str, body: bytes | None, end: float, more: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        """One attempt, and a second one at once where a reused connection turns out to be closed."""
        headers = {**self._headers(body), **more}
        while True:
            connection, reused = self._take()
            try:
                if not reused:
                    connection.connect()
                assert connection.sock is not None
                connection.sock.settimeout(max(end - time.monotonic(), 0.001))
                connection.request(method, self._path + path, body, headers)
                answer = connection.getresponse()
                status, again, text = answer.status, answer.getheader("Retry-After"), answer.read()
            except BaseException as error:
                connection.close()
                if reused and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                    continue
                raise
            if connection.sock is not None:
                self._process.get(_Connections).idle.append(connection)
            return status, again, text

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it has served before."""
        try:
            return self._process.get(_Connections).idle.pop(), True
        except IndexError:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            return kind(self._host, self._port, timeout=CONNECT_TIMEOUT_S), False

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        token = os.environ.get(self._token_env) if self._token_env else self._token
        if self._token_env and not token:
            raise ServiceError(
                0, "auth.missing", f"the environment variable {self._token_env} holds no token"
            )
        if token:
            headers["Authorization"] = f"Bearer {token.strip()}"
        return headers


class Job:
    """A job of a service: rollouts that are scored in the background. One that is known by its id is `Job(service, id)`.

    Args:
        service: The service that has it.
        id: Its id.
    """

    def __init__(self, service: Service, id: str) -> None:
        self.service, self.id = service, id

    def __repr__(self) -> str:
        return f"<plaudit.remote.Job {self.id} at {self.service.url}>"

    def status(self) -> dict[str, Any]:
        """How far it is: its `state` (`waiting`, `running`, `done`, `cancelled` or `failed`), `rollouts`, `scored`, `message`.

        Raises:
            ServiceError: The service has no such job, or cannot be reached.
        """
        return self.service._reach("GET", f"/v1/jobs/{self.id}")

    def wait(self, timeout: float = math.inf) -> dict[str, Any]:
        """Waits until it is over, and gives its status.

        Raises:
            TimeoutError: It is not over after `timeout` seconds. It goes on.
            ServiceError: As for `status`.
        """
        end, pause = time.monotonic() + timeout, 0.1
        while (status := self.status())["state"] in ("waiting", "running"):
            if time.monotonic() + pause > end:
                raise TimeoutError(f"job {self.id} is {status['state']} after {timeout:g} s")
            time.sleep(pause)
            pause = min(2.0 * pause, _MAX_PAUSE_S)
        return status

    def results(self, timeout: float = math.inf) -> list[Result]:
        """Waits until it is done, and gives one `Result` a rollout, in their order.

        Raises:
            TimeoutError: As for `wait`.
            ServiceError: It was cancelled or failed, or cannot be reached.
        """
        status = self.wait(timeout)
        if status["state"] != "done":
            why = f": {status['message']}" if status.get("message") else ""
            raise ServiceError(
                409, f"job.{status['state']}", f"{self.service.url}: job {self.id} is {status['state']}{why}"
            )
        lines: list[dict[str, Any]] = []
        total = status["rollouts"] + status["bad"]
        # A page at a time, so that no response is too large for the service.
        while len(lines) < total:
            query = f"?from={len(lines)}&limit={MAX_ROLLOUTS}"
            page = self.service._reach("GET", f"/v1/jobs/{self.id}/results{query}", lines=True)
            if not page:
                break
            lines += page
        scored = [line for line in lines if "error" not in line]
        unread = [{"index": line["index"], **line["error"]} for line in lines if "error" in line]
        return _placed(self.service.url, scored, unread, total)

    def cancel(self) -> dict[str, Any]:
        """Cancels it; one that is over is deleted with its results. Gives its status.

        Raises:
            ServiceError: As for `status`.
        """
        return self.service._reach("DELETE", f"/v1/jobs/{self.id}")


def _describe(error: Exception) -> str:
    """Why a request failed, with an explanation of common errors."""
    meanings = (
        (socket.gaierror, "the name of the host is not known"),
        (ssl.SSLCertVerificationError, "its certificate is not trusted"),
        (ssl.SSLError, "there is no TLS with it; does it speak http?"),
        (ConnectionRefusedError, "nobody listens there"),
        (TimeoutError, "it did not answer in time"),
    )
    meaning = next((f"{text} " for kind, text in meanings if isinstance(error, kind)), "")
    name = f"{type(error).__name__}: {error}"
    return f"{meaning}({name})" if meaning else name


def _result(written: Mapping[str, Any], partial: bool = False) -> Result:
    """A result as the service writes it."""
    components = written.get("components") or {}
    facts = {
        (name, fact): value
        for name, component in components.items()
        for fact, value in (component.get("info") or {}).items()
    }
    return Result(
        written.get("total"),
        written["outcome"],
        written.get("reason"),
        {name: component.get("value") for name, component in components.items()},
        flat(facts),
        written.get("correct"),
        written.get("turn_rewards"),
        partial=partial,
    )


def _placed(url: str, scored: Sequence[Any], unread: Sequence[Any], count: int) -> list[Result]:
    """The results of rollouts in their order, with those that could not be read in their places."""
    errors = {error["index"]: error for error in unread}
    if len(scored) + len(errors) != count:
        raise ServiceError(
            200,
            "http.protocol",
            f"{url} answered with {len(scored)} results and {len(errors)} errors for {count} rollouts",
        )
    results = iter(scored)
    return [
        Result.invalid(errors[at]["code"], errors[at]["message"]) if at in errors else _result(next(results))
        for at in range(count)
    ]


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _written(value: Any) -> bytes:
    """JSON as UTF-8; lone surrogates are replaced."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _batches(rollouts: Sequence[Mapping[str, Any]], written: Sequence[bytes]) -> list[list[int]]:
    """The places of the rollouts for each request, groups kept together, in the order in which the groups begin."""
    groups: dict[Any, list[int]] = {}
    for at, rollout in enumerate(rollouts):
        named = "group" if "group" in rollout else "prompt"
        key = named, rollout.get(named)
        groups.setdefault(key if isinstance(key[1], str) else json.dumps(key), []).append(at)
    batches: list[list[int]] = []
    room = 0
    for places in groups.values():
        size = sum(len(written[at]) + 1 for at in places)
        if not batches or size > room or len(batches[-1]) + len(places) > MAX_ROLLOUTS:
            batches.append([])
            room = MAX_BYTES
        batches[-1].extend(places)
        room -= size
    return batches


def _seconds(header: str | None) -> float | None:
    """What `Retry-After` says, where it says a number of seconds."""
    return float(header) if header is not None and header.isdecimal() else None


def _read(url: str, status: int, text: bytes, lines: bool) -> Any:
    try:
        return [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    except ValueError:
        raise ServiceError(
            status, "http.protocol", f"{url} answered {status} with something that is not JSON"
        ) from None


def _error(url: str, status: int, text: bytes) -> ServiceError:
    """The error of the service, or of the status where something else, such as a proxy, has answered."""
    try:
        error = json.loads(text)["error"]
        return ServiceError(status, str(error["code"]), f"{url}: {error['message']}")
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, f"http.{status}", f"{url} answered {status}")
