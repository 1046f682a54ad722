"""The math verifier by itself: whether an answer equals a reference, why, and where the answer stands.

from plaudit.math import verify

verify("\\\\frac{1}{2}", "So it is \\\\boxed{0.5}.")  # True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from plaudit import _plaudit
from plaudit._plaudit import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

__all__ = ["Explanation", "Options", "Parsed", "explain", "extract", "parse", "verify", "verify_many"]

Gold = str | int | float | Sequence[str | int | float]
"""A reference: bare, in LaTeX, in a box or a worked solution; or a list of answers that are accepted."""


class Options(TypedDict, total=False):
    """What the reward `math_verify_reward` has as parameters, with its defaults."""

    answer: Literal["auto", "box", "phrase", "hash", "last_number"]
    """Where the answer is looked for."""
    think: Literal["cut", "keep"]
    """What happens to the thinking before the answer."""
    tolerance: float | None
    """How far a decimal answer may be from the reference, relative to it."""
    percent: Literal["lenient", "strict"]
    """How a percentage compares with a number."""
    units: Literal["ignore_missing", "strict", "ignore"]
    """How units compare."""
    order: Literal["auto", "strict"]
    """Whether the order of a list matters."""


class GoldOptions(Options, total=False):
    """The options of a comparison."""

    unparsable_reference: Literal["raise", "false"]
    """What becomes of a reference that cannot be read: an `ArgumentError`, or `False`, as math-verify has it."""


@dataclass(frozen=True)
class Parsed:
    """A text with the answer that was found in it. It is true where the answer can be read."""

    source: str
    """The text as it was given."""
    text: str | None
    """The answer in it; None where there is none."""
    kind: str | None
    """What the answer is read as, such as `expression` or `list`."""
    rule: str | None
    """The rule by which it was found, such as `box`."""
    span: tuple[int, int] | None
    """Where it stands in the source."""
    why: str | None
    """Why there is no answer that can be read, such as `no_answer` or `math.too_large`."""

    def __bool__(self) -> bool:
        return self.why is None


@dataclass(frozen=True)
class Explanation:
    """Why an answer equals its reference, or does not. It is true where they are equal."""

    equal: bool
    """Whether they are equal."""
    why: str
    """`equal`, `different` (read, and wrong), `not_parsed`, `no_answer`, or the code of the bound that the answer breaks."""
    how: str | None
    """The proof: `text`, `exact` arithmetic, an `identity` in prime fields, or `numeric` enclosures."""
    message: str
    """The same in a sentence."""
    gold: str | None
    """The answer in the reference; of several that are accepted the one that decided."""
    gold_kind: str | None
    """What the reference is read as."""
    answer: str | None
    """The answer in the response, cut at 200 characters."""
    answer_kind: str | None
    """What it is read as."""
    normal: str | None
    """The answer in LaTeX, as it is read."""
    rule: str | None
    """The rule by which the answer was found."""
    span: tuple[int, int] | None
    """Where the answer stands in the response."""

    def __bool__(self) -> bool:
        return self.equal


_PROOFS = {
    "text": "as a text",
    "exact": "by exact arithmetic",
    "identity": "by an identity at secret points",
    "numeric": "by enclosures of real numbers",
}


def verify(gold: Gold | Parsed, answer: str | Parsed, /, **options: Unpack[GoldOptions]) -> bool:
    """Says whether the answer of a response equals a reference in mathematics.

    The arguments have math-verify's order, and each may be the text itself or what `parse` made of it. Nothing that a response says
    raises: what cannot be read is not equal.

    Args:
        gold: The reference: bare, in LaTeX, in a box, or a worked solution; a number; or a list of answers that are accepted.
        answer: The response, or the answer alone.
        options: As the reward `math_verify_reward` has them, and `unparsable_reference`.

    Returns:
        Whether they are equal.

    Raises:
        ArgumentError: An argument cannot be used, or the reference cannot be read.

    Example:
        >>> verify("1/2", "The answer is $\\\\frac{2}{4}$.")
        True
    """
    found = _compared(gold, answer, dict(options))
    return found is not None and found[0][0] == "equal"


def verify_many(
    golds: Sequence[Gold], answers: Sequence[str], /, **options: Unpack[GoldOptions]
) -> npt.NDArray[np.bool_]:
    """Compares many answers, each with its reference, on all cores and without the interpreter's lock.

    A reference that several answers share is read once.

    Args:
        golds: One reference an answer, as for `verify`; a list, a numpy array or an Arrow column.
        answers: The responses.
        options: As for `verify`.

    Returns:
        An array of booleans, one an answer.

    Raises:
        ArgumentError: An argument cannot be used, or a reference cannot be read; the message names its place.

    Example:
        >>> verify_many(["1/2", ["4", "four"]], ["0.5", "\\\\boxed{5}"]).tolist()
        [True, False]
    """
    given, unreadable_is_false = _split(dict(options))
    return _plaudit.math_verify_many(golds, answers, given, unreadable_is_false)


def explain(gold: Gold | Parsed, answer: str | Parsed, /, **options: Unpack[GoldOptions]) -> Explanation:
    """Compares an answer with a reference, and says what was read on both sides, and by which proof they are equal or not.

    Args:
        gold: The reference, as for `verify`.
        answer: The response.
        options: As for `verify`.

    Returns:
        An `Explanation`.

    Raises:
        ArgumentError: An argument cannot be used, or the reference cannot be read.

    Example:
        >>> explain("2\\\\sqrt{3}", "\\\\boxed{\\\\sqrt{12}}").how
        'identity'
    """
    found = _compared(gold, answer, dict(options))
    if found is None:
        message = "The reference cannot be read."
        return Explanation(False, "unparsable_reference", None, message, *[None] * 7)
    (why, cause), (text, gold_kind), (said, normal, kind, rule, span, how) = found
    proof = _PROOFS.get(how or "", "")
    if why == "equal":
        message = f"The answer equals the reference, {proof}."
    elif why == "different":
        message = f"The answer differs from the reference, {proof}."
    elif why == "not_parsed":
        message = "The answer cannot be read as mathematics."
    elif why == "no_answer":
        message = "There is no answer."
    else:
        message = f"The answer {cause}."
    return Explanation(why == "equal", why, how, message, text, gold_kind, said, kind, normal, rule, span)


def parse(text: str, /, **options: Unpack[Options]) -> Parsed:
    """Finds the answer in a text and reads it.

    Args:
        text: A response, or an answer alone.
        options: As for `verify`.

    Returns:
        What was found, which `verify` takes in place of the text.

    Raises:
        ArgumentError: An argument cannot be used.

    Example:
        >>> parse("First 3. So the answer is 4.").text
        '4'
    """
    why, found = _plaudit.math_extract(text, dict(options))
    said, kind, rule, span = found or (None, None, None, None)
    return Parsed(text, said, kind, rule, span, why)


def extract(text: str, /, **options: Unpack[Options]) -> str | None:
    """Finds the answer in a text.

    Args:
        text: A response.
        options: As for `verify`.

    Returns:
        The answer as it stands there; None where there is none.

    Raises:
        ArgumentError: An argument cannot be used.

    Example:
        >>> extract("So it is \\\\boxed{\\\\frac{1}{2}}.")
        '\\\\frac{1}{2}'
    """
    return parse(text, **options).text


def _compared(gold: Any, answer: Any, options: dict[str, Any]) -> Any:
    given, unreadable_is_false = _split(options)
    gold, answer = (side.source if isinstance(side, Parsed) else side for side in (gold, answer))
    return _plaudit.math_explain(gold, answer, given, unreadable_is_false)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The options of the verifier, and whether a reference that cannot be read equals nothing."""
    unreadable = options.pop("unparsable_reference", "raise")
    if unreadable not in ("raise", "false"):
        raise ArgumentError(f"unparsable_reference is 'raise' or 'false', not {unreadable!r:.80}")
    return options, unreadable == "false"
