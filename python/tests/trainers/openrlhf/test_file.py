"""The file that OpenRLHF loads: single samples, groups, settings, and samples that cannot be scored."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fixtures
import plaudit
import pytest
from conftest import pairwise, written
from plaudit import openrlhf
from plaudit.openrlhf import Settings


@plaudit.register("picky")
def picky(prompts: list[Any], responses: list[str], references: list[Any], extras: list[Any]) -> list[Any]:
    """The number that a response is; `nan` cannot be scored, which is not the model's fault."""
    return [float(response) for response in responses]


@pytest.fixture
def make_rewards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes the rewards of this process anew, for one environment."""

    def make(recipe: dict[str, Any], **environment: str) -> openrlhf.Rewards:
        for name in [name for name in os.environ if name.startswith("PLAUDIT_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PLAUDIT_RECIPE", written(tmp_path, recipe))
        for name, value in environment.items():
            monkeypatch.setenv(f"PLAUDIT_{name}", value)
        monkeypatch.setattr(openrlhf, "_rewards", [])
        return openrlhf.rewards()

    return make


PICKY = {"name": "picky", "components": {"picky": {"reward": "picky"}}}


def ask(samples: list[tuple[str, str]]) -> list[Any]:
    """Hands in samples of (prompt, response) as OpenRLHF's executor does, all at once; an exception is an answer too."""
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    async def all_of_them() -> list[Any]:
        executor = SingleTurnAgentExecutor(None)
        executor.reward_func = openrlhf.reward_func
        fetched = (
            executor._fetch_rewards_via_func([prompt + said], [prompt], [""]) for prompt, said in samples
        )
        return await asyncio.gather(*fetched, return_exceptions=True)

    return [each if isinstance(each, Exception) else each[0] for each in asyncio.run(all_of_them())]


def test_labels_may_be_tests_of_a_program(make_rewards: Any) -> None:
    make_rewards({"name": "programs", "components": {"tests": {"reward": "code"}}})
    tests = '{"inputs": ["7", "8"], "outputs": ["7", "8"]}'
    programs = ["print(input())", "print(7)", "while"]
    said = [f"```python\n{program}\n```" for program in programs]
    answers = openrlhf.reward_func([f"Echo.{one}" for one in said], ["Echo."] * 3, [tests] * 3)
    assert [float(reward) for reward in answers["rewards"]] == [1.0, 0.5, 0.0]


def test_invalid_samples_get_the_mean_of_their_siblings(make_rewards: Any) -> None:
    make_rewards(PICKY, GROUP_SIZE="4")
    got = ask([("q ", "1"), ("q ", "nan"), ("q ", "2"), ("q ", "6")])
    assert [each["rewards"] for each in got] == [1.0, 3.0, 2.0, 6.0]
    assert [each["extra_logs"]["plaudit/invalid"] for each in got] == [0.0, 1.0, 0.0, 0.0]
    assert [each["extra_logs"]["plaudit/picky_missing"] for each in got] == [0.0, 1.0, 0.0, 0.0]


def test_siblings_do_not_wait_for_a_query_without_its_prompt(make_rewards: Any) -> None:
    made = make_rewards(PICKY, GROUP_SIZE="3")
    with pytest.raises(plaudit.ArgumentError, match="agent_func_path"):
        made.score("something else entirely", "q ", "")
    assert [each["rewards"] for each in ask([("q ", "nan"), ("q ", "2")])] == [2.0, 2.0]


def test_a_group_in_which_nothing_could_be_scored_raises(make_rewards: Any) -> None:
    make_rewards(PICKY, GROUP_SIZE="2")
    got = ask([("q ", "nan"), ("q ", "nan"), ("r ", "1"), ("r ", "2")])
    assert [type(each) for each in got] == [RuntimeError, RuntimeError, dict, dict]
    assert "none of its siblings" in str(got[0]) or "nor could any" in str(got[0])


