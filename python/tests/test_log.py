"""Metrics of a report for trackers: their names, what is left out, and the table of groups. The trackers: tests/loggers."""

from __future__ import annotations

import math

import plaudit
import plaudit.log
import pytest

RECIPE = {
    "name": "small",
    "components": {
        "right": {"reward": "number_accuracy", "weight": 1.0, "required": True},
        "length": {"reward": "total_length", "weight": 0.5, "unit": "character", "max": 40, "band": 20},
    },
}
PROMPTS = ["6 * 7?"] * 3 + ["1 + 1?"] * 2
RESPONSES = ["42", "The answer is 41.", "42" + " so" * 20, "2", "2"]
REFERENCES = ["42", "42", "42", "2", None]


@pytest.fixture(scope="module")
def report() -> plaudit.Report:
    return plaudit.Engine(RECIPE).score(PROMPTS, RESPONSES, references=REFERENCES)


def test_names_are_the_paths_of_the_statistics(report: plaudit.Report) -> None:
    found = plaudit.log.metrics(report, only="*")
    statistics = report.statistics
    assert found["plaudit/rollouts"] == 5
    assert found["plaudit/total/mean"] == statistics["total"]["mean"]
    assert found["plaudit/total/quantiles/p50"] == statistics["total"]["quantiles"]["p50"]
    assert found["plaudit/components/right/values/std"] == statistics["components"]["right"]["values"]["std"]
    assert found["plaudit/groups/zero_variance_share"] == statistics["groups"]["zero_variance_share"]
    assert found["plaudit/outcomes/reasons/invalid/input.missing_reference"] == 1
    assert found["plaudit/outcomes/invalid_share"] == pytest.approx(0.2)
    assert found["plaudit/correctness/right_share"] == pytest.approx(0.75)
    # The bars of histograms are no metrics.
    assert not any("histogram" in name for name in found)


def test_what_has_no_number_is_left_out(report: plaudit.Report) -> None:
    found = plaudit.log.metrics(report, only="*")
    assert all(isinstance(value, float) and math.isfinite(value) for value in found.values())
    assert math.isnan(report.statistics["tokens"]["mean"]) and "plaudit/tokens/mean" not in found
    assert found["plaudit/tokens/count"] == 0
    nothing = plaudit.log.metrics(plaudit.Engine(RECIPE).score([], []))
    assert "plaudit/total/mean" not in nothing and "plaudit/outcomes/invalid_share" not in nothing
    assert nothing["plaudit/rollouts"] == 0


def test_a_part_and_another_prefix(report: plaudit.Report) -> None:
    found = plaudit.log.metrics(report, prefix="", only=["total/m*", "groups/*share"])
    assert set(found) == {"total/mean", "total/min", "total/max", "groups/zero_variance_share"}
    assert plaudit.log.metrics(report.statistics, only=["rollouts"]) == {"plaudit/rollouts": 5.0}


def test_without_a_choice_the_short_list_is_written(report: plaudit.Report) -> None:
    found = plaudit.log.metrics(report)
    everything = plaudit.log.metrics(report, only="*")
    assert set(found) < set(everything) and len(found) < 25 < len(everything)
    for name in (
        "total/mean",
        "components/right/values/mean",
        "outcomes/invalid_share",
        "outcomes/reasons/invalid/input.missing_reference",
        "groups/zero_variance_share",
    ):
        assert f"plaudit/{name}" in found, name
    assert plaudit.log.metrics(report, only=plaudit.log.SHORT) == found


def test_every_documented_name_exists(report: plaudit.Report) -> None:
    """The rows of the table in the guide that hold for any recipe."""
    found = plaudit.log.metrics(report, only="*")
    for name in (
        "total/count",
        "components/right/outcomes/scored",
        "outcomes/floored_share",
        "correctness/wrong",
        "groups/size/mean",
        "groups/std/mean",
        "groups/without_signal",
        "groups/all_right",
        "groups/mixed",
        "characters/mean",
        "length_correlation",
        "repetition/duplicates",
    ):
        assert f"plaudit/{name}" in found, name


def test_the_table_of_groups(report: plaudit.Report) -> None:
    columns, rows = plaudit.log.group_table(report, PROMPTS, RESPONSES)
    first, second = ({name: value for name, value in zip(columns, row)} for row in rows)
    assert (first["size"], first["right"], first["scored"], first["invalid"]) == (3, 2, 3, 0)
    assert first["max"] == 1.0 and first["min"] < first["mean"] < first["max"]
    assert (first["prompt"], first["best"], first["worst"]) == (PROMPTS[0], RESPONSES[0], RESPONSES[1])
    assert (second["size"], second["invalid"], second["mean"], second["std"]) == (2, 1, 1.0, 0.0)
    assert columns[-3:] == ["prompt", "best", "worst"]
    short, one = plaudit.log.group_table(report, most=1)
    assert len(one) == 1 and short == columns[:-3]
    with pytest.raises(plaudit.ArgumentError, match="prompts has 1 entries"):
        plaudit.log.group_table(report, PROMPTS[:1])


def test_a_group_without_a_number_has_none_in_the_table() -> None:
    report = plaudit.Engine(RECIPE).score(["q"], ["r"])
    columns, rows = plaudit.log.group_table(report, None, ["r"])
    row = dict(zip(columns, rows[0]))
    assert row["invalid"] == 1
    assert row["mean"] is None and row["best"] is None and row["worst"] is None and row["right"] is None


@pytest.mark.parametrize("to", ["wandbb", "tensorboard", "tensorboard:", "wandb:x", 7, object()])
def test_what_is_no_tracker_is_refused(report: plaudit.Report, to: object) -> None:
    with pytest.raises(plaudit.ArgumentError):
        plaudit.log.log_report(report, to=to)
