"""`Report`: the results of a scored batch, as columns, as one `Result` a rollout, as JSON rows, and as statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plaudit import _plaudit
from plaudit.result import Result

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Report:
    """The results of a batch, in the order of its rollouts.

    `totals` holds the rewards. Iterating yields one `Result` a rollout, `len()` is the number of rollouts. Columns are
    made when they are first read. A report can be pickled and copied.

    Example:
        >>> report = plaudit.Engine("quickstart").score(prompts, responses, references)
        >>> report.totals[report.valid].mean()
        >>> [result.reason for result in report if result.total is None]
    """

    def __init__(self, scores: _plaudit.Report) -> None:
        self._scores = scores

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __getstate__(self) -> dict[str, Any]:
        # All columns, which then stand before the extension's object that makes them.
        return {
            **{
                name: getattr(self, name)
                for name, made in vars(Report).items()
                if isinstance(made, cached_property)
            },
            "components": dict(self.components),
            "component_outcomes": dict(self.component_outcomes),
        }

    def __repr__(self) -> str:
        counts = {word: self.outcomes.count(word) for word in ("scored", "floored", "skipped", "invalid")}
        text = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        noun = "rollout" if len(self) == 1 else "rollouts"
        return f"<plaudit.Report of {len(self)} {noun}: {text or 'none'}>"

    @cached_property
    def seconds(self) -> float:
        """How long the engine worked on the batch."""
        return self._scores.seconds

    @cached_property
    def totals(self) -> npt.NDArray[np.float64]:
        """The rewards: one number a rollout, NaN where the rollout has no valid total."""
        return self._scores.totals()

    @cached_property
    def totals_or_invalid_value(self) -> npt.NDArray[np.float32]:
        """The totals for a trainer that takes no NaN: the recipe's `invalid_value` where a rollout has none.

        A large negative number, such as -999, then takes part in every mean. NaN where the recipe has no such value.
        """
        return self._scores.totals_or_invalid_value()

    @cached_property
    def totals_or_group_mean(self) -> npt.NDArray[np.float64]:
        """The totals for a trainer that takes no NaN: the mean of the group where a rollout has none.

        Its advantage is then 0, and that of its siblings what it would be without it. NaN where no member of a group has a
        total.
        """
        return self._scores.totals_or_group_mean()

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Whether a rollout has a total of its own: True where it is `scored` or `floored`."""
        import numpy as np

        return ~np.isnan(self.totals)

    @cached_property
    def outcomes(self) -> list[str]:
        """`scored`, `floored`, `skipped` or `invalid`, one a rollout."""
        return self._scores.outcomes()

    @cached_property
    def correct(self) -> list[bool | None]:
        """Whether each answer is right, None where no component says so.

        A filter of groups that are all right or all wrong must use this: a total that was shaped differs within them.
        """
        return self._scores.correct()

    @cached_property
    def turn_rewards(self) -> list[list[float | None] | None]:
        """The total of each rollout spread over the turns of the model, None for a turn that gets nothing of its own.

        They add up to the total. None for a rollout without a total, and where the recipe has no `turn_rewards`.
        """
        return self._scores.turn_rewards()

    @cached_property
    def components(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """The values of each component by its name, NaN where it gave none."""
        return _Lazy(self._scores.columns(), self._scores.component)

    @cached_property
    def component_outcomes(self) -> Mapping[str, list[str]]:
        """The outcomes of each component by its name: `scored`, `floored`, `skipped` or `invalid`, one a rollout."""
        return _Lazy(self._scores.columns(), self._scores.component_outcomes)

    @cached_property
    def info(self) -> Mapping[str, list[Any]]:
        """The evidence, one list a fact, as `component.fact`, and as `fact` alone where only one component has it.

        None stands where a rollout has no such fact. What a comparison finds (`comparisons`, `wins`, `losses`, `ties`, and
        against the reference `win`, `win_and`, `comparison_score`) is there also where nothing could be compared.
        """
        return flat(self._scores.info())

    @cached_property
    def reasons(self) -> list[dict[str, Any] | None]:
        """Why a rollout has no plain number: `code`, `component` and `message`. None where it has one."""
        return self._scores.reasons()

    @cached_property
    def groups(self) -> list[list[int]]:
        """The places of the rollouts that were scored together, one list a group."""
        return self._scores.groups()

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """Counts, means, quantiles and more over all rollouts and groups, with the same keys in every batch.

        Where there are no values, their mean and the like are NaN.
        """
        return statistics(self._scores.statistics())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The results as `plaudit score` writes them, one dict a rollout."""
        return [json.loads(self._scores.row(at)) for at in range(len(self))]

    @cached_property
    def _names(self) -> list[tuple[str, str | None]]:
        """The id of each rollout, and the name of its group."""
        return self._scores.names()

    @cached_property
    def _results(self) -> list[Result]:
        group_of = {at: members for members in self.groups for at in members}
        results = []
        for at in range(len(self)):
            fields, size, mean, totals = self._scores.result(at, group_of.get(at, [at]))
            total, outcome, reason, components, info, correct, turn_rewards = fields
            grouped = {"group_size": size, "siblings_mean": mean, "group_totals": totals}
            results.append(
                Result(total, outcome, reason, components, flat(info), correct, turn_rewards, **grouped)
            )
        return results

    def to_arrow(self) -> Any:
        """Makes an Arrow table of the results: ids, groups, totals, outcomes, `correct`, reasons and components. Needs pyarrow.

        Returns:
            A `pyarrow.Table` with one row a rollout; null where there is no number.

        Example:
            >>> report.to_arrow().column("total")
        """
        import numpy as np
        import pyarrow as pa

        reasons = self.reasons
        columns: dict[str, Any] = {
            "id": pa.array([name for name, _ in self._names], pa.string()),
            "group": pa.array([group for _, group in self._names], pa.string()),
            "total": pa.array(self.totals, mask=np.isnan(self.totals)),
            "outcome": pa.array(self.outcomes, pa.string()),
            "correct": pa.array(self.correct, pa.bool_()),
        }
        for part in ("code", "component", "message"):
            words = [None if reason is None else reason[part] for reason in reasons]
            columns[f"reason_{part}"] = pa.array(words, pa.string())
        for name, values in self.components.items():
            columns[f"{name}.value"] = pa.array(values, mask=np.isnan(values))
            columns[f"{name}.outcome"] = pa.array(self.component_outcomes[name], pa.string())
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """Makes a data frame of the results, with the columns of `to_arrow`. Needs pandas and pyarrow.

        Returns:
            A `pandas.DataFrame` with one row a rollout.

        Example:
            >>> report.to_pandas().groupby("outcome").size()
        """
        return self.to_arrow().to_pandas()


_QUANTILES = ("p01", "p05", "p25", "p50", "p75", "p95", "p99")


def statistics(text: str) -> dict[str, Any]:
    """Statistics from their JSON, with the same keys whether or not there were values."""
    return _with_all_keys(json.loads(text))


def _with_all_keys(item: Any) -> Any:
    if isinstance(item, list):
        return [_with_all_keys(each) for each in item]
    if not isinstance(item, dict):
        return item
    if item == {"count": 0}:
        summary = dict.fromkeys(("mean", "std", "min", "max"), math.nan)
        return {**item, **summary, "quantiles": dict.fromkeys(_QUANTILES, math.nan), "histogram": None}
    return {key: _with_all_keys(value) for key, value in item.items()}


def flat(info: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Evidence by `component.fact`, and by `fact` where only one component has it."""
    found: dict[str, Any] = {f"{component}.{fact}": value for (component, fact), value in info.items()}
    facts = [fact for _, fact in info]
    for (_, fact), value in info.items():
        if facts.count(fact) == 1:
            found[fact] = value
    return found


class _Lazy(Mapping[str, Any]):
    """A mapping whose values are made when they are first read."""

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
