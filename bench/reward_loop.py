#!/usr/bin/env python3
"""Benchmark of verl's reward loop with its own `naive` manager and with plaudit's, side by side.

    python3 bench/reward_loop.py            # about five minutes, most of them Ray starting workers
    python3 bench/reward_loop.py --rounds 3

Both sides are real RewardLoopWorkers of verl on a local Ray, four each, all of them alive for the whole run; rounds
alternate. A round is a training batch: groups of 8 rollouts in shuffled order, each sent to a worker chosen at random, as
verl's agent loop does it. `naive` calls a function that returns a constant. plaudit compares the rollouts of each group
(recipe below) in the engine that its workers share. What both have in common, and what dominates, is one Ray call with a
DataProto for each rollout.

Printed are rollouts a second, and for plaudit how long after the arrival of a group's last member its members got their
answers: when the whole batch arrives at once, and when rollouts arrive evenly at half of what naive manages. CPU is
that of the workers, of the shared engine and of the sender together. Writes bench/runs/DATE-reward-loop.json and exits
with 1 below the floors.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = ROOT / ".venvs" / "verl-0.9" / "bin" / "python"

WORKERS, SIZE = 4, 8
FLOOR_RATE, CEILING_WAIT_MS = 0.70, 120.0
RECIPE = {
    "name": "bench",
    "components": {
        "quality": {
            "reward": "principle",
            "mode": "pairwise",
            "principles": ["helpfulness"],
            "aggregate": "winrate",
        },
        "format": {"reward": "reasoning_format", "weight": 0.1},
        "ngram": {"reward": "ngram_repetition_penalty", "weight": 0.5},
    },
    "judges": {"words": {"kind": "overlap"}},
}
CONSTANT = "def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return 1.0\n"
TIMED = '''
import time
from plaudit.verl import PlauditRewardManager


class Timed(PlauditRewardManager):
    """Notes when a rollout came and when it was answered, on the clock that all processes of a machine share."""

    async def run_single(self, data):
        came = time.monotonic()
        answer = await super().run_single(data)
        answer["reward_extra_info"].update(came=came, went=time.monotonic())
        return answer
'''


class Side:
    """verl's reward workers with one manager."""

    def __init__(self, name, config):
        import ray
        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

        worker = ray.remote(RewardLoopWorker)
        self.workers = [worker.options(name=f"{name}_{at}").remote(config, None) for at in range(WORKERS)]
        self.pids = ray.get([each.__ray_call__.remote(lambda self: os.getpid()) for each in self.workers])

    def score(self, rollouts, chance, pause=0.0):
        """Sends every rollout, evenly where there is a pause between them, and waits for all."""
        import ray

        calls, began = [], time.perf_counter()
        for at, data in enumerate(rollouts):
            if pause:
                ahead = began + at * pause - time.perf_counter()
                if ahead > 0:
                    time.sleep(ahead)
            calls.append(chance.choice(self.workers).compute_score.remote(data))
        answers = ray.get(calls)
        return answers, time.perf_counter() - began


def batch(fixtures, words, groups, chance, round_):
    """A training batch in shuffled order."""
    rollouts = []
    for group in range(groups):
        for member in range(SIZE):
            text = " ".join(chance.choice(fixtures.WORDS) for _ in range(200))
            uid = f"{round_}-{group}"
            rollouts.append(
                fixtures.rollout(words, text, uid=uid, session=member, reference="the answer is forty two")
            )
    chance.shuffle(rollouts)
    return rollouts


def waits(rollouts, answers):
    """Milliseconds from the arrival of each group's last member to the answer of each of its members."""
    last = {}
    for data, answer in zip(rollouts, answers, strict=True):
        uid = data.non_tensor_batch["uid"][0]
        last[uid] = max(last.get(uid, 0.0), answer["reward_extra_info"]["came"])
    times = [
        1000 * (answer["reward_extra_info"]["went"] - last[data.non_tensor_batch["uid"][0]])
        for data, answer in zip(rollouts, answers, strict=True)
    ]
    return {"p50_ms": percentile(times, 50), "p99_ms": percentile(times, 99), "most_ms": max(times)}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, round(len(values) * share / 100))]


