"""Multiple choice: usual forms of the right letter, the text of the right option, and outputs of models with what their authors read."""

import json
import pathlib
import re
import zipfile
from functools import partial

from .mathematics import COT, QWEN, logged
from .scoring import Set, jsonl

COMPONENT = {"reward": "choice"}
LETTERS = "ABCDEFGHIJ"
FORMS = [
    "%s",
    "(%s)",
    "\\boxed{%s}",
    "The answer is %s.",
    "The answer is (%s).",
    "Answer: %s",
    "**%s**",
    "<answer>%s</answer>",
    "%s. {text}",
]
# The six files of MMLU-Pro that are read: three model families that write freely, and a small, a middle and a large model of each kind.
MMLU_PRO = [
    "Meta-Llama-3_1-8B-Instruct_5shots",
    "Meta-Llama-3_1-70B-Instruct_5shots",
    "mathstral-7B_5shots",
    "Phi-3-mini-4k-instruct_5shots",
    "gemini-1.5-flash-002_5shots",
    "gemini-1.5-pro-002_5shots",
]


def questions(root: pathlib.Path) -> dict:
    """By name: a function that yields the options as they are published, the right letter and the text of its option."""
    folder = root / QWEN[2]

    def mmlu():
        for row in jsonl(folder / "mmlu_stem/test.jsonl"):
            yield row["choices"], LETTERS[row["answer"]], row["choices"][row["answer"]]

    def gaokao():
        for row in jsonl(folder / "gaokao_math_qa/test.jsonl"):
            if row["label"] in list("ABCD"):
                yield row["options"], row["label"], row["options"][row["label"]]

    def aqua():
        for row in jsonl(folder / "aqua/test.jsonl"):
            yield row["options"], row["correct"], row["options"][LETTERS.index(row["correct"])].split(")", 1)[1]

    def sat():
        for row in jsonl(folder / "sat_math/test.jsonl"):
            split = re.split(r"(?:^|\s)[A-E]\s*\)", row["options"])
            if len(split) > LETTERS.index(row["Answer"]) + 1:
                yield row["options"], row["Answer"], split[1 + LETTERS.index(row["Answer"])].strip()

    return {"MMLU-STEM": mmlu, "Gaokao QA": gaokao, "AQuA": aqua, "SAT": sat}


def forms(rows):
    for options, letter, text in rows():
        for form in FORMS:
            response = (form % letter).replace("{text}", text)
            yield {"response": response, "reference": letter, "options": options}, True


def texts(rows):
    for options, letter, text in rows():
        yield {"response": f"The answer is {text.strip().rstrip('.')}.", "reference": letter, "options": options}, True


def mmlu_pro(folder: pathlib.Path):
    """Outputs that say `answer is`, with the letter that the authors' pattern found."""
    for name in MMLU_PRO:
        with zipfile.ZipFile(folder / f"model_outputs_{name}.zip") as archive:
            rows = json.loads(archive.read(archive.namelist()[0]))
        for row in rows:
            said = row.get("model_outputs") or row.get("generated_text") or ""
            if row.get("pred") and "answer is" in said:
                case = {"response": said, "reference": row["answer"], "options": row["options"]}
                yield case, row["pred"] == row["answer"]


def big_bench(folder: pathlib.Path):
    """The tasks whose targets are letters; the authors compare what follows `So the answer is`."""
    for file in sorted(folder.glob("*_255000.json")) + sorted(folder.glob("*-255000.json")):
        for row in json.loads(file.read_text(encoding="utf-8"))["outputs"]:
            if re.fullmatch(r"\([A-Z]\)", row["target"]) and "answer is " in row["prediction"]:
                read = row["prediction"].rsplit("answer is ", 1)[1].strip().rstrip(".")
                yield {"response": row["prediction"], "reference": row["target"]}, read == row["target"]


def logs(folder: pathlib.Path):
    for name in ("aqua", "commonsensqa", "shuffled_objects", "date_understanding"):
        for method in ("zero_shot", "zero_shot_cot"):
            for response, read, right in logged(folder / f"{name}_{method}.log"):
                if read:
                    yield {"response": response, "reference": right}, read == right


def gaokao_bench(folder: pathlib.Path):
    for file in sorted(folder.glob("*.json")):
        for row in json.loads(file.read_text(encoding="utf-8"))["example"]:
            right, read = row["standard_answer"], row["model_answer"]
            if len(right) == 1 and len(read) == 1 and right[0] in list("ABCD"):
                yield {"response": row["model_output"], "reference": right[0]}, read == right


def abel(file: pathlib.Path):
    for row in jsonl(file):
        yield {"response": row["response"], "reference": row["gold"]}, row["result"]


def sets(root: pathlib.Path) -> list[Set]:
    found = []
    for name, rows in questions(root).items():
        found.append(Set("choice", *QWEN[:2], f"{name}, nine forms of the letter", COMPONENT, partial(forms, rows)))
        found.append(Set("choice", *QWEN[:2], f"{name}, the option's text", COMPONENT, partial(texts, rows)))
    published = [
        (("TIGER-AI-Lab/MMLU-Pro", "f418b11"), "six models", partial(mmlu_pro, root / "MMLU-Pro/eval_results")),
        (
            ("suzgunmirac/BIG-Bench-Hard", "9ee07bd"),
            "code-davinci-002",
            partial(big_bench, root / "BIG-Bench-Hard/code-davinci-002-outputs/code-davinci-002-cot"),
        ),
        (COT[:2], "logs of four sets", partial(logs, root / COT[2])),
        (
            ("OpenLMLab/GAOKAO-Bench", "6dbb24f"),
            "gpt-4-0314",
            partial(gaokao_bench, root / "GAOKAO-Bench/Results/gpt_4_0314_obj"),
        ),
        (("GAIR-NLP/abel", "3a24ef2"), "MathGPT", partial(abel, root / "abel/outputs/mathgpt/70b.jsonl")),
    ]
    return found + [Set("choice", *at, name, COMPONENT, rows) for at, name, rows in published]
