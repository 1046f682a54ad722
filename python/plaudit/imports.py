"""Imports modules that register custom rewards: for the command's `--import` and the adapters' `imports`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType


def load(module: str) -> ModuleType:
    """Imports a module by its dotted name, or by the path of its file.

    A file is a module under the name of the file, without its `.py`. One that has been imported is not run again.

    Args:
        module: Such as `my_rewards`, `package.my_rewards` or `rewards/mine.py`.

    Returns:
        The module.

    Raises:
        ImportError: There is no such module.
    """
    if not module.endswith(".py"):
        return importlib.import_module(module)
    path = os.path.abspath(module)
    name = os.path.basename(path)[: -len(".py")]
    known = sys.modules.get(name)
    if known is not None and os.path.abspath(getattr(known, "__file__", None) or "") == path:
        return known
    if known is not None:
        raise ImportError(
            f"a module {name!r} is imported already, from {getattr(known, '__file__', 'Python itself')}"
        )
    if not os.path.isfile(path):
        raise ImportError(f"there is no file {module!r}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    try:
        spec.loader.exec_module(found)
    except BaseException:
        del sys.modules[name]
        raise
    return found


def for_command(module: str) -> str | None:
    """Imports a module for the command, and returns why it cannot be imported, where that is so.

    Modules of the current folder are found, as with `python -m`. What they print goes to stderr, because stdout is the command's.
    """
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    sys.stdout = sys.stderr
    try:
        load(module)
    except ImportError as error:
        own = error.name is None or module == error.name or module.startswith(f"{error.name}.")
        return str(error) if own else _traceback(error)
    except BaseException as error:
        return _traceback(error)
    return None


def _traceback(error: BaseException) -> str:
    """The error with the lines of the module that led to it, without those of the import system and of this file."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    lines = [*traceback.format_list(shown), *traceback.format_exception_only(error)]
    return "it cannot be imported\n" + "".join(lines).rstrip()
