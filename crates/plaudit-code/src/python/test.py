"""The test's side: runs a test against a program in another box, and writes one line with the verdict to standard error.

The functions of the program are stand-ins that send a call and read its result, so that the program never shares an
interpreter with the test. What comes back is plain data of the built-in classes, or an object of the program, which is a handle
here (`test_objects.py`).
"""

# The longest line that is read.
LINE = 64 << 20

# Modules and names that tests use without importing them. No function that could be the one under test.
MODULES = "bisect collections copy datetime functools heapq itertools json math operator os random re string sys time typing"
NAMES = {
    "collections": "Counter OrderedDict defaultdict deque",
    "math": "fabs isclose",
    "typing": "Any Callable Dict Iterable Iterator List Optional Set Tuple Union",
}


LOCK = __import__("_thread").RLock()


class Invalid(BaseException):
    """The test cannot be run here, whatever the program is."""


class Broken(BaseException):
    """The program has no answer that could be used."""


class State:
    source = target = request = None
    calls = 0
    # The last error of the program that was raised again here, and whether one came that no handler of the test names.
    raised, unnamed = None, False
    # Kept, because a test can catch everything: what is wrong with the test, with the program, and a failed assert in a function
    # that the program called.
    invalid = broken = failed = None
    # Errors of the program that end loops, which the test expects.
    ends = []
    # Handles and classes by number; functions of the test that the program can call.
    handles, classes, functions = {}, {}, []
    # Errors of the test's functions that the program was told of.
    thrown = []
    # What rank objects have that come with the answer being read.
    rank = staticmethod(lambda kind: FOREIGN)
    # Containers of the program that the test may have changed, and a seed to pass on.
    links, seed = [], None


def invalid(message):
    State.invalid = State.invalid or message
    raise Invalid(message)


def broken(message):
    State.broken = State.broken or message
    raise Broken(message)


# How far an object may decide beside plain data. Made: the test has called its class, and uses it as one. Own: it comes from such an
# object, and is of a class that the test names. Foreign: it is a result. Tainted: what it stands for was calculated with plain data.
MADE, OWN, FOREIGN, TAINTED = 2, 1, 0, -1


def rich(value, kind, depth):
    """What crosses as more than plain data."""
    if isinstance(kind, Maker):
        if issubclass(kind, BaseException):
            at = vars(value).get("_handle")
            return ["h", at] if at is not None else error_data(value)
        if issubclass(kind, Handle):
            if State_of(value).buffer:
                invalid("the test hands over an iterator of which it has read ahead")
            return ["h", INDEX(value)]
        if issubclass(kind, Valued):
            return ["s", vars(value)["_handle"], plain(kind._base(value) if kind._base is not str else str.__str__(value))]
    if kind is Maker:
        return ["C", value._class]
    if kind is type and value.__module__ != "builtins":
        # Of the library, and the program has handed it over.
        for number, known_class in State.classes.items():
            if known_class is value:
                return ["C", number]
    if kind is type and value.__module__ == "builtins" and getattr(builtins, value.__name__, None) is value:
        return ["T", value.__name__]
    if kind is Function:
        return ["n", object.__getattribute__(value, "_name")]
    return other(value) if callable(value) and kind is not type or is_tests(kind) else None


def is_tests(kind):
    """Whether a class is the test's own and no plain data, so that its objects stay in the test."""
    own = kind.__module__ in ("test_solution", "unittest.mock") or kind is types.SimpleNamespace
    return own and not issubclass(kind, (int, str, float, bytes, tuple, frozenset, list, dict, set))


def number_of(value):
    """A function or an object of the test by its number."""
    for at, known_value in enumerate(State.functions):
        if known_value is value or isinstance(value, types.MethodType) and known_value == value:
            return at
    State.functions.append(value)
    return len(State.functions) - 1


