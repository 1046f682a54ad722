"""Custom rewards: `@plaudit.register` makes a Python function a reward that recipes can name."""

from __future__ import annotations

import functools
import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from plaudit import _plaudit, answers
from plaudit.judges import JudgeError, asking
from plaudit.timeouts import Failure, run
from plaudit.trainer_functions import TrainerFunction

log = logging.getLogger("plaudit")

Per = Literal["batch", "group", "rollout"]
Function = TypeVar("Function", bound=Callable[..., Any])

# A call that takes longer than this lets the next one start beside it, up to so many at a time.
SLOW_S, MAX_PARALLEL = 1.0, 8
# How long coroutines may take to end after their deadline.
GRACE_S = 1.0
# So many exceptions are kept for `on_error="raise"`, which raises the first of a batch.
MAX_RAISED = 64

_COLUMNS = ("prompts", "responses", "references", "extras")
# The position of each column by its name, in the plural and in the singular.
_POSITIONS = {name: at for at, column in enumerate(_COLUMNS) for name in (column, column[:-1])}


@dataclass(frozen=True)
class CustomReward:
    """A registered function. An engine keeps those of its recipe, and they are pickled with it."""

    name: str
    function: Callable[..., Any]
    per: Per

    def kind(self, raised: Raised | None = None) -> tuple[Any, ...]:
        """What the extension takes: name, page, schema, whether it compares a group, and the callable."""
        page = inspect.getdoc(_unwrapped(self.function)) or ""
        return self.name, page, _schema(self), self.per == "group", _Call(self, raised)


# The exceptions of an engine's functions by their message, for `on_error="raise"`.
Raised = dict[str, BaseException]

_functions: dict[str, CustomReward] = {}
# The errors that were logged: reward, type, file and line.
_logged: set[tuple[str, str, str, int]] = set()


@overload
def register(name: str, *, per: Per | None = None) -> Callable[[Function], Function]: ...
@overload
def register(name: str, function: Function, *, per: Per | None = None) -> Function: ...
def register(name: str, function: Any = None, *, per: Per | None = None) -> Any:
    """Makes a function a reward of this process, which recipes name.

    The function takes `(prompts, responses, references, extras)`, lists of equal length, and returns as many answers: numbers,
    None where the reward does not apply, `plaudit.Score`, or dicts with `score`. It may be a coroutine function: all calls of a
    batch then run at once. Further parameters are those that a recipe may set.

    Registering a name again changes what recipes get that are loaded later; an engine keeps the function that it was made with.

    An exception makes the rollouts of that call invalid, with the last line of the traceback as the reason; the traceback
    goes to the logger `plaudit`, once for each place that raises. What cannot be read as an answer, NaN among it, makes its
    own rollout invalid. A call that takes longer than the recipe's `groups.timeout` makes its rollouts invalid,
    `group.deadline`; a call that cannot be stopped is abandoned.

    Args:
        name: The name of the reward in recipes.
        function: The function; left out where `register` decorates it.
        per: `"batch"` calls the function once a batch, `"group"` once a group, and `"rollout"` once a rollout, with single
            values in place of lists. Where it is None, what `verl_function` and `trl_function` make knows it, and all others
            are called once a batch.

    Returns:
        The function, unchanged; or a decorator that returns it.

    Raises:
        ArgumentError: The function does not take the four columns in their order, the name is that of a shipped reward, or
            a parameter has a name that every component has, such as `weight`.

    Example:
        >>> @plaudit.register("politeness")
        ... def politeness(prompts, responses, references, extras, *, bonus=1.0):
        ...     return [bonus if "please" in response else 0.0 for response in responses]
    """
    if not isinstance(name, str):
        raise _plaudit.ArgumentError('a reward is registered under a name: @plaudit.register("NAME")')
    if per not in (None, "batch", "group", "rollout"):
        raise _plaudit.ArgumentError(f"per is 'batch', 'group' or 'rollout', not {per!r}")

    def add(function: Any) -> Any:
        own = function.per if isinstance(function, TrainerFunction) else None
        if own is not None and per not in (None, own):
            raise _plaudit.ArgumentError(f"{function!r} is called once a {own}, not once a {per}")
        reward = CustomReward(name, function, per or own or "batch")
        _plaudit.register(*reward.kind())
        _functions[name] = reward
        # The errors of a function that was changed are logged anew.
        for key in [key for key in _logged if key[0] == name]:
            _logged.discard(key)
        return function

    return add if function is None else add(function)


