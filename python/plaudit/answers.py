"""What a custom reward may return for a rollout: a number, None, `Score`, a dict with `score`, or an error.

Each becomes what the extension takes: a number, None, a message, or a tuple of an outcome's name and what belongs to it. What
cannot be read makes its own rollout invalid, never the others of the call.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plaudit.judges import JudgeError
from plaudit.values import plain

# The most characters of a message, of the name of a fact and of a fact, and the most facts of a rollout.
MAX_MESSAGE, MAX_NAME, MAX_FACT, MAX_FACTS = 500, 64, 2000, 32

# The largest number that 32 bits hold, and the smallest and largest whole ones of 64.
MAX_F32 = (2 - 2**-23) * 2.0**127
WHOLE = range(-(2**63), 2**64)

Named = tuple[str, Any, Any]
"""An outcome by its name: `scored` with a value and facts, others with a code and a message, or None in their place."""


@dataclass(frozen=True)
class Score:
    """What a custom reward gives one rollout, where a number alone does not say it.

    Example:
        >>> plaudit.Score(0.5, info={"tone": "curt"})
        >>> plaudit.Score(outcome="floored", reason="more than three exclamation marks")
    """

    value: Any = None
    """The number of a scored rollout."""
    info: Mapping[str, Any] | None = None
    """Evidence by name, beside the number of a scored rollout: what JSON can express. At most 32 facts of 2,000 characters each are kept."""
    reason: str | BaseException | None = None
    """Why, in words, or the exception that says it; an invalid rollout needs one. Of a scored one it is kept as the fact `reason`."""
    outcome: Literal["scored", "floored", "skipped", "invalid"] = "scored"
    """`floored` where the response broke a limit of the reward: it gets the component's `floor`. `skipped` where the reward does
    not apply. `invalid` where it could not tell, through no fault of the model."""


def read(item: Any) -> float | str | Named | None:
    """The answer for one rollout, as the extension takes it."""
    if type(item) is float:
        return _finite(item)
    if isinstance(item, Score):
        return _score(item)
    if isinstance(item, Mapping):
        if "score" not in item:
            return "the reward gave back a dict without `score`"
        return _scored(item["score"], {name: fact for name, fact in item.items() if name != "score"})
    if isinstance(item, BaseException):
        return "invalid", *_why(item)
    return number(item)


def number(item: Any) -> float | str | None:
    """The number that an object is, or why it is none."""
    if item is None:
        return None
    if isinstance(item, (str, bytes)):
        return f"the reward gave back {type(item).__name__} in place of a number"
    try:
        return _finite(float(item))
    except OverflowError:
        return "the reward gave back a number beyond all that a float can hold"
    except (TypeError, ValueError):
        return f"the reward gave back {type(item).__name__} in place of a number"


def message_of(error: BaseException) -> str:
    """The type and the first line of an exception's message, as a traceback ends with them."""
    parts = traceback.format_exception_only(error)
    # Of a syntax error, the lines of the source come first.
    lines = next((part for part in parts if not part.startswith(" ")), "").strip().splitlines()
    return lines[0][:MAX_MESSAGE] if lines else type(error).__name__


def _finite(value: float) -> float | str:
    if not math.isfinite(value):
        return f"the reward gave back {value}"
    if abs(value) > MAX_F32:
        return f"the reward gave back {value:g}, and trainers compute with 32 bits"
    return value


def _score(score: Score) -> float | str | Named | None:
    if score.outcome not in ("scored", "floored", "skipped", "invalid"):
        return f"the outcome of a Score is scored, floored, skipped or invalid, not {score.outcome!r:.80}"
    code, why = _why(score.reason)
    if score.outcome == "scored":
        if score.value is None:
            return "a scored Score needs a value; outcome='skipped' says that the reward does not apply"
        if not isinstance(score.info, (Mapping, type(None))):
            return f"the info of a Score is a dict, not {type(score.info).__name__}"
        facts = dict(score.info or {})
        return _scored(score.value, facts if why is None else {"reason": why, **facts})
    if score.value is not None:
        return f"a Score with the outcome {score.outcome} has no value of its own"
    if score.outcome == "invalid":
        return (score.outcome, code, why) if why else "an invalid Score needs a reason"
    # Only an invalid rollout has the code of somebody else's failure.
    return score.outcome, None, why


def _why(reason: Any) -> tuple[str | None, str | None]:
    """The code of a judge's failure, and the reason in words."""
    if isinstance(reason, JudgeError):
        return reason.code, str(reason)[:MAX_MESSAGE]
    if isinstance(reason, BaseException):
        return None, message_of(reason)
    return None, None if reason is None else str(reason)[:MAX_MESSAGE]


def _scored(value: Any, facts: Mapping[Any, Any]) -> float | str | Named | None:
    found = number(value)
    if not facts or not isinstance(found, float):
        return found
    return (
        "scored",
        found,
        {str(name)[:MAX_NAME]: _fact(fact) for name, fact in list(facts.items())[:MAX_FACTS]},
    )


def _fact(fact: Any) -> Any:
    """A fact in the plain types of JSON, and short: what a response makes long is cut, so that it cannot make itself invalid."""
    if fact is None or type(fact) is bool:
        return fact
    if type(fact) is str:
        return _cut(fact)
    try:
        fact = plain(fact)
        if isinstance(fact, str):
            return _cut(fact)
        text = json.dumps(_storable(fact), ensure_ascii=False)
    except Exception:
        return type(fact).__name__
    return json.loads(text) if len(text) <= MAX_FACT else _cut(text)


def _storable(value: Any) -> Any:
    """The same without numbers that JSON, or 64 bits, cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value in WHOLE else float(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in value[:MAX_FACT]]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


def _cut(text: str) -> str:
    text = text if len(text) <= MAX_FACT else text[: MAX_FACT - 1] + "…"
    # A lone surrogate has no place in JSON.
    return text.encode("utf-8", "replace").decode()
