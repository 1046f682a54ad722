"""How does a Python function become a reward? `@plaudit.register` puts it under a name that recipes can use."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from plaudit import _plaudit
from plaudit.bounded import Failure, run

Per = Literal["batch", "group", "rollout"]
Function = TypeVar("Function", bound=Callable[..., Any])

# A call that takes longer does not keep the next one from beginning, up to so many at a time.
SLOW_S, SIDE_BY_SIDE = 1.0, 8
# How long coroutines may take to end after their time is up.
GRACE_S = 1.0

# The largest number that 32 bits hold.
LARGEST = (2 - 2**-23) * 2.0**127

_GIVEN = ("prompts", "responses", "references", "extras")
_functions: dict[str, tuple[Callable[..., Any], Per]] = {}


def register(name: str, *, per: Per = "batch") -> Callable[[Function], Function]:
    """Makes a function a reward of this process.

    The function takes `(prompts, responses, references, extras)`, lists of equal length, and gives back as many numbers;
    None says that the reward does not apply to a rollout. With `per="group"` it is called once a group, and with
    `per="rollout"` once a rollout, with single values in place of lists. It may be a coroutine function: all calls of a
    batch are then under way at once. Further parameters are those that a recipe may give.

    What it raises makes the rollouts of that call invalid, with the last line of the traceback as the reason. So does a call
    that takes longer than the recipe's `groups.timeout`, with `group.deadline`; what cannot be stopped of it is left behind.
    """
    if not isinstance(name, str):
        raise TypeError('a reward is registered under a name: @plaudit.register("NAME")')
    if per not in ("batch", "group", "rollout"):
        raise ValueError(f"per is 'batch', 'group' or 'rollout', not {per!r}")

    def put(function: Function) -> Function:
        _plaudit.register(
            name, inspect.getdoc(function) or "", _schema(function), per == "group", _Asked(function, per)
        )
        _functions[name] = (function, per)
        return function

    return put


def functions(parts: Sequence[tuple[str, str, float]]) -> list[tuple[Any, ...]]:
    """The functions that a recipe needs, so that it can be loaded in another process."""
    names = {reward for _, reward, _ in parts} & set(_functions)
    return [(name, *_functions[name]) for name in sorted(names)]


def restore(found: list[tuple[Any, ...]]) -> None:
    """Registers functions that came from another process, where this one does not have them."""
    for name, function, per in found:
        if name not in _functions:
            register(name, per=per)(function)


class _Asked:
    """What the engine calls: all groups of a batch at once, and no exception comes back."""

    def __init__(self, function: Callable[..., Any], per: Per) -> None:
        self.function, self.per = function, per
        called = type(function).__call__
        self.awaits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)

    def __call__(
        self, groups: list[list[list[Any]]], parameters: dict[str, Any], timeout: float
    ) -> list[Any]:
        calls = list(self._calls(groups))
        if not self.awaits:
            each = [functools.partial(self._one, columns, parameters) for columns in calls]
            results = run(each, workers=SIDE_BY_SIDE, timeout=timeout, patience=SLOW_S)
            return self._sorted(groups, [_told(result, timeout) for result in results])
        answers: list[Any] = [_late(timeout)] * len(calls)
        # A coroutine that never lets go of the loop is left behind as well.
        together = functools.partial(asyncio.run, self._all(calls, parameters, timeout, answers))
        ended = run([together], workers=1, timeout=timeout + GRACE_S)[0]
        if isinstance(ended, Failure) and not ended.late:
            answers = [ended.reason if isinstance(answer, TimeoutError) else answer for answer in answers]
        return self._sorted(groups, list(answers))

    def _calls(self, groups: list[list[list[Any]]]) -> Any:
        if self.per == "batch":
            yield [[item for group in groups for item in group[column]] for column in range(len(_GIVEN))]
        elif self.per == "group":
            yield from (group for group in groups if group[1])
        else:
            for group in groups:
                yield from (list(row) for row in zip(*group, strict=True))

    async def _all(
        self, calls: list[list[Any]], parameters: dict[str, Any], timeout: float, answers: list[Any]
    ) -> None:
        """Puts the answers that come in time where there is a late one."""

        async def asked(at: int, columns: list[Any]) -> None:
            try:
                answers[at] = self._checked(columns, await self.function(*columns, **parameters))
            except Exception as error:
                answers[at] = _last_line(error)

        async def one(at: int, columns: list[Any]) -> None:
            try:
                await asyncio.wait_for(asked(at, columns), timeout)
            except asyncio.TimeoutError:
                pass

        await asyncio.gather(*(one(at, columns) for at, columns in enumerate(calls)))

    def _one(self, columns: list[Any], parameters: dict[str, Any]) -> Any:
        try:
            return self._checked(columns, self.function(*columns, **parameters))
        except Exception as error:
            return _last_line(error)

    def _checked(self, columns: list[Any], answer: Any) -> list[float | str | None]:
        if self.per == "rollout":
            return [_number(answer)]
        if hasattr(answer, "tolist"):
            answer = answer.tolist()
        if not isinstance(answer, Sequence) or isinstance(answer, str):
            raise TypeError(f"the reward gave back {type(answer).__name__}, not a list of numbers")
        if len(answer) != len(columns[1]):
            raise ValueError(f"the reward gave back {len(answer)} numbers for {len(columns[1])} responses")
        return [_number(item) for item in answer]

    def _sorted(self, groups: list[list[list[Any]]], answers: list[Any]) -> list[Any]:
        """One answer a group: a list, or what went wrong with all of it."""
        if self.per == "group":
            given = iter(answers)
            return [next(given) if group[1] else [] for group in groups]
        flat: list[Any] = []
        if self.per == "batch":
            count = sum(len(group[1]) for group in groups)
            flat = answers[0] if isinstance(answers[0], list) else [answers[0]] * count
        else:
            flat = [answer[0] if isinstance(answer, list) else answer for answer in answers]
        given = iter(flat)
        return [[next(given) for _ in group[1]] for group in groups]


def _number(item: Any) -> float | str | None:
    if item is None:
        return None
    if isinstance(item, (str, bytes)):
        return f"the reward gave back {type(item).__name__} in place of a number"
    try:
        value = float(item)
    except OverflowError:
        return "the reward gave back a number beyond all that a float can hold"
    except (TypeError, ValueError):
        return f"the reward gave back {type(item).__name__} in place of a number"
    if not math.isfinite(value):
        return f"the reward gave back {value}"
    return (
        value
        if abs(value) <= LARGEST
        else f"the reward gave back {value:g}, and trainers compute with 32 bits"
    )


def _told(result: Any, timeout: float) -> Any:
    """What a call gave back; where it was ended, why."""
    if not isinstance(result, Failure):
        return result
    return _late(timeout) if result.late else result.reason


def _late(timeout: float) -> TimeoutError:
    """What the engine takes for `group.deadline`."""
    return TimeoutError(
        f"the reward gave no answer within {timeout:g} s, the recipe's groups.timeout; raise it if the function needs longer"
    )


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip() or type(error).__name__


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    """What a recipe may say to the function: its parameters after the columns."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    spread = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(positional) < len(_GIVEN) and not spread:
        raise TypeError(f"a reward takes ({', '.join(_GIVEN)}), not {inspect.signature(function)}")
    keywords = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    own = positional[len(_GIVEN) :] + keywords
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: {"description": f"A parameter of {function.__name__}."} for each in own},
        "required": [each.name for each in own if each.default is each.empty],
    }
    return schema
