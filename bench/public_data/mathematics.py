"""Mathematics: answers of models with a published label, references against themselves, and against the reference of the next row."""

import ast
import math
import pathlib
import re
from functools import partial

from .scoring import Set, jsonl

COMPONENT = {"reward": "math_verify_reward"}
QWEN = "QwenLM/Qwen2.5-Math", "a45202b", "Qwen2.5-Math/evaluation/data"
HARNESS = "ZubinGou/math-evaluation-harness", "db77bc6", "math-evaluation-harness/data"
RLLM = "agentica-project/rllm", "874daa4", "rllm/rllm/data"
GSM8K = "openai/grade-school-math", "3101c7d", "grade-school-math/grade_school_math/data"
PRIME = "PRIME-RL/PRIME", "18ad596", "PRIME/eval/data"
COT = "kojima-takeshi188/zero_shot_cot", "5ef330f", "zero_shot_cot/log"


def last_box(text: str) -> str | None:
    """The content of the last box whose braces are balanced."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return re.search(r"\\boxed (\S+?)\$?[.,]?(?:\s|$)", text).group(1) if "\\boxed " in text else None
    depth = 0
    for place in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[text.index("{", start) + 1 : place]
    return None


def logged(path: pathlib.Path):
    """The items of a log of zero_shot_cot: what the model wrote, the answer that its authors read, and the right one."""
    for item in path.read_text(encoding="utf-8").split("*************************\n")[1:]:
        if found := re.search(r"\nA:(.*)\npred_before :.*\npred_mode : (.*?)\nGT : (.*?)\n", item, re.DOTALL):
            yield tuple(part.strip() for part in found.groups())


# Labelled answers: each function yields response, reference and the published verdict.


def grade_school(data: pathlib.Path):
    for row in jsonl(data / "example_model_solutions.jsonl"):
        reference = row["ground_truth"].rsplit("A: ", 1)[1]
        for model in (key for key in row if key.startswith(("6b", "175b"))):
            yield row[model]["solution"], reference, row[model]["is_correct"]


def abel(*files: pathlib.Path):
    for file in files:
        for row in jsonl(file):
            yield row["response"], row["gold"], row["result"]


def tora(data: pathlib.Path):
    for file in sorted(data.glob("*/gsm8k/*.jsonl")):
        for row in jsonl(file):
            yield row["code"][0], row["gt"], same(row["pred"][0], row["gt"])


def same(read: str, right: str) -> bool:
    """Whether two numbers are one, apart from how they are written and from the last digits of a double."""
    try:
        return math.isclose(float(read.replace(",", "")), float(right.replace(",", "")), rel_tol=1e-9)
    except (ValueError, AttributeError):
        return read == right


def qwen(data: pathlib.Path):
    for row in jsonl(data / "eval_rm_maj_example/math_cot_100.jsonl"):
        for response, label in zip(row["code"], row["score"]):
            yield response, row["gt"], label


def logs(data: pathlib.Path):
    for name in ("gsm8k", "multiarith", "svamp", "addsub", "singleeq"):
        for method in ("zero_shot", "zero_shot_cot"):
            for response, read, right in logged(data / f"{name}_{method}.log"):
                yield response, right, same(read, right)


def math_verify(data: pathlib.Path):
    """The cases of the parametrised tests, read and not run: gold, prediction, and whether they are equal."""
    for file in sorted((data / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize") and len(node.args) == 2:
                for case in getattr(node.args[1], "elts", []):
                    values = [getattr(value, "value", None) for value in getattr(case, "elts", [])]
                    if len(values) >= 3 and all(isinstance(value, str) for value in values[:2]):
                        yield values[1], values[0], bool(values[2])


def olympiad(data: pathlib.Path):
    for row in jsonl(data / "eval/scoring_examples.json"):
        for answer in row["Ans"]:
            yield answer["answer"], row["GT"], answer["equal"]
            yield "\\boxed{%s}" % answer["answer"], row["GT"], answer["equal"]


def cases(rows):
    for said, right, label in rows():
        yield {"response": said, "reference": right}, bool(label)


def labelled(root: pathlib.Path) -> list[Set]:
    sources = [
        (GSM8K[:2], "four models", partial(grade_school, root / GSM8K[2])),
        (("GAIR-NLP/abel", "3a24ef2"), "GSM8K", partial(abel, *sorted((root / "abel/outputs").glob("gsm8k*/*.jsonl")))),
        (("GAIR-NLP/abel", "3a24ef2"), "MathGPT as mathematics", partial(abel, root / "abel/outputs/mathgpt/70b.jsonl")),
        (("microsoft/ToRA", "213c1c9"), "GSM8K, two models", partial(tora, root / "ToRA/src/outputs/llm-agents")),
        (QWEN[:2], "100 MATH problems, 8 answers", partial(qwen, root / QWEN[2])),
        (COT[:2], "logs of five sets", partial(logs, root / COT[2])),
        (("huggingface/Math-Verify", "5d148cf"), "its tests", partial(math_verify, root / "Math-Verify")),
        (("OpenBMB/OlympiadBench", "ba5b26a"), "scoring examples", partial(olympiad, root / "OlympiadBench")),
    ]
    return [Set("mathematics", *at, name, COMPONENT, partial(cases, rows)) for at, name, rows in sources]


# References, as they are published. Each entry: the source, the name, the file, the field, and the field of the worked solution.
# Without a field the reference is in the solution: its last box, or what follows its last `#### `.
PUBLISHED = [
    (HARNESS, "MATH-500", "math_oai/test.jsonl", "answer", "solution"),
    (HARNESS, "MATH test", "math/test.jsonl", None, "solution"),
    (RLLM, "MATH train", "train/math/math.json", "answer", None),
    (GSM8K, "GSM8K test", "test.jsonl", None, "answer"),
    (GSM8K, "GSM8K train", "train.jsonl", None, "answer"),
    (RLLM, "AIME 1983-2023", "train/math/aime.json", "answer", "solution"),
    (PRIME, "AIME 2022-24", "AI-MO/aimo-validation-aime/aimo-validation-aime.jsonl", "answer", "solution"),
    (RLLM, "AMC", "test/math/amc.json", "answer", None),
    (RLLM, "Minerva", "test/math/minerva.json", "answer", "solution"),
    (RLLM, "OlympiadBench", "test/math/olympiad_bench.json", "answer", None),
    (QWEN, "College Math", "college_math/test.jsonl", "answer", None),
    (QWEN, "CARP", "carp_en/test.jsonl", "answer", None),
    (QWEN, "Gaokao 2023 en", "gaokao2023en/test.jsonl", "answer", None),
    (QWEN, "Gaokao cloze", "gaokao_math_cloze/test.jsonl", "answer", None),
    (QWEN, "Gaokao 2024 mix", "gaokao2024_mix/test.jsonl", "answer", None),
    (QWEN, "CN middle school", "cn_middle_school/test.jsonl", "answer", None),
    (QWEN, "CMATH", "cmath/test.jsonl", "answer", None),
    (QWEN, "ASDiv", "asdiv/test.jsonl", "answer", None),
    (QWEN, "MAWPS", "mawps/test.jsonl", "target", None),
    (QWEN, "SVAMP", "svamp/test.jsonl", "Answer", None),
    (HARNESS, "GSM-Hard", "gsm_hard/test.jsonl", "target", None),
]


def published(path: pathlib.Path, field: str | None, solution: str | None):
    """The references of a file that are not empty, each with its worked solution or None."""
    for row in jsonl(path):
        text = row[solution] if solution else None
        reference = row[field] if field else text.rsplit("#### ", 1)[1] if "#### " in text else last_box(text)
        if reference is not None and first(reference).strip():
            yield reference, text


def first(reference) -> str:
    """A reference as a model would write it; of a list of accepted answers the first."""
    return first(reference[0]) if isinstance(reference, list) else str(reference)


def boxed(rows):
    return [({"response": "\\boxed{%s}" % first(one), "reference": one}, True) for one, _ in rows]


def phrase(rows):
    return [({"response": f"The final answer is: {first(one)}", "reference": one}, True) for one, _ in rows]


def next_row(rows):
    rows = [one for one, _ in rows]
    pairs = [(one, other) for one, other in zip(rows, rows[1:]) if first(one).strip() != first(other).strip()]
    return [({"response": "\\boxed{%s}" % first(other), "reference": one}, False) for one, other in pairs]


def solved(rows):
    return [({"response": text, "reference": one}, True) for one, text in rows]


def bare_number(rows):
    """`9 (apples)` answered with 9."""
    return [({"response": "\\boxed{%s}" % one.split(" (")[0], "reference": one}, True) for one, _ in rows if " (" in one]


def shaped(cases, *place):
    return cases(list(published(*place)))


FORMS = {"in a box": boxed, "as a phrase": phrase, "the next row's": next_row, "worked solution": solved, "the bare number": bare_number}


def against_themselves(root: pathlib.Path) -> list[Set]:
    sets = []
    for (source, commit, folder), name, file, field, solution in PUBLISHED:
        path = root / folder / file
        for form, cases in FORMS.items():
            if (form == "worked solution" and not solution) or (form == "the bare number" and name != "ASDiv"):
                continue
            sets.append(Set("references", source, commit, f"{name}, {form}", COMPONENT, partial(shaped, cases, path, field, solution)))
    return sets


def sets(root: pathlib.Path) -> list[Set]:
    return labelled(root) + against_themselves(root)
