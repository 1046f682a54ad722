"""`Result`, and the conversion of values to plain ones."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections import UserDict
from pathlib import Path

import numpy as np
import pytest
from plaudit import Result
from plaudit.result import fill_with_group_means
from plaudit.values import plain


def test_results_are_pickled_by_position():
    result = Result(1.0, "scored", None, {"a": 1.0}, {"a.length": 3}, group_totals=[1.0, None])
    assert pickle.loads(pickle.dumps(result)) == result
    assert len(pickle.dumps(result)) < len(pickle.dumps(dataclasses.asdict(result)))


def test_invalid_results_have_no_total():
    result = Result.invalid("group.deadline", "late", waited=2.0)
    assert (result.total, result.value, result.outcome, result.waited) == (None, None, "invalid", 2.0)
    assert result.group_size == 0 and result.reason is not None and result.reason["component"] is None


def test_a_total_stands_before_the_mean_of_the_siblings():
    assert Result(2.0, "scored", siblings_mean=1.0).total_or_siblings_mean == 2.0
    assert Result(None, "invalid", siblings_mean=1.0).total_or_siblings_mean == 1.0
    assert Result(None, "invalid").total_or_siblings_mean is None


def test_missing_values_get_the_mean_of_their_group():
    values = [1.0, None, 3.0, math.nan, None]
    assert fill_with_group_means(values, [[0, 1, 2], [3, 4]]) == [1.0, 2.0, 3.0, None, None]
    assert fill_with_group_means([], []) == []
    assert fill_with_group_means([None, 1.0], [[1]]) == [None, 1.0]


def test_plain_values():
    class Name(str): ...

    value = {
        1: np.float32(0.5),
        "list": (np.int64(2), np.array([[True, False]])),
        "map": UserDict(path=Path("a/b"), name=Name("n")),
        "none": None,
    }
    found = plain(value, strict=True)
    assert found == {
        "1": 0.5,
        "list": [2, [[True, False]]],
        "map": {"path": "a/b", "name": "n"},
        "none": None,
    }
    assert type(found["1"]) is float and type(found["map"]["name"]) is str


def test_other_objects_become_text_without_an_address():
    class Odd: ...

    text = plain([Odd()])[0]
    assert "Odd" in text and "0x" not in text
    with pytest.raises(TypeError, match="Odd is not text"):
        plain({"a": Odd()}, strict=True)


def test_values_that_hold_themselves_are_refused():
    loop: list = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper"):
        plain(loop)
