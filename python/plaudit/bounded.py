"""How are functions called that may hang? On threads that can be left behind, each for so many seconds."""

from __future__ import annotations

import asyncio
import collections
import inspect
import queue
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

    The next one begins once the last has come back or has taken longer than `patience`. Every call has a daemonic thread of
    its own. A thread that hangs cannot be stopped: it is left behind, and neither the other calls nor the end of the
    process wait for it.
    """
    timeout = min(timeout, threading.TIMEOUT_MAX / 2)
    finished: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    results: list[Any] = [None] * len(calls)
    waiting = collections.deque(range(len(calls)))
    deadlines: dict[int, float] = {}
    begun = 0.0

    def work(at: int) -> None:
        try:
            result = calls[at]()
            if inspect.isawaitable(result):
                result = asyncio.run(within(result, timeout))
        except (asyncio.TimeoutError, TimeoutError) as error:
            result = late(timeout, str(error))
        except BaseException as error:
            # Whatever ends the thread ends the call: a `SystemExit` would otherwise be waited for until the
            # deadline.
            result = Failure(f"{type(error).__name__}: {error}")
        finished.put((at, result))

    while waiting or deadlines:
        while waiting and (
            not deadlines or (len(deadlines) < workers and time.monotonic() - begun >= patience)
        ):
            at, begun = waiting.popleft(), time.monotonic()
            deadlines[at] = begun + timeout
            threading.Thread(target=work, args=(at,), name=f"plaudit-group-{at}", daemon=True).start()
        wake = min(deadlines.values())
        if waiting and len(deadlines) < workers:
            wake = min(wake, begun + patience)
        try:
            at, result = finished.get(timeout=max(0.0, wake - time.monotonic()))
        except queue.Empty:
            now = time.monotonic()
            for at in [at for at, deadline in deadlines.items() if deadline <= now]:
                results[at] = late(timeout)
                del deadlines[at]
            continue
        # An answer that comes after its deadline is too late: its call is decided.
        if deadlines.pop(at, None) is not None:
            results[at] = result
    return results


def late(timeout: float, told: str = "") -> Failure:
    """What is said of a call that took too long."""
    return Failure(f"group.deadline: {told or f'no answer within {timeout:g} s'}", late=True)


async def within(awaitable: Any, timeout: float) -> Any:
    """What an awaitable gives, or a `TimeoutError` after so many seconds."""
    return await asyncio.wait_for(awaitable, timeout)
