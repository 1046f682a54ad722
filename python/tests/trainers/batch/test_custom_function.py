"""Tests of custom reward functions: signatures, results, errors and timeouts."""

import asyncio
import functools
import threading
import time

import numpy as np
import pytest
from plaudit.verl.custom_function import CustomFunction, GroupInput, unwrap


def groups(count, size=2, reference=None):
    return [
        GroupInput(
            f"prompt {at}",
            [f"answer {at}.{member}" for member in range(size)],
            [{"member": member} for member in range(size)],
            reference,
        )
        for at in range(count)
    ]


def score(function, shown, *, workers=4, timeout=30.0, feedback=None, options=None, **kwargs):
    own = CustomFunction(function, options or {}, kwargs)
    return own.score(shown, workers=workers, timeout=timeout, feedback=feedback or {})


def test_groups_run_side_by_side_and_answers_keep_their_order():
    # Nobody gets past the barrier unless four groups are under way at once.
    barrier = threading.Barrier(4)

    def compute_score(prompt, responses, extras, **kwargs):
        barrier.wait(timeout=30)
        at = int(prompt.split()[1])
        return [at * 10.0 + extra["member"] for extra in extras], {"at": [at] * len(responses)}

    answers = score(compute_score, groups(8))
    assert [answer.scores for answer in answers] == [[at * 10.0, at * 10.0 + 1] for at in range(8)]
    assert [answer.info["at"] for answer in answers] == [[at, at] for at in range(8)]


def test_no_more_than_the_workers_run_at_once():
    lock, running, most = threading.Lock(), 0, 0
    # Whoever is under way stays so until three are, so that a fourth would be seen.
    barrier = threading.Barrier(3)

    def compute_score(prompt, responses, extras):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait(timeout=30)
        with lock:
            running -= 1
        return [0.0] * len(responses)

    assert all(answer.scores == [0.0, 0.0] for answer in score(compute_score, groups(12), workers=3))
    assert most == 3


def test_a_group_that_raises_or_hangs_is_alone_in_that():
    never = threading.Event()

    def compute_score(prompt, responses, extras):
        if prompt == "prompt 1":
            raise RuntimeError("no such model")
        if prompt == "prompt 2":
            never.wait(60)
        return [1.0] * len(responses)

    began = time.monotonic()
    answers = score(compute_score, groups(6), workers=2, timeout=2.0)
    assert time.monotonic() - began < 30
    assert [answer.scores for answer in answers] == [
        [1.0, 1.0],
        [None, None],
        [None, None],
        *[[1.0, 1.0]] * 3,
    ]
    assert answers[1].reason == "RuntimeError: no such model"
    assert "within 2 s" in (answers[2].reason or "")
    hanging = [thread for thread in threading.enumerate() if thread.name.startswith("plaudit-timeout")]
    assert hanging and all(thread.daemon for thread in hanging)
    never.set()


def test_all_hanging_groups_end_after_their_time():
    never = threading.Event()
    began = time.monotonic()
    answers = score(lambda prompt, responses, extras: never.wait(60), groups(6), workers=3, timeout=0.2)
    assert 0.4 <= time.monotonic() - began < 30
    assert all(answer.scores == [None, None] for answer in answers)
    never.set()


def test_a_function_may_be_async():
    async def compute_score(prompt, responses, extras, last_mean_std=None):
        await asyncio.sleep(0)
        if prompt == "prompt 1":
            await asyncio.sleep(60)
        return [last_mean_std] * len(responses), {}

    answers = score(compute_score, groups(2), timeout=2.0, feedback={"last_mean_std": 0.25})
    assert answers[0].scores == [0.25, 0.25]
    assert answers[1].scores == [None, None] and "within 2 s" in (answers[1].reason or "")


@pytest.mark.parametrize(
    "result",
    [
        [0.5, 1.0],
        (0.5, 1.0),
        np.array([0.5, 1.0]),
        ([0.5, 1.0], {}),
        ([0.5, 1.0], None),
        (np.array([0.5, 1.0], dtype=np.float32), {"a": 1}, ["x", "y"]),
        {"group_scores": [0.5, 1.0], "mode": "pairwise_dgr"},
    ],
    ids=["list", "tuple", "array", "info", "no info", "details", "example"],
)
def test_every_form_of_answer_is_read(result):
    (answer,) = score(lambda prompt, responses, extras: result, groups(1))
    assert answer.scores == [0.5, 1.0]


@pytest.mark.parametrize(
    "result",
    [
        None,
        0.5,
        [0.5],
        [0.5, 1.0, 2.0],
        ([0.5], {}),
        {"scores": [0.5, 1.0]},
        {"group_scores": [0.0, 0.0], "error": "the judge is down"},
        ["good", "bad"],
        [None, float("nan")],
        [-999.0, float("inf")],
    ],
    ids=str,
)
def test_what_is_no_score_is_never_a_number(result):
    (answer,) = score(lambda prompt, responses, extras: result, groups(1))
    assert answer.scores == [None, None]


