"""What does the CPU run start from? A Llama of a few thousand weights, a tokenizer of words, and questions in Parquet."""

import pathlib
import random
import sys

import pandas as pd
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MARKS = ("<pad>", "<unk>", "</s>", "<think>", "</think>", "<answer>", "</answer>")
WORDS = (
    "user",
    ":",
    "say",
    "what",
    "is",
    "red",
    "green",
    "blue",
    "or",
    "please",
    "yes",
    "no",
    "maybe",
    "then",
)


def main(folder: pathlib.Path, rows: int = 64) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    words = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(MARKS + WORDS)}, unk_token="<unk>")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", eos_token="</s>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder / "policy")
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
    LlamaForCausalLM(config).save_pretrained(folder / "policy")
    chance = random.Random(7)
    for split, count in (("train", rows), ("test", 8)):
        lines = []
        for index in range(count):
            colour = chance.choice(("red", "green", "blue"))
            lines.append(
                {
                    "data_source": "colours",
                    "prompt": [{"role": "user", "content": f"say {colour} please"}],
                    "ability": "words",
                    "reward_model": {"style": "rule", "ground_truth": f"<answer> {colour} </answer>"},
                    "extra_info": {"split": split, "index": index},
                }
            )
        pd.DataFrame(lines).to_parquet(folder / f"{split}.parquet")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
