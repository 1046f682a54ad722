"""A custom reward that hangs; the workers and the shared engine import it, and a recipe names it."""

from __future__ import annotations

import time
from typing import Any

import plaudit


@plaudit.register("hanging", per="rollout")
def hanging(prompt: Any, response: str, reference: str | None, extra: dict[str, Any]) -> float:
    """1.0, and nothing for a response about a dog."""
    if "dog" in response:
        time.sleep(600)
    return 1.0
