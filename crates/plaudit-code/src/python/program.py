"""The program's side: calls one function of solution.py, evaluates one expression, or answers the calls of a test.

The program's own output goes to standard error. What a test expects is not known in here, and nothing that happens in here
decides about a test: results leave as typed data, or as numbers of objects that stay in here.
"""

import builtins

# Objects and classes that the test knows by number; the numbers by identity; classes of which it has not been told.
OBJECTS, CLASSES, NUMBERS, NEWS = [], [], {}, []
# Objects that the test has made of classes: they stay objects to it, whatever they are derived from.
MADE = set()
# Functions of the test by number, and errors that an iterator raised after items that were asked for with it.
STUBS, PENDING = {}, {}
# Errors of functions of the test, which are its own again where they reach it.
THROWN = {}
SPACE = {}
BASES = (bool, int, str, float, bytes, tuple, frozenset, list, dict, set)


def number(value):
    """An object by its number. It is kept, so that its identity stays its own."""
    if id(value) not in NUMBERS:
        NUMBERS[id(value)] = len(OBJECTS)
        OBJECTS.append(value)
    return NUMBERS[id(value)]


def number_of_class(kind):
    """A class by its number; the test is told once what it is."""
    if id(kind) in NUMBERS:
        return NUMBERS[id(kind)]
    NUMBERS[id(kind)] = at = len(CLASSES)
    CLASSES.append(kind)
    bases = [plain_class(base) for base in kind.__bases__]
    given = [base for base in BASES if issubclass(kind, base)]
    own = [name for name in SPECIALS if is_own(kind, f"__{name}__")]
    news = {"class": at, "name": kind.__name__, "module": kind.__module__, "bases": bases, "specials": own}
    news["base"] = given[0].__name__ if given else None
    news["function"] = kind.__name__ in ("function", "builtin_function_or_method", "method", "partial", "_lru_cache_wrapper")
    news["generator"] = kind.__name__ in ("generator", "coroutine")
    news["mapping"] = hasattr(kind, "keys")
    NEWS.append(news)
    return at


def is_own(kind, name):
    method = getattr(kind, name, None)
    return method is not None and method is not getattr(object, name, None)


def plain_class(kind):
    if kind.__module__ == "builtins" and getattr(builtins, kind.__name__, None) is kind:
        return ["T", kind.__name__]
    return ["C", number_of_class(kind)]


def rich(value, kind, depth):
    """What crosses as more than plain data."""
    if isinstance(value, type):
        return plain_class(value)
    if kind in BASES or kind is bytearray or kind is range:
        return None
    if kind is type(list[int]) and depth < 100:
        return ["G", plain(value.__origin__), [plain(part, depth + 1) for part in value.__args__]]
    if id(value) in NUMBERS and NUMBERS[id(value)] in STUBS:
        return ["F", STUBS[NUMBERS[id(value)]]]
    name = f"{kind.__module__}.{kind.__qualname__}"
    known = name in TEXTS or name in ("collections.deque", "_io.StringIO") or name.startswith("builtins.dict_")
    if known or kind.__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return None
    made = id(value) in NUMBERS and NUMBERS[id(value)] in MADE
    for base in BASES:
        if isinstance(value, base) and issubclass(kind, base) and not (made and base in (list, dict, set)):
            data = dict(dict.items(value)) if base is dict else base(base.__iter__(value)) if base in BASES[5:] else None
            if data is None:
                data = {str: str.__str__, int: int.__pos__, float: float.__pos__, bytes: bytes.__bytes__}[base](value)
            return ["s", number_of_class(kind), number(value), plain(data, depth + 1)]
    told = ["h", number(value), number_of_class(kind)]
    if isinstance(value, BaseException) and depth < 5:
        told += [[plain(item, depth + 1) for item in value.args], text_of(value)]
    return told


def text_of(error):
    try:
        return str(error)[:10_000]
    except Exception:
        return ""


def other(value):
    return ["o"]


def known(data):
    letter, content = data[0], data[1]
    if letter == "h":
        return OBJECTS[content]
    if letter == "s":
        copy_into(OBJECTS[content], value_of(data[2])) if type(OBJECTS[content]) in BASES else None
        return OBJECTS[content]
    if letter == "C":
        return CLASSES[content]
    if letter == "T":
        return getattr(builtins, content)
    if letter == "b":
        module, name = content.rsplit(".", 1)
        __import__(module)
        return getattr(sys.modules[module], name)
    if letter == "n":
        return find(SPACE, content)
    if letter == "F":
        return stub(data)
    if letter == "O":
        return given_object(*data[1:])
    if letter == "E":
        return error_of(data)
    raise ValueError("no typed data")


