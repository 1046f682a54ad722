"""The Ray Data actor that scores a shard, whole groups at a time, and records that it is finished.

Validation: in a data set of many millions of rows some are always malformed. One of them must not fail its whole shard, so rows
that no engine can read become invalid results, each with its reason.
"""

# pyarrow makes the functions of its compute module when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from plaudit import Engine, RunError
from plaudit._plaudit import misfit
from plaudit.abort import AbortAfter, NothingScored, StepCounter
from plaudit.ray.run_folder import RunFolder
from plaudit.ray.shards import DIGEST, ROW_ERROR, SHARD, Rows, fingerprint, texts, with_ids
from plaudit.rollout import OTHERS

ABORT_AFTER = 1000
"""So many rows show whether anything can be scored, where nothing else is said; as for a file."""

# A reason's code and its message.
RowError = tuple[str, str]


class ScoringConfig(NamedTuple):
    """The settings of the actors of a run."""

    engine: Engine
    state: str | None
    out: str | None
    actors: int
    rows: Rows
    keep_columns: bool
    abort_after: AbortAfter = ABORT_AFTER


class ShardScorer:
    """An actor: one engine that scores shard after shard."""

    def __init__(self, config: ScoringConfig) -> None:
        self.config = config
        self.engine = _engine(config)
        self.folder = None if config.out is None else RunFolder(config.out)
        # The first rows that none was valid of, until one is, or until there are enough.
        self.unscored: Counter[tuple[str, str]] | None = None if config.abort_after == "never" else Counter()

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
        self._check_abort(results, table.column_names)
        return _beside(results, table) if self.config.keep_columns else results

    def _check_abort(self, results: pa.Table, columns: Sequence[str]) -> None:
        """Raises where none of the first rows can be scored, all for one reason that cannot heal, such as a wrong column."""
        if self.unscored is None:
            return
        columns_read = ("outcome", "reason_code", "reason_message")
        rows = list(zip(*(results[name].to_pylist() for name in columns_read), strict=True))
        if any(outcome == "scored" for outcome, *_ in rows):
            self.unscored = None
            return
        self.unscored.update((str(code), str(said)) for outcome, code, said in rows if outcome != "floored")
        codes = {code for code, _ in self.unscored}
        if sum(self.unscored.values()) < int(self.config.abort_after):
            return
        # More steps than there are shards: only what cannot heal ends the run.
        ending = StepCounter(1 << 31).observe((len(codes) != 1, dict(self.unscored)))
        self.unscored = None
        if ending is not None:
            words = ('fields={"reference": "COLUMN"}', 'abort_after="never"')
            raise NothingScored(ending.advise(columns, *words))


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


def row_errors(table: pa.Table) -> dict[int, RowError]:
    """The places of rows that no engine can read, and why."""
    errors: dict[int, RowError] = {}
    for at, error in _errors(table):
        errors.setdefault(at, error)
    return errors


def invalid(table: pa.Table, errors: Mapping[int, RowError], results: pa.Table) -> pa.Table:
    """The results of the other rows, with an invalid one in the place of every row that cannot be read."""
    count = len(errors)
    ids, groups = texts(table, "id"), texts(table, "group")
    at = sorted(errors)
    columns: dict[str, Any] = {
        "id": [ids[place] for place in at],
        "group": [groups[place] for place in at],
        "outcome": ["invalid"] * count,
        "reason_code": [errors[place][0] for place in at],
        "reason_message": [errors[place][1] for place in at],
    }
    rows = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in results.schema
    ]
    together = pa.concat_tables([results, pa.table(rows, schema=results.schema)])
    good = (place for place in range(table.num_rows) if place not in errors)
    order = {place: row for row, place in enumerate([*good, *at])}
    return together.take(pa.array([order[place] for place in range(table.num_rows)]))


def _errors(table: pa.Table) -> Iterator[tuple[int, RowError]]:
    for at, text in enumerate(texts(table, ROW_ERROR)):
        if text is not None:
            code, _, message = text.partition(" ")
            yield at, (code, message)
    for name in ("id", "group", "prompt", "response", "reference"):
        if name in table.column_names:
            yield from _not_text(name, table[name])
    if "response" not in table.column_names:
        raise ValueError(
            f"the data set has no column 'response', only {', '.join(table.column_names)}: see fields="
        )
    for at in _where(pc.is_null(table["response"])):
        yield at, ("input.response", "response is missing")
    if "tokens" in table.column_names and not pa.types.is_null(table["tokens"].type):
        for at in _where(pc.less(table["tokens"], 0)):
            yield at, ("input.tokens", "tokens: a whole number from 0 is wanted")
    if "prompt" in table.column_names and pa.types.is_nested(table["prompt"].type):
        for at, prompt in enumerate(table["prompt"].to_pylist()):
            if prompt is not None and not (
                isinstance(prompt, list) and all(isinstance(each, dict) for each in prompt)
            ):
                yield at, ("input.schema", "prompt: text or a list of chat messages is wanted")
    for name in OTHERS:
        if name in table.column_names:
            for at, value in enumerate(table[name].to_pylist()):
                if (message := misfit(name, value)) is not None:
                    yield at, ("input.schema", message)
    if "extra" in table.column_names:
        kind = table["extra"].type
        if not (pa.types.is_struct(kind) or pa.types.is_map(kind)):
            for at, extra in enumerate(table["extra"].to_pylist()):
                if not _is_object(extra):
                    yield at, ("input.schema", "extra: an object is wanted")


def _not_text(name: str, column: pa.ChunkedArray) -> Iterator[tuple[int, RowError]]:
    """Finds texts that are not UTF-8, since text columns are read from files without a check."""
    if not (pa.types.is_large_string(column.type) or pa.types.is_string(column.type)):
        return
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        for at, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                yield at, ("input.utf8", f"{name} is not UTF-8 text: {error}")


def _is_object(extra: Any) -> bool:
    if extra is None:
        return True
    try:
        return isinstance(json.loads(extra), dict)
    except (TypeError, ValueError):
        return False


def _where(flags: Any) -> list[int]:
    return pc.indices_nonzero(pc.fill_null(flags, False)).to_pylist()
