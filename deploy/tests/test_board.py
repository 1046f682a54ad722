"""The Grafana board and the alerts ask for metrics and labels that the service really has, and the board shows all of them."""

import json

import promql_parser
import pytest
import yaml
from conftest import ROOT

BOARD = json.loads((ROOT / "deploy/grafana/boards/plaudit.json").read_text())
RULES = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
# What Prometheus adds to every series, and what an alert says of itself.
ADDED = {"instance", "job"}


def expressions():
    """Every expression with its place, and the labels that its legend or its text names."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for rule in RULES["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"], rule["annotations"]["summary"].replace("$labels.", "")


def selectors(expression):
    """The vector selectors of an expression, each with the labels that it matches."""
    node = promql_parser.parse(expression.replace("$__rate_interval", "1m"))
    found, grouped, waiting = [], set(), [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, promql_parser.VectorSelector):
            found.append((node.name, {matcher.name for matcher in node.matchers.matchers}))
            continue
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            grouped |= set(node.modifier.labels)
        for part in ("expr", "lhs", "rhs", "vector_selector", "args"):
            inner = getattr(node, part, None)
            waiting += inner if isinstance(inner, list) else [inner] if inner is not None else []
    return found, grouped


def names_in(legend):
    """`{{run}}: {{code}}` names run and code."""
    return {part.split("}}")[0].strip() for part in legend.split("{{")[1:]} - {"$value"}


@pytest.mark.parametrize("place, expression, legend", list(expressions()))
def test_expression_asks_for_live_metrics_and_labels(place, expression, legend, metrics):
    found, grouped = selectors(expression)
    assert found, f"{place}: no metric in {expression}"
    for name, matched in found:
        if name == "up":
            continue
        assert name in metrics, f"{place}: the service has no {name}"
        known = metrics[name] | ADDED
        assert matched | grouped <= known, f"{place}: {name} has no label {(matched | grouped) - known}"
        # What is left after an aggregation is what it groups by.
        left = grouped if grouped else known
        assert names_in(legend) <= left, f"{place}: {legend} names {names_in(legend) - left}"


def test_board_shows_every_metric(metrics):
    shown = {name for _, expression, _ in expressions() for name, _ in selectors(expression)[0]}
    # A summary and a histogram have a sum and a count beside what is drawn.
    rest = {name for name in metrics if name not in shown and name.rsplit("_", 1)[-1] not in ("sum", "count")}
    assert not rest, f"no panel shows {sorted(rest)}"


def test_board_is_well_formed():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    cells = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, f"{panel['title']} lies on another panel"
                cells.add((x, y))
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    text = json.dumps(BOARD)
    for name in ("datasource", "instance", "owner", "run"):
        assert name in variables and f"${name}" in text.replace("${", "$"), name
