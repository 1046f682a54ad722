"""The instruction checks by themselves: whether a response follows the constraints of IFEval, IFBench and IF-RLVR, or your own.

from plaudit.instructions import check

check("The harbor at night.", [("punctuation:no_comma", {}), ("keywords:existence", {"keywords": ["boat"]})])  # [True, False]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, overload

from plaudit import _plaudit
from plaudit._plaudit import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Constraint", "Options", "Verdict", "check", "check_many", "constraints", "explain", "register"]

Given = Sequence[tuple[str, Mapping[str, Any] | None] | str] | Mapping[str, Any]
"""What is asked of a response: ids with their arguments, or the row of a data set with `instruction_id_list` and `kwargs`."""
Function = TypeVar("Function", bound=Callable[..., bool])


class Options(TypedDict, total=False):
    """How responses are checked, with the defaults of the reward `instructions`."""

    semantics: Literal["corrected", "published"]
    """Which question the checks answer: what the wording demands, or what the published checkers answer, their faults included."""
    mode: Literal["strict", "loose"]
    """Whether the response counts as it stands, or any of eight variants without its frame."""
    think: Literal["cut", "keep"]
    """Whether everything up to the last `</think>` is cut; thinking that never ends follows nothing."""


@dataclass(frozen=True)
class Constraint:
    """A kind of constraint."""

    id: str
    """Its name, such as `keywords:existence`."""
    family: str
    """Where it comes from: `IFEval`, `IF-RLVR`, `IFBench`, or `own`."""
    checks: str
    """What it checks, in one sentence."""
    parameters: dict[str, str]
    """Its arguments, and what each must be."""
    optional: tuple[str, ...]
    """The arguments that it can do without."""
    gamed: str
    """How a policy can pass it without doing what was asked."""
    difference: str
    """Where the two semantics differ; empty where they do not."""


@dataclass(frozen=True)
class Verdict:
    """Whether a response follows one constraint."""

    id: str
    """The constraint."""
    followed: bool | None
    """Whether it is followed; None where a constraint of your own failed."""
    message: str
    """What the constraint checks where it is not followed, or why there is no verdict; empty where it is followed."""


def check(
    response: str, constraints: Given, prompt: str | None = None, **options: Unpack[Options]
) -> list[bool | None]:
    """Says which constraints a response follows.

    Nothing that a response says raises. A constraint that is unknown, and an argument that is missing, unknown or wrong, is an error:
    nothing is drawn at random.

    Args:
        response: The text.
        constraints: `(id, arguments)` pairs, or a row with `instruction_id_list` and `kwargs`.
        prompt: The task, which is what `prompt_to_repeat` is where a constraint asks for it and it is not given.
        options: `semantics`, `mode` and `think`.

    Returns:
        One verdict a constraint; None where one that was registered failed. `explain` says why.

    Raises:
        ArgumentError: An argument cannot be used; the message names the constraint and its argument.

    Example:
        >>> check("the harbor, at night", ["punctuation:no_comma", "change_case:english_lowercase"])
        [False, True]
    """
    return check_many([response], [constraints], None if prompt is None else [prompt], **options)[0]


def check_many(
    responses: Sequence[str],
    constraints: Sequence[Given],
    prompts: Sequence[str | None] | None = None,
    **options: Unpack[Options],
) -> list[list[bool | None]]:
    """Checks many responses, each with its own constraints, on all cores and without the interpreter's lock.

    Args:
        responses: The texts.
        constraints: What is asked of each. A list that several responses share is read once.
        prompts: The task of each.
        options: As for `check`.

    Returns:
        One list a response, as `check` returns it.

    Raises:
        ArgumentError: An argument cannot be used; the message names its place.

    Example:
        >>> check_many(["a, b", "a b"], [["punctuation:no_comma"]] * 2)
        [[False], [True]]
    """
    return _plaudit.instructions_check_many(responses, constraints, prompts, dict(options))


def explain(
    response: str, constraints: Given, prompt: str | None = None, **options: Unpack[Options]
) -> list[Verdict]:
    """Says which constraints a response follows, and what each of the others checks.

    Args:
        response: The text.
        constraints: As for `check`.
        prompt: As for `check`.
        options: As for `check`.

    Returns:
        One `Verdict` a constraint.

    Raises:
        ArgumentError: As for `check`.

    Example:
        >>> explain("a, b", ["punctuation:no_comma"])[0].message
        'There is no comma of any script.'
    """
    readable, found = _plaudit.instructions_explain(response, constraints, prompt, dict(options))

    def message(followed: bool | None, checks: str, error: str | None) -> str:
        if followed:
            return ""
        return error or (checks if readable else "The thinking never ends, so that there is no response.")

    return [Verdict(id, followed, message(followed, checks, error)) for id, followed, checks, error in found]


def constraints() -> list[Constraint]:
    """Lists all constraints: those of IFEval, IF-RLVR and IFBench, and those that this process has registered.

    Returns:
        One `Constraint` each.

    Example:
        >>> len([each for each in constraints() if each.family == "IFEval"])
        25
    """
    return [
        Constraint(
            id,
            family,
            checks,
            {name: kind for name, kind, _ in parameters},
            tuple(name for name, _, required in parameters if not required),
            gamed,
            difference,
        )
        for id, family, checks, gamed, difference, parameters in _plaudit.instructions_constraints()
    ]


@overload
def register(id: str, *, checks: str | None = None) -> Callable[[Function], Function]: ...
@overload
def register(id: str, function: Function, *, checks: str | None = None) -> Function: ...
def register(id: str, function: Any = None, *, checks: str | None = None) -> Any:
    """Makes a function a constraint of this process, for `check` and for the reward `instructions` of a recipe.

    The function takes the text and, as keywords, the arguments of a row; it returns True or False. Parameters without a default must be
    given. An exception is no verdict: `check` has None for it, `explain` the message, and a rollout is invalid, `reward.failed`.
    Another process registers its own.

    Args:
        id: The name in rows, such as `mine:ends_politely`. Under an id that is registered it takes the place of the other.
        function: The function; left out where `register` decorates it.
        checks: What it checks, in one sentence; by default the first line of the function's docstring.

    Returns:
        The function, unchanged; or a decorator that returns it.

    Raises:
        ArgumentError: The id is that of a public constraint, or the function has parameters that a row cannot give.

    Example:
        >>> @register("mine:ends_with")
        ... def ends_with(text, word):
        ...     return text.rstrip().endswith(word)
        >>> check("It is over.", [("mine:ends_with", {"word": "over."})])
        [True]
    """
    if not isinstance(id, str):
        raise ArgumentError('a constraint is registered under an id: @register("mine:NAME")')

    def add(function: Any) -> Any:
        if not callable(function):
            raise ArgumentError(f"{id}: a function is wanted, not {type(function).__name__}")
        try:
            text, *parameters = inspect.signature(function).parameters.values() or (None,)
        except ValueError:
            raise ArgumentError(f"{id}: the parameters of the function are not known") from None
        if text is None or text.kind not in (text.POSITIONAL_ONLY, text.POSITIONAL_OR_KEYWORD):
            raise ArgumentError(f"{id}: the function takes the text as its first parameter")
        for each in parameters:
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise ArgumentError(f"{id}: a row cannot give the parameter {str(each)!r}")
        required = [each.name for each in parameters if each.default is each.empty]
        optional = [each.name for each in parameters if each.default is not each.empty]
        said = checks or (inspect.getdoc(function) or "").partition("\n")[0] or f"What `{id}` checks."
        _plaudit.instructions_register(id, said, required, optional, function)
        return function

    return add if function is None else add(function)
