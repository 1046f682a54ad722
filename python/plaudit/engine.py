"""`Engine`: a loaded recipe that scores batches of rollouts, plans their cost and explains their totals."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from plaudit import _plaudit, custom, tables
from plaudit._plaudit import ArgumentError
from plaudit.fork import PerProcess
from plaudit.report import Report
from plaudit.rollout import FIELDS, Conversation, Messages, Reference
from plaudit.values import plain

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from plaudit.join import Join
    from plaudit.rollout import OtherColumns

_log = logging.getLogger("plaudit")

OnError = Literal["invalid", "raise"]


class Engine:
    """A loaded recipe that scores rollouts.

    Threads start with the first batch that needs them. An engine may be used from many threads at once, in a forked child,
    and in another process to which it was pickled. It keeps the registered functions that it was made with.

    Engines of one process may have the same state folder. Another process can open it once they are closed: by `close()`,
    or at the end of a `with` block.

    Args:
        recipe: The name of a shipped recipe, the path of a file, or the recipe itself as a dict.
        overrides: Values of the recipe to replace, by their path: `{"components.format.weight": 0.1}`.
        state: Where judgments are kept, so that none is paid for twice: a folder of this machine, or
            `redis://host:port/db` for several machines.
        share: How many engines together keep to the recipe's limits of calls and money.
        on_error: `"raise"`, for development: `score` raises what a registered reward raises, in place of making its
            rollouts invalid.
        unsafe_no_sandbox: Run the programs of responses without a sandbox where this machine has none. They can then do
            what this process can, and every result says so.

    Raises:
        RecipeError: The recipe cannot be loaded; `errors` lists everything that is wrong with it.
        RunError: The state cannot be opened.
        ArgumentError: An argument has the wrong type or value.

    Example:
        >>> engine = plaudit.Engine("quickstart", overrides={"components.format.weight": 0.1})
        >>> engine.score(prompts, responses, references).totals
    """

    def __init__(
        self,
        recipe: str | os.PathLike[str] | Mapping[str, Any],
        *,
        overrides: Mapping[str, Any] | None = None,
        state: str | os.PathLike[str] | None = None,
        share: int = 1,
        on_error: OnError = "invalid",
        unsafe_no_sandbox: bool = False,
    ) -> None:
        self._load(recipe, overrides, state, share, on_error, custom.registered(), unsafe_no_sandbox)

    def _load(
        self,
        recipe: Any,
        overrides: Any,
        state: Any,
        share: Any,
        on_error: Any,
        functions: dict[str, custom.CustomReward],
        unsafe_no_sandbox: bool,
    ) -> None:
        self._name, self._text = _recipe(recipe)
        self._overrides = _overrides(overrides)
        self._state = None if state is None else os.fspath(state)
        self._share = _share(share)
        if on_error not in ("invalid", "raise"):
            raise ArgumentError(f"on_error is 'invalid' or 'raise', not {on_error!r:.80}")
        self._on_error: OnError = on_error
        self._unsafe_no_sandbox = bool(unsafe_no_sandbox)
        self._raised: custom.Raised = {}
        self._told_references = False
        self._functions = functions
        self._joins: weakref.WeakSet[Join] = weakref.WeakSet()
        self._closed = False
        self._process: PerProcess[_plaudit.Engine] = PerProcess()
        self._properties = self._inner.properties()
        self._functions = {name: functions[name] for name in self._properties["custom_rewards"]}

    def _open(self, *, dry: bool = False) -> _plaudit.Engine:
        raised = self._raised if self._on_error == "raise" else None
        functions = [reward.kind(raised) for reward in self._functions.values()]
        # A closed engine still has its properties, without its state.
        state = None if self._closed else self._state
        unsafe = self._unsafe_no_sandbox
        inner = _plaudit.Engine(
            self._name, self._text, self._overrides, state, self._share, functions, dry, unsafe
        )
        for warning in [] if dry else inner.warnings:
            warnings.warn(warning, stacklevel=6)
        if self._closed:
            inner.close()
        return inner

    @property
    def _inner(self) -> _plaudit.Engine:
        return self._process.get(self._open)

    def __reduce__(self) -> tuple[Any, ...]:
        recipe = json.loads(self._text) if self._text is not None else self._name
        overrides = {key: json.loads(value) for key, value in self._overrides}
        functions = list(self._functions.values())
        unsafe = self._unsafe_no_sandbox
        return _rebuild, (recipe, overrides, self._state, self._share, self._on_error, functions, unsafe)

    def _again(self, *, state: str | os.PathLike[str] | None, share: int) -> Engine:
        """Another engine of the same recipe and functions, for adapters that choose the state where it is used."""
        rebuild, (recipe, overrides, _, _, on_error, functions, unsafe) = self.__reduce__()
        return rebuild(recipe, overrides, state, share, on_error, functions, unsafe)

    def __repr__(self) -> str:
        if not hasattr(self, "_properties"):
            return "plaudit.Engine(not made)"  # Its recipe could not be loaded.
        description = f"plaudit.Engine({self.name!r}, components={list(self.components)})"
        return f"<closed {description}>" if self._closed else description

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_: object) -> None:
        import asyncio  # Later, because it takes as long as the package.

        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Closes the engine: waits for batches under way; then the state is on disk and free for others.

        No further judge call begins, so a rollout that waits for one becomes invalid, `engine.stopped`. Joins of the engine
        answer all callers. Other engines of this process keep the state folder for as long as they need it. Closing twice
        does nothing. Scoring with a closed engine raises `RunError` with the code `engine.closed`.

        Example:
            >>> engine.close()
        """
        if self._closed:
            return
        self._closed = True
        # In a forked child the engine is still that of the parent, and not the child's to close.
        inner = self._process.made_here()
        if inner is None:
            return
        try:
            for join in list(self._joins):
                join._close_here()
            inner.close()
        except BaseException:
            # Ctrl-C while it waits: it can be closed again.
            self._closed = False
            raise

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self._properties["name"]

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe in effect: as written, with the overrides. Recipes that it routes to are named, not shown."""
        return copy.deepcopy(self._properties["recipe"])

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the components, in the order of the recipe."""
        return tuple(self._properties["components"])

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each component."""
        return dict(self._properties["weights"])

    @property
    def rewards(self) -> dict[str, str]:
        """The name of each component's reward."""
        return dict(self._properties["rewards"])

    @property
    def judges(self) -> dict[str, dict[str, Any]]:
        """The limits of each judge: concurrency, calls a minute, budgets."""
        return copy.deepcopy(self._properties["judges"])

    @property
    def judge_usage(self) -> list[dict[str, Any]]:
        """The usage of each judge so far: calls, answers from the journal, tokens, cost, latency."""
        return self._inner.judge_usage()

    @property
    def compares_groups(self) -> bool:
        """Whether some component needs the group as a whole."""
        return self._properties["compares_groups"]

    @property
    def group_limit(self) -> tuple[str, str, int] | None:
        """The component that takes the smallest groups, its aggregate, and the most responses that it takes.

        None where groups may have any size. A larger group is invalid with `group.too_large`, and no judge is asked about it.
        """
        return self._properties["group_limit"]

    @property
    def validates(self) -> bool:
        """Whether the recipe compares the responses with the reference."""
        return self._properties["validates"]

    @property
    def invalid_value(self) -> float | None:
        """The recipe's number for an invalid total, where a trainer must have one."""
        return self._properties["invalid_value"]

    @property
    def timeout(self) -> float:
        """How long one group may take, in seconds."""
        return self._properties["timeout"]

    @property
    def additive_error(self) -> str | None:
        """Why the total is not always the weighted sum of the components; None where it is."""
        return self._properties["additive_error"]

    def check_group_size(self, size: int) -> None:
        """Checks that no component refuses groups of this size.

        Args:
            size: How many responses a group has.

        Raises:
            ArgumentError: The groups are larger than some component takes.

        Example:
            >>> plaudit.Engine("tutorial").check_group_size(8)
        """
        limit = self.group_limit
        if limit is not None and size > limit[2]:
            component, method, most = limit
            raise ArgumentError(
                f"groups of {size} are too large for the component `{component}`: its aggregate {method} takes at most {most} "
                f"responses. Make the groups smaller, or choose another aggregate, such as components.{component}.aggregate=winrate"
            )

    def score(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str | Conversation] | Any = None,
        references: Sequence[Reference | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | int | None] | Any | None = None,
        validate: bool | None = None,
        **others: Unpack[OtherColumns],
    ) -> Report:
        """Scores a batch and waits for it. Other threads run meanwhile, and Ctrl-C interrupts it.

        Each column has one entry a rollout: a list, a tuple, a numpy array, a pandas column, an iterator, or an Arrow array,
        whose text is not copied. All but `responses` may be left out.

        Args:
            prompts: Text or chat messages. Where `groups` is missing, equal prompts make a group.
            responses: The texts that are scored, or conversations: chat messages, items of the Responses API, or a trace of
                verifiers. The only column that must be given.
            references: The right answers; numbers are taken as their decimal text. A list holds accepted answers, any of which is
                right, and a dict is for rewards that read one. None where there is none: then a reward that needs a reference
                looks in `answer`, `ground_truth` and their like in `extras`.
            groups: The name or number of each rollout's group.
            tokens: The length of each response in the policy's own tokens, for rewards that count them.
            extras: A dict a rollout, for rewards and routes that read it.
            ids: The name or number of each rollout; its place, counted from one, where there is none.
            validate: Whether references take part in comparisons; where it is None, the recipe decides.
            others: The columns of `plaudit.rollout.OtherColumns`: `finish_reasons` (a word such as `stop` or `length`, or True where it
                was truncated), `truncated`, and `tools` (the declarations of the tools that the policy was given, or a list of them
                a rollout; else those in `tools` of each extra).

        Returns:
            A `Report`, in the order of the rollouts. A rollout that cannot be scored is `invalid` there, with the reason.

        Raises:
            ArgumentError: A column holds something that it cannot, or the columns differ in length; the message names the
                column and the place.
            RunError: The batch could not be scored at all; `code` is the reason.

        Example:
            >>> engine.score(responses=["<think>6 * 7</think><answer>42</answer>"], references=["42"]).totals
        """
        columns = _columns(prompts, responses, references, groups, tokens, extras, ids, others)
        return self._score(columns, validate)

    async def ascore(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str | Conversation] | Any = None,
        references: Sequence[Reference | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | int | None] | Any | None = None,
        validate: bool | None = None,
        **others: Unpack[OtherColumns],
    ) -> Report:
        """Scores a batch without blocking the event loop. Cancelling the task cancels the judge calls.

        Args:
            prompts, responses, references, groups, tokens, extras, ids, validate, others: As for `score`.

        Returns:
            A `Report`, in the order of the rollouts.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> report = await engine.ascore(prompts, responses)
        """
        columns = _columns(prompts, responses, references, groups, tokens, extras, ids, others)
        return await self._ascore(columns, validate)

    def _score(self, columns: dict[str, Any], validate: bool | None) -> Report:
        """Scores columns by the names of their fields."""
        return self._report(self._inner.score(columns, validate))

    async def _ascore(self, columns: dict[str, Any], validate: bool | None) -> Report:
        return self._report(await awaited(lambda done: self._inner.start(done, columns, validate)))

    def _report(self, inner: _plaudit.Report) -> Report:
        report = Report(inner)
        if not self._told_references and (remark := inner.reference_remark()):
            self._told_references = True
            _log.warning("%s", remark)
        if self._on_error == "raise":
            error = custom.failure(report.reasons, self._raised)
            if error is not None:
                raise error
        return report

    def score_table(self, table: Any, *, validate: bool | None = None) -> Report:
        """Scores an Arrow table. Needs pyarrow.

        Args:
            table: Anything that `pyarrow.table` takes, with the column `response` and, where there are any, the other fields of a
                rollout (`plaudit.rollout.FIELDS`). All other columns become fields of `extra`.
            validate: As for `score`.

        Returns:
            A `Report`, in the order of the rows.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> engine.score_table(pyarrow.parquet.read_table("rollouts.parquet")).to_arrow()
        """
        return self._score(tables.columns(table), validate)

    async def ascore_table(self, table: Any, *, validate: bool | None = None) -> Report:
        """Scores an Arrow table without blocking the event loop. Needs pyarrow.

        Args:
            table, validate: As for `score_table`.

        Returns:
            A `Report`, in the order of the rows.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> report = await engine.ascore_table(table)
        """
        return await self._ascore(tables.columns(table), validate)

    def plan(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str | Conversation] | Any = None,
        references: Sequence[Reference | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        validate: bool | None = None,
        **others: Unpack[OtherColumns],
    ) -> dict[str, Any]:
        """Counts the judge calls, tokens and cost of a batch without asking a judge, as `plaudit plan --json` does.

        Rules and registered rewards are run, because gates decide who is judged.

        Args:
            prompts, responses, references, groups, tokens, extras, validate, others: As for `score`.

        Returns:
            `rollouts`, and `components`: a list of dicts with `component`, `judge`, `calls`, `known` (answered by the
            state), `prompt_tokens`, `completion_tokens`, `cost` and more.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> sum(each["calls"] for each in engine.plan(prompts, responses)["components"])
        """
        dry = self._open(dry=True)
        try:
            columns = _columns(prompts, responses, references, groups, tokens, extras, None, others)
            report = dry.score(columns, validate)
            return {"rollouts": len(report), "components": dry.cost_estimates()}
        finally:
            dry.close()

    def explain(
        self,
        prompts: Sequence[str | Messages | None] | Any | None = None,
        responses: Sequence[str | Conversation] | Any = None,
        references: Sequence[Reference | None] | Any | None = None,
        groups: Sequence[str | int | None] | Any | None = None,
        tokens: Sequence[int | None] | Any | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        *,
        ids: Sequence[str | int | None] | Any | None = None,
        validate: bool | None = None,
        full: bool = False,
        **others: Unpack[OtherColumns],
    ) -> list[dict[str, Any]]:
        """Scores a batch and returns how each total came about, as `plaudit explain --json` does.

        A judge is asked only where neither the state nor this engine has its answer: explaining a batch that was just
        scored costs nothing.

        Args:
            prompts, responses, references, groups, tokens, extras, ids, validate, others: As for `score`.
            full: Whether the prompts of the judges are returned, too.

        Returns:
            One dict a rollout: `result`, as a row of a report, and `exchanges`, one dict for each judge call that showed
            the rollout, with `component`, `judge`, `shown`, `verdict`, `reply` and more.

        Raises:
            ArgumentError, RunError: As for `score`.

        Example:
            >>> for exchange in engine.explain(prompts, responses)[0]["exchanges"]:
            ...     print(exchange["verdict"], exchange["reply"])
        """
        columns = _columns(prompts, responses, references, groups, tokens, extras, ids, others)
        return self._inner.explain(columns, validate, bool(full))

    def join(
        self, *, timeout: float | None = None, quiet: float | None = None, remember: int | None = None
    ) -> Join:
        """Makes a `Join`, in which callers hand in one rollout each and get it scored with its group.

        Args:
            timeout: The seconds after which a group is scored without those who are missing; the recipe's where None.
            quiet: The seconds without an arrival after which a group that is at least half there is scored.
            remember: How many scored groups are remembered for members that come late.

        Returns:
            A `Join` of this engine.

        Raises:
            ArgumentError: An argument is not a number, or below 0.
            RunError: The engine was closed.

        Example:
            >>> join = engine.join(timeout=600)
        """
        from plaudit.join import Join

        return Join(self, timeout=timeout, quiet=quiet, remember=remember)

    def stop(self) -> None:
        """Lets no further judge call begin. Calls in flight are still answered and kept.

        Example:
            >>> engine.stop()
        """
        self._inner.stop()


