"""The Ray Data actor that scores a shard, whole groups at a time, and records that it is finished."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from plaudit import Engine, RunError
from plaudit.ray.run_folder import RunFolder
from plaudit.ray.shards import DIGEST, ROW_ERROR, SHARD, Rows, fingerprint, with_ids
from plaudit.ray.validation import invalid, row_errors


class ScoringConfig(NamedTuple):
    """The settings of the actors of a run."""

    engine: Engine
    state: str | None
    out: str | None
    actors: int
    rows: Rows
    keep_columns: bool


class ShardScorer:
    """An actor: one engine that scores shard after shard."""

    def __init__(self, config: ScoringConfig) -> None:
        self.config = config
        self.engine = _engine(config)
        self.folder = None if config.out is None else RunFolder(config.out)

    def __call__(self, shard: pa.Table) -> pa.Table:
        """The results of a shard, or, where they go to a folder, the note that they are there."""
        number, digests = shard[SHARD][0].as_py(), shard[DIGEST].to_pylist()
        table = shard.drop_columns([SHARD, DIGEST])
        if self.folder is None:
            return self.score(table, digests)
        # An actor that died may have finished some of the shards that Ray now hands to another one.
        note, made_from = self.folder.note(number), f"{fingerprint(digests):016x}"
        if note is None or (note.rows, note.fingerprint) != (table.num_rows, made_from):
            results = self.score(table, digests)
            outcomes = Counter(results["outcome"].to_pylist())
            note = self.folder.finish(number, results, made_from, outcomes)
        return pa.table({"shard": [number], "rows": [note.rows], "node": [os.uname().nodename]})

    def score(self, table: pa.Table, digests: Sequence[int]) -> pa.Table:
        """One result a row, in the order of their ids, so that a shard that is scored twice is the same twice."""
        table = with_ids(table, digests).sort_by("id")
        errors = row_errors(table)
        table = table.drop_columns([ROW_ERROR]) if ROW_ERROR in table.column_names else table
        good = table
        if errors:
            good = table.filter(pa.array([at not in errors for at in range(table.num_rows)], pa.bool_()))
        results = self.engine.score_table(good).to_arrow()
        if errors:
            results = invalid(table, errors, results)
        return _beside(results, table) if self.config.keep_columns else results


def _engine(config: ScoringConfig) -> Engine:
    """The actor's engine. One with a folder of state takes the first part that no other actor has."""
    if config.state is None:
        return config.engine
    if "://" in config.state:
        return config.engine._again(state=config.state, share=config.actors)
    for part in range(config.actors):
        place = Path(config.state) / f"actor-{part}"
        try:
            return config.engine._again(state=place, share=config.actors)
        except RunError as error:
            if error.code != "journal.in_use":
                raise
    raise RuntimeError(
        f"all {config.actors} parts of {config.state} are in use: is another run going on with it?"
    )


def _beside(results: pa.Table, table: pa.Table) -> pa.Table:
    """The results with the columns of the data set beside them, which stand in the same order."""
    for name in table.column_names:
        if name in ("id", "group"):
            continue
        if name in results.column_names:
            raise ValueError(
                f"the data set has a column {name!r}, as the results do: rename it, or do not keep columns"
            )
        results = results.append_column(name, table[name])
    return results
