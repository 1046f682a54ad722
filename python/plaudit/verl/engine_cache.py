"""Cache of engines: the whole-batch managers of a process share one engine for each recipe."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

import plaudit
from plaudit._plaudit import check_state
from plaudit.values import plain
from plaudit.verl.options import flatten

_engines: dict[str, plaudit.Engine] = {}
_engines_lock = threading.Lock()


def shared_engine(engine: plaudit.Engine) -> plaudit.Engine:
    """The first engine of this process that was made of the same. The managers of training and validation share its judges.

    An engine is not shared once its functions were registered anew, here or where the manager was pickled.
    """
    key = json.dumps([engine._name, engine.recipe, engine._state], sort_keys=True)
    with _engines_lock:
        known = _engines.get(key)
        if known is None or known._functions != engine._functions:
            known = _engines[key] = engine
        return known


def make_engine(
    recipe: Any, overrides: Mapping[str, Any] | None, state: Any, given: Mapping[str, Any]
) -> plaudit.Engine:
    """The engine of a manager with these options. Paths are made absolute, since another process may make it again."""
    recipe = "tutorial" if recipe is None else plain(recipe)
    if isinstance(recipe, str) and os.path.isfile(recipe):
        recipe = os.path.abspath(recipe)
    if state is not None:
        state = os.fspath(state)
        check_state(state)
        state = state if "://" in state else os.path.abspath(state)
    # Sizes are compared by the manager, because groups of validation need not be equal.
    settings: dict[str, Any] = {"groups.same_size": False}
    if "max_workers" in given:
        settings["groups.parallel"] = given["max_workers"]
    if "timeout" in given:
        settings["groups.timeout"] = f"{given['timeout']:g}s"
    settings.update(_flatten_overrides(plain(overrides or {})))
    if given.get("use_group_reward") is False:
        settings.update(_pointwise_overrides(plaudit.Engine(recipe, overrides=settings)))
        if plaudit.Engine(recipe, overrides=settings).compares_groups:
            raise ValueError("use_group_reward is false, but a component of the recipe compares the group")
    return shared_engine(plaudit.Engine(recipe, overrides=settings, state=state))


def _flatten_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides by path: a tree, as Hydra makes it, is taken apart; what has a path stays whole."""
    found: dict[str, Any] = {}
    for path, value in overrides.items():
        found.update({path: value} if "." in path else flatten({path: value}))
    return found


def _pointwise_overrides(engine: plaudit.Engine) -> dict[str, Any]:
    """Overrides that make judges see one response at a time."""
    judged = [name for name, reward in engine.rewards.items() if reward == "principle"]
    each = {"mode": "pointwise", "audit": 0}
    return {f"components.{name}.{key}": value for name in judged for key, value in each.items()}
