#!/usr/bin/env python3
"""Judged scoring side by side, its cost and its worth: the command and RM-Gallery 0.1.7 on the same simulated judge.

    python3 bench/judges.py                        # everything; about ten minutes
    python3 bench/judges.py --only throughput      # one part: throughput, stragglers, dgr, signal, bias or noise

Prints every figure with its floor and REACHED or MISSED, and exits with 1 where one is missed. The judge and the command
share the machine; what each of them took of it is in the raw file.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from corpus import prose
from run import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMMAND = TARGET / "release" / "plaudit"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE") / 2**20

CONCURRENCY = 128
LATENCY = 0.020
IDEAL = CONCURRENCY / LATENCY

PAIRWISE = "reward: principle, mode: pairwise, judge: main, principles: [helpfulness, harmlessness, honesty]"
LISTWISE = PAIRWISE.replace("pairwise", "listwise")
RECIPE = """name: judges
components:
  judged: {{ {asks} }}
judges:
  main: {{ base_url: "{url}", model: judge-sim, concurrency: {concurrency}, answer_format: {answer_format} }}
"""


class Sim:
    """The simulated judge, as long as it is needed."""

    def __init__(self, **options):
        flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        self.command = [COMMAND, "judge-sim", "--port", "0", *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.cpu_s = processor(self.process.pid)
        self.process.terminate()
        self.account = self.process.communicate()[1].strip()
        self.requests = int(re.match(r"([\d,]+) requests", self.account)[1].replace(",", ""))


def processor(pid):
    """The processor seconds of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def watched(pid):
    """The resident memory of a process in MB and the number of its open files."""
    try:
        resident = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        return round(resident, 1), len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None


def write_rollouts(path, groups, size, length=2000, spreads=(1.0,), seed=7):
    """Groups of responses that differ and say their hidden quality; the qualities, group by group."""
    rng = random.Random(seed)
    qualities = []
    with open(path, "w", encoding="utf-8") as out:
        for group in range(groups):
            spread = spreads[group % len(spreads)]
            qualities.append([spread * rng.gauss(0, 1) for _ in range(size)])
            for member, quality in enumerate(qualities[-1]):
                text = f"{prose(rng, length)}\n\n({group}.{member}) [[quality:{quality:.6f}]]"
                row = {"id": f"{group}-{member}", "group": str(group), "prompt": f"Question {group}?", "response": text}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return qualities


def score(folder, rollouts, sim, asks=PAIRWISE, answer_format="json", state=False, watch=None):
    """One run of the command: wall and processor seconds, its own account, and the values in the order of the file."""
    recipe, results, summary, kept = (folder / name for name in ("recipe.yaml", "results.jsonl", "summary.json", "state"))
    recipe.write_text(RECIPE.format(asks=asks, url=sim.url, concurrency=CONCURRENCY, answer_format=answer_format))
    shutil.rmtree(kept, ignore_errors=True)
    flags = ["--state", kept] if state else []
    command = [COMMAND, "score", rollouts, "--recipe", recipe, "--out", results, "--summary", summary, "--quiet", *flags]
    started, samples, said = time.perf_counter(), [], 0.0
    process = subprocess.Popen(command)
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if watch and time.perf_counter() - started >= said + watch:
            said = time.perf_counter() - started
            samples.append(watched(process.pid))
        time.sleep(0.002)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"plaudit ended with {process.returncode}")
    (judge,) = json.loads(summary.read_text())["judges"]
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    values = [row["components"]["judged"].get("value") for row in rows]
    return {
        "wall_s": round(wall, 4),
        "cpu_s": round(used.ru_utime + used.ru_stime, 3),
        "peak_mb": round(used.ru_maxrss / 1024, 1),
        "calls": judge["calls"],
        "hedges": judge["hedges"],
        "latency": judge["latency"],
        # A process that has just ended shows no memory and no files.
        "samples": [sample for sample in samples if sample and sample[0] > 0],
        "missing": sum(value is None for value in values),
    }, values


