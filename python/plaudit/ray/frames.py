"""How do rollouts and answers travel between two processes? As frames of JSON on one stream, each with its length before it.

JSON and not pickle, so that whoever can write to the stream can hand in rollouts and nothing else; and in ASCII, so that text
survives that is not valid Unicode, and is refused where it is read. A frame has many items, and many frames may be on the way.

What must hold: neither end keeps more than a few frames for the other. Who reads too slowly is not written to.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

# A frame is closed when it has this many bytes: what came whole before a stream broke has come for good.
FRAME_BYTES = 1 << 16
# Nothing more is written while this much waits to be read.
HELD_BYTES = 1 << 20
# No frame is longer than this; it bounds a single rollout, and what a stranger can make the other end keep.
MOST_BYTES = 1 << 28
# How deep what is said of a rollout may be nested; the engine takes no more.
DEEPEST = 64
# How long the other end may be silent where the network should have heard of it.
SILENCE_S = 30

_encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class End(asyncio.Protocol):
    """One end of a stream: cuts what arrives into frames, and says when it must not write."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.writable = False
        self._held = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.writable = cast(asyncio.Transport, transport), True
        self.transport.set_write_buffer_limits(high=HELD_BYTES)
        listen_for_death(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(exc or ConnectionError("the other end closed the stream"))

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = self.transport is not None
        self.free()

    def data_received(self, data: bytes) -> None:
        self._held += data
        self.read()

    def read(self) -> None:
        """Takes the frames that are there whole."""
        held, at = self._held, 0
        try:
            while len(held) - at >= 4:
                size = int.from_bytes(held[at : at + 4], "big")
                if size > MOST_BYTES:
                    raise ValueError(f"a frame of {size} bytes")
                if len(held) - at - 4 < size:
                    break
                frame = json.loads(bytes(held[at + 4 : at + 4 + size]))
                at += 4 + size
                self.received(frame)
                if self.transport is None:
                    return
        except Exception as error:  # noqa: BLE001 - what is no frame of ours ends the stream and not the process.
            self.close(error)
            return
        del held[:at]

    def send(self, items: Iterable[bytes], before: bytes = b"") -> None:
        """Writes items, which are JSON already, as frames; each frame is a list that begins with `before`."""
        if self.transport is None:
            return
        parts, size = ([before], len(before)) if before else ([], 0)
        for item in items:
            if size + len(item) > FRAME_BYTES and size > len(before):
                self._write(parts)
                parts, size = ([before], len(before)) if before else ([], 0)
            parts.append(item)
            size += len(item)
        if parts:
            self._write(parts)

    def close(self, error: Exception) -> None:
        """Ends the stream, and tells why; what was not read is let go."""
        transport, self.transport, self.writable = self.transport, None, False
        if transport is not None:
            self._held.clear()
            transport.abort()
            self.lost(error)

    def _write(self, parts: list[bytes]) -> None:
        assert self.transport is not None
        body = b",".join(parts)
        self.transport.write(b"%b[%b]" % ((len(body) + 2).to_bytes(4, "big"), body))

    def received(self, frame: Any) -> None:
        """A frame has come."""

    def lost(self, error: Exception) -> None:
        """The stream has ended; said once."""

    def free(self) -> None:
        """The other end reads again."""


def encoded(item: Any) -> bytes:
    """An item as JSON. What JSON has no word for is said as the engine would say it; what cannot be said raises."""
    try:
        body = _encode(item).encode("ascii")
    except TypeError:
        body = _encode(plain(item)).encode("ascii")
    if body.count(b"[") + body.count(b"{") > DEEPEST and _depth(item) > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
    if len(body) > MOST_BYTES - 1024:
        raise ValueError(f"{len(body)} bytes are more than can be handed over at once")
    return body


def plain(value: Any, depth: int = 0) -> Any:
    """The same in JSON's own types: numpy's scalars and arrays, tensors, and mappings of other kinds."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
    if isinstance(value, Mapping):
        return {str(name): plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    for name in ("tolist", "item"):
        if hasattr(value, name):
            return plain(getattr(value, name)(), depth + 1)
    raise TypeError(f"{type(value).__name__} cannot be handed over; text, numbers, lists and dicts can")


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, Mapping) else value
    return 1 + max(map(_depth, parts), default=0) if isinstance(value, (Mapping, list, tuple)) else 0


def listen_for_death(connection: Any) -> None:
    """Lets the system ask whether the other machine is still there, which says nothing when it loses power."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE_S // 3),
        ("TCP_KEEPINTVL", SILENCE_S // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", 1000 * SILENCE_S),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
