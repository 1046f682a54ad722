"""The command lines of Dockerfile, compose file and manifests start the real service, which then scores."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import BINARY, ROOT, Server, needs

DOCKERFILE = (ROOT / "Dockerfile").read_text()
ROLLOUT = {"prompt": "6 * 7?", "response": "<think>Six sevens.</think><answer>42</answer>", "reference": "42"}


def last_stage(word):
    """The last instruction of a kind, as a list."""
    return json.loads(re.findall(rf"^{word} (\[.*\])$", DOCKERFILE, re.M)[-1])


def commands():
    """Each command line with the configuration that it names."""
    yield "Dockerfile", last_stage("CMD"), None
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    yield "compose.yaml", compose["services"]["plaudit"]["command"], ROOT / "deploy/compose/serve.yaml"
    manifest = yaml.safe_load((ROOT / "deploy/kubernetes/base/stateful-set.yaml").read_text())
    args = manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    yield "stateful-set.yaml", args, ROOT / "deploy/kubernetes/base/serve.yaml"


def here(folder, arguments, config):
    """The arguments with the places of this test: a free port, and files below its folder."""
    for argument in arguments:
        argument = argument.replace("0.0.0.0:7717", "127.0.0.1:0")
        argument = argument.replace("/etc/plaudit/serve.yaml", str(config))
        argument = re.sub(r"/var/lib/plaudit|/etc/plaudit", str(folder), argument)
        yield argument


@pytest.fixture
def redis(tmp_path):
    """The Redis of compose.yaml, by its own command line but for its place; its address."""
    needs("redis-server")
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    shell, flags, script = compose["services"]["redis"]["command"]
    socket = tmp_path / "redis.sock"
    # No port: this machine may have another Redis.
    script = script.replace("$$", "$").replace("dir /data", f"dir {tmp_path}\nport 0\nunixsocket {socket}")
    process = subprocess.Popen(
        [shell, flags, script],
        env={**os.environ, "REDIS_PASSWORD": "secret"},
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "eady to accept connections" in line:
            break
    yield socket
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.parametrize("place, arguments, config", list(commands()))
def test_command_line_starts_and_scores(place, arguments, config, tmp_path):
    arguments = [one for one in here(tmp_path, arguments, config) if not one.startswith("--journal")]
    tokens = next(one for one in arguments if "tokens.json" in one).removeprefix("--token-file=")
    os.makedirs(os.path.dirname(tokens), exist_ok=True)
    create = [BINARY, "token", "create", "test", "--file", tokens, "--scope", "score", "--scope", "read"]
    token = subprocess.check_output(create, text=True).strip()
    with Server(*arguments) as service:
        assert json.loads(service.get("/healthz")) == {"up": True}
        assert json.loads(service.get("/readyz"))["ready"]
        answer = json.loads(service.post("/v1/score", {"recipe": "math", "rollouts": [ROLLOUT]}, token))
        assert answer["results"][0]["total"] == 1.0 and answer["results"][0]["correct"]
        assert "plaudit_rollouts_total" in service.get("/metrics", token)
        # The health check of the image, with the interpreter of this machine.
        health = [sys.executable, "-I", "deploy/health.py"]
        url = {"PLAUDIT_HEALTH_URL": f"{service.url}/healthz"}
        assert subprocess.run(health, cwd=ROOT, env=url).returncode == 0
    done = subprocess.run(health, cwd=ROOT, env=url, capture_output=True, text=True)
    assert done.returncode == 1 and url["PLAUDIT_HEALTH_URL"] in done.stderr
    assert service.process.returncode == 0, "SIGTERM must end it with 0"


def test_redis_of_compose_has_a_password_and_keeps_everything(redis):
    needs("redis-cli")
    ask = ["redis-cli", "-s", str(redis), "--no-auth-warning"]
    assert "NOAUTH" in subprocess.check_output([*ask, "ping"], text=True)
    for key, value in {"appendonly": "yes", "maxmemory-policy": "noeviction"}.items():
        said = subprocess.check_output([*ask, "-a", "secret", "config", "get", key], text=True)
        assert said.split() == [key, value]


def test_tokens_of_compose_are_made_once(tmp_path):
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    (script,) = compose["services"]["tokens"]["command"]
    shell = compose["services"]["tokens"]["entrypoint"]
    script = script.replace("/var/lib/plaudit", str(tmp_path)).replace("plaudit token", f"{BINARY} token")
    for _ in range(2):
        subprocess.run([*shell, script], check=True)
    token = (tmp_path / "scrape/token").read_text().strip()
    assert (tmp_path / "scrape/token").stat().st_mode & 0o777 == 0o640
    listed = json.loads(
        subprocess.check_output([BINARY, "token", "list", "--json", "--file", tmp_path / "tokens.json"])
    )
    assert [(one["name"], one["scopes"]) for one in listed] == [("prometheus", ["read"])]
    arguments = [
        "--bind",
        "127.0.0.1:0",
        "--state",
        tmp_path / "state",
        "--token-file",
        tmp_path / "tokens.json",
    ]
    with Server("serve", *arguments) as service:
        assert "plaudit_uptime_seconds" in service.get("/metrics", token)


def test_prometheus_of_compose_scrapes_with_that_token():
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    mounted = next(one for one in compose["prometheus"]["volumes"] if isinstance(one, dict))
    assert (mounted["source"], mounted["volume"]["subpath"]) == ("state", "scrape")
    assert scrape["authorization"]["credentials_file"] == f"{mounted['target']}/token"
    assert scrape["static_configs"] == [{"targets": ["plaudit:7717"]}]
    if shutil.which("promtool"):
        subprocess.run(
            ["promtool", "check", "rules", "rules.yml"], cwd=ROOT / "deploy/prometheus", check=True
        )