def test_one_invalid_score_leaves_its_siblings_alone():
    (answer,) = score(
        lambda prompt, responses, extras: ([-999.0, 0.3], {"reward_rubric": [-999.0, 0.3]}), groups(1)
    )
    assert answer.scores == [None, 0.3]


def test_columns_are_aligned_and_verls_own_name_is_changed():
    def compute_score(prompt, responses, extras):
        return [1.0, 2.0], {
            "reward": [1.0, 2.0],
            "mode": "dgr",
            "lengths": np.array([3, 4]),
            "odd": [1, 2, 3],
        }

    (answer,) = score(compute_score, groups(1))
    assert answer.info == {"own_reward": [1.0, 2.0], "mode": ["dgr", "dgr"], "lengths": [3, 4]}


def test_reference_is_scored_with_the_group_and_removed():
    seen = []

    def compute_score(prompt, responses, extras):
        seen.append((responses, len(extras)))
        return [0.1, 0.5, 0.5], {"reward_format": [1.0, 0.0, 1.0]}

    (answer,) = score(compute_score, groups(1, reference="the reference"))
    assert seen == [(["answer 0.0", "answer 0.1", "the reference"], 3)]
    assert answer.scores == [0.1, 0.5]
    assert answer.info["win"] == [0.0, 0.0] and answer.info["win_and"] == [0.0, 1.0]
    assert answer.info["reward_format"] == [1.0, 0.0]


def test_a_comparison_score_decides_who_wins_where_there_is_one():
    def compute_score(prompt, responses, extras):
        return [0.1, 0.5], {"comparison_score": [0.9, 0.4]}

    (answer,) = score(compute_score, groups(1, size=1, reference="r"))
    assert answer.scores == [0.1]
    assert answer.info == {"comparison_score": [0.9], "win": [1.0], "win_and": [1.0]}


def test_reference_without_a_score_makes_no_winner():
    (answer,) = score(lambda prompt, responses, extras: [0.1, None], groups(1, size=1, reference="r"))
    assert answer.scores == [0.1] and "win" not in answer.info


def test_the_signature_of_the_training_example_is_known():
    def compute_score(
        data_source,
        solution_str,
        ground_truth,
        extra_info=None,
        group_evaluation=False,
        prompt_str=None,
        all_responses=None,
        all_extra_infos=None,
        **kwargs,
    ):
        assert group_evaluation and all_responses == solution_str and extra_info == all_extra_infos[0]
        return {
            "group_scores": [len(text) for text in solution_str],
            "seen": [data_source, prompt_str, kwargs["k"]][2],
        }

    (answer,) = score(compute_score, groups(1), k=3)
    assert answer.scores == [10.0, 10.0] and answer.info["seen"] == [3, 3]


def test_a_function_of_one_solution_is_refused():
    def compute_score(data_source, solution_str, ground_truth, extra_info=None):
        return 1.0

    with pytest.raises(ValueError, match="one solution at a time"):
        CustomFunction(compute_score, {}, {})


def test_options_are_offered_and_arguments_must_be_wanted():
    def narrow(prompt, responses, extras):
        return [0.0] * len(responses)

    def wide(prompt, responses, extras, **kwargs):
        return [float(len(kwargs))] * len(responses)

    (answer,) = score(narrow, groups(1), options={"max_workers": 4}, feedback={"last_mean_std": 1.0})
    assert answer.scores == [0.0, 0.0]
    (answer,) = score(wide, groups(1), options={"max_workers": 4}, feedback={"last_mean_std": 1.0}, mine=1)
    assert answer.scores == [3.0, 3.0]
    with pytest.raises(ValueError, match="narrow takes no argument 'mine'"):
        CustomFunction(narrow, {}, {"mine": 1})


def test_what_verl_wraps_around_a_function_is_seen_through():
    def raw(prompt, responses, extras):
        return [1.0] * len(responses)

    def _call_with_kwargs(raw_fn, extra_kwargs, *args, **kwargs):
        return raw_fn(*args, **{**kwargs, **extra_kwargs})

    def wrapping(raw_fn):
        def wrapped_fn(*args, **kwargs):
            return raw_fn(*args, **kwargs)

        return wrapped_fn

    for wrapped in (functools.partial(_call_with_kwargs, raw, {}), wrapping(raw), functools.partial(raw)):
        assert unwrap(wrapped) is raw
        assert score(wrapped, groups(1), options={"max_workers": 4})[0].scores == [1.0, 1.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda question, answers: [0.0] * len(answers),
        lambda prompt, extras: [],
        lambda responses: [0.0] * len(responses),
    ],
)
def test_a_function_that_cannot_be_shown_a_group_is_refused(function):
    with pytest.raises(
        ValueError, match=r"a function of a group takes \(prompt, responses, extras, \*\*kwargs\)"
    ):
        CustomFunction(function, {}, {})
    assert CustomFunction(lambda **kwargs: [], {}, {}).function
    assert CustomFunction(lambda prompt, responses: [], {}, {}).function
