"""Assignment of rows to shards by the hash of their group, and fingerprints of shards.

All rows of a group get the same shard, wherever they are in the data set. The fingerprint of a shard is the sum of the digests
of its rows: it does not depend on their order, which Ray does not keep.
"""

# pyarrow makes the functions of its compute module when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from plaudit.rollout import FIELDS

# The columns that carry a row's shard and digest through the shuffle.
SHARD = "__plaudit_shard"
DIGEST = "__plaudit_digest"

# The column with the reason why a row cannot be read: code and message. Its name is part of the fingerprints of run folders.
ROW_ERROR = "__plaudit_fault"

# The fields that are text.
_TEXTS = ("id", "group", "prompt", "response", "reference")

# Those that may also be messages.
_CONVERSATIONS = ("prompt", "response")

_WRAP = 1 << 64


class Rows(NamedTuple):
    """The layout of a data set: shards, group column and field names."""

    shards: int
    group: str
    fields: Mapping[str, str]

    def read(self, table: pa.Table) -> pa.Table:
        """The table with the columns under plaudit's own names, and text in columns that cannot overflow.

        A field of another type is written as text, and rows that have something in it which cannot be taken for text say so
        in the column `ROW_ERROR`.
        """
        table = _renamed(table, self.sources())
        if self.group == "prompt" and "group" in table.column_names:
            table = table.drop_columns(["group"])
        errors: dict[int, str] = {}
        for name in table.column_names:
            kind = table[name].type
            if pa.types.is_dictionary(kind):
                table = _with(table, name, table[name].cast(kind.value_type))
                kind = kind.value_type
            if name == "tokens":
                table = _with(table, name, _counts(table[name], errors))
            elif pa.types.is_string(kind):
                table = _with(table, name, table[name].cast(pa.large_string()))
            elif name in _TEXTS and not (name in _CONVERSATIONS and pa.types.is_nested(kind)):
                table = _with(table, name, _as_text(name, table[name], errors))
        if errors:
            text = pa.array([errors.get(at) for at in range(table.num_rows)], pa.large_string())
            table = _with(table, ROW_ERROR, pa.chunked_array([text]))
        return table

    def split(self, table: pa.Table) -> tuple[list[int], list[int]]:
        """The shard and the digest of every row of a table that `read` gave."""
        digests = row_digests(table)
        keys: list[bytes | None] = [None] * table.num_rows
        if "prompt" in table.column_names:
            keys = [None if text is None else b"p" + text for text in as_bytes(table["prompt"])]
        if "group" in table.column_names:
            named = as_bytes(table["group"])
            keys = [key if text is None else b"g" + text for key, text in zip(keys, named, strict=True)]
        shards: list[int] = []
        known: dict[bytes, int] = {}
        for key, digest in zip(keys, digests, strict=True):
            if key is None:
                # A rollout without group and prompt stands alone; rows that are equal in everything stay together.
                shards.append(digest % self.shards)
                continue
            shard = known.get(key)
            if shard is None:
                shard = known[key] = _digest(key) % self.shards
            shards.append(shard)
        return shards, digests

    def sources(self) -> dict[str, str]:
        """The columns that fields are read from, where these have other names."""
        named = {} if self.group in ("group", "prompt") else {"group": self.group}
        return {**self.fields, **named}


def check_fields(fields: Mapping[str, str], group: str) -> None:
    """Refuses a mapping of names that makes no sense."""
    for field in fields:
        if field not in FIELDS:
            raise ValueError(f"fields: there is no field {field!r}; the fields are {', '.join(FIELDS)}")
    if "group" in fields and group not in ("group", fields["group"]):
        raise ValueError(f"group={group!r} and fields['group']={fields['group']!r} contradict each other")


def row_digests(table: pa.Table) -> list[int]:
    """A 64-bit digest of every row, of all its columns by name and value."""
    names = sorted(table.column_names)
    columns = [as_bytes(table[name]) for name in names]
    digests: list[int] = []
    for row in zip(*columns, strict=True):
        parts: list[bytes] = []
        for name, value in zip(names, row, strict=True):
            # A column that is missing from a block comes back from the shuffle as one of nulls, so nulls leave no trace.
            if value is not None:
                parts.append(b"%s:%d;" % (name.encode(), len(value)))
                parts.append(value)
        digests.append(_digest(b"".join(parts)))
    return digests


