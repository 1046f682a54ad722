"""How is a group scored whole when the border between two ranks cuts it?

Every rank of a training calls its reward functions in step, each with its slice of the batch. The rows of the groups that a
border cuts are passed round; the rank that holds the first row of a group scores it, once, and passes the scores back.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .call import Call, Row, Score


def world() -> tuple[int, int]:
    """This process's rank, and how many there are: 0 and 1 where nothing is distributed."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


@dataclass(slots=True)
class _Part:
    """What one rank tells the others: how long its slice is, and the rows of cut groups, with their keys."""

    length: int = 0
    rows: dict[int, tuple[Hashable, Row]] = field(default_factory=dict)
    fault: str | None = None


class Alone:
    """What there is to pass where no group is cut, or where nobody joins what was cut: nothing."""

    def open(self) -> None:
        """Nothing to open."""

    def pass_rows(self, call: Call | Exception) -> dict[int, Row]:
        """All rows of the call, by place."""
        if isinstance(call, Exception):
            raise call
        return dict(zip(call.positions, call.rows, strict=True))

    def pass_scores(self, call: Call, scores: Mapping[int, Score] | Exception) -> Mapping[int, Score]:
        """The scores as they are."""
        if isinstance(scores, Exception):
            raise scores
        return scores


class Ranks:
    """The way between the ranks: a process group of its own on the CPU, so that its messages meet no others.

    Every wait ends after `timeout` seconds. A rank whose scoring fails says so to all, and all raise.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._group: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_timeout": self._timeout, "_group": None}

    def open(self) -> None:
        """Makes the process group. All ranks must come here in the same order, so it is done before anything waits."""
        if self._group is None:
            import torch.distributed as dist

            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=self._timeout))

    def pass_rows(self, call: Call | Exception) -> dict[int, Row]:
        """The rows that this rank is to score, by place: its own whole groups, and the cut ones that begin here.

        A call that could not be read is passed round as well, so that no rank waits for it.
        """
        fault = str(call) if isinstance(call, Exception) else _fault(call)
        if isinstance(call, Exception) or fault:
            part: _Part = _Part(fault=fault)
        else:
            own = {at: (call.keys[at - call.start], call.rows[at - call.start]) for at in _cut(call)}
            part = _Part(length=len(call.rows), rows=own)
        parts: list[_Part] = self.gather(part)
        if isinstance(call, Exception):
            raise call
        for rank, other in enumerate(parts):
            if other.fault:
                raise ValueError(other.fault if other.fault == fault else f"rank {rank}: {other.fault}")
        if len({other.length for other in parts}) > 1:
            lengths = [other.length for other in parts]
            raise ValueError(
                f"the ranks hand in slices of different lengths, {lengths}: their groups cannot be joined"
            )
        here = {at: row for at, row in zip(call.positions, call.rows, strict=True) if at not in part.rows}
        passed = {at: pair for other in parts for at, pair in other.rows.items() if _begins_here(call, at)}
        here.update((at, row) for at, (_, row) in passed.items())
        return dict(sorted(here.items()))

    def pass_scores(self, call: Call, scores: Mapping[int, Score] | Exception) -> Mapping[int, Score]:
        """The scores of this rank's own rows, by place, from whichever rank has them."""
        if isinstance(scores, Exception):
            given: dict[int, Score] | str = f"{type(scores).__name__}: {scores}"
        else:
            own = call.positions
            cut = _cut(call)
            given = {at: score for at, score in scores.items() if at not in own or at in cut}
        parts = self.gather(given)
        if isinstance(scores, Exception):
            raise scores
        for rank, part in enumerate(parts):
            if isinstance(part, str):
                raise RuntimeError(f"rank {rank} could not score its groups: {part}")
        scored = dict(scores)
        for part in parts:
            scored.update(part)
        return {at: scored[at] for at in call.positions}

    def gather(self, part: Any) -> list[Any]:
        """What every rank gave, in the order of ranks."""
        import torch.distributed as dist

        parts: list[Any] = [None] * dist.get_world_size()
        try:
            dist.all_gather_object(parts, part, group=self._group)
        except RuntimeError as error:
            raise RuntimeError(
                f"the ranks did not meet within {self._timeout:g} s: join='ranks' needs every rank to call the reward at "
                f"every step ({error})"
            ) from error
        return parts


def _fault(call: Call) -> str | None:
    """Why the groups of this call cannot be told across ranks, if they cannot."""
    if call.size is None:
        return "join='ranks' needs to know how many completions a group has, and the trainer does not show it: give size="
    if not call.in_order:
        return (
            f"join='ranks' needs the {call.size} completions of a prompt next to one another, as TRL has them"
        )
    return None


def _cut(call: Call) -> set[int]:
    """The places of the rows whose group reaches over this rank's borders."""
    size = call.size or 1
    own = call.positions
    return {at for at in own if at // size * size < own.start or (at // size + 1) * size > own.stop}


def _begins_here(call: Call, at: int) -> bool:
    size = call.size or 1
    return at // size * size in call.positions
