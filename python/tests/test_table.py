"""Arrow tables and columns, pandas and numpy: the same results as lists, without a copy of the text."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import plaudit
import pyarrow as pa
import pytest

RESPONSES = ["<think>Six sevens.</think><answer>42</answer>", "forty-two", "<answer>42</answer>", "42"]
LISTS = {
    "prompt": ["p", "p", "q", "q"],
    "response": RESPONSES,
    "reference": ["42", "42", None, "42"],
    "group": ["a", "a", "b", "b"],
    "id": ["r1", "r2", "r3", "r4"],
    "tokens": [10, 20, None, 40],
}
RECIPE = {
    "components": {
        "accuracy": {"reward": "number_accuracy"},
        "kimi": {"reward": "kimi.length"},
        "length": {"reward": "total_length", "max": 30, "band": 10, "unit": "token"},
        "cosine": {"reward": "open_r1.cosine_length", "weight": 0.5},
    }
}
EXTRAS = [{"correct": True}, {"correct": False}, {"correct": True}, {}]


@pytest.fixture(scope="module")
def engine() -> plaudit.Engine:
    return plaudit.Engine(RECIPE)


@pytest.fixture(scope="module")
def rows(engine: plaudit.Engine) -> list[dict]:
    columns = [LISTS[name] for name in ("prompt", "response", "reference", "group", "tokens")]
    return engine.score(*columns, EXTRAS, ids=LISTS["id"]).rows


def test_a_table_is_scored_as_lists_are(engine: plaudit.Engine, rows: list[dict]):
    assert len({row["total"] for row in rows}) == 4
    table = pa.table({**LISTS, "extra": EXTRAS})
    assert engine.score_table(table).rows == rows
    flat = pa.table({**LISTS, "correct": [extra.get("correct") for extra in EXTRAS]})
    assert [row["total"] for row in engine.score_table(flat).rows] == [row["total"] for row in rows]


def test_the_types_of_columns_do_not_matter(engine: plaudit.Engine, rows: list[dict]):
    table = pa.table(
        {**LISTS, "extra": ['{"correct": true}', '{"correct": false}', '{"correct": true}', None]}
    )
    assert engine.score_table(table).rows == rows
    for name, kind in [("response", pa.large_string()), ("prompt", pa.string_view()), ("tokens", pa.int16())]:
        other = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        assert engine.score_table(other).rows == rows, name
    words = table.set_column(3, "group", table["group"].dictionary_encode())
    assert engine.score_table(words).rows == rows
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)])
    assert engine.score_table(chunks).rows == rows
    assert engine.score_table(table.combine_chunks().to_batches()[0]).rows == rows


GROUPS = [7, 7, 8, 8]


@pytest.mark.parametrize(
    "groups",
    [
        pa.array(GROUPS),
        pa.array(GROUPS, pa.uint8()),
        pa.array([float(each) for each in GROUPS]),
        pa.array(["7", "7", "8", "8"]).dictionary_encode(),
        pa.array(GROUPS).dictionary_encode(),
        pd.Series(GROUPS),
        pd.Series(GROUPS, dtype="Int64"),
        pd.Series(GROUPS, dtype="category"),
        pd.Series([7.0, 7.0, 8.0, 8.0]),
        pd.Series([7, "7", 8, "8"]),
        np.array(GROUPS, np.float32),
        [7.0, "7", np.float64(8), np.int16(8)],
    ],
)
def test_whole_numbers_may_name_groups(engine: plaudit.Engine, groups: Any):
    named = [row["group"] for row in engine.score(None, RESPONSES, groups=groups).rows]
    assert named == ["7", "7", "8", "8"]


@pytest.mark.parametrize(
    "tokens",
    [
        pa.array([10, 20, None, 40]),
        pa.array([10.0, 20.0, None, 40.0]),
        pa.array([10, 20, None, 40], pa.uint8()).dictionary_encode(),
        pd.Series([10, 20, None, 40]),
        pd.Series([10, 20, None, 40], dtype="Int64"),
        np.array([10, 20, np.nan, 40]),
        [10, 20.0, pd.NA, np.int8(40)],
    ],
)
def test_counts_may_have_gaps(engine: plaudit.Engine, rows: list[dict], tokens: Any):
    columns = [LISTS[name] for name in ("prompt", "response", "reference", "group")]
    assert engine.score(*columns, tokens, EXTRAS, ids=LISTS["id"]).rows == rows


def test_references_may_be_whole_numbers_with_gaps(engine: plaudit.Engine, rows: list[dict]):
    for references in (pd.Series([42, 42, None, 42]), pa.array([42, 42, None, 42]), [42, 42.0, np.nan, "42"]):
        report = engine.score(
            LISTS["prompt"], RESPONSES, references, LISTS["group"], LISTS["tokens"], EXTRAS, ids=LISTS["id"]
        )
        assert report.rows == rows


@pytest.mark.parametrize(
    ("column", "given", "message"),
    [
        ("groups", [1.5], r"groups\[0\]: text or a whole number is wanted, not 1.5"),
        ("groups", pa.array([1.5]), r"groups\[0\]: text or a whole number is wanted, not 1.5"),
        ("groups", [["a"]], r"groups\[0\]: text is wanted, not list"),
        ("groups", pa.array([True]), "groups: a column of text is wanted, not of Boolean"),
        ("tokens", [-1], r"tokens\[0\]: a whole number from 0 is wanted, not -1"),
        ("tokens", pa.array([-1]), r"tokens\[0\]: a whole number from 0 is wanted, not -1"),
        ("tokens", [1.5], r"tokens\[0\]: a whole number from 0 is wanted, not 1.5"),
        ("tokens", ["x"], r"tokens\[0\]: a whole number from 0 is wanted, not 'x'"),
        ("tokens", pa.array(["1"]), "tokens: a column of numbers is wanted, not of Utf8"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(
    engine: plaudit.Engine, column: str, given: Any, message: str
):
    with pytest.raises((TypeError, ValueError), match=message):
        engine.score(None, ["a"], **{column: given})


@pytest.mark.parametrize("bad", ["{", "[1]", "3"])
def test_an_extra_that_is_no_object_is_named_with_its_row(engine: plaudit.Engine, bad: str):
    with pytest.raises(ValueError, match=r"extra\[1\]: an object or its JSON is wanted"):
        engine.score_table(pa.table({"response": ["a", "b"], "extra": ["{}", bad]}))


def test_anything_that_speaks_arrow(engine: plaudit.Engine, rows: list[dict]):
    class Stream:
        def __init__(self, table: pa.Table) -> None:
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    assert engine.score_table(Stream(pa.table({**LISTS, "extra": EXTRAS}))).rows == rows


def test_slices_keep_their_place(engine: plaudit.Engine, rows: list[dict]):
    table = pa.table({**LISTS, "extra": EXTRAS})
    assert [row["id"] for row in engine.score_table(table.slice(2)).rows] == ["r3", "r4"]
    assert engine.score_table(table.slice(2)).rows == rows[2:]


def test_messages_in_a_table():
    messages = [[{"role": "user", "content": "p"}], [{"role": "user", "content": "p"}]]
    report = plaudit.Engine("lengths").score_table(pa.table({"prompt": messages, "response": ["a", "bb"]}))
    assert report.groups == [[0, 1]]


def test_whole_numbers_are_names():
    report = plaudit.Engine("lengths").score_table(
        pa.table({"group": [7, 8, 7], "response": ["a", "b", "c"]})
    )
    assert report.groups == [[0, 2], [1]] and report.rows[0]["group"] == "7"


def test_a_table_without_responses_is_refused(engine: plaudit.Engine):
    with pytest.raises(ValueError, match="no column 'response', only \\['answer'\\]"):
        engine.score_table(pa.table({"answer": ["a"]}))


def test_bytes_that_are_no_text_never_reach_a_rule(engine: plaudit.Engine):
    broken = pa.array([b"good", b"\xff\xfe\xfd"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 2, broken.buffers())
    with pytest.raises(ValueError, match="(?i)utf-8|unicode"):
        engine.score_table(pa.table({"response": column}))
    with pytest.raises(ValueError, match="(?i)utf-8|unicode"):
        engine.score(None, column)


def test_text_is_lent_and_not_copied():
    """The peak of Python's and Arrow's memory while 64 MB of text are scored is far below that."""
    engine = plaudit.Engine({"components": {"format": {"reward": "reasoning_format"}}})
    text = "x" * 65_536
    column = pa.array([text] * 1024)
    engine.score(None, column.slice(0, 1))
    gc.collect()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    report = engine.score(None, column)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(report) == 1024 and peak < 8 << 20, f"{peak >> 20} MiB of Python's"
    assert pa.total_allocated_bytes() - before < 8 << 20
