"""OpenRLHF's own rollout path on a CPU: a tokenizer of a few words, and its Ray actors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
STAND_IN = str(HERE / "stand_in")
FILE = str(ROOT / "python" / "plaudit" / "openrlhf.py")
PLAUDIT = os.environ.get("PLAUDIT_BIN", str(ROOT / "target" / "release" / "plaudit"))

if STAND_IN not in sys.path:
    sys.path.insert(0, STAND_IN)


def tokenizer() -> Any:
    """Every word is one token: marks for the judge, colours for the rules, and prompts."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    marks = [f"[[quality:{number}]]" for number in range(4)]
    words = [
        "<pad>",
        "<eos>",
        "<unk>",
        *marks,
        "red",
        "green",
        "blue",
        "white",
        *(f"q{number}" for number in range(64)),
    ]
    inner = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def actors(count: int, environment: dict[str, str], *, agent: bool = False) -> list[Any]:
    """OpenRLHF's own rollout actors, that load plaudit's file as a training would have them do."""
    from openrlhf.trainer.ray.vllm_engine import RolloutRayActor

    path = os.pathsep.join([STAND_IN, str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    given = {"agent_func_path": FILE} if agent else {"remote_rm_url": [FILE]}
    return [
        RolloutRayActor.options(
            num_cpus=0, runtime_env={"env_vars": {**environment, "PYTHONPATH": path}}
        ).remote(num_gpus=0, seed=seed, **given)
        for seed in range(count)
    ]


def generate(engines: list[Any], prompts: list[str], labels: list[Any], samples: int) -> list[Any]:
    """One batch by OpenRLHF's sample generator: what it makes of the rewards are its own experiences."""
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

    rollout = SimpleNamespace(n_samples_per_prompt=samples)
    advantage = SimpleNamespace(is_correction_level="off")
    args = SimpleNamespace(rollout=rollout, algo=SimpleNamespace(advantage=advantage))
    generator = SamplesGenerator(SimpleNamespace(args=args), None, None, tokenizer(), engines)
    batches = iter([(None, prompts, labels, [None] * len(prompts))])
    experiences, consumed, _ = generator._generate_vllm(
        batches, len(prompts), False, max_new_tokens=16, max_len=64
    )
    assert consumed == len(prompts)
    return experiences


def texts(experiences: list[Any]) -> list[str]:
    """What the model said in each experience."""
    words = tokenizer()
    return [
        words.decode(each.sequences[0], skip_special_tokens=True)[len(each.prompts[0]) + 1 :]
        for each in experiences
    ]
