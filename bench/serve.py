#!/usr/bin/env python3
"""Benchmark and soak of the service: its speed, what it adds, what it does under too much load, and OpenRLHF's reward server beside it.

    python3 bench/serve.py                      # about six minutes
    python3 bench/serve.py --only rules,peer
    python3 bench/serve.py --only soak --seconds 3600

The client (crates/plaudit-cli/examples/load.rs), the service, and where there is one the simulated judge, share the machine.
Writes bench/runs/DATE-serve.json and exits with 1 where a figure is missed.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BIN = TARGET / "release" / "plaudit"
LOAD = TARGET / "release" / "examples" / "load"
PEER = ROOT / ".venvs" / "openrlhf" / "bin" / "python"
SIZE = 8

JUDGED = """name: judged
components:
  quality: {{ reward: principle, mode: pairwise, principles: [helpfulness], aggregate: winrate }}
judges: {{ main: {{ base_url: "{url}", model: m, concurrency: {concurrency}, hedge_share: 0 }} }}
"""
TRIVIAL = "name: trivial\ncomponents: { length: { reward: length_penalty } }\n"


class Process:
    """A server, until the end of a `with`."""

    def __init__(self, *command, said=True, **options):
        self.log = tempfile.TemporaryFile()
        out = subprocess.PIPE if said else self.log
        self.child = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=self.log, text=said, **options
        )
        self.url = self.child.stdout.readline().strip() if said else ""
        self.address = self.url.split("://")[-1].removesuffix("/v1")
        if said and not self.url:
            self.log.seek(0)
            raise SystemExit(self.log.read().decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.child.kill()

    def memory(self):
        """Resident bytes now."""
        text = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=30) as answer:
            return answer.read()


class Memory:
    """The most memory that a process has, and how it goes, while something else is done."""

    def __init__(self, process, every=0.2):
        self.process, self.every = process, every
        self.samples, self.over = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        began = time.monotonic()
        while not self.over.wait(self.every):
            self.samples.append((time.monotonic() - began, self.process.memory()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def most(self):
        return max(bytes_ for _, bytes_ in self.samples)

    def slope(self, after):
        """Bytes a second, by least squares over what came after the warm-up."""
        points = [(at, bytes_) for at, bytes_ in self.samples if at >= after]
        count = len(points)
        mean_at, mean = sum(at for at, _ in points) / count, sum(bytes_ for _, bytes_ in points) / count
        spread = sum((at - mean_at) ** 2 for at, _ in points)
        return sum((at - mean_at) * (bytes_ - mean) for at, bytes_ in points) / spread


def load(address, **options):
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(
        [str(LOAD), "--address", address, *words], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def good(found):
    return found["statuses"].get("200", {"count": 0, "per_s": 0.0, "p99_ms": None, "p50_ms": None})


def serve(folder, *arguments):
    return Process(BIN, "serve", "--bind", "127.0.0.1:0", "--state", folder / "state", *arguments)


def judge(*arguments):
    quiet = ("--jitter", "0", "--slow-share", "0")
    return Process(BIN, "judge-sim", "--port", "0", *quiet, *arguments)


def rules(folder, _):
    """A recipe of rules: groups of 8 x 2 KB as fast as they are answered, then half of the floor at an even rate."""
    with serve(folder, "--recipe", "quickstart") as service:
        load(service.address, recipe="quickstart", seconds=2, bodies=64)
        fast = load(service.address, recipe="quickstart", seconds=10, connections=8, bodies=64)
        even = load(
            service.address, recipe="quickstart", seconds=10, connections=8, bodies=64, rate=10_000 / SIZE
        )
        found = {
            "rollouts_per_s": fast["rollouts_per_s"],
            "p99_ms": good(even)["p99_ms"],
            "fast": fast,
            "even": even,
        }
    return found, [
        ("rollouts/s, rules, 8 x 2 KB a request", fast["rollouts_per_s"], ">=", 20_000),
        ("p99 of a request at 10,000 rollouts/s, ms", good(even)["p99_ms"], "<=", 5.0),
    ]


def judged(folder, _):
    """What the service adds to what the engine alone needs, with a judge of 20 ms."""
    with judge("--latency", "20ms") as court:
        recipe = folder / "judged.yaml"
        recipe.write_text(JUDGED.format(url=court.url, concurrency=128))
        rounds = []
        with serve(folder, "--recipe", recipe) as service:
            for number in range(7):
                options = {"seconds": 8, "connections": 64, "size": 4, "rate": 60, "seed": 1000 + number}
                alone = load(service.address, engine=recipe, **options)
                over = load(service.address, recipe="judged", **{**options, "seed": 2000 + number})
                rounds.append(
                    (good(alone)["p99_ms"], good(over)["p99_ms"], good(alone)["p50_ms"], good(over)["p50_ms"])
                )
    added = sorted(over - alone for alone, over, *_ in rounds)[len(rounds) // 2]
    found = {"rounds": rounds, "added_p99_ms": added}
    return found, [("ms that the service adds to p99, judge of 20 ms", added, "<=", 3.0)]


def overload(folder, options):
    """Ten times as many requests as the judge can answer."""
    with judge("--latency", "20ms") as court:
        recipe, config = folder / "judged.yaml", folder / "serve.yaml"
        # 6 pairs a group, 64 at once, 20 ms: 533 groups a second.
        recipe.write_text(JUDGED.format(url=court.url, concurrency=64))
        config.write_text("limits: { rollouts: 1024 }\n")
        with serve(folder, "--recipe", recipe, "--config", config) as service:
            common = {"recipe": "judged", "size": 4, "bytes": 200}
            load(service.address, seconds=3, connections=64, seed=1, **common)
            capacity = good(load(service.address, seconds=10, connections=128, seed=2, **common))["per_s"]
            with Memory(service) as memory:
                found = load(
                    service.address,
                    seconds=options.seconds,
                    connections=1500,
                    seed=3,
                    rate=10 * capacity,
                    **common,
                )
            most = memory.most()
    refused = found["statuses"].get("429", {"count": 0, "p99_ms": None})
    kept = good(found)["per_s"] / capacity
    found = {"capacity_per_s": capacity, "kept": kept, "memory": most, "found": found}
    return found, [
        ("p99 of a refusal at 10x overload, ms", refused["p99_ms"], "<=", 50.0),
        ("share of capacity kept at 10x overload", kept, ">=", 0.9),
        ("resident MB at 10x overload", most / 2**20, "<=", 512),
    ]


def slow(folder, _):
    """500 clients that send a byte a second, beside healthy ones."""
    with serve(folder, "--recipe", "quickstart") as service:
        options = {"recipe": "quickstart", "seconds": 5, "connections": 4, "bodies": 64, "rate": 500}
        load(service.address, **{**options, "seconds": 2})
        before = [good(load(service.address, **options))["p99_ms"] for _ in range(3)]
        memory = service.memory()
        host, port = service.address.split(":")
        head = b"POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"
        clients = [socket.create_connection((host, int(port))) for _ in range(500)]
        for client in clients:
            client.sendall(head)
        over = threading.Event()

        def drip():
            while not over.wait(1.0):
                for client in clients:
                    try:
                        client.send(b" ")
                    except OSError:
                        pass

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        during = [good(load(service.address, **options))["p99_ms"] for _ in range(3)]
        more = service.memory() - memory
        over.set()
        thread.join()
        for client in clients:
            client.close()
    before, during = sorted(before)[1], sorted(during)[1]
    found = {"p99_before_ms": before, "p99_during_ms": during, "memory_more": more}
    return found, [
        ("MB more with 500 slow clients", more / 2**20, "<=", 128),
        ("p99 of the others, against without them", during / before, "<=", 1.2),
    ]


def peer(folder, _):
    """OpenRLHF's reward server and plaudit's, the same payload, one after the other and again."""
    (folder / "trivial.yaml").write_text(TRIVIAL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"dialect": "openrlhf", "connections": 32, "bodies": 64, "seconds": 5}
    rounds, lists = [], []
    command = (PEER, HERE / "serve_peer.py", port)
    with Process(*command, said=False) as theirs, serve(folder, "--recipe", folder / "trivial.yaml") as ours:
        theirs.address = f"127.0.0.1:{port}"
        deadline = time.monotonic() + 120
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if time.monotonic() > deadline or theirs.child.poll() is not None:
                theirs.log.seek(0)
                raise SystemExit(theirs.log.read().decode(errors="replace")[-2000:])
            time.sleep(0.2)
        # OpenRLHF's client sends one sample a request; lists of eight are measured beside it.
        for size, into in ((1, rounds), (8, lists), (1, rounds), (8, lists), (1, rounds), (8, lists)):
            one = good(load(theirs.address, path="/get_reward", size=size, **common))
            other = good(load(ours.address, path="/openrlhf/trivial", size=size, **common))
            into.append((one["per_s"], other["per_s"]))
    ratio, many = (sorted(other / one for one, other in each)[1] for each in (rounds, lists))
    found = {"one_sample": rounds, "ratio": ratio, "eight_samples": lists, "ratio_of_eight": many}
    return found, [("requests/s against OpenRLHF's serve_rm", ratio, ">=", 10.0)]


def soak(folder, options):
    """An hour of mixed load with faults of the judge: does the memory stay where it is?"""
    with judge(
        "--latency", "20ms", "--error-rate", "0.05", "--rate-limit-share", "0.02", "--invalid-rate", "0.03"
    ) as court:
        recipe = folder / "judged.yaml"
        recipe.write_text(JUDGED.format(url=court.url, concurrency=64).replace("hedge_share: 0", "hedge_share: 0.05"))
        with (
            serve(folder, "--recipe", recipe, "--recipe", "quickstart") as service,
            Memory(service, 5.0) as memory,
        ):
            # Texts that come again after a while, as in a training over epochs.
            judged = {
                "recipe": "judged",
                "size": 4,
                "bytes": 500,
                "rate": 15,
                "connections": 32,
                "bodies": 6_000,
            }
            plain = {"recipe": "quickstart", "rate": 60, "connections": 8, "bodies": 256}
            found = []
            threads = [
                threading.Thread(
                    target=lambda one=one: found.append(load(service.address, seconds=options.seconds, **one))
                )
                for one in (judged, plain)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        slope = memory.slope(options.seconds / 6) * 600 / 2**20
    found = {"seconds": options.seconds, "mb_per_10_min": slope, "most": memory.most(), "loads": found}
    return found, [("MB more every 10 minutes after warm-up", slope, "<=", 1.0)]


CASES = {"rules": rules, "judged": judged, "overload": overload, "slow": slow, "peer": peer, "soak": soak}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="some of " + ", ".join(CASES))
    parser.add_argument("--seconds", type=float, default=60.0, help="of overload and of the soak")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [name for name in CASES if name != "soak"]
    build = ["cargo", "build", "--release", "--locked", "-p", "plaudit-cli", "--bins", "--example", "load"]
    subprocess.run(build, check=True, cwd=ROOT)
    from run import machine

    raw = {"date": datetime.date.today().isoformat(), "machine": machine(), "cases": {}}
    missed = False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            before = os.getloadavg()[0]
            found, figures = CASES[name](pathlib.Path(folder), options)
        raw["cases"][name] = {"load": before, **found}
        for what, value, sign, wanted in figures:
            reached = value is not None and (value >= wanted if sign == ">=" else value <= wanted)
            missed |= not reached
            shown = "nothing" if value is None else f"{value:,.2f}"
            print(
                f"{what:52} {shown:>12}   {sign} {wanted:<8} {'REACHED' if reached else 'MISSED'}", flush=True
            )
    out = HERE / "runs" / f"{raw['date']}-serve{'-' + '-'.join(names) if options.only else ''}.json"
    out.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(f"raw figures: {out.relative_to(ROOT)}", file=sys.stderr)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
