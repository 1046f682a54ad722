#!/usr/bin/env python3
"""RM-Gallery 0.1.7 on a judge: its AlignmentReward, pairwise, with its own OpenAI client and ten threads.

    bench/.venv/bin/python bench/judges_peer.py --url URL --rollouts FILE --mode dgr --groups 8 > peer.json

Prints one JSON object: calls, errors, wall and processor seconds, and the scores of each group in the order of the file.
An error of the judge is a tie to RM-Gallery, so errors are counted from what it keeps of every answer.
"""

import argparse
import itertools
import json
import pathlib
import time

from peer import import_peer


def read_groups(path, count):
    with open(path, encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        for _, members in itertools.islice(itertools.groupby(rows, key=lambda row: row["group"]), count):
            members = list(members)
            yield members[0]["prompt"], [row["response"] for row in members]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rollouts", type=pathlib.Path, required=True)
    parser.add_argument("--mode", default="dgr")
    parser.add_argument("--groups", type=int, default=8)
    options = parser.parse_args()
    groups = list(read_groups(options.rollouts.resolve(), options.groups))

    import_peer()
    from rm_gallery.gallery.evaluation.llm_judge import AlignmentReward

    reward = AlignmentReward(model_name="judge-sim", base_url=options.url, api_key="none", pairwise_mode=options.mode)
    # One pair first, so that no import and no first connection is timed.
    reward.evaluator.evaluate("warm", ["one", "two"])
    calls, errors, scores = 0, 0, []
    wall, cpu = time.perf_counter(), time.process_time()
    for prompt, responses in groups:
        result = reward.evaluator.evaluate(prompt, responses)
        calls += len(result["comparisons"])
        errors += sum(comparison.get("llm_output", "error") == "error" for comparison in result["comparisons"])
        scores.append([float(score) for score in result["scores"]])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"mode": options.mode, "calls": calls, "errors": errors, "wall_s": wall, "cpu_s": cpu, "scores": scores}))


if __name__ == "__main__":
    main()
