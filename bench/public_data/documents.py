"""Documents and tool calls: the JSON Schema test suite by draft, and the calls of the Berkeley Function Calling Leaderboard."""

import json
import pathlib
from functools import partial

from .scoring import Set, jsonl

SUITE = "json-schema-org/JSON-Schema-Test-Suite", "44401e0", "JSON-Schema-Test-Suite/tests"
DRAFTS = {
    "2020-12": ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
    "2019-09": ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    "7": ("draft7", "http://json-schema.org/draft-07/schema#"),
    "6": ("draft6", "http://json-schema.org/draft-06/schema#"),
    "4": ("draft4", "http://json-schema.org/draft-04/schema#"),
}
FOLDERS = ["draft3", "v1", *(folder for folder, _ in DRAFTS.values())]
BFCL = "ShishirPatil/gorilla", "6ea5797", "gorilla/berkeley-function-call-leaderboard/bfcl_eval/data"
CALLS = [
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
]
# Forms that only rows with a choice have.
VARIED = ["another allowed value", "optional ones left out"]


def suite(files: list[pathlib.Path], dialect: str):
    """Each test with its schema."""
    for file in files:
        for group in json.loads(file.read_text(encoding="utf-8")):
            schema = said(group["schema"], dialect)
            for test in group["tests"]:
                yield {"response": json.dumps(test["data"], ensure_ascii=False), "schema": schema}, test["valid"]


def said(schema, dialect: str):
    """A schema that says its draft, where it is an object that does not."""
    return {"$schema": dialect, **schema} if isinstance(schema, dict) and "$schema" not in schema else schema


def remotes(root: pathlib.Path, folder: str, dialect: str) -> dict:
    """The schemas that the suite expects at an address of its own, by their URI: those of the draft, and those of all."""
    files = [file for file in sorted(root.rglob("*.json")) if file.relative_to(root).parts[0] not in {*FOLDERS} - {folder}]
    return {
        f"http://localhost:1234/{file.relative_to(root).as_posix()}": said(json.loads(file.read_text(encoding="utf-8")), dialect)
        for file in files
    }


def schemas(root: pathlib.Path) -> list[Set]:
    found = []
    for draft, (folder, dialect) in DRAFTS.items():
        place = root / SUITE[2] / folder
        parts = {"required": sorted(place.glob("*.json"))}
        if draft == "2020-12":
            parts["optional"] = sorted(place.glob("optional/*.json"))
            parts["optional formats"] = sorted(place.glob("optional/format/*.json"))
        for part, files in parts.items():
            component = {"reward": "structured_output", "fences": "none"}
            newer = {"schemas": remotes(root / SUITE[2].replace("tests", "remotes"), folder, dialect)}
            if part == "optional formats":
                newer["formats"] = "assert"
            rows = partial(suite, files, dialect)
            found.append(Set("JSON Schema", *SUITE[:2], f"draft {draft}, {part}", component, rows, newer=newer))
    return found


def pick(allowed: list, place: int):
    """One of the allowed values, whose `""` says that the argument may be left out; the values of an object are such lists again."""
    given = [one for one in allowed if one != ""] or allowed
    value = given[min(place, len(given) - 1)]
    return [inner(one, place) for one in value] if isinstance(value, list) else inner(value, place)


def inner(value, place: int):
    if not isinstance(value, dict):
        return value
    lists = {key: one if isinstance(one, list) else [one] for key, one in value.items()}
    return {key: pick(one, place) for key, one in lists.items() if one and one != [""]}


def made(truth: dict, form: str) -> dict:
    """A call that the ground truth allows."""
    name, arguments = next(iter(truth.items()))
    place = int(form == "another allowed value")
    bare = form == "optional ones left out"
    kept = {key: allowed for key, allowed in arguments.items() if allowed and allowed != [""] and not (bare and "" in allowed)}
    return {"name": name, "arguments": {key: pick(allowed, place) for key, allowed in kept.items()}}


def conversation(calls: list[dict]) -> list[dict]:
    made = [
        {"id": str(number), "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
        for number, call in enumerate(calls)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": made}]


def bfcl(root: pathlib.Path, form: str):
    """The cases of one form: how a response's calls are made of the ground truth of its row."""
    for name in CALLS:
        asked = {row["id"]: row for row in jsonl(root / f"BFCL_v4_{name}.json")}
        for row in jsonl(root / f"possible_answer/BFCL_v4_{name}.json"):
            truth = row["ground_truth"]
            calls = [made(call, form) for call in truth]
            if form in VARIED and calls == [made(call, "right") for call in truth]:
                continue
            calls = {"in reverse order": calls[::-1], "one call left out": calls[:-1]}.get(form, calls)
            case = {"response": conversation(calls), "ground_truth": truth}
            if form == "declarations":
                case["tools"] = [{"type": "function", "function": one} for one in asked[row["id"]]["function"]]
            yield case, form != "one call left out"


def sets(root: pathlib.Path) -> list[Set]:
    found = schemas(root)
    calls = {"reward": "tool_calls", "expected_field": "ground_truth"}
    for form in ("right", "in reverse order", *VARIED, "one call left out"):
        found.append(Set("tools", *BFCL[:2], f"ten sets, {form}", calls, partial(bfcl, root / BFCL[2], form)))
    validity = {"reward": "tool_call_validity", "score": "all"}
    rows = partial(bfcl, root / BFCL[2], "declarations")
    return [*found, Set("tools", *BFCL[:2], "ten sets, declarations", validity, rows)]
