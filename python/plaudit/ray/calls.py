"""How does a process without an event loop of its own ask the shared engine?

A `Connection` belongs to one event loop. Here is a thread with such a loop, so that trainers that call from threads, or from
loops that come and go, can ask as well.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from typing import Any

from plaudit.ray.actor import Answer, Rollout, Terms
from plaudit.ray.connection import Connection


class SharedCalls:
    """The shared engine, to be asked from any thread. The thread with the loop starts with the first call."""

    def __init__(self, terms: Terms, *, deadline: float) -> None:
        self._terms = terms
        self._deadline = deadline
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Connection | None = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self._terms, "deadline": self._deadline}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["terms"], deadline=state["deadline"])

    def submit(
        self, group: str, size: int, response: str, *, member: str | None = None, **said: Any
    ) -> Future[Answer]:
        """Hands in one rollout; the answer comes by the deadline."""
        rollout = Rollout(group, member, size, response, **said)
        loop, connection = self._started()
        return asyncio.run_coroutine_threadsafe(connection.score(rollout), loop)

    def leave(self, group: str, size: int, member: str | None = None) -> None:
        """Tells that a sibling will never come."""
        loop, connection = self._started()
        loop.call_soon_threadsafe(connection.leave, group, member, size)

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Connection]:
        with self._lock:
            # A fork takes the objects along but not the thread.
            if self._loop is None or self._connection is None or self._process != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._connection = Connection(self._terms, deadline=self._deadline)
                self._process = os.getpid()
                threading.Thread(target=self._loop.run_forever, name="plaudit-shared", daemon=True).start()
            return self._loop, self._connection
