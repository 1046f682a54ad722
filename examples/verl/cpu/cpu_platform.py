"""A platform for verl that is the CPU, and a generator that samples from the tiny policy, to train without a GPU.

verl loads this module in every process (VERL_USE_EXTERNAL_MODULES=cpu_platform) and uses nothing of it by name but the
platform `cpu` and the rollout `tiny`. Everything else of a run is verl's own. The generator stands where vLLM or SGLang
stand in a real run: it holds the policy's weights, which verl pushes to it after every step, and samples tokens.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Generator, Iterator
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry


def _nothing(*_: Any, **__: Any) -> int:
    return 0


class Device(types.ModuleType):
    """`torch.cpu` with those functions of `torch.cuda` that verl calls, which have nothing to do here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.cpu, name, _nothing)

    def is_available(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    def get_device_name(self, *_: Any) -> str:
        return "cpu"

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        return 0, 0

    def get_rng_state(self, *_: Any) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: Any) -> None:
        torch.set_rng_state(state)


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """The machine itself as the only device; Ray is told of one GPU that is not there, so that it places the worker."""

    module = Device("plaudit_example_cpu")

    device_name = "cpu"  # type: ignore[assignment]
    vendor_name = "cpu"  # type: ignore[assignment]
    device_module = module  # type: ignore[assignment]

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return torch.device("cpu")  # type: ignore[return-value]

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...
    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...
    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...
    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


def accept_one_device() -> None:
    """verl joins processes by `cpu:gloo,DEVICE:BACKEND`, and torch refuses to be told of the same device twice."""
    import functools

    import torch.distributed as distributed

    joined = distributed.init_process_group

    @functools.wraps(joined)
    def join(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return joined("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    distributed.init_process_group = join


def register_generator() -> None:
    """Makes `actor_rollout_ref.rollout.name=tiny` known: the server of tokens, and how weights reach it."""
    from verl.workers.rollout import base
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    RolloutReplicaRegistry.register("tiny", load_replica)
    base._ROLLOUT_REGISTRY[("tiny", "async")] = "cpu_platform.TinyWeights"


class Generator_:
    """The server: one small model, sampled a token at a time. verl calls it as it calls vLLM's."""

    def __init__(self, path: str, length: int, broken: float) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float32).eval()
        self.end = AutoTokenizer.from_pretrained(path).eos_token_id
        self.length = length
        self.broken = broken
        self.steps = 0
        self.calls = 0

    async def generate(self, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        self.calls += 1
        if self.broken and self.calls % round(1 / self.broken) == 0:
            raise RuntimeError("this rollout was made to fail")
        tokens, logprobs = await asyncio.to_thread(self.sample, list(prompt_ids), sampling_params)
        return TokenOutput(
            token_ids=tokens,
            log_probs=logprobs,
            stop_reason="completed",
            num_preempted=0,
            extra_fields={"global_steps": self.steps},
        )

    @torch.no_grad()
    def sample(self, prompt: list[int], params: dict[str, Any]) -> tuple[list[int], list[float]]:
        temperature = float(params.get("temperature", 1.0))
        tokens: list[int] = []
        logprobs: list[float] = []
        past = None
        ids = torch.tensor([prompt])
        for _ in range(self.length):
            out = self.model(input_ids=ids, past_key_values=past, use_cache=True)
            past = out.past_key_values
            scores = torch.log_softmax(out.logits[0, -1].float() / (temperature or 1.0), dim=-1)
            token = int(torch.multinomial(scores.exp(), 1)) if temperature else int(scores.argmax())
            tokens.append(token)
            logprobs.append(float(scores[token]))
            if token == self.end:
                break
            ids = torch.tensor([[token]])
        return tokens, logprobs

    async def load(self, weights: dict[str, torch.Tensor], steps: int | None) -> None:
        self.model.load_state_dict(weights, strict=False)
        self.steps = steps or 0

    async def set_global_steps(self, global_steps: int) -> None:
        self.steps = global_steps

    async def idle(self, *_: Any, **__: Any) -> None:
        """Sleeping, waking and clearing caches: there is no GPU whose memory would have to be shared."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = idle
    abort_all_requests = resume_generation = start_profile = stop_profile = idle


def load_replica() -> type:
    import os

    import ray
    from verl.workers.rollout.replica import RolloutReplica

    class TinyReplica(RolloutReplica):
        """Starts one generator."""

        async def launch_servers(self) -> None:
            broken = float(os.environ.get("BROKEN_ROLLOUTS", "0"))
            length = int(os.environ.get("TURN_LENGTH", self.config.response_length))
            server = (
                ray.remote(Generator_)
                .options(name=f"tiny_server_{self.replica_rank}", num_cpus=0, max_concurrency=1000)
                .remote(self.model_config.path, length, broken)
            )
            self.servers = [server]
            self._server_handle = server
            self._server_address = f"tiny-{self.replica_rank}"

    return TinyReplica


def _weights_class() -> type:
    import ray
    from verl.workers.rollout.base import BaseRollout

    class TinyWeights(BaseRollout):
        """The trainer's end: brings the policy's weights to the generator."""

        def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
            super().__init__(config, model_config, device_mesh)
            self.replica = max(replica_rank, 0)

        async def resume(self, tags: list[str]) -> None: ...
        async def release(self) -> None: ...

        async def update_weights(self, weights: Generator[Any, None, None], *_: Any, **kwargs: Any) -> None:
            held = {}
            async for name, tensor in each(weights):
                held[name] = (
                    (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor)
                    .detach()
                    .cpu()
                    .clone()
                )
            server = ray.get_actor(f"tiny_server_{self.replica}")
            await server.load.remote(held, kwargs.get("global_steps"))

    return TinyWeights


async def each(weights: Any) -> Any:
    """Weights come from a plain generator in some versions and from an async one in others."""
    if hasattr(weights, "__aiter__"):
        async for item in weights:
            yield item
    else:
        for item in weights:
            yield item


def __getattr__(name: str) -> Any:
    # verl asks for the class by name when it needs it; its base can only be imported once verl itself is.
    if name == "TinyWeights":
        made = globals()[name] = _weights_class()
        return made
    raise AttributeError(name)


accept_one_device()
register_generator()
