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
# Whether objects cross besides: between a program and its test, and not where results are compared outside of any box.
RICH = False
# Classes of the standard library that are a text.
TEXTS = {
    "decimal.Decimal": str,
    "fractions.Fraction": str,
    "datetime.date": lambda value: value.isoformat(),
    "datetime.datetime": lambda value: value.isoformat(),
    "datetime.time": lambda value: value.isoformat(),
    "datetime.timedelta": lambda value: f"{value.days},{value.seconds},{value.microseconds}",
    "uuid.UUID": str,
    "pathlib.PosixPath": str,
}


# Dictionaries of the standard library with methods of their own, and what can fill a `defaultdict`.
TABLES = ("Counter", "OrderedDict", "defaultdict")
FACTORIES = {kind.__name__: kind for kind in (int, float, str, list, dict, set, tuple, bool)}

# Methods that Python calls by itself.
SPECIALS = (
    "len str repr bool hash iter next reversed int float complex index round abs neg pos invert enter exit call contains getitem "
    "setitem delitem format await aiter anext aenter aexit eq lt le gt ge add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor "
    "radd rsub rmul rtruediv rfloordiv rmod rdivmod rpow rmatmul rlshift rrshift rand ror rxor "
    "iadd isub imul itruediv ifloordiv imod ipow imatmul ilshift irshift iand ior ixor"
).split()


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
    if RICH:
        if Nodes.spaces and is_node(kind):
            return Nodes.place(value)
        if kind is slice:
            return ["S", plain(value.start), plain(value.stop), plain(value.step)]
        if kind.__module__ == "collections" and kind.__name__ in TABLES and depth <= 100:
            pairs = [[plain(key, depth + 1), plain(item, depth + 1)] for key, item in value.items()]
            factory = getattr(value, "default_factory", None)
            name = getattr(factory, "__name__", None)
            return ["k", kind.__name__, pairs, name if factory is None or FACTORIES.get(name) is factory else plain(factory, depth + 1)]
        found = rich(value, kind, depth)
        if found is not None:
            return found
    # Of a subclass the value counts, and not what its methods say.
    for base, exact in ((str, str.__str__), (int, int.__pos__), (float, float.__pos__)):
        if isinstance(value, base) and issubclass(kind, base):
            return plain(exact(value), depth)
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
        return ["q", items(value), *([] if value.maxlen is None else [value.maxlen])]
    if name in TEXTS:
        return ["x", name, TEXTS[name](value)]
    if name == "_io.StringIO" and RICH:
        return ["I", value.getvalue(), value.tell()]
    if kind is range:
        return ["r", value.start, value.stop, value.step]
    if name in ("builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"):
        return ["v", items(value), name[14:]]
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
        if name == "timedelta":
            return kind(*map(int, content[1].split(",")))
        return kind.fromisoformat(content[1]) if module == "datetime" else kind(content[1])
    if letter == "r":
        return range(*content)
    if letter == "I":
        import io

        file = io.StringIO(content[0])
        file.seek(content[1])
        return file
    if letter == "N":
        return Nodes.get(*content)
    if letter == "S":
        return slice(*map(value_of, content))
    if letter == "k" and content[0] in TABLES:
        import collections

        pairs = [(value_of(key), value_of(item)) for key, item in content[1]]
        if content[0] == "defaultdict":
            factory = content[2]
            return collections.defaultdict(value_of(factory) if type(factory) is list else FACTORIES.get(factory), pairs)
        return getattr(collections, content[0])(dict(pairs))
    if letter not in ("l", "t", "e", "z", "q", "v", "g"):
        return known(data)
    items = [value_of(item) for item in content[0]]
    if letter == "v":
        whole = dict(items) if content[1] == "items" else dict(enumerate(items)) if content[1] == "values" else dict.fromkeys(items)
        return getattr(whole, {"items": "items", "values": "values"}.get(content[1], "keys"))()
    if letter == "g":
        return endless(items, content[1])
    if letter == "q":
        import collections

        return collections.deque(items, *content[1:])
    return {"t": tuple, "e": set, "z": frozenset}.get(letter, list)(items)


def copy_into(old, new):
    """Makes a container what the other side made of it; tells whether it could."""
    kind = type(old)
    if kind is not type(new):
        return False
    if kind is list and len(old) == len(new):
        for index, item in enumerate(new):
            if not copy_into(old[index], item):
                old[index] = item
    elif kind is list or kind is bytearray:
        old[:] = new
    elif kind is dict or kind.__name__ in TABLES:
        # What a key leads to stays the same object where it can.
        kept = {key: old[key] if key in old and copy_into(old[key], item) else item for key, item in new.items()}
        old.clear()
        old.update(kept)
    elif kind is set:
        old.clear()
        old.update(new)
    elif kind.__name__ == "deque":
        old.clear()
        old.extend(new)
    elif kind.__name__ == "StringIO":
        old.seek(0)
        old.truncate()
        old.write(new.getvalue())
        old.seek(new.tell())
    else:
        return False
    return True


# Letters of values that can be changed.
CHANGEABLE = "ldeqakI"


def is_changeable(value):
    """Whether a value is a container whose content the test may change after it got it as a result."""
    kind = type(value)
    return kind in (list, dict, set, bytearray) or kind.__module__ == "collections" and kind.__name__ in (*TABLES, "deque")


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
