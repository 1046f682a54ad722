"""Client of the shared engine for threads: runs an `EngineClient` on an event loop in a thread of its own.

For trainers that call from threads, or from event loops that come and go.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from typing import Any

from plaudit.ray.actor import ActorConfig, Rollout
from plaudit.ray.client import EngineClient
from plaudit.result import Result


class SyncClient:
    """A client of the shared engine that any thread may call. Its own thread starts with the first call."""

    def __init__(self, config: ActorConfig, *, deadline: float) -> None:
        self._config = config
        self._deadline = deadline
        self._lock = threading.Lock()
        self._started: tuple[asyncio.AbstractEventLoop, EngineClient, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self._config, "deadline": self._deadline}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["config"], deadline=state["deadline"])

    def submit(
        self, group: str, size: int, response: str, *, member: str | None = None, **fields: Any
    ) -> Future[Result]:
        """Submits one rollout; its result comes by the deadline."""
        rollout = Rollout(group, member, size, response, **fields)
        loop, client = self._start()
        return asyncio.run_coroutine_threadsafe(client.score(rollout), loop)

    def withdraw(self, group: str, size: int, member: str | None = None) -> None:
        """Tells the actor that a member of a group will never be submitted."""
        loop, client = self._start()
        loop.call_soon_threadsafe(client.withdraw, group, member, size)

    def _start(self) -> tuple[asyncio.AbstractEventLoop, EngineClient]:
        with self._lock:
            # A fork copies the objects but not the thread.
            if self._started is None or self._started[2] != os.getpid():
                loop = asyncio.new_event_loop()
                self._started = loop, EngineClient(self._config, deadline=self._deadline), os.getpid()
                threading.Thread(target=loop.run_forever, name="plaudit-shared", daemon=True).start()
            return self._started[:2]
