"""Inputs of the CPU run: a Llama of a few thousand weights, a tokenizer of words, and questions in Parquet.

python make_inputs.py FOLDER            asks for colours
python make_inputs.py FOLDER tools      asks for sums, which a policy may have calculated by a tool
"""

import itertools
import json
import pathlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MARKS = ("<pad>", "<unk>", "</s>", "<think>", "</think>", "<answer>", "</answer>")
COLOURS = ("red", "green", "blue")
WORDS = ("user", ":", "say", "what", "is", *COLOURS, "or", "please", "yes", "no", "maybe", "then")
TURNS = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
CHATML = (
    "{% for m in messages %}<|im_start|> {{ m['role'] }} \n {{ m['content'] }} "
    "{% for call in m['tool_calls'] or [] %}<tool_call> {{ call['function'] | tojson }} </tool_call> {% endfor %}"
    "<|im_end|> \n {% endfor %}{% if add_generation_prompt %}<|im_start|> assistant \n {% endif %}"
)


def colours(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Questions for a colour."""
    while True:
        colour = chance.choice(COLOURS)
        yield {
            "data_source": "colours",
            "prompt": [{"role": "user", "content": f"say {colour} please"}],
            "reward_model": {"style": "rule", "ground_truth": f"<answer> {colour} </answer>"},
            "extra_info": {},
        }


def sums(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Questions for a sum, with the call that is expected."""
    while True:
        a, b = chance.randint(1, 3), chance.randint(1, 3)
        yield {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": f"what is {a} + {b}"}],
            "reward_model": {"style": "rule", "ground_truth": str(a + b)},
            "extra_info": {"expected_calls": json.dumps([{"name": "add", "arguments": {"a": a, "b": b}}])},
        }


def call(a: int, b: int) -> str:
    """A call as the policy writes it. It is one word of the policy, which cannot spell."""
    body = json.dumps({"name": "add", "arguments": {"a": a, "b": b}}, separators=(",", ":"))
    return f"<tool_call>{body}</tool_call>"


def write_policy(folder: pathlib.Path, words: list[str], template: str) -> None:
    """A random policy, for which every word and every line break is one token."""
    inner = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\n"), "isolated"), pre_tokenizers.Split(Regex(r"[ \t]+"), "removed")]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", unk_token="<unk>", eos_token=words[2]
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def main(folder: pathlib.Path, task: str = "colours", rows: int = 64) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if task == "tools":
        said = ["user", "assistant", "tool", "\n", "what", "is", "+", *map(str, range(1, 7))]
        calls = [call(a, b) for a, b in itertools.product(range(1, 4), repeat=2)]
        write_policy(
            folder / "policy", ["<pad>", "<unk>", "<|im_end|>", "<|im_start|>", *said, *calls], CHATML
        )
    else:
        write_policy(folder / "policy", [*MARKS, *WORDS], TURNS)
    questions = {"tools": sums, "colours": colours}[task](random.Random(7))
    for split, count in (("train", rows), ("test", 8)):
        lines = list(itertools.islice(questions, count))
        for index, line in enumerate(lines):
            line["extra_info"].update(split=split, index=index)
        pd.DataFrame(lines).to_parquet(folder / f"{split}.parquet")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
