"""Who may hand rollouts to the shared actor, and how does each get its own answers? By a stream, opened with a token.

The actor listens on the address that Ray knows its machine by. Address, port and token are told by the actor's `alive` and by
nothing else, so that whoever may call the actor may open a stream. A caller says the token before anything else, and who does
not say it in time is sent away.

What must hold: a rollout that was handed in is answered exactly once. A caller that lost its stream opens another, says how
many answers it has had, and hands in again what has none: what is known is passed over, and what it missed is sent again.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plaudit.ray.frames import End, encoded

log = logging.getLogger("plaudit")

TOKEN_BYTES = 32
# How long a stranger may take to say the token, and how many may be about to.
STRANGER_S = 5.0
STRANGERS = 1024
# How long answers are gathered before they go out together.
GATHER_S = 0.001
# A caller is not read from while so many of its rollouts are being scored that wait for nobody, or are answered and not sent.
BUSY = 8192
# Callers that have been away for this long are gone, and what waits for them is let go.
FORGET_S = 3600.0


class Life(NamedTuple):
    """One life of the actor, and how it is reached: all of it is another after a restart."""

    name: str
    address: str
    port: int
    token: bytes


class Outbox:
    """The answers of one caller; each is kept until the caller has said that it came."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.acknowledged = 0
        self.known: set[int] = set()
        self.visit: Visit | None = None
        self.written = 0
        self.scoring = 0
        self.flushing = False
        self.seen = time.monotonic()

    def put(self, ticket: int, answer: Sequence[Any] = ()) -> None:
        """Sends an answer with those that come in the next moment."""
        self.answers.append((ticket, encoded([ticket, *answer])))
        if not self.flushing and self.visit is not None:
            self.flushing = True
            asyncio.get_running_loop().call_later(GATHER_S, self.flush)

    def flush(self) -> None:
        """Sends what was not sent on this stream, if the caller reads."""
        self.flushing = False
        if self.visit is not None and self.visit.writable and self.written < len(self.answers):
            fresh = [answer for _, answer in self.answers[self.written :]]
            self.written = len(self.answers)
            self.visit.send(fresh)
        self.breathe()

    def acknowledge(self, seen: int) -> None:
        """Lets go of what the caller has, by the number of answers that it has had in all."""
        arrived = min(max(0, seen - self.acknowledged), len(self.answers))
        for ticket, _ in self.answers[:arrived]:
            self.known.discard(ticket)
        del self.answers[:arrived]
        self.acknowledged += arrived
        self.written = max(0, self.written - arrived)

    def fresh(self, items: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """The items that were not handed in before."""
        fresh = [item for item in items if item[0] not in self.known]
        self.known.update(item[0] for item in fresh)
        return fresh

    def breathe(self) -> None:
        """Reads no more from a caller while much of what it handed in is not answered yet, or not sent."""
        transport = self.visit.transport if self.visit is not None else None
        if transport is not None:
            busy = self.scoring + len(self.answers) - self.written > BUSY
            if busy and transport.is_reading():
                transport.pause_reading()
            elif not busy and not transport.is_reading():
                transport.resume_reading()


class Visit(End):
    """The stream of one caller, from the first byte on."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.door = door
        self.outbox: Outbox | None = None
        self.proved = False
        self.patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self.door.strangers) >= STRANGERS:
            self.close(ConnectionRefusedError("too many strangers"))
            return
        self.door.strangers.add(self)
        late = ConnectionRefusedError("no token in time")
        self.patience = asyncio.get_running_loop().call_later(STRANGER_S, self.close, late)

    def data_received(self, data: bytes) -> None:
        self._held += data
        if not self.proved:
            if len(self._held) < TOKEN_BYTES:
                return
            if not hmac.compare_digest(bytes(self._held[:TOKEN_BYTES]), self.door.token):
                self.close(ConnectionRefusedError("a wrong token"))
                return
            del self._held[:TOKEN_BYTES]
            self.proved = True
            self.greeted()
        self.read()

    def received(self, frame: Any) -> None:
        if self.outbox is None:
            caller, seen = frame
            self.outbox = self.door.enter(str(caller), int(seen), self)
            return
        seen, *items = frame
        self.outbox.acknowledge(seen)
        fresh = self.outbox.fresh(items)
        if fresh:
            self.door.receive(self.outbox, fresh)
        self.outbox.breathe()

    def lost(self, error: Exception) -> None:
        self.greeted()
        if self.outbox is not None and self.outbox.visit is self:
            self.outbox.visit = None
            self.outbox.seen = time.monotonic()
        if not isinstance(error, OSError):
            log.error(
                "plaudit: a stream to the shared engine was closed (%s: %s)", type(error).__name__, error
            )

    def free(self) -> None:
        if self.outbox is not None:
            self.outbox.flush()

    def greeted(self) -> None:
        """Is no stranger any more."""
        self.door.strangers.discard(self)
        if self.patience is not None:
            self.patience.cancel()


class Door:
    """Where callers come in. It opens when the actor is first asked for its life."""

    def __init__(self, receive: Callable[[Outbox, list[Sequence[Any]]], None]) -> None:
        """`receive` gets what a caller hands in, each item with its ticket first, and every item once."""
        self.receive = receive
        self.name = uuid.uuid4().hex
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.outboxes: dict[str, Outbox] = {}
        self.strangers: set[Visit] = set()
        self._opening = asyncio.Lock()
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> Life:
        """Listens on this address, if it does not yet, on a port that the system chooses."""
        async with self._opening:
            if self._server is None:
                loop = asyncio.get_running_loop()
                self._server = await loop.create_server(lambda: Visit(self), address, 0)
        port = self._server.sockets[0].getsockname()[1]
        return Life(self.name, address, port, self.token)

    def enter(self, caller: str, seen: int, visit: Visit) -> Outbox:
        """The caller's outbox, which from now on answers on this stream."""
        outbox = self.outboxes.get(caller)
        if outbox is None:
            now = time.monotonic()
            for name, box in list(self.outboxes.items()):
                if box.visit is None and now - box.seen > FORGET_S:
                    del self.outboxes[name]
            outbox = self.outboxes[caller] = Outbox()
        before, outbox.visit = outbox.visit, visit
        if before is not None:
            before.close(ConnectionAbortedError("the caller has come anew"))
        outbox.acknowledge(seen)
        outbox.written = 0
        outbox.flush()
        return outbox
