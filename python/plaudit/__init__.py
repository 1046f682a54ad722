"""Rewards for LLM post-training: rollouts and a recipe in, one trustworthy number a rollout out.

import plaudit

engine = plaudit.Engine("quickstart")
report = engine.score(prompts, responses, references)
report.totals        # numpy, one number a rollout, NaN where it could not be scored

The verifiers by themselves are modules: `plaudit.math`, `plaudit.instructions` and `plaudit.sandbox`.
"""

from typing import TYPE_CHECKING, Any

from plaudit._plaudit import VERSION as __version__
from plaudit._plaudit import ArgumentError, PlauditError, RecipeError, RunError
from plaudit.answers import Score
from plaudit.custom import register
from plaudit.engine import Engine
from plaudit.join import Join
from plaudit.judges import Judge, JudgeError, judge
from plaudit.report import Report
from plaudit.result import Result
from plaudit.single_reward import Aggregate, SingleReward, aggregate, recipes, replay, reward, rewards
from plaudit.trainer_functions import trl_function, verl_function

if TYPE_CHECKING:
    from plaudit import instructions as instructions
    from plaudit import math as math
    from plaudit import sandbox as sandbox

__all__ = [
    "Aggregate",
    "ArgumentError",
    "Engine",
    "Join",
    "Judge",
    "JudgeError",
    "PlauditError",
    "RecipeError",
    "Report",
    "Result",
    "RunError",
    "Score",
    "SingleReward",
    "__version__",
    "aggregate",
    "judge",
    "recipes",
    "register",
    "replay",
    "reward",
    "rewards",
    "trl_function",
    "verl_function",
]

# Modules that are loaded when they are first used.
_MODULES = ("instructions", "math", "sandbox")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"plaudit.{name}")
    raise AttributeError(f"module 'plaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
