"""A reward that rises: TRL's GRPO trains a tiny random model with a plaudit recipe: offline, on a CPU, in under a minute.

    pip install . "trl>=1.16" && python examples/trl/grpo_tiny.py

    python examples/trl/grpo_tiny.py --math      # the shipped recipe `math`: learns to box 3 where the reference is \\frac{6}{2}

With a judge, completions are compared within their group. A comparison has a mean of zero at every step, so what rises is a
second reward of weight 0 that looks at each completion alone:

    plaudit judge-sim --port 7718 --latency 0 &
    python examples/trl/grpo_tiny.py --judge http://127.0.0.1:7718/v1
"""

from __future__ import annotations

import argparse
import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from datasets import Dataset
from plaudit.trl import Reward
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import (
    PreTrainedTokenizerFast,
    PrinterCallback,
    Qwen2Config,
    Qwen2ForCausalLM,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

COLOURS = ["red", "green", "blue"]
MARKS = [f"[[quality:{number}]]" for number in range(4)]  # what the simulated judge looks for
BOXES = [f"\\boxed{{{number}}}" for number in range(8)]
QUESTIONS = [f"q{number}" for number in range(8)]
FILLERS = [f"w{number}" for number in range(20)]

RULES = {
    "name": "colours",
    "components": {
        "overlap": {"reward": "f1_score", "weight": 1.0, "tokenizer_type": "simple"},
        "length": {"reward": "total_length", "weight": 0.25, "unit": "token", "max": 16, "band": 8},
    },
}


def compared(url: str) -> dict:
    """A recipe whose judge compares the completions of a prompt in pairs."""
    return {
        "name": "compared",
        "components": {"quality": {"reward": "principle", "mode": "pairwise", "principles": ["helpfulness"]}},
        "judges": {"main": {"base_url": url, "model": "sim"}},
    }


def quality(completions: list[str], **_: object) -> list[float]:
    """The last mark of a completion, as a number: what the judge compares."""
    found = [[word for word in completion.split() if word in MARKS] for completion in completions]
    return [float(MARKS.index(marks[-1])) if marks else 0.0 for marks in found]


def tiny(
    words: list[str], special: list[str] | None = None
) -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """A random model of two layers, and a tokenizer for which every word is one token."""
    words = ["<pad>", "<eos>", "<unk>", *(special or []), *words]
    inner = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        additional_special_tokens=special or [],
        padding_side="left",
    )
    config = Qwen2Config(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    return Qwen2ForCausalLM(config), tokenizer


class Curve(TrainerCallback):
    """Prints one metric, step by step, and keeps it."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.values: list[float] = []

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        # TRL logs None of a step in which nothing could be scored.
        if logs and logs.get(self.metric) is not None:
            value = float(logs[self.metric])
            self.values.append(value)
            print(
                f"step {state.global_step:3d}  {self.metric} {value:6.3f}  {'#' * round(20 * max(value, 0.0))}",
                flush=True,
            )


def told(values: list[float]) -> str:
    """How the means of the first and of the last fifth differ."""
    fifth = max(1, len(values) // 5)
    first, last = sum(values[:fifth]) / fifth, sum(values[-fifth:]) / fifth
    return f"the reward {'rose' if last > first else 'fell'} from {first:.3f} to {last:.3f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=24)
    options.add_argument("--judge", metavar="URL", help="compare completions by the judge at this address")
    options.add_argument(
        "--math", action="store_true", help="compare an answer in a box by the recipe `math`"
    )
    chosen = options.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, tokenizer = tiny([*COLOURS, *MARKS, *BOXES, *QUESTIONS, *FILLERS])
    prompts = [f"{QUESTIONS[row % 8]} {QUESTIONS[row // 8]}" for row in range(64)]

    answer = "\\frac{6}{2}" if chosen.math else " ".join(COLOURS)
    if chosen.judge:
        rewards, weights = [Reward(compared(chosen.judge)), quality], [1.0, 0.0]
        curve = Curve("rewards/quality/mean")
    elif chosen.math:
        rewards, weights = [Reward("math")], [1.0]
        curve = Curve("rewards/math/mean")
    else:
        rewards, weights = [Reward(RULES)], [1.0]
        curve = Curve("rewards/colours/mean")

    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=rewards,
            args=GRPOConfig(
                output_dir=folder,
                reward_weights=weights,
                per_device_train_batch_size=32,
                num_generations=8,
                max_completion_length=12,
                learning_rate=5e-3,
                max_steps=chosen.steps,
                logging_steps=1,
                seed=0,
                use_cpu=True,
                bf16=False,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_dict({"prompt": prompts, "answer": [answer] * len(prompts)}),
            processing_class=tokenizer,
            callbacks=[curve],
        )
        trainer.remove_callback(PrinterCallback)  # it prints every metric of every step; the curve is enough
        trainer.train()

    print(told(curve.values))


if __name__ == "__main__":
    main()
