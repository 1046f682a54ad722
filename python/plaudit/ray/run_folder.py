"""Output folder of a data set run: the run's manifest, finished shards, and their checksums.

A folder holds `run.json`, the manifest of the run, and for each finished shard a Parquet file in `results` and a note in
`notes` with its number of rows, the fingerprint of its input, and its checksum. The note is written last, and both files are
renamed into place when they are complete: a shard without its note has not been scored.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

VERSION = 1

# A shard's results are read in pieces of so many bytes when their checksum is taken.
_PIECE = 1 << 20


class ShardNote(NamedTuple):
    """What is known of a finished shard."""

    shard: int
    rows: int
    fingerprint: str
    bytes: int
    checksum: str
    outcomes: Mapping[str, int]


class RunFolder:
    """The folder of a run."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.results = self.path / "results"
        self.notes = self.path / "notes"

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Keeps other runs out for as long as this one lives."""
        self.results.mkdir(parents=True, exist_ok=True)
        self.notes.mkdir(exist_ok=True)
        with open(self.path / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RuntimeError(f"another run is writing to {self.path}") from error
            # What an actor was writing when it died.
            for temporary in (*self.results.glob(".*"), *self.notes.glob(".*")):
                temporary.unlink()
            yield

    def begin(self, run: Mapping[str, Any]) -> None:
        """Notes what the run is, or refuses to mix it with another one."""
        manifest = self.path / "run.json"
        if not manifest.exists():
            if any(self.results.iterdir()):
                raise ValueError(
                    f"{self.path} holds results, but not the run.json of their run: name another folder"
                )
            with _complete(manifest) as temporary:
                temporary.write_text(json.dumps({"version": VERSION, **run}, indent=1, sort_keys=True))
            return
        before = self.run()
        now = json.loads(json.dumps({"version": VERSION, **run}))
        other = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if other:
            changes = "; ".join(
                f"{name} was {_brief(before.get(name))}, now {_brief(now.get(name))}" for name in other
            )
            raise ValueError(
                f"{self.path} was begun by another run: {changes}. Results of both must not be mixed: "
                "name another folder, or delete this one"
            )

    def run(self) -> dict[str, Any]:
        """What the folder's run is."""
        return json.loads((self.path / "run.json").read_text())

    def shards(self) -> int | None:
        """How many shards the folder's run has, where there is one."""
        return self.run()["shards"] if (self.path / "run.json").exists() else None

    def results_path(self, shard: int) -> Path:
        """Where a shard's results are."""
        return self.results / f"shard-{shard:05d}.parquet"

    def finished(self) -> dict[int, ShardNote]:
        """The finished shards. One whose results are gone or damaged is not among them: it is scored again."""
        with ThreadPoolExecutor(8) as threads:
            notes = threads.map(self._read, sorted(self.notes.glob("shard-*.json")))
            return {note.shard: note for note in notes if note is not None}

    def note(self, shard: int) -> ShardNote | None:
        """What is known of a shard, if it is finished."""
        return self._read(self._note_path(shard))

    def forget(self, shard: int) -> None:
        """Makes a finished shard one that is not."""
        self._note_path(shard).unlink(missing_ok=True)

    def finish(
        self, shard: int, results: pa.Table, fingerprint: str, outcomes: Mapping[str, int]
    ) -> ShardNote:
        """Writes a shard's results, and then the note that they are there."""
        path = self.results_path(shard)
        with _complete(path) as temporary:
            pq.write_table(results, temporary, compression="zstd")
            size, checksum = _checksum(temporary)
        note = ShardNote(shard, results.num_rows, fingerprint, size, checksum, dict(outcomes))
        with _complete(self._note_path(shard)) as temporary:
            temporary.write_text(json.dumps(note._asdict(), sort_keys=True))
        return note

    def _note_path(self, shard: int) -> Path:
        return self.notes / f"{self.results_path(shard).stem}.json"

    def _read(self, path: Path) -> ShardNote | None:
        try:
            note = ShardNote(**json.loads(path.read_text()))
            return note if (note.bytes, note.checksum) == _checksum(self.results_path(note.shard)) else None
        except (OSError, ValueError, TypeError):
            return None


def _checksum(path: Path) -> tuple[int, str]:
    digest, size = blake2b(digest_size=16), 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


@contextmanager
def _complete(path: Path) -> Iterator[Path]:
    """A temporary file that gets the name when it is complete, and on disk, so that a power cut leaves no half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    yield temporary
    _sync(temporary, os.O_RDONLY)
    os.replace(temporary, path)
    _sync(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
