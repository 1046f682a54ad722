"""Calls with a timeout: functions that may hang run on daemon threads, which are abandoned after their deadline."""

from __future__ import annotations

import collections
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """Why a call has no result."""

    reason: str
    late: bool = False


def run(
    calls: Sequence[Callable[[], Any]], *, workers: int, timeout: float, patience: float = 0.0
) -> list[Any]:
    """The result of every call, or a `Failure`: at most `workers` run at a time, each for `timeout` seconds.

    They run on one daemon thread, and on another one whenever the newest call takes longer than `patience`. A call that
    hangs cannot be stopped: its thread is abandoned, and neither the other calls nor the end of the process wait for it.
    """
    timeout = min(timeout, threading.TIMEOUT_MAX / 2)
    results: list[Any] = [None] * len(calls)
    waiting = collections.deque(range(len(calls)))
    deadlines: dict[int, float] = {}
    changed = threading.Condition()
    newest = 0.0

    def start_next() -> int:
        nonlocal newest
        at, newest = waiting.popleft(), time.monotonic()
        deadlines[at] = newest + timeout
        return at

    def work(at: int) -> None:
        while True:
            result = _result(calls[at], timeout)
            with changed:
                # A result after the deadline is dropped: the call has failed already, and another thread goes on.
                if deadlines.pop(at, None) is None:
                    return
                results[at] = result
                if not waiting:
                    changed.notify()
                    return
                at = start_next()

    with changed:
        while waiting or deadlines:
            now = time.monotonic()
            for at in [at for at, deadline in deadlines.items() if deadline <= now]:
                results[at] = late(timeout)
                del deadlines[at]
            may_start = waiting and len(deadlines) < workers
            if may_start and (not deadlines or now - newest >= patience):
                threading.Thread(
                    target=work, args=(start_next(),), name="plaudit-timeout", daemon=True
                ).start()
            elif deadlines:
                wake = min(deadlines.values())
                changed.wait((min(wake, newest + patience) if may_start else wake) - now)
    return results


def _result(call: Callable[[], Any], timeout: float) -> Any:
    import asyncio  # Later, because it takes as long as the package.

    try:
        result = call()
        return asyncio.run(asyncio.wait_for(result, timeout)) if inspect.isawaitable(result) else result
    except (asyncio.TimeoutError, TimeoutError) as error:
        return late(timeout, str(error))
    except BaseException as error:
        # `SystemExit` and the like, too: they end the thread, and the call would otherwise wait for its deadline.
        return Failure(f"{type(error).__name__}: {error}")


def late(timeout: float, message: str = "") -> Failure:
    """The failure of a call that took too long."""
    return Failure(f"group.deadline: {message or f'no answer within {timeout:g} s'}", late=True)
