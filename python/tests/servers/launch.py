"""The servers, each started on a free port of the loopback with a model of models.py, and stopped with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PLAUDIT = str(Path(os.environ["PLAUDIT_BIN"]).resolve())
# Which servers are tested; `make test-servers` says so.
CHOSEN = os.environ["SERVERS"].split()
# What LiteLLM wants of its clients. No one's key.
KEY = "sk-0123456789abcdef0123456789abcdef"
# How long a server may take until it answers, in seconds: vLLM takes one minute or two where others work as well.
PATIENCE = 400

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # The model runs in the process of the engine: one process less to start.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MASTER_KEY": KEY,
    "TOKENIZERS_PARALLELISM": "false",
    "NO_PROXY": "127.0.0.1",
}

# Asks a server without a proxy on the way.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def program(environment: str, name: str) -> str:
    """A program of one of the environments that python/venv.sh makes."""
    return str(ROOT / ".venvs" / environment / "bin" / name)


@dataclass(frozen=True)
class Kind:
    """A server: how it is started, when it is up, and which forms of verdicts it can do by itself."""

    command: Callable[[Path, str], list[str]]
    health: str
    forms: tuple[str, ...] = ("logprobs", "json", "tag")
    # The server that it stands in front of.
    behind: str | None = None
    # The name that a request must give.
    model: Callable[[Path], str] = lambda _: "judge"


def vllm(model: str, *more: str) -> Callable[[Path, str], list[str]]:
    # As `vllm serve`, which wants a package of the name vllm; the one for the CPU has another name.
    options = f"-m vllm.entrypoints.openai.api_server --served-model-name {model} --host 127.0.0.1"
    options += " --dtype float32 --max-model-len 4096 --enforce-eager"
    start = [program("vllm", "python"), *options.split(), *more]
    return lambda folder, port: [*start, "--model", str(folder / model), "--port", port]


def transformers(folder: Path, port: str) -> list[str]:
    start = [program("vllm", "transformers"), "serve", str(folder / "judge"), "--device", "cpu"]
    return [*start, "--host", "127.0.0.1", "--port", port]


def llama_cpp(folder: Path, port: str) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "llama_server.py"), str(folder / "judge.gguf"), port]


def llama_cpp_python(folder: Path, port: str) -> list[str]:
    options = f"-m llama_cpp.server --model_alias judge --n_ctx 4096 --host 127.0.0.1 --port {port}"
    return [program("llama-cpp-python", "python"), *options.split(), "--model", str(folder / "judge.gguf")]


def litellm(folder: Path, port: str) -> list[str]:
    start = [program("servers", "litellm"), "--config", str(folder / "litellm.yaml")]
    return [*start, "--host", "127.0.0.1", "--port", port]


KINDS = {
    "vllm": Kind(vllm("judge"), "health"),
    "vllm-reward": Kind(vllm("reward", "--runner", "pooling"), "health", (), model=lambda _: "reward"),
    "transformers": Kind(transformers, "health", ("json", "tag"), model=lambda folder: str(folder / "judge")),
    "llama-cpp": Kind(llama_cpp, "health"),
    "llama-cpp-python": Kind(llama_cpp_python, "v1/models", ("logprobs", "tag")),
    "litellm": Kind(litellm, "health/liveliness", behind="llama-cpp"),
}
JUDGES = [name for name in CHOSEN if KINDS[name].forms]


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    name: str
    address: str
    model: str

    @property
    def forms(self) -> tuple[str, ...]:
        return KINDS[self.name].forms

    def judge(self, **settings: Any) -> dict[str, Any]:
        """How a recipe names it. Nothing is sent twice because it is slow, so that calls can be counted."""
        base_url = f"{self.address}/v1"
        return {
            "base_url": base_url,
            "model": self.model,
            "api_key_env": "LITELLM_MASTER_KEY",
            "hedge_share": 0.0,
        } | settings


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Server]:
    """Starts a server, and what it stands in front of, and ends them with all their processes."""
    kind = KINDS[name]
    with contextlib.ExitStack() as stack:
        if kind.behind:
            behind = stack.enter_context(running(kind.behind, folder))
            # As docs/guide/which-judge.md has it.
            parameters = {"model": "hosted_vllm/judge", "api_base": f"{behind.address}/v1", "api_key": "none"}
            settings = {
                "model_list": [{"model_name": "judge", "litellm_params": parameters}],
                "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
            }
            (folder / "litellm.yaml").write_text(json.dumps(settings))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        log = folder / f"{name}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                kind.command(folder, port),
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | OFFLINE,
                cwd=folder,
                # A group of its own, so that its children end with it.
                start_new_session=True,
            )
        try:
            address = f"http://127.0.0.1:{port}"
            end = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(OSError):
                    DIRECT.open(f"{address}/{kind.health}", timeout=10).close()
                    break
                gone = process.poll() is not None or time.monotonic() > end
                assert not gone, f"{name} did not start:\n{log.read_text()[-4000:]}"
                time.sleep(0.2)
            yield Server(name, address, kind.model(folder))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Scored:
    """What one run of the command says."""

    rows: list[dict[str, Any]]
    judge: dict[str, Any]
    said: str

    @property
    def outcomes(self) -> set[str]:
        return {row["outcome"] for row in self.rows}

    @property
    def totals(self) -> list[float | None]:
        return [row["total"] for row in self.rows]

    @property
    def reasons(self) -> set[str]:
        return {row["reason"]["code"] for row in self.rows if "reason" in row}