def other(value):
    """A function of the test goes by number, and the program asks for its calls; so does an object of the test, whose attributes and
    methods it may ask for as well, but for those that lead to the test itself.
    """
    if isinstance(value, BaseException):
        return error_data(value)
    if is_tests(type(value)) and not hasattr(value, "assertEqual"):
        kind = type(value)
        own = [getattr(kind, f"__{word}__", None) not in (None, getattr(object, f"__{word}__", None)) for word in SPECIALS]
        return ["O", number_of(value), kind.__name__, [word for word, is_own in zip(SPECIALS, own) if is_own]]
    module = getattr(value, "__module__", None)
    standard = str(module).split(".")[0] in getattr(sys, "stdlib_module_names", ())
    if isinstance(value, type) and standard and getattr(sys.modules.get(module), value.__name__, None) is value:
        # A class of the library, which the program may have named itself.
        return ["b", f"{module}.{value.__name__}"]
    if not callable(value) or isinstance(value, type):
        invalid(f"the test hands over an object of the class {type(value).__name__}")
    if isinstance(value, types.BuiltinFunctionType) and module in ("builtins", "math", "_operator"):
        module = module.lstrip("_")
        if getattr(__import__(module), value.__name__, None) is value:
            return ["b", f"{module}.{value.__name__}"]
    at = number_of(value)
    bound = isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType)
    function = value.__func__ if bound else value
    if not isinstance(function, types.FunctionType):
        return ["F", at, type(value).__name__, [], 0, [], "arguments", "keywords", None, {}]
    code = function.__code__
    names, count, keywords = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    at_rest = count + keywords
    rest = names[at_rest] if code.co_flags & 4 else None
    named = names[at_rest + bool(rest)] if code.co_flags & 8 else None
    positional = list(names[bound:count])
    defaults = len(function.__defaults__ or ())
    kinds = {key: rich(kind, type, 0) for key, kind in function.__annotations__.items() if getattr(builtins, str(getattr(kind, "__name__", "")), 0) is kind}
    return ["F", at, function.__name__, positional, defaults, list(names[count:at_rest]), rest, named, function.__doc__, kinds]


def error_data(error):
    kind = next(kind for kind in type(error).__mro__ if type(kind) is Maker or getattr(builtins, kind.__name__, None) is kind)
    simple = (str, int, float, bool, type(None), tuple, list)
    return ["E", plain(kind), [plain(value) if isinstance(value, simple) else str(value) for value in error.args]]


def known(data):
    letter, *content = data
    if letter == "T" and isinstance(getattr(builtins, content[0], None), type):
        return getattr(builtins, content[0])
    if letter == "C":
        return State.classes[content[0]]
    if letter == "F":
        return State.functions[content[0]]
    if letter == "s":
        return valued(*content)
    if letter == "G" and content[0][0] == "T":
        return known(content[0])[tuple(map(value_of, content[1]))]
    if letter == "h":
        at, kind, *error = content
        if type(at) is not int or not 0 <= at < 1 << 60:
            raise ValueError("no number")
        return handle(at, State.classes[kind], *error)
    raise ValueError("no typed data")


def read():
    """A line of the program."""
    try:
        line = State.source.readline(LINE + 1)
    except OSError:
        line = b""
    if not line.endswith(b"\n"):
        broken("the program's result is too long" if len(line) > LINE else "the program ended before the test")
    message = json.loads(line)
    for news in message.get("classes", ()):
        make_class(news)
    if "printed" in message:
        output, errors = message["printed"]
        sys.stdout.write(str(output))
        sys.stderr.write(str(errors))
    return message


def ask(*request, **more):
    """One request at a time: a test may have threads."""
    with LOCK:
        return ask_alone(*request, **more)


