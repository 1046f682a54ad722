"""Values as typed data: what comes out of a box, and what crosses between the program's box and the test's.

A scalar that JSON has is itself; all else is a list of a letter and its content. Reading makes values of the built-in classes
and nothing else, so that a value cannot say of itself what it equals.
"""

import json
import os
import sys

# Integers that every reader of JSON reads exactly.
EXACT = 1 << 53
# How many items of an iterator are sent.
ITEMS = 10_000
# Classes whose objects stand for others; each side has its own.
HANDLES = ()
# Classes of the standard library that are a text.
TEXTS = {
    "decimal.Decimal": str,
    "fractions.Fraction": str,
    "datetime.date": lambda value: value.isoformat(),
    "datetime.datetime": lambda value: value.isoformat(),
    "datetime.time": lambda value: value.isoformat(),
}


def plain(value, depth=0):
    """The value as typed data; an object of any other class by its letter alone."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -EXACT < value < EXACT else ["i", hex(value)]
    if kind is float:
        return ["f", value.hex()]
    if kind is complex:
        return ["c", value.real.hex(), value.imag.hex()]
    if kind is bytes or kind is bytearray:
        return ["y" if kind is bytes else "a", value.hex()]
    # Of a subclass the value counts, and not what its methods say.
    for base, exact in ((str, str.__str__), (int, int.__pos__), (float, float.__pos__)):
        if isinstance(value, base) and issubclass(kind, base):
            return plain(exact(value), depth)
    if kind in HANDLES:
        return other(value)
    if depth > 100:
        return ["o"]

    def items(found):
        return [plain(item, depth + 1) for item in found]

    if isinstance(value, dict):
        return ["d", [[plain(key, depth + 1), plain(item, depth + 1)] for key, item in dict.items(value)]]
    for base, letter in ((list, "l"), (tuple, "t"), (set, "e"), (frozenset, "z")):
        if isinstance(value, base):
            return [letter, items(base.__iter__(value))]
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name == "collections.deque":
        return ["q", items(value)]
    if name in TEXTS:
        return ["x", name, TEXTS[name](value)]
    if kind is range:
        return ["r", value.start, value.stop, value.step]
    if name in ("builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"):
        return ["v", items(value)]
    if name.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    if hasattr(kind, "__next__"):
        found = [item for item, _ in zip(value, range(ITEMS + 1))]
        return ["g", items(found[:ITEMS]), len(found) > ITEMS]
    return other(value)


def endless(found, more):
    """An iterator over what was sent of another."""
    yield from found
    if more:
        raise RuntimeError(f"more than {ITEMS} items of an iterator")


def value_of(data):
    """The value that typed data mean. Raises where they mean none."""
    if data is None or type(data) in (bool, int, str):
        return data
    if type(data) is not list:
        raise ValueError("no typed data")
    letter, *content = data
    if letter == "i":
        return int(content[0], 16)
    if letter == "f":
        return float.fromhex(content[0])
    if letter == "c":
        return complex(*map(float.fromhex, content))
    if letter in ("y", "a"):
        value = bytes.fromhex(content[0])
        return value if letter == "y" else bytearray(value)
    if letter == "d":
        return {value_of(key): value_of(item) for key, item in content[0]}
    if letter == "x" and content[0] in TEXTS:
        module, name = content[0].split(".")
        kind = getattr(__import__(module), name)
        return kind.fromisoformat(content[1]) if module == "datetime" else kind(content[1])
    if letter == "r":
        return range(*content)
    if letter not in ("l", "t", "e", "z", "q", "v", "g"):
        return known(data)
    items = [value_of(item) for item in content[0]]
    if letter == "g":
        return endless(items, content[1])
    if letter == "q":
        import collections

        return collections.deque(items)
    return {"t": tuple, "e": set, "z": frozenset}.get(letter, list)(items)


def send(descriptor, message):
    """Writes one line."""
    text = (json.dumps(message) + "\n").encode()
    while text:
        text = text[os.write(descriptor, text) :]


def redirect():
    """Takes the standard streams for ourselves. Who prints writes to standard error; who reads finds nothing."""
    source, target = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return source, target
