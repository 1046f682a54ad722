"""How does a process ask a running `plaudit serve`, and what does it get where the service does not answer?

One class, with nothing but the standard library. What the service is too busy for is asked again until the deadline; after that
every rollout is answered as invalid, `engine.unreachable`. A failure never becomes a number. What the caller alone can mend, such
as an unknown recipe or a wrong token, is raised at once.
"""

from __future__ import annotations

import http.client
import json
import logging
import math
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from plaudit._plaudit import ArgumentError, RunError
from plaudit.report import flat
from plaudit.result import Result

_log = logging.getLogger("plaudit")

CONNECT = 10.0
"""The seconds that one attempt to connect may take."""

AGAIN = frozenset({408, 425, 429, 502, 503, 504})
"""The statuses after which the same request may have better luck."""

MOST_BYTES = 32 << 20
"""How much is sent in one request, where its groups allow it: half of what a service takes unless it is told otherwise."""

MOST_ROLLOUTS = 4096
"""How many rollouts are sent in one request; the same holds."""

FIRST = 30.0
"""The seconds that a service which has never answered is asked for its recipes: it may still be starting."""

_QUIET = 60.0
"""That a service gives no answer is said once in so many seconds."""

_LONGEST = 10.0
"""The longest pause between two attempts, where the service does not say how long to wait."""


class ServiceError(RunError):
    """The service refuses what was asked. `code` is its own word for it, `status` the one of HTTP."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, str(self))


class _Unreachable(Exception):
    """Nothing was answered before the deadline."""


class Service:
    """A running `plaudit serve`.

    - `url`: where it listens, such as `http://10.0.0.7:7717`.
    - `token`: what it asks for, or `token_env`, the name of the environment variable that holds it.
    - `timeout`: how many seconds one question may take, all attempts together.

    It may be used by several threads, pickled, and taken along by a fork: each process has connections of its own.
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
        self._forget()

    def __repr__(self) -> str:
        return f"<plaudit.remote.Service at {self.url}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _OF_A_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        self._said = -math.inf

    def recipe(self, name: str) -> dict[str, Any]:
        """What the service says of one of its recipes; raises where it has none of that name, or cannot be reached."""
        try:
            offered = self._ask("GET", "/v1/recipes", within=FIRST)["recipes"]
        except _Unreachable as error:
            raise ServiceError(0, "engine.unreachable", str(error)) from error
        for recipe in offered:
            if recipe["name"] == name:
                return recipe
        names = ", ".join(str(recipe["name"]) for recipe in offered)
        raise ServiceError(404, "recipe.unknown", f"{self.url} has no recipe {name!r}; it has {names}")

    def score(
        self,
        recipe: str,
        rollouts: Sequence[Mapping[str, Any]],
        *,
        run: str | None = None,
        step: int | None = None,
        validate: bool | None = None,
    ) -> list[Result]:
        """One answer a rollout, in their order. What is too much for one request goes in several, each with whole groups."""
        asked = _given(recipe=recipe, run=run, step=step, validate=validate)
        written = [_written(rollout) for rollout in rollouts]
        answers: dict[int, Result] = {}
        for places in _batches(rollouts, written):
            body = _written(asked)[:-1] + b',"rollouts":[' + b",".join(written[at] for at in places) + b"]}"
            answers.update(zip(places, self._score(body, len(places)), strict=True))
        return [answers[at] for at in range(len(rollouts))]

    def _score(self, body: bytes, count: int) -> list[Result]:
        try:
            told = self._ask("POST", "/v1/score", body)
        except _Unreachable as error:
            return [Result.invalid("engine.unreachable", str(error))] * count
        unread = {error["index"]: error for error in told.get("errors") or ()}
        results = iter(told["results"])
        answers = [
            Result.invalid(unread[at]["code"], unread[at]["message"])
            if at in unread
            else _result(next(results))
            for at in range(count)
        ]
        if next(results, None) is not None:
            raise ServiceError(
                200, "http.protocol", f"{self.url} answered with more results than it was asked for"
            )
        return answers

    def join(
        self,
        recipe: str,
        group: str,
        size: int,
        rollout: Mapping[str, Any],
        *,
        member: str | None = None,
        run: str | None = None,
        step: int | None = None,
        validate: bool | None = None,
    ) -> Result:
        """Hands in one rollout of a group whose others come from elsewhere, and waits until the group has been scored.

        With a `member` name the rollout may be handed in again, after a lost connection, without being counted twice.
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
            told = self._ask("POST", "/v1/join", _written(asked))
        except _Unreachable as error:
            return Result.invalid("engine.unreachable", str(error))
        return _result(told["result"], partial=bool(told.get("partial")))

    def _ask(self, method: str, path: str, body: bytes | None = None, within: float = math.inf) -> Any:
        """What the service answers; tries again until the deadline where that may help."""
        within = min(self.timeout, within)
        end = time.monotonic() + within
        pause, said = 0.25, "no answer"
        while True:
            wait: float | None = None
            try:
                status, again, text = self._send(method, path, body, end)
            except (OSError, http.client.HTTPException) as error:
                said = _named(error)
            else:
                if status < 300:
                    return _read(self.url, status, text)
                refusal = _refusal(self.url, status, text)
                if status not in AGAIN:
                    raise refusal
                said = f"{refusal} ({status} {refusal.code})"
                wait = _seconds(again)
            pause = min(2.0 * pause, _LONGEST)
            wait = pause * random.uniform(0.5, 1.0) if wait is None else wait
            if time.monotonic() + wait >= end:
                raise _Unreachable(
                    f"{self.url} gave no answer within {within:g} s, which is not the model's fault: {said}"
                )
            self._say(f"{self.url} gives no answer and is asked again for {within:g} s: {said}")
            time.sleep(wait)

    def _say(self, message: str) -> None:
        """A warning in the log, once a minute."""
        now = time.monotonic()
        if now - self._said > _QUIET:
            self._said = now
            _log.warning("plaudit: %s", message)

    def _send(self, method: str, path: str, body: bytes | None, end: float) -> tuple[int, str | None, bytes]:
        """One attempt, and a second one at once where a connection that was kept turns out to be closed."""
        headers = self._headers(body)
        while True:
            connection, kept = self._take()
            try:
                if not kept:
                    connection.connect()
                assert connection.sock is not None
                connection.sock.settimeout(max(end - time.monotonic(), 0.001))
                connection.request(method, self._path + path, body, headers)
                answer = connection.getresponse()
                status, again, text = answer.status, answer.getheader("Retry-After"), answer.read()
            except BaseException as error:
                connection.close()
                if kept and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                    continue
                raise
            if connection.sock is not None:
                with self._lock:
                    self._idle.append(connection)
            return status, again, text

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it has served before."""
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT), False
        return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT), False

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


