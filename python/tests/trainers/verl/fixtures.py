"""Configuration, tokenizer and rollouts for tests of verl's reward loop, made without downloads."""

from __future__ import annotations

import os
import pathlib
import uuid
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from tensordict import TensorDict

WORDS = (
    "yes",
    "no",
    "the",
    "answer",
    "is",
    "forty",
    "two",
    "because",
    "red",
    "green",
    "blue",
    "one",
    "cat",
    "dog",
    "print(input())",
)
MARKS = ("<pad>", "<unk>", "</s>", "<think>", "</think>", "<answer>", "</answer>")


def tokenizer(folder: pathlib.Path) -> pathlib.Path:
    """A tokenizer of a few words, saved where `hf_tokenizer` finds it, so that nothing is downloaded."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(MARKS + WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", eos_token="</s>", bos_token=None
    )
    fast.chat_template = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
    fast.save_pretrained(folder)
    return folder


def compose(model: pathlib.Path, *changes: str):
    """The wheel's own `ppo_trainer.yaml` with these changes, as the command line makes them."""
    import verl
    from hydra import compose as composed
    from hydra import initialize_config_dir

    folder = os.path.join(os.path.dirname(verl.__file__), "trainer", "config")
    with initialize_config_dir(config_dir=folder, version_base=None):
        config = composed(
            config_name="ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={model}",
                "data.train_batch_size=8",
                "actor_rollout_ref.rollout.name=vllm",
                "reward.reward_model.rollout.name=vllm",
                *changes,
            ],
        )
    return config


def plaudit(recipe: str | os.PathLike[str], *options: str) -> list[str]:
    """The lines that a user adds."""
    return [
        "reward.reward_manager.source=importlib",
        "reward.reward_manager.module.path=pkg://plaudit.verl",
        "reward.reward_manager.name=PlauditRewardManager",
        f"+reward.reward_kwargs.recipe={recipe}",
        *options,
    ]


def rollout(
    words: object,
    response: str,
    *,
    uid: str | None = None,
    session: int | None = 0,
    prompt: str = "is the answer forty two",
    reference: str | None = "yes",
    split: str = "train",
    source: str = "words",
    step: int = 1,
    extra: dict[str, object] | None = None,
    padding: int = 0,
):
    """One finished rollout, as the agent loop hands it to a reward worker: in V1 with `session_id`, in V0 with `priority`."""
    from verl import DataProto

    def ids(text: str) -> list[int]:
        return words.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]

    asked, said = ids(prompt), ids(response)
    mask = [1] * (len(asked) + len(said)) + [0] * padding
    said = said + [0] * padding
    tensors = {
        "prompts": torch.tensor([asked]),
        "responses": torch.tensor([said], dtype=torch.int64).reshape(1, len(said)),
        "attention_mask": torch.tensor([mask]),
        "input_ids": torch.tensor([asked + said]),
        "position_ids": torch.arange(len(mask)).unsqueeze(0),
    }
    columns: dict[str, object] = {
        "uid": uid if uid is not None else str(uuid.uuid4()),
        "data_source": source,
        "reward_model": {"style": "rule", "ground_truth": reference},
        "extra_info": {"split": split, "index": 0, **(extra or {})},
        "raw_prompt": [{"role": "user", "content": prompt}],
        "tool_extra_fields": {"global_steps": step, "turn_scores": [], "tool_rewards": []},
        "__num_turns__": 2,
    }
    if session is not None:
        columns["session_id"] = session
        columns["global_steps"] = step
    return DataProto(
        batch=TensorDict(tensors, batch_size=1),
        non_tensor_batch={name: column(value) for name, value in columns.items()},
    )


def column(value: object) -> np.ndarray:
    """A column of one row; dicts and lists stay objects."""
    held = np.empty(1, dtype=object)
    held[0] = value
    return held if isinstance(value, (dict, list)) else np.array([value])


def send(workers: Sequence[object], rollouts: Iterable[object], choose) -> list:
    """Hands every rollout to a worker, as the agent loop does, and returns the references of their answers."""
    return [choose(workers).compute_score.remote(data) for data in rollouts]
