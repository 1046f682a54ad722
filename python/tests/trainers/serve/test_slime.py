"""slime's `remote_rm` with rewards from the service.

slime is not on the package index (what is called so there is something else), so its client cannot be installed here. `remote_rm`
below is our own, written from the published facts about slime's: the payload, the retries after any exception, what is returned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from conftest import RULES, Processes, Running, new_token, taste


@dataclass
class Sample:
    prompt: Any
    response: str
    label: Any = None


async def remote_rm(session: aiohttp.ClientSession, url: str, sample: Sample, tries: int) -> Any:
    payload = {"prompt": sample.prompt, "response": sample.response, "label": sample.label}
    for left in reversed(range(tries)):
        try:
            async with session.post(url, json=payload) as answer:
                answer.raise_for_status()
                return await answer.json()
        except Exception:
            if left == 0:
                raise
            await asyncio.sleep(0.1)
    raise AssertionError("it is tried at least once")


def ask(url: str, samples: list[Sample], *, tries: int = 1, total: float = 120.0) -> list[Any]:
    """All at once, as a rollout of slime does; an exception is an answer, too."""

    async def all_of_them() -> list[Any]:
        timeout = aiohttp.ClientTimeout(total=total)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=64), timeout=timeout
        ) as session:
            asked = (remote_rm(session, url, sample, tries) for sample in samples)
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_the_body_is_the_reward(serve: Callable[..., str]) -> None:
    url = serve(RULES)
    samples = [Sample("q", "red", "red"), Sample("q", "blue", "red")]
    assert ask(f"{url}/slime/rules", samples) == [1.0, 0.0]
    chat = [{"role": "user", "content": "q"}]
    got = ask(f"{url}/slime/rules/my-run?key=score", [Sample(chat, "red", {"reference": "red"})])
    assert got == [{"score": 1.0, "right": 1.0, "shape": 0.0}]


def test_what_has_no_number_raises(serve: Callable[..., str]) -> None:
    url = serve(RULES)
    (got,) = ask(f"{url}/slime/rules", [Sample("q", "red")], tries=3)
    assert isinstance(got, aiohttp.ClientResponseError) and got.status == 422


def test_samples_of_one_prompt_are_compared(serve: Callable[..., str], judge: Running) -> None:
    url = f"{serve(taste(judge.url))}/slime/taste?size=4"
    for _ in range(2):  # The same prompts come back in the next epoch.
        samples = [Sample(f"q{prompt}", f"[[quality:{mark}]]") for mark in range(4) for prompt in range(3)]
        got = ask(url, samples)
        for prompt in range(3):
            assert got[prompt::3] == sorted(got[prompt::3]) and got[prompt] < 0.0 < got[9 + prompt]


def test_a_recipe_that_compares_needs_the_size(serve: Callable[..., str], judge: Running) -> None:
    (got,) = ask(f"{serve(taste(judge.url))}/slime/taste", [Sample("q", "x")])
    assert isinstance(got, aiohttp.ClientResponseError) and got.status == 400


def test_a_judge_that_is_down_is_no_reward_and_may_come_back(
    serve: Callable[..., str], running: Processes
) -> None:
    gone = running("judge-sim", "--port", "0", "--latency", "0")
    gone.stop()
    url = f"{serve(taste(gone.url))}/slime/taste?size=2"
    samples = [Sample("q", f"[[quality:{mark}]]") for mark in range(2)]
    got = ask(url, samples)
    assert [isinstance(each, aiohttp.ClientResponseError) and each.status for each in got] == [502, 502]
    running("judge-sim", "--port", gone.url.rsplit(":", 1)[1].split("/")[0], "--latency", "0")
    got = ask(url, samples, tries=50)
    assert got[0] < 0.0 < got[1]


@pytest.mark.parametrize("path", ["slime/nothing", "slime/rules?sizes=4", "slime/rules/a/b"])
def test_a_wrong_address_is_told(serve: Callable[..., str], path: str) -> None:
    (got,) = ask(f"{serve(RULES)}/{path}", [Sample("q", "red", "red")])
    assert isinstance(got, aiohttp.ClientResponseError) and 400 <= got.status < 500


def test_the_address_may_hold_the_token(serve: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file)
    url = serve(RULES, flags=("--token-file", str(file)))
    address = url.removeprefix("http://")
    sample = Sample("q", "red", "red")
    assert ask(f"http://trainer:{token}@{address}/slime/rules", [sample]) == [1.0]
    for wrong in (f"{url}/slime/rules", f"http://trainer:nothing@{address}/slime/rules"):
        (got,) = ask(wrong, [sample])
        assert isinstance(got, aiohttp.ClientResponseError) and got.status == 401


def test_one_whose_client_went_away_finds_its_place_again(serve: Callable[..., str], judge: Running) -> None:
    """The first gives up twice while it waits for the second, and is not taken for a sibling of itself."""
    url = f"{serve(taste(judge.url))}/slime/taste?size=2"
    low, high = Sample("q", "[[quality:0]]"), Sample("q", "[[quality:3]]")
    for _ in range(2):
        (got,) = ask(url, [low], total=0.5)
        assert isinstance(got, TimeoutError)
        time.sleep(0.2)
    got = ask(url, [high, low])
    assert got[1] < 0.0 < got[0]
