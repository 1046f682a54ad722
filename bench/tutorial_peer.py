#!/usr/bin/env python3
"""Times the reward manager of RM-Gallery's VERL tutorial, with RM-Gallery 0.1.7's own rewards.

    bench/.venv/bin/python bench/tutorial_peer.py --url URL --rollouts FILE --mode dgr > peer.json

The manager is built as the tutorial tells: rollouts are grouped by prompt, and groups are scored side by side
on a pool of eight threads under `asyncio.run`, with 300 s a group. The tutorial calls functions that are
defined nowhere, so that its terms are RM-Gallery's own rewards for them: `AlignmentReward.compute_score` on
the group (pairwise, ten threads a group, its own OpenAI client, as its training example sets it up),
`reasoning_format`, `ngram_repetition_penalty` (soft, n = 5) and `length_penalty`; the total is 0.95 x judged
+ 0.05 x format + length + n-gram. It has no reward for the length of a thought, so that term is left out
here, and nothing is decoded and no tensor is filled. Prints one JSON object.
"""

import argparse
import asyncio
import collections
import concurrent.futures
import functools
import json
import pathlib
import time

from peer import import_peer

TIMEOUT = 300.0


class Rewards:
    """The tutorial's reward function of one group."""

    def __init__(self, url, mode, threads):
        from rm_gallery.core.reward.registry import RewardRegistry
        from rm_gallery.gallery.evaluation.llm_judge import AlignmentReward

        def rule(key, **params):
            return RewardRegistry.get(key)(name=key, **params)

        self.judged = AlignmentReward(
            model_name="judge-sim", base_url=url, api_key="none", pairwise_mode=mode, max_workers=threads
        )
        self.format = rule("reasoning_format")
        self.ngram = rule(
            "ngram_repetition_penalty",
            n=5,
            tokenizer_type="simple",
            use_soft_penalty=True,
            max_penalty=-1.0,
            min_scaling=0.1,
        )
        self.length = rule("length_penalty")

    def by_rule(self, rule, prompt, responses):
        from rm_gallery.core.data.schema import DataOutput, DataSample, Step
        from rm_gallery.core.model.message import ChatMessage

        outputs = [DataOutput(answer=Step(role="assistant", content=response)) for response in responses]
        sample = DataSample(
            unique_id="group", input=[ChatMessage(role="user", content=prompt)], output=outputs
        )
        return [output.answer.reward.score for output in rule.evaluate(sample).output]

    def __call__(self, prompt, responses, extras):
        result = self.judged.compute_score(
            "tutorial", responses, {}, extra_info=extras[0], group_evaluation=True, prompt_str=prompt
        )
        if "error" in result:
            raise RuntimeError(result["error"])
        judged = result["group_scores"]
        format, ngram, length = (
            self.by_rule(rule, prompt, responses) for rule in (self.format, self.ngram, self.length)
        )
        totals = [
            0.95 * j + 0.05 * f + l + n for j, f, l, n in zip(judged, format, length, ngram, strict=True)
        ]
        return totals, {"reward_rubric": judged, "reward_format": format, "reward_ngram": ngram}


async def score_groups(compute_score, groups, workers):
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:

        async def score(prompt, responses):
            call = functools.partial(
                compute_score, prompt=prompt, responses=responses, extras=[{}] * len(responses)
            )
            return await asyncio.wait_for(loop.run_in_executor(pool, call), TIMEOUT)

        return await asyncio.gather(*(score(prompt, responses) for prompt, responses in groups.items()))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--rollouts", type=pathlib.Path, required=True)
    parser.add_argument(
        "--mode", default="dgr", help="how comparisons become numbers; dgr is RM-Gallery's default"
    )
    parser.add_argument(
        "--workers", type=int, default=8, help="groups at a time; 8 is the tutorial's max_workers"
    )
    parser.add_argument(
        "--threads", type=int, default=10, help="calls at a time in a group; 10 is RM-Gallery's default"
    )
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rollouts.read_text(encoding="utf-8").splitlines()]

    import_peer()
    compute_score = Rewards(options.url, options.mode, options.threads)
    # One pair first, so that no import and no first connection is timed.
    compute_score("warm", ["one", "two"], [{}, {}])
    wall, cpu = time.perf_counter(), time.process_time()
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["prompt"]].append(row["response"])
    results = asyncio.run(score_groups(compute_score, groups, options.workers))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    totals = [totals for totals, _ in results]
    judged = [info["reward_rubric"] for _, info in results]
    told = vars(options) | {"url": None, "rollouts": None}
    print(json.dumps({"settings": told, "wall_s": wall, "cpu_s": cpu, "totals": totals, "judged": judged}))


if __name__ == "__main__":
    main()
