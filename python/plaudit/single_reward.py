"""Single rewards and aggregates used by themselves, without a recipe, and the names of what is shipped."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from plaudit import _plaudit
from plaudit._plaudit import ArgumentError
from plaudit.custom import CustomReward, registered
from plaudit.result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from plaudit.rollout import Conversation, Others, Reference


@dataclass(frozen=True)
class Aggregate:
    """The scores of responses that were compared."""

    scores: list[float]
    """One score a response."""
    errors: list[float] | None
    """The standard error of each score, where the method has one."""
    info: dict[str, Any]
    """The evidence of the method."""


class SingleReward:
    """One reward with its parameters. `plaudit.reward` makes one; it is called with a response."""

    def __init__(self, name: str, params: Mapping[str, Any], *, custom: CustomReward | None = None) -> None:
        self.name, self.params = name, dict(params)
        self._custom = custom or registered().get(name)
        functions = [] if self._custom is None else [self._custom.kind()]
        self._inner = _plaudit.Reward(name, self.params, functions)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(SingleReward, custom=self._custom), (self.name, self.params)

    def __repr__(self) -> str:
        params = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"plaudit.reward({self.name!r}{params})"

    def score(
        self,
        response: str | Conversation,
        prompt: Any = None,
        reference: Reference | None = None,
        tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        **others: Unpack[Others],
    ) -> Result:
        """Scores one response. Calling the reward itself does the same.

        Args:
            response: The text that is scored, or a conversation, as for `Engine.score`.
            prompt: Text or chat messages.
            reference: The right answer; a number is taken as its decimal text, and any answer of a list is right.
            tokens: The length of the response in the policy's own tokens.
            extra: A dict for rewards that read it.
            others: The fields of `plaudit.rollout.Others`, such as `finish_reason` and `tools`.

        Returns:
            A `Result`, whose `value` is the number.

        Raises:
            ArgumentError: An argument has the wrong type; the message names it.

        Example:
            >>> plaudit.reward("number_accuracy").score("It is 42.", reference=42).value
        """
        named = {"prompt": prompt, "reference": reference, "tokens": tokens, "extra": extra}
        value, outcome, reason, info, correct = self._inner.score({"response": response, **named, **others})
        return Result(value, outcome, reason, info=info, correct=correct)

    __call__ = score

    def score_many(
        self,
        responses: Sequence[Any],
        prompts: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        tokens: Sequence[int | None] | None = None,
        extras: Sequence[Mapping[str, Any] | None] | None = None,
        finish_reasons: Sequence[str | bool | None] | None = None,
        tools: Sequence[Any] | None = None,
        groups: Sequence[str | int] | None = None,
    ) -> list[Result]:
        """Scores many responses at once, on all cores and without the interpreter's lock.

        Args:
            responses: The texts or conversations.
            prompts: The prompts, one a response.
            references: The right answers.
            tokens: The lengths of the responses in the policy's own tokens.
            extras: Dicts for rewards that read them.
            finish_reasons: Why each generation ended.
            tools: The declarations of tools: one list for all responses, or one a response.
            groups: Which responses are compared with each other, for a reward that compares; by default those of one prompt.

        Returns:
            One `Result` a response, in their order.

        Raises:
            ArgumentError: An argument has the wrong type or length; the message names it.

        Example:
            >>> [each.value for each in plaudit.reward("math").score_many(["4", "5"], references=["4", "4"])]
            [1.0, 0.0]
        """
        columns = {
            "prompt": prompts,
            "response": responses,
            "reference": references,
            "group": groups,
            "tokens": tokens,
            "extra": extras,
            "finish_reason": finish_reasons,
            "tools": tools,
        }
        scored = self._inner.score_many(columns)
        return [
            Result(value, outcome, reason, info=info, correct=correct)
            for value, outcome, reason, info, correct in scored
        ]


def reward(name: str, **params: Any) -> SingleReward:
    """Makes one reward, to be used by itself.

    Args:
        name: The name of a shipped or registered reward.
        params: Its parameters, as in a recipe.

    Returns:
        A `SingleReward`.

    Raises:
        RecipeError: There is no such reward, or it takes no such parameter.

    Example:
        >>> plaudit.reward("ngram_repetition_penalty", n=5)("a text").value
    """
    return SingleReward(name, params)


def aggregate(
    name: str, n: int, comparisons: Iterable[Sequence[int | None] | Any], **params: Any
) -> Aggregate:
    """Computes scores of `n` responses from comparisons.

    Args:
        name: The method: `winrate`, `copeland`, `elo`, `bradley_terry` or `dgr`.
        n: How many responses there are.
        comparisons: Sequences of three, such as rows of a numpy array: the places of the first and of the second response,
            and of the winner; None is a tie.
        params: The parameters of the method.

    Returns:
        An `Aggregate`, with one score a response.

    Raises:
        ArgumentError: The method is unknown, or a comparison is not one.

    Example:
        >>> plaudit.aggregate("winrate", n=3, comparisons=[(0, 1, 0), (1, 2, None)]).scores
    """
    read = [_comparison(at, each) for at, each in enumerate(comparisons)]
    return Aggregate(*_plaudit.aggregate(name, _count("n", n), read, params))


def _comparison(at: int, given: Any) -> tuple[int, int, int | None]:
    place = f"comparisons[{at}]"
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != 3:
        raise ArgumentError(f"{place}: (first, second, winner) is wanted, not {given!r:.80}")
    first, second, winner = given
    winner = None if winner is None else _count(place, winner)
    return _count(place, first), _count(place, second), winner


def _count(place: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not 0 <= int(given) < 2**63:
        raise ArgumentError(f"{place}: a whole number from 0 is wanted, not {given!r:.80}")
    return int(given)


def rewards() -> list[str]:
    """Lists the names of all rewards, shipped and registered.

    Returns:
        The names; `plaudit rewards NAME` shows the page of one.

    Example:
        >>> "number_accuracy" in plaudit.rewards()
        True
    """
    return _plaudit.rewards()


def recipes() -> list[str]:
    """Lists the names of the shipped recipes.

    Returns:
        The names, which `Engine` takes.

    Example:
        >>> "quickstart" in plaudit.recipes()
        True
    """
    return _plaudit.recipes()


def replay(state: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Rebuilds the results of the last finished `plaudit score --state` run, as `plaudit replay` does.

    Every number comes from the journal: no judge is asked. A judgment that the journal does not hold makes its rollout
    invalid, `judge.not_recorded`.

    Args:
        state: The state of the run: its folder, or `redis://host:port/db`.

    Returns:
        One dict a rollout, as a row of a report.

    Raises:
        RunError: There is no finished run, or another process has the folder open.

    Example:
        >>> [row["total"] for row in plaudit.replay("run/")]
    """
    return [json.loads(line) for line in _plaudit.replay(os.fspath(state))]