def ask_alone(do, on, name, arguments=(), keywords=None, rank=None, **more):
    """Sends a request to the program's box and reads the answer; functions of the test that the program calls are called meanwhile."""
    if State.broken or State.invalid:
        raise Broken("there was no answer before")
    Nodes.start()
    request = {
        "do": do,
        "on": on,
        "name": name,
        "arguments": [plain(value) for value in arguments],
        "keywords": {key: plain(value) for key, value in (keywords or {}).items()},
        **more,
    }
    # The same list twice is the same list there.
    places = {}
    twins = [[at, places.setdefault(id(value), at)] for at, value in enumerate(arguments) if type(value) in (list, dict, set, bytearray)]
    if any(at != first for at, first in twins):
        request["twins"] = [pair for pair in twins if pair[0] != pair[1]]
    changed = [(at, value, plain(value), data) for value, at, data in State.links]
    changed = [(at, value, new) for at, value, new, data in changed if new != data]
    if changed:
        request["changed"] = [[at, new] for at, _, new in changed]
        State.links = [(value, at, plain(value)) for value, at, _ in State.links]
    if State.seed is not None:
        request["seed"], State.seed = plain(State.seed[0]), None
    State.calls += do != "look"
    Nodes.add(request, plain)
    try:
        send(State.target, request)
        sent = Nodes.state()
    except OSError:
        broken("the program ended before the test")
    Snapshots.clear()
    Truths.clear()
    while True:
        try:
            answer = read()
            if "callback" not in answer:
                break
        except Exception as failure:
            broken(f"the program's answer cannot be read: {type(failure).__name__}")
        called(answer)
        Nodes.restore(sent)
    before, State.rank = State.rank, rank or (lambda kind: FOREIGN)
    try:
        error = result = None
        take_nodes(name, arguments, request.get("nodes", []), answer)
        if "missing" in answer:
            if do != "look":
                broken(f"the program has no {name}")
            return answer
        if "raised" in answer:
            error = raised_error(answer["raised"])
        elif "callable" in answer or "method" in answer:
            if do not in ("look", "get"):
                raise ValueError("no result")
            return answer
        elif do == "pull":
            if len(answer["items"]) > more["most"]:
                raise ValueError("more than was asked for")
            return {**answer, "items": [value_of(item) for item in answer["items"]], "value": value_of(answer.get("value"))}
        else:
            result = value_of(answer["result"])
            given = [*arguments, *(keywords or {}).values()]
            if "after" in answer:
                result = change(name, given, answer, result)
            elif "same" in answer and plain(given[answer["same"]]) == answer["result"]:
                result = given[answer["same"]]
            if "ref" in answer and is_changeable(result):
                State.links = [*State.links[-15:], (result, int(answer["ref"]), answer["result"])]
    except Exception as failure:
        broken(f"the program's answer cannot be read: {type(failure).__name__}")
    finally:
        State.rank = before
    if error is not None:
        State.raised = error = arriving(error)
        raise error
    return result


def take_nodes(name, arguments, before, answer):
    """The nodes of an answer. As in `change`, what a function that returns something has changed counts where the test looks at it."""
    data, sent = answer.get("nodes", []), Nodes.met
    if data[: len(sent)] != before:
        with_nodes = [value for value in arguments if is_node(type(value)) or type(value) in (list, tuple, dict)]
        if answer.get("result", 0) is not None and not any(is_looked_at(value, name) for value in with_nodes):
            sent = []
    Nodes.take(data, value_of, sent)


def driven(coroutine):
    """What a coroutine of the test comes to, where it waits for nothing: its loop stands still while the program is asked."""
    while True:
        try:
            waits_for = coroutine.send(None)
        except StopIteration as end:
            return end.value
        if waits_for is not None:
            invalid("a coroutine of the test waits while the program runs")


def asked_of(value, message):
    """What a program asks of something of the test: a call, or a method or an attribute of an object."""
    name, do, kind = str(message.get("name", "")), message.get("do"), type(value)
    if do is None:
        return value
    if not is_tests(kind) or do == "special" and name not in SPECIALS or do != "special" and name.startswith("__"):
        raise ValueError("no object")
    if do == "special":
        method = getattr(kind, f"__{name}__")
        return lambda *given: method(value, *([type(given[0]), given[0], None] if name == "exit" else given))
    is_mock = kind.__module__ == "unittest.mock"

    def use(*given):
        # What a mock has recorded, and the methods of an object, are the test's to change; a mock says nothing of itself either.
        found = getattr(kind, name, None)
        if is_mock and (found is not None or any(map(is_programs, given))) or do != "get" and callable(found):
            raise AttributeError(f"{name} of an object of the test")
        return {"get": getattr, "set": setattr, "delete": delattr}[do](value, name, *given)

    return use


