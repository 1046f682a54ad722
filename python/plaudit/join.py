"""How is a group scored whose rollouts come one by one? Callers hand in one each and wait; the group is scored as a whole."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plaudit import _plaudit
from plaudit.engine import awaited
from plaudit.report import flat

if TYPE_CHECKING:
    from plaudit.engine import Engine, Messages


@dataclass(frozen=True)
class Result:
    """What one caller gets."""

    total: float | None
    """The one number; None where the rollout is invalid or skipped."""
    outcome: str
    """`scored`, `floored`, `skipped` or `invalid`."""
    reason: dict[str, Any] | None
    """Why there is no plain number."""
    components: dict[str, float | None]
    """The value of each component."""
    info: dict[str, Any]
    """The evidence, as `component.fact`, and as `fact` alone where only one component has it."""
    group_size: int
    """How many rollouts were scored together."""
    partial: bool
    """Whether the group was scored without some of its members."""
    late: bool
    """Whether the rollout came after its group had been scored."""
    duplicate: bool
    """Whether the rollout had been handed in before."""
    waited: float
    """The seconds from its arrival until its group was closed."""
    siblings_mean: float | None
    """The mean total of the other members that have one."""
    group_totals: list[float | None] = field(default_factory=list)
    """The totals of the group."""


class Join:
    """Callers hand in one rollout each, with the name and the size of its group, and get it scored with the group.

    A group is scored when it is complete, or when its time is up or nothing has come for a while, as the recipe's `groups`
    says. Every caller gets an answer, whatever happens.
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
        self._meeting = _plaudit.Meeting(engine._core, timeout, quiet, remember)

    @property
    def timeout(self) -> float:
        """The seconds after which a group is scored with those who came."""
        return self._meeting.timeout

    @property
    def quiet(self) -> float | None:
        """The seconds without an arrival after which a group that is at least half there is scored."""
        return self._meeting.quiet

    @property
    def statistics(self) -> dict[str, Any]:
        """Over everything that has been scored so far."""
        return json.loads(self._meeting.statistics())

    def take_step(self, step: int) -> dict[str, Any]:
        """Ends a step of the training: what has been scored since the one before."""
        return json.loads(self._meeting.take_step(step))

    @property
    def last_step(self) -> dict[str, Any] | None:
        """The step that ended last."""
        step = self._meeting.last_step()
        return None if step is None else json.loads(step)

    @property
    def status(self) -> dict[str, Any]:
        """What is open and what has happened so far."""
        return self._meeting.status()

    def score(
        self,
        group: str,
        size: int,
        response: str,
        *,
        prompt: str | Messages | None = None,
        reference: str | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | None = None,
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
        self._meeting.hand_in(done, group, size, member, timeout, validate, *rollout)
        while not over.wait(0.1):
            pass  # In short turns, so that Ctrl-C is heard on every system.
        value, error = answer[0]
        if error is not None:
            raise error
        return _result(value)

    async def ascore(
        self,
        group: str,
        size: int,
        response: str,
        *,
        prompt: str | Messages | None = None,
        reference: str | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        member: str | None = None,
        timeout: float | None = None,
        validate: bool | None = None,
    ) -> Result:
        """Hands in one rollout without blocking the event loop. A cancelled caller's rollout still counts as a member."""
        rollout = (prompt, response, reference, tokens, extra)
        told = await awaited(
            lambda done: self._meeting.hand_in(done, group, size, member, timeout, validate, *rollout)
        )
        return _result(told)

    def mailbox(self, wake: Callable[[], object]) -> _plaudit.Mailbox:
        """Where the answers to many rollouts come in under numbers, for adapters that have thousands waiting.

        `wake` is called on another thread when there is something to take, and not again before it was taken.
        """
        return self._meeting.mailbox(wake)

    def leave(self, group: str, member: str | None = None) -> None:
        """Says that a member will never come, so that the others do not wait for it. It may be said before any has come."""
        self._meeting.leave(group, member)

    def flush(self) -> None:
        """Closes every open group now."""
        self._meeting.flush()

    def close(self) -> None:
        """Closes every open group, and takes nothing more."""
        self._meeting.close()


def _result(told: tuple[Any, ...]) -> Result:
    total, outcome, reason, components, info, *rest = told
    return Result(total, outcome, reason, components, flat(info), *rest)
