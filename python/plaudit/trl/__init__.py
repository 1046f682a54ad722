"""Rewards for TRL: a recipe as a reward function.

`Reward(recipe)` is what `GRPOTrainer(reward_funcs=...)` and `RLOOTrainer` take: one number a completion, `None` where the
completion could not be scored. `Reward(recipe).as_columns()` gives one callable a component, `.as_async()` the twin to
await. TRL itself is not imported.
"""

from .columns import AsyncColumn, Column
from .reward import AsyncReward, Reward

__all__ = ["AsyncColumn", "AsyncReward", "Column", "Reward"]
