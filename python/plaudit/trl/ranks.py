"""Exchange of rows between ranks, for groups that the border between two ranks cuts.

Every rank of a training calls its reward functions in step, each with its slice of the batch. The ranks exchange the rows of
cut groups; the rank that has the first row of a group scores it, once, and sends the results back.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from plaudit._plaudit import ArgumentError
from plaudit.fork import PerProcess
from plaudit.result import Result

from .call import Call, Row


def world() -> tuple[int, int]:
    """This process's rank, and how many there are: 0 and 1 where nothing is distributed."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


@dataclass(slots=True)
class _Failure:
    """What a rank sends in place of its part when it failed, so that none waits for it."""

    message: str


class RankExchange:
    """Exchanges rows and results over a process group of its own on the CPU, apart from all other messages.

    Every wait ends after `timeout` seconds. A rank that fails sends that to all, and all raise.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._group: PerProcess[Any] = PerProcess()

    def open(self) -> Any:
        """The process group. All ranks must make it in the same order, so that is done before anything waits."""
        import torch.distributed as dist

        wait = timedelta(seconds=self._timeout)
        return self._group.get(lambda: dist.new_group(backend="gloo", timeout=wait))

    def fail(self, error: Exception) -> None:
        """Sends a failure to the other ranks, in place of what they wait for."""
        self._gather(_Failure(f"{type(error).__name__}: {error}"))

    def agree(self, part: Any) -> list[Any]:
        """What every rank gave, in the order of ranks; raises where one has failed."""
        parts = self._gather(part)
        for rank, other in enumerate(parts):
            if isinstance(other, _Failure):
                raise RuntimeError(f"rank {rank} could not score its part of the batch: {other.message}")
        return parts

    def exchange_rows(self, call: Call) -> dict[int, Row]:
        """The rows that this rank is to score, by place: its own whole groups, and the cut ones that begin here."""
        error = _error_of(call)
        if error is not None:
            self.fail(error)
            raise error
        cut = {at: (call.keys[at - call.start], call.rows[at - call.start]) for at in cut_places(call)}
        parts: list[tuple[int, dict[int, tuple[Hashable, Row]]]] = self.agree((len(call.rows), cut))
        lengths = [length for length, _ in parts]
        if len(set(lengths)) > 1:
            raise ArgumentError(
                f"the ranks have slices of different lengths, {lengths}: their groups cannot be joined"
            )
        exchanged = {at: pair for _, rows in parts for at, pair in rows.items()}
        _check_keys(call, exchanged)
        here = {at: row for at, row in zip(call.positions, call.rows, strict=True) if at not in cut}
        here.update(
            (at, row) for at, (_, row) in exchanged.items() if first_place(call, at) in call.positions
        )
        return dict(sorted(here.items()))

    def exchange_results(self, call: Call, results: Mapping[int, Result]) -> Mapping[int, Result]:
        """The results of this rank's own rows, by place, from whichever rank has them."""
        cut, own = cut_places(call), call.positions
        sent = {at: result for at, result in results.items() if at in cut or at not in own}
        received = dict(results)
        for part in self.agree(sent):
            received.update(part)
        return {at: received[at] for at in own}

    def _gather(self, part: Any) -> list[Any]:
        import torch.distributed as dist

        parts: list[Any] = [None] * dist.get_world_size()
        try:
            dist.all_gather_object(parts, part, group=self.open())
        except RuntimeError as error:
            raise RuntimeError(
                f"the ranks did not meet within {self._timeout:g} s: a join needs every rank to call the reward at "
                f"every step ({error})"
            ) from error
        return parts


def _error_of(call: Call) -> ArgumentError | None:
    """The error where the groups of this call cannot be identified across ranks."""
    if call.size is None:
        return ArgumentError(
            "to join groups, their size must be known, and the trainer does not show it: give size="
        )
    if not call.in_order:
        return ArgumentError(
            f"to join groups, the {call.size} completions of a prompt must follow one another"
        )
    return None


def cut_places(call: Call) -> set[int]:
    """The places of the rows whose group reaches over this rank's borders."""
    own, size = call.positions, call.size or 1
    return {at for at in own if first_place(call, at) < own.start or first_place(call, at) + size > own.stop}


def first_place(call: Call, at: int) -> int:
    """The place of the first row of a row's group."""
    size = call.size or 1
    return at // size * size


def whole_size(call: Call, group: int) -> int:
    """How many members a group has on all ranks together; the last one of a batch may have fewer than the others."""
    size = call.size or 1
    return min(size, world()[1] * len(call.rows) - group * size)


def _check_keys(call: Call, exchanged: Mapping[int, tuple[Hashable, Row]]) -> None:
    """A group that was put together from two ranks must be of one prompt; all ranks see the same rows here."""
    firsts: dict[int, Hashable] = {}
    for at, (key, _) in sorted(exchanged.items()):
        first = first_place(call, at)
        if firsts.setdefault(first, key) != key:
            raise ArgumentError(
                f"the rows {first} to {first + (call.size or 1) - 1} of all ranks should be one group, but their prompts "
                "differ: the trainer does not slice its batch as TRL does"
            )
