"""Tests of `abort_after`: when a run in which nothing can be scored ends, and what it says."""

from __future__ import annotations

import asyncio
import pickle

import plaudit
import pytest
from plaudit.abort import DEFAULT, StepCounter, tally, together
from plaudit.ray.actor import ENDING, ActorConfig, Rollout, SharedEngine
from plaudit.result import Result

MISSING = Result.invalid("input.missing_reference", "The rollout has no reference.")
DOWN = Result.invalid("judge.connect", "nobody listens")
GOOD = Result(1.0, "scored")


def test_what_cannot_heal_ends_a_run_at_once() -> None:
    ending = StepCounter().observe(tally([MISSING] * 4))
    assert ending is not None
    text = ending.advise(["gold", "level"], 'Reward(columns={"COLUMN": "reference"})', 'abort_after="never"')
    assert text == (
        "no rollout can be scored, and this does not heal by itself: input.missing_reference: The rollout has no reference; "
        'the rows have "gold", "level": Reward(columns={"gold": "reference"}). abort_after="never" goes on all the same'
    )
    assert "rows have" not in ending.advise([], "", "never")


def test_what_can_heal_ends_it_after_some_steps() -> None:
    counter = StepCounter()
    assert DEFAULT == 10
    assert all(counter.observe(tally([DOWN, MISSING])) is None for _ in range(9))
    ending = counter.observe(tally([DOWN, DOWN, MISSING]))
    assert ending is not None and "10 steps in a row: judge.connect: nobody listens" in ending.sentence
    counter = StepCounter(2)
    for results in ([DOWN], [DOWN, GOOD], [DOWN], [GOOD, MISSING], [MISSING]):
        assert counter.observe(tally(results)) is None
    assert counter.observe(tally([MISSING])) is not None


def test_floored_rollouts_show_nothing() -> None:
    floored = Result(-1.0, "floored", {"code": "model.empty", "component": None, "message": "empty"})
    counter = StepCounter(2)
    assert counter.observe(tally([DOWN, floored])) is None
    assert counter.observe(tally([floored, floored])) is None, "the model's own doing"
    assert counter.observe(tally([floored, DOWN])) is not None


def test_little_counts_among_other_steps_alone() -> None:
    counter = StepCounter(3)
    assert counter.observe(tally([MISSING]), is_little=True) is None
    ending = counter.observe(tally([MISSING]))
    assert ending is not None and "missing_reference" in ending.sentence


def test_a_step_of_several_ranks_is_one() -> None:
    counter = StepCounter()
    assert counter.observe(together([tally([MISSING] * 2), tally([GOOD])])) is None
    any_valid, failures = together([tally([MISSING] * 2), tally([MISSING, DOWN])])
    assert not any_valid and sorted(failures.values()) == [1, 3]


def test_skipped_rollouts_count_as_not_scored() -> None:
    skipped = Result(None, "skipped", {"code": "input.missing_tests", "component": None, "message": "none"})
    assert StepCounter().observe(tally([skipped])) is not None
    assert StepCounter().observe(tally([Result(None, "skipped")])) is None


@pytest.mark.parametrize("wrong", [0, -1, "Never", None, True, 1.5])
def test_the_setting_is_a_number_or_never(wrong: object) -> None:
    with pytest.raises(plaudit.ArgumentError, match="abort_after: a whole number from 1 is wanted, or never"):
        StepCounter(wrong)  # type: ignore[arg-type]


def test_never_goes_on_and_another_process_begins_anew() -> None:
    never = StepCounter("never")
    assert not never.is_on and all(never.observe(tally([MISSING])) is None for _ in range(99))
    counter = StepCounter(2)
    assert counter.observe(tally([DOWN])) is None
    again = pickle.loads(pickle.dumps(counter))
    assert again.after == 2 and again.observe(tally([DOWN])) is None


def test_the_shared_engine_says_why_a_run_ends() -> None:
    async def run() -> None:
        config = ActorConfig(
            "math", abort_after=10, step_rollouts=3, rename="reference=COLUMN", switch="abort_after=never"
        )
        engine = SharedEngine(config)

        def finish(result: Result) -> str | None:
            return engine._count_for_abort(result).info.get(ENDING)

        rollout = Rollout("g", None, 1, "42", columns=("extra_info.split", "gold"))
        engine.columns = rollout.columns
        assert [finish(MISSING), finish(MISSING)] == [None, None]
        said = finish(MISSING)
        assert said is not None and "reference=gold" in said and "abort_after=never" in said
        assert (await engine.status())["ending"] == said == finish(MISSING)
        assert finish(GOOD) is None and (await engine.status())["ending"] is None
        # Ten steps of three from now on.
        assert [finish(DOWN) for _ in range(29)] == [None] * 29
        assert "judge.connect" in str(finish(DOWN))

    asyncio.run(run())