def registered() -> dict[str, CustomReward]:
    """The functions of this process, by name."""
    return dict(_functions)


def failure(reasons: Iterable[dict[str, Any] | None], raised: Raised) -> BaseException | None:
    """The exception of a function, where one made a rollout invalid."""
    for reason in reasons:
        if reason is not None and reason["code"] == "reward.failed":
            message = reason["message"]
            return raised.pop(message, None) or _plaudit.PlauditError(message)
    return None


class _Call:
    """The callable that the engine calls with all groups of a batch. It returns messages in place of raising."""

    def __init__(self, reward: CustomReward, raised: Raised | None) -> None:
        self.name, self.function, self.per = reward.name, reward.function, reward.per
        self.raised = raised
        called = type(self.function).__call__
        self.awaits = (
            self.function.awaits
            if isinstance(self.function, TrainerFunction)
            else inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)
        )

    def __call__(
        self,
        groups: list[list[list[Any]]],
        parameters: dict[str, Any],
        timeout: float,
        judges: _plaudit.Judges | None,
    ) -> list[Any]:
        calls = list(self._calls(groups))
        # Before the call, because the function may change the lists.
        sizes = [len(group[1]) for group in groups]
        if not self.awaits:
            each = [functools.partial(self._one, columns, parameters, timeout, judges) for columns in calls]
            results = run(each, workers=MAX_PARALLEL, timeout=timeout, patience=SLOW_S)
            return self._by_group(sizes, [_or_error(result, timeout) for result in results])
        given: list[Any] = [_late(timeout)] * len(calls)

        def together() -> None:
            import asyncio  # Later, because it takes as long as the package.

            with asking(judges, timeout):
                asyncio.run(self._all(calls, parameters, timeout, given))

        # On a thread, so that a coroutine that blocks the loop is abandoned as well.
        ended = run([together], workers=1, timeout=timeout + GRACE_S)[0]
        if isinstance(ended, Failure) and not ended.late:
            given = [ended.reason if isinstance(answer, TimeoutError) else answer for answer in given]
        return self._by_group(sizes, list(given))

    def _calls(self, groups: list[list[list[Any]]]) -> Any:
        if self.per == "batch":
            yield [[item for group in groups for item in group[column]] for column in range(len(_COLUMNS))]
        elif self.per == "group":
            yield from (group for group in groups if group[1])
        else:
            for group in groups:
                yield from (list(row) for row in zip(*group, strict=True))

    async def _all(
        self, calls: list[list[Any]], parameters: dict[str, Any], timeout: float, given: list[Any]
    ) -> None:
        """Replaces the late answers by those that come in time."""
        import asyncio  # Later, because it takes as long as the package.

        async def answer(at: int, columns: list[Any]) -> None:
            wanted = self._wanted(columns)
            try:
                given[at] = self._checked(wanted, await self.function(*columns, **parameters))
            except Exception as error:
                given[at] = self._failed(wanted, error)

        async def one(at: int, columns: list[Any]) -> None:
            try:
                await asyncio.wait_for(answer(at, columns), timeout)
            except asyncio.TimeoutError:
                pass

        await asyncio.gather(*(one(at, columns) for at, columns in enumerate(calls)))

    def _one(
        self,
        columns: list[Any],
        parameters: dict[str, Any],
        timeout: float,
        judges: _plaudit.Judges | None,
    ) -> Any:
        wanted = self._wanted(columns)
        try:
            with asking(judges, timeout):
                answer = self.function(*columns, **parameters)
                if inspect.isawaitable(answer):
                    import asyncio  # Later, because it takes as long as the package.

                    answer = asyncio.run(asyncio.wait_for(answer, timeout))
            return self._checked(wanted, answer)
        except Exception as error:
            return self._failed(wanted, error)

    def _failed(self, wanted: int | None, error: Exception) -> Any:
        """The message of an exception. Its traceback is logged once for each place that raises."""
        if isinstance(error, JudgeError):
            # No fault of the function's: the rollouts have the reason of the judge.
            return [answers.read(error)] * (1 if wanted is None else wanted)
        message = answers.message_of(error)
        frames = traceback.extract_tb(error.__traceback__)
        file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
        key = (self.name, type(error).__name__, file, line)
        if key not in _logged:
            _logged.add(key)
            log.error("the reward %r raised %s", self.name, message, exc_info=error)
        if self.raised is not None:
            self.raised[message] = error
            while len(self.raised) > MAX_RAISED:
                self.raised.pop(next(iter(self.raised)), None)
        return message

    def _wanted(self, columns: list[Any]) -> int | None:
        """How many numbers a call must return; None for a single one."""
        return None if self.per == "rollout" else len(columns[1])

    def _checked(self, wanted: int | None, answer: Any) -> list[Any]:
        if wanted is None:
            return [answers.read(answer)]
        if hasattr(answer, "tolist"):
            answer = answer.tolist()
        if not isinstance(answer, Sequence) or isinstance(answer, str):
            raise TypeError(f"the reward gave back {type(answer).__name__}, not a list of numbers")
        if len(answer) != wanted:
            got = "1 number" if len(answer) == 1 else f"{len(answer)} numbers"
            raise ValueError(f"the reward gave back {got} for {wanted} response{'s' * (wanted != 1)}")
        return [answers.read(item) for item in answer]

    def _by_group(self, sizes: list[int], found: list[Any]) -> list[Any]:
        """One answer a group: a list, or an error message for all of it."""
        if self.per == "group":
            given = iter(found)
            return [next(given) if size else [] for size in sizes]
        if self.per == "batch":
            flat = found[0] if isinstance(found[0], list) else [found[0]] * sum(sizes)
        else:
            flat = [answer[0] if isinstance(answer, list) else answer for answer in found]
        given = iter(flat)
        return [[next(given) for _ in range(size)] for size in sizes]


