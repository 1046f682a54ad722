"""Custom rewards: registered functions, their parameters, exceptions and timeouts."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import math
import threading
import time

import numpy as np
import plaudit
import pytest

names = (f"test_reward_{number}" for number in itertools.count())


def engine(function, per: str = "batch", timeout: str = "300s", **parameters) -> plaudit.Engine:
    """An engine with one component: the function under a name of its own."""
    name = next(names)
    plaudit.register(name, per=per)(function)
    recipe = {"components": {"mine": {"reward": name, **parameters}}, "groups": {"timeout": timeout}}
    return plaudit.Engine(recipe)


def test_a_batch_at_once():
    seen = []

    def lengths(prompts, responses, references, extras):
        """Longer is better."""
        seen.append((prompts, responses, references, extras))
        return [len(response) for response in responses]

    report = engine(lengths).score(["p", "q"], ["a", "bb"], ["r", None], extras=[{"k": 1}, None])
    assert report.totals.tolist() == [1.0, 2.0]
    assert seen == [(["p", "q"], ["a", "bb"], ["r", None], [{"k": 1}, {}])]


def test_the_name_is_listed_and_taken_once_for_all():
    name = next(names)
    plaudit.register(name)(lambda prompts, responses, references, extras: [1.0] * len(responses))
    assert name in plaudit.rewards()
    with pytest.raises(ValueError, match="rouge"):
        plaudit.register("rouge")(lambda prompts, responses, references, extras: [])
    with pytest.raises(TypeError, match='@plaudit.register\\("NAME"\\)'):
        plaudit.register(lambda prompts, responses, references, extras: [])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="per is"):
        plaudit.register(next(names), per="row")  # type: ignore[arg-type]


def test_a_group_at_a_time():
    seen = []

    def ranks(prompts, responses, references, extras):
        seen.append(responses)
        order = sorted(responses, key=len)
        return [order.index(response) for response in responses]

    own = engine(ranks, per="group")
    assert own.compares_groups
    report = own.score(None, ["aaa", "b", "c", "dd"], groups=["x", "y", "x", "y"])
    assert sorted(seen) == [["aaa", "c"], ["b", "dd"]]
    assert report.totals.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_a_rollout_at_a_time():
    def one(prompt, response, reference, extra):
        return len(response) + extra.get("bonus", 0)

    report = engine(one, per="rollout").score(["p"] * 3, ["a", "bb", "ccc"], extras=[{}, {"bonus": 10}, None])
    assert report.totals.tolist() == [1.0, 12.0, 3.0]


@pytest.mark.parametrize("per", ["batch", "group", "rollout"])
def test_a_coroutine_function(per: str):
    async def slow(prompts, responses, references, extras):
        await asyncio.sleep(0)
        return 1.0 if per == "rollout" else [1.0] * len(responses)

    assert (
        engine(slow, per=per).score(None, ["a"] * 6, groups=[1, 1, 2, 2, 3, 3]).totals.tolist() == [1.0] * 6
    )


def test_coroutines_of_a_batch_are_under_way_at_once():
    gathered = []

    async def together(prompt, response, reference, extra):
        gathered.append(response)
        while len(gathered) < 8:
            await asyncio.sleep(0)
        return 1.0

    # One after the other, the first would wait for ever.
    report = engine(together, per="rollout").score(None, [str(at) for at in range(8)], groups=list(range(8)))
    assert report.totals.tolist() == [1.0] * 8


def test_a_coroutine_function_inside_a_running_loop():
    async def one(prompts, responses, references, extras):
        await asyncio.sleep(0)
        return [2.0] * len(responses)

    own = engine(one)

    async def main() -> list[float]:
        return (await own.ascore(None, ["a", "b"])).totals.tolist()

    assert asyncio.run(main()) == [2.0, 2.0]


def test_none_says_that_it_does_not_apply():
    report = engine(lambda prompts, responses, references, extras: [1.0, None]).score(None, ["a", "b"])
    assert report.outcomes == ["scored", "skipped"] and report.reasons[1]["code"] == "reward.abstained"


def test_exceptions_are_invalid_with_their_last_line():
    def broken(prompts, responses, references, extras):
        raise KeyError("no such thing")

    report = engine(broken).score(None, ["a", "b"])
    assert report.outcomes == ["invalid", "invalid"] and np.isnan(report.totals).all()
    assert report.reasons[0] == {
        "code": "reward.failed",
        "component": "mine",
        "message": "KeyError: 'no such thing'",
    }


def test_an_exception_touches_its_own_group_only():
    def picky(prompts, responses, references, extras):
        if "bad" in responses:
            raise ValueError("a bad one")
        return [1.0] * len(responses)

    report = engine(picky, per="group").score(None, ["a", "b", "bad", "c"], groups=["x", "x", "y", "y"])
    assert report.outcomes == ["scored", "scored", "invalid", "invalid"]
    assert report.reasons[2]["message"] == report.reasons[3]["message"] == "ValueError: a bad one"


@pytest.mark.parametrize("awaits", [False, True])
def test_an_exception_touches_its_own_rollout_only(awaits: bool):
    def picky(prompt, response, reference, extra):
        if response == "bad":
            raise ValueError("a bad one")
        return 1.0

    async def later(prompt, response, reference, extra):
        return picky(prompt, response, reference, extra)

    report = engine(later if awaits else picky, per="rollout").score(
        None, ["a", "bad", "c"], groups=["x"] * 3
    )
    assert report.outcomes == ["scored", "invalid", "scored"]
    assert report.reasons[1]["message"] == "ValueError: a bad one"


@pytest.mark.parametrize("kind", ["sync", "async", "async that blocks"])
def test_a_call_that_takes_too_long_is_invalid_alone(kind: str):
    ever = threading.Event()

    def plain(prompt, response, reference, extra):
        if response == "hangs":
            ever.wait(20)
        return 1.0

    async def polite(prompt, response, reference, extra):
        if response == "hangs":
            await asyncio.sleep(20)
        return 1.0

    async def blocking(prompt, response, reference, extra):
        return plain(prompt, response, reference, extra)

    function = {"sync": plain, "async": polite, "async that blocks": blocking}[kind]
    began = time.monotonic()
    # A coroutine that never lets go of the loop holds up those after it.
    responses = ["a", "b", "c", "hangs"] if kind == "async that blocks" else ["a", "hangs", "b", "c"]
    report = engine(function, per="rollout", timeout="2s").score(None, responses)
    assert time.monotonic() - began < 10
    ever.set()
    told = dict(zip(responses, zip(report.outcomes, report.reasons, strict=True), strict=True))
    outcome, reason = told.pop("hangs")
    assert outcome == "invalid" and reason["code"] == "group.deadline"
    assert "within 2 s" in reason["message"] and "groups.timeout" in reason["message"]
    assert [outcome for outcome, _ in told.values()] == ["scored"] * 3


@pytest.mark.parametrize(("per", "invalid"), [("batch", 4), ("group", 2)])
def test_a_late_call_costs_all_that_it_was_asked_about(per: str, invalid: int):
    ever = threading.Event()

    def hangs(prompts, responses, references, extras):
        if "hangs" in responses:
            ever.wait(20)
        return [1.0] * len(responses)

    report = engine(hangs, per=per, timeout="2s").score(None, ["a", "hangs", "b", "c"], groups=[1, 1, 2, 2])
    ever.set()
    assert report.outcomes == ["invalid"] * invalid + ["scored"] * (4 - invalid)
    assert {reason["code"] for reason in report.reasons[:invalid]} == {"group.deadline"}


def test_several_calls_that_hang_are_given_up_side_by_side():
    ever = threading.Event()

    def hangs(prompt, response, reference, extra):
        return ever.wait(20)

    began = time.monotonic()
    report = engine(hangs, per="rollout", timeout="3s").score(None, ["a", "b", "c", "d"])
    ever.set()
    assert time.monotonic() - began < 3 * 3 and report.outcomes == ["invalid"] * 4


def test_calls_that_are_quick_come_one_after_the_other():
    seen, here = [], threading.Lock()

    def one(prompt, response, reference, extra):
        with here:
            seen.append(response)
        assert here.acquire(blocking=False)
        here.release()
        return 1.0

    responses = [str(at) for at in range(50)]
    assert engine(one, per="rollout").score(None, responses).outcomes == ["scored"] * 50
    assert seen == responses


def test_a_time_limit_of_the_functions_own_is_its_failure():
    async def own(prompts, responses, references, extras):
        await asyncio.wait_for(asyncio.sleep(20), 0.01)

    report = engine(own).score(None, ["a"])
    assert report.reasons[0]["code"] == "reward.failed" and "TimeoutError" in report.reasons[0]["message"]


def test_a_response_beyond_the_limit_is_not_shown():
    seen = []

    def lengths(prompts, responses, references, extras):
        seen.extend(responses)
        return [len(response) for response in responses]

    name = next(names)
    plaudit.register(name)(lengths)
    recipe = {"components": {"mine": {"reward": name, "floor": -2.0}}, "limits": {"response_bytes": 4}}
    report = plaudit.Engine(recipe).score(None, ["long", "longer"])
    assert seen == ["long"]
    assert report.totals.tolist() == [4.0, -2.0]
    assert report.outcomes == ["scored", "floored"]
    assert report.reasons[1]["code"] == "model.too_long"


def test_other_components_keep_their_values():
    name = next(names)
    plaudit.register(name)(lambda prompts, responses, references, extras: 1 / 0)
    components = {"format": {"reward": "reasoning_format"}, "mine": {"reward": name, "weight": 0}}
    report = plaudit.Engine({"components": components}).score(None, ["a"])
    assert report.outcomes == ["scored"], "a component of weight 0 cannot spoil the total"
    assert report.component_outcomes["mine"] == ["invalid"] and math.isnan(report.components["mine"][0])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1.0], "gave back 1 number for 2 responses"),
        ([1.0] * 3, "gave back 3 numbers for 2 responses"),
        (None, "gave back NoneType, not a list of numbers"),
        (1.0, "gave back float, not a list of numbers"),
        ("ab", "gave back str, not a list of numbers"),
    ],
)
def test_an_answer_that_is_no_list_of_numbers_is_invalid(answer, message):
    report = engine(lambda prompts, responses, references, extras: answer).score(None, ["a", "b"])
    assert report.outcomes == ["invalid", "invalid"]
    assert message in report.reasons[0]["message"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1", [1.0], b"1", 10**400, 1e39, -1e300])
def test_one_item_that_is_no_number_is_invalid_alone(bad):
    report = engine(lambda prompts, responses, references, extras: [1.0, bad]).score(None, ["a", "b"])
    assert report.outcomes == ["scored", "invalid"] and math.isnan(report.totals[1])
    assert report.reasons[1]["code"] == "reward.failed"


@pytest.mark.parametrize(
    "answer", [np.array([1, 2]), np.array([1.0, 2.0], np.float32), (1, 2), [True, 2], [np.float64(1), 2]]
)
def test_numbers_of_every_kind(answer):
    report = engine(lambda prompts, responses, references, extras: answer).score(None, ["a", "b"])
    assert report.totals.tolist() == [1.0, 2.0]


def test_no_number_that_is_handed_out_is_infinite():
    recipe = {"components": {"mine": {"reward": next(names), "weight": 1e6}}}
    plaudit.register(recipe["components"]["mine"]["reward"])(lambda prompts, *rest: [3e38, -3e38])
    report = plaudit.Engine(recipe).score([None] * 2, ["a", "b"])
    assert report.totals.tolist() == pytest.approx([3e44, -3e44])
    narrow = report.totals_or_invalid_value
    assert np.isfinite(narrow).all() and (narrow[0] > 3e38 > -3e38 > narrow[1])


def test_parameters_come_from_the_recipe():
    def scaled(prompts, responses, references, extras, factor, *, plus=0.0, words=()):
        return [len(response) * factor + plus + len(words) for response in responses]

    assert engine(scaled, factor=2.0).score(None, ["aa"]).totals.tolist() == [4.0]
    assert engine(scaled, factor=2.0, plus=0.5, words=["x", "y"]).score(None, ["aa"]).totals.tolist() == [6.5]
    with pytest.raises(plaudit.RecipeError, match="factr"):
        engine(scaled, factr=2.0)
    with pytest.raises(plaudit.RecipeError, match="factor"):
        engine(scaled)


def test_a_function_that_cannot_be_called_so_is_refused():
    with pytest.raises(TypeError, match="prompts, responses, references, extras"):
        plaudit.register(next(names))(lambda responses: [])


def test_a_reward_by_itself():
    name = next(names)
    plaudit.register(name)(
        lambda prompts, responses, references, extras, by=1.0: [by * len(each) for each in responses]
    )
    assert plaudit.reward(name, by=3.0).score("aa").value == 6.0


def test_messages_reach_the_function_as_they_are():
    seen = []

    def look(prompt, response, reference, extra):
        seen.append((prompt, extra))
        return 0.0

    messages = [{"role": "user", "content": "hi", "n": 1.5}]
    engine(look, per="rollout").score([messages], ["a"], extras=[{"deep": {"list": [1, None, "x"]}}])
    assert seen == [(messages, {"deep": {"list": [1, None, "x"]}})]


def test_a_function_that_scores_with_plaudit_itself():
    inner = plaudit.reward("reasoning_format")

    def nested(prompts, responses, references, extras):
        return [inner.score(response).value for response in responses]

    report = engine(nested).score(None, ["<think>a</think><answer>b</answer>", "no"])
    assert report.totals.tolist() == [1.0, 0.0]


def divides(prompts, responses, references, extras):
    return [1 / 0 for _ in responses]


def test_an_exception_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture):
    own = engine(divides)
    with caplog.at_level(logging.ERROR, logger="plaudit"):
        own.score(None, ["a"])
        own.score(None, ["b"])
    assert len(caplog.records) == 1
    assert "ZeroDivisionError" in caplog.text and "test_custom.py" in caplog.text and "1 / 0" in caplog.text
    # Registered again, it is looked at anew.
    with caplog.at_level(logging.ERROR, logger="plaudit"):
        engine(divides).score(None, ["a"])
    assert len(caplog.records) == 2


@pytest.mark.parametrize("awaits", [False, True])
def test_an_exception_may_be_raised(awaits: bool):
    async def later(prompts, responses, references, extras):
        return divides(prompts, responses, references, extras)

    name = next(names)
    plaudit.register(name)(later if awaits else divides)
    own = plaudit.Engine({"components": {"mine": {"reward": name}}}, on_error="raise")
    for score in (
        lambda: own.score(None, ["a"]),
        lambda: asyncio.run(own.ascore(None, ["a"])),
        lambda: own.join().score("g", 1, "a"),
    ):
        with pytest.raises(ZeroDivisionError) as caught:
            score()
        assert caught.traceback[-1].name in ("divides", "<listcomp>")
    plaudit.register(name)(lambda prompts, responses, references, extras: ["no number"] * len(responses))
    own = plaudit.Engine({"components": {"mine": {"reward": name}}}, on_error="raise")
    with pytest.raises(plaudit.PlauditError, match="str in place of a number"):
        own.score(None, ["a"])


def test_a_message_of_many_lines_is_cut_to_its_first():
    def broken(prompts, responses, references, extras):
        raise ValueError("one\n" + "x" * 2000)

    assert engine(broken).score(None, ["a"]).reasons[0]["message"] == "ValueError: one"


@pytest.mark.parametrize(
    "function",
    [
        lambda responses, prompts, references, extras: [],
        lambda prompts, responses, extras, references: [],
        lambda prompt, reference, response, extra: 0.0,
        lambda ids, prompts, responses, references: [],
    ],
)
def test_columns_in_another_order_are_refused(function):
    with pytest.raises(TypeError, match="called by position"):
        plaudit.register(next(names))(function)
    assert engine(lambda p, r, ref, e, *, prompt="": [1.0] * len(r)).score(None, ["a"]).totals[0] == 1.0


@pytest.mark.parametrize("name", ["weight", "floor", "gate", "required", "reward"])
def test_a_parameter_that_every_component_has_is_refused(name: str):
    space: dict = {}
    exec(f"def own(prompts, responses, references, extras, *, {name}=1): return []", space)
    with pytest.raises(ValueError, match=f'"{name}" would never be passed'):
        plaudit.register(next(names))(space["own"])


def test_a_partial_function():
    def lengths(prompts, responses, references, extras, *, by=1.0):
        return [by * len(response) for response in responses]

    assert engine(functools.partial(lengths, by=3.0)).score(None, ["aa"]).totals.tolist() == [6.0]


@pytest.mark.parametrize("per", ["batch", "group", "rollout"])
def test_a_wrapper_that_gives_back_a_coroutine(per: str):
    async def slow(prompts, responses, references, extras):
        await asyncio.sleep(0)
        return 1.0 if per == "rollout" else [1.0] * len(responses)

    wrapped = lambda prompts, responses, references, extras: slow(prompts, responses, references, extras)  # noqa: E731
    assert engine(wrapped, per=per).score(None, ["a", "b"], groups=[1, 1]).totals.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("per", ["batch", "group"])
def test_a_function_may_empty_its_lists(per: str):
    def popping(prompts, responses, references, extras):
        scores = []
        while responses:
            scores.append(float(len(responses.pop())))
        return scores

    assert engine(popping, per=per).score(None, ["a", "a"], groups=[1, 1]).totals.tolist() == [1.0, 1.0]