def called(message):
    """Calls a function of the test for the program."""
    try:
        Nodes.take(message.get("nodes", ()), value_of)
        Nodes.start()
        at = message["callback"]
        if at in ("readline", "read"):
            function = getattr(sys.stdin, at)
        else:
            function = getattr(builtins, at) if at in ("input", "print") else asked_of(State.functions[at], message)
        arguments = [value_of(data) for data in message["arguments"]]
        keywords = {str(key): value_of(data) for key, data in message["keywords"].items()}
    except Exception as failure:
        broken(f"the program's answer cannot be read: {type(failure).__name__}")
    before = State.invalid
    try:
        result = function(*arguments, **keywords)
        if isinstance(result, types.CoroutineType):
            answer = {"returned": plain(driven(result)), "awaitable": True}
        else:
            answer = {"returned": plain(result)}
    except Invalid:
        if "do" not in message:
            raise
        # The program has asked for something that does not cross.
        State.invalid, answer = before, {"threw": error_data(AttributeError(message.get("name")))}
    except Exception as error:
        if isinstance(error, AssertionError) and error is not State.raised:
            # The program could hide it.
            State.failed = State.failed or error
        State.thrown.append(error)
        known_error = rich(error, type(error), 0) if is_programs(error) else None
        answer = {"threw": known_error or [*error_data(error), len(State.thrown) - 1]}
    Nodes.add(answer, plain)
    try:
        send(State.target, answer)
    except OSError:
        broken("the program ended before the test")


def change(name, arguments, answer, result):
    """Changes arguments as the program has. One that returns something could change what its result is compared with; so then only
    what the test looks at by itself is changed.
    """
    after = answer["after"]
    if type(after) is not list or len(after) != len(arguments):
        raise ValueError("no arguments")
    for at, (old, data) in enumerate(zip(arguments, after)):
        if plain(old) == data or not (type(data) is list and data[0] in CHANGEABLE):
            continue
        if result is None or is_looked_at(old, name):
            copy_into(old, value_of(data))
            if answer.get("same") == at:
                result = old
    return result


def test_frames():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in TEST_FILES:
            yield frame
        frame = frame.f_back


# What Python's own loops, generators and threads take for an end.
ENDS = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
TEST_FILES = ("test.py", "setup.py", "prompt.py")


def names_of(error):
    kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins" or getattr(kind, "_named", False)]
    return {kind.__name__ for kind in kinds} - {"Exception", "BaseException", "object"}


def arriving(error):
    """The error as the test sees it. One that would end a loop of the test without a word is a `RuntimeError`, as PEP 479 has it,
    unless the function of the test that called names it; so is one inside a method that Python calls for its own purposes.
    """
    frame, names = next(test_frames(), None), names_of(error)
    if not any(names.intersection(frame.f_code.co_names) for frame in test_frames()):
        State.unnamed = True
    if frame is None:
        return error
    name = frame.f_code.co_name
    protocol = name.startswith("__") and name not in ("__init__", "__call__", "__enter__", "__exit__")
    if not protocol and not isinstance(error, ENDS):
        return error
    if names.isdisjoint(frame.f_code.co_names):
        return RuntimeError(f"the program raised {type(error).__name__}: {error}")
    if isinstance(error, ENDS):
        State.ends.append(error)
    return error


def swallowed(error):
    """Whether an error never left the harness: what called it took it for an end."""
    trace = error.__traceback__
    return trace is None or trace.tb_frame.f_code.co_filename == swallowed.__code__.co_filename


