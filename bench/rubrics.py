#!/usr/bin/env python3
"""Rubrics: what several items a call cost in agreement, and how many calls a second there are, with a simulated judge.

    python3 bench/rubrics.py                          # everything; about three minutes
    python3 bench/rubrics.py --only rate --rounds 5   # one part: agreement or rate

The truth about an item is known: it is met where the response holds the word that it names. The judge errs in one verdict of ten, and in
a call about several items some verdicts follow the one before them. Figures are made as in `bench/judges.py`.
"""

import argparse
import datetime
import json
import pathlib
import random
import subprocess
import tempfile

import judges
from corpus import prose
from judges import HERE, PAIRWISE, ROOT, Figures, Sim, best, score
from run import machine

ITEMS, SIZES = 12, (1, 2, 4, 6, 12)
POINTS = (5, 4, 3, 2, -3)
# How often a verdict follows the one before it.
COUPLINGS = (0.0, 0.02, 0.1)


def write_rows(path, prompts, size, length):
    """Responses that hold half of the words that their rubric names; what is true of each, in the order of the file."""
    rng, truths = random.Random(11), []
    with open(path, "w", encoding="utf-8") as out:
        for prompt in range(prompts):
            rubric = [
                {"criterion": f'Names the word "w{prompt}x{item}y" where it is due', "points": POINTS[item % len(POINTS)]}
                for item in range(ITEMS)
            ]
            for member in range(size):
                truth = [rng.random() < 0.5 for _ in rubric]
                named = " ".join(f"w{prompt}x{item}y" for item, met in enumerate(truth) if met)
                row = {"id": f"{prompt}-{member}", "group": str(prompt), "prompt": f"Question {prompt}?", "rubrics": rubric}
                row["response"] = f"{prose(rng, length)}\n\n({member}) {named}"
                out.write(json.dumps(row) + "\n")
                truths.append(truth)
    return truths


def asks(count):
    return f"reward: rubric, judge: main, items_per_call: {count}"


def verdicts(folder):
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        yield [item["verdict"] == "yes" for item in json.loads(line)["components"]["judged"]["info"]["items"]]


def agreement(figures, folder, rounds):
    """Agreement of single verdicts with the truth by the number of items a call, and the calls that it takes."""
    rows = folder / "agreement.jsonl"
    truths = write_rows(rows, prompts=100, size=4, length=200)
    for coupling in COUPLINGS:
        found = {}
        with Sim(latency=0, slow_share=0, item_error=0.1, item_coupling=coupling) as sim:
            for count in SIZES:
                run, _ = score(folder, rows, sim, asks=asks(count))
                hits = [said == true for pair in zip(verdicts(folder), truths, strict=True) for said, true in zip(*pair, strict=True)]
                share = sum(hits) / len(hits)
                found[count] = {"agreement": share, "error": (share * (1 - share) / len(hits)) ** 0.5, "calls": run["calls"]}
        figures.raw[f"agreement, coupling {coupling}"] = found
        alone = found[1]
        for count in SIZES[1:]:
            one = found[count]
            calls = one["calls"] / alone["calls"] * 100
            name = f"{count} items a call, {coupling:.0%} follow: calls of one an item"
            wanted = count == 4 and coupling == COUPLINGS[1]
            figures.judge(name, calls, most=25 if wanted else None, digits=1, unit=" %")
            error = (one["error"] ** 2 + alone["error"] ** 2) ** 0.5
            lost = (alone["agreement"] - one["agreement"]) * 100
            figures.judge(
                f"    agreement lost, of {alone['agreement']:.1%} (+- {error:.1%})",
                lost,
                most=round(200 * error, 2) if wanted else None,
                digits=2,
                unit=" %",
            )


def rate(figures, folder, rounds):
    """Calls a second against what the judge could answer at most, and processor time a call beside `principle`."""
    judges.CONCURRENCY = 256
    rows = folder / "rate.jsonl"
    write_rows(rows, prompts=500, size=8, length=2000)
    runs = {"rubric": [], "principle": []}
    for _ in range(rounds):
        for name, way in (("rubric", asks(4)), ("principle", PAIRWISE)):
            with Sim(latency="20ms", jitter=0, slow_share=0) as sim:
                run, _ = score(folder, rows, sim, asks=way, state=True)
            runs[name].append(run | {"sim_cpu_s": sim.cpu_s})
    ideal = judges.CONCURRENCY / judges.LATENCY
    times = {}
    for name, found in runs.items():
        run = best(found)
        times[name] = min(one["cpu_s"] / one["calls"] for one in found) * 1e6
        share = run["calls"] / run["wall_s"] / ideal * 100
        figures.judge(f"share of the ideal rate, {name}, 256 in flight, 20 ms", share, least=90 if name == "rubric" else None, digits=1, unit=" %")
        figures.judge(f"processor time a call, {name}", times[name], digits=0, unit=" us")
    figures.judge("times the processor time a call of principle", times["rubric"] / times["principle"], most=1.1, digits=2, unit="x")
    figures.raw["rate"] = runs


PARTS = {part.__name__: part for part in (agreement, rate)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; may be given again")
    parser.add_argument("--rounds", type=int, default=3, help="how often times are taken; the best counts")
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-rubrics.json unless given")
    parser.add_argument("--built", action="store_true", help="the command has been built")
    options = parser.parse_args()
    if not options.built:
        subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "plaudit-cli"], cwd=ROOT, check=True)
    figures, where = Figures(), machine()
    print(f"{where['cpu']}, {where['cores']} cores, load {where['load_before'][0]}")
    with tempfile.TemporaryDirectory(prefix="plaudit-rubrics-") as folder:
        for part in options.only or PARTS:
            PARTS[part](figures, pathlib.Path(folder), options.rounds)
    out = options.out or HERE / "runs" / f"{datetime.date.today().isoformat()}-rubrics.json"
    out.write_text(json.dumps({"machine": where, "figures": figures.rows, "raw": figures.raw}, indent=1) + "\n")
    raise SystemExit(1 if figures.missed() else 0)


if __name__ == "__main__":
    main()
