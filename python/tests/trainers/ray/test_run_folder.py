"""Tests of the run folder: which shards are finished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from plaudit.ray.run_folder import RunFolder

RESULTS = pa.table({"id": ["a", "b"], "total": [1.0, 0.5]})


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(str(tmp_path))
    with folder.owned():
        yield folder


def test_a_finished_shard_is_found_again(folder: RunFolder):
    folder.begin({"shards": 4})
    note = folder.finish(3, RESULTS, "0f", {"scored": 2})
    assert (note.rows, note.outcomes) == (2, {"scored": 2})
    assert RunFolder(str(folder.path)).finished() == {3: note}
    found = sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file())
    assert found == ["lock", "notes/shard-00003.json", "results/shard-00003.parquet", "run.json"]


@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "note"])
def test_a_damaged_shard_is_not_finished(folder: RunFolder, damage: str):
    folder.finish(0, RESULTS, "0f", {"scored": 2})
    folder.finish(1, RESULTS, "0f", {"scored": 2})
    place = folder.results_path(1)
    data = place.read_bytes()
    if damage == "cut":
        place.write_bytes(data[:-1])
    elif damage == "flip":
        place.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    elif damage == "gone":
        place.unlink()
    else:
        (folder.notes / "shard-00001.json").write_text('{"shard": 1')
    assert list(folder.finished()) == [0]


def test_two_runs_are_not_mixed(folder: RunFolder):
    folder.begin({"recipe_fingerprint": "a", "shards": 4})
    folder.begin({"recipe_fingerprint": "a", "shards": 4})
    with pytest.raises(ValueError, match='recipe_fingerprint was "a", now "b"'):
        folder.begin({"recipe_fingerprint": "b", "shards": 4})
    assert folder.shards() == 4


def test_a_folder_of_others_is_left_alone(folder: RunFolder):
    (folder.results / "mine.parquet").write_bytes(b"mine")
    with pytest.raises(ValueError, match="not the run.json"):
        folder.begin({"shards": 4})


def test_what_a_dead_actor_was_writing_is_cleared_away(tmp_path: Path):
    folder = RunFolder(str(tmp_path))
    with folder.owned():
        (folder.results / ".shard-00001.parquet.77").write_bytes(b"half")
    with folder.owned():
        assert list(folder.results.iterdir()) == []


def test_one_run_at_a_time(folder: RunFolder):
    second = RunFolder(str(folder.path))
    with pytest.raises(RuntimeError, match="another run is writing"):
        second.owned().__enter__()
