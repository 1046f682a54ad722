"""Reward functions that were written for verl or for TRL, as custom rewards of a recipe."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from plaudit._plaudit import REFERENCE_FIELDS, ArgumentError

# The names under which functions of TRL look for the reference, which a rollout has in a field of its own.
REFERENCES = ("reference", *(name for name in REFERENCE_FIELDS if name.isidentifier()))
# What TRL hands over beside the columns of the data set.
_TRL_OWN = ("prompts", "completions")
_VERL_OWN = ("data_source", "solution_str", "ground_truth", "extra_info")
_COLUMNS = ("prompts", "responses", "references", "extras")


class TrainerFunction:
    """A function with the signature of a trainer, called with the four columns of a custom reward."""

    per: ClassVar[Literal["batch", "rollout"]]

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError(f"a function is wanted, not {type(function).__name__}")
        functools.update_wrapper(self, function, updated=())
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
        named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
        self.named = {each.name: each.default is each.empty for each in named}
        columns = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in _COLUMNS]
        self.__signature__ = inspect.Signature([*columns, *self.settings(named)])

    @property
    def awaits(self) -> bool:
        """Whether it is a coroutine function."""
        called = type(self.function).__call__
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    def __call__(self, *columns: Any, **settings: Any) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function,)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.function == other.function  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.function))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r})"

    def settings(self, named: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
        """The parameters that a recipe may set."""
        raise NotImplementedError

    def accepted(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        """What the function takes of what it is offered."""
        return {name: value for name, value in offered.items() if self.takes_any or name in self.named}


class VerlFunction(TrainerFunction):
    """A `compute_score` of verl: one solution at a time."""

    per = "rollout"

    def settings(self, named: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
        if "solution_str" not in self.named and not self.takes_any:
            raise ArgumentError(
                f"a function of verl takes ({', '.join(_VERL_OWN)}), not {inspect.signature(self.function)}"
            )
        own = [each for each in named if each.name not in _VERL_OWN]
        return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

    def __call__(
        self, prompt: Any, response: str, reference: str | None, extra: dict[str, Any], **settings: Any
    ) -> Any:
        info = extra.get("extra_info")
        offered = {
            "data_source": extra.get("data_source"),
            "solution_str": response,
            "ground_truth": _ground_truth(extra) if reference is None else reference,
            "extra_info": info if isinstance(info, Mapping) else extra,
        }
        return self.function(**self.accepted(offered), **settings)


def _ground_truth(extra: Mapping[str, Any]) -> Any:
    model = extra.get("reward_model")
    return extra.get("ground_truth", model.get("ground_truth") if isinstance(model, Mapping) else None)


class TrlFunction(TrainerFunction):
    """A reward function of TRL: a batch at a time, the columns of the data set as lists."""

    per = "batch"

    def settings(self, named: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
        if "completions" not in self.named and not self.takes_any:
            raise ArgumentError(
                f"a reward function of TRL takes (completions, **columns), not {inspect.signature(self.function)}"
            )
        if self.named.get("completion_ids"):
            raise ArgumentError(
                "the function needs completion_ids, and a rollout of plaudit has no token ids"
            )
        return []

    def __call__(
        self,
        prompts: list[Any],
        responses: list[str],
        references: list[str | None],
        extras: list[dict[str, Any]],
    ) -> Any:
        # As TRL does it: where the prompt is a conversation, the completion is one.
        completions = [
            response
            if prompt is None or isinstance(prompt, str)
            else [{"role": "assistant", "content": response}]
            for prompt, response in zip(prompts, responses, strict=True)
        ]
        names = dict.fromkeys(name for extra in extras for name in extra if name not in _TRL_OWN)
        columns = {name: [extra.get(name) for extra in extras] for name in names}
        if any(reference is not None for reference in references):
            for name in REFERENCES:
                columns.setdefault(name, references)
        given = self.accepted({**columns, "prompts": prompts, "completions": completions})
        missing = [name for name, needed in self.named.items() if needed and name not in given]
        if missing:
            raise ArgumentError(
                f"the function needs the column {missing[0]!r}, which no rollout has in its extra; there are {sorted(columns)}"
            )
        return self.function(**given)


def verl_function(function: Callable[..., Any]) -> VerlFunction:
    """Makes a custom reward of a `compute_score` that was written for verl.

    `data_source` comes from the rollout's extra, `ground_truth` is its reference (where it has none, that of its extra),
    and `extra_info` is the field of that name, or the extra as a whole. Further parameters are those that a recipe may set. Of a dict that it returns, `score` is the
    number and the rest is evidence. It may be a coroutine function.

    Args:
        function: Takes `(data_source, solution_str, ground_truth, extra_info)`, or some of them, by name.

    Returns:
        A function for `plaudit.register`, called once a rollout.

    Raises:
        ArgumentError: The function takes no `solution_str`.

    Example:
        >>> plaudit.register("mine", plaudit.verl_function(compute_score))
    """
    return VerlFunction(function)


def trl_function(function: Callable[..., Any]) -> TrlFunction:
    """Makes a custom reward of a reward function that was written for TRL.

    `completions` are texts, or lists of one message where the prompt is chat messages, and the fields of the rollouts' extra are
    the columns. The reference is there as `reference`, `answer`, `solution`, `ground_truth` and the other names of `REFERENCE_FIELDS`, unless the
    extra has a field of that name. It may be a coroutine function.

    Args:
        function: Takes `completions`, `prompts` and columns, or some of them, by name; returns one number a completion, or
            None where it does not apply.

    Returns:
        A function for `plaudit.register`, called once a batch.

    Raises:
        ArgumentError: The function takes no `completions`, or needs token ids.

    Example:
        >>> plaudit.register("mine", plaudit.trl_function(reward_len))
    """
    return TrlFunction(function)
