"""Tests of the agent loop: the siblings of a failed rollout do not wait for it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import fixtures
import pytest
from test_reward_loop import RECIPE, REFERENCE, RESPONSES, expected, written


class Answers:
    """An agent loop that says what the row tells it to say, or fails."""

    def __init__(self, trainer_config: Any, tokenizer: Any, **_: Any) -> None:
        self.tokenizer = tokenizer

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

        if kwargs["say"] is None:
            raise ConnectionError("the tool server is gone")
        said = self.tokenizer.encode(kwargs["say"], add_special_tokens=False)
        return AgentLoopOutput(
            prompt_ids=[5],
            response_ids=said,
            response_mask=[1] * len(said),
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={"turn_scores": []},
        )


@pytest.mark.parametrize("failing", [0, 3], ids=["first", "last"])
def test_siblings_of_a_failed_rollout_do_not_wait(
    cluster: Any, model: Any, words: Any, failing: int, tmp_path: Any
) -> None:
    from plaudit.verl import PlauditAgentLoop

    config = fixtures.compose(
        model,
        *fixtures.plaudit(written(RECIPE, tmp_path), "+reward.reward_kwargs.group_timeout=50"),
        "actor_rollout_ref.rollout.n=4",
    )
    rollouts = [
        fixtures.rollout(words, text, uid=f"agent-{failing}", session=session, reference=REFERENCE)
        for session, text in enumerate(RESPONSES)
    ]

    async def one(session: int) -> Any:
        # verl makes a new agent loop for every rollout, as here.
        loop = PlauditAgentLoop(trainer_config=Wrapped(config), tokenizer=words, loop="test_agent.Answers")
        fields = {name: column[0] for name, column in rollouts[session].non_tensor_batch.items()}
        said = None if session == failing else RESPONSES[session]
        return await loop.run({}, **fields, say=said)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one(session) for session in range(4)), return_exceptions=True)

    began = time.monotonic()
    outputs = asyncio.run(all_of_them())
    assert time.monotonic() - began < 45, "the siblings waited for the group's time to run out"
    assert isinstance(outputs.pop(failing), ConnectionError)
    del rollouts[failing]
    assert [output.reward_score for output in outputs] == pytest.approx(expected(words, rollouts), abs=1e-9)
    for output in outputs:
        assert output.extra_fields["reward_extra_info"]["plaudit/group_size"] == 3.0


class Wrapped:
    """How verl hands its config to an agent loop."""

    def __init__(self, config: Any) -> None:
        self.config = config
