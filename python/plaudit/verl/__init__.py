"""What does verl load? The reward manager, the sampler and the agent loop, each only when it is asked for."""

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

_HOMES = {
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

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
