"""`abort_after`: ends a training in which nothing can be scored, with a sentence that says why and what to do.

A run ends at once where nothing of its first steps could be scored and the reason cannot heal by itself, such as a column of
another name; and after `abort_after` steps in a row without one valid rollout where it can, such as a judge that is down. The
engine declares which reasons can heal. `"never"` goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from plaudit._plaudit import ABORT_AFTER, AbortCounter, abort_advice
from plaudit.result import Result

AbortAfter = int | str
"""A number of steps from 1, or `"never"`."""

DEFAULT: AbortAfter = ABORT_AFTER

Tally = tuple[bool, dict[tuple[str, str], int]]
"""Whether any rollout of a step was scored, and how many have no total, by code and message. Floored ones show nothing: they need no
judge and no reference."""


class NothingScored(RuntimeError):
    """Raised where a run ends because nothing can be scored."""


class Ending(NamedTuple):
    """Why a run ends."""

    code: str
    sentence: str

    def advise(self, columns: Sequence[str], rename: str, switch: str) -> str:
        """The sentence, with what to do.

        Args:
            columns: The names that the rows of the data set have.
            rename: How `COLUMN` is made the reference.
            switch: How the user says that the run goes on all the same.
        """
        advice = abort_advice(self.code, list(columns), rename)
        return f"{self.sentence.rstrip('.')}{f'; {advice}' if advice else ''}. {switch} goes on all the same"


class StepCounter:
    """Counts the steps of one run without a valid rollout. In another process it begins anew."""

    def __init__(self, after: AbortAfter = DEFAULT) -> None:
        """Raises `ArgumentError` where `after` is neither a number of steps nor `"never"`."""
        self.after = after
        self._counter = AbortCounter(str(after))

    def __reduce__(self) -> tuple[Any, ...]:
        return StepCounter, (self.after,)

    @property
    def is_on(self) -> bool:
        """Whether a run can end by it."""
        return self.after != "never"

    def observe(self, step: Tally, *, is_little: bool = False) -> Ending | None:
        """Counts a step, as `tally` has it; returns why the run ends, where it does.

        `is_little`: the step is too small to show that nothing can be scored, and only counts among others.
        """
        any_scored, failures = step
        listed = [(code, message, count) for (code, message), count in failures.items()]
        if is_little and listed:
            # What the engine does not know may heal.
            listed.append(("little", "", 0))
        ending = self._counter.observe(any_scored, listed)
        return None if ending is None else Ending(*ending)


def tally(results: Iterable[Result]) -> Tally:
    """What of some results a `StepCounter` counts."""
    any_scored, failures = False, Counter[tuple[str, str]]()
    for result in results:
        if result.outcome == "scored":
            any_scored = True
        elif result.total is None:
            reason = result.reason or {"code": result.outcome, "message": "no component applies"}
            failures[str(reason.get("code")), str(reason.get("message"))] += 1
    return any_scored, dict(failures)


def together(tallies: Iterable[Tally]) -> Tally:
    """The parts of one step as one."""
    any_scored, failures = False, Counter[tuple[str, str]]()
    for valid, some in tallies:
        any_scored |= valid
        failures.update(some)
    return any_scored, dict(failures)
