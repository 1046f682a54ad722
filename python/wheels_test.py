"""Checks wheels as users get them: what is inside, and in a bare environment that they score, serve and run the command.

    python3 python/wheels_test.py [--python PLATFORM=COMMAND]... WHEEL...

A wheel for this machine is installed into an environment that has numpy and nothing else. One for another platform is run only
where `--python` says how to start a Python of that platform, such as `--python 'aarch64=qemu-aarch64 -L /sysroot /sysroot/usr/bin/python3'`
or `--python musllinux=/opt/musl/bin/python3`; otherwise its file is looked at alone, and the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".venvs/tools/bin/uv"
MAX_BYTES = 25_000_000
IMPORT_SECONDS = 0.100
# What e_machine of an ELF file says.
MACHINES = {"x86_64": 62, "aarch64": 183}

SCORE = """
import json, sys, plaudit
recipe = {"components": {
    "accuracy": {"reward": "number_accuracy", "scope": "answer"},
    "math": {"reward": "math_verify_reward"},
    "words": {"reward": "total_length", "unit": "token", "tokenizer_type": "tiktoken", "max": 3, "band": 1},
    "chinese": {"reward": "ngram_repetition_penalty", "tokenizer_type": "jieba", "n": 2},
}}
report = plaudit.Engine(recipe).score(None, ["<answer>42</answer>", "我来到北京 我来到北京 我来到北京"], ["42", "42"])
json.dump([result.components for result in report], sys.stdout)
"""
IMPORT = """
from time import process_time as now
import json, numpy
begin = now()
import plaudit
print(json.dumps(now() - begin))
"""


def check(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"FAILED: {what}")


def look_inside(wheel: Path) -> None:
    """The size, the names, the machine and the libraries' versions that its platform promises."""
    size = wheel.stat().st_size
    check(size <= MAX_BYTES, f"{wheel.name} has {size / 1e6:.1f} MB")
    _, _, _, abi, platforms = wheel.stem.split("-")
    check(abi == "abi3", f"{wheel.name} is not for every Python from 3.10 on")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        binaries = [name for name in names if archive.read(name)[:4] == b"\x7fELF"]
        check(binaries == ["plaudit/_plaudit.abi3.so"], f"one binary, not {binaries}")
        for licence in ("LICENSE", "THIRD-PARTY.txt"):
            check(
                any(name.endswith(f".dist-info/licenses/{licence}") for name in names),
                f"{licence} is missing",
            )
        check("plaudit/py.typed" in names and "plaudit/_plaudit.pyi" in names, "the types are missing")
        check(not any("/tests/" in name for name in names), "tests are inside")
        binary = archive.read(binaries[0])
    machine = next(name for name in MACHINES if name in platforms)
    check(int.from_bytes(binary[18:20], "little") == MACHINES[machine], f"{wheel.name} is not for {machine}")
    wanted = {tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(2\.[0-9.]+)\0", binary)}
    if "musllinux" in platforms:
        check(not wanted, "it asks for glibc")
        print(f"{wheel.name}: {size / 1e6:.1f} MB, {machine}, musl")
    else:
        promised = re.search(r"manylinux_(\d+)_(\d+)", platforms)
        check(promised is not None, f"{wheel.name} names no manylinux")
        check(max(wanted) <= tuple(map(int, promised.groups())), f"it asks for glibc {max(wanted)}")
        newest = ".".join(map(str, max(wanted)))
        print(f"{wheel.name}: {size / 1e6:.1f} MB, {machine}, glibc {newest}")


def is_native(wheel: Path) -> bool:
    return platform.machine() in wheel.name and ("musllinux" in wheel.name) != (
        platform.libc_ver()[0] == "glibc"
    )


class Environment:
    """A Python that has the wheel and numpy, and nothing else."""

    def __init__(self, wheel: Path, python: list[str] | None, folder: Path) -> None:
        self.folder = folder
        # Nothing of this checkout, of a user or of another environment.
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONNOUSERSITE": "1"}
        packages = folder / "packages"
        if python is None:
            self.run([str(UV), "venv", "--quiet", "--python", sys.executable, str(folder / "venv")])
            self.python = [str(folder / "venv/bin/python")]
            self.command = [str(folder / "venv/bin/plaudit")]
            self.run([str(UV), "pip", "install", "--quiet", "--python", self.python[0], "numpy", str(wheel)])
            listed = json.loads(
                self.run([str(UV), "pip", "list", "--format", "json", "--python", self.python[0]])
            )
            check(
                {one["name"] for one in listed} == {"numpy", "plaudit"}, f"the environment is bare: {listed}"
            )
        else:
            self.python = python
            self.command = [*python, "-m", "plaudit"]
            version = self.run([*python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
            triple = f"{'aarch64' if 'aarch64' in wheel.name else 'x86_64'}-unknown-linux-"
            triple += "musl" if "musllinux" in wheel.name else "gnu"
            target = ["--target", str(packages), "--python-platform", triple, "--python-version", version]
            self.run(
                [str(UV), "pip", "install", "--quiet", "--only-binary", ":all:", *target, "numpy", str(wheel)]
            )
            self.variables["PYTHONPATH"] = str(packages)

    def run(self, command: list[str]) -> str:
        variables = {**os.environ} if command[0] == str(UV) else self.variables
        done = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=900
        )
        check(done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout


def try_out(wheel: Path, python: list[str] | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(wheel, python, Path(folder))
        took = min(json.loads(environment.run([*environment.python, "-c", IMPORT])) for _ in range(5))
        print(f"  import: {took * 1000:.0f} ms beside numpy's")
        check(python is not None or took < IMPORT_SECONDS, f"the import takes {took * 1000:.0f} ms")

        right, wrong = json.loads(environment.run([*environment.python, "-c", SCORE]))
        check(right["accuracy"] == 1.0 and right["math"] == 1.0, f"a right answer: {right}")
        check(wrong["accuracy"] == 0.0 and wrong["math"] == 0.0, f"a wrong answer: {wrong}")
        check(right["words"] < 0, f"the tokens of tiktoken: {right}")
        check(right["chinese"] == 0.0 and wrong["chinese"] < 0, f"the words of jieba: {right}, {wrong}")
        print("  scores")

        shutil.copy(ROOT / "examples/rollouts.jsonl", folder)
        environment.run([*environment.command, "score", "rollouts.jsonl", "--out", "results.jsonl"])
        results = (Path(folder) / "results.jsonl").read_text().splitlines()
        check(len(results) == 576, f"{len(results)} results of 576 rollouts")
        print("  runs the command")

        serve(environment)
        print("  serves")


def serve(environment: Environment) -> None:
    command = [*environment.command, "serve", "--bind", "127.0.0.1:0", "--recipe", "quickstart"]
    log = environment.folder / "serve.log"
    with log.open("w") as output:
        service = subprocess.Popen(
            command, cwd=environment.folder, env=environment.variables, stdout=output, stderr=output
        )
        try:
            address = None
            while address is None and service.poll() is None:
                found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
                address = found and found[0]
            check(address is not None, log.read_text())
            rollout = {
                "prompt": "6 * 7?",
                "response": "<think>.</think><answer>42</answer>",
                "reference": "42",
            }
            body = json.dumps({"recipe": "quickstart", "rollouts": [rollout]}).encode()
            request = urllib.request.Request(
                f"{address}/v1/score", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as reply:
                answer = json.load(reply)
            check(answer["results"][0]["total"] > 0, f"the service answers {answer}")
            with urllib.request.urlopen(address, timeout=60) as reply:
                check(b"<html" in reply.read(), "the dashboard is there")
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", default=[], metavar="PLATFORM=COMMAND")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    arguments = parser.parse_args()
    pythons = dict(one.split("=", 1) for one in arguments.python)
    for wheel in arguments.wheels:
        look_inside(wheel)
        python = next((command for name, command in pythons.items() if name in wheel.name), None)
        if python or is_native(wheel):
            try_out(wheel.resolve(), shlex.split(python) if python else None)
        else:
            print("  not run: no Python of this platform was named by --python")


if __name__ == "__main__":
    main()
