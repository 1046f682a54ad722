"""Tests of invalid rollouts in verl's reward loop: they get the mean of their siblings, and a flag."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fixtures
import pytest
from test_reward_loop import written

SIZE = 3


@pytest.fixture
def sim() -> Iterator[Callable[[str], str]]:
    """Starts a judge that fails a share of its calls for good, and gives its address."""
    binary = os.environ.get("PLAUDIT_BIN", str(Path(__file__).parents[4] / "target/release/plaudit"))
    started: list[subprocess.Popen[str]] = []

    def start(failing: str) -> str:
        command = [binary, "judge-sim", "--port", "0", "--latency", "0", "--error-rate", failing]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def recipe(url: str, compares: bool) -> dict[str, Any]:
    judge = {"base_url": url, "model": "sim", "attempts": 1, "retry_share": 0, "hedge_share": 0}
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
    loops: Callable[..., Any], words: Any, sim: Callable[[str], str], compares: bool, tmp_path: Any
) -> None:
    loop = loops(
        *fixtures.plaudit(written(recipe(sim("0.4"), compares), tmp_path)),
        "reward.num_workers=2",
        f"actor_rollout_ref.rollout.n={SIZE}",
    )
    rollouts = [
        fixtures.rollout(words, f"{word} {group_word} answer", uid=f"{compares}-{group}", session=session)
        for group, group_word in enumerate(fixtures.WORDS * 2)
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
    assert {1, 2} <= kinds, f"the judge failed too regularly to see every case: {kinds}"


@pytest.mark.parametrize("compares", [True, False], ids=["compared", "single"])
def test_a_group_without_a_valid_rollout_teaches_nothing(
    loops: Callable[..., Any], words: Any, sim: Callable[[str], str], compares: bool, tmp_path: Any
) -> None:
    loop = loops(
        *fixtures.plaudit(written(recipe(sim("1"), compares), tmp_path)),
        "reward.num_workers=2",
        f"actor_rollout_ref.rollout.n={SIZE}",
    )
    rollouts = [
        fixtures.rollout(words, f"{word} answer", uid=f"none-{compares}-{group}", session=session)
        for group in range(4)
        for session, word in enumerate(("red", "green", "blue"))
    ]
    for answer in loop.score(rollouts):
        info = answer["reward_extra_info"]
        assert (answer["reward_score"], info["score"], info["plaudit/invalid"]) == (0.0, 0.0, 1.0)
        # Nobody waited until the group's time was up: that nobody is valid is known when all are answered.
        assert info["plaudit/partial"] == 0.0 and info["plaudit/waited_s"] < 25.0


def test_a_reward_that_hangs_costs_its_own_rollout_and_no_other(
    loops: Callable[..., Any], words: Any, tmp_path: Any
) -> None:
    own = {"name": "own", "components": {"own": {"reward": "hanging"}}, "groups": {"timeout": "5s"}}
    loop = loops(
        *fixtures.plaudit(written(own, tmp_path), "+reward.reward_kwargs.imports=hanging"),
        "reward.num_workers=2",
        "actor_rollout_ref.rollout.n=4",
    )
    said = ("red", "dog", "green", "blue")
    rollouts = [fixtures.rollout(words, word, uid="own", session=at) for at, word in enumerate(said)]
    answers = loop.score(rollouts)
    infos = [answer["reward_extra_info"] for answer in answers]
    assert [answer["reward_score"] for answer in answers] == [1.0] * 4
    assert [info["plaudit/invalid"] for info in infos] == [0.0, 1.0, 0.0, 0.0]
    assert infos[1]["plaudit/waited_s"] >= 5.0 > max(infos[at]["plaudit/waited_s"] for at in (0, 2, 3))


def test_a_run_without_references_ends_with_the_fix(loops: Callable[..., Any], words: Any) -> None:
    loop = loops(
        *fixtures.plaudit("math"),
        "reward.num_workers=2",
        "data.train_batch_size=2",
        f"actor_rollout_ref.rollout.n={SIZE}",
    )

    def rollouts(step: int, **given: Any) -> list[Any]:
        made = [
            fixtures.rollout(
                words, "answer", uid=f"end-{step}-{at // SIZE}", session=at % SIZE, step=step, **given
            )
            for at in range(2 * SIZE)
        ]
        return made

    # Validation before the training does not count.
    for answer in loop.score(rollouts(0, reference=None, split="test")):
        assert answer["reward_extra_info"]["plaudit/invalid"] == 1.0
    said = []
    for step in (1, 2):
        for call in loop.send(rollouts(step, reference=None, extra={"gold": "yes"})):
            try:
                loop.answers([call])
            except Exception as error:
                said.append(str(error))
    assert len(said) >= 2 * SIZE, "all of the second step"
    assert "NothingScored" in said[0] and "input.missing_reference" in said[0]
    assert "+reward.reward_kwargs.abort_after=never" in said[0]
    assert '"extra_info.gold"' in said[0] and "reward.reward_kwargs.reference=" in said[0]
    # One valid rollout, and it goes on.
    assert loop.score(rollouts(3, reference="answer"))[0]["reward_extra_info"]["plaudit/invalid"] == 0.0
