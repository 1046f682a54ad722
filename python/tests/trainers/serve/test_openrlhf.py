"""OpenRLHF's own remote reward client with rewards from the service.

`SingleTurnAgentExecutor` of openrlhf from the package index generates with a stand-in engine, decodes, asks over HTTP and
tries again by itself; its `SamplesGenerator` then makes an experience of the answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from conftest import RULES, Processes, Running, taste

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "openrlhf"))

import fixtures  # noqa: E402


class Engine:
    """Says the next of its texts, and ends it as a model does."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = iter(texts)
        self._words = fixtures.tokenizer()

    async def generate(self, tokens: list[int], parameters: Any, multi_modal_data: Any = None) -> Any:
        ids = [
            *self._words(next(self._texts), add_special_tokens=False)["input_ids"],
            self._words.eos_token_id,
        ]
        await asyncio.sleep(0)
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=ids, finish_reason="stop", logprobs=None, text="")]
        )


def roll_out(urls: str | list[str], samples: list[tuple[str, str, Any]]) -> list[dict[str, Any]]:
    """Samples of (prompt, text, label), all at once, as OpenRLHF's rollout actor has them made."""
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    async def all_of_them() -> list[Any]:
        executor = SingleTurnAgentExecutor(urls)
        engine = Engine([text for _, text, _ in samples])
        parameters = SimpleNamespace(max_tokens=16, logprobs=None)
        made = (
            executor.execute(prompt, label, parameters, 64, fixtures.tokenizer(), engine)
            for prompt, _, label in samples
        )
        return await asyncio.gather(*made)

    return asyncio.run(all_of_them())


def experience(output: dict[str, Any]) -> Any:
    """What OpenRLHF makes of an output for its trainer."""
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

    return SamplesGenerator._process_response_into_experience(SimpleNamespace(), output, max_len=64)


def test_rewards_scores_and_logs_become_experiences(serve: Callable[..., str]) -> None:
    url = f"{serve(RULES)}/openrlhf/rules"
    got = roll_out(url, [("q1", "red", "red"), ("q1", "blue", "red")])
    assert [each["reward"] for each in got] == [1.0, 0.0]
    assert [each["scores"] for each in got] == [1.0, 0.0]
    made = experience(got[0])
    assert made.rewards.shape == made.scores.shape == (1,) and made.rewards.item() == 1.0
    assert made.info["plaudit/right"].item() == 1.0 and made.info["plaudit/shape_missing"].item() == 0.0


def test_the_filter_may_look_at_one_component(serve: Callable[..., str]) -> None:
    (got,) = roll_out(f"{serve(RULES)}/openrlhf/rules/my-run?score=shape", [("q1", "red", "red")])
    assert (got["reward"], got["scores"]) == (1.0, 0.0)


def test_samples_of_one_prompt_are_compared(serve: Callable[..., str], judge: Running) -> None:
    service = serve(taste(judge.url))
    urls = [f"{service}/openrlhf/taste?size=4"] * 2  # It takes them in turn.
    for _ in range(2):  # The same prompts come back in the next epoch.
        samples = [(f"q{prompt}", f"[[quality:{mark}]]", "") for mark in range(4) for prompt in range(3)]
        got = [each["reward"] for each in roll_out(urls, samples)]
        for prompt in range(3):
            assert got[prompt::3] == sorted(got[prompt::3]) and got[prompt] < 0.0 < got[9 + prompt]


def test_what_has_no_number_is_none_and_not_zero(serve: Callable[..., str], running: Processes) -> None:
    gone = running("judge-sim", "--port", "0", "--latency", "0")
    gone.stop()
    begun = time.monotonic()
    got = roll_out(f"{serve(taste(gone.url))}/openrlhf/taste?size=2", [("q1", "red", ""), ("q1", "blue", "")])
    assert time.monotonic() - begun > 4.0, "it tries five times, a second apart"
    assert [each["reward"] for each in got] == [None, None]
    assert experience(got[0]).rewards is None


def test_a_judge_that_comes_back_is_asked_again(serve: Callable[..., str], running: Processes) -> None:
    gone = running("judge-sim", "--port", "0", "--latency", "0")
    gone.stop()
    url = f"{serve(taste(gone.url))}/openrlhf/taste?size=2"
    port = gone.url.rsplit(":", 1)[1].split("/")[0]

    async def come_back() -> None:
        await asyncio.sleep(1.5)
        await asyncio.to_thread(running, "judge-sim", "--port", port, "--latency", "0")

    from openrlhf.utils.agent import SingleTurnAgentExecutor

    async def both() -> list[Any]:
        executor = SingleTurnAgentExecutor(url)
        asked = [
            executor._fetch_rewards_via_http([f"q [[quality:{mark}]]<eos>"], ["q"], [""]) for mark in range(2)
        ]
        *got, _ = await asyncio.gather(*asked, come_back())
        return [each[0]["rewards"] for each in got]

    low, high = asyncio.run(both())
    assert low < 0.0 < high
