#!/usr/bin/env python3
"""The cost of a step with the reward of RM-Gallery's VERL tutorial: RM-Gallery and plaudit on one judge.

    python3 bench/tutorial.py            # about two minutes
    python3 bench/tutorial.py --rounds 1

Both sides score the same 64 groups of 8 responses of 2 KB, in the same interpreter, one after the other,
against a simulated judge of their own that shares the machine with them. plaudit is its whole-batch manager
with the shipped recipe `tutorial` as it is, but for the address of the judge; RM-Gallery is what
`tutorial_peer.py` tells. Both compare all pairs of a group. plaudit asks one pair of each group again
with its sides swapped, as the recipe says, and reads the probability of the verdict where RM-Gallery reads
its letter; the judge counts the calls of both. Texts are handed over as texts: neither side decodes tokens.
Prints a table, writes bench/runs/DATE-tutorial.json, and exits with 1 below 20x.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from corpus import prose
from judges import COMMAND, HERE, ROOT, Sim, correlations
from run import machine

GROUPS, SIZE = 64, 8
FLOOR = 20
JUDGE = {"latency": "50ms", "jitter": 0, "slow_share": 0}
#: As the tutorial and RM-Gallery's example for training have it, with the default aggregation; then what is
#: faster.
PEERS = {
    "RM-Gallery, as it comes (dgr, 8 groups x 10 threads)": [],
    "RM-Gallery, winrate, 8 groups x 10 threads": ["--mode", "winrate"],
    "RM-Gallery, winrate, 32 groups x 10 threads": ["--mode", "winrate", "--workers", "32"],
}
JUDGED = next(iter(PEERS))


def write_rollouts(path):
    """Groups of responses that think, answer and say their hidden quality; the qualities, group by group."""
    rng, qualities = random.Random(7), []
    with open(path, "w", encoding="utf-8") as out:
        for group in range(GROUPS):
            qualities.append([rng.gauss(0, 1) for _ in range(SIZE)])
            for member, quality in enumerate(qualities[-1]):
                answer = f"{prose(rng, 1000)} ({group}.{member}) [[quality:{quality:.6f}]]"
                text = f"<think>{prose(rng, 1000)}</think><answer>{answer}</answer>"
                row = {"prompt": f"Question {group}?", "response": text, "tokens": len(text) // 4}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return qualities


def measure_plaudit(url, rollouts):
    """Runs in the peer's interpreter: one step of the whole-batch manager."""
    from plaudit.verl import PlauditBatchRewardManager

    rows = [json.loads(line) for line in rollouts.read_text(encoding="utf-8").splitlines()]
    prompts, responses, tokens = ([row[name] for row in rows] for name in ("prompt", "response", "tokens"))
    manager = PlauditBatchRewardManager(
        overrides={"judges.main.base_url": url, "judges.main.model": "judge-sim"}
    )
    # One pair first, as on the other side.
    manager.score_batch(["warm", "warm"], ["one", "two"])
    wall, cpu = time.perf_counter(), time.process_time()
    scored = manager.score_batch(prompts, responses, tokens=tokens)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if any(scored.invalid):
        raise SystemExit(f"{sum(scored.invalid)} rollouts are invalid: {scored.reasons}")

    def groups(values):
        return [values[at : at + SIZE] for at in range(0, len(values), SIZE)]

    totals, judged = groups(scored.rewards), groups(scored.info["reward_principle"])
    (usage,) = manager.judge_usage
    account = {name: usage[name] for name in ("calls", "hedges", "retries", "failures", "peak", "tokens")}
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "totals": totals, "judged": judged, "account": account}))


def side(name, words, rollouts, qualities):
    """One step of one side, on a judge of its own."""
    with Sim(**JUDGE) as sim:
        command = [HERE / ".venv" / "bin" / "python", *words, "--url", sim.url, "--rollouts", rollouts]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    if done.returncode:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    r = statistics.fmean(correlations(found.pop("judged"), qualities))
    found.pop("totals")
    # The pair that warms up is no part of the step.
    return found | {"calls": sim.requests - 1, "judge_cpu_s": sim.cpu_s, "r_with_quality": round(r, 4)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often times are taken; the best of each side counts"
    )
    parser.add_argument(
        "--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-tutorial.json unless given"
    )
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--rollouts", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        measure_plaudit(options.url, options.rollouts)
        return 0
    subprocess.run([HERE / "setup.sh"], check=True)
    if not COMMAND.exists() or not list((ROOT / "python" / "plaudit").glob("_plaudit*.so")):
        raise SystemExit("the command and the extension must be built first: make bench does that")

    where = machine()
    print(f"{where['cpu']}, {where['cores']} cores, load {where['load_before'][0]}")
    sides = {
        "plaudit": [__file__],
        **{name: [HERE / "tutorial_peer.py", *words] for name, words in PEERS.items()},
    }
    runs = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(prefix="plaudit-tutorial-") as folder:
        rollouts = pathlib.Path(folder) / "rollouts.jsonl"
        qualities = write_rollouts(rollouts)
        for _ in range(options.rounds):
            for name, words in sides.items():
                runs[name].append(side(name, words, rollouts, qualities))
    best = {name: min(found, key=lambda run: run["wall_s"]) for name, found in runs.items()}
    ours = best["plaudit"]["wall_s"]
    print(f"{'':54} {'step':>8} {'calls':>6} {'cpu':>8} {'r':>6} {'times plaudit':>14}")
    for name, run in best.items():
        ratio = run["wall_s"] / ours
        figures = f"{run['wall_s']:7.2f}s {run['calls']:6} {run['cpu_s']:7.2f}s {run['r_with_quality']:6.3f}"
        print(f"{name:54} {figures} {ratio:13.1f}x")
    ratio = best[JUDGED]["wall_s"] / ours
    verdict = "REACHED" if ratio >= FLOOR else "MISSED"
    print(f"RM-Gallery as it comes takes {ratio:.1f} times as long; at least {FLOOR} are wanted: {verdict}")
    date = datetime.date.today().isoformat()
    raw = {
        "date": date,
        "machine": where,
        "load_after": [round(load, 2) for load in os.getloadavg()],
        "judge": JUDGE,
        "groups": GROUPS,
        "size": SIZE,
        "ratio": round(ratio, 2),
        "floor": FLOOR,
        "verdict": verdict,
        "runs": runs,
    }
    out = options.out or HERE / "runs" / f"{date}-tutorial.json"
    out.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {out}", file=sys.stderr)
    return 0 if verdict == "REACHED" else 1


if __name__ == "__main__":
    sys.exit(main())
