"""The real trackers, offline: what plaudit.log writes is read back from their files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plaudit
import plaudit.log
import pytest

ROOT = Path(__file__).parents[3]
PROMPTS = ["6 * 7?"] * 4
RESPONSES = [f"<think>So.</think><answer>{answer}</answer>" for answer in (42, 42, 41, 40)]
MEAN = "plaudit/total/mean"


@pytest.fixture(scope="module")
def reports() -> list[plaudit.Report]:
    """Two steps of a training: the answers get better."""
    engine = plaudit.Engine("quickstart")
    right = [RESPONSES[0]] * 4
    return [engine.score(PROMPTS, responses, references=["42"] * 4) for responses in (RESPONSES, right)]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def expected(reports: list[plaudit.Report]) -> list[float]:
    means = [float(report.statistics["total"]["mean"]) for report in reports]
    assert means[1] > means[0]
    return means


def scalars(folder: str | Path) -> dict[str, list[tuple[int, float]]]:
    """The curves in TensorBoard's event files, by TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder)).Reload()
    return {
        tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]
    }


def test_tensorboard_files_are_read_back(reports: list[plaudit.Report], tmp_path: Path) -> None:
    for step, report in enumerate(reports, start=1):
        written = plaudit.log.log_report(report, step, to=f"tensorboard:{tmp_path / 'runs'}")
    curves = scalars(tmp_path / "runs")
    assert [value for _, value in curves[MEAN]] == pytest.approx(expected(reports))
    assert [step for step, _ in curves[MEAN]] == [1, 2]
    assert set(written) <= set(curves)
    assert len(list((tmp_path / "runs").iterdir())) == 1, "one writer a folder"


class Writer:
    """The calls of a SummaryWriter, as torch and tensorboardX have them."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, Any], float] = {}
        self.flushed = 0

    def add_scalar(self, name: str, value: float, global_step: int | None = None) -> None:
        self.seen[name, global_step] = value

    def flush(self) -> None:
        self.flushed += 1


def test_a_writer_is_taken_as_it_is(reports: list[plaudit.Report]) -> None:
    writer = Writer()
    plaudit.log.log_report(reports[0], 7, to=writer, prefix="train/reward", only=["total/mean"])
    assert writer.seen == {("train/reward/total/mean", 7): pytest.approx(expected(reports)[0])}
    assert writer.flushed == 1


def test_mlflow_files_are_read_back(reports: list[plaudit.Report]) -> None:
    import mlflow

    with pytest.raises(plaudit.ArgumentError, match="no active MLflow run"):
        plaudit.log.log_report(reports[0], 1, to="mlflow")
    with mlflow.start_run() as run:
        plaudit.log.log_report(reports[0], 1, to="mlflow")
    plaudit.log.log_report(reports[1], 2, to=run)
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, "plaudit/correctness/right_share")
    assert [(metric.step, metric.value) for metric in history] == [(1, 0.5), (2, 1.0)]
    # Every name is one that MLflow takes.
    assert set(client.get_run(run.info.run_id).data.metrics) == set(plaudit.log.metrics(reports[1]))


def test_trackio_runs_are_read_back(reports: list[plaudit.Report]) -> None:
    """In a process of its own: trackio reads its folder at import."""
    source = f"""
import plaudit, plaudit.log, trackio
engine = plaudit.Engine("quickstart")
report = engine.score({PROMPTS!r}, {RESPONSES!r}, references=["42"] * 4)
try:
    plaudit.log.log_report(report, 3, to="trackio")
except plaudit.ArgumentError as error:
    assert "no active trackio run" in str(error)
run = trackio.init(project="rewards", name="first")
plaudit.log.log_report(report, 3, to="trackio", only="*")
plaudit.log.log_report(report, 4, to=run, only=["total/mean"])
trackio.finish()
from trackio.sqlite_storage import SQLiteStorage
rows = SQLiteStorage.get_logs("rewards", "first")
print([(row["step"], row[{MEAN!r}]) for row in rows if {MEAN!r} in row], len(rows[0]) > 50)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    mean = expected(reports)[0]
    assert done.stdout.splitlines()[-1] == f"{[(3, mean), (4, mean)]} True"


@pytest.fixture
def wandb_run(tmp_path: Path) -> Iterator[Any]:
    import wandb

    run = wandb.init(project="rewards", dir=tmp_path)
    yield run
    run.finish()


def records(folder: Path) -> list[Any]:
    """What an offline run has written so far, as `wandb sync` would read it."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    store, found = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        found.append(record)
    return found


def history(folder: Path) -> list[dict[str, Any]]:
    """The rows of an offline run. Its file is written by another process, which ends after the run."""
    end = time.monotonic() + 60
    while not any(record.WhichOneof("record_type") == "exit" for record in records(folder)):
        assert time.monotonic() < end, "the run does not end"
        time.sleep(0.02)
    rows = []
    for record in records(folder):
        if record.WhichOneof("record_type") == "history":
            row: dict[str, Any] = {}
            for item in record.history.item:
                name, *inside = item.nested_key or [item.key]
                value = json.loads(item.value_json)
                row[name] = {**row.get(name, {}), inside[0]: value} if inside else value
            rows.append(row)
    return rows


def test_wandb_files_are_read_back(reports: list[plaudit.Report], wandb_run: Any, tmp_path: Path) -> None:
    plaudit.log.log_report(reports[0], 1, to="wandb", prompts=PROMPTS, responses=RESPONSES)
    plaudit.log.log_report(reports[1], 2, to=wandb_run, groups=0)
    wandb_run.finish()
    rows = [row for row in history(tmp_path) if MEAN in row]
    assert [row["_step"] for row in rows] == [1, 2]
    assert [row[MEAN] for row in rows] == pytest.approx(expected(reports))
    table = rows[0]["plaudit/groups/table"]
    assert table["_type"] == "table-file" and table["nrows"] == 1
    (file,) = tmp_path.glob("wandb/offline-run-*/files/media/table/**/*.table.json")
    text = file.read_text()
    assert "6 * 7?" in text and RESPONSES[0] in text
    assert "plaudit/groups/table" not in rows[1]


def test_the_table_of_a_trainer_keeps_its_step(wandb_run: Any, tmp_path: Path) -> None:
    """As the sampler of verl does it: the table first, then verl's own metrics of the same step."""
    for step in (5, 6):
        assert plaudit.log.write_active_wandb_table("plaudit/groups/table", ["group"], [["a"]], step)
        wandb_run.log({"actor/loss": 0.5}, step=step)
    wandb_run.finish()
    rows = history(tmp_path)
    assert [row["_step"] for row in rows] == [5, 6]
    assert all("plaudit/groups/table" in row and "actor/loss" in row for row in rows)


def test_without_a_run_of_wandb_nothing_is_written(reports: list[plaudit.Report]) -> None:
    with pytest.raises(plaudit.ArgumentError, match="no active W&B run"):
        plaudit.log.log_report(reports[0], 1, to="wandb")
    assert not plaudit.log.write_active_wandb_table("t", ["a"], [[1]], 1)


def test_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    text = (ROOT / "docs/guide/loggers.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 4
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    mean, share = map(float, done.stdout.splitlines()[0].split())
    assert 0 < mean < 1.2 and share == 0.0
    assert scalars(tmp_path / "runs/first")[MEAN] == [(1, pytest.approx(mean))]
