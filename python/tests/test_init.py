"""What `plaudit init` tells to paste: the Python of it runs, with the recipe that it wrote."""

from __future__ import annotations

import ast
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import plaudit
from conftest import BINARY


def init(folder: Path, trainer: str, task: str) -> str:
    """Writes the recipe of a task to `folder/recipe.yaml`, and gives back the snippet for the trainer."""
    command = [BINARY, "init", "--trainer", trainer, "--task", task, "--out", str(folder / "recipe.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""
    return textwrap.dedent(done.stderr.split("\n\nFor ")[1].split("\n", 1)[1])


def test_the_snippet_for_python_runs(tmp_path: Path):
    scene = {
        "prompts": ["3x + 5 = 20, x?"] * 2,
        "responses": [r"\boxed{5}", r"\boxed{6}"],
        "references": ["5"] * 2,
        "extras": None,
    }
    exec(init(tmp_path, "none", "math"), scene)
    np.testing.assert_allclose(scene["report"].totals, [1.0, 0.0])


def test_the_snippet_for_trl_names_a_reward_that_loads(tmp_path: Path):
    tree = ast.parse(init(tmp_path, "trl", "chat"))
    made = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reward"
    )
    from plaudit.trl import Reward

    reward = eval(ast.unparse(made), {"Reward": Reward})
    assert reward.components == ("quality", "format", "length", "ngram")


def test_the_snippet_for_ray_is_python(tmp_path: Path):
    source = init(tmp_path, "ray", "writing")
    assert str(tmp_path / "recipe.yaml") in source
    compile(source, "snippet", "exec")
    assert plaudit.Engine(str(tmp_path / "recipe.yaml")).compares_groups is False
