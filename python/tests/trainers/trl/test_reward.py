"""`plaudit.trl.Reward`: the arguments of a trainer's call, columns, metrics and pickling."""

from __future__ import annotations

import asyncio
import inspect
import math
import multiprocessing
import pickle
import threading
import warnings
from types import SimpleNamespace
from typing import Any

import child
import plaudit
import pytest
import torch
from conftest import Judge, pairwise
from plaudit.trl import Reward
from plaudit.trl.call import read
from trl.trainer.utils import get_callable_name, is_async_callable

RULES: dict[str, Any] = {
    "name": "rules",
    "components": {
        "right": {"reward": "accuracy", "weight": 1.0},
        "short": {"reward": "total_length", "weight": 0.5, "unit": "token", "max": 4, "band": 2},
        "shape": {"reward": "reasoning_format", "weight": 0},
    },
}
REQUIRED = {**RULES, "components": {**RULES["components"], "right": {"reward": "accuracy", "required": True}}}
_SEQUENCE = SimpleNamespace(input_ids=[1], completion_mask=[1], old_log_probs=[0.0])


def test_names_and_signatures_are_what_trainers_look_for() -> None:
    reward = Reward(RULES)
    assert get_callable_name(reward) == "rules"
    assert get_callable_name(Reward(RULES, name="mine")) == "mine"
    assert [get_callable_name(column) for column in reward.as_columns()] == ["right", "short", "shape"]
    assert reward.weights == [1.0, 0.5, 0.0]
    for plain in (reward, *reward.as_columns()):
        assert not is_async_callable(plain)
        assert len(inspect.signature(plain).parameters) >= 2
    for awaited in (reward.as_async(), *reward.as_async().as_columns()):
        assert is_async_callable(awaited)
        assert len(inspect.signature(awaited).parameters) >= 2


def test_a_mistake_in_the_recipe_is_told_at_once() -> None:
    with pytest.raises(plaudit.RecipeError):
        Reward({"components": {"a": {"reward": "no_such_reward"}}})
    with pytest.raises(ValueError, match="join"):
        Reward(RULES, join="torch")
    with pytest.raises(ValueError, match="size"):
        Reward(RULES, size=0)


def test_groups_that_are_too_large_are_refused_at_the_first_step() -> None:
    compared = {"reward": "principle", "principles": ["helpfulness"], "aggregate": "dgr"}
    reward = Reward({"components": {"q": compared}, "judges": {"j": {"kind": "overlap"}}}, size=17)
    with pytest.raises(ValueError, match="groups of 17 are too large .* dgr takes at most 16"):
        reward(["q"] * 17, [f"answer {at}" for at in range(17)], answer=["red"] * 17)


def test_token_counts_and_references_are_read() -> None:
    reward = Reward(RULES)
    got = reward(["q", "q"], ["red", "blue"], [[1, 2], [1, 2, 3]], answer=["red", "red"])
    assert got == [1.0, -0.25]
    assert reward(["q"], ["red"], solution=["red"]) == [1.0]
    assert reward(["q"], ["red"], answer=["blue"], gold=["red"]) == [0.0]
    mapped = Reward(RULES, columns={"gold": "reference"})
    assert mapped(["q"], ["red"], answer=["blue"], gold=["red"]) == [1.0]
    assert Reward(RULES)(["q"], ["7"], answer=[7]) == [1.0]
    assert reward(["q", "q"], ["red", "blue"], answer=[["red", "rot"]] * 2) == [1.0, 0.0]
    with pytest.raises(ValueError, match="columns="):
        reward(["q"], ["red"], answer=[object()])
    with pytest.raises(ValueError, match="no such column"):
        mapped(["q"], ["red"], answer=["red"])


def test_messages_become_text_or_a_conversation() -> None:
    prompt = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "why?"}]}]
    completion = [
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "let me see",
            "tool_calls": [{"function": {"name": "f"}}],
        },
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "it is 42"},
    ]
    rows, keys = read([prompt], [completion], None, {}, {}, "prompt")
    assert rows[0].prompt == [{"role": "user", "content": "why?"}]
    assert rows[0].response == completion
    text, _ = read([prompt], [completion[2:]], None, {}, {}, "prompt")
    assert text[0].response == "it is 42"
    # Only the model's own final words are right or wrong.
    right = Reward({"components": {"right": {"reward": "number_accuracy"}}})
    wrong = [*completion[:2], {"role": "assistant", "content": "I do not know"}]
    assert right([prompt, prompt], [completion, wrong], answer=["42", "42"]) == [1.0, 0.0]
    odd = [{**completion[0], "tool_calls": [{"function": {"name": 7}}, {"function": {}}]}, *completion[1:]]
    assert right([prompt], [odd], answer=["42"]) == [1.0]
    assert keys == read([prompt], [completion], None, {}, {}, "prompt")[1]
    reward = Reward(RULES)
    assert reward([prompt], [[{"role": "assistant", "content": "red"}]], answer=["red"]) == [1.0]


