"""Checks of a trainer's configuration, once a process, before the first rollout, because verl itself checks little.

Raises an error where rewards would be wrong or missing, with the line that fixes it; warns about keys that verl ignores.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from plaudit.verl.options import Options

log = logging.getLogger("plaudit")

# Ray lets an async actor have 1000 calls under way. verl chooses a worker at random for each rollout, so that some get
# more than their share; with 850 on average hardly any gets more than 1000.
CALLS_A_WORKER = 850


def check(config: Any, options: Options, *, compares: bool, size: int | str, waits_in_ray: bool) -> None:
    """Runs all checks; raises or warns."""
    if waits_in_ray:
        check_bypass(config)
    if compares:
        check_size(size)
        if waits_in_ray and isinstance(size, int):
            check_calls(config, size)
    if options.invalid_value() == "drop" and not runs_v1(config):
        raise ValueError(
            "reward.reward_kwargs.invalid=drop needs verl's V1 trainer (0.9, trainer.use_v1=True): any other one ends "
            "the run when a single rollout fails. Use invalid=mean, the default"
        )
    if may_warn():
        for message in [*ignored_keys(config), *other_sizes(config, options)]:
            log.warning("plaudit: %s", message)


def check_bypass(config: Any) -> None:
    """A hosted reward model replaces the manager unless `custom_reward_function` is set."""
    model = config.reward.reward_model
    if not model.enable:
        return
    if config.reward.custom_reward_function.path is None:
        raise ValueError(
            "reward.reward_model.enable=True makes verl ask that model and never the reward manager. To use it as "
            "plaudit's judge, add reward.custom_reward_function.path=pkg://plaudit.verl "
            "reward.custom_reward_function.name=passthrough +reward.reward_kwargs.router=JUDGE_NAME"
        )
    if not model.enable_resource_pool:
        raise ValueError(
            "reward.reward_model.enable_resource_pool=False shares GPUs with the policy, and verl then hands over "
            "rollouts without their group. Set reward.reward_model.enable_resource_pool=True"
        )


def check_size(size: int | str) -> None:
    if isinstance(size, int) and size < 2:
        raise ValueError(
            "this recipe compares the rollouts of a group, and actor_rollout_ref.rollout.n=1 makes groups of one. Set "
            "actor_rollout_ref.rollout.n to 2 or more, or choose a recipe that looks at single responses"
        )


def check_calls(config: Any, size: int) -> None:
    """A rollout that waits for its group is a call of a reward worker, and a worker whose calls all wait can take no more.

    At worst all rollouts but the last of every group wait at once. Where they arrive in random order, fewer do: after a share f
    of the batch, complete groups have been answered, and f - f^n of the batch waits. Raises where even that does not fit;
    warns where the worst case does not fit.
    """
    prompts = config.data.train_batch_size * batches_in_flight(config)
    workers = int(config.reward.num_workers)
    capacity = CALLS_A_WORKER * workers
    worst = math.ceil(prompts * (size - 1))
    if worst <= capacity:
        return
    share = size ** (-1 / (size - 1))
    usual = math.ceil(prompts * size * (share - share**size))
    message = (
        f"{{}} rollouts may wait for their groups at once, and {workers} reward workers can hold about {capacity} (Ray allows 1000 "
        f"calls a worker). Set reward.num_workers={math.ceil(worst / CALLS_A_WORKER)}, or score in the agent loop, which has no "
        "such limit: actor_rollout_ref.rollout.agent.default_agent_loop=plaudit (see docs/guide/verl.md, Large batches)"
    )
    if usual > capacity:
        raise ValueError(message.format(usual))
    if may_warn():
        log.warning("plaudit: at worst %s", message.format(worst))


def batches_in_flight(config: Any) -> float:
    """How many training batches are generated at the same time."""
    if not runs_v1(config):
        return 1.0
    v1 = config.trainer.v1
    mode = v1.trainer_mode
    if mode == "sync":
        chosen = config.algorithm.get("filter_groups") or {}
        return (
            float(max(1, chosen.get("max_inflight_gen_batches", 1))) if chosen.get("enable", False) else 1.0
        )
    return 1.0 + float(v1.get(mode, {}).get("num_warmup_batches", 1))


def runs_v1(config: Any) -> bool:
    """Whether verl's newer trainer runs: it is there since 0.9, and is the default."""
    return bool(config.trainer.get("use_v1", False))


def ignored_keys(config: Any) -> list[str]:
    """Keys of older versions that verl 0.9 accepts and does not read; earlier ones have moved them by now."""
    found = []
    moved = {
        "reward_model.reward_manager": "reward.reward_manager.name",
        "reward_model.num_workers": "reward.num_workers",
        "reward_model.enable": "reward.reward_model.enable",
        "reward_model.reward_kwargs": "reward.reward_kwargs",
        "reward_model.reward_loop_source": "reward.reward_manager.source",
        "reward_model.reward_loop_module_path": "reward.reward_manager.module.path",
        "custom_reward_function.path": "reward.custom_reward_function.path",
        "sandbox_fusion.url": "reward.sandbox_fusion.url",
    }
    for old, new in moved.items():
        section, name = old.split(".")
        value = (config.get(section) or {}).get(name)
        if value is not None:
            found.append(f"verl ignores {old}={value}; what it reads is {new}")
    return found


def other_sizes(config: Any, options: Options) -> list[str]:
    """A size of groups that is not the trainer's: where it is wrong, groups wait for members that never come, or are cut."""
    size, made = options.size, int(config.actor_rollout_ref.rollout.n)
    if not isinstance(size, int) or size == made:
        return []
    return [
        f"reward.reward_kwargs.size={size}, and verl makes groups of actor_rollout_ref.rollout.n={made}. Leave size out unless "
        "your trainer makes other groups"
    ]


def may_warn() -> bool:
    """Whether this process logs warnings: the first of the workers, or a process that is not one of several."""
    import ray

    if not ray.is_initialized():
        return True
    name = ray.get_runtime_context().get_actor_name() or ""
    number = name.removeprefix("reward_loop_worker_").removeprefix("agent_loop_worker_").split("_")[0]
    return number in ("", "0") or not number.isdigit()
