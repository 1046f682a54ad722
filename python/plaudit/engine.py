"""How are rollouts scored from Python? An engine is made of a recipe and scores as many batches as one likes."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from plaudit import _plaudit, custom
from plaudit.report import Report
from plaudit.values import plain

if TYPE_CHECKING:
    from plaudit.join import Join

OnError = Literal["invalid", "raise"]

Messages = Sequence[Mapping[str, Any]]
"""Chat messages, each with at least `role` and `content`."""


class Engine:
    """A loaded recipe that scores rollouts.

    `recipe` is the name of a shipped recipe, the path of a file, or the recipe itself as a dict. `overrides` replaces
    single values, such as `{"components.format.weight": 0.1}`. `state` keeps judgments, so that none is bought twice:
    a folder of this machine, or `redis://host:port/db` for several. `share` is for one of so many engines that together
    must keep to the recipe's limits of calls and money.

    must keep to the recipe's limits of calls and money. `on_error="raise"` is for development: what a registered reward
    raises is raised by `score`, in place of making its rollouts invalid.

    Making one loads the recipe and raises `RecipeError` with everything that is wrong with it. Threads start with the
    first batch that needs them. An engine may be used from many threads at once, in a forked child, and in another process
    to which it was pickled. It keeps the registered functions that it was made with, wherever it goes.

    Engines of one process may have the same state folder. Another process can have it once they are closed or gone:
    `close()`, or the end of a `with` block, lets go of it at once.
    """

    def __init__(
        self,
        recipe: str | os.PathLike[str] | Mapping[str, Any],
        *,
        overrides: Mapping[str, Any] | None = None,
        state: str | os.PathLike[str] | None = None,
        share: int = 1,
        on_error: OnError = "invalid",
    ) -> None:
        self._begin(recipe, overrides, state, share, on_error, custom.registered())

    def _begin(
        self,
        recipe: Any,
        overrides: Any,
        state: Any,
        share: Any,
        on_error: Any,
        functions: dict[str, custom.CustomReward],
    ) -> None:
        self._name, self._text = _recipe(recipe)
        self._overrides = _overrides(overrides)
        self._state = None if state is None else os.fspath(state)
        self._share = _share(share)
        if on_error not in ("invalid", "raise"):
            raise ValueError(f"on_error is 'invalid' or 'raise', not {on_error!r:.80}")
        self._on_error: OnError = on_error
        self._raised: custom.Raised = {}
        self._functions = functions
        self._joins: weakref.WeakSet[Join] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._made: _plaudit.Engine | None = self._make()
        # Those that the recipe names.
        self._functions = {name: functions[name] for name in self._made.custom_rewards}
        self._says = f"plaudit.Engine({self._made.name!r}, components={self._made.columns})"

    def _make(self) -> _plaudit.Engine:
        raised = self._raised if self._on_error == "raise" else None
        kinds = [reward.kind(raised) for reward in self._functions.values()]
        # A closed engine still tells what it was made of, without its state.
        state = None if self._closed else self._state
        core = _plaudit.Engine(self._name, self._text, self._overrides, state, self._share, kinds)
        for warning in core.warnings:
            warnings.warn(warning, stacklevel=4)
        if self._closed:
            core.close()
        return core

    @property
    def _core(self) -> _plaudit.Engine:
        # Threads do not survive a fork, so a forked child makes an engine of its own. What it inherited is never let go
        # of, because ending it would wait for threads that are not there.
        if self._pid != os.getpid():
            _inherited.append(self._made)
            self._lock = threading.Lock()
            self._made, self._pid = None, os.getpid()
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        recipe = json.loads(self._text) if self._text is not None else self._name
        overrides = {key: json.loads(value) for key, value in self._overrides}
        functions = list(self._functions.values())
        return _rebuild, (recipe, overrides, self._state, self._share, self._on_error, functions)

    def _again(self, *, state: str | os.PathLike[str] | None, share: int) -> Engine:
        """Another engine of the same recipe and the same functions, for adapters that choose the state where it is used."""
        rebuild, (recipe, overrides, _, _, on_error, functions) = self.__reduce__()
        return rebuild(recipe, overrides, state, share, on_error, functions)

    def __repr__(self) -> str:
        # Also of an engine that could not be made.
        said = getattr(self, "_says", "plaudit.Engine(not made)")
        return f"<closed {said}>" if getattr(self, "_closed", False) else said

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Ends the engine: batches under way are waited for, and the state is on disk and free for others.

        No further call to a judge begins, so what is not answered yet becomes invalid, `engine.stopped`; joins of the engine
        answer whoever waits. Other engines of this process keep the state folder for as long as they need it. Closing
        twice does nothing; scoring with a closed engine raises `RunError` with the code `engine.closed`.
        """
        if self._closed:
            return
        self._closed = True
        # In a forked child the engine is still that of the parent, and not the child's to end.
        if self._made is None or self._pid != os.getpid():
            return
        try:
            for join in list(self._joins):
                if join._pid == self._pid:
                    join.close()
            self._made.close()
        except BaseException:
            # Ctrl-C while it waits: it can be closed again.
            self._closed = False
            raise

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self._core.name

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the components, in the order of the recipe."""
        return tuple(self._core.columns)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each component."""
        return {name: weight for name, _, weight in self._core.parts}

    @property
    def rewards(self) -> dict[str, str]:
        """The reward of each component."""
        return {name: reward for name, reward, _ in self._core.parts}

    @property
    def judges(self) -> dict[str, dict[str, Any]]:
        """The limits of each judge: concurrency, calls a minute, budgets."""
        return self._core.judges

    @property
    def compares_groups(self) -> bool:
        """Whether some component needs the group as a whole."""
        return self._core.compares_groups

    @property
    def group_limit(self) -> tuple[str, str, int] | None:
        """The component that takes the smallest groups, its aggregate, and the most responses of a group that it takes.

        None where groups may have any size. A larger group is invalid with `group.too_large`, and no judge is asked about it.
        """
        return self._core.group_limit

    def check_group_size(self, size: int) -> None:
        """Raises `ValueError` where groups of that size are larger than some component takes."""
        limit = self.group_limit
        if limit is not None and size > limit[2]:
            component, method, most = limit
            raise ValueError(
                f"groups of {size} are too large for the component `{component}`: its aggregate {method} takes at most {most} "
                f"responses. Make the groups smaller, or choose another aggregate, such as components.{component}.aggregate=winrate"
            )

    @property
    def indivisible(self) -> str | None:
        """Why the total is not always the weighted sum of the components; None where it is."""
        return self._core.indivisible

    @property
    def validates(self) -> bool:
        """Whether the recipe puts the reference among the responses that are compared."""
        return self._core.validates

    @property
    def invalid_value(self) -> float | None:
        """What stands for an invalid total where a number must be handed out."""
        return self._core.invalid_value

    @property
    def timeout(self) -> float:
        """How long one group may take, in seconds."""
        return self._core.timeout

    @property
    def tallies(self) -> list[dict[str, Any]]:
        """What each judge has been asked so far: calls, answers from the record, tokens, cost, latency."""
        return self._core.tallies()

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe as it is used: what was written, with the overrides. Recipes that it routes to are named, not shown."""
        return self._core.recipe

    def score(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str] | Any = None,
        references: Sequence[str | float | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | int | None] | Any | None = None,
        validate: bool | None = None,
    ) -> Report:
        """Scores a batch and waits for it; other threads run meanwhile, and Ctrl-C is heard.

        Each column has one entry a rollout: a list, a tuple, a numpy array, a column of pandas, an iterator, or an Arrow
        array, whose text is lent and not copied.

        Args:
            prompts: Text or chat messages. Where `groups` is missing, equal prompts make a group.
            responses: The texts that are scored. The only column that must be given.
            references: The right answers; numbers are taken as their decimal text. None where there is none.
            groups: The name or number of each rollout's group.
            tokens: The length of each response in the policy's own tokens, for rewards that count them.
            extras: A dict a rollout, for rewards and routes that look into it.
            ids: The name or number of each rollout; its place, counted from one, where there is none.
            validate: Whether references take part in comparisons; where it is None, the recipe says so.

        Returns:
            A `Report`, in the order of the rollouts. A rollout that cannot be scored is `invalid` there, with the reason.

        Raises:
            TypeError: A column holds something that it cannot; column and place are named.
            ValueError: The columns differ in length.
            RunError: The batch could not be scored at all; its `code` says why.
        """
        columns = (prompts, responses, references, groups, tokens, extras, ids, _said(validate))
        return self._report(self._core.score(*columns))

    async def ascore(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str] | Any = None,
        references: Sequence[str | float | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | int | None] | Any | None = None,
        validate: bool | None = None,
    ) -> Report:
        """Scores a batch as `score` does, without blocking the event loop. A cancelled task lets go of the work.

        Args:
            prompts: Text or chat messages. Where `groups` is missing, equal prompts make a group.
            responses: The texts that are scored. The only column that must be given.
            references: The right answers; numbers are taken as their decimal text. None where there is none.
            groups: The name or number of each rollout's group.
            tokens: The length of each response in the policy's own tokens, for rewards that count them.
            extras: A dict a rollout, for rewards and routes that look into it.
            ids: The name or number of each rollout; its place, counted from one, where there is none.
            validate: Whether references take part in comparisons; where it is None, the recipe says so.

        Returns:
            A `Report`, in the order of the rollouts.

        Raises:
            TypeError, ValueError, RunError: As `score`.
        """
        columns = (prompts, responses, references, groups, tokens, extras, ids, _said(validate))
        return self._report(await awaited(lambda done: self._core.start(done, *columns)))

    def _report(self, scores: Any) -> Report:
        report = Report(scores)
        if self._on_error == "raise":
            error = custom.failure(report.reasons, self._raised)
            if error is not None:
                raise error
        return report

    def score_table(self, table: Any, *, validate: bool | None = None) -> Report:
        """Scores a table of Arrow's, with the columns that a line of JSON would have; any other column goes to `extra`."""
        prompts, responses, references, groups, tokens, extras, ids = _columns(table)
        return self.score(prompts, responses, references, groups, tokens, extras, ids=ids, validate=validate)

    async def ascore_table(self, table: Any, *, validate: bool | None = None) -> Report:
        """Scores a table as `score_table` does, without blocking the event loop."""
        prompts, responses, references, groups, tokens, extras, ids = _columns(table)
        return await self.ascore(
            prompts, responses, references, groups, tokens, extras, ids=ids, validate=validate
        )

    def join(
        self, *, timeout: float | None = None, quiet: float | None = None, remember: int | None = None
    ) -> Join:
        """A place where callers hand in one rollout each, and get it scored with its group."""
        from plaudit.join import Join

        return Join(self, timeout=timeout, quiet=quiet, remember=remember)

    def stop(self) -> None:
        """Lets no further call to a judge begin. What is in flight is still answered and kept."""
        self._core.stop()


