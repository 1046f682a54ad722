"""Writes the statistics of a report to experiment trackers: W&B, MLflow, TensorBoard and trackio.

A metric is named by its path in `report.statistics`: `plaudit/total/mean`, `plaudit/groups/zero_variance_share`,
`plaudit/components/format/values/std`. Without a choice those of `SHORT` are written, with `only="*"` all. What has no number
(NaN, None) is left out, never 0. Each library is imported when it is used.
"""

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plaudit._plaudit import ArgumentError
from plaudit.report import Report

__all__ = ["SHORT", "group_table", "log_report", "metrics"]

SHORT = (
    "rollouts",
    "total/mean",
    "total/std",
    "components/*/values/mean",
    "components/*/judging/win_rate/share",
    "components/*/judging/first/share",
    "components/*/judging/ties/share",
    "components/*/judging/items/*met_share",
    "outcomes/*_share",
    "outcomes/reasons/invalid/*",
    "correctness/right_share",
    "groups/std/mean",
    "groups/zero_variance_share",
    "characters/mean",
    "tokens/mean",
    "length_correlation",
    "repetition/rate/mean",
)
"""The metrics that a training is watched by: what is written where nothing else is said."""

_OUTCOMES = ("scored", "floored", "skipped", "invalid")


def metrics(
    report: Report | Mapping[str, Any], *, prefix: str = "plaudit", only: str | Iterable[str] = SHORT
) -> dict[str, float]:
    """The statistics of a report as flat names and finite numbers.

    The names are the paths of the statistics, with slashes; histograms are left out. Beside them stand the shares of the
    outcomes (`outcomes/invalid_share` and so on) and of right answers (`correctness/right_share`).

    Args:
        report: A report, or statistics: `report.statistics`, or those of a `Join`.
        prefix: Stands before every name, with a slash; nothing where it is empty.
        only: Patterns of the names that are wanted, without the prefix, such as `["total/*", "groups/zero_variance*"]`; `"*"`
            for all. A star stands for slashes too.

    Returns:
        The numbers by name, in the order of the statistics.

    Example:
        >>> plaudit.log.metrics(report)["plaudit/total/mean"]
    """
    statistics = report.statistics if isinstance(report, Report) else report
    patterns = [re.compile(fnmatch.translate(one)) for one in ([only] if isinstance(only, str) else only)]
    lead = f"{prefix}/" if prefix else ""
    return {
        lead + name: value
        for name, value in (*_leaves(statistics, ""), *_shares(statistics))
        if math.isfinite(value) and any(pattern.fullmatch(name) for pattern in patterns)
    }


def group_table(
    report: Report,
    prompts: Sequence[Any] | None = None,
    responses: Sequence[Any] | None = None,
    *,
    most: int = 64,
) -> tuple[list[str], list[list[Any]]]:
    """The groups of a report as a table: size, totals, outcomes and the mean of each component.

    Args:
        report: The report.
        prompts, responses: Those that were scored. With them the table has the prompt, the best and the worst response of
            each group.
        most: How many groups the table has at most; the first ones.

    Returns:
        The names of the columns, and one row a group; None where there is no number.

    Example:
        >>> columns, rows = plaudit.log.group_table(report, prompts, responses)
    """
    for name, given in (("prompts", prompts), ("responses", responses)):
        if given is not None and len(given) != len(report):
            raise ArgumentError(f"{name} has {len(given)} entries, and the report {len(report)} rollouts")
    columns = ["group", "size", "mean", "std", "min", "max", *_OUTCOMES, "right"]
    columns += [f"components/{name}" for name in report.components]
    columns += (["prompt"] if prompts is not None else []) + (
        ["best", "worst"] if responses is not None else []
    )
    rows: list[list[Any]] = []
    for members in report.groups[:most]:
        totals = {at: float(report.totals[at]) for at in members if report.valid[at]}
        outcomes = [report.outcomes[at] for at in members]
        right = [report.correct[at] for at in members if report.correct[at] is not None]
        row: list[Any] = [report._names[members[0]][1], len(members), *_spread(list(totals.values()))]
        row += [outcomes.count(word) for word in _OUTCOMES]
        row.append(sum(map(bool, right)) if right else None)
        for values in report.components.values():
            row.append(_mean([float(values[at]) for at in members if not math.isnan(values[at])]))
        if prompts is not None:
            row.append(_text(prompts[members[0]]))
        if responses is not None:
            ends = (
                (max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)) if totals else ()
            )
            row += [_text(responses[at]) for at in ends] or [None, None]
        rows.append(row)
    return columns, rows


def log_report(
    report: Report,
    step: int | None = None,
    *,
    to: Any,
    prefix: str = "plaudit",
    only: str | Iterable[str] = SHORT,
    prompts: Sequence[Any] | None = None,
    responses: Sequence[Any] | None = None,
    groups: int = 64,
) -> dict[str, float]:
    """Writes the statistics of a report to trackers, and to W&B a table of its groups as well.

    Args:
        report: The report.
        step: The step of the training.
        to: One tracker or several. `"wandb"`, `"mlflow"` and `"trackio"` are the active run of that library;
            `"tensorboard:FOLDER"` writes event files; a W&B, MLflow or trackio run and a `SummaryWriter` are taken as they are.
        prefix, only: As for `metrics`.
        prompts, responses: As for `group_table`.
        groups: How many groups the table has at most; 0 for no table.

    Returns:
        The metrics that were written.

    Raises:
        ArgumentError: A tracker that is not known, or no active run.

    Example:
        >>> plaudit.log.log_report(report, step=12, to=["wandb", "tensorboard:runs/math"])
    """
    trackers = [_tracker(one) for one in (to if isinstance(to, (list, tuple)) else [to])]
    found = metrics(report, prefix=prefix, only=only)
    for tracker in trackers:
        tracker.write(found, step)
    if groups and any(isinstance(tracker, _Wandb) for tracker in trackers):
        columns, rows = group_table(report, prompts, responses, most=groups)
        for tracker in trackers:
            if isinstance(tracker, _Wandb):
                tracker.write_table(
                    f"{prefix}/groups/table" if prefix else "groups/table", columns, rows, step
                )
    return found


