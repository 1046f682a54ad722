"""Fork safety: a value with threads or sockets of its own, made once in each process that uses it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Values that forked children inherited. They are never freed, because that would wait for threads that a fork does not copy.
_inherited: list[Any] = []


class PerProcess(Generic[T]):
    """A value that is made when it is first used in a process. A forked child makes its own, and so does an unpickled one."""

    def __init__(self) -> None:
        self._forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return PerProcess, ()

    def _forget(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._value: T | None = None

    def get(self, make: Callable[[], T]) -> T:
        """The value of this process, made where there is none. `make` is not kept, since it may hold the owner."""
        if self._process != os.getpid():
            _inherited.append(self._value)
            self._forget()
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = make()
        return self._value

    def made_here(self) -> T | None:
        """The value, where this process has made it."""
        return self._value if self._process == os.getpid() else None
