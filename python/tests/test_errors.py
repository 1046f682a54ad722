"""Every argument that cannot be used raises `plaudit.ArgumentError`, which is also a `TypeError` and a `ValueError`."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import plaudit
import pytest
from plaudit.remote import Service

FORMAT = {"components": {"format": {"reward": "reasoning_format"}}}


def engine() -> plaudit.Engine:
    return plaudit.Engine(FORMAT)


BAD: dict[str, Callable[[], Any]] = {
    "recipe": lambda: plaudit.Engine(None),  # type: ignore[arg-type]
    "recipe value": lambda: plaudit.Engine({"components": object()}),
    "overrides": lambda: plaudit.Engine(FORMAT, overrides=[1]),  # type: ignore[arg-type]
    "infinite override": lambda: plaudit.Engine(FORMAT, overrides={"a": float("inf")}),
    "share": lambda: plaudit.Engine(FORMAT, share=-1),
    "huge share": lambda: plaudit.Engine(FORMAT, share=10**30),
    "on_error": lambda: plaudit.Engine(FORMAT, on_error="no"),  # type: ignore[arg-type]
    "no responses": lambda: engine().score(),
    "one string": lambda: engine().score(responses="abc"),
    "lengths": lambda: engine().score(["p"], ["a", "b"]),
    "type in a column": lambda: engine().score(responses=[1.5]),
    "huge reference": lambda: engine().score(responses=["a"], references=[10**5000]),
    "negative tokens": lambda: engine().score(responses=["a"], tokens=[-1]),
    "deep extras": lambda: engine().score(responses=["a"], extras=[{"a": object()}]),
    "validate": lambda: engine().score(responses=["a"], validate="yes"),  # type: ignore[arg-type]
    "plan": lambda: engine().plan(responses=[None]),  # type: ignore[list-item]
    "explain": lambda: engine().explain(responses=[None]),  # type: ignore[list-item]
    "join timeout": lambda: engine().join(timeout=-1),
    "join remember": lambda: engine().join(remember=-1),
    "join response": lambda: engine().join().score("g", 1, 1.5),  # type: ignore[arg-type]
    "join unicode": lambda: engine().join().score("g", 1, "\ud800"),
    "join leave": lambda: engine().join().leave(None),  # type: ignore[arg-type]
    "join step": lambda: engine().join().take_step(-1),
    "group size": lambda: plaudit.Engine("tutorial").check_group_size(10**6),
    "register name": lambda: plaudit.register(None),  # type: ignore[arg-type]
    "register per": lambda: plaudit.register("x", per="day"),  # type: ignore[arg-type]
    "register function": lambda: plaudit.register("x")(lambda response: 1.0),
    "register shipped": lambda: plaudit.register("accuracy")(lambda p, r, ref, e: [1.0]),
    "reward response": lambda: plaudit.reward("accuracy").score(None),  # type: ignore[arg-type]
    "aggregate method": lambda: plaudit.aggregate("no", 2, []),
    "aggregate n": lambda: plaudit.aggregate("winrate", -1, []),
    "aggregate huge": lambda: plaudit.aggregate("winrate", 10**12, []),
    "aggregate beyond 64 bits": lambda: plaudit.aggregate("winrate", 2, [(0, 10**30, 0)]),
    "aggregate comparison": lambda: plaudit.aggregate("winrate", 2, [(0, 1)]),
    "service url": lambda: Service("no address"),
}


@pytest.mark.parametrize("door", BAD)
def test_bad_values_raise_an_argument_error(door: str):
    with pytest.raises(plaudit.ArgumentError) as raised:
        BAD[door]()
    assert isinstance(raised.value, plaudit.PlauditError) and str(raised.value)


def test_argument_errors_are_pythons_own_too():
    assert issubclass(plaudit.ArgumentError, TypeError) and issubclass(plaudit.ArgumentError, ValueError)
    error = plaudit.ArgumentError("what is wrong")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is plaudit.ArgumentError and str(other) == "what is wrong"


def test_recipes_and_runs_have_errors_of_their_own():
    with pytest.raises(plaudit.RecipeError):
        plaudit.Engine({"components": {"x": {"reward": "no such reward"}}})
    with pytest.raises(plaudit.RecipeError):
        plaudit.reward("no such reward")
    with pytest.raises(plaudit.RunError):
        plaudit.Engine(FORMAT, state="valkey://127.0.0.1:1")


READING = "plaudit-test: panic while reading"
SCORING = "plaudit-test: panic while scoring"


def test_a_panic_is_one_rollouts_own():
    # A debug build panics over these two texts, a release build does not.
    responses = ["one", [{"role": "assistant", "content": READING}], SCORING, "two"]
    report = engine().score(responses=responses, groups=["g"] * 4)
    codes = [row.get("reason", {}).get("code") for row in report.rows]
    if codes[1:3] == [None, None]:
        pytest.skip("a release build")
    assert codes == [None, "engine.panic", "engine.panic", None]
    assert asyncio.run(engine().ascore(responses=responses, groups=["g"] * 4)).rows == report.rows
    reward = plaudit.reward("reasoning_format")
    for response in responses[1:3]:
        result = reward.score(response)
        assert (result.value, result.outcome, result.reason["code"]) == (None, "invalid", "engine.panic")
    # Who hands in one rollout that cannot be read is told so, as of any other mistake in it.
    with pytest.raises(plaudit.ArgumentError, match="the reader failed"):
        engine().join().score("g", 1, responses[1])
    joined = engine().join().score("g", 1, responses[2])
    assert (joined.total, joined.reason["code"]) == (None, "engine.panic")