def error_of(data):
    """An error of the test."""
    kind, arguments = value_of(data[1]), [value_of(item) for item in data[2]]
    error = kind(*arguments)
    if len(data) > 3:
        THROWN[number(error)] = data[3]
    return error


async def ready(value):
    """A coroutine of the test, which has come to its end there."""
    return value


class Missing:
    """A default of the test's function, which stays with the test."""


def stub(data):
    """A function of the test, with its parameters: calling it asks the test."""
    _, at, name, positional, defaults, keywords, rest, named, documentation, kinds = data
    for number_of_stub, known_at in STUBS.items():
        if known_at == at:
            return OBJECTS[number_of_stub]

    def call(arguments, given):
        given = {key: value for key, value in given.items() if value is not Missing}
        return call_back(at, [value for value in arguments if value is not Missing], given)

    required = len(positional) - defaults
    parts = [*positional[:required], *(f"{word}=MISSING" for word in positional[required:])]
    parts += [f"*{rest}"] if rest else ["*"] if keywords else []
    parts += [f"{word}=MISSING" for word in keywords] + ([f"**{named}"] if named else [])
    passed = ", ".join([*positional, *([f"*{rest}"] if rest else [])])
    given = ", ".join([*(f"{word!r}: {word}" for word in keywords), *([f"**{named}"] if named else [])])
    source = f"lambda {', '.join(parts)}: CALL_THE_TEST([{passed}], {{{given}}})"
    function = eval(source, {"CALL_THE_TEST": call, "MISSING": Missing})
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__annotations__ = documentation, {key: value_of(kind) for key, kind in kinds.items()}
    STUBS[number(function)] = at
    return function


def given_object(at, name, specials):
    """An object of the test: what is asked of it is asked of the test."""
    for number_of_stub, known_at in STUBS.items():
        if known_at == at:
            return OBJECTS[number_of_stub]

    def ask(do, word):
        return lambda self, *values: call_back(at, values, {}, do=do, name=word)

    def leave(self, kind, error, trace):
        return call_back(at, [error], {}, do="special", name="exit")

    methods = {f"__{word}__": ask("special", word) for word in specials if word in SPECIALS}
    methods |= {"__exit__": leave} if "exit" in specials else {}
    if "call" in specials:
        methods["__call__"] = lambda self, *values, **keywords: call_back(at, values, keywords)
    if "eq" in specials:
        methods["__hash__"] = ask("special", "hash") if "hash" in specials else None
    for do, method in (("get", "getattr"), ("set", "setattr"), ("delete", "delattr")):

        def use(self, word, *values, do=do):
            if word.startswith("__"):
                raise AttributeError(word)
            return call_back(at, values, {}, do=do, name=word)

        methods[f"__{method}__"] = use
    value = type(name, (), {**methods, "__slots__": ()})()
    STUBS[number(value)] = at
    return value


def call_back(at, arguments, keywords, **more):
    """Has the test call one of its functions, and answers what it asks for meanwhile."""
    with Wire.lock:
        message = {"callback": at, "arguments": [plain(value) for value in arguments], **more}
        message["keywords"] = {key: plain(value) for key, value in keywords.items()}
        reply(message)
        state = Nodes.state()
        while True:
            line = Wire.source.readline()
            if not line:
                os._exit(0)
            request = json.loads(line)
            if "returned" in request or "threw" in request:
                Nodes.take(request.get("nodes", ()), value_of)
                value = value_of(request.get("returned", request.get("threw")))
                Nodes.restore(state)
                if "threw" in request:
                    raise value
                return ready(value) if request.get("awaitable") else value
            reply(answer_of(request))


