#!/usr/bin/env python3
"""Times the reward server of OpenRLHF: its own `serve_rm`, as it is, with a model that says 0 to everything.

Only what loads and runs a model is taken out: the reading of requests, the answers and the web server are OpenRLHF's.
Run by bench/serve.py in the environment of the OpenRLHF tests.
"""

import runpy
import sys
import types

import torch


class Model:
    """Stands where a reward model would be."""

    device = "cpu"

    def eval(self):
        return self

    def __call__(self, ids, _mask):
        return torch.zeros(len(ids))


def tokenizer(texts, **_):
    ones = torch.ones((len(texts), 1), dtype=torch.long)
    return {"input_ids": ones, "attention_mask": ones}


def main():
    models = types.ModuleType("openrlhf.models")
    models.get_llm_for_sequence_regression = lambda *_, **__: Model()
    sys.modules["openrlhf.models"] = models
    import openrlhf.utils

    openrlhf.utils.get_tokenizer = lambda *_, **__: tokenizer
    sys.argv = ["serve_rm", "--host", "127.0.0.1", "--port", sys.argv[1]]
    runpy.run_module("openrlhf.cli.serve_rm", run_name="__main__")


if __name__ == "__main__":
    main()
