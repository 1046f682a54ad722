"""What comes back? One row a rollout, as columns: totals, components, evidence, reasons, and the statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plaudit._plaudit import Scores

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Report:
    """What the engine says of a batch, in the order of the rollouts. Columns are made when they are asked for."""

    def __init__(self, scores: Scores | Kept) -> None:
        self._scores = scores

    def __len__(self) -> int:
        return len(self._scores)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self._scores if isinstance(self._scores, Kept) else Kept.of(self._scores)
        return Report, (kept,)

    def __repr__(self) -> str:
        counts = {word: self.outcomes.count(word) for word in ("scored", "floored", "skipped", "invalid")}
        said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"<plaudit.Report of {len(self)} rollouts: {said or 'none'}>"

    @property
    def seconds(self) -> float:
        """How long the engine worked on the batch."""
        return self._scores.seconds

    @cached_property
    def totals(self) -> npt.NDArray[np.float32]:
        """One number a rollout. Invalid ones hold the recipe's `invalid_value`, or NaN where it has none."""
        return self._scores.totals()

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """The totals in full, NaN where a rollout has none."""
        return self._scores.values()

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Whether a rollout has a total of its own: True where it is `scored` or `floored`."""
        import numpy as np

        return ~np.isnan(self.values)

    @cached_property
    def outcomes(self) -> list[str]:
        """`scored`, `floored`, `skipped` or `invalid`."""
        return self._scores.outcomes()

    @cached_property
    def components(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """The values of each component, NaN where it gave none."""
        return _Lazy(self._scores.columns(), self._scores.component)

    @cached_property
    def component_outcomes(self) -> Mapping[str, list[str]]:
        """The outcome of each component."""
        return _Lazy(self._scores.columns(), self._scores.component_outcomes)

    @cached_property
    def info(self) -> Mapping[str, list[Any]]:
        """The evidence, one list a fact, as `component.fact`, and as `fact` alone where only one component has it.

        None stands where a rollout has no such fact. What a comparison tells (`comparisons`, `wins`, `losses`, `ties`, and against
        the reference `win`, `win_and`, `comparison_score`) is there also where nothing could be compared.
        """
        return flat(self._scores.info())

    @cached_property
    def reasons(self) -> list[dict[str, Any] | None]:
        """Why a rollout has no plain number: code, component and message."""
        return self._scores.reasons()

    @cached_property
    def groups(self) -> list[list[int]]:
        """The places of the rollouts that were scored together."""
        return self._scores.groups()

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """Over all rollouts and groups. Where there are no values, their mean and the like are NaN."""
        return statistics(self._scores.statistics())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The results as lines of JSON have them."""
        return [json.loads(self._scores.row(at)) for at in range(len(self))]

    def to_arrow(self) -> Any:
        """The results as a table of Arrow's: names, totals, outcomes, reasons and components. Needs pyarrow."""
        import numpy as np
        import pyarrow as pa

        names = self._scores.names()
        reasons = self.reasons
        columns: dict[str, Any] = {
            "id": pa.array([name for name, _ in names], pa.string()),
            "group": pa.array([group for _, group in names], pa.string()),
            "total": pa.array(self.values, mask=np.isnan(self.values)),
            "outcome": pa.array(self.outcomes, pa.string()),
        }
        for part in ("code", "component", "message"):
            words = [None if reason is None else reason[part] for reason in reasons]
            columns[f"reason_{part}"] = pa.array(words, pa.string())
        for name, values in self.components.items():
            columns[f"{name}.value"] = pa.array(values, mask=np.isnan(values))
            columns[f"{name}.outcome"] = pa.array(self.component_outcomes[name], pa.string())
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """The results as a data frame. Needs pandas and pyarrow."""
        return self.to_arrow().to_pandas()


# What is told of values, beside their number; the same where there are none.
_NONE: dict[str, Any] = {"mean": math.nan, "std": math.nan, "min": math.nan, "max": math.nan}
_QUANTILES = ("p01", "p05", "p25", "p50", "p75", "p95", "p99")


def statistics(text: str) -> dict[str, Any]:
    """Statistics from their JSON, with the same keys whether or not there were values."""
    return _filled(json.loads(text))


def _filled(told: Any) -> Any:
    if isinstance(told, list):
        return [_filled(each) for each in told]
    if not isinstance(told, dict):
        return told
    if told == {"count": 0}:
        quantiles = dict.fromkeys(_QUANTILES, math.nan)
        return {"count": 0, **_NONE, "quantiles": quantiles, "histogram": None}
    return {key: _filled(value) for key, value in told.items()}


@dataclass(frozen=True)
class Kept:
    """The columns of a report without the engine's memory behind them, so that it can be pickled."""

    length: int
    seconds: float
    columns_: list[str]
    arrays: dict[str, Any]
    lists: dict[str, Any]
    components: dict[str, tuple[Any, list[str]]]
    lines: list[str]
    told: str

    @classmethod
    def of(cls, scores: Scores) -> Kept:
        names = scores.columns()
        return cls(
            len(scores),
            scores.seconds,
            names,
            {"totals": scores.totals(), "values": scores.values()},
            {name: getattr(scores, name)() for name in ("outcomes", "info", "reasons", "groups", "names")},
            {name: (scores.component(name), scores.component_outcomes(name)) for name in names},
            [scores.row(at) for at in range(len(scores))],
            scores.statistics(),
        )

    def __len__(self) -> int:
        return self.length

    def totals(self) -> Any:
        return self.arrays["totals"]

    def values(self) -> Any:
        return self.arrays["values"]

    def outcomes(self) -> list[str]:
        return self.lists["outcomes"]

    def columns(self) -> list[str]:
        return self.columns_

    def component(self, name: str) -> Any:
        return self.components[name][0]

    def component_outcomes(self, name: str) -> list[str]:
        return self.components[name][1]

    def info(self) -> dict[tuple[str, str], list[Any]]:
        return self.lists["info"]

    def reasons(self) -> list[dict[str, Any] | None]:
        return self.lists["reasons"]

    def groups(self) -> list[list[int]]:
        return self.lists["groups"]

    def names(self) -> list[tuple[str, str | None]]:
        return self.lists["names"]

    def statistics(self) -> str:
        return self.told

    def row(self, at: int) -> str:
        return self.lines[at]


def flat(info: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Evidence by `component.fact`, and by `fact` where that is said by one component only."""
    found: dict[str, list[Any]] = {
        f"{component}.{fact}": values for (component, fact), values in info.items()
    }
    facts = [fact for _, fact in info]
    for (_, fact), values in info.items():
        if facts.count(fact) == 1:
            found[fact] = values
    return found


class _Lazy(Mapping[str, Any]):
    """A mapping whose values are made when they are first asked for."""

    def __init__(self, names: list[str], make: Any) -> None:
        self._names, self._make, self._made = names, make, {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
