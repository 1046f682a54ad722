"""The tables of docs/guide/how-right.md, made from the records in bench/runs: the first record beside the last."""

import json
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/how-right.md"
TITLES = {
    "mathematics": "Answers of models with a label",
    "choice": "Multiple choice",
    "code": "Programs",
    "instructions": "Instructions",
    "JSON Schema": "Documents",
    "tools": "Tool calls",
    "judges": "Judgments",
}


def key(row: dict) -> str:
    return f"{row['topic']}/{row['source']}/{row['set']}"


def records(runs: pathlib.Path) -> list[pathlib.Path]:
    """The records by date; the state before the first run against this data has `-before`."""
    return sorted(runs.glob("*-public-before.json"))[:1] + sorted(runs.glob("*-public.json"))


def latest(runs: pathlib.Path) -> pathlib.Path | None:
    return next(reversed(records(runs)), None)


def number(value) -> str:
    return "" if value is None else f"{value:,}"


def at(row: dict) -> str:
    return f"{row['source']} {row['commit']}"


def table(topic: str, now: list[dict], before: dict) -> list[str]:
    rows = [row for row in now if row["topic"] == topic]
    peer = any("peer" in row for row in rows)
    head = ["Source and commit", "Set", "Verdicts", "Agree before", "Agree", "Wrong ones", "Wrong zeros", "Not judged"]
    head += ["math-verify agrees"] if peer else []
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        old = before.get(key(row), {}).get("agree")
        figures = [row["rows"], old, row["agree"], row["false_one"], row["false_zero"], row["unscored"]]
        cells = [at(row), row["set"], *map(number, figures)] + ([number(row.get("peer"))] if peer else [])
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def references(now: list[dict], before: dict) -> list[str]:
    """One line a set of references; a cell has what agrees, or of two records both where they differ."""
    forms = ["in a box", "as a phrase", "the bare number", "worked solution", "the next row's"]
    sets: dict = {}
    for row in now:
        if row["topic"] == "references":
            name, form = row["set"].rsplit(", ", 1)
            sets.setdefault((at(row), name), {})[form] = row

    def cell(row, form):
        if row is None:
            return ""
        # Of the next row's references those count that are called equal.
        count = "false_one" if form == "the next row's" else "agree"
        old = before.get(key(row), row)[count]
        shown = number(row[count]) if old == row[count] else f"{number(old)} → {number(row[count])}"
        if form != "the next row's" and row["rows"] != row["agree"]:
            shown += f" of {number(row['rows'])}"
        return shown

    lines = [
        "| Source and commit | Set | References | In a box | As a phrase | The bare number | Worked solution | Equal to the next row's |",
        "|" + "---|" * 8,
    ]
    for (source, name), found in sets.items():
        cells = [source, name, number(found["in a box"]["rows"]), *(cell(found.get(form), form) for form in forms)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def tables(runs: pathlib.Path) -> dict[str, str]:
    """By the name of its place in the page: the text of a table."""
    first, last = (json.loads(path.read_text(encoding="utf-8")) for path in (records(runs)[0], latest(runs)))
    before = {key(row): row for row in first["sets"]}
    made = {topic: table(topic, last["sets"], before) for topic in TITLES}
    made["references"] = references(last["sets"], before)
    return {name: "\n".join(lines) for name, lines in made.items()}


def filled(text: str, made: dict[str, str]) -> str:
    """The page with its tables. Each stands between two comments that name it."""
    for name, body in made.items():
        place = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(text):
            raise SystemExit(f"{PAGE.name} has no place for the table {name!r}")
        text = place.sub(lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}", text)
    return text


def write(runs: pathlib.Path) -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables(runs)), encoding="utf-8")
