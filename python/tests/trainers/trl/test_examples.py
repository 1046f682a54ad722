"""The examples of training with TRL, run as a user runs them: the reward rises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples" / "trl"


@pytest.mark.parametrize(
    ("command", "rise"),
    [("grpo_tiny.py", 0.3), ("grpo_tiny.py --math", 0.4), ("grpo_tools.py", 0.6), ("grpo_code.py", 0.4)],
)
def test_the_reward_of_an_example_rises(command: str, rise: float) -> None:
    script, *options = command.split()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *options],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    told = re.search(r"the reward rose from (\S+) to (\S+)", done.stdout)
    assert done.returncode == 0 and told, done.stdout + done.stderr
    assert float(told[2]) > float(told[1]) + rise, told[0]