def test_other_columns_reach_the_rewards_as_extra() -> None:
    others = {
        "source": ["a"],
        "image": [object()],
        "level": [3],
        "trainer_state": object(),
        "log_metric": print,
    }
    rows, _ = read(["q"], ["r"], None, others, {"source": "data_source", "level": None}, "prompt")
    assert rows[0].extra == {"data_source": "a"}


def test_completions_without_a_number_are_none() -> None:
    only = {"name": "only", "components": {"right": {"reward": "accuracy", "required": True}}}
    assert Reward(only)(["q", "q"], ["red", "red"], answer=["red", None]) == [1.0, None]


def test_none_rows_are_none_in_every_column() -> None:
    columns = Reward(REQUIRED).as_columns()
    handed = {
        "prompts": ["q", "q"],
        "completions": ["red", "red"],
        "completion_ids": [[1], [1]],
        "answer": ["red", None],
    }
    assert [column(**handed) for column in columns] == [[1.0, None], [0.0, None], [0.0, None]]


def test_skipped_components_are_none_in_their_column() -> None:
    columns = Reward(RULES).as_columns()
    got = [column(["q"], ["red"], [[1]]) for column in columns]
    assert got == [[None], [0.0], [0.0]]


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ({**RULES, "combine": "mean"}, "`combine: mean`"),
        (
            {
                "components": {
                    "format": {"reward": "reasoning_format", "gate": {"min": 1.0, "total": -1.0}},
                    "right": {"reward": "math"},
                }
            },
            "the gate of `format`",
        ),
        (
            {
                "name": "sent",
                "route": {"by": "extra.source", "cases": {"a": "math"}, "default": "quickstart"},
            },
            "`route`",
        ),
    ],
)
def test_a_recipe_that_is_no_sum_is_not_taken_apart(recipe: Any, why: str) -> None:
    for reward in (Reward(recipe), Reward(recipe).as_async()):
        with pytest.raises(ValueError, match=f"cannot be taken apart into columns.*{why}"):
            reward.as_columns()


def test_a_gate_without_a_total_of_its_own_can_be_taken_apart() -> None:
    gated = {
        **RULES,
        "components": {**RULES["components"], "right": {"reward": "accuracy", "gate": {"min": 1.0}}},
    }
    columns = Reward(gated).as_columns()
    got = [column(["q", "q"], ["red", "blue"], [[1], [1]], answer=["red", "red"]) for column in columns]
    assert got == [[1.0, 0.0], [0.0, None], [0.0, None]]


def test_why_completions_have_no_reward_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    reward = Reward(REQUIRED)
    for _ in range(3):
        reward(["q", "q"], ["red", "red"], [[1], [1]], answer=["red", None])
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert (
        "1 of 2 completions have no reward from `rules`: 1 x input.missing_reference (" in record.getMessage()
    )


def test_array_columns_and_columns_of_other_lengths() -> None:
    rows, _ = read(["q", "q"], ["a", "b"], None, {"level": torch.tensor([1, 2])}, {}, "prompt")
    assert [row.extra for row in rows] == [{"level": 1}, {"level": 2}]
    with pytest.warns(UserWarning, match="`level` has 3 values for 2 completions"):
        rows, _ = read(["q", "q"], ["a", "b"], None, {"level": [1, 2, 3]}, {}, "prompt")
    assert [row.extra for row in rows] == [{}, {}]
    with pytest.warns(UserWarning, match="did you mean 'reference'"):
        Reward(RULES, columns={"gold": "refrence"})


def test_other_types_are_named_with_their_place() -> None:
    reward = Reward(RULES)
    with pytest.raises(ValueError, match=r"completions\[1\] is None"):
        reward(["q", "q"], ["red", None])
    with pytest.raises(ValueError, match=r"prompts\[0\] is \[{'content': 'q'}\]; .*messages with `role`"):
        reward([[{"content": "q"}]], ["red"])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_columns_share_one_evaluation(monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]) -> None:
    reward = Reward(RULES)
    calls = _count_evaluations(monkeypatch, reward)
    columns = reward.as_columns()
    for answer in ("red", "blue", "red"):
        got = {at: columns[at](["q"], ["red"], [[1, 2, 3]], answer=[answer]) for at in order}
        assert got == {0: [float(answer == "red")], 1: [-0.5], 2: [0.0]}
    assert len(calls) == 3