class Function:
    """A function of the program, by its name."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __call__(self, *arguments, **keywords):
        return ask("call", None, self._name, arguments, keywords)

    def __getattr__(self, name):
        if name == "__signature__":
            invalid("the test looks at the parameters of a function")
        if name.startswith("__") and name not in TOLD:
            raise AttributeError(name)
        answer = ask("get", None, f"{self._name}.{name}")
        return Function(f"{self._name}.{name}") if type(answer) is dict and answer.get("method") is True else answer

    def __setattr__(self, name, value):
        ask("set", ["n", self._name], name, (value,))


    @property
    def __doc__(self):
        return ask("get", None, f"{self._name}.__doc__")


def stand_in(name, needed=True):
    """What the test gets for a name of the program; nothing for one that it lacks and need not have."""
    try:
        answer = ask("look", None, name)
    except Broken:
        # The test may not need it.
        State.broken, State.ended = None, True
        return Function(name)
    if type(answer) is dict and answer.get("callable") is True:
        return Function(name)
    if type(answer) is dict and "missing" in answer:
        if Nodes.spaces and name in Nodes.fields:
            return globals()[name]
        if not needed:
            return None
        if "hasattr" not in State.request["source"] and "getattr" not in State.request["source"]:
            State.missing = State.missing or name
            return Function(name)
        State.lacking = True
        raise AttributeError(f"module 'solution' has no attribute {name!r}")
    if isinstance(answer, Maker):
        answer._named = name[0].isupper()
    elif isinstance(answer, type):
        # A class of Python's own under a name of the program. Where it is only called, the program calls it.
        State.bound = True
        if not is_used_as_kind(name):
            return Function(name)
    else:
        State.calls += 1
    return answer


# A name that the program does not have, whether one was asked for that it need not have, whether it had ended before, and whether it
# gave a class of Python's own, or a function or a class that the test takes for something else.
State.missing, State.lacking, State.ended, State.bound = None, False, False, False


def same_nodes(one, other):
    return type(one) is type(other) and (is_same_list if type(one) is ListNode else is_same_tree)(one, other)


# In a test, nodes that hold the same are equal.
for kind in (ListNode, TreeNode):
    kind.__eq__, kind.__hash__ = same_nodes, object.__hash__


class SolutionModule(types.ModuleType):
    """What a test imports as `solution`."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__version__", "__author__"):
            raise AttributeError(name)
        Space.closed = True
        found = Seen.get(name) or stand_in(name)
        if isinstance(found, (Function, Maker)):
            Seen[name] = found
        return found

    def __setattr__(self, name, value):
        if name.startswith("__"):
            return super().__setattr__(name, value)
        ask("set", None, name, (value,))

    def __delattr__(self, name):
        pass


class Space(dict):
    """The names of a test. One that it does not define is the program's, unless the test says which those are."""

    closed = False

    def __missing__(self, name):
        if hasattr(builtins, name) or name.startswith("__"):
            raise KeyError(name)
        if Nodes.spaces and name in (*Nodes.fields, *Nodes.functions):
            # What makes and compares nodes is the test's, whatever the program has of that name; a class is the program's where it has one.
            own = name in Nodes.fields and not self.closed
            self[name] = own and stand_in(name, False) or globals()[name]
            return self[name]
        if name in MODULES.split():
            self[name] = __import__(name)
            return self[name]
        for module, names in NAMES.items():
            if name in names.split():
                self[name] = getattr(__import__(module), name)
                return self[name]
        if self.closed:
            if is_of_failures(name):
                raise NameError(f"name {name!r} is not defined")
            invalid(f"the test uses {name}, which is neither its own nor the function under test")
        self[name] = stand_in(name)
        return self[name]


def following(iterator, *default):
    """`next`: where an iterator of the program has ended, the end must reach a handler of the test, and not a loop of Python's."""
    try:
        return python_next(iterator)
    except StopIteration as end:
        if default:
            return default[0]
        if not is_programs(iterator):
            raise
        if not any("StopIteration" in frame.f_code.co_names for frame in test_frames()):
            raise RuntimeError("the iterator has ended") from None
        State.ends.append(end)
        raise


