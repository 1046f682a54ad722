#!/usr/bin/env python3
"""Math verifiers side by side: right and wrong on the golden vectors, and responses a second. Exit code 1 below a floor.

    python3 bench/mathematics.py            # about two minutes
    python3 bench/mathematics.py --hostile  # math-verify on the hostile vectors too, which it takes minutes for

math-verify 0.9.0 and plaudit run here, one after the other. What the other scorers say of each vector was recorded in
golden/math_verify.jsonl when they were run; their rows of the table come from there.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys

from run import HERE, ROOT, figures, machine

VECTORS = ROOT / "golden" / "math_verify.jsonl"
CORPUS = HERE / "data" / "math.jsonl"
# What must be reached: the share of right verdicts, false positives, and how many times math-verify's rate.
LEAST_RIGHT, MAX_CREDIT, LEAST_RATIO = 0.99, 2, 300


def judged(rows, credit):
    """Counts of a scorer on the settled vectors; `credit` says whether it gives a row credit."""
    counts = collections.Counter()
    for row in rows:
        right = credit(row)
        counts["all"] += 1
        counts["right"] += right == (row["truth"] == 1)
        counts["false_positives"] += right and row["truth"] == 0
        counts["false_negatives"] += not right and row["truth"] == 1
    return dict(counts)


def show(name, counts):
    share = 100 * counts["right"] / counts["all"]
    cells = (f"{share:.1f} %", counts["false_positives"], counts["false_negatives"])
    print(f"| {name} | {' | '.join(map(str, cells))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=20.0, help="processor seconds of math-verify on the corpus")
    parser.add_argument("--hostile", action="store_true", help="math-verify on the hostile vectors too")
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-math.json unless given")
    options = parser.parse_args()

    subprocess.run([HERE / "setup.sh"], check=True)
    subprocess.run([sys.executable, HERE / "corpus.py"], check=True, stdout=sys.stderr)
    cargo = ["--release", "--package", "plaudit-math", "--example", "vectors"]
    subprocess.run(["cargo", "build", "--quiet", *cargo], cwd=ROOT, check=True)

    where = machine()
    os.environ["PYTHONPATH"] = str(HERE / ".venv" / "math")
    hostile = ["--hostile"] if options.hostile else []
    python = HERE / ".venv" / "bin" / "python"
    peer = figures([python, HERE / "mathematics_peer.py", VECTORS, CORPUS, "--budget", str(options.budget), *hostile])
    del os.environ["PYTHONPATH"]
    ours = figures(["cargo", "run", "--quiet", *cargo, "--", VECTORS, CORPUS])

    with open(VECTORS, encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["truth"] is not None]
    here = [row for row in rows if row["id"] in peer["vectors"]]
    tables = {"plaudit": judged(rows, lambda row: ours["vectors"][row["id"]] == 1)}
    for name in rows[0]["peers"]:
        tables[name] = judged(rows, lambda row, name=name: row["peers"][name] == 1.0)
    live = judged(here, lambda row: peer["vectors"][row["id"]] == 1)

    print(f"{where['cpu']}, {where['cores']} cores; Python {where['python']}; rustc {where['rustc']}\n")
    print(f"| Scorer, {len(rows)} vectors | Right | False positives | False negatives |\n|---|---|---|---|")
    for name, counts in sorted(tables.items(), key=lambda item: -item[1]["right"]):
        show(name, counts)
    print(f"\n| In this run, {len(here)} vectors | Right | False positives | False negatives |\n|---|---|---|---|")
    show("plaudit", judged(here, lambda row: ours["vectors"][row["id"]] == 1))
    show("math-verify 0.9.0, reference boxed", live)

    shared = peer["corpus"]["said"]
    differ = [at for at in shared if shared[at] != ours["corpus"]["said"][at]]
    ratio = ours["corpus"]["per_s"] / peer["corpus"]["per_s"]
    print("\n| Responses of 1.2 KB in groups of 8, one core | a second |\n|---|---|")
    print(f"| math-verify 0.9.0 | {peer['corpus']['per_s']:,.0f} |\n| plaudit | {ours['corpus']['per_s']:,.0f} |")
    print(f"| ratio | {ratio:,.0f} |\n\n{len(shared) - len(differ)} of {len(shared)} verdicts are the same; differing: {differ[:5]}")
    slowest = {name: side["seconds"] for name, side in (("plaudit", ours), ("math-verify", peer))}
    print("seconds of one verification:", json.dumps(slowest))

    date = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{date}-math.json"
    seconds = {"plaudit": ours["seconds"], "math_verify_0.9.0": peer["seconds"]}
    rate = {"plaudit": ours["corpus"]["per_s"], "math_verify_0.9.0": peer["corpus"]["per_s"], "ratio": ratio}
    raw = {"date": date, "machine": where, "vectors": tables, "in_this_run": live, "seconds": seconds, "per_s": rate, "differ": differ}
    out.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(f"raw figures: {out}", file=sys.stderr)
    own = tables["plaudit"]
    reached = own["right"] >= LEAST_RIGHT * own["all"] and own["false_positives"] <= MAX_CREDIT and ratio >= LEAST_RATIO
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
