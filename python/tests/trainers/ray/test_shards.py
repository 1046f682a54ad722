"""Tests of the assignment of rows to shards, and of row digests."""

from __future__ import annotations

import pyarrow as pa
import pytest
from plaudit.ray.shard_scorer import row_errors
from plaudit.ray.shards import Rows, check_fields, fingerprint, row_digests, with_ids


def shards(table: pa.Table, group: str = "group", fields: dict[str, str] | None = None) -> list[int]:
    rows = Rows(1000, group, fields or {})
    return rows.split(rows.read(table))[0]


def test_group_has_one_shard_for_any_column_type():
    ints = pa.table({"group": pa.array([7, 8, 7], pa.int32()), "response": ["a", "b", "c"]})
    texts = pa.table({"group": ["7", "8", "7"], "response": ["x", "y", "z"]})
    words = pa.table({"group": pa.array(["7", "8", "7"]).dictionary_encode(), "response": ["x", "y", "z"]})
    assert shards(ints) == shards(texts) == shards(words)
    assert shards(ints)[0] == shards(ints)[2] != shards(ints)[1]


def test_equal_prompts_make_a_group_where_none_is_named():
    table = pa.table({"group": ["g", None, None], "prompt": ["p", "p", "p"], "response": ["a", "b", "c"]})
    found = shards(table)
    assert found[1] == found[2] != found[0]
    assert len(set(shards(table, group="prompt"))) == 1


def test_messages_are_one_prompt_across_block_schemas():
    one = pa.table({"prompt": [[{"role": "user", "content": "hi"}]], "response": ["a"]})
    two = pa.table({"prompt": [[{"content": "hi", "role": "user", "name": None}]], "response": ["a"]})
    assert shards(one) == shards(two)


def test_a_row_without_group_and_prompt_stands_alone():
    found = shards(pa.table({"response": [str(at) for at in range(50)]}))
    assert len(set(found)) > 40


def test_other_names_are_mapped_and_a_dot_leads_into_a_struct():
    table = pa.table(
        {"question": ["q"], "completion": ["a"], "reward_model": [{"ground_truth": "42", "style": "rule"}]}
    )
    fields = {"prompt": "question", "response": "completion", "reference": "reward_model.ground_truth"}
    read = Rows(4, "group", fields).read(table)
    assert read["prompt"].to_pylist() == ["q"] and read["response"].to_pylist() == ["a"]
    assert read["reference"].to_pylist() == ["42"]
    assert sorted(read.column_names) == ["prompt", "reference", "response", "reward_model"]
    with pytest.raises(ValueError, match="no such column; it has question, completion, reward_model"):
        Rows(4, "uid", {}).read(table)


def test_two_fields_may_change_places():
    table = pa.table({"prompt": ["a"], "response": ["b"]})
    read = Rows(4, "group", {"prompt": "response", "response": "prompt"}).read(table)
    assert (read["prompt"][0].as_py(), read["response"][0].as_py()) == ("b", "a")


def test_names_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="there is no field 'prmopt'"):
        check_fields({"prmopt": "question"}, "group")
    with pytest.raises(ValueError, match="contradict"):
        check_fields({"group": "uid"}, "prompt")


@pytest.mark.parametrize(
    "other",
    [
        {"a": ["xy", "y"], "b": ["", "z"]},
        {"a": ["x", "y"], "b": ["y", "z"]},
        {"a": ["x", "y"], "b": [None, "z"]},
        {"b": ["x", "y"], "a": ["", "z"]},
    ],
)
def test_any_other_value_is_another_digest(other: dict[str, list[str]]):
    table = pa.table({"a": ["x", "y"], "b": ["", "z"]})
    assert fingerprint(row_digests(table)) != fingerprint(row_digests(pa.table(other)))


def test_the_fingerprint_knows_no_order_of_rows_or_columns():
    table = pa.table({"a": ["x", "y", "x"], "b": [1, 2, 3]})
    other = pa.table({"b": pa.array([3, 1, 2], pa.int8()), "a": pa.array(["x", "x", "y"], pa.large_string())})
    assert fingerprint(row_digests(table)) == fingerprint(row_digests(other))
    assert fingerprint(row_digests(table)) != fingerprint(row_digests(table.slice(1)))


def test_ids_are_made_where_there_are_none_and_never_twice():
    table = pa.table({"id": ["r1", None, None, None], "response": ["a", "b", "b", "c"]})
    ids = with_ids(table, row_digests(table))["id"].to_pylist()
    assert ids[0] == "r1" and len(set(ids)) == 4 and ids[2] == f"{ids[1]}-2"
    again = table.take(pa.array([3, 2, 1, 0]))
    assert sorted(with_ids(again, row_digests(again))["id"].to_pylist()) == sorted(ids)


def test_rows_that_cannot_be_read_are_found():
    broken = pa.array([b"good", b"\xff\xfe", b"good", b"good", None, b"good"], pa.binary())
    table = pa.table(
        {
            "response": pa.Array.from_buffers(pa.string(), 6, broken.buffers()),
            "tokens": [1.0, 2.0, -3.0, 4.5, 5.0, float("nan")],
            "extra": ['{"a": 1}', "{}", "{}", "{}", "{}", "[1]"],
        }
    )
    errors = row_errors(Rows(4, "group", {}).read(table))
    codes = {at: code for at, (code, _) in errors.items()}
    assert codes == {
        1: "input.utf8",
        2: "input.tokens",
        3: "input.tokens",
        4: "input.response",
        5: "input.schema",
    }


@pytest.mark.parametrize(
    ("reference", "text", "broken"),
    [
        (pa.array([1, None, 3]), ["1", None, "3"], []),
        (pa.array([1.0, float("nan"), 3.0]), ["1", None, "3"], []),
        (pa.array([1.5, None, 3.0]), ["1.5", None, "3"], [0]),
        (pa.array([["a"], None, []]), ['["a"]', None, "[]"], [0, 2]),
        (pa.array([True, None, None]), ["true", None, None], [0]),
        (pa.array([b"a", None, None]), ["a", None, None], [0]),
        (pa.array([{"a": 1}, None, None]), ['{"a": 1}', None, None], [0]),
    ],
)
def test_fields_of_other_types_become_text_or_row_errors(
    reference: pa.Array, text: list[str | None], broken: list[int]
):
    for name in ("reference", "group", "id"):
        table = pa.table({"response": ["a", "b", "c"], name: reference})
        rows = Rows(4, "group", {})
        read = rows.read(table)
        assert read[name].to_pylist() == text
        errors = row_errors(read)
        assert sorted(errors) == broken
        assert {code for code, _ in errors.values()} <= {"input.schema"}
        assert all(f"{name}: text is wanted, not " in message for _, message in errors.values())
        assert len(rows.split(read)[0]) == 3


@pytest.mark.parametrize("tokens", [["3", None], [[1], None], [True, None], [1.5, None]])
def test_counts_of_other_types_are_row_errors(tokens: list):
    read = Rows(4, "group", {}).read(pa.table({"response": ["a", "b"], "tokens": tokens}))
    assert {at: code for at, (code, _) in row_errors(read).items()} == {0: "input.tokens"}