def keys_as_numbers(value):
    """JSON has no numbers for keys; tests that come as JSON mean them."""
    if type(value) is dict and value and all(key.lstrip("-").isdigit() for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def find(space, name):
    """A function or a class of the program, or a method of `Solution`."""
    first, *rest = name.split(".")
    if first not in space and "Solution" in space:
        found = getattr(space["Solution"](), first)
    else:
        found = space[first]
    for part in rest:
        found = getattr(found, part)
    return found


def equals(value, other):
    """Nothing where the comparison fails."""
    try:
        return bool(value == other)
    except Exception:
        return None


def operate(name, values):
    """An operator, as Python has it."""
    import operator

    first = values[0]
    if name in ("len", "str", "repr", "bool", "hash", "iter", "int", "float", "complex", "round", "abs", "reversed", "format", "divmod"):
        return getattr(builtins, name)(*values)
    if name in ("copy", "deepcopy"):
        return getattr(__import__("copy"), name)(first)
    if name in ("asdict", "astuple", "fields", "replace", "is_dataclass"):
        return getattr(__import__("dataclasses"), name)
    if name in ("vars", "dir"):
        return dict(first.__dict__) if name == "vars" else dir(first)
    if name == "enter":
        return type(first).__enter__(first)
    if name == "exit":
        error = values[1]
        return bool(type(first).__exit__(first, None if error is None else type(error), error, None))
    if name == "contains":
        return values[1] in first
    if name == "equal":
        return [equals(first, value) for value in values[1]]
    if name == "equals_any":
        return any(equals(first, value) for value in values[1])
    if name == "items":
        return [item for item, _ in zip(first, range(1_000_000))]
    if name == "pairs":
        return [[key, first[key]] for key, _ in zip(first, range(1_000_000))]
    if name == "await":
        return awaited(first)
    if name == "anext":
        # The end is told by what is there, so that no error is taken for it.
        try:
            return [awaited(type(first).__anext__(first))]
        except StopAsyncIteration:
            return []
    if name == "aiter":
        return type(first).__aiter__(first)
    if name == "aenter":
        return awaited(type(first).__aenter__(first))
    if name == "aexit":
        error = values[1]
        return bool(awaited(type(first).__aexit__(first, None if error is None else type(error), error, None)))
    if name == "isinstance":
        return isinstance(first, values[1])
    special = {"and": "and_", "or": "or_", "iand": "iand", "ior": "ior"}.get(name, name)
    return getattr(operator, special)(*values)


def awaited(value):
    import asyncio

    Wire.loop = Wire.loop or asyncio.new_event_loop()
    return Wire.loop.run_until_complete(value)


def pull(at, most):
    """The next items of an iterator: one, or as many as come in a millisecond."""
    import time

    if at in PENDING:
        raise PENDING.pop(at)
    items, until = [], time.monotonic() + 0.001
    try:
        while len(items) < most and (not items or time.monotonic() < until):
            items.append(plain(next(OBJECTS[at])))
    except StopIteration as end:
        return {"items": items, "end": True, "value": plain(end.value)}
    except BaseException as error:
        if not items:
            raise
        PENDING[at] = error
    return {"items": items}


def answer(space, request):
    """Does what the test asks for."""
    do, name, on = request["do"], request["name"], request["on"]
    Nodes.take(request.get("nodes", ()), value_of)
    Nodes.start(Nodes.made)
    for at, data in request.get("changed", ()):
        copy_into(OBJECTS[at], value_of(data))
    if "seed" in request:
        __import__("random").seed(value_of(request["seed"]))
    if do == "look":
        try:
            target = find(space, name)
        except (KeyError, AttributeError):
            return {"missing": name}
        if callable(target) and not isinstance(target, type):
            return {"callable": True}
        return {"result": plain(target)}
    if do == "pull":
        return pull(on[1], request["most"])
    arguments = [value_of(data) for data in request["arguments"]]
    for at, first in request.get("twins", ()):
        arguments[at] = arguments[first]
    keywords = {key: value_of(data) for key, data in request["keywords"].items()}
    if do == "operate":
        result = operate(name, arguments)
        if name in ("asdict", "astuple", "fields", "replace", "is_dataclass"):
            result = result(*arguments, **keywords)
    elif do == "new":
        result = value_of(on)(*arguments, **keywords)
        MADE.add(number(result))
    elif do == "set":
        space[name] = arguments[0] if on is None else setattr(value_of(on), name, arguments[0])
        return {"result": None}
    elif do == "delete":
        delattr(value_of(on), name)
        return {"result": None}
    elif do == "get":
        result = find(space, name) if on is None else value_of(on)
        for part in name.split(".") if on is not None else ():
            result = getattr(result, part)
        if callable(result) and not isinstance(result, type) and (on is None or type(result).__name__ in ("method", "builtin_function_or_method", "function")):
            return {"method": True}
    else:
        try:
            target = find(space, name) if on is None else getattr(value_of(on), name)
        except (KeyError, AttributeError):
            if on is None:
                return {"missing": name}
            raise
        result = target(*arguments, **keywords)
    message = {"result": plain(result)}
    # Arguments that were changed, and a result that the test may change.
    if do in ("call", "new", "operate"):
        given = [*zip(request["arguments"], arguments), *zip(request["keywords"].values(), keywords.values())]
        after = [plain(value) if type(data) is list and data[0] in CHANGEABLE else data for data, value in given]
        if after != [data for data, _ in given]:
            message["after"] = after
        same = [at for at, (data, value) in enumerate(given) if value is result and type(data) is list and data[0] in CHANGEABLE]
        if same:
            message["same"] = same[0]
    if on is not None or do == "operate":
        if is_changeable(result) and len(result) < 1000:
            message["ref"] = number(result)
    return message


def answer_of(request):
    try:
        return answer(SPACE, request)
    except BaseException as error:
        text = text_of(error)
        arguments = [plain(value) for value in error.args]
        cause = error.__cause__
        raised = {"class": plain_class(type(error)), "text": text, "arguments": arguments, "error": number(error)}
        raised["own"] = THROWN.get(NUMBERS.get(id(error)))
        raised["cause"] = None if cause is None else [plain_class(type(cause)), str(cause)[:1000]]
        return {"raised": raised}


class Wire:
    source = target = lock = loop = None
    # What was printed since the last answer, where the test asks for it.
    printed = None


def reply(message):
    Nodes.add(message, plain)
    if NEWS:
        message["classes"] = NEWS[:]
        NEWS.clear()
    if Wire.printed:
        message["printed"] = [stream.getvalue()[:1_000_000] for stream in Wire.printed]
        for stream in Wire.printed:
            stream.seek(0)
            stream.truncate()
    send(Wire.target, message)


class Standard:
    """The standard input of the test."""

    def readline(self, size=-1):
        return call_back("readline", [size], {})

    def read(self, size=-1):
        return call_back("read", [size], {})

    def readlines(self):
        return list(self)

    def __iter__(self):
        return iter(self.readline, "")

    def isatty(self):
        return False


def prepare(streams):
    """Opens what a test asks for beside calls: what is printed, and what is read."""
    import io

    if "output" in streams:
        Wire.printed = [io.StringIO(), io.StringIO()]
        sys.stdout, sys.stderr = Wire.printed
    if "input" in streams:
        builtins.input = lambda prompt="": call_back("input", [prompt], {})
        sys.stdin = Standard()


def share_print():
    """What is printed from now on goes through the test's `print`, which it has put there."""
    python_print = builtins.print

    def printing(*values, file=None, **keywords):
        if file is not None and file is not sys.stdout:
            return python_print(*values, file=file, **keywords)
        return call_back("print", values, keywords)

    builtins.print = printing


def give_nodes(request, space):
    """Nodes of lists and trees, where the test has to do with them. Where it makes them, those of a class of the program cross like them."""
    if not request.get("nodes"):
        return {}
    given = {name: globals()[name] for name in (*Nodes.fields, *Nodes.functions)}
    Nodes.spaces = [space, given] if request["nodes"] == "shared" else [given]
    return dict(given)


def serve():
    """Answers until the test has ended."""
    for line in iter(Wire.source.readline, b""):
        reply(answer_of(json.loads(line)))


def main():
    global SPACE, RICH
    source, target = redirect()
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    module = type(sys)("solution")
    sys.modules["solution"] = module
    SPACE = space = module.__dict__
    if "streams" in request:
        import _thread

        RICH, Wire.source, Wire.target, Wire.lock = True, open(source, "rb"), target, _thread.RLock()
        prepare(request["streams"])
    # Where the program finds them, and a test does not: they are not the functions that it asks for.
    taken_for_granted = give_nodes(request, space)
    exec(request["prelude"], taken_for_granted)
    for name in taken_for_granted.keys() - vars(builtins).keys():
        setattr(builtins, name, taken_for_granted[name])
    with open("solution.py", encoding="utf-8") as file:
        exec(compile(file.read(), "solution.py", "exec"), space)
    if "function" in request:
        function = find(space, request["function"])
        result = function(*[keys_as_numbers(value) for value in request["arguments"]])
        send(target, plain(result))
    elif "expression" in request:
        if request["candidate"]:
            space["candidate"] = find(space, request["candidate"])
        exec(request["setup"], space)
        name = request["expression"].split("(")[0].strip()
        if name not in space:
            raise NameError(f"the program has no {name}")
        send(target, plain(eval(request["expression"], space)))
    else:
        if "print" in request["streams"]:
            share_print()
        serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
