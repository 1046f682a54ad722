#!/usr/bin/env python3
"""Times RM-Gallery 0.1.7 on the corpus: its public `evaluate(sample)`, one core, and `evaluate_batch`.

    bench/.venv/bin/python bench/peer.py [--budget 6] [--case NAME]... > peer.json

Prints one JSON object, {case: {"n", "cpu_s", "wall_s", "per_s"}}. `per_s` is samples per second of CPU time for
`evaluate`, and per second of wall time for the `/batch` cases, which use threads. Each case goes over the corpus
again and again until its budget of CPU seconds is spent; dictionaries and vocabularies are loaded before.
"""

import argparse
import contextlib
import gc
import importlib.machinery
import json
import os
import pathlib
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve().parent


def import_peer():
    """Imports RM-Gallery without its log file in the working directory and without its line on stdout."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(HERE / ".venv" / "tiktoken")
    # `datasets` is imported by the package but used by none of the rule rewards.
    stub = types.ModuleType("datasets")
    stub.__spec__ = importlib.machinery.ModuleSpec("datasets", None)
    stub.load_dataset = stub.Dataset = None
    sys.modules["datasets"] = stub
    os.chdir(HERE / ".venv")
    with contextlib.redirect_stdout(sys.stderr):
        import rm_gallery  # noqa: F401

    import logging

    import jieba

    jieba.setLogLevel(logging.ERROR)


def check_tokenizers():
    """RM-Gallery falls back to whitespace in silence when tiktoken fails; a benchmark of that would be worthless."""
    import tiktoken
    from rm_gallery.core.utils.tokenizer import JiebaTokenizer, TiktokenTokenizer

    text = "antidisestablishmentarianism is long"
    encoding = tiktoken.get_encoding("cl100k_base")
    expected = [encoding.decode([token]) for token in encoding.encode(text)]
    if len(expected) <= 3 or TiktokenTokenizer().tokenize(text) != expected:
        raise SystemExit("tiktoken is not in use: RM-Gallery fell back to whitespace")
    if len(JiebaTokenizer().tokenize("我们重新验算一遍")) < 3:
        raise SystemExit("jieba is not in use")


def read_samples(path):
    from rm_gallery.core.data.schema import DataOutput, DataSample, Step
    from rm_gallery.core.model.message import ChatMessage

    samples = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            answer = Step(role="assistant", content=row["response"], label={"reference": row["reference"]})
            question = ChatMessage(role="user", content=row["prompt"])
            samples.append(DataSample(unique_id=row["id"], input=[question], output=[DataOutput(answer=answer)]))
    return samples


def composition():
    from rm_gallery.core.reward.composition import SimpleComposition

    parts = {
        "format": {"cls": "reasoning_format", "params": {}},
        "length": {"cls": "length_penalty", "params": {}},
        "ngram": {"cls": "ngram_repetition_penalty", "params": {"tokenizer_type": "simple"}},
    }
    return SimpleComposition(name="composition", rewards=parts, weights={"format": 1.0, "length": 1.0, "ngram": 1.0})


def cases():
    """Case name, corpus, and how to make the reward; the engine's benchmark has the same names."""
    from rm_gallery.core.reward.registry import RewardRegistry

    def reward(key, **params):
        return lambda: RewardRegistry.get(key)(name=key, **params)

    ngram, f1 = "ngram_repetition_penalty", "f1_score"
    return {
        "reasoning_format": ("responses", reward("reasoning_format")),
        "reasoning_tool_call_format": ("responses", reward("reasoning_tool_call_format")),
        "reasoning_tool_call_format/tools": ("responses_tools", reward("reasoning_tool_call_format")),
        "length_penalty": ("responses", reward("length_penalty")),
        "ngram/simple": ("responses", reward(ngram, tokenizer_type="simple")),
        "ngram/simple_soft_5": ("responses", reward(ngram, tokenizer_type="simple", n=5, use_soft_penalty=True, min_scaling=0.1)),
        "ngram/jieba": ("responses", reward(ngram, tokenizer_type="jieba")),
        "ngram/tiktoken": ("responses", reward(ngram, tokenizer_type="tiktoken")),
        "privacy_leakage": ("responses", reward("privacy_leakage")),
        "accuracy": ("responses_short", reward("accuracy")),
        "number_accuracy": ("responses_short", reward("number_accuracy")),
        "f1/simple": ("responses", reward(f1, tokenizer_type="simple")),
        "f1/jieba": ("responses", reward(f1, tokenizer_type="jieba")),
        "f1/tiktoken": ("responses", reward(f1, tokenizer_type="tiktoken")),
        "rouge": ("responses", reward("rouge")),
        "code_syntax_check": ("responses_code", reward("code_syntax_check")),
        "code_style": ("responses_code", reward("code_style")),
        "code_patch_similarity": ("responses_code", reward("code_patch_similarity")),
        "composition": ("responses", composition),
        "reasoning_format/batch": ("responses", reward("reasoning_format")),
        "composition/batch": ("responses", composition),
    }


def measure(name, reward, samples, budget):
    batch = name.endswith("/batch")
    reward.evaluate(samples[0])
    count = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < budget:
        if batch:
            reward.evaluate_batch(samples)
            count += len(samples)
            continue
        for sample in samples:
            reward.evaluate(sample)
            count += 1
            if count % 8 == 0 and time.process_time() - cpu >= budget:
                break
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"n": count, "cpu_s": round(cpu, 4), "wall_s": round(wall, 4), "per_s": round(count / (wall if batch else cpu), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "data", help="folder that corpus.py wrote")
    parser.add_argument("--budget", type=float, default=6.0, help="CPU seconds a case")
    parser.add_argument("--case", action="append", help="only this case; may be given again")
    options = parser.parse_args()
    data = options.data.resolve()

    import_peer()
    check_tokenizers()
    known = cases()
    unknown = set(options.case or ()) - set(known)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(known)}")

    corpora, results = {}, {}
    for name, (corpus, make) in known.items():
        if options.case and name not in options.case:
            continue
        if corpus not in corpora:
            corpora[corpus] = read_samples(data / f"{corpus}.jsonl")
            # The peer's own garbage should not be charged for our corpus.
            gc.collect()
            gc.freeze()
        results[name] = measure(name, make(), corpora[corpus], options.budget)
        print(f"{name}: {results[name]['per_s']:,.1f}/s", file=sys.stderr)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
