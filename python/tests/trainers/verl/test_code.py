"""Programs of rollouts in verl's reward loop: rows of `prime_code` as they are, run in the sandbox of one engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import fixtures
from test_reward_loop import written

RECIPE = {"name": "programs", "components": {"tests": {"reward": "code", "unfenced": True}}}
TESTS = json.dumps({"inputs": ["7", "8"], "outputs": ["7", "8"]})


def test_programs_are_run_against_the_ground_truth(
    loops: Callable[..., Any], words: Any, tmp_path: Any
) -> None:
    loop = loops(
        *fixtures.plaudit(written(RECIPE, tmp_path)), "reward.num_workers=2", "actor_rollout_ref.rollout.n=3"
    )
    said = ["print(input())", "dog", "print(input()) dog"]
    rollouts = [
        fixtures.rollout(words, response, uid=str(group), session=session, reference=TESTS)
        for group in range(4)
        for session, response in enumerate(said)
    ]
    nothing = '{"inputs": [], "outputs": []}'
    rollouts += [
        fixtures.rollout(words, response, uid="empty", session=session, reference=nothing)
        for session, response in enumerate(said)
    ]
    answers = loop.score(rollouts)
    answers, empty = answers[:12], answers[12:]
    assert [answer["reward_score"] for answer in answers] == [1.0, 0.0, 0.0] * 4
    assert all(answer["reward_extra_info"]["plaudit/invalid"] == 0.0 for answer in answers)
    assert all(answer["reward_extra_info"]["plaudit/invalid"] == 1.0 for answer in empty)
