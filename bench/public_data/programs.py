"""Programs with tests: the published solutions of benchmarks, and programs of models with the verdict that their authors published."""

import gzip
import json
import pathlib
import re
from functools import partial

from .scoring import Set, jsonl

COMPONENT = {"reward": "code_execution", "continuous": False}
LDB = "FloridSleeves/LLMDebugger", "49ac191", "LLMDebugger/results/ldb"
REFLEXION = "noahshinn/reflexion", "218cf0e", "reflexion/programming_runs/root"
RLLM = "agentica-project/rllm", "874daa4", "rllm/rllm/data"
MBPP = "google-research/mbpp", "0155391", "google-research/mbpp"
# GPT-4's runs on the two sets; the others of that folder are in Rust, or on LeetCode without tests.
RUNS = [
    "simple_human_eval_py_logging/humaneval-py..gz_simple_1_gpt-4_pass_at_k_1_py.jsonl",
    "simple_mbpp_py/mbpp-py._simple_1_gpt-4_pass_at_k_1_py.jsonl",
    "reflexion_mbpp_py/mbpp-py._reflexion_5_gpt-4_pass_at_k_1_py.jsonl",
]
# One file a model and set; the others of that folder debug the same programs in other steps.
DEBUGGED = [f"{name}/{model}/results.jsonl" for name in ("humaneval", "mbpp") for model in ("codellama", "gpt-3.5-turbo-0613", "starcoder")]
DEBUGGED += [
    f"humaneval/{run}" for run in ("gpt-4-seed/results.jsonl", "reflexion/gpt-4-1106-preview.jsonl", "reflexion/gpt-4o-2024-05-13.jsonl")
]


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


def case(row: dict, program: str) -> dict:
    """A row in HumanEval's form. Its tests may use functions that the prompt defines."""
    return {"response": fenced(program), **{key: row[key] for key in ("prompt", "test", "entry_point")}}


def human_eval(path: pathlib.Path, body=lambda rows, number: rows[number]["canonical_solution"], expected=True):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for number, row in enumerate(rows):
        program = row["prompt"] + body(rows, number)
        yield case(row, program), expected


def bodies(path: pathlib.Path):
    """HumanEval's own form of a sample: the body alone, which follows the prompt."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            yield case(row, "") | {"response": row["canonical_solution"]}, True


def mbpp(path: pathlib.Path, tests="test_list"):
    for row in jsonl(path):
        setup = "\n".join([*row.get("test_imports", []), row.get("test_setup_code", "")]).strip()
        if row[tests]:
            yield {"response": fenced(row["code"]), "test_list": row[tests], "test_setup_code": setup}, True


def leetcode(path: pathlib.Path):
    for row in jsonl(path):
        solution = row["solutions"][0] if isinstance(row["solutions"], list) else row["solutions"]
        yield {"response": fenced(solution) if "```" not in solution else solution, "tests": row["tests"]}, True


def whole(row) -> str:
    """The program of a row: some solutions are bodies, which follow the prompt."""
    return row["solution"] if re.search(rf"def {re.escape(row['entry_point'])}\b", row["solution"]) else row["prompt"] + row["solution"]


def judged(paths: list[pathlib.Path]):
    """Each program once, also where several runs ended with it."""
    seen = set()
    for path in paths:
        for row in jsonl(path):
            if isinstance(row.get("is_solved"), bool) and row.get("solution") and (program := (row["test"], whole(row))) not in seen:
                seen.add(program)
                yield case(row, program[1]), row["is_solved"]


def sets(root: pathlib.Path) -> list[Set]:
    human = root / "human-eval/data/HumanEval.jsonl.gz"
    at = "openai/human-eval", "6d43fb9"
    functional = COMPONENT | {"tests": "extra.tests.functional"}
    ldb = root / LDB[2]

    def another(rows, number):
        return rows[(number + 1) % len(rows)]["canonical_solution"]

    listed = [
        (*at, "canonical solutions", COMPONENT, partial(human_eval, human)),
        (*at, "their bodies alone", COMPONENT, partial(bodies, human)),
        (*at, "body `pass`", COMPONENT, partial(human_eval, human, lambda *_: "    pass\n", False)),
        (*at, "the next row's solution", COMPONENT, partial(human_eval, human, another, False)),
        (*MBPP[:2], "`code` against `test_list`", COMPONENT, partial(mbpp, root / MBPP[2] / "mbpp.jsonl")),
        (*MBPP[:2], "challenge tests", COMPONENT, partial(mbpp, root / MBPP[2] / "mbpp.jsonl", "challenge_test_list")),
        (*MBPP[:2], "sanitized", COMPONENT, partial(mbpp, root / MBPP[2] / "sanitized-mbpp.json")),
        (*RLLM[:2], "LeetCode test", functional, partial(leetcode, root / RLLM[2] / "test/code/leetcode.json")),
        (*RLLM[:2], "LeetCode train", functional, partial(leetcode, root / RLLM[2] / "train/code/leetcode.json")),
        (*LDB[:2], "programs of models", COMPONENT, partial(judged, [ldb / run for run in DEBUGGED])),
        (*REFLEXION[:2], "programs of GPT-4", COMPONENT, partial(judged, [root / REFLEXION[2] / run for run in RUNS])),
    ]
    return [Set("code", *where, component, rows) for *where, component, rows in listed]