class Figures:
    """What was measured, and whether it is enough."""

    def __init__(self):
        self.rows, self.raw = [], {}

    def judge(self, name, value, least=None, most=None, digits=3, unit=""):
        """Takes a figure in with its floor or ceiling; without either it is only shown."""
        good = (least is None or value >= least) and (most is None or value <= most)
        bound = f"at least {least:,g}{unit}" if least is not None else f"at most {most:,g}{unit}" if most is not None else ""
        verdict = "" if not bound else "REACHED" if good else "MISSED"
        self.rows.append((name, f"{value:,.{digits}f}{unit}", bound, verdict))
        print(f"{name:62} {self.rows[-1][1]:>14}   {bound:22} {verdict}".rstrip(), flush=True)

    def missed(self):
        return [row for row in self.rows if row[-1] == "MISSED"]


def best(runs):
    return min(runs, key=lambda run: run["wall_s"])


def peer(rollouts, sim, mode, groups):
    command = [HERE / ".venv" / "bin" / "python", HERE / "judges_peer.py", "--url", sim.url]
    command += ["--rollouts", rollouts, "--mode", mode, "--groups", str(groups)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
    if found["errors"]:
        raise SystemExit(f"RM-Gallery had {found['errors']} errors")
    return found


def throughput(figures, folder, rounds):
    """Calls a second with the journal on, what they cost, and whether memory stays flat while they run."""
    rollouts = folder / "throughput.jsonl"
    write_rollouts(rollouts, groups=1430, size=8)
    ours = []
    for _ in range(rounds):
        with Sim(latency="20ms", jitter=0, slow_share=0) as sim:
            run, _ = score(folder, rollouts, sim, state=True, watch=0.5)
        ours.append(run | {"sim_cpu_s": sim.cpu_s, "sim_requests": sim.requests})
    theirs = {}
    for mode, groups in (("dgr", 12), ("winrate", 36)):
        with Sim(latency="20ms", jitter=0, slow_share=0) as sim:
            theirs[mode] = peer(rollouts, sim, mode, groups) | {"scores": None}
    run = best(ours)
    rate, cpu = run["calls"] / run["wall_s"], min(run["cpu_s"] / run["calls"] for run in ours) * 1e6
    rates = {mode: found["calls"] / found["wall_s"] for mode, found in theirs.items()}
    figures.judge("calls a second, plaudit, 128 in flight, journal on", rate, least=0.9 * IDEAL, digits=0)
    figures.judge("calls a second, RM-Gallery, dgr as it comes", rates["dgr"], digits=0)
    figures.judge("calls a second, RM-Gallery, winrate", rates["winrate"], digits=0)
    figures.judge("times RM-Gallery as it comes", rate / rates["dgr"], least=20, digits=0, unit="x")
    figures.judge("times RM-Gallery with winrate", rate / rates["winrate"], digits=0, unit="x")
    figures.judge("processor time a call, plaudit", cpu, most=150, digits=0, unit=" us")
    figures.judge("processor time a call, the judge", run["sim_cpu_s"] / run["calls"] * 1e6, digits=0, unit=" us")
    # The first second is for reading the file and opening connections. What is freed at the end is no growth.
    settled = [sample for run in ours for sample in [run["samples"][2:]] if len(sample) > 3]
    halves = [(run[: len(run) // 2], run[len(run) // 2 :]) for run in settled]
    growth = max(max(mb for mb, _ in late) / max(mb for mb, _ in early) for early, late in halves)
    files = max(max(count for _, count in run) - min(count for _, count in run) for run in settled)
    figures.judge("resident memory, least after a second", min(mb for run in settled for mb, _ in run), digits=0, unit=" MB")
    figures.judge("resident memory, most after a second", max(mb for run in settled for mb, _ in run), digits=0, unit=" MB")
    figures.judge("most of the second half over most of the first", growth, most=1.25, digits=2, unit="x")
    figures.judge("open files, most less least", files, most=32, digits=0)
    figures.raw["throughput"] = {"plaudit": ours, "peer": theirs}


def stragglers(figures, folder, rounds):
    """One step of 128 groups of 8, with and without one answer in a hundred that takes ten times as long."""
    rollouts = folder / "stragglers.jsonl"
    write_rollouts(rollouts, groups=128, size=8)
    runs = {0: [], 0.01: []}
    for _ in range(rounds):
        for share, found in runs.items():
            with Sim(latency="20ms", jitter=0, slow_share=share, slow_factor=10) as sim:
                run, _ = score(folder, rollouts, sim, state=True)
            found.append(run | {"sim_cpu_s": sim.cpu_s, "sim_requests": sim.requests})
    slow, plain = best(runs[0.01]), best(runs[0])
    figures.judge("seconds of a step of 3,584 calls without stragglers", plain["wall_s"], digits=2, unit=" s")
    figures.judge("times as long with 1 % of answers 10x slower", slow["wall_s"] / plain["wall_s"], most=1.25, digits=2, unit="x")
    extra = max(run["sim_requests"] for run in runs[0.01]) / (128 * 28) - 1
    figures.judge("extra calls that this took, as the judge counts them", extra * 100, most=5, digits=1, unit=" %")
    figures.raw["stragglers"] = {"without": runs[0], "with": runs[0.01]}


def dgr(figures, folder, rounds):
    command = ["cargo", "run", "--quiet", "--release", "-p", "plaudit", "--example", "dgr", "--", "10", "16"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    figures.judge("dgr, exact, n = 10, longest of 20 groups", found["10"]["longest_ms"], most=5, digits=2, unit=" ms")
    figures.judge("dgr, exact, n = 16, longest of 20 groups", found["16"]["longest_ms"], most=200, digits=1, unit=" ms")
    figures.raw["dgr"] = found


def grouped(values, size):
    return [values[at : at + size] for at in range(0, len(values), size)]


def correlations(scores, qualities):
    """Pearson's r of each group; a group whose scores are all equal has none and counts as 0."""
    found = []
    for group, truth in zip(scores, qualities, strict=True):
        try:
            found.append(statistics.correlation(group, truth))
        except statistics.StatisticsError:
            found.append(0.0)
    return found


def mean_error(values):
    return statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5


ADAPTIVE = f"{PAIRWISE}, design: adaptive, budget: {{}}"
WAYS = {
    "round robin, 120 calls": PAIRWISE,
    "adaptive pairs, 60 calls": ADAPTIVE.format(60),
    "adaptive line-ups of 4, 24 calls": f"{LISTWISE}, line_up: 4, design: adaptive, budget: 24",
}


def signal(figures, folder, rounds):
    """How well scores follow the hidden quality: n = 16, a strong judge, and what RM-Gallery makes of 120 calls."""
    rollouts, size = folder / "signal.jsonl", 16
    qualities = write_rollouts(rollouts, groups=200, size=size, length=60)
    strong = {"temperature": 0.25, "ties": 0.25, "position_bias": 0.5, "line_up_noise": 1.0, "latency": 0, "slow_share": 0}
    raw = figures.raw["signal"] = {}
    with Sim(**strong) as sim:
        theirs = peer(rollouts, sim, "winrate", 200)
        bar, error = mean_error(correlations(theirs["scores"], qualities))
        raw["RM-Gallery winrate, 120 calls"] = {"r": bar, "error": error}
        figures.judge("r, RM-Gallery winrate, 120 calls", bar)
        for answer_format in ("json", "logprobs"):
            for name, asks in WAYS.items():
                if answer_format == "logprobs" and "line-ups" in name:
                    continue
                run, values = score(folder, rollouts, sim, asks=asks, answer_format=answer_format)
                r, error = mean_error(correlations(grouped(values, size), qualities))
                raw[f"{name}, {answer_format}"] = {"r": r, "error": error, "calls": run["calls"]}
                figures.judge(f"r, {name}, {answer_format}", r, least=round(bar, 4) if answer_format == "json" else None, digits=4)


def bias(figures, folder, rounds):
    """What a preference for the first place costs: the mean over groups of r without it less r with it."""
    rollouts, size = folder / "bias.jsonl", 16
    qualities = write_rollouts(rollouts, groups=600, size=size, length=60, seed=8)
    ways = dict(list(WAYS.items())[:2])
    found = {name: {} for name in ways}
    for logits in (0, 1):
        with Sim(temperature=0.25, ties=0.25, position_bias=logits, latency=0, slow_share=0) as sim:
            for name, asks in ways.items():
                _, values = score(folder, rollouts, sim, asks=asks)
                found[name][logits] = correlations(grouped(values, size), qualities)
    for name, by_bias in found.items():
        loss, error = mean_error([without - having for without, having in zip(by_bias[0], by_bias[1])])
        figures.judge(f"r lost to a position bias of 1.0, {name} (+- {error:.4f})", loss, most=0.005, digits=4)
        figures.raw.setdefault("bias", {})[name] = {"loss": loss, "error": error}


def noise(figures, folder, rounds):
    """How much variance groups get in which all are equally good, against the others; an average judge, 48 calls."""
    rollouts, size, spreads = folder / "noise.jsonl", 16, (0.0, 0.3, 1.0, 2.0)
    # A few groups in a hundred that only look different make most of the figure, so that it takes many to tell it.
    write_rollouts(rollouts, groups=4000, size=size, length=60, spreads=spreads, seed=9)
    for design in ("adaptive", "sparse"):
        with Sim(temperature=0.5, ties=0.25, position_bias=0.5, latency=0, slow_share=0) as sim:
            _, values = score(folder, rollouts, sim, asks=f"{PAIRWISE}, design: {design}, budget: 48")
        by_spread = {spread: [] for spread in spreads}
        for at, group in enumerate(grouped(values, size)):
            by_spread[spreads[at % len(spreads)]].append(statistics.pvariance(group))
        means = {spread: statistics.fmean(found) for spread, found in by_spread.items()}
        others = statistics.fmean(means[spread] for spread in spreads[1:])
        energy, error = (value / others for value in mean_error(by_spread[0.0]))
        figures.judge(f"noise energy, {design}, 48 calls (+- {error:.4f})", energy, most=0.03, digits=4)
        figures.raw.setdefault("noise", {})[design] = {"energy": energy, "error": error, "variance": means}


PARTS = {part.__name__: part for part in (throughput, stragglers, dgr, signal, bias, noise)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; may be given again")
    parser.add_argument("--rounds", type=int, default=3, help="how often times are taken; the best counts")
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-judges.json unless given")
    options = parser.parse_args()
    subprocess.run([HERE / "setup.sh"], check=True)
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p"]
    subprocess.run([*build, "plaudit-cli"], cwd=ROOT, check=True)
    subprocess.run([*build, "plaudit", "--example", "dgr"], cwd=ROOT, check=True)

    figures, where = Figures(), machine()
    print(f"{where['cpu']}, {where['cores']} cores, load {where['load_before'][0]}")
    with tempfile.TemporaryDirectory(prefix="plaudit-judges-") as folder:
        for part in options.only or PARTS:
            PARTS[part](figures, pathlib.Path(folder), options.rounds)
    date = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{date}-judges.json"
    table = [dict(zip(("figure", "value", "wanted", "verdict"), row)) for row in figures.rows]
    load = [round(load, 2) for load in os.getloadavg()]
    out.write_text(json.dumps({"date": date, "machine": where, "load_after": load, "figures": table, "raw": figures.raw}, indent=1) + "\n")
    print(f"raw figures: {out}", file=sys.stderr)
    return 1 if figures.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
