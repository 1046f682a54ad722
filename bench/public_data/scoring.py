"""Sets of rows with a known truth, scored by the command `plaudit score` and counted.

A set yields cases: a rollout and what the published truth says of it. Most truths are one verdict, right or wrong; `read` takes others
out of a result. A rollout that could not be judged (`invalid`, `skipped`, or a line that could not be read) agrees with nothing.
"""

import collections
import dataclasses
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterable

Verdicts = list[tuple[object, object]]


def total(result: dict | None, expected: bool) -> Verdicts:
    """The truth of most sets: did the response earn everything, or not."""
    judged = result is not None and result["outcome"] in ("scored", "floored")
    return [(expected, result["total"] > 1 - 1e-9 if judged else None)]


@dataclasses.dataclass
class Set:
    """Rows of one source. `source` and `commit` say where they are from, `name` which they are; `wanted` is what agreement means."""

    topic: str
    source: str
    commit: str
    name: str
    component: dict
    cases: Callable[[], Iterable[tuple[dict, object]]]
    read: Callable[[dict | None, object], Verdicts] = total
    # Parameters of the component that a command may not know yet. It is run without them then.
    newer: dict = dataclasses.field(default_factory=dict)

    def results(self, binary: str, rows: list[dict]) -> list[dict | None]:
        """The result of each row, or None for a line that could not be read."""
        # A file of programs takes longer than a group may wait by default.
        recipes = [
            {"components": {"right": {"weight": 1.0, **self.component, **newer}}, "groups": {"timeout": "12h"}}
            for newer in (self.newer, {})
        ]
        found = score(binary, recipes, [{"id": str(number), **row} for number, row in enumerate(rows)])
        return [found.get(str(number)) for number in range(len(rows))]

    @property
    def key(self) -> str:
        return f"{self.topic}/{self.source}/{self.name}"


def score(binary: str, recipes: list[dict], rows: Iterable[dict]) -> dict[str, dict]:
    """The results of the command by id, with the first of the recipes that it knows all keys of.

    The exit code is not looked at: rows that cannot be scored are among what is counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        with (place / "rows.jsonl").open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        command = [binary, "score", "rows.jsonl", "--recipe", "recipe.yaml", "--out", "results.jsonl", "--abort-after", "never"]
        for recipe in recipes:
            (place / "recipe.yaml").write_text(json.dumps(recipe), encoding="utf-8")
            done = subprocess.run(command, cwd=place, capture_output=True, text=True)
            if "recipe.unknown_key" not in done.stderr:
                break
        results = place / "results.jsonl"
        if not results.exists():
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        with results.open(encoding="utf-8") as file:
            return {result["id"]: result for result in map(json.loads, file)}


def why(result: dict | None) -> str:
    """Why a result is what it is, in a word that can be counted."""
    if result is None:
        return "unread"
    if reason := result.get("reason"):
        return reason["code"]
    component = next(iter(result["components"].values()), {})
    return str(component.get("info", {}).get("why", result["outcome"]))


def count(binary: str, rows_of: Set, failing: pathlib.Path | None = None) -> dict:
    """Scores one set: how many verdicts there are, how many agree, and of the others which way they fall and why."""
    cases = list(rows_of.cases())
    results = rows_of.results(binary, [row for row, _ in cases])
    counts: collections.Counter = collections.Counter(rows=0, agree=0, false_one=0, false_zero=0, unscored=0)
    kinds: collections.Counter = collections.Counter()
    bad = []
    for (row, expected), result in zip(cases, results):
        verdicts = rows_of.read(result, expected)
        agree = True
        for truth, got in verdicts:
            agree &= truth == got
            counts["rows"] += 1
            counts["agree" if truth == got else "unscored" if got is None else "false_one" if got else "false_zero"] += 1
        if not agree:
            kinds[why(result)] += 1
            bad.append({**row, "expected": expected, "result": result})
    if failing and bad:
        file = failing / (rows_of.key.replace("/", "_").replace(" ", "-") + ".jsonl")
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in bad), encoding="utf-8")
    return {
        "topic": rows_of.topic,
        "source": rows_of.source,
        "commit": rows_of.commit,
        "set": rows_of.name,
        **counts,
        "kinds": dict(kinds.most_common()),
    }


def jsonl(path: pathlib.Path) -> list:
    """The values of a file: JSON lines, or one list."""
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]
