"""Samplers for verl's V1 trainer that add `plaudit/*` metrics: verl logs no extra reward columns in training by itself.

The metrics reach every tracker of `trainer.logger`, through verl. A W&B run gets a table of groups as well, which verl has no
way for.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from plaudit.abort import NothingScored
from plaudit.log import write_active_wandb_table

log = logging.getLogger("plaudit")

# Averaged over valid rollouts alone; the rest over all, or over those that were compared with a reference.
FLAGS = ("plaudit/invalid", "plaudit/partial", "plaudit/group_size", "plaudit/waited_s")
COMPARED = ("plaudit/win", "plaudit/win_and", "plaudit/comparison_score")
# What is no value of a component, or stands for one that a rollout may not have.
NOT_COMPONENTS = (*FLAGS, *COMPARED, "plaudit/compared")
# The groups of a step that are shown in a table, the first ones.
MAX_GROUPS = 64


class _Metrics:
    """Adds `plaudit/*` to the metrics of every training batch that is sampled."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs = {**filters(kwargs.get("refill_fn"), type(self)), **kwargs}
        super().__init__(*args, **kwargs)

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        try:
            batch, metrics = super().sample(global_steps, partition_id, batch_size)  # type: ignore[misc]
        except Exception:
            end_if_nothing_was_scored()
            raise
        end_if_nothing_was_scored()
        if partition_id != "val" and batch.keys:
            rows = read(batch)
            metrics = {**metrics, **summary(list(rows.values())), **group_summary(rows)}
            write_group_table(rows, global_steps)
        return batch, metrics

    def _wait_for_next_poll(self, *args: Any, **kwargs: Any) -> Any:
        # verl replaces groups that fail in its asynchronous modes, for ever if need be.
        end_if_nothing_was_scored()
        return super()._wait_for_next_poll(*args, **kwargs)  # type: ignore[misc]


def end_if_nothing_was_scored() -> None:
    """Raises in the trainer where the shared engine says that nothing can be scored: verl only logs what a rollout raises."""
    import ray
    from ray.util import list_named_actors

    for name in list_named_actors():
        if name.startswith("plaudit-"):
            with contextlib.suppress(ray.exceptions.RayError, ValueError):
                ending = ray.get(ray.get_actor(name).status.remote(), timeout=10)["ending"]
                if ending is not None:
                    raise NothingScored(f"plaudit: {ending}")


class PlauditSampler(_Metrics, ReplayBuffer):
    """For `trainer.v1.trainer_mode=sync`."""


class PlauditSamplerAsync(_Metrics, ReplayBufferAsync):
    """For `trainer.v1.trainer_mode=colocate_async` and `separate_async`."""


def read(batch: Any) -> dict[str, dict[str, float]]:
    """The extra columns of every rollout of the batch, by its key."""
    data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    fields = data["extra_fields"]
    # An array, or a list of TransferQueue's own.
    fields = fields.tolist() if hasattr(fields, "tolist") else list(fields)
    infos = [field.get("reward_extra_info") if isinstance(field, dict) else None for field in fields]
    return {key: info for key, info in zip(batch.keys, infos, strict=True) if info}


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """Mean of every column, and the spread of the components, over the rollouts that have a value."""
    metrics: dict[str, float] = {}
    if not rows:
        return metrics
    columns = {name: np.array([row.get(name, np.nan) for row in rows], dtype=float) for name in rows[0]}
    valid = columns.get("plaudit/invalid", np.zeros(len(rows))) == 0
    compared = columns.get("plaudit/compared", np.zeros(len(rows))) > 0
    for name, values in columns.items():
        label = name if name.startswith("plaudit/") else f"plaudit/{name}"
        if name in FLAGS:
            metrics[f"{label}/mean"] = float(np.nanmean(values))
            continue
        chosen = values[valid & compared] if name in COMPARED else values[valid]
        chosen = chosen[np.isfinite(chosen)]
        if chosen.size:
            metrics[f"{label}/mean"] = float(chosen.mean())
            metrics[f"{label}/std"] = float(chosen.std())
    waited = columns.get("plaudit/waited_s")
    if waited is not None:
        metrics["plaudit/waited_s/max"] = float(np.nanmax(waited))
    return metrics


