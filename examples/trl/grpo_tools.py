"""An agent learns to use a calculator: TRL's GRPO trains a tiny random model with a tool, offline, on a CPU, in about a minute.

    pip install . "trl>=1.16" && python examples/trl/grpo_tools.py

The model is asked for a sum. It may call `add`, TRL runs the call and hands the result back as a turn of the tool, and the
model speaks again. The recipe pays for the right call, and for the right number in the model's own final words: that the
tool said it earns nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile

import torch
from datasets import Dataset
from grpo_tiny import Curve, tiny, told
from plaudit.trl import Reward
from transformers import PreTrainedTokenizerFast, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

RECIPE = {
    "name": "sums",
    "components": {
        "answer": {"reward": "number_accuracy", "weight": 1.0},
        "calls": {"reward": "tool_calls", "weight": 1.0, "arguments": "graded", "score": "f1"},
        "loops": {"reward": "action_loop", "weight": 0.2},
    },
}
SUMS = list(itertools.product(range(1, 4), repeat=2))
ASKED = [
    f"{please} {what} 2 + 3"
    for please in ("so", "please", "now", "")
    for what in ("add", "give", "what is", "")
]


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: The first number.
        b: The second number.

    Returns:
        Their sum.
    """
    return a + b


def call(a: int, b: int) -> str:
    """A call as the model writes it. It is one word of the tiny model, which could not learn to spell in a minute."""
    body = json.dumps({"name": "add", "arguments": {"a": a, "b": b}}, separators=(",", ":"))
    return f"<tool_call>{body}</tool_call>"


def chat(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Gives a tokenizer a chat template with tools, and says how to read calls back from what the model wrote."""
    tokenizer.chat_template = (
        "{% for message in messages %}<|{{ message.role }}|> {{ message.content }} "
        "{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call> {% endfor %}"
        "<eos> {% endfor %}{% if add_generation_prompt %}<|assistant|> {% endif %}"
    )
    tokenizer.response_template = {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|assistant|>",
        "fields": {
            "tool_calls": {
                "open": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close_pattern": r"<eos>\s*", "content": "text"},
        },
    }
    return tokenizer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=40)
    chosen = options.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    roles = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
    said = sorted({word for text in ASKED for word in text.split()} | set("123456"))
    model, tokenizer = tiny([*said, *(call(a, b) for a, b in SUMS)], special=roles)
    expected = json.dumps([{"name": "add", "arguments": {"a": 2, "b": 3}}])
    rows = [
        {"prompt": [{"role": "user", "content": text}], "answer": "5", "expected_calls": expected}
        for text in ASKED * 4
    ]
    curve = Curve("rewards/sums/mean")
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=Reward(RECIPE),
            tools=[add],
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=32,
                num_generations=8,
                max_completion_length=12,
                max_tool_calling_iterations=2,
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
            train_dataset=Dataset.from_list(rows),
            processing_class=chat(tokenizer),
            callbacks=[curve],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(told(curve.values))


if __name__ == "__main__":
    main()
