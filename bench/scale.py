#!/usr/bin/env python3
"""Scaling with cores: the command, the engine from Python, judge calls and the service.

    python3 bench/scale.py                                  # 1, 2, 4, ... up to all cores
    python3 bench/scale.py --cores 1,16 --only file,engine
    python3 bench/scale.py --command other/plaudit --load other/load --package other/python   # another build
    python3 bench/scale.py --plot bench/runs/DATE-scale.json docs/images/scale.png            # needs matplotlib

Every case is run on the first N cores alone (`taskset`), and takes the best of some rounds. `judged` gives a quarter of the
machine to the simulated judge and the rest to the client; `service` gives the load generator half of the machine, so that
the service has at most the other half. Beside each rate stands what the client and the other side took of their cores: a side
at 100 % is the limit. Writes bench/runs/DATE-scale.json. Exits with 1 where a figure of 16 cores is missed.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TICKS = os.sysconf("SC_CLK_TCK")
CASES = ("file", "engine", "threads", "judged", "service")
WANTED = {"file": 7.0, "engine": 10.0, "service": 6.0}
LEAST_MB_S, LEAST_CALLS = 800, 20_000

ENGINE = """
import json, sys, threading, time
sys.path.insert(0, sys.argv[1])
import plaudit
rows = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
threads = int(sys.argv[3])
prompts, responses, references, groups = ([row.get(name) for row in rows] for name in ("prompt", "response", "reference", "group"))
engine = plaudit.Engine("quickstart")
def score():
    engine.score(prompts, responses, references=references, groups=groups).totals
