"""Where does plaudit meet Ray? Data sets larger than a machine, and one engine that many processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.ray.actor import Answer, Rollout, SharedEngine, Terms
    from plaudit.ray.connection import Connection
    from plaudit.ray.dataset import score_dataset

__all__ = ["Answer", "Connection", "Rollout", "SharedEngine", "Terms", "score_dataset"]

_HOMES = {
    "Answer": "actor",
    "Connection": "connection",
    "Rollout": "actor",
    "SharedEngine": "actor",
    "Terms": "actor",
    "score_dataset": "dataset",
}


def __getattr__(name: str) -> Any:
    """Loads what is asked for, so that the shared actor does not load Ray Data, and the other way round."""
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
