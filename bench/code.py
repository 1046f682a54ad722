#!/usr/bin/env python3
"""Code rewards side by side: plaudit's sandbox, verl's prime_code, and plain starts of the interpreter. Exit code 1 below a floor.

    python3 bench/code.py

256 responses with a program of their own, 8 tests each by standard input, on all cores. plaudit starts a fresh box for every
test. verl's prime_code, which isolates nothing, runs in as many processes as there are cores, first all tests of a program in
one interpreter and then, where one failed, each by itself; of the 256 programs three quarters are right. Then plaudit runs
2,048 such programs, and its memory is watched.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from run import HERE, ROOT, machine

SAMPLES, TESTS = 256, 8
# How many plain starts a fresh box for every test may cost, in each isolation, and the memory of the engine.
MAX_STARTS, MAX_MB = {"namespaces": 1.3, "landlock": 1.15}, 200
PROGRAM = """import sys

def main():
    numbers = [int(word) for word in sys.stdin.read().split()]
    total = sum(numbers{wrong})
    print(total)

main()  # {name}
"""


def rollout(at):
    wrong = "[:2]" if at % 4 == 3 else ""
    inputs = [" ".join(str(at * test + step) for step in range(test + 1)) for test in range(TESTS)]
    outputs = [str(sum(map(int, words.split()))) for words in inputs]
    response = f"Here it is:\n```python\n{PROGRAM.format(wrong=wrong, name=at)}```\n"
    tests = {"inputs": inputs, "outputs": outputs}
    return {"id": str(at), "group": str(at // 8), "response": response, "inputs_outputs": tests}


def prime_code(row):
    """verl's score of one rollout, in a process of a pool."""
    from verl.utils.reward_score import prime_code

    with open(os.devnull, "w") as null:
        sys.stdout = sys.stderr = null
        return float(prime_code.compute_score(row["response"], row["inputs_outputs"], continuous=True)[0])


def peer(path):
    """verl's prime_code over a file: seconds and the mean score, as JSON."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(prime_code, rows[: os.cpu_count()]))  # The imports are not measured.
        start = time.perf_counter()
        scores = list(pool.map(prime_code, rows))
        seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "mean": sum(scores) / len(scores)}))


def score(binary, path, recipe):
    """plaudit over a file: seconds, the mean of the component, and the largest resident memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [binary, "score", path, "--recipe", recipe, "--out", os.devnull, "--summary", f"{path}.summary", "--quiet"]
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"plaudit ended with {status}")
    summary = json.loads(pathlib.Path(f"{path}.summary").read_text())
    return {"seconds": seconds, "mean": summary["statistics"]["total"]["mean"], "mb": usage.ru_maxrss / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-code.json unless given")
    options = parser.parse_args()
    if options.peer:
        return peer(options.peer)

    cargo = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "plaudit-cli", "-p", "plaudit-box"]
    subprocess.run([*cargo, "--bins", "--examples"], cwd=ROOT, check=True)
    subprocess.run([ROOT / "python" / "venv.sh", "verl-0.9"], check=True)
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, capture_output=True)
    release = pathlib.Path(json.loads(metadata.stdout)["target_directory"]) / "release"
    where, found = machine(), {"starts": {}, "plaudit": [], "prime_code": []}

    # One interpreter for all, the system's.
    os.environ["PATH"] = f"/usr/bin:{os.environ['PATH']}"
    starts = [release / "examples" / "starts", str(SAMPLES), str(TESTS), "/usr/bin/python3"]
    text = subprocess.run(starts, capture_output=True, text=True, check=True).stdout
    print(text)
    plain = next(float(line.split()[-4]) for line in text.splitlines() if line.startswith("plain"))
    for isolation in MAX_STARTS:
        line = next((line for line in text.splitlines() if line.startswith(f"isolation {isolation}") and line.endswith("x")), None)
        found["starts"][isolation] = float(line.split()[-1][:-1]) if line else None
    verl = ROOT / ".venvs" / "verl-0.9" / "bin" / "python"
    with tempfile.TemporaryDirectory() as folder:
        recipe = pathlib.Path(folder) / "code.yaml"
        recipe.write_text("components:\n  tests: { reward: code_execution }\n")
        small, large = (pathlib.Path(folder) / name for name in ("small.jsonl", "large.jsonl"))
        small.write_text("".join(json.dumps(rollout(at)) + "\n" for at in range(SAMPLES)))
        large.write_text("".join(json.dumps(rollout(at)) + "\n" for at in range(8 * SAMPLES)))
        # Alternating, so that both meet the same machine.
        for _ in range(options.rounds):
            found["plaudit"].append(score(release / "plaudit", small, recipe))
            theirs = subprocess.run([verl, __file__, "--peer", small], capture_output=True, text=True, check=True)
            found["prime_code"].append(json.loads(theirs.stdout.splitlines()[-1]))
        found["large"] = score(release / "plaudit", large, recipe)

    ours, theirs = (min(one["seconds"] for one in found[name]) for name in ("plaudit", "prime_code"))
    rows = [
        ("plain starts of the interpreter, without tests", plain, None),
        ("plaudit, a fresh box for every test", ours, found["plaudit"][0]["mean"]),
        ("verl prime_code, no isolation", theirs, found["prime_code"][0]["mean"]),
    ]
    print(f"{where['cpu']}, {where['cores']} cores\n")
    print(f"| {SAMPLES} programs x {TESTS} tests | Seconds | Of plain starts | Mean score |\n|---|---|---|---|")
    for name, seconds, mean in rows:
        print(f"| {name} | {seconds:.2f} | {seconds / plain:.2f} | {'' if mean is None else f'{mean:.3f}'} |")
    large = found["large"]
    print(f"\n{8 * SAMPLES} x {TESTS}: {large['seconds']:.1f} s, at most {large['mb']:.0f} MB resident")
    failed = [f"isolation {isolation}" for isolation, most in MAX_STARTS.items() if (found["starts"][isolation] or 0) > most]
    failed += ["prime_code is faster"] * (ours > theirs) + ["memory"] * (large["mb"] > MAX_MB)
    today = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{today}-code.json"
    out.write_text(json.dumps({"machine": where, "plain_seconds": plain, **found}, indent=1) + "\n")
    print("\n".join(f"below the floor: {name}" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
