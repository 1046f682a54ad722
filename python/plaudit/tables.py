"""Arrow tables of rollouts, and rollouts as dicts, as the columns that an engine takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from plaudit._plaudit import ArgumentError, misfit
from plaudit.rollout import FIELDS, OTHERS


def of_rollouts(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of rollouts that are dicts; one without a value has none."""
    columns = {name: [rollout.get(name) for rollout in rollouts] for name in FIELDS}
    given = {name for name, column in columns.items() if any(value is not None for value in column)}
    return {name: columns[name] for name in {"response", *given}}


def others(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row has under the names of `OTHERS` and as these fields hold it; a column of the same name may mean something else."""
    return {
        name: row[name] for name in OTHERS if row.get(name) is not None and misfit(name, row[name]) is None
    }


def columns(table: Any) -> dict[str, Any]:
    """The columns of a table by the names of their fields, with text still in Arrow's memory."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        table = pa.table(table)
    if "response" not in table.column_names:
        raise ArgumentError(f"the table has no column 'response', only {table.column_names}")
    found: dict[str, Any] = {}
    for name in FIELDS:
        if name in table.column_names and name != "extra":
            column = table.column(name)
            listed = name in OTHERS or pa.types.is_nested(column.type)
            found[name] = column.to_pylist() if listed else column
    rest = [name for name in table.column_names if name not in FIELDS]
    if rest or "extra" in table.column_names:
        found["extra"] = _extras(table, rest)
    return found


def _extras(table: Any, others: list[str]) -> list[dict[str, Any]]:
    """The fields of `extra`, and all columns that have no meaning of their own."""
    rows = table.select(others).to_pylist() if others else [{} for _ in range(table.num_rows)]
    if "extra" in table.column_names:
        for at, (row, extra) in enumerate(zip(rows, table.column("extra").to_pylist(), strict=True)):
            try:
                row.update(json.loads(extra) if isinstance(extra, str) else extra or {})
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"extra[{at}]: an object or its JSON is wanted ({error})") from None
    return rows
