"""A reward of tests that rises: TRL's GRPO teaches a tiny random model to write programs that pass their tests in plaudit's sandbox.

    pip install . "trl>=1.16" && python examples/trl/grpo_code.py

Every prompt is a task with four tests of its own, made up here: double a number, or add three to it. The words of the model are
statements, so that whatever it writes is a program. The reward is the share of tests that the program passes.
"""

from __future__ import annotations

import argparse
import random
import tempfile

import torch
from datasets import Dataset
from grpo_tiny import Curve, tiny, told
from plaudit.trl import Reward
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

TASKS = {"double": lambda number: 2 * number, "increase": lambda number: number + 3}
STATEMENTS = ["n=int(input());", "n=n+n;", "n=n+3;", "print(n);", "pass;"]
RECIPE = {
    "name": "tests",
    "components": {"tests": {"reward": "code_execution", "unfenced": True, "timeout": 2, "most_timeouts": 1}},
}


def task(row: int) -> dict:
    """A task with its tests. Zero is doubled by those who only print it."""
    name = list(TASKS)[row % len(TASKS)]
    numbers = [0, *random.Random(row // 8).sample(range(1, 50), 3)]
    tests = [{"input": str(number), "output": str(TASKS[name](number))} for number in numbers]
    return {"prompt": name, "tests": tests}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=60)
    chosen = options.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, tokenizer = tiny([*TASKS, *STATEMENTS])
    curve = Curve("rewards/tests/mean")
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=Reward(RECIPE),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=chosen.steps,
                per_device_train_batch_size=64,
                num_generations=16,
                max_completion_length=4,
                learning_rate=5e-3,
                beta=0.0,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                bf16=False,
                disable_tqdm=True,
                seed=0,
            ),
            train_dataset=Dataset.from_list([task(row) for row in range(32)]),
            processing_class=tokenizer,
            callbacks=[curve],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(told(curve.values))


if __name__ == "__main__":
    main()
