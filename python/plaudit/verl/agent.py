"""Agent loop for verl that runs another agent loop and scores its output where it is made.

Waiting for the group here occupies no call of a Ray actor, so any number of rollouts may wait. A rollout that fails is
withdrawn at once, so its siblings are scored without it instead of waiting for the group's timeout.
"""

from __future__ import annotations

import asyncio
import importlib
import weakref
from typing import Any

from plaudit.verl.scorer import RolloutScorer

SINGLE_TURN = "verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop"

# verl makes an agent loop for every rollout; there is one scorer for each process and event loop.
_scorers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, RolloutScorer] = weakref.WeakKeyDictionary()


class PlauditAgentLoop:
    """An agent loop that runs `loop`, scores its output by the shared engine, and sets the reward."""

    def __init__(self, trainer_config: Any, tokenizer: Any, loop: str = SINGLE_TURN, **kwargs: Any) -> None:
        """`loop` is the full name of the agent loop to run; further settings of the entry are handed on to it."""
        module, _, name = loop.rpartition(".")
        inner = getattr(importlib.import_module(module), name)
        self.inner = inner(trainer_config=trainer_config, tokenizer=tokenizer, **kwargs)
        self.scorer = scorer(trainer_config.config, tokenizer)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        """The inner loop's output with its reward."""
        try:
            output = await self.inner.run(sampling_params, **kwargs)
        except BaseException:
            if "uid" in kwargs:
                self.scorer.withdraw(kwargs)
            raise
        final = output[-1] if isinstance(output, list) else output
        if final.reward_score is None:
            fields = {**kwargs, "tool_extra_fields": dict(final.extra_fields), "num_turns": final.num_turns}
            scored = await self.scorer.score(
                fields, final.prompt_ids, final.response_ids, getattr(final, "response_mask", None)
            )
            final.reward_score = scored["reward_score"]
            final.extra_fields["reward_extra_info"] = scored["reward_extra_info"]
            if "turn_rewards" in scored:
                # verl collects one number a turn; a turn that gets nothing of its own gets 0.
                final.extra_fields["turn_scores"] = [reward or 0.0 for reward in scored["turn_rewards"]]
        return output


def scorer(config: Any, tokenizer: Any) -> RolloutScorer:
    """The scorer of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _scorers.get(loop)
    if found is None:
        found = _scorers[loop] = RolloutScorer(config, tokenizer, waits_in_ray=False)
    return found
