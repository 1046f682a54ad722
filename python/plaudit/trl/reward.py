"""`Reward`: a recipe as a reward function of TRL.

A call reads what the trainer hands over, exchanges the rows of cut groups with other ranks, scores all rows at once, and
returns one number a completion: None where it could not be scored, which TRL keeps out of the group's mean.
"""

from __future__ import annotations

import asyncio
import difflib
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import plaudit
from plaudit._plaudit import ArgumentError
from plaudit.abort import DEFAULT, StepCounter, Tally, tally, together
from plaudit.remote import Service
from plaudit.result import Result

from .backends import EngineBackend, RayBackend, ServiceBackend
from .call import OWN, Call, Row, read
from .monitor import Monitor
from .ranks import RankExchange, world

if TYPE_CHECKING:
    from .columns import AsyncColumn, Column

GRAIN = 2.0**-16
"""Rewards are multiples of this. TRL takes the mean of a group in single precision, where the mean of equal numbers such as 0.7
can differ from them in the last bit, and then a group without any difference gets advantages. The sum of a group of multiples
of 2^-16 is exact up to an absolute sum of 256, so their advantage is exactly zero."""


class Reward:
    """A recipe as a reward function of `GRPOTrainer` and `RLOOTrainer`.

    In an evaluation of the trainer, completions are compared with the references as well, where the recipe compares.

    Args:
        recipe, overrides, state: As for `plaudit.Engine`.
        name: How TRL's metrics call the reward; the recipe's name by default.
        group: `"prompt"`, or the column of the data set that says which rows are of one group.
        size: How many completions a group has, where the trainer does not show it (TRL's GRPO and RLOO trainers do).
        join: What is done about groups that the border between two ranks cuts. `"ranks"` exchanges their rows between the
            ranks, `"ray"` sends all rows to the plaudit actor of the Ray cluster; None scores the local part and warns.
        timeout: How many seconds a call waits for other ranks, for the actor, or for another column.
        columns: What a column of the data set is: `{"gold": "reference", "source": "data_source", "image": None}` makes
            `gold` the reference, `source` the field `data_source` of `extra`, and leaves `image` out. Every other column
            reaches the rewards in `extra` under its own name; the reference is in `reference`, else in `answer`, `solution`,
            `ground_truth` or another of the usual names.
        round: Whether rewards are rounded to multiples of 2^-16, which gives a group of equal rewards no advantage at all.
        url: The address of a running `plaudit serve` that scores in place of an engine here. `recipe` is then the name of
            one of its recipes. Groups that the border between two ranks cuts are joined there. A service that does not
            answer within `timeout` makes the completions None, `engine.unreachable`.
        token, token_env: The token of the service, or the environment variable that holds it.
        run: The name under which the service keeps the figures.
        abort_after: After so many calls in a row in which not one completion of any rank could be scored, the training ends
            with a `RuntimeError`; at once where it is so from the first call on and the reason cannot heal by itself, such as
            a column of another name. `"never"` goes on for ever, without rewards. Evaluations do not count.
        statistics: Which of `report.statistics` TRL logs beside the usual metrics, by the names of `plaudit.log.metrics`:
            True for all, or patterns such as `["groups/*", "length_correlation*"]`. For an engine in this process; a
            service has them on its dashboard.

    Raises:
        RecipeError: The recipe cannot be loaded.
        ArgumentError: Arguments have wrong values, or do not go together.

    Example:
        >>> GRPOTrainer(model=model, reward_funcs=Reward("math"), args=GRPOConfig(num_generations=8), train_dataset=data)
    """

    __name__: str

    def __init__(
        self,
        recipe: str | os.PathLike[str] | Mapping[str, Any],
        *,
        overrides: Mapping[str, object] | None = None,
        state: str | os.PathLike[str] | None = None,
        name: str | None = None,
        group: str = "prompt",
        size: int | None = None,
        join: str | None = None,
        timeout: float = 1800.0,
        columns: Mapping[str, str | None] | None = None,
        round: bool = True,
        url: str | None = None,
        token: str | None = None,
        token_env: str | None = None,
        run: str | None = None,
        abort_after: int | str = DEFAULT,
        statistics: bool | Sequence[str] = False,
    ) -> None:
        if join not in (None, "ranks", "ray"):
            raise ArgumentError(f"join is 'ranks', 'ray' or None, not {join!r}")
        if url is None and not (token is token_env is run is None):
            raise ArgumentError("token=, token_env= and run= are for a service: give its address as url=")
        if url is not None and not (overrides is None and state is None and join in (None, "ranks")):
            raise ArgumentError(
                "with url= the service has the recipe, its overrides and its state, and joins cut groups"
            )
        if statistics and (url is not None or join == "ray"):
            raise ArgumentError("statistics= is for an engine in this process: without url= and join='ray'")
        if isinstance(statistics, str):
            raise ArgumentError(f"statistics is True, False or a list of patterns, not {statistics!r}")
        if size is not None and size < 1:
            raise ArgumentError(f"size is the number of completions of a group, not {size}")
        self._abort = StepCounter(abort_after)
        self._group = group
        self._size = size
        self._join = join
        self._columns = dict(columns or {})
        for column, role in self._columns.items():
            if role != "reference" and difflib.get_close_matches(str(role), ["reference"], cutoff=0.8):
                warnings.warn(
                    f"columns= makes `{column}` the field {role!r} of extra; did you mean 'reference'?",
                    stacklevel=2,
                )
        self._rounds = round
        self._ranks = RankExchange(timeout)
        self.timeout = timeout
        self._backend: EngineBackend | RayBackend | ServiceBackend
        if url is not None:
            self._backend = self._service(url, recipe, token, token_env, run)
        elif join == "ray":
            state = None if state is None else os.fspath(state)
            self._backend = RayBackend(recipe, overrides, state, self._ranks, timeout)
        else:
            self._backend = EngineBackend(recipe, overrides, state)
        plan = self._plan = self._backend.plan
        self.additive_error = plan.additive_error
        self.components = tuple(plan.components)
        self.weights = [float(plan.weights[component]) for component in self.components]
        self.__name__ = name or plan.name
        self._monitor = Monitor(
            self.__name__,
            self.components,
            compares=plan.compares_groups,
            joins=self._joins_cut_groups,
            abort=self._abort,
            statistics=(["*"] if statistics is True else statistics or ()),
        )

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """One reward a completion, None where it could not be scored."""
        call = self.read(prompts, completions, completion_ids, kwargs)
        return [result.total for result in self.evaluate(call)]

    def as_async(self) -> AsyncReward:
        """Makes the twin that TRL awaits, side by side with other asynchronous rewards.

        Returns:
            An `AsyncReward` of the same recipe.

        Example:
            >>> GRPOTrainer(reward_funcs=[Reward("tutorial").as_async(), other], ...)
        """
        return AsyncReward(self)

    def as_columns(self) -> list[Column]:
        """Makes one reward function a component, evaluated together.

        Returns:
            The columns, which `GRPOConfig(reward_weights=reward.weights)` weighs as the recipe does.

        Raises:
            ArgumentError: The total is not the weighted sum of the components.

        Example:
            >>> GRPOTrainer(reward_funcs=reward.as_columns(), args=GRPOConfig(reward_weights=reward.weights), ...)
        """
        from .columns import Column, Evaluations

        shared = Evaluations(self)
        return [Column(shared, component) for component in self.components]

    def read(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None,
        others: Mapping[str, Any],
    ) -> Call:
        """Reads the arguments of a trainer's call, for the columns of this reward."""
        log_metric, log_extra = others.get("log_metric"), others.get("log_extra")
        # TRL shows the size of a group to nobody but its own methods, of which `log_metric` is one.
        trainer = getattr(log_metric, "__self__", None)
        evaluates = trainer is not None and not getattr(getattr(trainer, "model", None), "training", True)
        shown = getattr(trainer, "num_generations_eval" if evaluates else "num_generations", None)
        size = shown if isinstance(shown, int) else self._size
        rank, _ = world()
        try:
            rows, keys = read(prompts, completions, completion_ids, others, self._columns, self._group)
            if size is not None:
                self._plan.check_group_size(size)
        except Exception as error:
            if self._meets(evaluates):
                self._ranks.open()
                self._ranks.fail(error)
            raise
        step = getattr(others.get("trainer_state"), "global_step", None)
        return Call(
            rows,
            keys,
            size,
            rank * len(rows),
            evaluates,
            log_metric,
            log_extra,
            step,
            columns=sorted(others.keys() - set(OWN)),
        )

    def evaluate(self, call: Call) -> list[Result]:
        """Scores the rows of a call, for the columns of this reward."""
        exchange = self._open(call)
        rows = exchange.exchange_rows(call) if exchange else call.rows_by_place()
        try:
            results = self._rounded(self._backend.score(call, rows, self._validates(call, rows)))
        except Exception as error:
            if self._meets(call.evaluates):
                self._ranks.fail(error)
            self._advise(error)
            raise
        own = exchange.exchange_results(call, results) if exchange else results
        mine = self._observed(call, results, own)
        self._end_if_nothing_was_scored(call, self._agreed(call, mine))
        return mine

    async def aevaluate(self, call: Call) -> list[Result]:
        """As `evaluate`, without blocking the loop."""
        exchange = self._open(call)
        rows = await asyncio.to_thread(exchange.exchange_rows, call) if exchange else call.rows_by_place()
        try:
            results = self._rounded(await self._backend.ascore(call, rows, self._validates(call, rows)))
        except Exception as error:
            if self._meets(call.evaluates):
                await asyncio.to_thread(self._ranks.fail, error)
            self._advise(error)
            raise
        own = await asyncio.to_thread(exchange.exchange_results, call, results) if exchange else results
        mine = self._observed(call, results, own)
        self._end_if_nothing_was_scored(call, await asyncio.to_thread(self._agreed, call, mine))
        return mine

    def _observed(self, call: Call, results: Mapping[int, Result], own: Mapping[int, Result]) -> list[Result]:
        """This rank's own results, in the order of its rows, after they were logged."""
        mine = [own[at] for at in call.positions]
        self._monitor.observe(call, results, mine)
        return mine

    def _agreed(self, call: Call, mine: list[Result]) -> Tally:
        """What was scored on all ranks together: the slice of one rank may hold nothing but rows without a reference."""
        part = tally(mine)
        return together(self._ranks.agree(part)) if self._counts_on_ranks(call.evaluates) else part

    def _end_if_nothing_was_scored(self, call: Call, step: Tally) -> None:
        """Raises on every rank in the same call, so that none waits for another."""
        if not call.evaluates:
            self._monitor.check_abort(call, step)

    def _open(self, call: Call) -> RankExchange | None:
        """Opens the exchange and the backend before anything waits, in the same order on every rank."""
        if self._meets(call.evaluates):
            self._ranks.open()
        self._backend.open()
        return self._exchange()

    def _meets(self, evaluates: bool) -> bool:
        """Whether the ranks exchange anything in a call."""
        return self._exchange() is not None or self._counts_on_ranks(evaluates)

    def _counts_on_ranks(self, evaluates: bool) -> bool:
        return self._abort.is_on and not evaluates and world()[1] > 1

    def _exchange(self) -> RankExchange | None:
        """The exchange with other ranks, where cut groups are joined. A recipe that compares nothing needs no whole groups."""
        needed = self._join == "ranks" and self._plan.compares_groups and world()[1] > 1
        return self._ranks if needed else None

    @property
    def _joins_cut_groups(self) -> bool:
        return self._join is not None or isinstance(self._backend, ServiceBackend)

    def _service(
        self, url: str, recipe: Any, token: str | None, token_env: str | None, run: str | None
    ) -> ServiceBackend:
        if not isinstance(recipe, str):
            raise ArgumentError("with url= the recipe is the name of one that the service has")
        service = Service(url, token=token, token_env=token_env, timeout=self.timeout)
        return ServiceBackend(service, recipe, run, self._ranks, joins=self._join is None)

    def _validates(self, call: Call, rows: Mapping[int, Row]) -> bool:
        """Whether the references take part: in an evaluation of the trainer, where the recipe compares."""
        return (
            call.evaluates
            and self._plan.compares_groups
            and any(row.reference is not None for row in rows.values())
        )

    def _rounded(self, results: Mapping[int, Result]) -> dict[int, Result]:
        return {
            place: replace(
                result,
                total=self._number(result.total),
                components={name: self._number(result.components.get(name)) for name in self.components},
            )
            for place, result in results.items()
        }

    def _number(self, value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        return round(value / GRAIN) * GRAIN if self._rounds else value

    def _advise(self, error: Exception) -> None:
        """Raises with advice where a recipe with `same_size` refuses what the border of a rank left of a group."""
        uneven = isinstance(error, plaudit.RunError) and error.code == "group.uneven"
        if uneven and not self._joins_cut_groups and world()[1] > 1:
            raise ArgumentError(
                f"{error}; the border between two ranks cuts groups: give join='ranks'"
            ) from error


class AsyncReward:
    """A `Reward` whose call is awaited; TRL runs all such rewards of a step at once."""

    __name__: str

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.weights = reward.weights
        self.__name__ = reward.__name__

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """One reward a completion, None where it could not be scored."""
        call = self.reward.read(prompts, completions, completion_ids, kwargs)
        return [result.total for result in await self.reward.aevaluate(call)]

    def as_columns(self) -> list[AsyncColumn]:
        """Makes one awaited reward function a component, evaluated together.

        Returns:
            The columns, as those of `Reward.as_columns`.

        Example:
            >>> GRPOTrainer(reward_funcs=reward.as_async().as_columns(), ...)
        """
        from .columns import AsyncColumn, Evaluations

        shared = Evaluations(self.reward)
        return [AsyncColumn(shared, component) for component in self.reward.components]