def test_columns_in_threads_share_one_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """As AsyncGRPOTrainer calls them: every column in a thread of its own, several groups at once."""
    reward = Reward(RULES)
    calls = _count_evaluations(monkeypatch, reward)
    columns = reward.as_columns()

    async def group(number: int) -> list[list[float | None]]:
        handed = {
            "prompts": [f"q{number}"],
            "completions": [str(number)],
            "completion_ids": [[1]],
            "answer": ["7"],
        }
        return await asyncio.gather(*(asyncio.to_thread(column, **handed) for column in columns))

    async def groups() -> list[list[list[float | None]]]:
        return await asyncio.gather(*(group(number) for number in range(50)))

    got = asyncio.run(groups())
    assert got == [[[float(number == 7)], [0.0], [0.0]] for number in range(50)]
    assert len(calls) == 50


def test_columns_that_nobody_asks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaudit.trl.columns.MAX_OPEN", 8)
    column = Reward(RULES).as_columns()[0]
    for number in range(30):
        column([f"q{number}"], ["red"], [[1]], answer=["red"])
    assert len(column._evaluations._open) == 8


def test_failed_evaluations_fail_all_columns_and_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    reward = Reward(RULES)
    columns = reward.as_columns()
    evaluate = reward.evaluate
    broken = threading.Event()
    broken.set()

    def sometimes(call: Any) -> Any:
        if broken.is_set():
            raise RuntimeError("the disk is full")
        return evaluate(call)

    monkeypatch.setattr(reward, "evaluate", sometimes)
    with pytest.raises(RuntimeError, match="disk"):
        columns[0](["q"], ["red"], [[1]], answer=["red"])
    broken.clear()
    assert [column(["q"], ["red"], [[1]], answer=["red"]) for column in columns] == [[1.0], [0.0], [0.0]]


def test_async_columns_share_one_evaluation() -> None:
    columns = Reward(RULES).as_async().as_columns()

    async def all_of_them() -> list[list[float | None]]:
        return await asyncio.gather(
            *(column(["q"], ["red"], [[1, 2, 3]], answer=["red"]) for column in columns)
        )

    assert asyncio.run(all_of_them()) == [[1.0], [-0.5], [0.0]]


def test_equal_prompts_next_to_one_another_stay_two_groups(judge: Judge) -> None:
    """In one group of four, the two best would win against the others; in two groups of two, one of each wins."""
    texts = [f"[[quality:{number}]]" for number in (3, 2, 1, 0)]
    as_one = Reward(pairwise(judge), size=4)(["q"] * 4, texts)
    as_two = Reward(pairwise(judge), size=2)(["q"] * 4, texts)
    assert all(isinstance(value, float) for value in as_one + as_two)
    assert as_one[0] > as_one[1] > 0.0 > as_one[2] > as_one[3]
    assert as_two[0] > 0.0 > as_two[1] and as_two[2] > 0.0 > as_two[3]


def test_a_column_can_say_what_a_group_is(judge: Judge) -> None:
    texts = [f"[[quality:{number}]]" for number in (3, 2, 1, 0)]
    got = Reward(pairwise(judge), group="topic")(["q"] * 4, texts, topic=["x", "y", "x", "y"])
    assert got[0] > 0.0 > got[2] and got[1] > 0.0 > got[3]
    with pytest.raises(ValueError, match="topic"):
        Reward(pairwise(judge), group="topic")(["a"], ["b"])


