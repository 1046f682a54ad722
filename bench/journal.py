#!/usr/bin/env python3
"""Benchmark of the journal against SQLite: durable puts, processor time, and what damage costs.

    python3 bench/journal.py                     # builds the example in release, then measures
    python3 bench/journal.py --binary PATH       # measures one that is built

SQLite runs in WAL mode with synchronous=FULL, so that a commit is durable as a record of the journal is. Its processor time
includes Python's share of `executemany`. For the damage, 1,000 judgments of 2 KB are written and 200 seeded places of the file
are damaged in each of three ways; a SQLite row counts as kept if it is found by its key or by its row number.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

from run import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SIZE = 2000
RECORDS = 1000
PLACES = 200
FLIGHTS = {1: 400, 64: 16000}
ROUNDS = 5


def ours(binary, *words):
    done = subprocess.run([binary, *map(str, words)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def rows(count):
    """Rows as a journal would have them."""
    noise = random.Random(0)
    return [(noise.randbytes(32), 0.8, "a-judge", noise.randbytes(SIZE)) for _ in range(count)]


def database(path):
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("PRAGMA journal_mode=WAL")
    store.execute("PRAGMA synchronous=FULL")
    store.execute("CREATE TABLE judgments (key BLOB PRIMARY KEY, latency REAL, judge TEXT, body BLOB)")
    return store


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sqlite_put(path, data, flight):
    store = database(path)
    wall, used = time.perf_counter(), processor()
    for start in range(0, len(data), flight):
        store.execute("BEGIN")
        store.executemany("INSERT INTO judgments VALUES (?, ?, ?, ?)", data[start : start + flight])
        store.execute("COMMIT")
    wall, used = time.perf_counter() - wall, processor() - used
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return {"wall_s": wall, "cpu_s": used, "per_s": len(data) / wall, "cpu_us": used / len(data) * 1e6}


def damage(good, kind, noise):
    """The damaged bytes, and where the damage begins and ends."""
    at = noise.randrange(len(good))
    if kind == "truncate":
        return good[:at], at, len(good)
    bad = bytearray(good)
    end = at + 1 if kind == "flip" else min(at + 512, len(good))
    if kind == "flip":
        bad[at] ^= 1 << noise.randrange(8)
    else:
        bad[at:end] = bytes(end - at)
    return bytes(bad), at, end


def journal_spans(good):
    """Where each record lies: behind the header and the mark of a start, all of one length."""
    first = 64 + 41
    length = (len(good) - first) // RECORDS
    return [(first + number * length, first + (number + 1) * length) for number in range(RECORDS)]


def sqlite_spans(good, data):
    """Where each row lies: its body, and the 60 bytes before it that hold its key and its lengths."""
    bodies = [good.index(row[3]) for row in data]
    return [(body - 60, body + SIZE) for body in bodies]


def sqlite_check(path, data):
    """How many rows are served right, and how many are served wrong."""
    right = wrong = 0
    store = sqlite3.connect(path)
    for number, row in enumerate(data):
        found = []
        for where, value in (("key", row[0]), ("rowid", number + 1)):
            try:
                query = f"SELECT key, latency, judge, body FROM judgments WHERE {where} = ?"
                found += store.execute(query, (value,)).fetchall()
            except (sqlite3.Error, UnicodeDecodeError):
                pass
        right += row in found
        # A row that is found by its key and is another one would be taken for a judgment.
        wrong += any(other[0] == row[0] and other != row for other in found)
    store.close()
    return {"right": right, "wrong": wrong}


def damages(good, spans, write, check):
    """What each kind of damage costs."""
    out = {}
    for kind in ("flip", "zero 512 B", "truncate"):
        noise = random.Random(kind)
        trials = []
        for _ in range(PLACES):
            bad, start, end = damage(good, kind, noise)
            write(bad)
            seen = check()
            whole = sum(last <= start or first >= end for first, last in spans)
            trials.append({"whole": whole, "right": seen["right"], "wrong": seen["wrong"]})
        out[kind] = trials
    return out


def summary(trials):
    """Of the judgments that were not hit, how many survive; and how many wrong ones are served."""
    whole = [trial for trial in trials if trial["whole"]]
    return {
        "survive": sum(min(trial["right"], trial["whole"]) for trial in whole) / sum(trial["whole"] for trial in whole),
        "worst": min(min(trial["right"], trial["whole"]) / trial["whole"] for trial in whole),
        "nothing_left": sum(trial["right"] == 0 for trial in whole),
        "wrong_served": sum(trial["wrong"] for trial in trials),
    }


def speed(binary, folder):
    """Medians over rounds in turn, because other users of the disk come and go."""
    rounds = {}
    for turn in range(ROUNDS):
        for flight, count in FLIGHTS.items():
            place = folder / f"{turn}-{flight}"
            data = rows(count)
            for name, measured in (
                ("journal", ours(binary, "put", f"{place}-put", count, SIZE, flight)),
                ("journal with intents", ours(binary, "call", f"{place}-call", count, SIZE, flight)),
                ("sqlite", sqlite_put(f"{place}.db", data, flight)),
            ):
                rounds.setdefault(f"{name}, {flight}", []).append(measured)
    out = {}
    for name, measured in sorted(rounds.items(), key=lambda row: int(row[0].rsplit(" ", 1)[1])):
        out[name] = {field: statistics.median(row[field] for row in measured) for field in ("per_s", "cpu_us")}
        out[name]["rounds"] = measured
    return out


def robustness(binary, folder):
    state = folder / "damage"
    ours(binary, "put", state, RECORDS, SIZE, 64)
    log = state / "judgments.log"
    good = log.read_bytes()
    check = lambda: ours(binary, "check", state, RECORDS, SIZE)
    journal = damages(good, journal_spans(good), log.write_bytes, check)
    data, path = rows(RECORDS), folder / "damage.db"
    sqlite_put(path, data, 64)

    def write(bad):
        for name in ("damage.db-wal", "damage.db-shm"):
            (folder / name).unlink(missing_ok=True)
        path.write_bytes(bad)

    good = path.read_bytes()
    return {"journal": journal, "sqlite": damages(good, sqlite_spans(good, data), write, lambda: sqlite_check(path, data))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", help="the built example journal_bench")
    parser.add_argument("--folder", help="where to write; a disk, not a file system in memory")
    options = parser.parse_args()
    binary = options.binary
    if not binary:
        build = ["cargo", "build", "--release", "--locked", "-p", "plaudit", "--example", "journal_bench"]
        subprocess.run(build, cwd=ROOT, check=True)
        binary = TARGET / "release" / "examples" / "journal_bench"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="plaudit-journal-", dir=options.folder))
    try:
        result = {"machine": machine(), "sqlite": sqlite3.sqlite_version, "speed": speed(binary, folder)}
        ours(binary, "put", folder / "large", 100_000, SIZE, 1024)
        result["open_100k"] = ours(binary, "check", folder / "large", 100_000, SIZE)
        trials = robustness(binary, folder)
    finally:
        shutil.rmtree(folder)
    result["damage"] = {
        store: {kind: summary(seen) for kind, seen in kinds.items()} for store, kinds in trials.items()
    }
    result["trials"] = trials
    print("| Store, judgments of 2 KB in flight | durable puts/s | slowest to fastest round | processor us/put |\n|---|---|---|---|")
    for name, row in result["speed"].items():
        rates = [each["per_s"] for each in row["rounds"]]
        print(f"| {name} | {row['per_s']:,.0f} | {min(rates):,.0f} to {max(rates):,.0f} | {row['cpu_us']:.0f} |")
    print("\n| Damage | Store | of those not hit, survive | worst trial | nothing left | wrong served |\n|---|---|---|---|---|---|")
    for store, kinds in result["damage"].items():
        for kind, row in kinds.items():
            print(
                f"| {kind} | {store} | {row['survive']:.2%} | {row['worst']:.2%} | "
                f"{row['nothing_left']} of {PLACES} | {row['wrong_served']} |"
            )
    large = result["open_100k"]
    print(f"\n100,000 judgments: opened in {large['open_s']:.2f} s, {large['resident_bytes'] / 1e5:.0f} bytes of memory each")
    path = HERE / "runs" / f"{datetime.date.today()}-journal.json"
    path.write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
