"""A real TRL trainer on a CPU: a tiny model, and a tokenizer of a few words."""

from __future__ import annotations

from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

COLOURS = ["red", "green", "blue", "white"]
MARKS = [f"[[quality:{number}]]" for number in range(4)]
FILLERS = [f"w{number}" for number in range(20)]
QUESTIONS = [f"q{number}" for number in range(8)]


def tokenizer() -> PreTrainedTokenizerFast:
    """Every word is one token, so what the model says can be read word by word."""
    words = ["<pad>", "<eos>", "<unk>", *COLOURS, *MARKS, *FILLERS, *QUESTIONS, "user", "assistant"]
    inner = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    outer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    outer.chat_template = (
        "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}"
        "{% if add_generation_prompt %}assistant {% endif %}"
    )
    return outer


def model(seed: int = 0) -> Qwen2ForCausalLM:
    """A random Qwen2 of two layers; it knows nothing, so every rise in its reward was learnt."""
    torch.manual_seed(seed)
    words = tokenizer()
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
            pad_token_id=words.pad_token_id,
            eos_token_id=words.eos_token_id,
            bos_token_id=None,
            tie_word_embeddings=False,
        )
    )


def questions(count: int = 64, *, chat: bool = False, **columns: Any) -> Dataset:
    """`count` prompts of three words; every further column is the same in each row."""
    texts = [
        " ".join(QUESTIONS[(row + step) % len(QUESTIONS)] for step in (0, row // 8, 2 * row))
        for row in range(count)
    ]
    prompts = [[{"role": "user", "content": text}] for text in texts] if chat else texts
    return Dataset.from_dict(
        {"prompt": prompts, **{name: [value] * count for name, value in columns.items()}}
    )


def trainer(folder: Any, rewards: Any, data: Dataset, **settings: Any) -> GRPOTrainer:
    """A GRPO trainer on the CPU: four prompts of eight completions a step, unless `settings` say otherwise."""
    settings = {
        "per_device_train_batch_size": 32,
        "num_generations": 8,
        "max_completion_length": 12,
        "learning_rate": 5e-3,
        "beta": 0.0,
        "max_steps": 20,
        "logging_steps": 1,
        "seed": 0,
        "report_to": [],
        **settings,
    }
    return GRPOTrainer(
        model=model(),
        reward_funcs=rewards,
        args=GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            disable_tqdm=True,
            **settings,
        ),
        train_dataset=data,
        processing_class=tokenizer(),
    )


def logged(trained: GRPOTrainer, name: str) -> list[float]:
    """The values of one metric, step by step."""
    return [entry[name] for entry in trained.state.log_history if name in entry]


def fifths(values: list[float]) -> tuple[float, float]:
    """The means of the first and of the last fifth."""
    fifth = max(1, len(values) // 5)
    return sum(values[:fifth]) / fifth, sum(values[-fifth:]) / fifth
