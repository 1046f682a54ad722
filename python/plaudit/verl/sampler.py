"""Samplers for verl's V1 trainer that add `plaudit/*` metrics: verl logs no extra reward columns in training by itself."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

# Averaged over valid rollouts alone; the rest over all, or over those that were compared with a reference.
FLAGS = ("plaudit/invalid", "plaudit/partial", "plaudit/group_size", "plaudit/waited_s")
COMPARED = ("plaudit/win", "plaudit/win_and", "plaudit/comparison_score")


class _Metrics:
    """Adds `plaudit/*` to the metrics of every training batch that is sampled."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs = {**filters(kwargs.get("refill_fn"), type(self)), **kwargs}
        super().__init__(*args, **kwargs)

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        batch, metrics = super().sample(global_steps, partition_id, batch_size)  # type: ignore[misc]
        if partition_id != "val" and batch.keys:
            metrics = {**metrics, **summary(read(batch))}
        return batch, metrics


class PlauditSampler(_Metrics, ReplayBuffer):
    """For `trainer.v1.trainer_mode=sync`."""


class PlauditSamplerAsync(_Metrics, ReplayBufferAsync):
    """For `trainer.v1.trainer_mode=colocate_async` and `separate_async`."""


def read(batch: Any) -> list[dict[str, float]]:
    """The extra columns of every rollout of the batch."""
    data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    fields = data["extra_fields"]
    # An array, or a list of TransferQueue's own.
    fields = fields.tolist() if hasattr(fields, "tolist") else list(fields)
    infos = [field.get("reward_extra_info") if isinstance(field, dict) else None for field in fields]
    return [info for info in infos if info]


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
