"""What does a trainer get where a judge fails? The mean of the siblings, flagged; never a number made of the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stage
from test_reward_loop import written

SIZE = 3


@pytest.fixture(scope="module")
def sim() -> Iterator[Any]:
    """A judge that fails two calls in five for good."""
    import os
    import subprocess
    from pathlib import Path

    binary = os.environ.get("PLAUDIT_BIN", str(Path(__file__).parents[4] / "target/release/plaudit"))
    command = [binary, "judge-sim", "--port", "0", "--latency", "0", "--error-rate", "0.4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def recipe(url: str, compares: bool) -> dict[str, Any]:
    judge = {"base_url": url, "model": "sim", "attempts": 1, "retries": 0, "hedge": 0}
    components: dict[str, Any] = {
        "helpful": {
            "reward": "principle",
            "mode": "pointwise",
            "judge": "sim",
            "principles": ["helpfulness"],
        },
    }
    judges: dict[str, Any] = {"sim": judge}
    if compares:
        components["pairs"] = {
            "reward": "principle",
            "mode": "pairwise",
            "judge": "words",
            "principles": ["honesty"],
            "aggregate": "winrate",
        }
        judges["words"] = {"kind": "overlap"}
    return {"name": "failing", "components": components, "judges": judges, "groups": {"timeout": "30s"}}


@pytest.mark.parametrize("compares", [True, False], ids=["compared", "single"])
def test_invalid_rollouts_get_the_mean_of_their_valid_siblings(
    loops: Callable[..., Any], words: Any, sim: str, compares: bool, tmp_path: Any
) -> None:
    loop = loops(
        *stage.plaudit(written(recipe(sim, compares), tmp_path)),
        "reward.num_workers=2",
        f"actor_rollout_ref.rollout.n={SIZE}",
    )
    rollouts = [
        stage.rollout(words, f"{word} {group_word} answer", uid=f"{compares}-{group}", session=session)
        for group, group_word in enumerate(stage.WORDS * 2)
        for session, word in enumerate(("red", "green", "blue"))
    ]
    answers = loop.score(rollouts)
    kinds = set()
    for at in range(0, len(answers), SIZE):
        group = answers[at : at + SIZE]
        flags = [answer["reward_extra_info"]["plaudit/invalid"] for answer in group]
        scores = [answer["reward_score"] for answer in group]
        valid = [score for score, flag in zip(scores, flags, strict=True) if not flag]
        mean = sum(valid) / len(valid) if valid else 0.0
        assert all(score == pytest.approx(mean) for score, flag in zip(scores, flags, strict=True) if flag)
        kinds.add(len(valid))
    assert {0, 1, 2} <= kinds, f"the judge failed too regularly to see every case: {kinds}"