def test_a_label_that_is_missing_is_told_with_its_option(make_rewards: Any) -> None:
    make_rewards({"name": "sums", "components": {"answer": {"reward": "math", "required": True}}})
    with pytest.raises(RuntimeError, match="--data.label_key"):
        openrlhf.reward_func(["q 4"], ["q "], [""])


def test_raising_is_a_choice(make_rewards: Any) -> None:
    make_rewards(PICKY, GROUP_SIZE="2", INVALID="raise")
    got = ask([("q ", "1"), ("q ", "nan")])
    assert got[0]["rewards"] == 1.0 and isinstance(got[1], RuntimeError)


def test_the_filter_may_look_at_one_component(make_rewards: Any) -> None:
    recipe = {
        "name": "two",
        "components": {"picky": {"reward": "picky"}, "half": {"reward": "picky", "weight": 0.5}},
    }
    make_rewards(recipe, SCORE="half")
    (got,) = ask([("q ", "2")])
    assert (got["rewards"], got["scores"]) == (3.0, 2.0)


def test_equal_prompts_form_groups_in_order_of_arrival(make_rewards: Any, judge: str) -> None:
    make_rewards(pairwise(judge), GROUP_SIZE="2")
    first = ask([("q ", "[[quality:3]]"), ("q ", "[[quality:0]]")])
    second = ask([("q ", "[[quality:1]]"), ("q ", "[[quality:2]]")])
    values = [each["rewards"] for each in first + second]
    assert values[0] > 0.0 > values[1] and values[3] > 0.0 > values[2]


def test_a_missing_sibling_ends_its_group_only(make_rewards: Any, judge: str) -> None:
    recipe = pairwise(judge)
    recipe["groups"] = {"timeout": "1s"}
    make_rewards(recipe, GROUP_SIZE="3")
    got = ask([("q ", "[[quality:3]]"), ("q ", "[[quality:0]]")])
    assert [each["extra_logs"]["plaudit/partial"] for each in got] == [1.0, 1.0]
    got = ask([("q ", f"[[quality:{number}]]") for number in range(3)])
    assert [each["extra_logs"]["plaudit/group_size"] for each in got] == [3.0, 3.0, 3.0]


def test_a_generation_that_fails_lets_its_siblings_go_on(make_rewards: Any, judge: str) -> None:
    """The agent tells the join, so nobody waits for the deadline of 30 s."""
    make_rewards(pairwise(judge))
    words = fixtures.tokenizer()
    calls = iter(range(100))
    passed = threading.Event()

    class Engine:
        async def generate(self, tokens: list[int], parameters: Any, multi_modal_data: Any = None) -> Any:
            number = next(calls)
            await asyncio.sleep(0)
            if number == 1:
                passed.set()
                raise RuntimeError("out of memory")
            return SimpleNamespace(
                outputs=[SimpleNamespace(token_ids=[3 + number, 1], finish_reason="stop", logprobs=None)]
            )

    async def group() -> list[Any]:
        executor = openrlhf.AgentExecutor()
        parameters = SimpleNamespace(max_tokens=8, logprobs=None)
        samples = (executor.execute("q1", "", parameters, 64, words, Engine()) for _ in range(3))
        return await asyncio.wait_for(asyncio.gather(*samples, return_exceptions=True), 20)

    got = asyncio.run(group())
    assert passed.is_set() and isinstance(got[1], RuntimeError)
    assert got[0]["reward"] < 0.0 < got[2]["reward"]