def cpu_s(pids):
    """User and system time of processes so far."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def engine_pids(ray):
    from ray.util import list_named_actors

    actors = [ray.get_actor(name) for name in list_named_actors() if name.startswith("plaudit-")]
    return [status["pid"] for status in ray.get([actor.status.remote() for actor in actors])]


def measure(options):
    sys.path.insert(0, str(ROOT / "python" / "tests" / "trainers" / "verl"))
    import ray
    import fixtures
    from verl.utils import hf_tokenizer

    path = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    chance = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = fixtures.tokenizer(folder / "model")
        for name, text in (
            ("constant.py", CONSTANT),
            ("timed.py", TIMED),
            ("recipe.yaml", json.dumps(RECIPE)),
        ):
            (folder / name).write_text(text)
        common = (
            f"reward.num_workers={WORKERS}",
            f"actor_rollout_ref.rollout.n={SIZE}",
            f"data.train_batch_size={options.groups}",
        )
        naive = Side(
            "naive",
            fixtures.compose(model, f"reward.custom_reward_function.path={folder / 'constant.py'}", *common),
        )
        manager = fixtures.plaudit(folder / "recipe.yaml")
        timed = (
            f"reward.reward_manager.module.path={folder / 'timed.py'}",
            "reward.reward_manager.name=Timed",
        )
        plaudit = Side("reward_loop_worker", fixtures.compose(model, *manager, *common, *timed))
        words = hf_tokenizer(str(model))

        rounds = []
        for number in range(-1, options.rounds):
            found = {"load": round(os.getloadavg()[0], 2)}
            for name, side in (("naive", naive), ("plaudit", plaudit)):
                rollouts = batch(fixtures, words, options.groups, chance, f"{name}-{number}")
                pids = [*side.pids, os.getpid(), *(engine_pids(ray) if name == "plaudit" else ())]
                before = cpu_s(pids)
                answers, wall = side.score(rollouts, chance)
                found[name] = {
                    "per_s": len(answers) / wall,
                    "cpu_ms": 1000 * (cpu_s(pids) - before) / len(answers),
                }
                if name == "plaudit":
                    check(answers)
                    found["wait"] = waits(rollouts, answers)
            rollouts = batch(fixtures, words, options.groups, chance, f"even-{number}")
            answers, _ = plaudit.score(rollouts, chance, 2.0 / found["naive"]["per_s"])
            check(answers)
            found["wait_evenly"] = waits(rollouts, answers)
            if number >= 0:  # The first round starts what starts lazily.
                rounds.append(found)
                print(json.dumps(found), file=sys.stderr, flush=True)
        ray.shutdown()
    return rounds


def check(answers):
    """What is fast and wrong counts for nothing."""
    infos = [answer["reward_extra_info"] for answer in answers]
    if any(info["plaudit/invalid"] or info["plaudit/group_size"] != SIZE for info in infos):
        raise SystemExit("some rollouts were not scored with their whole group")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--groups", type=int, default=128, help="groups of a batch")
    parser.add_argument(
        "--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-reward-loop.json unless given"
    )
    options = parser.parse_args()
    try:
        import verl  # noqa: F401
    except ImportError:
        python = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))
        os.environ["PYTHONPATH"] = python
        os.execv(VENV, [str(VENV), *sys.argv])
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
    os.environ.setdefault("RAY_worker_register_timeout_seconds", "300")
    # Ray lets its workers stand back behind all other processes, of which this machine may have some.
    os.environ.setdefault("RAY_worker_niceness", "0")

    from run import machine

    where = machine()
    rounds = measure(options)
    middle = {
        side: {key: statistics.median(each[side][key] for each in rounds) for key in ("per_s", "cpu_ms")}
        for side in ("naive", "plaudit")
    }
    ratio = middle["plaudit"]["per_s"] / middle["naive"]["per_s"]
    burst, evenly = (
        statistics.median(each[key]["p99_ms"] for each in rounds) for key in ("wait", "wait_evenly")
    )
    reached = {"rate": ratio >= FLOOR_RATE, "wait": evenly <= CEILING_WAIT_MS}
    print(
        f"{where['cpu']}, {where['cores']} cores; {len(rounds)} rounds of {options.groups} groups of {SIZE}"
    )
    for name, figures in middle.items():
        print(f"{name:8} {figures['per_s']:8.0f} rollouts/s   {figures['cpu_ms']:6.2f} ms of CPU a rollout")
    print(
        f"ratio    {ratio:8.2f}   wanted at least {FLOOR_RATE}   {'REACHED' if reached['rate'] else 'MISSED'}"
    )
    print(f"p99 wait {burst:8.1f} ms when the batch arrives at once")
    word = "REACHED" if reached["wait"] else "MISSED"
    print(f"p99 wait {evenly:8.1f} ms when it arrives evenly   wanted at most {CEILING_WAIT_MS}   {word}")

    date = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{date}-reward-loop.json"
    raw = {
        "date": date,
        "machine": where,
        "workers": WORKERS,
        "size": SIZE,
        "groups": options.groups,
        "rounds": rounds,
    }
    out.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(f"raw figures: {out}", file=sys.stderr)
    return 0 if all(reached.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
