"""`python -m plaudit.verl check OVERRIDES...`: checks a run of verl before a GPU is touched.

It takes what goes to `python -m verl.trainer.main_ppo`, composes the same configuration, and looks at plaudit's settings, the
recipe, the number of reward workers, the columns of the data, the judges and the sandbox. Exit code 0: all is well; 1: something
is not; 2: there is no such configuration.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plaudit._plaudit import PlauditError
from plaudit.preflight import Checks, check_data, check_versions
from plaudit.values import plain
from plaudit.verl import config_checks
from plaudit.verl.options import Options


def main(arguments: Sequence[str]) -> int:
    """Runs all checks; returns the exit code."""
    parser = argparse.ArgumentParser("python -m plaudit.verl", description=__doc__, allow_abbrev=False)
    parser.add_argument("verb", choices=["check"])
    parser.add_argument("--config-name", default="ppo_trainer", help="as for main_ppo")
    parser.add_argument("--config-path", help="as for main_ppo: the folder of another configuration")
    parser.add_argument("overrides", nargs="*", help="as for main_ppo")
    chosen = parser.parse_intermixed_args(arguments)
    checks = Checks()
    check_versions(checks, "verl")
    if checks.code:
        return 2
    try:
        config = compose(chosen.config_path, chosen.config_name, chosen.overrides)
    except Exception as error:  # noqa: BLE001 - Hydra has an exception for each kind of mistake.
        cause = f"\n{error.__cause__}" if error.__cause__ else ""
        checks.fail("configuration", f"{error}{cause}")
        return 2
    check(checks, config)
    return checks.code


def compose(folder: str | None, name: str, overrides: Sequence[str]) -> Any:
    """The configuration, as `main_ppo` makes it."""
    import hydra

    spec = find_spec("verl")
    assert spec is not None and spec.origin is not None
    own = Path(spec.origin).parent / "trainer" / "config"
    place = own if folder is None else Path(folder).absolute()
    with hydra.initialize_config_dir(str(place), version_base=None):
        return hydra.compose(name, overrides=list(overrides))


def check(checks: Checks, config: Any) -> None:
    """All checks of a configuration."""
    check_manager(checks, config)
    try:
        options = Options.read(config)
    except (ValueError, PlauditError) as error:
        checks.fail("settings", str(error))
        return
    checks.good("settings", f"reward.reward_kwargs: {', '.join(plain(config.reward.reward_kwargs))}")
    actor_config = options.actor_config()
    try:
        engine = actor_config.engine(state=False)
    except Exception as error:  # noqa: BLE001 - a module of `imports` may raise anything.
        checks.fail("recipe", f"{type(error).__name__}: {error}")
        return
    made = int(config.actor_rollout_ref.rollout.n)
    loop = str(config.actor_rollout_ref.rollout.agent.get("default_agent_loop", ""))
    try:
        config_checks.check(
            config,
            options,
            compares=engine.compares_groups,
            size=made if options.size is None else options.size,
            waits_in_ray=not loop.startswith("plaudit"),
        )
        engine.check_group_size(made)
    except (ValueError, PlauditError) as error:
        checks.fail("workers", str(error))
    else:
        checks.good("workers", f"{config.reward.num_workers} reward workers, groups of {made}")
    with tempfile.TemporaryDirectory() as folder:
        recipe = recipe_arguments(actor_config.recipe, actor_config.overrides, Path(folder))
        if options.router is not None:
            checks.good("recipe", f"{engine.name}: {', '.join(engine.components)}")
            checks.doubt("judges", f"not asked: verl will host `{options.router}`")
        else:
            checks.doctor(*recipe)
        check_files(checks, config, options, recipe)


def check_manager(checks: Checks, config: Any) -> None:
    """Whether verl will ask plaudit at all."""
    manager = config.reward.reward_manager
    source, name = str(manager.get("source", "register")), str(manager.name)
    module = str((manager.get("module") or {}).get("path"))
    if source == "importlib" and module == "pkg://plaudit.verl" and name == "PlauditRewardManager":
        checks.good("reward manager", f"{name} of {module}")
    elif source == "register" and name == "plaudit":
        checks.good("reward manager", name)
    else:
        checks.fail(
            "reward manager",
            f"verl will ask `{name}` and not plaudit: add reward.reward_manager.source=importlib "
            "reward.reward_manager.module.path=pkg://plaudit.verl reward.reward_manager.name=PlauditRewardManager",
        )


def check_files(checks: Checks, config: Any, options: Options, recipe: Sequence[str] | None) -> None:
    """The data sets, each as the reward manager will read it."""
    reference = [options.reference] if isinstance(options.reference, str) else list(options.reference)
    for name in ("train_files", "val_files"):
        files = plain(config.data.get(name))
        for file in [files] if isinstance(files, str) else files or []:
            path = Path(str(file)).expanduser()
            if "://" in str(file):
                checks.doubt(name, f"{file} is not on this machine, and was not looked at")
            elif not path.exists():
                checks.fail(name, f"{file} does not exist")
            else:
                check_data(checks, "verl", str(path), recipe, reference=reference)


def recipe_arguments(recipe: Any, overrides: dict[str, Any] | None, folder: Path) -> list[str]:
    """The recipe and its overrides as the command takes them; a recipe that is a tree becomes a file."""
    if not isinstance(recipe, str):
        file = folder / "recipe.yaml"
        file.write_text(json.dumps(plain(recipe)))
        recipe = str(file)
    given = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (overrides or {}).items()
    }
    return [
        "--recipe",
        recipe,
        *(word for key, value in given.items() for word in ("--set", f"{key}={value}")),
    ]