def may_patch(target, name):
    """Whether the program sees what a test puts there."""
    streams = ((builtins, "input"), (builtins, "print"), (sys, "stdin"), (sys, "stdout"), (sys, "stderr"))
    return target is sys.modules["solution"] or isinstance(target, Maker) or is_programs(target) or (target, name) in streams


def run(request):
    """Runs the test; an error says that it failed."""
    sys.modules["solution"] = SolutionModule("solution")
    for name, text in request["libraries"].items():
        sys.modules[name] = types.ModuleType(name)
        exec(compile(text, f"{name}.py", "exec"), sys.modules[name].__dict__)
    text = request["setup"] + request["source"]
    builtins.next = following
    if "seed" in text:
        import random

        python_seed = random.seed

        def seed(value=None, *more):
            State.seed = [value]
            python_seed(value, *more)

        random.seed = seed
    if "unittest" in text:
        import unittest

        unittest.main = lambda *_, **__: None
    if "dataclasses" in text:
        share_dataclasses()
    space = Space(__name__="test_solution")
    if request["nodes"]:
        Nodes.spaces = [space, {name: globals()[name] for name in Nodes.fields}]
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
        run_function(space, request["function"])


def share_dataclasses():
    """Functions of `dataclasses` for objects of the program."""
    import dataclasses

    def shared(name):
        python = getattr(dataclasses, name)

        def function(value, **keywords):
            if is_programs(value) or isinstance(value, Maker):
                return ask("operate", None, name, (value,), keywords, rank=lambda kind: OWN if kind._named else FOREIGN)
            return python(value, **keywords)

        return function

    for name in ("asdict", "astuple", "fields", "replace", "is_dataclass"):
        setattr(dataclasses, name, shared(name))


def message_of(error, source):
    """The error, and the line of the test where it was raised."""
    where, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "test.py":
            lines = source.splitlines()
            line = lines[trace.tb_lineno - 1].strip() if trace.tb_lineno <= len(lines) else ""
            where = f" (line {trace.tb_lineno}: {line[:500]})"
        trace = trace.tb_next
    try:
        text = str(error)[:1000]
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}{where}"


def main():
    global RICH
    RICH = True
    State.source, State.target = redirect()
    State.source = open(State.source, "rb")
    verdict_to = os.dup(2)
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    with open("request.json", encoding="utf-8") as file:
        State.request = request = json.load(file)
    try:
        run(request)
        verdict, message = "passed", ""
        if any(map(swallowed, State.ends)):
            verdict, message = "error", "an error of the program ended a loop of the test"
        elif State.unnamed and skips_errors(request["source"]):
            verdict, message = "error", message_of(State.raised, request["source"])
    except BaseException as error:
        verdict, message = "error", message_of(error, request["source"])
        if isinstance(error, AssertionError) and error is not State.raised:
            verdict = "wrong"
        if isinstance(error, MemoryError):
            verdict = "memory"
        State.bound |= State.calls == 0 and takes_for_value(error)
        if State.calls == 0 and not any((State.missing, State.lacking, State.ended, State.bound, State.raised)):
            # The program had no part in it.
            State.invalid = State.invalid or message
    if State.broken:
        verdict, message = "error", State.broken
    elif State.invalid:
        verdict, message = "invalid", State.invalid
    elif State.lacking and State.calls == 0 and "not hasattr" not in request["source"]:
        verdict, message = "error", "the program lacks what the test asks for"
    elif State.calls == 0 and not State.missing and verdict == "passed":
        verdict, message = "invalid", "the test never calls the program"
    elif State.missing:
        verdict, message = "error", f"the program has no {State.missing}"
    elif State.failed and verdict == "passed":
        verdict, message = "wrong", message_of(State.failed, request["source"])
    send(verdict_to, {"verdict": verdict, "message": message[:2000]})
    os._exit(0)


main()
