"""What does a spawned process do with the rewards that were pickled to it? It is light, for a child to load it soon."""

from __future__ import annotations

import asyncio
from typing import Any

from plaudit.trl import Column, Reward


def score(reward: Reward, columns: list[Column], twin: Any, answers: Any) -> None:
    """Calls all of them, and sends back what they said."""
    handed = {"prompts": ["q"], "completions": ["red"], "completion_ids": [[1, 2, 3]], "answer": ["red"]}
    answers.put((reward(**handed), [column(**handed) for column in columns], asyncio.run(twin(**handed))))
