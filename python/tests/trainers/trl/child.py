"""A spawned process that loads pickled rewards; it imports little, to start soon."""

from __future__ import annotations

import asyncio
from typing import Any

from plaudit.trl import Column, Reward


def score(reward: Reward, columns: list[Column], twin: Any, answers: Any) -> None:
    """Calls all of them, and sends back what they said."""
    handed = {"prompts": ["q"], "completions": ["red"], "completion_ids": [[1, 2, 3]], "answer": ["red"]}
    answers.put((reward(**handed), [column(**handed) for column in columns], asyncio.run(twin(**handed))))