def _leaves(item: Mapping[str, Any], path: str) -> Iterator[tuple[str, float]]:
    for key, value in item.items():
        if isinstance(value, Mapping):
            # The bars of a histogram are no figure of their own.
            if key != "histogram":
                yield from _leaves(value, f"{path}{key}/")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield path + key, float(value)


def _shares(statistics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    if rollouts := statistics.get("rollouts"):
        for word in _OUTCOMES:
            yield f"outcomes/{word}_share", statistics["outcomes"][word] / rollouts
    right, wrong = (statistics.get("correctness", {}).get(word, 0) for word in ("right", "wrong"))
    if right + wrong:
        yield "correctness/right_share", right / (right + wrong)


def _spread(values: Sequence[float]) -> list[float | None]:
    """Mean, standard deviation, least and greatest; the deviation is that of the statistics, divided by the number."""
    mean = _mean(values)
    if mean is None:
        return [None] * 4
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [mean, std, min(values), max(values)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)


def _tracker(to: Any) -> _Wandb | _Mlflow | _TensorBoard | _Trackio:
    if isinstance(to, str):
        name, _, folder = to.partition(":")
        if name == "tensorboard" and folder:
            return _TensorBoard(_event_files(folder))
        if folder or name not in ("wandb", "mlflow", "trackio"):
            raise ArgumentError(
                f"to={to!r} is not a tracker: 'wandb', 'mlflow', 'trackio', 'tensorboard:FOLDER', a run or a SummaryWriter"
            )
        return {"wandb": _Wandb, "mlflow": _Mlflow, "trackio": _Trackio}[name]()
    library = type(to).__module__.split(".")[0]
    if library == "wandb":
        return _Wandb(to)
    if library == "mlflow" and hasattr(to, "info"):
        return _Mlflow(to)
    if library == "trackio":
        return _Trackio(to)
    if hasattr(to, "add_scalar"):
        return _TensorBoard(to)
    raise ArgumentError(
        f"to= takes a W&B, MLflow or trackio run, a SummaryWriter or a name, not a {type(to).__name__}"
    )


def write_active_wandb_table(name: str, columns: list[str], rows: list[list[Any]], step: int | None) -> bool:
    """Writes a table to the W&B run of this process, where a trainer has started one; says whether it did."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is not None:
        _Wandb(run).write_table(name, columns, rows, step)
    return run is not None


class _Wandb:
    """A run of Weights & Biases, by default the active one."""

    def __init__(self, run: Any = None) -> None:
        import wandb

        self._run = run if run is not None else wandb.run
        if self._run is None:
            raise ArgumentError("there is no active W&B run: call wandb.init() first")

    def write(self, numbers: Mapping[str, float], step: int | None) -> None:
        self._run.log(dict(numbers), step=step)

    def write_table(self, name: str, columns: list[str], rows: list[list[Any]], step: int | None) -> None:
        import wandb

        # Without a step it belongs to what was logged last or comes next: a table must not advance the step of the run.
        self._run.log(
            {name: wandb.Table(columns=columns, data=rows)},
            step=step,
            commit=None if step is not None else False,
        )


class _Mlflow:
    """A run of MLflow, by default the active one."""

    def __init__(self, run: Any = None) -> None:
        import mlflow

        run = run if run is not None else mlflow.active_run()
        if run is None:
            raise ArgumentError("there is no active MLflow run: call mlflow.start_run() first")
        self._id = run.info.run_id

    def write(self, numbers: Mapping[str, float], step: int | None) -> None:
        import mlflow

        mlflow.log_metrics(dict(numbers), step=step, run_id=self._id)


class _Trackio:
    """A run of trackio, by default the active one."""

    def __init__(self, run: Any = None) -> None:
        if run is None:
            from trackio import context_vars

            run = context_vars.current_run.get()
        if run is None:
            raise ArgumentError("there is no active trackio run: call trackio.init() first")
        self._run = run

    def write(self, numbers: Mapping[str, float], step: int | None) -> None:
        self._run.log(dict(numbers), step=step)


class _TensorBoard:
    """A writer of TensorBoard's event files: torch's, tensorboardX's, or `_EventFiles`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, numbers: Mapping[str, float], step: int | None) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()


class _EventFiles:
    """Event files of the package `tensorboard` itself, for processes that have no torch."""

    def __init__(self, folder: str) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._files = EventFileWriter(folder)

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        self._files.add_event(Event(wall_time=time.time(), step=step or 0, summary=summary))

    def flush(self) -> None:
        self._files.flush()


_writers: dict[tuple[int, str], Any] = {}
"""One writer a folder and process: each makes a file of its own."""


def _event_files(folder: str) -> Any:
    key = (os.getpid(), os.path.abspath(folder))
    if key not in _writers:
        try:
            _writers[key] = _EventFiles(folder)
        except ImportError:
            from tensorboardX import SummaryWriter

            _writers[key] = SummaryWriter(folder)
    return _writers[key]
