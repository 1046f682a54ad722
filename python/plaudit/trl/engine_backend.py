"""Scores a trainer's rows with an engine in each rank's own process."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import plaudit
from plaudit._plaudit import check_state
from plaudit.result import Result

from .call import Call, Row
from .ranks import world


class EngineBackend:
    """An engine that is made when the first rows come: only then is it known which rank this is.

    All ranks together keep to the recipe's limits of calls and money. A state folder belongs to one process, so each rank has
    its own below `state`.
    """

    def __init__(self, recipe: Any, overrides: Any, state: str | os.PathLike[str] | None) -> None:
        self._state = None if state is None else os.fspath(state)
        if self._state is not None:
            check_state(self._state)
        self.plan = plaudit.Engine(recipe, overrides=overrides)
        self._engine: plaudit.Engine | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def open(self) -> None:
        """Nothing to agree on with other ranks."""

    def score(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The result of each row, by place."""
        if not rows:
            return {}
        return _results(call, rows, self._opened().score(**_columns(call, rows, validate)))

    async def ascore(self, call: Call, rows: Mapping[int, Row], validate: bool) -> dict[int, Result]:
        """The same, without blocking the loop."""
        if not rows:
            return {}
        return _results(call, rows, await self._opened().ascore(**_columns(call, rows, validate)))

    def _opened(self) -> plaudit.Engine:
        with self._lock:
            if self._engine is None:
                rank, ranks = world()
                state = self._state
                if state is not None and ranks > 1 and "://" not in state:
                    state = str(Path(state) / f"rank-{rank}")
                # With the functions that were registered where the reward was made, also in another process.
                self._engine = self.plan._again(state=state, share=ranks)
            return self._engine


def _columns(call: Call, rows: Mapping[int, Row], validate: bool) -> dict[str, Any]:
    """The arguments of `Engine.score`."""
    return {
        "prompts": [row.prompt for row in rows.values()],
        "responses": [row.response for row in rows.values()],
        "references": [row.reference for row in rows.values()],
        "groups": [str(group) for group in call.groups_of(rows)],
        "tokens": [row.tokens for row in rows.values()],
        "extras": [row.extra for row in rows.values()],
        "validate": True if validate else None,
    }


def _results(call: Call, rows: Mapping[int, Row], report: plaudit.Report) -> dict[int, Result]:
    """The results by place; those of a group with fewer rows than the trainer's groups have are partial."""
    size = call.size or 0
    return {
        place: replace(result, partial=True) if result.group_size < size else result
        for place, result in zip(rows, report, strict=True)
    }
