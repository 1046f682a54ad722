"""The live service that the tests of this folder ask: `plaudit serve` with a simulated judge that fails at times, and a run of some steps."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("PLAUDIT_BIN", str(ROOT / "target/debug/plaudit"))


def tool(name):
    """A program of this environment."""
    return str(Path(sys.executable).with_name(name))


def run(*command, **options):
    """Runs a program; what it says is in the failure."""
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def needs(program):
    """Skips a test for want of a program; with PLAUDIT_TEST_ALL=1 nothing may be left out."""
    if shutil.which(program) is None:
        if os.environ.get("PLAUDIT_TEST_ALL") == "1":
            pytest.fail(f"{program} is missing")
        pytest.skip(f"{program} is missing")


class Server:
    """A process that says its address in its first line; ended with the `with`."""

    def __init__(self, *arguments, **options):
        self.process = subprocess.Popen(
            [BINARY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def __enter__(self):
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError(f"it does not start: {self.process.stderr.read()}")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=30)

    def get(self, path, token=None):
        return self.ask(urllib.request.Request(self.url + path), token)

    def post(self, path, body, token=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        return self.ask(request, token)

    def ask(self, request, token):
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()


SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$")


def samples(text):
    """The names of samples, each with the names of its labels."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels = SAMPLE.match(line).groups()
            found.setdefault(name, set()).update(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', labels or ""))
    return found


@pytest.fixture(scope="session")
def metrics(tmp_path_factory):
    """What /metrics has after some steps of a judged run."""
    folder = tmp_path_factory.mktemp("service")
    judge = ["judge-sim", "--port", "0", "--latency", "1ms", "--error-rate", "0.2"]
    with Server(*judge) as judge:
        config = folder / "serve.yaml"
        config.write_text(
            f"judges:\n  main: {{ base_url: '{judge.url}', model: simulated, price: {{ input: 0.2, output: 0.6 }} }}\n"
        )
        options = [
            "--config",
            str(config),
            "--state",
            str(folder / "state"),
            "--set",
            "components.principle.audit=0.5",
        ]
        with Server("serve", "--bind", "127.0.0.1:0", *options) as service:
            load = [
                "examples/serve/load.py",
                "--steps",
                "10",
                "--pause",
                "0",
                "--groups",
                "2",
                "--url",
                service.url,
            ]
            # The tenth step is a validation against the reference.
            run(sys.executable, *load)
            job = {
                "recipe": "quickstart",
                "rollouts": [{"prompt": "6 * 7?", "response": "42", "reference": "42"}],
            }
            service.post("/v1/jobs", job)
            return samples(service.get("/metrics"))
