"""Checks before a training starts, in the lines of `plaudit doctor`: the trainer's version, and the columns of a data set as its
adapter reads them. `plaudit doctor --trainer` and `python -m plaudit.verl check` are made of them.

The recipe, its judges, the sandbox and the rows are checked by the command itself, with the columns found here as its fields.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from plaudit import _plaudit, imports
from plaudit.verl.options import REFERENCE
from plaudit.verl.rollout_reader import at, paths

# The packages whose versions a question about a trainer begins with.
PACKAGES = {"trl": ("trl", "transformers", "torch"), "verl": ("verl", "ray", "torch", "transformers")}
TRAINERS = tuple(PACKAGES)
# How the settings of a trainer make COLUMN the reference.
RENAME = {
    "trl": 'Reward(columns={"COLUMN": "reference"})',
    "verl": "+reward.reward_kwargs.reference=COLUMN",
}


class Checks:
    """Prints findings line by line, as the command does, and remembers the worst exit code."""

    def __init__(self) -> None:
        self.code = 0

    def good(self, what: str, said: str) -> None:
        self._print("ok", what, said)

    def doubt(self, what: str, said: str) -> None:
        self._print("warn", what, said)

    def fail(self, what: str, said: str) -> None:
        self._print("FAIL", what, said)
        self.code = max(self.code, 1)

    def doctor(self, *arguments: str) -> None:
        """The lines of the command itself."""
        sys.stdout.flush()
        own = sys.stdout
        self.code = max(self.code, _plaudit.main(["plaudit", "doctor", *arguments], imports.for_command))
        # Where it imports a module, it leaves stdout to itself.
        sys.stdout = own

    def _print(self, mark: str, what: str, said: str) -> None:
        lines = "\n        ".join(said.splitlines())
        print(f"{mark:<4}  {what:<23} {lines}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """`plaudit doctor --trainer TRAINER [DATA] [--recipe RECIPE]`."""
    parser = argparse.ArgumentParser("plaudit doctor", allow_abbrev=False)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--trainer", choices=TRAINERS, required=True)
    parser.add_argument("--recipe", "-r", default="quickstart")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--field", action="append", default=[], metavar="FIELD=NAME")
    parser.add_argument("--import", action="append", default=[], metavar="MODULE", dest="modules")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--state")
    chosen = parser.parse_args(arguments)
    checks = Checks()
    check_versions(checks, chosen.trainer)
    recipe = ["--recipe", chosen.recipe, *(word for each in chosen.set for word in ("--set", each))]
    recipe += [word for each in chosen.modules for word in ("--import", each)]
    more = ["--all"] if chosen.all else []
    checks.doctor(*recipe, *more, *(["--state", chosen.state] if chosen.state else []))
    if chosen.data is not None:
        check_data(checks, chosen.trainer, chosen.data, recipe, chosen.field)
    return checks.code


def check_versions(checks: Checks, trainer: str) -> None:
    """What is installed beside plaudit."""
    found = {}
    for package in PACKAGES[trainer]:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    said = ", ".join(f"{name} {version}" for name, version in found.items())
    if trainer in found:
        checks.good(trainer, said)
    else:
        checks.fail(trainer, f"{trainer} is not installed for {sys.executable}")


def check_data(
    checks: Checks,
    trainer: str,
    data: str,
    recipe: Sequence[str] | None,
    fields: Sequence[str] = (),
    reference: Sequence[str] = REFERENCE,
) -> None:
    """The columns of a file as the adapter reads them, then every row of it by the command.

    `recipe` are arguments of the command; without them the rows are not looked at. `fields` are given by the user and go before what the adapter would find; `reference` are verl's places of the reference.
    """
    try:
        row = first_row(Path(data))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a file, the other checks go on.
        checks.fail("data", f"{data} cannot be read: {error}")
        return
    names = list(paths(row)) if trainer == "verl" else [name for name in row if name != "prompt"]
    wanted = [place for place in fields if place.startswith("reference=")]
    found = wanted[0].partition("=")[2] if wanted else reference_of(trainer, row, reference)
    if found is None:
        looked = tuple(reference) if trainer == "verl" else trl_references()
        advice = _plaudit.abort_advice("input.missing_reference", names, RENAME[trainer])
        said = f"{data} has none in {', '.join(looked)}{f'; {advice}' if advice else ''}"
        # The command would look further than verl's adapter, which knows these places alone.
        misnamed = (
            trainer == "verl" and looked != REFERENCE and not any(is_there(row, each) for each in looked)
        )
        (checks.fail if misnamed else checks.doubt)("reference", said)
    else:
        checks.good("reference", f"{data}: {found}")
    if "prompt" not in row:
        checks.doubt("prompt", f"{data} has no column `prompt`, which {trainer} reads")
    if trainer == "verl" and "data_source" not in row:
        checks.fail("data_source", f"{data} has no column `data_source`, which verl reads")
    mapped = [] if wanted or found is None else [f"reference={found}"]
    if trainer == "verl" and isinstance(row.get("extra_info"), Mapping):
        mapped.append("extra=extra_info")
    if recipe is not None:
        checks.doctor(data, *recipe, *(word for each in (*fields, *mapped) for word in ("--field", each)))


def reference_of(trainer: str, row: Mapping[str, Any], places: Sequence[str]) -> str | None:
    """Where the adapter finds the reference of a row."""
    if trainer == "verl":
        return next((place for place in places if at(row, place) not in (None, "")), None)
    return next((name for name in trl_references() if name in row), None)


def is_there(row: Any, place: str) -> bool:
    """Whether a row has a place, be it empty; also where an absent part of the row cannot tell."""
    for name in place.split("."):
        if isinstance(row, Mapping):
            if name not in row:
                return False
            row = row[name]
        elif isinstance(row, list) and name.isdigit():
            row = row[int(name)] if int(name) < len(row) else None
        else:
            return row is None
    return True


def trl_references() -> tuple[str, ...]:
    from plaudit.trl.call import REFERENCES

    return REFERENCES


def first_row(path: Path) -> dict[str, Any]:
    """The first row of a file of Parquet or JSON lines."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1):
                return batch.to_pylist()[0]
        raise ValueError("it has no rows")
    with path.open(encoding="utf-8") as file:
        row = json.loads(next((line for line in file if line.strip()), "null"))
    if not isinstance(row, dict):
        raise ValueError("its first line is no JSON object")
    return row
