"""Conversion of Python objects to the plain types of JSON: None, bool, int, float, str, list and dict."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from plaudit._plaudit import ArgumentError

MAX_DEPTH = 64
"""How deep a value may be nested; the engine takes no more."""

_PLAIN = (bool, int, float, str)


def plain(value: Any, *, strict: bool = False) -> Any:
    """Converts a value to the plain types of JSON, recursively.

    numpy scalars and arrays, tensors, mappings and sequences of any kind (OmegaConf), subclasses of the plain types and
    paths become what they stand for; keys become text. An object of any other type becomes its text, without the memory
    address that `repr` may show, so that one odd column of a data set neither stops a training nor differs between runs.

    Args:
        value: Anything. A plain value is returned as it is.
        strict: Raise for an object of any other type, in place of its text. For recipes, where a text that nobody wrote
            would change the meaning.

    Returns:
        The same value, made of None, bool, int, float, str, list and dict.

    Raises:
        ArgumentError: `strict`, and the value holds an object of another type.
            Or the value is nested deeper than the engine takes, as one that holds itself.

    Example:
        >>> plain({1: (True, None)})
        {'1': [True, None]}
    """
    return _at_depth(value, strict, 0)


def _at_depth(value: Any, strict: bool, depth: int) -> Any:
    if value is None or type(value) in _PLAIN:
        return value
    if depth > MAX_DEPTH:
        raise ArgumentError(f"nested deeper than {MAX_DEPTH}")
    if hasattr(value, "tolist"):
        return _at_depth(value.tolist(), strict, depth + 1)
    for kind in _PLAIN:
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(key): _at_depth(item, strict, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_at_depth(item, strict, depth + 1) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if strict:
        raise ArgumentError(f"{type(value).__name__} is not text, a number, a list or a dict")
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
