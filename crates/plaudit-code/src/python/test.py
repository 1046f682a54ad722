"""The test's side: runs a test against a program in another box, and writes one line with the verdict to standard error.

The functions of the program are stand-ins that send a call and read its result, so that the program never shares an
interpreter with the test. What comes back is made of the built-in classes alone.
"""

import builtins
import types

# The longest line that is read, and how often a test may call.
LINE = 64 << 20
CALLS = 100_000

# Modules and names that tests use without importing them. No function that could be the one under test.
MODULES = "bisect collections copy datetime functools heapq itertools json math operator os random re string sys time typing"
NAMES = {
    "collections": "Counter OrderedDict defaultdict deque",
    "math": "fabs isclose",
    "typing": "Any Callable Dict Iterable Iterator List Optional Set Tuple Union",
}


class Invalid(BaseException):
    """The test cannot be run here, whatever the program is."""


class Broken(BaseException):
    """The program has no answer that could be used."""


class State:
    source = target = None
    calls = 0
    # The last error of the program that was raised again here.
    raised = None
    # Kept, because a test can catch everything.
    invalid = broken = None
    # Errors of the program that end loops, which the test expects.
    ends = []


def invalid(message):
    State.invalid = State.invalid or message
    raise Invalid(message)


def broken(message):
    State.broken = State.broken or message
    raise Broken(message)


def other(value):
    if type(value) in HANDLES:
        return ["h", object.__getattribute__(value, "index")]
    invalid(f"the test hands over an object of the class {type(value).__name__}")


def known(data):
    if len(data) == 2 and data[0] == "h" and type(data[1]) is int:
        return RemoteFunction(data[1])
    broken("the result is no plain data")


def ask(do, on, name, arguments=(), keywords=None):
    """Sends a request to the program's box and reads the answer."""
    if State.broken or State.invalid:
        raise Broken("there was no answer before")
    State.calls += 1
    if State.calls > CALLS:
        broken(f"more than {CALLS} calls")
    request = {
        "do": do,
        "on": on,
        "name": name,
        "arguments": [plain(value) for value in arguments],
        "keywords": {key: plain(value) for key, value in (keywords or {}).items()},
    }
    try:
        send(State.target, request)
        line = State.source.readline(LINE + 1)
    except OSError:
        line = b""
    if not line.endswith(b"\n"):
        broken("the program's result is too long" if len(line) > LINE else "the program ended before the test")
    try:
        answer = json.loads(line)
        if "missing" in answer:
            broken(f"the program has no {name}")
        if "raised" in answer:
            error = error_of(answer["raised"], answer["message"])
        elif "method" in answer or "object" in answer:
            if do == "call":
                broken("the result is no plain data")
            return answer
        else:
            error, result = None, value_of(answer["result"])
            after = answer.get("after")
            if result is None and type(after) is list and len(after) == len(arguments):
                for old, new in zip(arguments, after):
                    if type(old) in (list, dict, set, bytearray) or type(old).__name__ == "deque":
                        copy_into(old, value_of(new))
    except Exception as failure:
        broken(f"the program's answer cannot be read: {type(failure).__name__}")
    if error is not None:
        State.raised = error = arriving(error)
        raise error
    return result


# What Python's own loops, generators and threads take for an end.
ENDS = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
TEST_FILES = ("test.py", "setup.py", "prompt.py")


def arriving(error):
    """The error as the test sees it. One that would end a loop of the test without a word is a `RuntimeError`, as PEP 479 has it,
    unless the function of the test that called names it; so is one inside a method that Python calls for its own purposes.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in TEST_FILES:
        frame = frame.f_back
    if frame is None:
        return error
    name = frame.f_code.co_name
    protocol = name.startswith("__") and name not in ("__init__", "__call__", "__enter__", "__exit__")
    if not protocol and not isinstance(error, ENDS):
        return error
    names = {kind.__name__ for kind in type(error).__mro__} - {"Exception", "BaseException", "object"}
    if names.isdisjoint(frame.f_code.co_names):
        return RuntimeError(f"the program raised {type(error).__name__}: {error}")
    if isinstance(error, ENDS):
        State.ends.append(error)
    return error


def swallowed(error):
    """Whether an error never came back to the test: one that did has a function of the test in its trace."""
    trace = error.__traceback__
    return trace is None or trace.tb_frame.f_code.co_filename not in TEST_FILES


def error_of(names, message):
    """The error of the program as the nearest class that Python has."""
    for name in names[:50]:
        kind = getattr(builtins, name) if type(name) is str and hasattr(builtins, name) else None
        if isinstance(kind, type) and issubclass(kind, BaseException):
            try:
                return kind(str(message))
            except Exception:
                pass
    return Exception(str(message))


def copy_into(old, new):
    """Makes a container of the test what the program made of it; tells whether it could."""
    kind = type(old)
    if kind is not type(new):
        return False
    if kind is list and len(old) == len(new):
        for index, item in enumerate(new):
            if not copy_into(old[index], item):
                old[index] = item
    elif kind is list or kind is bytearray:
        old[:] = new
    elif kind is dict and list(old) == list(new):
        for key, item in new.items():
            if not copy_into(old[key], item):
                old[key] = item
    elif kind is dict or kind is set:
        old.clear()
        old.update(new)
    elif kind.__name__ == "deque":
        old.clear()
        old.extend(new)
    else:
        return False
    return True


class Remote:
    """An instance that the test has made of a class of the program. Its methods answer; it does not compare."""

    __slots__ = ("index", "maker")

    def __init__(self, index, maker):
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "maker", maker)

    def __getattribute__(self, name):
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        return attribute(object.__getattribute__(self, "index"), name)

    def __setattr__(self, name, value):
        ask("call", object.__getattribute__(self, "index"), "__setattr__", (name, value))


def attribute(index, name):
    answer = ask("get", index, name)
    if type(answer) is dict and answer.get("method") is True:
        return lambda *arguments, **keywords: ask("call", index, name, arguments, keywords)
    return answer


def forwarded(name):
    def method(self, *arguments):
        return ask("call", object.__getattribute__(self, "index"), name, arguments)

    return method


def refused(name):
    def method(self, *_):
        broken(f"an object of the program cannot decide about {name}")

    return method


for special in "len str repr contains getitem setitem delitem iter next call".split():
    setattr(Remote, f"__{special}__", forwarded(f"__{special}__"))
for special in "eq ne lt le gt ge bool hash".split():
    setattr(Remote, f"__{special}__", refused(f"__{special}__"))


class RemoteFunction:
    """A function that the program has returned. It can be called, and says nothing else."""

    __slots__ = ("index",)

    def __init__(self, index):
        object.__setattr__(self, "index", index)

    def __call__(self, *arguments, **keywords):
        return ask("call", object.__getattribute__(self, "index"), "__call__", arguments, keywords)


for special in "eq ne lt le gt ge bool hash".split():
    setattr(RemoteFunction, f"__{special}__", refused(f"__{special}__"))
HANDLES = (Remote, RemoteFunction)


class Maker:
    """A class of the program."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *arguments, **keywords):
        answer = ask("new", None, self.__name__, arguments, keywords)
        if type(answer) is not dict or type(answer.get("object")) is not int:
            broken("the result is no plain data")
        return Remote(answer["object"], self)

    def __instancecheck__(self, value):
        return type(value) is Remote and object.__getattribute__(value, "maker") is self

    def __getattr__(self, name):
        return function(f"{self.__name__}.{name}")


