"""Arrow tables of rollouts as the columns that `Engine.score` takes."""

from __future__ import annotations

import json
from typing import Any

from plaudit._plaudit import ArgumentError

_COLUMNS = ("prompt", "response", "reference", "group", "tokens", "extra", "id")


def columns(table: Any) -> tuple[Any, ...]:
    """The columns of a table in the order of `Engine.score`, with text still in Arrow's memory."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        table = pa.table(table)
    if "response" not in table.column_names:
        raise ArgumentError(f"the table has no column 'response', only {table.column_names}")
    found: dict[str, Any] = {}
    for name in _COLUMNS:
        if name in table.column_names and name != "extra":
            column = table.column(name)
            found[name] = column.to_pylist() if pa.types.is_nested(column.type) else column
    others = [name for name in table.column_names if name not in _COLUMNS]
    if others or "extra" in table.column_names:
        found["extra"] = _extras(table, others)
    return tuple(found.get(name) for name in _COLUMNS)


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
