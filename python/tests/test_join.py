"""`Join`: groups whose rollouts are handed in one by one."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import plaudit
import pytest

RECIPE = {
    "components": {
        "kimi": {"reward": "kimi.length"},
        "format": {"reward": "reasoning_format", "weight": 0.5},
    },
    "groups": {"timeout": "60s"},
}


def responses(group: int) -> list[str]:
    return [f"<think>{'so ' * (at * 3 + group)}</think><answer>{at}</answer>" for at in range(4)]


@functools.cache
def whole(group: int) -> list[float]:
    return plaudit.Engine(RECIPE).score(None, responses(group), groups=["g"] * 4).totals.tolist()


async def hand_in(join: plaudit.Join, group: str, size: int, *texts: str, **more) -> list[plaudit.Result]:
    return await asyncio.gather(*(join.ascore(group, size, text, **more) for text in texts))


def test_mixed_arrivals_are_scored_like_whole_groups():
    join = plaudit.Engine(RECIPE).join()
    arrivals = [(group, at) for group in range(32) for at in range(4)]
    random.Random(7).shuffle(arrivals)

    async def main() -> list[plaudit.Result]:
        return await asyncio.gather(
            *(join.ascore(f"g{group}", 4, responses(group)[at]) for group, at in arrivals)
        )

    results = asyncio.run(main())
    for (group, at), result in zip(arrivals, results, strict=True):
        assert result.total == whole(group)[at]
        assert result.outcome == "scored" and result.reason is None and result.group_size == 4
        assert not (result.partial or result.late or result.duplicate)
        assert sorted(result.group_totals) == sorted(whole(group))
        others = sum(whole(group)) - whole(group)[at]
        assert result.siblings_mean == pytest.approx(others / 3)
    status = join.status
    assert (status["open"], status["waiting"], status["scored"]) == (0, 0, 128)


def test_threads_wait_for_their_group():
    join = plaudit.Engine(RECIPE).join()
    with ThreadPoolExecutor(8) as threads:
        calls = [
            threads.submit(join.score, "g", 4, text, prompt="p", member=str(at))
            for at, text in enumerate(responses(1))
        ]
        assert [call.result(timeout=60).total for call in calls] == whole(1)


def test_results_have_components_and_evidence():
    join = plaudit.Engine(RECIPE).join()
    first, *_ = asyncio.run(hand_in(join, "g", 2, "<think>a</think><answer>b</answer>", "no"))
    assert set(first.components) == {"kimi", "format"} and first.components["format"] == 1.0
    assert any(name.startswith("format.") for name in first.info)
    assert first.waited >= 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": None}, "group: text is wanted, not None"),
        ({"member": 1.5}, "member: text or a whole number is wanted, not 1.5"),
        ({"validate": "yes"}, "validate is True, False or None, not 'yes'"),
        ({"size": "4"}, "size: a whole number from 0 is wanted, not '4'"),
        ({"timeout": "1s"}, "timeout: a number of seconds from 0 is wanted, not '1s'"),
        ({"response": None}, "response: text is wanted, not None"),
        ({"reference": object()}, "reference: "),
        ({"tokens": -1}, "tokens: a whole number from 0 is wanted, not -1"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(given: dict, message: str):
    join = plaudit.Engine(RECIPE).join()
    arguments = {"group": "g", "size": 1, "response": "a", **given}
    with pytest.raises(plaudit.ArgumentError, match=message):
        join.score(**arguments)
    with pytest.raises(plaudit.ArgumentError, match=message):
        asyncio.run(join.ascore(**arguments))


def test_numbers_may_name_groups_and_members():
    join = plaudit.Engine(RECIPE).join()
    results = asyncio.run(hand_in(join, 7, 2, "a", "bb"))
    assert [result.group_size for result in results] == [2, 2]
    one = hand_in(join, np.int64(8), np.int64(1), "a", member=3, tokens=np.int32(2))
    assert asyncio.run(one)[0].group_size == 1


def test_numbers_may_leave():
    join = plaudit.Engine(RECIPE).join()
    join.leave(3, 1)
    results = asyncio.run(hand_in(join, 3, 3, "a", "bb"))
    assert [result.group_size for result in results] == [2, 2]
    with pytest.raises(plaudit.ArgumentError, match="group: text is wanted, not None"):
        join.leave(None)  # type: ignore[arg-type]


def test_a_group_whose_time_is_up_is_scored_as_it_is():
    join = plaudit.Engine(RECIPE).join(timeout=0.2)
    assert join.timeout == 0.2
    began = time.monotonic()
    results = asyncio.run(hand_in(join, "g", 4, *responses(1)[:2]))
    assert all(result.partial and result.group_size == 2 for result in results)
    assert 0.2 <= time.monotonic() - began < 10
    assert join.status["partial"] == 1


def test_a_caller_may_have_less_time_than_the_group():
    join = plaudit.Engine(RECIPE).join()
    (result,) = asyncio.run(hand_in(join, "g", 4, "a", timeout=0.05))
    assert result.partial and result.outcome == "invalid" and result.reason["code"] == "group.too_small"


def test_a_quiet_group_is_scored_before_its_time():
    join = plaudit.Engine(RECIPE).join(quiet=0.1)
    results = asyncio.run(hand_in(join, "g", 4, *responses(1)[:3]))
    assert join.quiet == 0.1 and all(result.partial and result.group_size == 3 for result in results)


def test_a_member_that_leaves_is_not_waited_for():
    join = plaudit.Engine(RECIPE).join()

    async def main() -> list[plaudit.Result]:
        waiting = asyncio.ensure_future(hand_in(join, "g", 4, *responses(1)[:3]))
        while join.status["waiting"] < 3:
            await asyncio.sleep(0.001)
        join.leave("g")
        return await asyncio.wait_for(waiting, 30)

    results = asyncio.run(main())
    assert [result.group_size for result in results] == [3, 3, 3]


def test_a_late_member_is_scored_with_its_group():
    join = plaudit.Engine(RECIPE).join()
    asyncio.run(hand_in(join, "g", 3, *responses(1)[:3]))
    (late,) = asyncio.run(hand_in(join, "g", 3, responses(1)[3]))
    assert late.late and late.total == whole(1)[3] and join.status["late"] == 1


def test_a_member_that_comes_twice_counts_once():
    join = plaudit.Engine(RECIPE).join()

    async def main() -> list[plaudit.Result]:
        texts = [("a", responses(1)[0]), ("a", responses(1)[0]), ("a", "other"), ("b", responses(1)[1])]
        return await asyncio.gather(*(join.ascore("g", 2, text, member=member) for member, text in texts))

    first, again, other, second = asyncio.run(main())
    assert first.total == again.total and again.duplicate and not first.duplicate
    assert other.outcome == "invalid" and other.reason["code"] == "group.duplicate" and other.total is None
    assert second.group_size == 2 and join.status["duplicates"] == 2


def test_flush_and_close_answer_everybody():
    join = plaudit.Engine(RECIPE).join()

    async def main(end) -> list[plaudit.Result]:
        waiting = asyncio.ensure_future(hand_in(join, "g" + end.__name__, 4, *responses(1)[:2]))
        while join.status["waiting"] < 2:
            await asyncio.sleep(0.001)
        end()
        return await asyncio.wait_for(waiting, 30)

    assert all(result.partial and result.outcome == "scored" for result in asyncio.run(main(join.flush)))
    assert all(result.reason["code"] == "group.closed" for result in asyncio.run(main(join.close)))
    (refused,) = asyncio.run(hand_in(join, "later", 1, "a"))
    assert refused.outcome == "invalid" and refused.total is None


def test_nobody_waits_where_nothing_is_compared():
    join = plaudit.Engine({"components": {"format": {"reward": "reasoning_format"}}}).join()
    (result,) = asyncio.run(hand_in(join, "g", 8, "a"))
    assert result.outcome == "scored" and result.total == 0.0


def test_an_invalid_member_is_told_the_mean_of_its_siblings():
    @plaudit.register("test_join.picky", per="rollout")
    def picky(prompt, response, reference, extra):
        """Fails for a bad response."""
        if response == "bad":
            raise ValueError("bad")
        return float(response)

    join = plaudit.Engine({"components": {"picky": {"reward": "test_join.picky"}}}).join()
    bad, one, two = asyncio.run(hand_in(join, "g", 3, "bad", "1", "2"))
    assert (bad.outcome, bad.total, bad.siblings_mean) == ("invalid", None, 1.5)
    assert bad.reason["code"] == "reward.failed" and (one.total, two.total) == (1.0, 2.0)


def test_a_caller_that_gives_up_is_still_a_member():
    join = plaudit.Engine(RECIPE).join()

    async def main() -> list[plaudit.Result]:
        gone = asyncio.ensure_future(join.ascore("g", 4, responses(1)[0]))
        while join.status["waiting"] < 1:
            await asyncio.sleep(0.001)
        gone.cancel()
        return await asyncio.wait_for(hand_in(join, "g", 4, *responses(1)[1:]), 30)

    assert [result.total for result in asyncio.run(main())] == whole(1)[1:]


def test_judged_groups(judge_sim):
    principle = {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}
    sim = judge_sim()
    recipe = {"components": {"principle": principle}, "judges": {"main": sim.judge()}}
    join = plaudit.Engine(recipe).join()
    texts = [f"[[quality:{at}.5]]" for at in range(4)]
    results = asyncio.run(hand_in(join, "g", 4, *texts, prompt="p"))
    totals = [result.total for result in results]
    assert totals == sorted(totals) and len(sim.calls()) == 6
    alone = asyncio.run(
        hand_in(join, "v", 1, "[[quality:5.0]]", prompt="p", reference="[[quality:1.0]]", validate=True)
    )
    assert alone[0].info["win"] and alone[0].outcome == "scored"


def test_join_arguments_that_do_not_fit_raise():
    join = plaudit.Engine(RECIPE).join()
    with pytest.raises(plaudit.ArgumentError):
        join.score("g", 1, None)  # type: ignore[arg-type]
    with pytest.raises(plaudit.ArgumentError, match="timeout"):
        join.score("g", 1, "a", timeout=-1.0)
    with pytest.raises(plaudit.ArgumentError, match="response is not valid Unicode"):
        join.score("g", 1, "\ud800")
    assert join.status["waiting"] == 0


def test_steps_are_counted():
    join = plaudit.Engine(RECIPE).join()
    asyncio.run(hand_in(join, "g", 4, *responses(1)))
    step = join.take_step(1)
    assert join.last_step == step
    assert join.statistics["total"]["count"] == 4


def test_a_step_has_what_was_scored_since_the_one_before():
    join = plaudit.Engine(RECIPE).join()
    assert join.last_step is None
    counts = []
    for step, groups in enumerate((1, 2, 0), 1):
        for group in range(groups):
            asyncio.run(hand_in(join, f"{step}-{group}", 4, *responses(1)))
        taken = join.take_step(step)
        assert join.last_step == taken and taken["step"] == step
        counts.append(taken["statistics"]["total"]["count"])
    assert counts == [4, 8, 0] and join.statistics["total"]["count"] == 12


def test_a_completion_queue_wakes_once():
    join = plaudit.Engine(RECIPE).join()
    woken = threading.Semaphore(0)
    queue = join._completion_queue(woken.release)
    for group in range(3):
        for at, text in enumerate(responses(group)):
            queue.submit(10 * group + at, f"g{group}", 4, str(at), {"response": text})
    assert woken.acquire(timeout=60)
    while join.status["waiting"]:
        time.sleep(0.001)
    assert not woken.acquire(timeout=0.2), "it was woken twice for one take"
    told = queue.take()
    while len(told) < 12:
        told += queue.take()
    totals = {number: fields[0] for number, fields in told}
    assert totals == {10 * group + at: whole(group)[at] for group in range(3) for at in range(4)}
    assert queue.take() == []
    with pytest.raises(TypeError):
        queue.submit(99, "g", 1, None, {})
    # After all was taken, the next one wakes anew.
    queue.submit(99, "h", 1, None, {"response": "a", "extra": {"x": 1}})
    assert woken.acquire(timeout=60) and [number for number, _ in queue.take()] == [99]