def test_a_recipe_that_compares_needs_the_size(make_rewards: Any, judge: str) -> None:
    make_rewards(pairwise(judge))
    (got,) = ask([("q ", "red")])
    assert isinstance(got, ValueError) and "PLAUDIT_GROUP_SIZE" in str(got)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECIPE", ""),
        ("GROUP_SIZE", "many"),
        ("INVALID", "zero"),
        ("SET", "weight"),
        ("JOIN", "torch"),
        ("TIMEOUT", "5s"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"PLAUDIT_{name}"):
        Settings.read({"PLAUDIT_RECIPE": "math", f"PLAUDIT_{name}": value})


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RECIPE": "maht"}, "maht"),
        ({}, "PLAUDIT_RECIPE must name a recipe"),
        ({"RECIPE": "tutorial"}, "PLAUDIT_GROUP_SIZE"),
        (
            {"RECIPE": "tutorial", "GROUP_SIZE": "17", "SET": "components.principle.aggregate=dgr"},
            "dgr takes at most 16",
        ),
    ],
)
def test_a_mistake_is_logged_and_raised_when_the_file_is_loaded(
    environment: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in openrlhf.SETTINGS:
        monkeypatch.delenv(f"PLAUDIT_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"PLAUDIT_{name}", value)
    # As OpenRLHF loads it.
    spec = importlib.util.spec_from_file_location("reward_func", openrlhf.__file__)
    assert spec is not None and spec.loader is not None
    with pytest.raises((ValueError, plaudit.RecipeError), match=message):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert any(record.levelname == "ERROR" and message in record.getMessage() for record in caplog.records)


def test_a_variable_that_is_no_setting_is_told(make_rewards: Any, caplog: pytest.LogCaptureFixture) -> None:
    make_rewards(PICKY, GROUPSIZE="4", BIN="x")
    (record,) = caplog.records
    assert "PLAUDIT_GROUPSIZE is no setting" in record.getMessage()
    assert "did you mean PLAUDIT_GROUP_SIZE?" in record.getMessage()


def test_overrides_are_read_as_on_the_command_line() -> None:
    said = "judges.main.base_url=http://h:1/v1 components.a.n=3 components.a.b='two words'"
    settings = Settings.read({"PLAUDIT_RECIPE": "math", "PLAUDIT_SET": said})
    assert settings.overrides == {
        "judges.main.base_url": "http://h:1/v1",
        "components.a.n": 3,
        "components.a.b": "two words",
    }


def test_state_folders_do_not_collide(tmp_path: Path) -> None:
    settings = Settings.read({"PLAUDIT_RECIPE": "overlap", "PLAUDIT_STATE": str(tmp_path)})
    first = openrlhf._open_engine(settings)
    source = "from plaudit import openrlhf; openrlhf.rewards()"
    environment = {**os.environ, "PLAUDIT_RECIPE": "overlap", "PLAUDIT_STATE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", source], env=environment, check=True)
    assert first.name == "overlap"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["process-0", "process-1"]


def test_the_response_is_the_query_without_its_prompt(make_rewards: Any) -> None:
    assert openrlhf.response_of("why? because", "why?") == " because"
    assert openrlhf.response_of("<s>why? because", "why?") == " because"
    prompt = "a long story about nothing that ends with a question, why?"
    assert openrlhf.response_of(prompt[20:] + " because", prompt) == " because"
    with pytest.raises(ValueError, match="agent_func_path"):
        openrlhf.response_of("something else", "why? and how?")
    made = make_rewards(PICKY, STOP="[END]")
    assert made.clean(" yes [END]<|im_end|>\n<|endoftext|>") == " yes"


def test_the_module_prints_the_path_to_give_to_openrlhf() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plaudit.openrlhf"], capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == Path(openrlhf.__file__).resolve()


def test_components_that_count_tokens_are_told_once(
    make_rewards: Any, caplog: pytest.LogCaptureFixture
) -> None:
    counted = {"reward": "total_length", "max": 8, "band": 4}
    recipe = {
        "components": {
            "format": {"reward": "reasoning_format"},
            "long": counted,
            "words": {**counted, "unit": "word"},
            "own": {**counted, "tokenizer_type": "simple"},
        }
    }
    make_rewards(recipe)
    for _ in range(2):
        openrlhf.reward_func(["pa"], ["p"], [""])
    told = [record.getMessage() for record in caplog.records if "count tokens" in record.getMessage()]
    assert (
        len(told) == 1 and "`long` count" in told[0] and "`words`" not in told[0] and "`own`" not in told[0]
    )
