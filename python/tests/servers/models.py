"""Tiny models for the servers, made in a second from numpy alone: a judge whose weights copy, and a reward model of random weights.

The judge is one layer of attention that looks a fixed number of tokens back, DISTANCE of them: queries and keys are constants, which
the rotary embedding turns by their positions, so that they meet at that distance and nowhere else. The chat template (judge.jinja)
ends a prompt with the answer in a window of fixed length; the model then copies it letter by letter, and the end of the turn with
it. So a server runs a real model with a real template, and its replies can be read without a training.

    python models.py FOLDER     writes FOLDER/judge, FOLDER/judge.gguf and FOLDER/reward
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file

# The names of ChatML, which servers look for.
START, END = "<|im_start|>", "<|im_end|>"
# The template writes an answer and dots, 96 letters in all, then <|im_start|>assistant and a line break. From the last of these tokens,
# the first letter is that far away.
DISTANCE = 96 + 11 - 1
# Half of the hidden state holds the code of the token that is read, the other half that of the token to write.
CODE = 64
ROPE_BASE = 1000.0
CONTEXT = 4096
TEMPLATE = (Path(__file__).parent / "judge.jinja").read_text()
CONVERSATION = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"

# The names of a layer's weights in GGUF files.
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def vocabulary() -> list[str]:
    """One token for each byte, in the letters that GPT-2's tokenizers write for them, and the two of ChatML."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = [chr(byte) for byte in plain] + [chr(256 + at) for at in range(len(others))]
    # Loaders want at least one merge: that of two spaces.
    return [END, START, *sorted(letters), "ĠĠ"]


def shapes() -> dict[str, tuple[int, ...]]:
    """The weights of a model of one layer by their names."""
    hidden, layer = 2 * CODE, "model.layers.0."
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (len(vocabulary()), hidden)}
    for name in ("input_layernorm", "post_attention_layernorm"):
        found[f"{layer}{name}.weight"] = (hidden,)
    for name in "qkvo":
        found[f"{layer}self_attn.{name}_proj.weight"] = (hidden, hidden)
    for name in "qkv":
        found[f"{layer}self_attn.{name}_proj.bias"] = (hidden,)
    for name in ("gate", "up"):
        found[f"{layer}mlp.{name}_proj.weight"] = (CODE, hidden)
    return found | {f"{layer}mlp.down_proj.weight": (hidden, CODE), "model.norm.weight": (hidden,)}


def copying() -> dict[str, np.ndarray]:
    """The weights that copy."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes().items()}
    for name in weights:
        if "norm" in name:
            weights[name][:] = 1
    draw = np.random.default_rng(0)
    codes = draw.choice([-1.0, 1.0], (len(vocabulary()), CODE))
    weights["model.embed_tokens.weight"][:, :CODE] = codes
    attention = "model.layers.0.self_attn."
    half = CODE // 2
    turn = DISTANCE * ROPE_BASE ** (-np.arange(half) / half)
    # Squared and divided by the root of the head's size, a score of 40 for each pair of letters that agree.
    strength = 40**0.5 * CODE**0.25
    weights[attention + "k_proj.bias"][:half] = strength
    weights[attention + "q_proj.bias"][:CODE] = strength * np.concatenate([np.cos(turn), -np.sin(turn)])
    weights[attention + "v_proj.weight"][:CODE, :CODE] = np.eye(CODE)
    weights[attention + "o_proj.weight"][CODE:, :CODE] = np.eye(CODE)
    weights["lm_head.weight"] = np.zeros((len(vocabulary()), 2 * CODE), np.float32)
    weights["lm_head.weight"][:, CODE:] = codes / 2
    return weights


def random() -> dict[str, np.ndarray]:
    """Random weights with a head of one number."""
    draw = np.random.default_rng(1)
    weights = {
        name: draw.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in (shapes() | {"score.weight": (1, 2 * CODE)}).items()
    }
    return weights | {name: np.ones(shape, np.float32) for name, shape in shapes().items() if "norm" in name}


def write(folder: Path, architecture: str, weights: dict[str, np.ndarray], template: str) -> None:
    """A model as the hub has it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens = {token: at for at, token in enumerate(vocabulary())}
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": "qwen2",
        "vocab_size": len(tokens),
        "hidden_size": 2 * CODE,
        "intermediate_size": CODE,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE},
        "rope_theta": ROPE_BASE,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "dtype": "float32",
        "bos_token_id": None,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    off = dict.fromkeys(("normalized", "single_word", "lstrip", "rstrip"), False)
    special = [{"id": at, "content": token, "special": True, **off} for at, token in enumerate((END, START))]
    bpe = {"type": "BPE", "vocab": tokens, "merges": [["Ġ", "Ġ"]]}
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": bytes_,
        "decoder": bytes_,
        "model": bpe,
    }
    tokenizer |= {"truncation": None, "padding": None, "normalizer": None, "post_processor": None}
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END}
    files = {
        "config.json": config,
        "generation_config.json": {"do_sample": False, "eos_token_id": 0, "pad_token_id": 0},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": names | {"chat_template": template},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def write_gguf(path: Path, weights: dict[str, np.ndarray], template: str) -> None:
    """The same as llama.cpp has it."""
    file = gguf.GGUFWriter(path, "qwen2")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(2 * CODE)
    file.add_block_count(1)
    file.add_feed_forward_length(CODE)
    file.add_head_count(2)
    file.add_head_count_kv(2)
    file.add_rope_freq_base(ROPE_BASE)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(vocabulary())
    kinds = [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * (len(vocabulary()) - 2)
    file.add_token_types(kinds)
    file.add_token_merges(["Ġ Ġ"])
    file.add_eos_token_id(0)
    file.add_add_bos_token(False)
    file.add_chat_template(template)
    for name, values in weights.items():
        short, kind = name.removeprefix("model.layers.0.").rsplit(".", 1)
        block = "blk.0." if "layers" in name else ""
        file.add_tensor(f"{block}{GGUF_NAMES[short]}.{kind}", values)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def make(folder: Path) -> None:
    """Writes all models."""
    write(folder / "judge", "Qwen2ForCausalLM", copying(), TEMPLATE)
    write_gguf(folder / "judge.gguf", copying(), TEMPLATE)
    write(folder / "reward", "Qwen2ForSequenceClassification", random(), CONVERSATION)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
