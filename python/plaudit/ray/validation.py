"""Validation of rows: finds those that no engine can read, and makes their invalid results, each with its reason.

In a data set of many millions of rows some are always malformed. One of them must not fail its whole shard.
"""

# pyarrow makes the functions of its compute module when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plaudit.ray.shards import ROW_ERROR, texts

# A reason's code and its message.
RowError = tuple[str, str]


def row_errors(table: pa.Table) -> dict[int, RowError]:
    """The places of rows that no engine can read, and why."""
    errors: dict[int, RowError] = {}
    for at, error in _all(table):
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


def _all(table: pa.Table) -> Iterator[tuple[int, RowError]]:
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
