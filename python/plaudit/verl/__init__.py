"""Adapters for verl: reward managers, sampler and agent loop, each loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.verl.agent import PlauditAgentLoop
    from plaudit.verl.batch import (
        DGRRewardManager,
        PlauditBatchRewardManager,
        RMGalleryRewardManager,
        register,
    )
    from plaudit.verl.manager import PlauditRewardManager, passthrough
    from plaudit.verl.sampler import PlauditSampler, PlauditSamplerAsync

__all__ = [
    "DGRRewardManager",
    "PlauditAgentLoop",
    "PlauditBatchRewardManager",
    "PlauditRewardManager",
    "PlauditSampler",
    "PlauditSamplerAsync",
    "RMGalleryRewardManager",
    "passthrough",
    "register",
]

_MODULES = {
    "DGRRewardManager": "batch",
    "PlauditAgentLoop": "agent",
    "PlauditBatchRewardManager": "batch",
    "PlauditRewardManager": "manager",
    "PlauditSampler": "sampler",
    "PlauditSamplerAsync": "sampler",
    "RMGalleryRewardManager": "batch",
    "passthrough": "manager",
    "register": "batch",
}


def __getattr__(name: str) -> Any:
    """verl's versions have different parts of what these classes build on, so each is loaded by itself."""
    import importlib

    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
