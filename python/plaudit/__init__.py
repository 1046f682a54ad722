"""Rewards for LLM post-training: rollouts and a recipe in, one trustworthy number a rollout out.

import plaudit

engine = plaudit.Engine("quickstart")
report = engine.score(prompts, responses, references)
report.totals        # numpy, one number a rollout, NaN where it could not be scored
"""

from plaudit._plaudit import VERSION as __version__
from plaudit._plaudit import ArgumentError, PlauditError, RecipeError, RunError
from plaudit.custom import register
from plaudit.engine import Engine
from plaudit.join import Join
from plaudit.report import Report
from plaudit.result import Result
from plaudit.single_reward import Aggregate, SingleReward, aggregate, recipes, replay, reward, rewards

__all__ = [
    "Aggregate",
    "ArgumentError",
    "Engine",
    "Join",
    "PlauditError",
    "RecipeError",
    "Report",
    "Result",
    "RunError",
    "SingleReward",
    "__version__",
    "aggregate",
    "recipes",
    "register",
    "replay",
    "reward",
    "rewards",
]