def fingerprint(digests: Sequence[int]) -> int:
    """The sum of digests, in which their order does not show."""
    return sum(digests) % _WRAP


def as_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    """The values of a column, equal where and only where they mean the same: whatever the width of their type."""
    kind = column.type
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return [None if value is None else _written(value) for value in column.to_pylist()]
    if not (pa.types.is_large_binary(kind) or pa.types.is_binary(kind)):
        column = column.cast(pa.large_string()).cast(pa.large_binary())
    return column.to_pylist()


def with_ids(table: pa.Table, digests: Sequence[int]) -> pa.Table:
    """The table with an id in every row: the one that it has, or one made of what stands in it."""
    given = texts(table, "id")
    if None not in given:
        return table
    seen: Counter[int] = Counter()
    ids: list[str] = []
    for name, digest in zip(given, digests, strict=True):
        if name is None:
            # Rows that are equal in everything are in the same shard, so counting them there keeps ids apart.
            seen[digest] += 1
            name = f"row-{digest:016x}" if seen[digest] == 1 else f"row-{digest:016x}-{seen[digest]}"
        ids.append(name)
    return _with(table, "id", pa.chunked_array([pa.array(ids, pa.large_string())]))


def texts(table: pa.Table, name: str) -> list[str | None]:
    """The texts of a column, where there is one. Bytes that are no text are replaced."""
    if name not in table.column_names:
        return [None] * table.num_rows
    return [None if value is None else value.decode("utf-8", "replace") for value in as_bytes(table[name])]


def _renamed(table: pa.Table, sources: Mapping[str, str]) -> pa.Table:
    """Takes each field from the column that it is read from; a dot leads into a struct."""
    found = {field: _find(table, field, source) for field, source in sources.items()}
    taken = [source for field, source in sources.items() if source in table.column_names and source != field]
    table = table.drop_columns([name for name in taken if name not in sources])
    for field, column in found.items():
        table = _with(table, field, column)
    return table


def _find(table: pa.Table, field: str, source: str) -> pa.ChunkedArray:
    if source in table.column_names:
        return table[source]
    head, *path = source.split(".")
    if head in table.column_names and path:
        try:
            return pc.struct_field(table[head], path)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
            pass
    columns = ", ".join(table.column_names)
    raise ValueError(
        f"{field} is to be read from {source!r}, but the data set has no such column; it has {columns}"
    )


def _with(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _as_text(name: str, column: pa.ChunkedArray, errors: dict[int, str]) -> pa.ChunkedArray:
    """A field of another type as text: whole numbers as their digits, and all else as a error of the rows that have it."""
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.large_string())
    written: list[str | None] = []
    for at, value in enumerate(column.to_pylist()):
        if isinstance(value, float) and (value != value or value.is_integer()):
            # pandas writes whole numbers so where some are missing.
            value = None if value != value else str(int(value))
        elif value is not None and not isinstance(value, str):
            value = value.decode("utf-8", "replace") if isinstance(value, bytes) else _written(value).decode()
            errors.setdefault(at, f"input.schema {name}: text is wanted, not {value:.80}")
        written.append(value)
    return pa.chunked_array([pa.array(written, pa.large_string())])


def _counts(column: pa.ChunkedArray, errors: dict[int, str]) -> pa.ChunkedArray:
    """Counts, which may have come as numbers with a point, as pandas writes them where some are missing."""
    if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return column
    counts: list[int | None] = []
    for at, value in enumerate(column.to_pylist()):
        if isinstance(value, float) and (value != value or value.is_integer()):
            value = None if value != value else int(value)
        elif value is not None:
            errors.setdefault(at, f"input.tokens tokens: a whole number from 0 is wanted, not {value!r:.80}")
            value = None
        counts.append(value)
    return pa.chunked_array([pa.array(counts, pa.int64())])


def _digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _written(value: Any) -> bytes:
    return json.dumps(_present(value), sort_keys=True, ensure_ascii=False, default=str).encode()


def _present(value: Any) -> Any:
    """The value without fields that are missing: whether a struct has such fields depends on the block it came in."""
    if isinstance(value, dict):
        return {name: _present(part) for name, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [_present(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value