def _columns(
    prompts: Any,
    responses: Any,
    references: Any,
    groups: Any,
    tokens: Any,
    extras: Any,
    ids: Any,
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """The columns of a call by the names of their fields."""
    named = {
        "prompts": prompts,
        "responses": responses,
        "references": references,
        "groups": groups,
        "tokens": tokens,
        "extras": extras,
        "ids": ids,
        **others,
    }
    columns = {field: named.pop(column) for field, column in FIELDS.items() if column in named}
    if named:
        raise ArgumentError(f"there is no column {next(iter(named))!r}, only {', '.join(FIELDS.values())}")
    return columns


async def awaited(start: Callable[[Callable[[Any, BaseException | None], None]], Any]) -> Any:
    """Awaits a call that reports its end to a callback on another thread. Cancelling cancels the call."""
    import asyncio  # Later, because it takes as long as the package.

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
    unsafe_no_sandbox: bool = False,
) -> Engine:
    """An engine that was pickled, with the functions that it was made with and none of this process."""
    engine = Engine.__new__(Engine)
    named = {each.name: each for each in functions}
    engine._load(recipe, overrides, state, share, on_error, named, unsafe_no_sandbox)
    return engine


def _recipe(recipe: Any) -> tuple[str, str | None]:
    """The name of a recipe, and its JSON where it was given as a dict."""
    if isinstance(recipe, Mapping):
        return "recipe", _json("the recipe", recipe)
    if isinstance(recipe, (str, os.PathLike)):
        return os.fspath(recipe), None
    kind = type(recipe).__name__
    raise ArgumentError(f"a recipe is the name of a shipped one, the path of a file or a dict, not {kind}")


def _overrides(overrides: Any) -> list[tuple[str, str]]:
    if overrides is None:
        return []
    if not isinstance(overrides, Mapping):
        example = '{"components.format.weight": 0.1}'
        raise ArgumentError(f"overrides is a dict such as {example}, not {type(overrides).__name__}")
    return [(str(key), _json(f"overrides[{key!r}]", value)) for key, value in overrides.items()]


def _json(argument: str, value: Any) -> str:
    try:
        return json.dumps(plain(value, strict=True), allow_nan=False)
    except ArgumentError as error:
        raise ArgumentError(f"{argument}: {error}") from None
    except ValueError:
        raise ArgumentError(f"{argument}: {value!r:.80} is not finite") from None


def _share(share: Any) -> int:
    if isinstance(share, bool) or not isinstance(share, Integral):
        raise ArgumentError(f"share is a whole number of engines, not {share!r:.80}")
    if not 1 <= int(share) < 2**32:
        raise ArgumentError(f"share is 1 or more engines, not {share}")
    return int(share)
