"""`Report`: columns, rows, results, tables and pickling."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import plaudit
import pytest

RESPONSES = [
    "<think>Six sevens.</think><answer>42</answer>",
    "forty-two",
    "x" * 12_000,
    "<think>Hm.</think><answer>41</answer>",
]
REFERENCES = ["42", "42", "42", None]


@pytest.fixture(scope="module")
def report() -> plaudit.Report:
    engine = plaudit.Engine("quickstart", overrides={"limits.response_bytes": 10_000})
    return engine.score(["6 * 7?"] * 4, RESPONSES, REFERENCES, ids=["a", "b", "c", "d"])


def test_columns_agree_with_rows(report: plaudit.Report):
    rows = report.rows
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert [row["outcome"] for row in rows] == report.outcomes == ["scored", "scored", "floored", "scored"]
    for at, row in enumerate(rows):
        assert (
            row["total"] == report.totals[at]
            and np.float32(row["total"]) == report.totals_or_invalid_value[at]
        )
        for name, column in report.components.items():
            value = row["components"][name]["value"] if "value" in row["components"][name] else None
            assert (math.isnan(column[at]) and value is None) or column[at] == np.float32(value)
            assert report.component_outcomes[name][at] == row["components"][name]["outcome"]


def test_components_are_numbers_or_nothing(report: plaudit.Report):
    assert set(report.components) == set(plaudit.Engine("quickstart").components)
    accuracy = report.components["accuracy"]
    assert accuracy.dtype == np.float32
    assert math.isnan(accuracy[3]) and accuracy[0] == 1.0
    with pytest.raises(KeyError):
        report.components["no_such"]


def test_reasons_stand_where_there_is_no_plain_number(report: plaudit.Report):
    assert [reason and reason["code"] for reason in report.reasons] == [None, None, "model.too_long", None]
    assert set(report.reasons[2]) == {"code", "component", "message"}


def test_evidence_is_found_with_and_without_its_component(report: plaudit.Report):
    both = {name for name in report.info if name.startswith("thought.")}
    assert both and all(len(report.info[name]) == 4 for name in both)
    for name in both:
        fact = name.removeprefix("thought.")
        if fact in report.info:
            assert report.info[fact] == report.info[name]
    rows = report.rows
    name = sorted(both)[0]
    assert report.info[name][0] == rows[0]["components"]["thought"]["info"][name.removeprefix("thought.")]


def test_statistics_count_every_rollout(report: plaudit.Report):
    counts = report.statistics["outcomes"] if "outcomes" in report.statistics else report.statistics
    assert sum(counts[word] for word in ("scored", "floored", "skipped", "invalid")) == 4


def test_groups_are_places(report: plaudit.Report):
    assert report.groups == [[0, 1, 2, 3]]


def test_as_arrow(report: plaudit.Report):
    table = report.to_arrow()
    assert table.column_names[:8] == [
        "id", "group", "total", "outcome", "correct", "reason_code", "reason_component", "reason_message",
    ]  # fmt: skip
    assert table["id"].to_pylist() == ["a", "b", "c", "d"]
    assert table["total"].to_pylist() == report.totals.tolist()
    assert table["accuracy.value"].null_count == 1 and table["accuracy.outcome"][3].as_py() == "skipped"
    assert table["reason_code"].to_pylist() == [None, None, "model.too_long", None]
    assert len(set(table["group"].to_pylist())) == 1


def test_as_pandas(report: plaudit.Report):
    frame = report.to_pandas()
    assert list(frame["outcome"]) == report.outcomes and frame.shape[0] == 4


def test_invalid_totals_and_the_invalid_value():
    recipe = {"components": {"kimi": {"reward": "kimi.length"}}}
    alone = plaudit.Engine(recipe).score(None, ["a"], groups=["g"])
    assert alone.outcomes == ["invalid"] and alone.reasons[0]["code"] == "group.too_small"
    assert math.isnan(alone.totals[0]) and math.isnan(alone.totals_or_invalid_value[0])
    assert alone.to_arrow()["total"].to_pylist() == [None] and alone.rows[0]["total"] is None
    sentinel = plaudit.Engine({**recipe, "invalid_value": -999.0}).score(None, ["a"], groups=["g"])
    assert sentinel.totals_or_invalid_value.tolist() == [-999.0] and math.isnan(sentinel.totals[0])
    assert sentinel.rows[0]["total"] is None


def test_a_report_says_what_it_is(report: plaudit.Report):
    assert repr(report) == "<plaudit.Report of 4 rollouts: 3 scored, 1 floored>"
    assert repr(plaudit.Engine("quickstart").score(None, ["a"])) == "<plaudit.Report of 1 rollout: 1 scored>"


def test_rollouts_without_names_are_numbered():
    rows = plaudit.Engine("quickstart").score(None, ["a", "b"]).rows
    assert len({row["id"] for row in rows}) == 2


def test_columns_outlive_their_report():
    totals = plaudit.Engine("quickstart").score(None, ["a"] * 1000).totals
    assert totals.flags.owndata or totals.base is not None
    assert totals.shape == (1000,) and totals.sum() == pytest.approx(1000 * totals[0])


@pytest.mark.parametrize("again", [lambda report: pickle.loads(pickle.dumps(report)), copy.deepcopy])
def test_a_report_is_the_same_in_another_place(report: plaudit.Report, again):
    other = again(again(report))
    assert repr(other) == repr(report) and other.seconds == report.seconds
    for name in ("totals", "totals_or_invalid_value", "totals_or_group_mean", "valid"):
        np.testing.assert_array_equal(getattr(other, name), getattr(report, name))
    for name in ("outcomes", "info", "reasons", "groups", "rows"):
        assert getattr(other, name) == getattr(report, name), name
    # As text, since a NaN equals nothing.
    assert repr(other.statistics) == repr(report.statistics)
    for name, column in report.components.items():
        np.testing.assert_array_equal(other.components[name], column)
    assert dict(other.component_outcomes) == dict(report.component_outcomes)
    assert other.to_arrow().equals(report.to_arrow()) and list(other) == list(report)


def test_a_report_yields_results(report: plaudit.Report):
    results = list(report)
    assert [result.total for result in results] == report.totals.tolist()
    assert [result.outcome for result in results] == report.outcomes
    assert [result.reason for result in results] == report.reasons
    first, last = results[0], results[3]
    assert first.components["accuracy"] == 1.0 and last.components["accuracy"] is None
    assert set(first.info) >= {"format.has_think_tag"} and first.group_size == 4
    totals = report.totals.tolist()
    assert first.group_totals == totals and last.group_totals == [totals[3], *totals[:3]]
    assert first.siblings_mean == pytest.approx(sum(totals[1:]) / 3)


def test_rollouts_without_a_total_get_the_mean_of_their_group():
    recipe = {"components": {"right": {"reward": "number_accuracy", "required": True}}}
    columns = ["42", "41", "x", "\ud800", "y"], ["42", "42", None, "42", None], [1, 1, 1, 1, 2]
    report = plaudit.Engine(recipe).score(None, *columns)
    assert report.valid.tolist() == [True, True, False, False, False]
    assert report.totals_or_group_mean[:4].tolist() == [1.0, 0.0, 0.5, 0.5]
    assert math.isnan(report.totals_or_group_mean[4])
    assert [result.total_or_siblings_mean for result in report][2] == 0.5


def test_rows_are_made_once(report: plaudit.Report):
    assert report.rows is report.rows


def test_valid_is_a_mask(report: plaudit.Report):
    recipe = {"components": {"kimi": {"reward": "kimi.length"}}}
    assert plaudit.Engine(recipe).score(None, ["a"], groups=["g"]).valid.tolist() == [False]
    assert report.valid.tolist() == [True] * 4
    assert report.totals[report.valid].shape == (4,)


def test_statistics_of_nothing_have_a_mean():
    statistics = plaudit.Engine("quickstart").score(None, []).statistics
    assert math.isnan(statistics["total"]["mean"]) and statistics["total"]["count"] == 0
    assert all(math.isnan(each["values"]["std"]) for each in statistics["components"].values())
