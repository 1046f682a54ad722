"""The image, confined as compose.yaml and the manifests do: read-only root, ordinary user, no capability, no network.

With Docker it is the image that `make image` has built. Elsewhere podman builds it as root: the last stage as it stands in the
Dockerfile, with the command of PLAUDIT_BIN in the place of the one that the first stage would build. The base image is pulled, or made
with debootstrap where there is no registry to pull from.
"""

import json
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from conftest import BINARY, ROOT, samples
from test_board import expressions, selectors

IMAGE = "plaudit:local"
PROFILE = ROOT / "deploy/kubernetes/components/sandbox-namespaces/seccomp.json"
CONFIG = """
recipes: [tutorial, math, code]
judges:
  main: { base_url: "http://127.0.0.1:7718/v1", model: simulated, price: { input: 0.2, output: 0.6 } }
"""
PROGRAM = {
    "prompt": "Read two numbers and print their sum.",
    "response": "<think>Add.</think>\n```python\nprint(sum(map(int, input().split())))\n```",
    "tests": [{"input": "1 2", "output": "3"}, {"input": "4 5", "output": "9"}],
}
SUM = {"prompt": "6 * 7?", "response": "<think>Six sevens.</think><answer>42</answer>", "reference": "42"}
# Runs inside, with the image's own Python: there is no network to ask the service over from outside.
CLIENT = """
import json, urllib.request
ask = json.load(open(0))
request = urllib.request.Request("http://127.0.0.1:7717" + ask["path"], ask["body"] and json.dumps(ask["body"]).encode())
request.add_header("Content-Type", "application/json")
request.add_header("Authorization", "Bearer " + ask["token"])
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""
CONFINED = [
    *["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none"],
    # The health check is run by hand: podman needs systemd for it.
    *["--no-healthcheck", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"],
    *["--tmpfs", "/tmp:mode=1777,size=256m"],
]


def works(*command):
    return (
        shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0
    )


class Engine:
    """Docker or podman, which take the same words."""

    def __init__(self):
        self.is_docker = works("docker", "info")
        # crun of Debian 12 does not take hosts with both versions of cgroups.
        runtime = ["--runtime", "runc"] if shutil.which("runc") else []
        self.command = ["docker"] if self.is_docker else ["podman", *runtime]
        assert self.is_docker or shutil.which("podman"), "neither a Docker daemon nor podman is here"

    def __call__(self, *arguments, **options):
        done = subprocess.run(
            [*self.command, *map(str, arguments)], capture_output=True, text=True, **options
        )
        assert done.returncode == 0, f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def build(self):
        """What podman makes of the Dockerfile."""
        first, *_, last = re.split(r"^(?=FROM )", (ROOT / "Dockerfile").read_text(), flags=re.M)
        self.base(re.search(r"^ARG DEBIAN=(\w+)", first, re.M)[1])
        with tempfile.TemporaryDirectory() as folder:
            for source in re.findall(r"^COPY (?!--from)(?:--\S+ )*(\S+) ", last, re.M):
                target = Path(folder, source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, target)
            shutil.copy(BINARY, Path(folder, "plaudit"))
            Path(folder, "Dockerfile").write_text(
                f"{first}FROM scratch AS build\nCOPY plaudit /out/plaudit\n\n{last}"
            )
            options = ["--isolation", "chroot", "--network", "host", "--format", "docker", "--pull=never"]
            self("build", *options, "--tag", IMAGE, folder)

    def base(self, suite):
        """Makes sure that the base image is here."""
        name = f"docker.io/library/debian:{suite}-slim"
        if works(*self.command, "image", "exists", name) or works(
            "timeout", "60", *self.command, "pull", name
        ):
            return
        with tempfile.TemporaryDirectory() as folder:
            made = ["debootstrap", "--variant=minbase", suite, f"{folder}/root"]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "-C", f"{folder}/root", "-cf", f"{folder}/root.tar", "."], check=True)
            self("import", f"{folder}/root.tar", name)


@pytest.fixture(scope="module")
def engine():
    engine = Engine()
    if not engine.is_docker:
        engine.build()
    return engine


@pytest.fixture(scope="module")
def volume(engine):
    name = f"plaudit-test-{uuid.uuid4().hex}"
    engine("volume", "create", name)
    yield name
    engine("volume", "rm", "--force", name)


@pytest.fixture(scope="module")
def token(engine, volume):
    """A token, made as the guide says."""
    create = [
        "token",
        "create",
        "test",
        "--scope",
        "score",
        "--scope",
        "read",
        "--file",
        "/var/lib/plaudit/tokens.json",
    ]
    return engine("run", "--rm", *CONFINED, "--volume", f"{volume}:/var/lib/plaudit", IMAGE, *create)


class Container:
    """The service, running."""

    def __init__(self, engine, name, token):
        self.engine, self.name, self.token = engine, name, token

    def exec(self, *command, **options):
        return self.engine("exec", "-i", self.name, *command, **options)

    def ask(self, path, body=None):
        return self.exec(
            "python3", "-c", CLIENT, input=json.dumps({"path": path, "body": body, "token": self.token})
        )


@pytest.fixture(scope="module")
def container(engine, volume, token, tmp_path_factory):
    config = tmp_path_factory.mktemp("config") / "serve.yaml"
    config.write_text(CONFIG)
    config.chmod(0o644)
    name = f"plaudit-test-{uuid.uuid4().hex}"
    (about,) = json.loads(engine("image", "inspect", IMAGE))
    command = [
        *about["Config"]["Cmd"],
        "--config",
        "/etc/plaudit/serve.yaml",
        "--set",
        "components.principle.audit=0.5",
    ]
    mounts = ["--volume", f"{volume}:/var/lib/plaudit", "--volume", f"{config}:/etc/plaudit/serve.yaml:ro"]
    engine("run", "--detach", "--name", name, *CONFINED, *mounts, IMAGE, *command)
    # Podman has it beside the configuration.
    kind, *health = (about.get("Healthcheck") or about["Config"]["Healthcheck"])["Test"]
    assert kind == "CMD"
    for _ in range(100):
        if works(*engine.command, "exec", name, *health):
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"the health check does not pass: {engine('logs', name)}")
    yield Container(engine, name, token)
    engine("rm", "--force", name)


def test_user_is_ordinary_and_root_is_read_only(container):
    assert container.exec("id", "-u") == "10001"
    lines = container.exec("cat", "/proc/1/status").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["Uid"].split() == ["10001"] * 4 and status["NoNewPrivs"] == "1"
    assert all(int(status[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapBnd"))
    mounts = [line.split() for line in container.exec("cat", "/proc/mounts").splitlines()]
    (root,) = [options.split(",") for _, place, _, options, *_ in mounts if place == "/"]
    assert "ro" in root
    assert container.exec("stat", "-c", "%a", "/var/lib/plaudit/state") == "700"


def test_rollout_is_scored_over_http(container):
    answer = json.loads(container.ask("/v1/score", {"recipe": "math", "rollouts": [SUM]}))
    assert (answer["results"][0]["total"], answer["results"][0]["correct"]) == (1.0, True)


def test_program_runs_in_the_sandbox_and_leaves_nothing(container):
    answer = json.loads(container.ask("/v1/score", {"recipe": "code", "rollouts": [PROGRAM]}))
    (result,) = answer["results"]
    (tests,) = [one for one in result["components"].values() if "sandbox" in one["info"]]
    assert (tests["value"], tests["info"]["sandbox"]) == (1.0, "landlock"), result
    states = container.exec("sh", "-c", "cat /proc/[0-9]*/stat 2> /dev/null || true")
    assert "plaudit" in states and not re.findall(r"^\d+ \(.*\) Z", states, re.M), states


def test_metrics_have_what_the_board_asks_for(container):
    judge = ["plaudit", "judge-sim", "--latency", "1ms", "--error-rate", "0.2"]
    container.engine("exec", "--detach", container.name, *judge)
    load = ["python3", "-", "--steps", "10", "--pause", "0", "--groups", "2"]
    name = ["exec", "-i", "--env", f"PLAUDIT_TOKEN={container.token}", container.name]
    container.engine(*name, *load, input=(ROOT / "examples/serve/load.py").read_text())
    asked = {name for _, expression, _ in expressions() for name, _ in selectors(expression)[0]} - {"up"}
    missing = asked - samples(container.ask("/metrics")).keys()
    assert not missing, f"/metrics has no {sorted(missing)}"


def test_sigterm_ends_it_with_0(container):
    began = time.monotonic()
    container.engine("stop", "--time", "20", container.name)
    code = container.engine("inspect", "--format", "{{.State.ExitCode}}", container.name)
    assert code == "0" and time.monotonic() - began < 15


def test_namespaces_work_with_their_profile(engine):
    if engine.is_docker:
        pytest.skip("AppArmor's profile of Docker forbids mounts")
    options = ["--security-opt", f"seccomp={PROFILE}", "--security-opt", "unmask=ALL"]
    said = engine("run", "--rm", *CONFINED, *options, IMAGE, "doctor")
    assert re.search(r"^ok +sandbox +isolated by namespaces", said, re.M), said
