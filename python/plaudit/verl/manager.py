"""How does verl's reward loop reach plaudit? Through a reward manager, one a worker, that scores one rollout a call.

verl hands over one finished rollout at a time, to a worker chosen at random. Rollouts that are compared with their
siblings wait for them in the engine that all workers share.
"""

from __future__ import annotations

from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from plaudit.verl.desk import Desk


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
        self.desk = Desk(config, tokenizer, waits_in_ray=True, router_address=reward_router_address)

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of one rollout, after its group has been scored."""
        return await self.desk.score(self.desk.reader.of_batch(data))


def passthrough(*_: Any, **__: Any) -> float:
    """Stands in `reward.custom_reward_function` so that verl asks the manager although a reward model is served."""
    raise RuntimeError("plaudit.verl.passthrough only makes verl ask the reward manager; nothing calls it")