_OF_A_PROCESS = ("_lock", "_idle", "_process", "_said")


def _named(error: Exception) -> str:
    """What kept a request from being answered, with what it means where people meet it often."""
    meanings = (
        (socket.gaierror, "the name of the host is not known"),
        (ssl.SSLCertVerificationError, "its certificate is not trusted"),
        (ssl.SSLError, "there is no TLS with it; does it speak http?"),
        (ConnectionRefusedError, "nobody listens there"),
        (TimeoutError, "it did not answer in time"),
    )
    meaning = next((f"{said} " for kind, said in meanings if isinstance(error, kind)), "")
    told = f"{type(error).__name__}: {error}"
    return f"{meaning}({told})" if meaning else told


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
        partial=partial,
    )


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _written(value: Any) -> bytes:
    """JSON. A text may hold half of a surrogate pair, which no UTF-8 can say."""
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
        if not batches or size > room or len(batches[-1]) + len(places) > MOST_ROLLOUTS:
            batches.append([])
            room = MOST_BYTES
        batches[-1].extend(places)
        room -= size
    return batches


def _seconds(header: str | None) -> float | None:
    """What `Retry-After` says, where it says a number of seconds."""
    return float(header) if header is not None and header.isdecimal() else None


def _read(url: str, status: int, text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ServiceError(
            status, "http.protocol", f"{url} answered {status} with something that is not JSON"
        ) from None


def _refusal(url: str, status: int, text: bytes) -> ServiceError:
    """The service's own words, or the status where somebody else answered in its place."""
    try:
        error = json.loads(text)["error"]
        return ServiceError(status, str(error["code"]), f"{url}: {error['message']}")
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, f"http.{status}", f"{url} answered {status}")
