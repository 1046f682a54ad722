"""Metrics, warnings and the abort limit of a TRL reward: what is logged of the results of each call."""

from __future__ import annotations

import collections
import logging
import math
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from plaudit.abort import NothingScored, StepCounter, Tally
from plaudit.log import metrics
from plaudit.result import Result

from .call import Call
from .ranks import world

LOG_INTERVAL_S = 60.0
"""Why completions have no reward is logged once in so many seconds."""

ENOUGH_GROUPS = 2
"""So many groups in a row show that nothing can be scored, where the reason cannot heal."""

_AGAINST_REFERENCE = ("win", "win_and", "comparison_score")
"""The evidence of a comparison with the reference."""

_LOGGED_ANYWAY = re.compile(r"components/[^/]*/values/mean|outcomes/invalid_share|groups/zero_variance_share")
"""The statistics that every reward logs, as `NAME/COMPONENT`, `NAME/invalid` and `NAME/zero_variance`."""

_log = logging.getLogger("plaudit.trl")


class Monitor:
    """Observes the results of one reward, call by call."""

    def __init__(
        self,
        name: str,
        components: Sequence[str],
        *,
        compares: bool,
        joins: bool,
        abort: StepCounter,
        statistics: Sequence[str] = (),
    ) -> None:
        """`joins`: whether something brings groups together that the border between two ranks cuts.

        `statistics`: patterns of the statistics that are logged beside the usual metrics.
        """
        self._name = name
        self._components = components
        self._compares = compares
        self._joins = joins
        self._abort = abort
        self._statistics = tuple(statistics)
        self._reset()

    def _reset(self) -> None:
        self._warned_of_cut = False
        self._logged_at = -math.inf
        self._unscored_groups = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def observe(self, call: Call, results: Mapping[int, Result], own: Sequence[Result]) -> None:
        """Logs the results that were made here, and those of this rank's own rows."""
        groups: dict[int, list[Result]] = {}
        for group, result in zip(call.groups_of(results), results.values(), strict=True):
            groups.setdefault(group, []).append(result)
        cut = sum(any(result.partial for result in members) for members in groups.values())
        if cut and self._compares and not self._warned_of_cut:
            self._warned_of_cut = True
            warnings.warn(self._advice(cut, call), RuntimeWarning, stacklevel=2)
        self._log_invalid(list(results.values()))
        if call.log_metric is not None:
            found = {**self._means(own), **_group_metrics(list(groups.values()), cut)}
            for name, value in {**found, **self._chosen(call)}.items():
                call.log_metric(f"{self._name}/{name}", value)
        if call.log_extra is not None:
            call.log_extra(f"{self._name}/outcome", [result.outcome for result in own])
            call.log_extra(f"{self._name}/reason", [_code(result) or "" for result in own])
            call.log_extra(f"{self._name}/correct", [result.correct for result in own])
            for component in self._components:
                column = [result.components.get(component) for result in own]
                call.log_extra(f"{self._name}/{component}", column)

    def check_abort(self, call: Call, step: Tally) -> None:
        """Ends the training where nothing can be scored. `step` is what was scored on all ranks."""
        # A trainer that calls with one group at a time may begin with a row that is bad.
        self._unscored_groups = 0 if step[0] else self._unscored_groups + len(set(call.groups())) * world()[1]
        ending = self._abort.observe(step, is_little=self._unscored_groups < ENOUGH_GROUPS)
        if ending is not None:
            rename, switch = 'Reward(columns={"COLUMN": "reference"})', 'Reward(abort_after="never")'
            why = ending.advise(call.columns, rename, switch)
            raise NothingScored(f"the training has no rewards from `{self._name}`: {why}")

    def _log_invalid(self, results: Sequence[Result]) -> None:
        """Logs why completions have no reward, since a trainer goes on without them; at most once a minute."""
        invalid = [result for result in results if result.outcome == "invalid"]
        now = time.monotonic()
        if not invalid or now - self._logged_at < LOG_INTERVAL_S:
            return
        self._logged_at = now
        counts = collections.Counter(_reason(result) for result in invalid)
        most = "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(3))
        _log.error(
            "plaudit: %d of %d completions have no reward from `%s`: %s",
            len(invalid),
            len(results),
            self._name,
            most,
        )

    def _means(self, own: Sequence[Result]) -> dict[str, float]:
        """The means over this rank's own rows that have a value; TRL takes the mean over the ranks."""
        if not own:
            return {}
        metrics = {"invalid": sum(result.outcome == "invalid" for result in own) / len(own)}
        columns = {name: [result.components.get(name) for result in own] for name in self._components}
        columns |= {name: [result.info.get(name) for result in own] for name in _AGAINST_REFERENCE}
        columns["correct"] = [result.correct for result in own]
        for name, column in columns.items():
            values = [float(value) for value in column if value is not None]
            if values:
                metrics[name] = sum(values) / len(values)
            if name in self._components:
                metrics[f"{name}_missing"] = 1.0 - len(values) / len(own)
        return metrics

    def _chosen(self, call: Call) -> dict[str, float]:
        """The statistics of the call that were asked for, less those that are logged in any case."""
        if not self._statistics or call.statistics is None:
            return {}
        found = metrics(call.statistics, prefix="", only=self._statistics)
        return {name: value for name, value in found.items() if not _LOGGED_ANYWAY.fullmatch(name)}

    def _advice(self, cut: int, call: Call) -> str:
        """What to do about groups of which only a part was here."""
        text = f"the reward `{self._name}` compares the completions of a group, but of {cut} groups only a part was here"
        if world()[1] > 1 and not self._joins:
            return f"{text}: the border between two ranks cuts them. Give join='ranks' to have them scored whole."
        return f"{text}, fewer than {call.size}. What was here was scored."


def _group_metrics(groups: Sequence[Sequence[Result]], cut: int) -> dict[str, float]:
    """The metrics of the groups that were scored here."""
    if not groups:
        return {}
    metrics = {"cut_groups": cut / len(groups)}
    totals = [[result.total for result in members if result.total is not None] for members in groups]
    if several := [values for values in totals if len(values) > 1]:
        metrics["zero_variance"] = sum(min(values) == max(values) for values in several) / len(several)
    known = [[result.correct for result in members] for members in groups]
    if any(correct is not None for members in known for correct in members):
        metrics["all_right"] = sum(all(members) for members in known) / len(known)
        metrics["all_wrong"] = sum(all(correct is False for correct in members) for members in known) / len(
            known
        )
    return metrics


def _code(result: Result) -> str | None:
    return None if result.reason is None else result.reason["code"]


def _reason(result: Result) -> str:
    return f"{_code(result)} ({(result.reason or {}).get('message')})"