def groups(rows: Mapping[str, dict[str, float]]) -> dict[str, list[dict[str, float]]]:
    """The rollouts of each prompt: the key of a rollout begins with the `uid` of its prompt."""
    found: dict[str, list[dict[str, float]]] = {}
    for key, row in rows.items():
        found.setdefault(key.split("_")[0], []).append(row)
    return found


def valid_scores(members: list[dict[str, float]]) -> list[float]:
    """The totals of the rollouts that could be scored."""
    return [row["score"] for row in members if not row.get("plaudit/invalid") and "score" in row]


def group_summary(rows: Mapping[str, dict[str, float]]) -> dict[str, float]:
    """The spread inside groups, and the share of those whose totals are all equal, by the words of `report.statistics`."""
    several = [scores for scores in map(valid_scores, groups(rows).values()) if len(scores) > 1]
    if not several:
        return {}
    return {
        "plaudit/groups/std/mean": float(np.mean([np.std(scores) for scores in several])),
        "plaudit/groups/zero_variance_share": sum(min(scores) == max(scores) for scores in several)
        / len(several),
    }


def write_group_table(rows: Mapping[str, dict[str, float]], step: int) -> None:
    """Writes a table of the step's groups to the W&B run of verl, where `trainer.logger` has one."""
    by_group = list(groups(rows).items())[:MAX_GROUPS]
    if not by_group:
        return
    components = [
        name for name in by_group[0][1][0] if name.startswith("plaudit/") and name not in NOT_COMPONENTS
    ]
    columns = [
        "group",
        "size",
        "mean",
        "std",
        "min",
        "max",
        "invalid",
        *(f"components/{name[8:]}" for name in components),
    ]
    table: list[list[Any]] = []
    for uid, members in by_group:
        scores = valid_scores(members)
        spread = [np.mean(scores), np.std(scores), min(scores), max(scores)] if scores else [None] * 4
        valid = [row for row in members if not row.get("plaudit/invalid")]
        means = [np.mean([row[name] for row in valid]) if valid else None for name in components]
        numbers = [
            None if number is None else float(number)
            for number in (*spread, len(members) - len(valid), *means)
        ]
        table.append([uid, len(members), *numbers])
    try:
        write_active_wandb_table("plaudit/groups/table", columns, table, step)
    except Exception:
        # A tracker that is away is no reason to end a training.
        log.exception("plaudit: the table of groups could not be written to W&B")


def filters(refill: Any, sampler: type) -> dict[str, Any]:
    """What verl gives to its own sampler and not to others: DAPO's filter of groups, and the refill of failed ones.

    Without this, choosing a sampler for its metrics would silently switch `algorithm.filter_groups` off.
    """
    trainer = getattr(refill, "__self__", None)
    if trainer is None or not hasattr(trainer, "_resolve_filter_groups_metric"):
        return {}
    config = trainer.config
    chosen = config.algorithm.get("filter_groups") or {}
    metric = trainer._resolve_filter_groups_metric()
    refills = bool(config.trainer.v1.sampler.get("sync_refill_failed_groups", False))
    size = config.data.train_batch_size
    settings = {
        "filter_groups_metric": metric,
        "sync_refill_failed_groups": refills,
        "train_batch_size": size,
        "gen_batch_size": 1 if metric is not None or refills else (config.data.get("gen_batch_size") or size),
        "max_inflight_gen_batches": chosen.get("max_inflight_gen_batches", 1) if metric is not None else 1,
    }
    known = inspect.signature(ReplayBuffer.__init__).parameters
    return {name: value for name, value in settings.items() if name in known}
