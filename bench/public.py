#!/usr/bin/env python3
"""plaudit on public data that others wrote: how often it agrees with the truth that was published with them.

    python3 bench/public.py DATA --bin target/release/plaudit            # all sets; about ten minutes, most of them for programs
    python3 bench/public.py DATA --only mathematics,choice               # a few topics
    python3 bench/public.py DATA --peer VENV/bin/python --record         # math-verify beside it, and a new record
    python3 bench/public.py --page                                       # write the tables of docs/guide/how-right.md

DATA holds the sources, each in a folder with the repository's name, at the commits that the table names. Nothing is fetched, and nothing
of theirs is kept: a record has counts. Sources that are not there are named and left out. The exit code is 1 where fewer rows agree than
in the last record, or more wrong answers are called right. `--failing FOLDER` keeps the rows that do not agree, with their results.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

from public_data import choices, documents, instructions, judges, mathematics, page, programs
from public_data.scoring import Set, count
from run import HERE, machine

RUNS = HERE / "runs"
TOPICS = ("mathematics", "references", "choice", "code", "instructions", "JSON Schema", "tools", "judges")
MODULES = (mathematics, choices, programs, instructions, documents, judges)
WIDTHS = "{:<12} {:<42} {:<44} {:>7} {:>7} {:>6} {:>6} {:>9}"


def line(*values):
    print(WIDTHS.format(*values), flush=True)


def topics(text):
    chosen = [name.strip() for name in text.split(",")]
    for name in chosen:
        if name not in TOPICS:
            raise argparse.ArgumentTypeError(f"there is no topic {name!r}; the topics are {', '.join(TOPICS)}")
    return chosen


def beside(python: str, rows_of: Set) -> int:
    """How many verdicts of the peer agree with the truth."""
    cases = list(rows_of.cases())
    lines = "".join(json.dumps({key: row[key] for key in ("response", "reference")}) + "\n" for row, _ in cases)
    done = subprocess.run([python, HERE / "public_data/peer.py"], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return sum(said == truth for said, (_, truth) in zip(json.loads(done.stdout), cases))


def measure(options) -> list[dict]:
    counted = []
    line("topic", "source", "set", "rows", "agree", "wrong1", "wrong0", "unjudged")
    sets = [found for module in MODULES for found in module.sets(options.data)]
    for rows_of in (found for found in sets if found.topic in options.only and options.set in found.key):
        try:
            counts = count(options.bin, rows_of, options.failing)
        except FileNotFoundError as error:
            counts = {"rows": 0}
            print(f"left out: {error.filename} is not there", file=sys.stderr)
        if not counts["rows"]:
            continue
        if options.peer and rows_of.topic == "mathematics":
            counts["peer"] = beside(options.peer, rows_of)
        counted.append(counts)
        line(*(counts[key] for key in ("topic", "source", "set", "rows", "agree", "false_one", "false_zero", "unscored")))
    return counted


def fallen(counted: list[dict], recorded: list[dict]) -> list[str]:
    """What is worse than in the record, in words."""
    before = {page.key(row): row for row in recorded}
    worse = []
    for row in counted:
        old = before.get(page.key(row))
        if old is None:
            continue
        if row["rows"] != old["rows"]:
            worse.append(f"{page.key(row)}: {row['rows']} rows, and {old['rows']} in the record; is it another commit?")
        elif row["agree"] < old["agree"]:
            worse.append(f"{page.key(row)}: {row['agree']} rows agree, and {old['agree']} in the record")
        elif row["false_one"] > old["false_one"] and old["unscored"] == row["unscored"]:
            worse.append(f"{page.key(row)}: {row['false_one']} wrong answers are called right, and {old['false_one']} in the record")
    return worse


def record_counts(options, counted: list[dict], before: list[dict]) -> None:
    """Writes a record. Sets that were not run now stay as they are in it, and so do the peer's figures."""
    date = datetime.date.today().isoformat()
    suffix = f"-{options.record}" if options.record else ""
    file = RUNS / f"{date}-public{suffix}.json"
    kept = json.loads(file.read_text(encoding="utf-8"))["sets"] if file.exists() else []
    peers = {page.key(row): row["peer"] for row in [*before, *kept] if "peer" in row}
    for row in counted:
        if (theirs := peers.get(page.key(row))) is not None:
            row.setdefault("peer", theirs)
    run = subprocess.run([options.bin, "--version"], capture_output=True, text=True)
    sets = list({page.key(row): row for row in [*kept, *counted]}.values())
    body = {"date": date, "version": run.stdout.strip(), "machine": machine(), "sets": sets}
    file.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=lambda text: pathlib.Path(text).resolve(), help="the folder of the sources")
    parser.add_argument("--only", type=topics, default=TOPICS, help="topics, with commas between them")
    parser.add_argument("--set", default="", help="only sets whose topic/source/name has this in it")
    parser.add_argument("--bin", default="plaudit", help="the command")
    parser.add_argument("--peer", help="a Python with math-verify 0.9.0, to run it on the labelled answers")
    parser.add_argument("--failing", type=lambda text: pathlib.Path(text).resolve(), help="a folder for the rows that do not agree")
    parser.add_argument("--record", nargs="?", const="", metavar="SUFFIX", help="write bench/runs/DATE-public[-SUFFIX].json")
    parser.add_argument("--page", action="store_true", help="write the tables of the guide from the records")
    options = parser.parse_args()
    if options.data is None and not options.page:
        parser.error("DATA is missing")
    worse = []
    if options.data is not None:
        options.failing and options.failing.mkdir(parents=True, exist_ok=True)
        record = page.latest(RUNS)
        before = json.loads(record.read_text(encoding="utf-8"))["sets"] if record else []
        counted = measure(options)
        worse = fallen(counted, before)
        if options.record is not None:
            record_counts(options, counted, before)
    if options.page:
        page.write(RUNS)
    for text in worse:
        print(f"BELOW {text}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
