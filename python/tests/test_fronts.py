"""Every front takes every field of a rollout, and gives the vectors about conversations the same results."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import plaudit
import pyarrow as pa
import pytest
from conftest import BINARY, ROOT
from plaudit import _plaudit, tables
from plaudit.ray.actor import Rollout
from plaudit.rollout import EXAMPLES, FIELDS, OTHERS
from plaudit.trl.call import read

FILES = ("action_loop", "tool_call_validity", "truncated", "turn_count", "published_calls")
OWN = ("id", "reward", "params", "tag", "expected")


class Seen(Exception):
    """What the engine would see, in place of a score."""


class Spy:
    """An engine, a join and a reward that see what they are handed."""

    def score(self, fields: dict[str, Any], *validate: Any) -> Any:
        batch = isinstance(fields["response"], list | tuple | pa.ChunkedArray)
        raise Seen(_plaudit.read_columns(fields)[0] if batch else _plaudit.read_rollout(fields))

    def start(self, done: Any, columns: dict[str, Any], validate: Any) -> Any:
        self.score(columns)

    def explain(self, columns: dict[str, Any], validate: Any, full: bool) -> Any:
        self.score(columns)

    def submit(self, *arguments: Any) -> None:
        self.score(arguments[-1])


def by_columns(row: dict[str, Any]) -> dict[str, Any]:
    return {FIELDS[name]: [value] for name, value in row.items()}


def score_explained(row: dict[str, Any]) -> None:
    plaudit.Engine("quickstart").explain(**by_columns(row))


def score_columns(row: dict[str, Any]) -> None:
    plaudit.Engine("quickstart").score(**by_columns(row))


def score_table(row: dict[str, Any]) -> None:
    plaudit.Engine("quickstart").score_table(pa.Table.from_pylist([row]))


def score_dicts(row: dict[str, Any]) -> None:
    plaudit.Engine("quickstart")._score(tables.of_rollouts([row]), None)


def score_joined(row: dict[str, Any]) -> None:
    plaudit.Engine("quickstart").join().score("g", 1, **row)


def score_alone(row: dict[str, Any]) -> None:
    plaudit.reward("number_accuracy").score(**row)


def score_in_ray(row: dict[str, Any]) -> None:
    named = {name: value for name, value in row.items() if name not in OTHERS}
    others = {name: value for name, value in row.items() if name in OTHERS}
    rollout = Rollout("g", None, 1, **named, others=others)
    Spy().score(rollout.fields(rollout.extra))


def score_by_trl(row: dict[str, Any]) -> None:
    columns = {name: [value] for name, value in row.items() if name not in ("prompt", "response", "extra")}
    prompts = [row.get("prompt")]
    ((made,), _) = read(prompts, [row["response"]], None, columns, {}, "prompt")
    Spy().score(made.fields())


# What a front has in its own way: names of groups in a join, and a trainer's own tokens, `extra` and groups.
NAMES = {"id", "group"}
FRONTS: dict[Callable[[dict[str, Any]], None], set[str]] = {
    score_columns: set(),
    score_explained: set(),
    score_table: set(),
    score_dicts: set(),
    score_joined: NAMES,
    score_alone: NAMES,
    score_in_ray: NAMES,
    score_by_trl: {*NAMES, "tokens", "extra"},
}


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_every_field_reaches_the_engine(front: Callable[..., None], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plaudit.Engine, "_inner", Spy())
    monkeypatch.setattr(plaudit.Join, "_inner", Spy())
    monkeypatch.setattr(_plaudit, "Reward", lambda *_: Spy())
    monkeypatch.setattr(plaudit.Engine, "_open", lambda *_, **__: Spy())
    monkeypatch.setattr(plaudit.Engine, "_load", lambda engine, *_: setattr(engine, "_joins", set()))
    for name in set(FIELDS) - FRONTS[front]:
        row = {"response": "It is 42.", name: EXAMPLES[name]}
        wanted, without = _plaudit.read_rollout(row), _plaudit.read_rollout({"response": "It is 42."})
        with pytest.raises(Seen) as seen:
            front(row)
        ((found,),) = [seen.value.args]
        if front is score_by_trl:
            found.pop("extra", None)  # All columns of a data set are there, too.
        assert found == wanted, name
        assert name == "response" or wanted != without, name


def vectors() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each reward with its parameters, and its vectors."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in FILES:
        for line in (ROOT / f"golden/conversations/{file}.jsonl").read_text(encoding="utf-8").splitlines():
            vector = json.loads(line)
            if not str(expected(vector)).startswith("refused"):
                component = {"reward": vector["reward"], **vector["params"]}
                found.setdefault(json.dumps(component, sort_keys=True), []).append(vector)
    yield from ((json.loads(component), each) for component, each in found.items())


def expected(vector: dict[str, Any]) -> Any:
    wanted = vector["expected"]
    return wanted["score"] if isinstance(wanted, dict) else wanted


def line_of(vector: dict[str, Any]) -> dict[str, Any]:
    return {"id": vector["id"], **{name: value for name, value in vector.items() if name not in OWN}}


def fields_of(vector: dict[str, Any]) -> dict[str, Any]:
    """The same with everything that is no field in `extra`."""
    line = line_of(vector)
    extra = {name: line.pop(name) for name in list(line) if name not in FIELDS}
    return {**line, "extra": {**extra, **line.get("extra", {})}}


def said(component: dict[str, Any]) -> Any:
    reason = component.get("reason")
    return component.get("value") if reason is None else f"{component['outcome']} {reason['code']}"


def same(ours: Any, theirs: Any) -> bool:
    both = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
    return abs(ours - theirs) <= 1e-12 * max(abs(theirs), 1.0) if both else ours == theirs


def check(each: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    for vector, row in zip(each, rows, strict=True):
        ours = said(row["components"]["it"])
        assert same(ours, expected(vector)), f"{vector['id']}: {ours}"


def test_vectors_through_the_command(tmp_path: Path):
    for component, each in vectors():
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(json.dumps({"components": {"it": component}}))
        lines = "".join(json.dumps(line_of(vector)) + "\n" for vector in each)
        command = [BINARY, "score", "-", "-q", "--recipe", str(recipe)]
        ran = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=300)
        check(each, [json.loads(line) for line in ran.stdout.splitlines()])


def test_vectors_through_the_service(tmp_path: Path):
    command = [BINARY, "serve", "--bind", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    for number, (component, _) in enumerate(vectors()):
        recipe = tmp_path / f"r{number}.yaml"
        recipe.write_text(json.dumps({"name": f"r{number}", "components": {"it": component}}))
        command += ["--recipe", str(recipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            for number, (_, each) in enumerate(vectors()):
                rollouts = [line_of(vector) for vector in each]
                body = {"recipe": f"r{number}", "run": f"r{number}", "rollouts": rollouts}
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{url}/v1/score", json.dumps(body).encode(), headers)
                with urllib.request.urlopen(request, timeout=120) as answer:
                    reply = json.loads(answer.read())
                assert not reply["errors"]
                check(each, reply["results"])
        finally:
            process.terminate()


def test_vectors_through_the_engine_and_the_join():
    for component, each in vectors():
        engine = plaudit.Engine({"components": {"it": component}})
        rows = [fields_of(vector) for vector in each]
        columns = {FIELDS[name]: [row.get(name) for row in rows] for name in FIELDS}
        check(each, engine.score(**columns).rows)
        join = engine.join()
        for vector, row in zip(each, rows, strict=True):
            fields = {name: value for name, value in row.items() if name != "id"}
            value = join.score(vector["id"], 1, **fields).components["it"]
            assert same(value, None if isinstance(expected(vector), str) else expected(vector)), vector["id"]


def test_vectors_through_tables():
    scored = 0
    for component, each in vectors():
        engine = plaudit.Engine({"components": {"it": component}})
        for vector in each:
            try:
                table = pa.Table.from_pylist([fields_of(vector)])
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                continue  # Arrow has no type for it.
            check([vector], engine.score_table(table).rows)
            scored += 1
    assert scored >= 150
