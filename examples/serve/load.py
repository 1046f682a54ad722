#!/usr/bin/env python3
"""Plays a training to the service: groups of responses that get better from step to step.

    plaudit judge-sim &
    plaudit serve --set judges.main.base_url=http://127.0.0.1:7718/v1 &
    python3 examples/serve/load.py                    # 60 steps; watch http://127.0.0.1:7717
    python3 examples/serve/load.py --recipe quickstart --run rules --steps 20

It needs nothing but Python. Responses are made up; `plaudit judge-sim` reads their hidden quality from a mark in the text, so
that the win rate against the reference rises. From the middle of the run on, the policy learns that longer answers win: the
dashboard says so.
"""

import argparse
import http.client
import json
import os
import random
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

WORDS = (
    "first we look at what is given and write it down then we choose a way that keeps every number small and check it "
    "against the question because a result that nobody has checked is only a guess so let us be careful here"
).split()


def response(chance, skill, greed):
    """One answer: mostly in the asked-for form, right with the chance that the skill gives, longer with greed."""
    length = max(5, int(chance.gauss(60 + 160 * greed, 20)))
    thought = " ".join(chance.choice(WORDS) for _ in range(length))
    right = chance.random() < 0.2 + 0.6 * skill
    quality = chance.gauss(2 * skill - 1 + 1.2 * greed * (length / 200), 0.7)
    answer = "42" if right else str(chance.randrange(10, 99))
    if chance.random() < 0.02:
        return ""
    if chance.random() < 0.15 * (1 - skill):
        return f"{thought} so it is {answer}. [[quality:{quality:.3f}]]"
    return f"<think>{thought}</think>\n<answer>The answer is {answer}.</answer> [[quality:{quality:.3f}]]"


class Service:
    """The service, asked over connections that stay open."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.connect = lambda: kind(parts.hostname, parts.port, timeout=300)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.free = []

    def post(self, path, body):
        """The answer; refusals for lack of room are waited for and sent again."""
        data = json.dumps(body).encode()
        while True:
            connection = self.free.pop() if self.free else self.connect()
            connection.request("POST", path, data, self.headers)
            answer = connection.getresponse()
            text = answer.read()
            self.free.append(connection)
            if answer.status not in (429, 503):
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {text.decode(errors='replace')}")
        return json.loads(text)


def group(options, chance, step, number):
    """One prompt with its responses."""
    skill = step / max(1, options.steps - 1)
    greed = max(0.0, 2 * skill - 1)
    prompt = f"Question {number}: what is six times seven? Think first, then answer."
    responses = [response(chance, skill, greed) for _ in range(options.size)]
    return {
        "id": f"s{step}-g{number}",
        "group": f"s{step}-g{number}",
        "prompt": [{"role": "user", "content": prompt}],
        "reference": "<think>Six sevens.</think><answer>The answer is 42.</answer> [[quality:0.3]]",
        "responses": responses,
        "tokens": [len(text) // 4 for text in responses],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default=os.environ.get("PLAUDIT_URL", "http://127.0.0.1:7717"))
    parser.add_argument("--recipe", default="tutorial")
    parser.add_argument("--run", default="demo")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--groups", type=int, default=16, help="groups of a step")
    parser.add_argument("--size", type=int, default=8, help="responses of a group")
    parser.add_argument(
        "--pause", type=float, default=0.3, help="seconds between steps, in which a policy would learn"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    service = Service(options.url, os.environ.get("PLAUDIT_TOKEN"))
    chance = random.Random(options.seed)
    with ThreadPoolExecutor(8) as threads:
        for step in range(options.steps):
            began = time.perf_counter()
            groups = [group(options, chance, step, number) for number in range(options.groups)]
            said = {"recipe": options.recipe, "run": options.run, "step": step, "validate": step % 10 == 9}
            answers = threads.map(lambda one: service.post("/v1/score", {**said, "rollouts": [one]}), groups)
            totals = [result["total"] for answer in answers for result in answer["results"]]
            valid = [total for total in totals if total is not None]
            mean = sum(valid) / len(valid) if valid else float("nan")
            took = time.perf_counter() - began
            print(
                f"step {step:3}  {len(totals)} rollouts in {took:.2f} s  mean total {mean:+.3f}  "
                f"{len(totals) - len(valid)} invalid",
                file=sys.stderr,
            )
            time.sleep(options.pause)
    return 0


if __name__ == "__main__":
    sys.exit(main())
