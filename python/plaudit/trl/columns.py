"""The components of a recipe as reward functions of their own, evaluated once for all of them.

A trainer calls one column after the other, or all at once in threads, always with the same completions. The first call
evaluates the recipe for all columns; the others take their numbers from it.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from plaudit._plaudit import ArgumentError
from plaudit.result import Result

from .call import Call
from .reward import Reward

MAX_OPEN = 256
"""How many evaluations wait for columns that were not called yet; the oldest are forgotten first."""

Table = dict[str, list["float | None"]]


@dataclass(slots=True, eq=False)
class _Evaluation:
    """One evaluation of the recipe: the digest of its rows, and the columns that have had their part."""

    digest: bytes
    table: Future[Table] = field(default_factory=Future)
    taken: set[str] = field(default_factory=set)


class Evaluations:
    """The evaluations that the columns of one `Reward` share."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        if reward.additive_error is not None:
            raise ArgumentError(f"{self._cannot_split()}: it has {reward.additive_error}")
        self._lock = threading.Lock()
        self._open: list[_Evaluation] = []
        self._checked_weights = False

    def __getstate__(self) -> dict[str, Any]:
        return {"reward": self.reward}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["reward"])

    def check_weights(self, log_metric: Any) -> None:
        """Warns once where the trainer weighs the columns otherwise than the recipe does, as it does by default: all alike."""
        trainer = getattr(log_metric, "__self__", None)
        if self._checked_weights or trainer is None:
            return
        self._checked_weights = True
        weights, functions = getattr(trainer, "reward_weights", None), getattr(trainer, "reward_funcs", ())
        if weights is None or len(weights) != len(functions):
            return
        given = {
            function.__name__: float(weight)
            for function, weight in zip(functions, weights, strict=True)
            if getattr(function, "_evaluations", None) is self
        }
        wanted = dict(zip(self.reward.components, self.reward.weights, strict=True))
        if any(abs(given[name] - wanted[name]) > 1e-6 for name in given):
            warnings.warn(
                f"the trainer weighs the columns of `{self.reward.__name__}` with {given}, and the recipe with {wanted}: "
                "give GRPOConfig(reward_weights=reward.weights)",
                RuntimeWarning,
                stacklevel=4,
            )

    def take(self, component: str, call: Call) -> list[float | None]:
        """The column of a call, evaluated here by the first column that is called."""
        evaluation, first = self._enter(component, call)
        if first:
            with self._sharing_errors(evaluation):
                evaluation.table.set_result(self._table(self.reward.evaluate(call)))
        return evaluation.table.result(self.reward.timeout)[component]

    async def atake(self, component: str, call: Call) -> list[float | None]:
        """The same, without blocking the loop."""
        evaluation, first = self._enter(component, call)
        if first:
            with self._sharing_errors(evaluation):
                evaluation.table.set_result(self._table(await self.reward.aevaluate(call)))
        # Cancelling one column must not cancel what the others wait for.
        waiting = asyncio.shield(asyncio.wrap_future(evaluation.table))
        return (await asyncio.wait_for(waiting, self.reward.timeout))[component]

    def _enter(self, component: str, call: Call) -> tuple[_Evaluation, bool]:
        """The evaluation for this call, and whether it is for the caller to make it.

        A column that has had its part of an evaluation and asks again with the same completions means another call.
        """
        digest = hashlib.blake2b(repr(call.rows).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            for evaluation in self._open:
                if evaluation.digest == digest and component not in evaluation.taken:
                    evaluation.taken.add(component)
                    if len(evaluation.taken) == len(self.reward.components):
                        self._open.remove(evaluation)
                    return evaluation, False
            evaluation = _Evaluation(digest, taken={component})
            if len(self.reward.components) > 1:
                self._open.append(evaluation)
            if len(self._open) > MAX_OPEN:
                done = next((other for other in self._open if other.table.done()), None)
                if done is not None:
                    self._open.remove(done)
            return evaluation, True

    @contextmanager
    def _sharing_errors(self, evaluation: _Evaluation) -> Iterator[None]:
        """Passes a failure on to the columns that wait as well; a column that comes later tries again."""
        try:
            yield
        except BaseException as error:
            with self._lock:
                if evaluation in self._open:
                    self._open.remove(evaluation)
            stopped = RuntimeError(f"the evaluation was stopped: {error!r}")
            evaluation.table.set_exception(error if isinstance(error, Exception) else stopped)
            raise

    def _table(self, results: Sequence[Result]) -> Table:
        """The columns of a call.

        A completion whose total is invalid is None in every column: left out of one column only, it would be compared
        with its siblings as if that component had given it 0.
        """
        table: Table = {component: [] for component in self.reward.components}
        for result in results:
            if result.total is not None:
                self._check(result)
            for component, column in table.items():
                column.append(None if result.total is None else result.components[component])
        return table

    def _check(self, result: Result) -> None:
        """Whether the trainer's weighted sum of the columns will be the recipe's total."""
        parts = [
            weight * value
            for weight, component in zip(self.reward.weights, self.reward.components, strict=True)
            if (value := result.components[component]) is not None
        ]
        assert result.total is not None
        if abs(sum(parts) - result.total) > 1e-4 * (1.0 + sum(abs(part) for part in parts)):
            raise ArgumentError(
                f"{self._cannot_split()}: a total is {result.total:g}, and the weighted sum of its columns {sum(parts):g}"
            )

    def _cannot_split(self) -> str:
        return (
            f"the recipe `{self.reward.__name__}` cannot be taken apart into columns, use it as one reward, because its total "
            "is not the weighted sum of its components"
        )


class _Component:
    """One component of a recipe as a reward function, named as the component is."""

    __name__: str

    def __init__(self, shared: Evaluations, component: str) -> None:
        self._evaluations = shared
        self.__name__ = component

    def _read(self, prompts: Any, completions: Any, completion_ids: Any, others: Mapping[str, Any]) -> Call:
        self._evaluations.check_weights(others.get("log_metric"))
        return self._evaluations.reward.read(prompts, completions, completion_ids, others)


class Column(_Component):
    """A component that TRL calls."""

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """The component's value for every completion, None where it has none or where the total is invalid."""
        call = self._read(prompts, completions, completion_ids, kwargs)
        return self._evaluations.take(self.__name__, call)


class AsyncColumn(_Component):
    """A component that TRL awaits."""

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> list[float | None]:
        """The component's value for every completion, None where it has none or where the total is invalid."""
        call = self._read(prompts, completions, completion_ids, kwargs)
        return await self._evaluations.atake(self.__name__, call)
