"""Verifiable instructions: responses with the verdicts of the published checkers, instruction by instruction.

IFBench's repository has verdicts. Of IFEval's responses none were published: run its `evaluation_main.py` on the rows that have a
response, with `--output_dir instruction_following_eval/output`, before.
"""

import pathlib
from functools import partial

from .scoring import Set, Verdicts, jsonl


def followed(result: dict | None, expected: list[bool]) -> Verdicts:
    """The verdicts of one response, in the order of its instructions."""
    components = result["components"] if result else {}
    checks = components.get("right", {}).get("info", {}).get("constraints")
    got = [check["followed"] for check in checks] if checks else [None] * len(expected)
    return list(zip(expected, got))


def cases(inputs: pathlib.Path, verdicts: pathlib.Path):
    by_prompt = {row["prompt"]: row for row in jsonl(inputs)}
    for row in jsonl(verdicts):
        asked = by_prompt.get(row["prompt"])
        if asked and row["instruction_id_list"] == asked["instruction_id_list"]:
            arguments = [{key: value for key, value in given.items() if value is not None} for given in asked["kwargs"]]
            case = {"response": row["response"], "prompt": row["prompt"], "kwargs": arguments}
            yield case | {"instruction_id_list": row["instruction_id_list"]}, row["follow_instruction_list"]


def sets(root: pathlib.Path) -> list[Set]:
    ifeval, ifbench = root / "google-research/instruction_following_eval", root / "IFBench"
    sources = [
        ("google-research/instruction_following_eval", "0155391", ifeval / "data/input_data.jsonl", ifeval / "output"),
        ("allenai/IFBench", "db69a6f", ifbench / "data/IFBench_test.jsonl", ifbench / "eval"),
    ]
    found = []
    for source, commit, inputs, folder in sources:
        for semantics in ("published", "corrected"):
            for mode in ("strict", "loose"):
                component = {"reward": "instructions", "semantics": semantics, "mode": mode}
                verdicts = folder / f"eval_results_{mode}.jsonl"
                name = f"`{semantics}`, {mode}"
                rows = partial(cases, inputs, verdicts)
                found.append(Set("instructions", source, commit, name, component, rows, followed))
    return found
