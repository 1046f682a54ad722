"""Rewards for LLM post-training: rollouts and a recipe in, one trustworthy number a rollout out.

import plaudit

engine = plaudit.Engine("quickstart")
report = engine.score(prompts, responses, references)
report.totals        # numpy float32, one a rollout
"""

from plaudit._plaudit import VERSION as __version__
from plaudit._plaudit import PlauditError, RecipeError, RunError
from plaudit.custom import register
from plaudit.engine import Engine
from plaudit.join import Join
from plaudit.report import Report
from plaudit.result import Result
from plaudit.single_reward import Aggregate, SingleReward, aggregate, recipes, reward, rewards

__all__ = [
    "Aggregate",
    "Engine",
    "Join",
    "PlauditError",
    "RecipeError",
    "Report",
    "Result",
    "SingleReward",
    "RunError",
    "__version__",
    "aggregate",
    "recipes",
    "register",
    "reward",
    "rewards",
]
