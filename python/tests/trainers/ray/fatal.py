"""A custom reward that ends its own process once, so that an actor dies in the middle of a shard."""

from __future__ import annotations

import os
import signal

import plaudit


@plaudit.register("fatal_once")
def fatal_once(prompts, responses, references, extras, *, mark, marker):
    """Ends the process at the first response that holds the mark, and leaves the marker file behind."""
    if any(mark in response for response in responses):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return [0.0] * len(responses)
        os.kill(os.getpid(), signal.SIGKILL)
    return [0.0] * len(responses)