_inherited: list[_plaudit.Engine | None] = []


async def awaited(start: Callable[[Callable[[Any, BaseException | None], None]], Any]) -> Any:
    """What a call gives back that tells its end on another thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def done(value: Any, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            pass  # The loop was closed, so nobody waits any more.

    call = start(done)
    try:
        return await future
    except asyncio.CancelledError:
        if call is not None:
            call.cancel()
        raise


def _rebuild(
    recipe: Any,
    overrides: dict[str, Any],
    state: str | None,
    share: int,
    on_error: OnError,
    functions: list[custom.CustomReward],
) -> Engine:
    """An engine that was pickled, with the functions that it was made with and none of this process."""
    engine = Engine.__new__(Engine)
    engine._begin(recipe, overrides, state, share, on_error, {each.name: each for each in functions})
    return engine


def _recipe(recipe: Any) -> tuple[str, str | None]:
    """The name of a recipe, and its text where it was given as a dict."""
    if isinstance(recipe, Mapping):
        try:
            return "recipe", json.dumps(plain(recipe, strict=True), allow_nan=False)
        except ValueError as error:
            raise ValueError(f"the recipe holds a number that is not finite, or itself: {error}") from None
    if isinstance(recipe, (str, os.PathLike)):
        return os.fspath(recipe), None
    kind = type(recipe).__name__
    raise TypeError(f"a recipe is the name of a shipped one, the path of a file or a dict, not {kind}")


def _overrides(overrides: Any) -> list[tuple[str, str]]:
    if overrides is None:
        return []
    if not isinstance(overrides, Mapping):
        example = '{"components.format.weight": 0.1}'
        raise TypeError(f"overrides is a dict such as {example}, not {type(overrides).__name__}")
    written = []
    for key, value in overrides.items():
        try:
            written.append((str(key), _written(value)))
        except ValueError:
            raise ValueError(f"overrides[{key!r}]: {value!r:.80} is not finite") from None
    return written


def _share(share: Any) -> int:
    if isinstance(share, bool) or not isinstance(share, Integral):
        raise TypeError(f"share is a whole number of engines, not {share!r:.80}")
    if share < 1:
        raise ValueError(f"share is 1 or more engines, not {share}")
    return int(share)


def _said(validate: Any) -> bool | None:
    # numpy's own too, which is none of Python's.
    if validate is not None and type(validate).__name__ not in ("bool", "bool_"):
        raise TypeError(f"validate is True, False or None, not {validate!r:.80}")
    return None if validate is None else bool(validate)


def _written(value: Any) -> str:
    return json.dumps(plain(value, strict=True), allow_nan=False)


_COLUMNS = ("prompt", "response", "reference", "group", "tokens", "extra", "id")


def _columns(table: Any) -> tuple[Any, ...]:
    """The columns of a table in the order of `score`, text still as Arrow holds it."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        table = pa.table(table)
    if "response" not in table.column_names:
        raise ValueError(f"the table has no column 'response', only {table.column_names}")
    found: dict[str, Any] = {}
    for name in ("prompt", "response", "reference", "group", "tokens", "id"):
        if name in table.column_names:
            column = table.column(name)
            found[name] = column.to_pylist() if pa.types.is_nested(column.type) else column
    others = [name for name in table.column_names if name not in _COLUMNS]
    if others or "extra" in table.column_names:
        found["extra"] = _extras(table, others)
    columns = ("prompt", "response", "reference", "group", "tokens", "extra", "id")
    return tuple(found.get(name) for name in columns)


def _extras(table: Any, others: list[str]) -> list[dict[str, Any]]:
    rows = table.select(others).to_pylist() if others else [{} for _ in range(table.num_rows)]
    if "extra" in table.column_names:
        for at, (row, extra) in enumerate(zip(rows, table.column("extra").to_pylist(), strict=True)):
            try:
                row.update(json.loads(extra) if isinstance(extra, str) else extra or {})
            except (TypeError, ValueError) as error:
                raise ValueError(f"extra[{at}]: an object or its JSON is wanted ({error})") from None
    return rows
