"""How is a group scored whose rollouts come one by one? Callers hand in one each and wait; the group is scored as a whole."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from numbers import Integral, Number, Real
from typing import TYPE_CHECKING, Any

from plaudit import _plaudit, custom
from plaudit.engine import awaited
from plaudit.report import flat, statistics
from plaudit.result import Result

if TYPE_CHECKING:
    from plaudit.engine import Engine, Messages


class Join:
    """Callers hand in one rollout each, with the name and the size of its group, and get it scored with the group.

    A group is scored when it is complete, or when its time is up or nothing has come for a while, as the recipe's `groups`
    says. Every caller gets an answer, whatever happens. In a forked child it begins anew: groups do not meet across a fork.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        timeout: float | None = None,
        quiet: float | None = None,
        remember: int | None = None,
    ) -> None:
        self.engine = engine
        self._terms = (timeout, quiet, remember)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._made: _plaudit.Join | None = self._make()
        engine._joins.add(self)

    def _make(self) -> _plaudit.Join:
        return _plaudit.Join(self.engine._core, *self._terms)

    @property
    def _inner(self) -> _plaudit.Join:
        # As with the engine: a forked child has no threads to be answered by, so it meets anew, and what it inherited is
        # never let go of.
        if self._pid != os.getpid():
            _inherited.append(self._made)
            self._lock = threading.Lock()
            self._made, self._pid = None, os.getpid()
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made

    @property
    def timeout(self) -> float:
        """The seconds after which a group is scored with those who came."""
        return self._inner.timeout

    @property
    def quiet(self) -> float | None:
        """The seconds without an arrival after which a group that is at least half there is scored."""
        return self._inner.quiet

    @property
    def statistics(self) -> dict[str, Any]:
        """Over everything that has been scored so far."""
        return statistics(self._inner.statistics())

    def take_step(self, step: int) -> dict[str, Any]:
        """Ends a step of the training: what has been scored since the one before."""
        return statistics(self._inner.take_step(step))

    @property
    def last_step(self) -> dict[str, Any] | None:
        """The step that ended last."""
        step = self._inner.last_step()
        return None if step is None else statistics(step)

    @property
    def status(self) -> dict[str, Any]:
        """What is open and what has happened so far."""
        return self._inner.status()

    def score(
        self,
        group: str | int,
        size: int,
        response: str,
        *,
        prompt: str | Messages | None = None,
        reference: str | float | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | int | None = None,
        timeout: float | None = None,
        validate: bool | None = None,
    ) -> Result:
        """Hands in one rollout and waits until its group has been scored."""
        over = threading.Event()
        answer: list[Any] = []

        def done(value: Any, error: BaseException | None) -> None:
            answer.append((value, error))
            over.set()

        rollout = (prompt, response, reference, tokens, extra)
        told = _told(group, size, member, timeout, validate, *rollout)
        self._inner.submit(done, *told)
        while not over.wait(0.1):
            pass  # In short turns, so that Ctrl-C is heard on every system.
        value, error = answer[0]
        if error is not None:
            raise error
        return self._result(value)

    async def ascore(
        self,
        group: str | int,
        size: int,
        response: str,
        *,
        prompt: str | Messages | None = None,
        reference: str | float | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | int | None = None,
        timeout: float | None = None,
        validate: bool | None = None,
    ) -> Result:
        """Hands in one rollout without blocking the event loop. A cancelled caller's rollout still counts as a member."""
        rollout = (prompt, response, reference, tokens, extra)
        told = _told(group, size, member, timeout, validate, *rollout)
        return self._result(await awaited(lambda done: self._inner.submit(done, *told)))

    def _result(self, told: tuple[Any, ...]) -> Result:
        total, outcome, reason, components, info, *rest = told
        if self.engine._on_error == "raise":
            error = custom.failure([reason], self.engine._raised)
            if error is not None:
                raise error
        return Result(total, outcome, reason, components, flat(info), *rest)

    def _completion_queue(self, wake: Callable[[], object]) -> _plaudit.CompletionQueue:
        """Where the answers to many rollouts come in under numbers, for adapters that have thousands waiting.

        `wake` is called on another thread when there is something to take, and not again before it was taken.
        """
        return self._inner.completion_queue(wake)

    def leave(self, group: str | int, member: str | int | None = None) -> None:
        """Says that a member will never come, so that the others do not wait for it. It may be said before any has come."""
        group, member = _name("group", group), None if member is None else _name("member", member)
        self._inner.leave(group, member)

    def flush(self) -> None:
        """Closes every open group now."""
        self._inner.flush()

    def close(self) -> None:
        """Closes every open group, and takes nothing more."""
        self._inner.close()


_inherited: list[_plaudit.Join | None] = []


def _name(argument: str, name: Any) -> str:
    """The name of a group or a member: a text, or a whole number as its digits."""
    if isinstance(name, Integral):
        return str(name)
    if not isinstance(name, str):
        raise TypeError(f"{argument} is a text, not {name!r:.80}")
    return name


def _digits(number: Any) -> str | None:
    """A number as its decimal text, as an engine takes it; nothing where there is none."""
    if isinstance(number, Integral) or not isinstance(number, Real):
        return str(number)
    value = float(number)
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise TypeError(f"reference is a text or a finite number, not {number}")
    return f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else str(number)


def _told(
    group: Any,
    size: Any,
    member: Any,
    timeout: Any,
    validate: Any,
    prompt: Any,
    response: Any,
    reference: Any,
    tokens: Any,
    extra: Any,
) -> tuple[Any, ...]:
    """The arguments, with names as text; one of another type is named."""
    group, member = _name("group", group), None if member is None else _name("member", member)
    if type(validate).__name__ == "bool_":
        validate = bool(validate)
    if isinstance(reference, Number) and not isinstance(reference, bool):
        reference = _digits(reference)
    nothing = type(None)
    for name, value, kinds, wanted in (
        ("size", size, Integral, "a number of rollouts"),
        ("timeout", timeout, (Real, nothing), "a number of seconds"),
        ("validate", validate, (bool, nothing), "True, False or None"),
        ("response", response, str, "a text"),
        ("reference", reference, (str, nothing), "a text or a number"),
        ("tokens", tokens, (Integral, nothing), "a number of tokens"),
    ):
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is {wanted}, not {value!r:.80}")
    for name, value in (("size", size), ("tokens", tokens)):
        if value is not None and value < 0:
            raise ValueError(f"{name} is 0 or more, not {value}")
    return group, size, member, timeout, validate, prompt, response, reference, tokens, extra