def function(name):
    def call(*arguments, **keywords):
        return ask("call", None, name, arguments, keywords)

    call.__name__ = name
    return call


def stand_in(name):
    """What the test gets for a name of the program."""
    if name.endswith(("Error", "Exception")):
        invalid(f"the test needs the class {name} of the program")
    if name.isupper() and len(name) > 1:
        return ask("get", None, name)
    return Maker(name) if name[0].isupper() else function(name)


class SolutionModule(types.ModuleType):
    """What a test imports as `solution`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        Space.closed = True
        return stand_in(name)


class Space(dict):
    """The names of a test. One that it does not define is the program's, unless the test says which those are."""

    closed = False

    def __missing__(self, name):
        if hasattr(builtins, name) or name.startswith("__"):
            raise KeyError(name)
        if name in MODULES.split():
            self[name] = __import__(name)
            return self[name]
        for module, names in NAMES.items():
            if name in names.split():
                self[name] = getattr(__import__(module), name)
                return self[name]
        if self.closed:
            invalid(f"the test uses {name}, which is neither its own nor the function under test")
        self[name] = stand_in(name)
        return self[name]


def run(request):
    """Runs the test; an error says that it failed."""
    sys.modules["solution"] = SolutionModule("solution")
    for name, text in request["libraries"].items():
        sys.modules[name] = types.ModuleType(name)
        exec(compile(text, f"{name}.py", "exec"), sys.modules[name].__dict__)
    space = Space(__name__="test_solution")
    candidate, source = request["candidate"], request["source"]
    helpers = {"__name__": "prompt"}
    try:
        exec(compile(request["prompt"], "prompt.py", "exec"), helpers)
        space.update({name: value for name, value in helpers.items() if not name.startswith("__")})
    except BaseException:
        # Prose, or something that only the program needs.
        pass
    if candidate:
        space["candidate"] = space[candidate] = stand_in(candidate)
        Space.closed = True
    exec(compile(request["setup"], "setup.py", "exec"), space)
    exec(compile(source, "test.py", "exec"), space)
    if request["function"]:
        first, *rest = request["function"].split(".")
        test = space.get(first)
        if rest and (not isinstance(test, type) or hasattr(test, "setup_method")):
            invalid(f"{first} needs what only pytest has")
        for name in rest:
            test = getattr(test(), name, None)
        if not callable(test):
            invalid(f"the test has no {request['function']}")
        rows = getattr(test, "rows", [{}])
        code = test.__code__
        needed = code.co_varnames[len(rest) : code.co_argcount - len(test.__defaults__ or ())]
        if not rows or any(name not in rows[0] for name in needed) or code.co_flags & 0x2A0:
            invalid(f"{request['function']} needs what only pytest has")
        for row in rows:
            test(**row)


def message_of(error, source):
    """The error, and the line of the test where it was raised."""
    where, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "test.py":
            lines = source.splitlines()
            line = lines[trace.tb_lineno - 1].strip() if trace.tb_lineno <= len(lines) else ""
            where = f" (line {trace.tb_lineno}: {line[:500]})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:1000]}{where}"


def main():
    State.source, State.target = redirect()
    State.source = open(State.source, "rb")
    verdict_to = os.dup(2)
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    try:
        run(request)
        verdict, message = "passed", ""
        if any(map(swallowed, State.ends)):
            verdict, message = "error", "an error of the program ended a loop of the test"
    except BaseException as error:
        verdict, message = "error", message_of(error, request["source"])
        if isinstance(error, AssertionError) and error is not State.raised:
            verdict = "wrong"
        if isinstance(error, MemoryError):
            verdict = "memory"
        if State.calls == 0:
            # The program had no part in it.
            State.invalid = State.invalid or message
    if State.broken:
        verdict, message = "error", State.broken
    elif State.invalid or State.calls == 0:
        verdict, message = "invalid", State.invalid or "the test never calls the program"
    send(verdict_to, {"verdict": verdict, "message": message[:2000]})
    os._exit(0)


main()
