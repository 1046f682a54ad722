#!/usr/bin/env python3
"""RM-Gallery and plaudit side by side on the rule rewards: one table, one raw file, exit code 1 below a floor.

    python3 bench/run.py            # both sides; about three minutes
    python3 bench/run.py --budget 1 # quick look

The figures are samples per second of CPU time on one core, except the `/batch` cases: wall time on all cores.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

# How many times the peer's rate plaudit must reach; None is shown and not judged.
FLOORS = {
    "reasoning_format": 40,
    "reasoning_tool_call_format": 40,
    "reasoning_tool_call_format/tools": 40,
    "length_penalty": 40,
    "ngram/simple": 25,
    "ngram/simple_soft_5": 25,
    "ngram/jieba": 25,
    "ngram/tiktoken": 5,
    "privacy_leakage": 25,
    "accuracy": 40,
    "number_accuracy": 40,
    "f1/simple": 10,
    "f1/jieba": 25,
    "f1/tiktoken": 5,
    "rouge": 500,
    # ruff's parser takes four fifths of it; the peer's time is that of CPython's parser, which is written in C.
    "code_syntax_check": 12,
    "code_style": 20,
    "code_patch_similarity": 20,
    "composition": 40,
    "reasoning_format/batch": None,
    "composition/batch": 100,
}


def figures(command):
    """Runs one side and reads the JSON object that it prints."""
    print("+", " ".join(map(str, command)), file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def version(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": version(HERE / ".venv" / "bin" / "python", "--version").removeprefix("Python "),
        "rustc": version("rustc", "--version").removeprefix("rustc "),
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


def compare(peer, engine):
    """One row a case: name, both rates, ratio, floor and verdict. A case that one side lacks is below its floor."""
    rows = []
    for name, floor in FLOORS.items():
        theirs, ours = (side.get(name, {}).get("per_s") for side in (peer, engine))
        ratio = ours / theirs if ours and theirs else None
        reached = floor is None or (ratio is not None and ratio >= floor)
        rows.append((name, theirs, ours, ratio, floor, "-" if floor is None else "ok" if reached else "BELOW"))
    return rows


def table(rows):
    def cell(value, digits):
        return "-" if value is None else f"{value:,.{digits}f}"

    lines = [("case", "peer/s", "plaudit/s", "ratio", "floor", "")]
    for name, theirs, ours, ratio, floor, verdict in rows:
        lines.append((name, cell(theirs, 1), cell(ours, 0), cell(ratio, 1), cell(floor, 0), verdict))
    widths = [max(map(len, column)) for column in zip(*lines)]
    for name, *numbers, verdict in lines:
        aligned = "  ".join(number.rjust(width) for number, width in zip(numbers, widths[1:-1]))
        print(f"{name.ljust(widths[0])}  {aligned}  {verdict}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=6.0, help="CPU seconds a case for the peer")
    parser.add_argument("--profile", default="release", help="cargo profile of the engine")
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-rules.json unless given")
    options = parser.parse_args()

    subprocess.run([HERE / "setup.sh"], check=True)
    # Written anew each time: it takes a second, and a corpus left over from an older corpus.py would mislead.
    subprocess.run([sys.executable, HERE / "corpus.py"], check=True, stdout=sys.stderr)
    # Built before anything is timed, so that the compiler does not run between the two sides.
    cargo = ["--profile", options.profile, "--package", "plaudit", "--example", "bench"]
    subprocess.run(["cargo", "build", "--quiet", *cargo], cwd=ROOT, check=True)

    where = machine()
    peer = figures([HERE / ".venv" / "bin" / "python", HERE / "peer.py", "--budget", str(options.budget)])
    engine = figures(["cargo", "run", "--quiet", *cargo, "--", "bench/data"])

    rows = compare(peer, engine)
    print(f"{where['cpu']}, {where['cores']} cores; Python {where['python']}; rustc {where['rustc']}")
    table(rows)

    date = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{date}-rules.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    raw = {"date": date, "machine": where, "budget_s": options.budget, "profile": options.profile, "peer": peer, "plaudit": engine}
    out.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(f"raw figures: {out}", file=sys.stderr)
    return 1 if any(row[-1] == "BELOW" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
