#!/usr/bin/env python3
"""What one judge call that times out does to a group: verl's manager `rate_limited`, and plaudit.

Four responses to one prompt. The judge scores three of them and never answers about the best one. The manager and the
advantages are verl's own; both sides ask the same judge over HTTP and wait for one second.

    python examples/verl/judge_timeout.py      # needs plaudit and verl 0.7.1 or later; no key, no GPU
"""

import asyncio
import http.server
import json
import threading

import aiohttp
import numpy as np
import plaudit
import torch
from omegaconf import OmegaConf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.limited import RateLimitedRewardManager
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

SCORES = {"a guess": 0.2, "half a proof": 0.5, "a proof with a gap": 0.7, "a whole proof": None}
RESPONSES = list(SCORES)
QUESTION = "Rate this answer from 0 to 1, as JSON like {\"score\": 0.5}: "


class Judge(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible judge that does not answer where it has no score."""

    ended = threading.Event()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["messages"][-1]["content"]
        score = next(score for response, score in SCORES.items() if response in asked)
        if score is None:
            self.ended.wait()
            return
        message = {"role": "assistant", "content": json.dumps({"score": score})}
        reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *args):
        pass


def rewards_of_verl(url):
    """What verl's own manager makes of a reward function that asks the judge."""

    async def compute_score(data_source, solution_str, ground_truth, extra_info):
        body = {"model": "demo", "messages": [{"role": "user", "content": QUESTION + solution_str}]}
        async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", json=body) as answer:
            content = (await answer.json())["choices"][0]["message"]["content"]
        return json.loads(content)["score"]

    alphabet = ["<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    letters = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, pad_token="<pad>")

    async def score_all():
        config = OmegaConf.create({"reward": {"timeout": 1.0, "max_concurrent": 4}})
        manager = RateLimitedRewardManager(config, tokenizer, compute_score)
        return await asyncio.gather(*(manager.run_single(rollout(response)) for response in RESPONSES))

    def rollout(response):
        tokens = tokenizer(response, return_tensors="pt")
        return DataProto.from_dict(
            tensors={"responses": tokens["input_ids"], "attention_mask": tokens["attention_mask"]},
            non_tensors={
                "data_source": np.array(["demo"], dtype=object),
                "reward_model": np.array([{"ground_truth": ""}], dtype=object),
                "extra_info": np.array([{}], dtype=object),
            },
        )

    return [answer["reward_score"] for answer in asyncio.run(score_all())]


def report_of_plaudit(url):
    """What plaudit makes of the same judge and the same time limit."""
    prompt = QUESTION + "<answer {{ fence }}>{{ response }}</answer {{ fence }}>"
    recipe = {
        "components": {
            "quality": {
                "reward": "judge",
                "mode": "pointwise",
                "prompt": prompt,
                "answer": {"json": "score", "min": 0, "max": 1},
            }
        },
        "judges": {"main": {"base_url": url, "model": "demo", "timeout": "1s", "attempts": 1, "hedge_share": 0}},
    }
    return plaudit.Engine(recipe).score(["Prove it."] * len(RESPONSES), RESPONSES)


def advantages(rewards):
    """verl's own GRPO advantages of one group."""
    shape = torch.tensor(rewards, dtype=torch.float32).unsqueeze(-1)
    group = np.array(["one"] * len(rewards))
    return compute_grpo_outcome_advantage(shape, torch.ones_like(shape), group)[0].squeeze(-1).tolist()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"

    theirs = rewards_of_verl(url)
    report = report_of_plaudit(url)
    Judge.ended.set()
    ours = report.totals_or_group_mean.tolist()

    print(f"{'':20}{'verl rate_limited':>21}  {'plaudit':>21}")
    print(f"{'response':20}{'reward':>10}{'advantage':>11}  {'reward':>10}{'advantage':>11}")
    columns = zip(RESPONSES, theirs, advantages(theirs), ours, advantages(ours), report.reasons)
    for response, reward, advantage, own, own_advantage, reason in columns:
        shown = "none" if reason else f"{own:.2f}"
        note = f"  {reason['code']}" if reason else ""
        print(f"{response:20}{reward:10.2f}{advantage:+11.2f}  {shown:>10}{own_advantage:+11.2f}{note}")


if __name__ == "__main__":
    main()
