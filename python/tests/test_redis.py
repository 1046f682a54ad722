"""Warnings about a Redis that could lose the judgments."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import plaudit
import pytest

RULES = {"components": {"format": {"reward": "reasoning_format"}}}


def test_a_redis_that_could_lose_judgments_is_doubted(redis_server: Callable[..., str]):
    address = redis_server("--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    with pytest.warns(UserWarning) as told:
        engine = plaudit.Engine(RULES, state=address)
    messages = [str(warning.message) for warning in told]
    assert len(messages) == 2
    assert "`appendonly yes`" in messages[0] and "noeviction` in the place of allkeys-lru" in messages[1]
    assert {warning.filename for warning in told} == {__file__}, "the warning points at the user's own line"
    assert engine.score(None, ["a"]).outcomes == ["scored"], "a doubt is no error"


def test_a_redis_that_keeps_everything_is_not(redis_server: Callable[..., str]):
    address = redis_server("--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plaudit.Engine(RULES, state=address)
