"""Adapter for a custom reward function of groups, with a timeout and errors that affect only the group at fault.

Two signatures are supported. The one of RM-Gallery's VERL tutorial, `compute_score(prompt, responses, extras,
**kwargs)`, returns the scores, or the scores and a dict of lists, or these and details. The one of
RM-Gallery's training example, `compute_score(data_source, solution_str, ground_truth, extra_info,
group_evaluation, ...)`, returns a dict with `group_scores`. Both may be `async`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plaudit.timeouts import Failure, run

# The value that the tutorial's functions return where they could not score. It is a failure here, not a number.
INVALID = -999.0

# Columns that verl fills itself, by the name that a column of a function gets instead.
RENAMED = {"reward": "own_reward"}


@dataclass
class GroupInput:
    """The rollouts of one prompt, as a custom function gets them."""

    prompt: str
    responses: list[str]
    extras: list[dict[str, Any]]
    # Scored with the group as a further response; its own score is removed again.
    reference: str | None = None


@dataclass
class GroupScores:
    """What a function returned for a group: a number for each rollout, or None where it has none."""

    scores: list[float | None]
    info: dict[str, list[Any]] = field(default_factory=dict)
    details: list[Any] | None = None
    reason: str | None = None


class CustomFunction:
    """A custom function, and the keyword arguments that it always gets."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], kwargs: Mapping[str, Any]):
        self.function = function
        accepted = _parameters(function)
        self.by_solution = "solution_str" in (accepted or ())
        if self.by_solution and {"group_evaluation", "all_responses"}.isdisjoint(accepted or ()):
            raise ValueError(
                f"{_name(function)} scores one solution at a time; a function of a group takes "
                "(prompt, responses, extras, **kwargs), and verl's own `naive` manager takes this one"
            )
        takes_groups = (
            accepted is None or self.by_solution or "**" in accepted or {"prompt", "responses"} <= accepted
        )
        if not takes_groups:
            raise ValueError(
                f"{_name(function)} takes ({', '.join(sorted(accepted or ()))}); a function of a group takes "
                "(prompt, responses, extras, **kwargs)"
            )
        self._accepted = None if accepted is None or "**" in accepted else accepted
        # The trainer's options are an offer; what was set for the function itself must be wanted.
        unwanted = [name for name in kwargs if self._accepted is not None and name not in self._accepted]
        if unwanted:
            names = ", ".join(map(repr, unwanted))
            raise ValueError(f"{_name(function)} takes no argument {names}, but reward_kwargs sets it")
        self.kwargs = {**self.accepted(options), **kwargs}

    def accepted(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        """What the function accepts of what it is offered."""
        return {
            name: value for name, value in offered.items() if self._accepted is None or name in self._accepted
        }

    def arguments(self, group: GroupInput) -> dict[str, Any]:
        responses, extras = list(group.responses), list(group.extras)
        if group.reference is not None:
            responses.append(group.reference)
            extras.append(group.extras[0])
        if not self.by_solution:
            return {"prompt": group.prompt, "responses": responses, **self.accepted({"extras": extras})}
        return {
            "data_source": extras[0].get("data_source", "alignment"),
            "solution_str": responses,
            "ground_truth": extras[0],
            **self.accepted(
                {
                    "extra_info": extras[0],
                    "group_evaluation": True,
                    "prompt_str": group.prompt,
                    "all_responses": responses,
                    "all_extra_infos": extras,
                }
            ),
        }

    def score(
        self, groups: Sequence[GroupInput], *, workers: int, timeout: float, feedback: Mapping[str, Any]
    ) -> list[GroupScores]:
        """The scores of each group, in order, after at most `timeout` seconds for every `workers` groups."""
        kwargs = {**self.kwargs, **self.accepted(feedback)}
        calls = [functools.partial(self.function, **{**self.arguments(group), **kwargs}) for group in groups]
        results = run(calls, workers=workers, timeout=timeout)
        return [_scores_of(result, group) for result, group in zip(results, groups, strict=True)]


def unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind what verl wraps around one that it loads from a file."""
    while True:
        if isinstance(function, functools.partial):
            wraps = getattr(function.func, "__name__", "").startswith("_call_with_kwargs")
            function = function.args[0] if wraps and function.args else function.func
        elif getattr(function, "__name__", "") == "wrapped_fn" and function.__closure__:
            raw = inspect.getclosurevars(function).nonlocals.get("raw_fn")
            if raw is None:
                return function
            function = raw
        else:
            return inspect.unwrap(function)


def _name(function: Callable[..., Any]) -> str:
    return getattr(unwrap(function), "__name__", repr(function))


def _parameters(function: Callable[..., Any]) -> set[str] | None:
    """The names that a function accepts, with `**` where it accepts any; None where that is unknown."""
    try:
        parameters = inspect.signature(unwrap(function)).parameters.values()
    except (TypeError, ValueError):
        return None
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    return (
        names | {"**"} if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters) else names
    )


def _scores_of(result: Any, group: GroupInput) -> GroupScores:
    count = len(group.responses)
    try:
        if isinstance(result, Failure):
            raise ValueError(result.reason)
        return _read(result, count, with_reference=group.reference is not None)
    except Exception as error:
        return GroupScores([None] * count, reason=str(error) or type(error).__name__)


def _read(result: Any, count: int, *, with_reference: bool) -> GroupScores:
    scored = count + with_reference
    info: Mapping[str, Any] = {}
    details: list[Any] | None = None
    if isinstance(result, Mapping):
        if result.get("error"):
            raise ValueError(str(result["error"]))
        info = {key: value for key, value in result.items() if key not in ("group_scores", "score")}
        scores = result["group_scores"] if "group_scores" in result else [result["score"]]
    elif (
        isinstance(result, tuple)
        and len(result) > 1
        and (result[1] is None or isinstance(result[1], Mapping))
    ):
        scores, info = result[0], result[1] or {}
        details = _listed(result[2]) if len(result) > 2 else None
    else:
        scores = result
    listed = _listed(scores)
    if listed is None or len(listed) != scored:
        raise ValueError(f"{scored} scores are wanted, the function returned {scores!r:.200}")
    numbers = [_number(score) for score in listed]
    columns: dict[str, list[Any]] = {}
    for key, value in info.items():
        values = _listed(value)
        if values is None:
            values = [value] * scored
        # A list of any other length cannot be assigned to rollouts.
        if len(values) in (count, scored):
            columns[RENAMED.get(str(key), str(key))] = values
    if with_reference:
        compared = [_number(score) for score in columns.get("comparison_score", numbers)]
        columns.update(_against(compared, count))
    columns = {key: values[:count] for key, values in columns.items()}
    return GroupScores(numbers[:count], columns, details[:count] if details else None)


def _against(compared: list[float | None], count: int) -> dict[str, list[Any]]:
    """Compares each rollout with the reference, which is the last one."""
    reference = compared[-1] if len(compared) > count else None
    if reference is None:
        return {}
    scores = compared[:count]
    return {
        "comparison_score": list(scores),
        "win": [None if score is None else float(score > reference) for score in scores],
        "win_and": [None if score is None else float(score >= reference) for score in scores],
    }


def _listed(value: Any) -> list[Any] | None:
    """A list of what a list, a tuple, an array or a tensor holds; None for anything else."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else None


def _number(value: Any) -> float | None:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, str):
        return None
    number = float(value)
    return number if math.isfinite(number) and number != INVALID else None
