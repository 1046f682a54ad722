"""The sections about verl on the page "If you use X", and the comparison that opens the README, with verl's own code."""

from __future__ import annotations

import asyncio
import importlib.util
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import documented
import fixtures
import pytest

if importlib.util.find_spec("verl.trainer.ppo.v1") is None:
    pytest.skip("the page is about verl 0.9", allow_module_level=True)

PAGE = "docs/guide/if-you-use.md"


def test_prime_code_prints_what_the_page_says() -> None:
    documented.run(PAGE, "prime_code")


def test_a_judge_that_fails_before_and_after(
    loops: Callable[..., Any], words: Any, tmp_path: pathlib.Path
) -> None:
    """The reward function of the page gives 0.0 in verl's manager `naive`; the recipe of the page gives no number."""
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

    async def ask_judge(text: str) -> float:
        raise TimeoutError

    before, recipe, lines = documented.blocks(PAGE, "verl")
    names = {"ask_judge": ask_judge}
    exec(before[1], names)

    async def scored() -> dict[str, Any]:
        manager = NaiveRewardManager(None, words, names["compute_score"])
        return await manager.run_single(fixtures.rollout(words, "yes"))

    answer = asyncio.run(scored())
    assert answer["reward_score"] == 0.0 and answer["reward_extra_info"] == {"acc": 0.0}

    file = tmp_path / "my_run.yaml"
    file.write_text(recipe[1].replace("http://127.0.0.1:8000/v1", "http://127.0.0.1:9/v1"))
    changes = lines[1].replace("my_run.yaml", str(file)).split()
    judge = "+reward.reward_kwargs.overrides.judges.main"
    loop = loops(*changes, f"{judge}.patience=1ms", f"{judge}.attempts=1", "actor_rollout_ref.rollout.n=2")
    group = [fixtures.rollout(words, text, uid="one", session=at) for at, text in enumerate(("yes", "no"))]
    for answer in loop.score(group):
        assert answer["reward_extra_info"]["plaudit/invalid"] == 1.0


def test_the_comparison_of_the_readme() -> None:
    script = documented.ROOT / "examples/verl/judge_timeout.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    readme = (documented.ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n( +verl rate_limited.*?)```", readme, re.DOTALL)
    assert done.stdout == shown
