#!/usr/bin/env python3
"""Runs the IFEval classes of lm-eval 0.4.13 on texts, strict and loose, as its `utils.py` calls them.

    bench/data/instructions/venv/bin/python bench/instructions_peer.py FOLDER TEXTS ARGUMENTS

FOLDER has the unpacked wheel (`lm_eval/`) and `nltk_data/`; TEXTS one JSON text a line; ARGUMENTS an object of ids. Prints one
JSON object: `seconds` for all ids once on one text, `per_second` by id, and `verdicts`. A class is built for every check.
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

import langdetect  # noqa: E402
import nltk  # noqa: E402

nltk.data.path.insert(0, str(FOLDER / "nltk_data"))
langdetect.DetectorFactory.seed = 0
logging.disable(logging.CRITICAL)

from lm_eval.tasks.ifeval.instructions_registry import INSTRUCTION_DICT  # noqa: E402


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
    result = {"seconds": {}, "per_second": {name: {} for name in ids}, "verdicts": {}}
    for mode, made in modes.items():
        result["seconds"][f"ifeval_{mode}"] = timed(
            texts, lambda text: [follows(name, given, made(text)) for name, given in ids.items()]
        )
        for name, given in ids.items():
            seconds = timed(texts, lambda text: follows(name, given, made(text)))
            result["per_second"][name][mode] = 1 / seconds
        result["verdicts"][mode] = {name: [follows(name, given, made(text)) for text in texts] for name, given in ids.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
