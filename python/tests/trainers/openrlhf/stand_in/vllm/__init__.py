"""A stand-in for the part of vLLM that OpenRLHF's rollout actor calls: it generates words on a machine without a GPU.

Everything else that the tests run is OpenRLHF's own. The words are drawn by chance, and so is the time that each response takes,
so that siblings come in any order.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

__version__ = "0.29.0"

WORDS = 12
"""How many words a response has; the tokens 1 (the end) and 3 to 10 (marks and colours) are drawn."""


@dataclass
class SamplingParams:
    """The settings that OpenRLHF passes on."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int | None = None
    min_tokens: int = 1
    skip_special_tokens: bool = False
    logprobs: int | None = None


@dataclass
class AsyncEngineArgs:
    """What an engine is made with."""

    seed: int = 0
    others: dict[str, Any] = field(default_factory=dict)


class AsyncLLMEngine:
    """Draws the tokens of a response."""

    def __init__(self, arguments: AsyncEngineArgs) -> None:
        self.chance = random.Random(arguments.seed)
        self.unfinished = 0
        self.output_processor = SimpleNamespace(get_num_unfinished_requests=lambda: self.unfinished)

    @classmethod
    def from_engine_args(cls, arguments: AsyncEngineArgs) -> AsyncLLMEngine:
        return cls(arguments)

    async def is_sleeping(self) -> bool:
        return False

    async def generate(self, prompt: Any, parameters: SamplingParams, request_id: str) -> Any:
        self.unfinished += 1
        try:
            await asyncio.sleep(self.chance.random() * 0.05)
            tokens = [self.chance.randint(3, 10) for _ in range(WORDS)]
            yield SimpleNamespace(
                outputs=[SimpleNamespace(token_ids=[*tokens, 1], finish_reason="stop", logprobs=None)]
            )
        finally:
            self.unfinished -= 1