score()
best = 0.0
for _ in range(int(sys.argv[4])):
    began = time.perf_counter()
    workers = [threading.Thread(target=score) for _ in range(threads)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    best = max(best, threads * len(rows) / (time.perf_counter() - began))
print(json.dumps({"per_s": best}))
"""

JUDGED = """name: judged
components:
  judged: {{ reward: principle, mode: pairwise, judge: main, principles: [helpfulness, harmlessness, honesty] }}
judges:
  main: {{ base_url: "{url}", model: judge-sim, concurrency: {in_flight}, answer_format: json, hedge_share: 0 }}
"""


def on(cores, *command):
    """The command on those cores alone."""
    return ["taskset", "-c", ",".join(str(core) for core in cores), *(str(word) for word in command)]


def processor(pid):
    """The processor seconds of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def timed(command, **options):
    """Wall and processor seconds of a command, and its output."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:6])} ended with {done.returncode}: {done.stderr[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, done.stdout


@contextlib.contextmanager
def server(command):
    """A server and its address, as long as it is needed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


class Scale:
    """The cases, on any number of cores."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.corpus = folder / "rollouts.jsonl"
        corpus = [sys.executable, HERE / "corpus.py", "--size-gb", str(options.size_gb), "--out", self.corpus]
        subprocess.run([str(word) for word in corpus], check=True, capture_output=True)
        with self.corpus.open(encoding="utf-8") as lines, (folder / "few.jsonl").open("w", encoding="utf-8") as few:
            few.writelines(line for line, _ in zip(lines, range(16_384)))
        self.bytes = self.corpus.stat().st_size

    def file(self, cores):
        """`plaudit score` from the page cache to /dev/null."""
        command = on(
            range(cores), self.options.command, "score", self.corpus, "--recipe", "quickstart", "--out", "/dev/null", "--quiet"
        )
        wall, used, _ = min(timed(command) for _ in range(self.options.rounds))
        return {"rate": self.bytes / 1e6 / wall, "unit": "MB/s", "client": used / wall / cores}

    def engine(self, cores, threads=1):
        """`Engine.score` of 16,384 rollouts, again and again."""
        arguments = (self.options.package, self.folder / "few.jsonl", threads, 5 * self.options.rounds)
        _, _, out = timed(on(range(cores), sys.executable, "-c", ENGINE, *arguments))
        return {"rate": json.loads(out)["per_s"], "unit": "rollouts/s"}

    def threads(self, cores):
        """The same from eight Python threads at once."""
        return self.engine(cores, 8)

    def judged(self, cores, in_flight):
        """All pairs of groups of eight, a judge of 20 ms on cores of its own, the journal on."""
        others = max(self.options.machine // 4, 1)
        judge_cores = range(self.options.machine - others, self.options.machine)
        groups = min(max(in_flight * 2, 400), self.options.judged_groups)
        rows, recipe, state = self.folder / "judged.jsonl", self.folder / "judged.yaml", self.folder / "state"
        with rows.open("w", encoding="utf-8") as out:
            for group in range(groups):
                for member in range(8):
                    text = f"{group}.{member} " + "so the sum of these numbers is even, because each of them is; " * 32
                    quality = (group * 7 + member * 13) % 17 / 10
                    row = {"group": str(group), "prompt": f"Question {group}?", "response": f"{text} [[quality:{quality}]]"}
                    out.write(json.dumps(row) + "\n")
        judge = on(judge_cores, self.options.command, "judge-sim", "--port", 0, "--latency", "20ms", "--jitter", 0, "--slow-share", 0)
        best = None
        for _ in range(self.options.rounds):
            shutil.rmtree(state, ignore_errors=True)
            with server(judge) as (process, url):
                recipe.write_text(JUDGED.format(url=url, in_flight=in_flight))
                flags = ("--recipe", recipe, "--state", state, "--out", "/dev/null", "--summary", self.folder / "summary.json", "--quiet")
                wall, used, _ = timed(on(range(cores), self.options.command, "score", rows, *flags))
                judge_used = processor(process.pid)
            calls = json.loads((self.folder / "summary.json").read_text())["judges"][0]["calls"]
            found = {
                "rate": calls / wall,
                "unit": "calls/s",
                "client": used / wall / cores,
                "other": judge_used / wall / others,
                "judge_capacity": others / (judge_used / calls),
                "us_a_call": used / calls * 1e6,
            }
            best = max(best, found, key=lambda one: one["rate"]) if best else found
        return best

    def service(self, cores):
        """`/v1/score` with groups of 8 x 2 KB, from a load generator on cores of its own."""
        others = max(self.options.machine // 2, 1)
        load_cores = range(self.options.machine - others, self.options.machine)
        state = self.folder / "serve"
        shutil.rmtree(state, ignore_errors=True)
        serve = on(range(cores), self.options.command, "serve", "--bind", "127.0.0.1:0", "--state", state, "--recipe", "quickstart")
        best = None
        with server(serve) as (process, line):
            address = re.search(r"[\d.]+:\d+", line)[0]
            for _ in range(self.options.rounds):
                before = processor(process.pid)
                arguments = ("--address", address, "--connections", max(16, 8 * cores), "--threads", others)
                arguments += ("--seconds", self.options.seconds, "--bodies", 64)
                wall, used, out = timed(on(load_cores, self.options.load, *arguments))
                seen = json.loads(out.splitlines()[-1])
                found = {
                    "rate": seen["rollouts_per_s"],
                    "unit": "rollouts/s",
                    "client": (processor(process.pid) - before) / wall / cores,
                    "other": used / wall / others,
                    "p99_ms": seen["statuses"]["200"]["p99_ms"],
                }
                best = max(best, found, key=lambda one: one["rate"]) if best else found
        return best


def measure(options):
    raw = {"date": datetime.date.today().isoformat(), "cores": options.cores, "cases": {}}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scale = Scale(options, pathlib.Path(folder))
        for name in options.only:
            variants = [(f"judged, {n} in flight", (n,)) for n in options.in_flight] if name == "judged" else [(name, ())]
            room = {"judged": options.machine - max(options.machine // 4, 1), "service": max(options.machine // 2, 1)}
            for title, arguments in variants:
                rows = raw["cases"].setdefault(title, {})
                most = room.get(name, options.machine)
                counts = {cores for cores in options.cores if cores <= most}
                if max(options.cores) >= most:
                    counts.add(most)
                for cores in sorted(counts):
                    found = getattr(scale, name)(cores, *arguments)
                    rows[cores] = found
                    first = rows[min(rows)]["rate"]
                    shares = " ".join(
                        f"{side} {found[side]:4.0%}" for side in ("client", "other") if found.get(side) is not None
                    )
                    more = "".join(
                        f"  {label} {found[key]:,.0f}"
                        for key, label in (("judge_capacity", "judge could"), ("us_a_call", "us a call"))
                        if key in found
                    )
                    p99 = f"  p99 {found['p99_ms']:.1f} ms" if found.get("p99_ms") else ""
                    print(
                        f"{title:26} {cores:3} cores {found['rate']:12,.0f} {found['unit']:10} {found['rate'] / first:5.1f}x  {shares}{more}{p99}",
                        flush=True,
                    )
    return raw


def missed(raw):
    """The figures that are wanted of 16 cores and not reached."""
    failures = []
    for title, rows in raw["cases"].items():
        name, most = title.split(",")[0], max(rows)
        ratio = rows[most]["rate"] / rows[min(rows)]["rate"]
        if max(raw["cores"]) < 16 or min(rows) != 1:
            continue
        if name in WANTED and ratio < WANTED[name]:
            failures.append(f"{title}: {ratio:.1f}x of {WANTED[name]}x")
        if name == "file" and rows[most]["rate"] < LEAST_MB_S:
            failures.append(f"{title}: {rows[most]['rate']:.0f} MB/s of {LEAST_MB_S}")
        if "2048" in title and rows[most]["rate"] < LEAST_CALLS:
            failures.append(f"{title}: {rows[most]['rate']:,.0f} calls/s of {LEAST_CALLS:,}")
    return failures


def plot(source, target):
    """Speed-up over one core, a line a case, beside the ideal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    raw = json.loads(pathlib.Path(source).read_text())
    figure, axes = pyplot.subplots(figsize=(7, 4.5), dpi=140)
    most = max(raw["cores"])
    axes.plot([1, most], [1, most], color="0.7", linestyle="--", label="ideal")
    for title, rows in raw["cases"].items():
        cores = sorted(int(core) for core in rows)
        rates = [rows[str(core)]["rate"] for core in cores]
        axes.plot(cores, [rate / rates[0] * cores[0] for rate in rates], marker="o", label=title)
    axes.set(xscale="log", yscale="log", xlabel="cores", ylabel="speed over one core")
    ticks = [2**power for power in range(most.bit_length())]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_yticks(ticks, [f"{tick}x" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    machine = len(os.sched_getaffinity(0))
    doubling = [2**power for power in range(machine.bit_length()) if 2**power <= machine]
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--cores", type=numbers, default=doubling, help="core counts, such as 1,4,16")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--in-flight", type=numbers, default=[512, 2048], help="judge calls in flight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of load on the service, a round")
    parser.add_argument("--size-gb", type=float, default=0.45)
    parser.add_argument("--judged-groups", type=int, default=4000)
    parser.add_argument("--command", default=TARGET / "release" / "plaudit")
    parser.add_argument("--load", default=TARGET / "release" / "examples" / "load")
    parser.add_argument("--package", default=ROOT / "python", help="the folder of the Python package")
    parser.add_argument("--folder", help="where files are made; in memory is best")
    parser.add_argument("--out", help="raw figures; bench/runs/DATE-scale.json unless given")
    parser.add_argument("--plot", nargs=2, metavar=("RAW", "PNG"), help="only draws what was measured")
    options = parser.parse_args()
    options.machine = machine
    if options.plot:
        return plot(*options.plot)
    raw = measure(options)
    out = pathlib.Path(options.out or HERE / "runs" / f"{raw['date']}-scale.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(raw, indent=1) + "\n")
    failures = missed(raw)
    print("\n".join(f"MISSED {failure}" for failure in failures) or "every figure is reached")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
