"""verl's reward manager (0.7.1 to 0.9): scores one rollout a call through the engine that all reward workers share.

verl calls a reward worker chosen at random for each finished rollout. Rollouts that are compared with their siblings wait for
them in the shared engine.
"""

from __future__ import annotations

from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from plaudit.verl.rollout_reader import last_row
from plaudit.verl.scorer import RolloutScorer


class PlauditRewardManager(RewardManagerBase):
    """verl's reward manager: `reward.reward_manager.source=importlib`, `module.path=pkg://plaudit.verl`."""

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any = None,
        reward_router_address: str | None = None,
        **_: Any,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.scorer = RolloutScorer(
            config, tokenizer, waits_in_ray=True, router_address=reward_router_address
        )

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of one rollout, after its group has been scored."""
        scored = await self.scorer.score(*last_row(data))
        return {key: value for key, value in scored.items() if key != "turn_rewards"}


def passthrough(*_: Any, **__: Any) -> float:
    """Placeholder for `reward.custom_reward_function`: makes verl call the manager although a reward model is served."""
    raise RuntimeError("plaudit.verl.passthrough only makes verl ask the reward manager; nothing calls it")
