"""End-to-end test: trains with verl's own trainer on the CPU, and checks plaudit's numbers in its step lines.

    python train.py                  # V1, V0, and V1 with failing rollouts scored in the agent loop
    python train.py v1               # one of: v1, v0, agent

Each takes about two minutes on two free cores, nearly all of it for Ray to start its processes.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[4]
STEPS = 2
RUNS: dict[str, dict[str, str]] = {
    "v1": {},
    "v0": {"TRAINER": "v0"},
    "agent": {"SCORING": "agent", "BROKEN_ROLLOUTS": "0.1"},
}
# A run that takes longer than this hangs, whatever else the machine does.
LIMIT_S = 1800


def main(names: list[str]) -> int:
    for name in names or list(RUNS):
        print(f"== {name}", flush=True)
        steps, samples = run(name)
        check(name, steps, samples)
        shown = {key: value for key, value in steps[STEPS].items() if "plaudit/" in key or "score" in key}
        print("\n".join(f"{key}: {value}" for key, value in sorted(shown.items())), flush=True)
    return 0


def run(name: str) -> tuple[dict[int, dict[str, float]], int]:
    """The metrics of each step, and how many samples were printed."""
    with tempfile.TemporaryDirectory() as work:
        environment = {
            **os.environ,
            **RUNS[name],
            "PYTHON": sys.executable,
            "WORK": work,
            "STEPS": str(STEPS),
        }
        command = [str(ROOT / "examples/verl/cpu/run.sh")]
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
    if done.returncode:
        print(done.stdout[-8000:])
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    steps: dict[int, dict[str, float]] = {}
    for line in done.stdout.splitlines():
        found = re.search(r"\bstep:(\d+) - (.*)", line)
        if found:
            parts = (part.rsplit(":", 1) for part in found[2].split(" - "))
            steps.setdefault(int(found[1]), {}).update(
                {part[0]: number(part[1]) for part in parts if len(part) == 2}
            )
    return steps, done.stdout.count("[response]")


def number(text: str) -> float:
    found = re.search(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text)
    return float(found[0]) if found else float("nan")


def check(name: str, steps: dict[int, dict[str, float]], samples: int) -> None:
    """Fails with what is missing."""
    for step in range(1, STEPS + 1):
        metrics = steps.get(step)
        assert metrics, f"there is no line of step {step}, only {sorted(steps)}"
        assert -1.2 <= metrics["critic/score/min"] <= metrics["critic/score/max"] <= 1.3, metrics
        assert metrics["critic/score/min"] < metrics["critic/score/max"], "all rewards of a step are equal"
        if name == "v0":
            continue
        for column in ("quality", "overlap", "format", "length", "score"):
            assert f"plaudit/{column}/mean" in metrics, (
                f"step {step} has no plaudit/{column}: {sorted(metrics)}"
            )
        assert metrics["plaudit/invalid/mean"] == 0.0
        if name == "v1":
            assert metrics["plaudit/group_size/mean"] == 4.0 and metrics["plaudit/partial/mean"] == 0.0
            # winrate makes the values of a group sum up to zero, so that this shows whole groups.
            assert abs(metrics["plaudit/quality/mean"]) < 1e-6
    last = steps[STEPS]
    for column in ("acc", "plaudit/win_and", "plaudit/comparison_score", "plaudit/quality"):
        kind = "core" if column == "acc" else "aux"
        key = f"val-{kind}/colours/{column}/mean@1"
        assert key in last, f"validation did not give {key}: {[key for key in last if key.startswith('val')]}"
    assert last["val-aux/colours/plaudit/compared/mean@1"] == 1.0
    assert samples >= STEPS, "no samples were printed"
    if name == "agent":
        assert any(steps[step]["plaudit/partial/mean"] > 0 for step in steps if step), "no rollout failed"
        assert all(steps[step]["timing_s/gen"] < 30 for step in (1, STEPS)), (
            "siblings waited for failed rollouts"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