def _or_error(result: Any, timeout: float) -> Any:
    """The result of a call, or its error."""
    if not isinstance(result, Failure):
        return result
    return _late(timeout) if result.late else result.reason


def _late(timeout: float) -> TimeoutError:
    """The error that the engine turns into `group.deadline`."""
    return TimeoutError(
        f"the reward gave no answer within {timeout:g} s, the recipe's groups.timeout; raise it if the function needs longer"
    )


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function within `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _schema(reward: CustomReward) -> dict[str, Any]:
    """The JSON schema of the parameters after the columns, which a recipe may set."""
    signature = inspect.signature(reward.function)
    parameters = list(signature.parameters.values())
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    spread = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(positional) < len(_COLUMNS) and not spread:
        raise _plaudit.ArgumentError(f"a reward takes ({', '.join(_COLUMNS)}), not {signature}")
    for at, each in enumerate(positional[: len(_COLUMNS)]):
        if _POSITIONS.get(each.name, at) != at:
            raise _plaudit.ArgumentError(
                f"a reward is called by position, ({', '.join(_COLUMNS)}): {each.name!r} would get the {_COLUMNS[at]}"
            )
    keywords = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    own = positional[len(_COLUMNS) :] + keywords
    called = getattr(_unwrapped(reward.function), "__name__", reward.name)
    return {
        "type": "object",
        "properties": {each.name: {"description": f"A parameter of {called}."} for each in own},
        "required": [each.name for each in own if each.default is each.empty],
    }