def test_a_part_of_a_group_is_scored_and_said_once(judge: Judge) -> None:
    reward = Reward(pairwise(judge), size=4)
    with pytest.warns(RuntimeWarning, match="of 1 groups only a part was here"):
        got = reward(["q"] * 3, [f"[[quality:{number}]]" for number in (3, 2, 0)])
    assert got[0] > got[1] > got[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reward(["q"] * 3, [f"[[quality:{number}]]" for number in (3, 2, 0)])


@plaudit.register("stated")
def stated(prompts: list[Any], responses: list[str], references: list[Any], extras: list[Any]) -> list[float]:
    """The number that the response is."""
    return [float(response) for response in responses]


@pytest.mark.parametrize("size", [5, 6, 8, 16])
def test_a_group_without_differences_has_no_advantage_at_all(size: int) -> None:
    """TRL's own arithmetic, in single precision: the mean of equal numbers must be that number."""
    from trl.trainer.utils import nanstd

    numbers = (16.0 * torch.rand(1000, generator=torch.Generator().manual_seed(0)) - 8.0).tolist()
    handed = [str(number) for number in numbers for _ in range(size)]
    prompts = [f"q{row // size}" for row in range(len(handed))]
    differing = {}
    for rounds in (True, False):
        recipe = {"name": "stated", "components": {"stated": {"reward": "stated"}}}
        got = Reward(recipe, round=rounds)(prompts, handed)
        rewards = torch.tensor(got, dtype=torch.float32).view(-1, size)
        advantages = (rewards - torch.nanmean(rewards, dim=1, keepdim=True)) / (
            nanstd(rewards, dim=1, keepdim=True) + 1e-4
        )
        differing[rounds] = int((advantages != 0.0).any(dim=1).sum())
    assert differing[True] == 0
    assert differing[False] > 0 or size in (8, 16), (
        "without rounding, some groups of equal rewards do have advantages"
    )


def test_everything_works_in_a_spawned_child() -> None:
    reward = Reward(RULES)
    reward(["q"], ["red"], answer=["red"])
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    process = spawn.Process(
        target=child.score, args=(reward, reward.as_columns(), reward.as_async(), answers)
    )
    process.start()
    assert answers.get(timeout=300) == ([0.75], [[1.0], [-0.5], [0.0]], [0.75])
    process.join(60)
    assert process.exitcode == 0


def test_the_group_scoring_of_async_grpo_takes_it() -> None:
    """TRL's own code of its asynchronous trainer: whole groups, sync rewards in threads, None left out."""
    from accelerate import PartialState
    from trl.experimental.async_grpo import async_rollout_worker as worker

    PartialState()  # which the trainer has made before
    loop_class = next(
        member for _, member in inspect.getmembers(worker, inspect.isclass) if "_score_group" in vars(member)
    )
    reward = Reward(REQUIRED)
    loop = loop_class.__new__(loop_class)
    loop.reward_funcs = [*reward.as_columns(), reward.as_async()]
    loop.reward_func_names = [get_callable_name(function) for function in loop.reward_funcs]
    loop._env_reward_types = []
    fields = {name: [] for name in inspect.signature(worker.RolloutGroup).parameters}
    group = worker.RolloutGroup(
        **{
            **fields,
            "prompts": [[{"role": "user", "content": "q"}]] * 3,
            "completions": [[{"role": "assistant", "content": text}] for text in ("red", "blue", "red")],
            "completions_ids": [[1], [1], [1]],
            "completions_sequences": [[_SEQUENCE], [_SEQUENCE], [_SEQUENCE]],
            "reward_kwargs": {"answer": ["red", "red", None]},
            "tool_call_counts": [0, 0, 0],
            "tool_failure_counts": [0, 0, 0],
        }
    )
    samples = asyncio.run(loop._score_group(group))
    assert [sample.metrics["rewards/rules"] for sample in samples[:2]] == [1.0, 0.0]
    assert [sample.metrics["rewards/right"] for sample in samples[:2]] == [1.0, 0.0]
    assert samples[0].advantage > 0.0 > samples[1].advantage
    assert samples[2].advantage == 0.0 and math.isnan(samples[2].metrics["reward"])


def _count_evaluations(monkeypatch: pytest.MonkeyPatch, reward: Reward) -> list[int]:
    calls: list[int] = []
    evaluate = reward.evaluate

    def counted(call: Any) -> Any:
        calls.append(len(call.rows))
        return evaluate(call)

    monkeypatch.setattr(reward, "evaluate", counted)
    return calls


def ones(prompts: Any, responses: Any, references: Any, extras: Any) -> list[float]:
    return [1.0] * len(responses)


def test_a_reward_keeps_its_functions_wherever_it_goes() -> None:
    plaudit.register("test_reward.versioned")(ones)
    reward = Reward({"components": {"mine": {"reward": "test_reward.versioned"}}})
    plaudit.register("test_reward.versioned")(
        lambda prompts, responses, references, extras: [2.0] * len(responses)
    )
    assert pickle.loads(pickle.dumps(reward))(["p"], ["a"]) == reward(["p"], ["a"]) == [1.0]
