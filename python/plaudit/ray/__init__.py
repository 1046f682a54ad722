"""Scoring on Ray: data sets larger than a machine (`score_dataset`), and one engine that many processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.ray.dataset import score_dataset

__all__ = ["score_dataset"]


def __getattr__(name: str) -> Any:
    """Loads `score_dataset` when it is first used, because the shared engine needs no Ray Data."""
    if name != "score_dataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plaudit.ray.dataset import score_dataset

    return score_dataset
