#!/usr/bin/env python3
"""Runs math-verify 0.9.0 on vectors and on a corpus, as verl calls it: the reference in a box, LaTeX and plain expressions.

    PYTHONPATH=bench/.venv/math bench/.venv/bin/python bench/mathematics_peer.py VECTORS CORPUS [--budget 20] [--hostile]

Prints one JSON object: `vectors` (every verdict by id), `seconds` (one verification over them), and `corpus` (responses per
second of processor time, and the verdicts). The vectors tagged hostile take minutes and are left out unless asked for.
"""

import argparse
import json
import logging
import time

from math_verify.errors import TimeoutException
from math_verify.metric import math_metric
from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig

logging.disable(logging.CRITICAL)
VERIFY = math_metric(
    gold_extraction_target=(LatexExtractionConfig(),),
    pred_extraction_target=(ExprExtractionConfig(), LatexExtractionConfig()),
)


def score(row):
    """1 or 0; a timeout and an error are 0, as in verl."""
    try:
        return int(VERIFY(["\\boxed{" + row["reference"] + "}"], [row["response"]])[0] == 1.0)
    except (Exception, TimeoutException):  # whatever it raises, a trainer sees 0
        return 0


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors")
    parser.add_argument("corpus")
    parser.add_argument("--budget", type=float, default=20.0, help="processor seconds on the corpus")
    parser.add_argument("--hostile", action="store_true", help="the hostile vectors too")
    options = parser.parse_args()

    said, times = {}, []
    for row in read(options.vectors):
        if row["tag"].startswith("hostile") and not options.hostile:
            continue
        began = time.perf_counter()
        said[row["id"]] = score(row)
        times.append(time.perf_counter() - began)
    times.sort()

    def at(share):
        return times[int((len(times) - 1) * share)]

    corpus = read(options.corpus)
    verdicts, began = {}, time.process_time()
    for row in corpus:
        verdicts[row["id"]] = score(row)
        if time.process_time() - began > options.budget:
            break
    rate = len(verdicts) / (time.process_time() - began)
    seconds = {"p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "max": at(1.0)}
    print(json.dumps({"vectors": said, "seconds": seconds, "corpus": {"per_s": rate, "said": verdicts}}))


if __name__ == "__main__":
    main()
