#!/usr/bin/env python3
"""RM-Gallery's tutorial on rewards for VERL with plaudit, step by step, offline.

    python examples/tutorial.py                                    # the embedded judge; no model, no network
    python examples/tutorial.py --judge http://127.0.0.1:7718/v1   # any OpenAI-compatible one, such as
    `plaudit judge-sim`

Needs the Python package. Where verl 0.4 to 0.7.0 and torch are installed too, the last step runs on verl's
own data.
"""

import argparse
import json
import pathlib
import random
import statistics

import plaudit
from plaudit.verl import PlauditBatchRewardManager

EXAMPLES = pathlib.Path(__file__).resolve().parent


def read_groups(count):
    """The rollouts of some prompts with references, in disorder, as a trainer that balances its load has."""
    lines = (EXAMPLES / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    whole = [row.get("reference") and row.get("tokens") and isinstance(row["prompt"], str) for row in rows]
    lacking = {row["group"] for row, fits in zip(rows, whole, strict=True) if not fits}
    names = list(dict.fromkeys(row["group"] for row in rows if row["group"] not in lacking))[:count]
    chosen = [row for row in rows if row["group"] in names]
    random.Random(1).shuffle(chosen)
    return chosen


def column(rows, name):
    return [row.get(name) for row in rows]


def show(title):
    print(f"\n== {title}")


def setting_up(judge):
    """1. Setting up: the recipe is the reward function.

    The tutorial writes `create_rm_gallery_reward_function`, which adds 0.95 x principles, 0.05 x format, the
    length and the n-gram penalty. That is the shipped recipe `tutorial`. Only the judge is yours to name.
    """
    show("1. The recipe")
    overrides = {"judges.main": {"kind": "overlap"}} if judge is None else {"judges.main.base_url": judge}
    engine = plaudit.Engine("tutorial", overrides=overrides)
    for name in engine.components:
        print(f"{name:16} weight {engine.weights[name]:g}")
    return overrides


def one_group(overrides, rows):
    """2. One group: all responses to a prompt are judged against each other, which is what GRPO learns from.

    The tutorial calls `single_compute_score` in a thread for every group. The engine takes all groups in one
    call, and judges them side by side.
    """
    show("2. One group")
    group = [row for row in rows if row["group"] == rows[0]["group"]]
    report = plaudit.Engine("tutorial", overrides=overrides).score(
        column(group, "prompt"),
        column(group, "response"),
        column(group, "reference"),
        tokens=column(group, "tokens"),
    )
    for at in (-report.totals).argsort():
        told = ", ".join(f"{name} {values[at]:+.2f}" for name, values in report.components.items())
        print(f"{group[at]['id']}  {report.totals[at]:+.3f}  {report.outcomes[at]:8} {told}")


def a_batch(overrides, rows):
    """3. The reward manager: a batch in, one number a rollout out, with what is to be logged.

    `RMGalleryRewardManager(tokenizer, num_examine, ...)` of the tutorial has the same arguments here. Rows
    may come in any order; groups must have the same size. A rollout that could not be scored gets the mean of
    its siblings and is flagged.
    """
    show("3. A batch")
    manager = PlauditBatchRewardManager(overrides=overrides, max_workers=8, timeout=300.0)
    scored = manager.score_batch(
        column(rows, "prompt"),
        column(rows, "response"),
        column(rows, "reference"),
        groups=column(rows, "group"),
        tokens=column(rows, "tokens"),
    )
    print(f"{len(rows)} rollouts, rewards from {min(scored.rewards):+.3f} to {max(scored.rewards):+.3f}")
    for key, values in scored.info.items():
        print(f"{key:28} {statistics.fmean(values):+.4f} in the mean")
    return scored


def validation(overrides, rows):
    """4. Validation: the reference answer joins every group as a rival, and its own score is taken out again.

    The tutorial does so with `is_val_mode=True`. Under verl it happens by itself while the trainer validates. The
    embedded judge finds nothing better than the reference itself, so that nobody wins before it.
    """
    show("4. Validation against the references")
    manager = PlauditBatchRewardManager(overrides=overrides, is_val_mode=True)
    scored = manager.score_batch(
        column(rows, "prompt"),
        column(rows, "response"),
        column(rows, "reference"),
        groups=column(rows, "group"),
        tokens=column(rows, "tokens"),
    )
    for key in ("win", "win_and", "comparison_score", "acc"):
        print(f"{key:28} {statistics.fmean(scored.info[key]):+.4f} in the mean")


def answers_briefly(prompt, responses, extras, **kwargs):
    """A reward function with the tutorial's signature: scores, and columns to log."""
    words = [len(response.split()) for response in responses]
    longest = max(words)
    return [1.0 - count / longest for count in words], {
        "words": words,
        "last_mean_std": kwargs.get("last_mean_std", 0.0),
    }


def of_ones_own(rows):
    """5. A function of your own: `compute_score(prompt, responses, extras, **kwargs)`, on all groups.

    One that raises, or hangs for longer than `timeout`, costs its own group and no other. `async def` works
    too.
    """
    show("5. A function of one's own")
    manager = PlauditBatchRewardManager(compute_score=answers_briefly, max_workers=8, timeout=300.0)
    scored = manager.score_batch(
        column(rows, "prompt"), column(rows, "response"), groups=column(rows, "group")
    )
    print(f"rewards from {min(scored.rewards):+.3f} to {max(scored.rewards):+.3f}")
    print(f"{'words':28} {statistics.fmean(scored.info['words']):.1f} in the mean")


def a_judge_that_is_down(rows):
    """6. A judge that is down: the tutorial's -999.0, without what it does to a group.

    By default nobody learns from what was not scored. `invalid=-999.0` is the tutorial's way.
    """
    show("6. A judge that is down")
    down = {"judges.main.base_url": "http://127.0.0.1:9/v1", "judges.main.patience": "1ms"}
    for invalid in ("mean", -999.0):
        manager = PlauditBatchRewardManager(overrides=down, invalid=invalid)
        scored = manager.score_batch(
            column(rows, "prompt"), column(rows, "response"), groups=column(rows, "group")
        )
        at = scored.invalid.index(True)
        flagged = f"{sum(scored.invalid)} of {len(rows)} are flagged"
        print(f"invalid={invalid}: {flagged}; the first gets {scored.rewards[at]:g}: {scored.reasons[at]}")


def with_verl(overrides, rows, expected):
    """7. verl's own data: padded tokens in, and the reward at the last token of each response."""
    show("7. verl")
    try:
        import numpy as np
        import torch
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast
        from verl import DataProto
    except ImportError as missing:
        print(f"not shown here: {missing}. The lines for a real run are in docs/guide/from-rm-gallery.md")
        return
    # A tokenizer of single bytes, so that what is decoded is what was written.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = Tokenizer(models.BPE(vocab={text: at for at, text in enumerate(["<pad>", *alphabet])}, merges=[]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", clean_up_tokenization_spaces=False
    )

    def padded(texts, side):
        tokenizer.padding_side = side
        return tokenizer(texts, padding=True, return_tensors="pt")

    prompts, responses = padded(column(rows, "prompt"), "left"), padded(column(rows, "response"), "right")
    data = DataProto.from_dict(
        tensors={
            "prompts": prompts["input_ids"],
            "responses": responses["input_ids"],
            "attention_mask": torch.cat([prompts["attention_mask"], responses["attention_mask"]], dim=1),
        },
        non_tensors={
            "uid": np.array(column(rows, "group"), dtype=object),
            "data_source": np.array(["examples"] * len(rows), dtype=object),
            "reward_model": np.array([{"ground_truth": row["reference"]} for row in rows], dtype=object),
        },
    )
    manager = PlauditBatchRewardManager(tokenizer, num_examine=0, overrides=overrides)
    result = manager(data, return_dict=True)
    reward_tensor, judged = result["reward_tensor"], result["reward_extra_info"]["reward_principle"]
    print(f"a tensor of {tuple(reward_tensor.shape)}, {int((reward_tensor != 0).sum())} rewards in it")
    # A token is a byte here, so that only the length is counted otherwise.
    print(f"judged as the plain lists were: {judged == expected}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--judge", metavar="URL", help="an OpenAI-compatible endpoint instead of the embedded judge"
    )
    parser.add_argument("--groups", type=int, default=4)
    options = parser.parse_args()
    rows = read_groups(options.groups)
    overrides = setting_up(options.judge)
    one_group(overrides, rows)
    scored = a_batch(overrides, rows)
    validation(overrides, rows)
    of_ones_own(rows)
    a_judge_that_is_down(rows)
    with_verl(overrides, rows, scored.info["reward_principle"])


if __name__ == "__main__":
    main()
