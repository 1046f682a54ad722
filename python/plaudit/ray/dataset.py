"""`score_dataset`: scores a Ray Data set shard by shard, with actors that have an engine each.

Every row gets the shard of its group, Ray brings the rows of a shard together, and an actor scores it whole. With an output
folder, a shard is finished when its file and its note are there, and a later run continues with the others.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plaudit import Engine, __version__
from plaudit._plaudit import check_state
from plaudit.abort import AbortAfter, StepCounter
from plaudit.ray.run_folder import RunFolder, ShardNote
from plaudit.ray.shard_scorer import ABORT_AFTER, ScoringConfig, ShardScorer
from plaudit.ray.shards import DIGEST, SHARD, Rows, check_fields, fingerprint

if TYPE_CHECKING:
    from ray.data import Dataset

log = logging.getLogger("plaudit")

# Enough to spread a data set over a cluster and to lose little work with an actor, and few enough to be files in a folder.
SHARDS = 128

# What an override may change between a run and its continuation: where a judge is and how hard it is asked, but not what
# it is asked.
_FREE = (
    "api_key_env",
    "attempts",
    "base_url",
    "budget",
    "calls_per_minute",
    "concurrency",
    "connect_timeout",
    "headers",
    "hedge_share",
    "patience",
    "price",
    "proxy",
    "retry_share",
    "timeout",
)


def score_dataset(
    ds: Dataset,
    recipe: str | os.PathLike[str] | Mapping[str, Any],
    *,
    overrides: Mapping[str, Any] | None = None,
    actors: int | None = None,
    state: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    group: str = "group",
    shards: int | None = None,
    fields: Mapping[str, str] | None = None,
    keep_columns: bool = False,
    again: bool = False,
    abort_after: AbortAfter = ABORT_AFTER,
) -> Dataset:
    """Scores every row of a data set, each with its group, wherever its rows lie.

    The result has a row for each of the data set, in no particular order, with the columns of the command's Parquet files:
    id, group, total, outcome, reason and each component; with `keep_columns` those of the data set as well.

    `group` names the column that holds the group; where that is missing, and with "prompt", equal prompts make a group.
    `fields` says under which names the data set has plaudit's columns, such as `{"prompt": "question"}`; a dot leads into
    a struct. `actors` engines work at once, one a machine by default, and keep to the recipe's limits together.
    `state` keeps judgments: redis://host:port/db for all actors, or a folder with a part for each.

    With `out`, a folder that all machines see, everything is scored before this returns, each of `shards` shards is
    written there once, and a second call scores only what is missing; `again` scores shards with invalid rollouts anew.
    An actor that finds none of its first `abort_after` rows valid, all for one reason that cannot heal, such as a column of
    another name, ends the run; `"never"` goes on.
    Another recipe or other data are refused. Without `out`, the data set is scored when its rows are asked for.
    """
    fields = dict(fields or {})
    check_fields(fields, group)
    folder = None if out is None else RunFolder(os.path.abspath(os.fspath(out)))
    if shards is None:
        shards = SHARDS if folder is None else folder.shards() or SHARDS
    rows = Rows(shards, group, fields)
    _check_columns(ds, {"response": "response", **rows.sources()})
    if shards < 1:
        raise ValueError(f"shards: at least one is wanted, not {shards}")
    StepCounter(abort_after)
    where = None if state is None else os.fspath(state)
    if where is not None:
        check_state(where)
    engine = Engine(recipe, overrides=overrides)
    count = fit(engine, actors, where)
    config = ScoringConfig(
        engine=Engine(recipe, overrides=overrides, share=count),
        state=where if where is None or "://" in where else os.path.abspath(where),
        out=None if folder is None else str(folder.path),
        actors=count,
        rows=rows,
        keep_columns=keep_columns,
        abort_after=abort_after,
    )
    if folder is None:
        return _scored(ds, config, frozenset())
    run = {
        "recipe": engine.name,
        "recipe_fingerprint": _fingerprint(recipe),
        "overrides": _fixed(overrides or {}),
        "plaudit": __version__,
        "shards": shards,
        "group": group,
        "fields": fields,
        "keep_columns": keep_columns,
    }
    with folder.owned():
        folder.begin(run)
        _finish(ds, config, folder, again)
    return _results(folder)


def _check_columns(ds: Any, wanted: Mapping[str, str]) -> None:
    """Refuses what is no data set, and one that lacks a column, before any worker starts."""
    if not hasattr(ds, "map_batches"):
        kind = type(ds).__name__
        raise TypeError(f"a data set of Ray is wanted, not {kind}: ray.data.from_items makes one of a list")
    # Only where it is known: to find it out could mean to read or generate the data.
    schema = ds.schema(fetch_if_missing=False)
    if schema is None:
        return
    names = list(schema.names)
    for field, column in wanted.items():
        if column not in names and column.split(".")[0] not in names:
            raise ValueError(
                f"the data set has no column {column!r} for the field {field!r}, only {', '.join(names)}; "
                f"fields={{{field!r}: COLUMN}} names another"
            )


def _finish(ds: Dataset, config: ScoringConfig, folder: RunFolder, again: bool) -> None:
    """Scores the shards that are not finished."""
    done = folder.finished()
    if ds.limit(1).count() == 0:
        return  # Ray's shuffle cannot sort blocks that have no columns.
    if done:
        missing = _compared(ds, config.rows, folder, done)
        redone = {shard for shard, note in done.items() if again and note.outcomes.get("invalid", 0)}
        log.info(
            "plaudit: %d shards are finished, %d are to do", len(done) - len(redone), len(missing | redone)
        )
        if not missing and not redone:
            return
        for shard in redone:
            folder.forget(shard)
            del done[shard]
    for row in _scored(ds, config, frozenset(done)).iter_rows():
        if not folder.results_path(row["shard"]).exists():
            raise RuntimeError(
                f"an actor on {row['node']} has written shard {row['shard']} to {folder.path}, but it is not there on "
                "this machine: out must be a folder that all machines of the cluster share"
            )


def _compared(ds: Dataset, rows: Rows, folder: RunFolder, done: Mapping[int, ShardNote]) -> set[int]:
    """The shards that are not finished, or a refusal where finished ones were made from other data."""
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    scanned = ds.map_batches(_scan, fn_args=(rows,), batch_format="pyarrow", zero_copy_batch=True)
    for row in scanned.iter_rows():
        counts[row["shard"]] += row["digest_count"]
        sums[row["shard"]] += row["digest_sum"]
    for shard, note in sorted(done.items()):
        now = f"{fingerprint([sums[shard]]):016x}"
        if (note.rows, note.fingerprint) != (counts[shard], now):
            raise ValueError(
                f"the data have changed since {folder.path} was begun: shard {shard} was made from {note.rows} rows, now "
                f"it has {counts[shard]}{'' if note.rows != counts[shard] else ' others'}. Name another folder, or delete "
                "this one"
            )
    return set(counts) - set(done)


def _scan(table: pa.Table, rows: Rows) -> pa.Table:
    """How many rows of a batch each shard has, and the sum of their digests, which wraps at 64 bits as `fingerprint` does."""
    shards, digests = rows.split(rows.read(table))
    split = pa.table({"shard": pa.array(shards, pa.int32()), "digest": pa.array(digests, pa.uint64())})
    return split.group_by("shard").aggregate([("digest", "count"), ("digest", "sum")])


def _scored(ds: Dataset, config: ScoringConfig, done: frozenset[int]) -> Dataset:
    """The data set, scored but for the shards that are done."""
    from ray.data import ActorPoolStrategy

    # The engines' actors reserve no CPU: they would keep Ray from running the tasks that bring them their rows.
    return (
        ds.map_batches(_split, fn_args=(config.rows, done), batch_format="pyarrow", zero_copy_batch=True)
        .groupby(SHARD, num_partitions=config.rows.shards)
        .map_groups(
            ShardScorer,
            batch_format="pyarrow",
            compute=ActorPoolStrategy(size=config.actors),
            fn_constructor_args=(config,),
            num_cpus=0,
        )
    )


def _split(table: pa.Table, rows: Rows, done: frozenset[int]) -> pa.Table:
    """The rows of shards that are to be scored, each with its shard and its digest."""
    table = rows.read(table)
    shards, digests = rows.split(table)
    table = table.append_column(SHARD, pa.array(shards, pa.int32()))
    table = table.append_column(DIGEST, pa.array(digests, pa.uint64()))
    return table.filter(pa.array([shard not in done for shard in shards], pa.bool_())) if done else table


def fit(engine: Engine, actors: int | None, state: str | None) -> int:
    """How many actors there can be, each with its part of the recipe's limits."""
    import ray

    if actors is not None and actors < 1:
        raise ValueError(f"actors: at least one is wanted, not {actors}")
    count = actors or sum(1 for node in ray.nodes() if node["Alive"])
    shared = state is not None and "://" in state
    for name, limits in engine.judges.items():
        if state is None and (limits["budget_calls"] is not None or limits["budget_cost"] is not None):
            raise ValueError(
                f"judge {name} has a budget, which an actor that is started anew would not know: give state=, a folder "
                "or redis://host:port/db"
            )
        # A shared state counts what was spent over all actors; everything else is divided.
        for word in ("concurrency", "calls_per_minute", *(() if shared else ("budget_calls",))):
            if limits[word] is not None and limits[word] < count:
                count = max(1, limits[word])
                log.warning("plaudit: %d actors, because judge %s has a %s of that", count, name, word)
    return count


def _fingerprint(recipe: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """What the recipe says before anything is overridden: its text, or the name of a shipped one."""
    if isinstance(recipe, Mapping):
        text = json.dumps(recipe, default=str).encode()
    else:
        place = Path(recipe)
        text = place.read_bytes() if place.is_file() else os.fspath(recipe).encode()
    return blake2b(text, digest_size=16).hexdigest()


def _fixed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides that change what is scored."""

    def free(key: str) -> bool:
        path = key.split(".")
        of_judge = path[0] == "judges" and len(path) > 2 and path[2] in _FREE
        return of_judge or key in ("groups.parallel", "groups.timeout")

    return {key: value for key, value in sorted(overrides.items()) if not free(key)}


def _results(folder: RunFolder) -> Dataset:
    """The results in a folder, as a data set."""
    from ray import data

    return data.read_parquet(str(folder.results)) if any(folder.results.iterdir()) else data.from_items([])
