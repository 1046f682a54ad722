"""The test's side: runs a test against a program in another box, and writes one line with the verdict to standard error.

The functions of the program are stand-ins that send a call and read its result, so that the program never shares an
interpreter with the test. What comes back is plain data of the built-in classes, or an object of the program, which is a handle
here. What a handle may decide:

- Attributes, methods and operators between two objects of the program are asked of the program.
- With plain data beside it, an object that a test got as a result decides nothing: it equals no plain data, has no order with
  it and does not calculate with it. Otherwise it could say of itself that it is what the test expects, which it would be told.
  Whether it is true it may say, as it could have been `True`, but not if it equals anything.
- An object that the test itself has made of a class, and uses as one, is asked; one that equals anything is refused.
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


def is_looked_at(value, function):
    """Whether the test compares an argument, after the call, with something else than the call's result: so it means the change."""
    frame = next(test_frames(), None)
    if frame is None or frame.f_code.co_filename != "test.py":
        return False

    def holds(found):
        return found is value or type(found) in (list, tuple) and any(item is value for item in found)

    ours = {name for name, found in frame.f_locals.items() if holds(found)}
    import ast

    scope, line = ast.parse(State.request["source"]), frame.f_lineno
    for node in ast.walk(scope):
        if isinstance(node, ast.FunctionDef) and node.name == frame.f_code.co_name:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            scope = node if first == frame.f_code.co_firstlineno else scope
    names = {function.split(".")[-1], "candidate"}

    def calls(node):
        found = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        return any(getattr(part, "id", getattr(part, "attr", None)) in names for part in found)

    def uses(node, wanted, beside=False):
        """Whether a name is used; beside what an item is found by, which says nothing of the item."""
        if beside and isinstance(node, ast.Subscript):
            return uses(node.value, wanted, beside)
        return any(isinstance(part, ast.Name) and part.id in wanted for part in ast.walk(node))

    def bound(target):
        return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}

    results = set()
    nodes = [node for node in ast.walk(scope) if getattr(node, "lineno", getattr(getattr(node, "target", None), "lineno", 0)) >= line]
    for _ in range(5):
        for node in nodes:
            if isinstance(node, ast.Assign):
                targets, content = set().union(*map(bound, node.targets)), node.value
            elif isinstance(node, (ast.For, ast.comprehension)):
                targets, content = bound(node.target), node.iter
            else:
                continue
            if calls(content) or uses(content, results):
                results |= targets - ours
            elif uses(content, ours):
                ours |= targets
    looked_at = False
    for node in nodes:
        if isinstance(node, ast.Compare):
            if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
                continue
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert") and len(node.args) > 1:
            sides = node.args[:2]
        else:
            continue
        with_ours = [side for side in sides if uses(side, ours) and not calls(side)]
        others = [side for side in sides if side not in with_ours]
        if len(with_ours) > 1 or with_ours and any(calls(side) or uses(side, results, True) for side in others):
            return False
        looked_at |= bool(with_ours) and bool(others)
    return looked_at


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


def fails(node):
    """Whether a part of a test says that it has failed."""
    import ast

    for part in ast.walk(node):
        if isinstance(part, ast.Raise) or isinstance(part, ast.Call) and "fail" in ast.dump(part.func):
            return True
        if isinstance(part, ast.Assert) and isinstance(part.test, ast.Constant) and not part.test.value:
            return True
    return False


def is_of_failures(name):
    """Whether a name that nobody defines is needed only where the test has failed: in what an assert says then, in a handler that raises
    again, or in what is raised.
    """
    import ast

    frame = next(test_frames(), None)
    if frame is None or frame.f_code.co_filename != "test.py":
        return False

    def names(node):
        return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))

    for node in ast.walk(ast.parse(State.request["source"])):
        if not node_holds(node, frame.f_lineno):
            continue
        if isinstance(node, ast.Assert) and node.msg is not None and names(node.msg) and not names(node.test):
            return True
        if isinstance(node, ast.Raise) and names(node):
            return True
        if isinstance(node, ast.ExceptHandler) and any(map(fails, node.body)) and any(map(names, node.body)):
            return True
    return False


def node_holds(node, line):
    return getattr(node, "lineno", line + 1) <= line <= getattr(node, "end_lineno", line)


def skips_errors(source):
    """Whether a test has a handler for all errors that does nothing, where nothing asks for an error."""
    import ast

    def nothing(node):
        return isinstance(node, (ast.Pass, ast.Continue, ast.Break, ast.Return)) or isinstance(node, ast.Expr)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.With) and any("'suppress'" in ast.dump(item) for item in node.items):
            return True
        if not isinstance(node, ast.Try) or any(map(fails, [*node.body, *node.orelse])):
            continue
        for handler in node.handlers:
            general = handler.type is None or getattr(handler.type, "id", "") in ("Exception", "BaseException")
            if general and not any(map(fails, handler.body)) and all(map(nothing, handler.body)):
                return True
    return False


def raised_error(raised):
    """An error of the program: of a class that Python has where it is one, or else of a stand-in with its own attributes."""
    if raised.get("own") is not None:
        return State.thrown[int(raised["own"])]
    kind, text = value_of(raised["class"]), str(raised["text"])
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise ValueError("no error")
    error = made_error(kind, tuple(value_of(data) for data in raised["arguments"]))
    if type(kind) is Maker:
        vars(error).update(_handle=int(raised["error"]), _text=text)
    if raised.get("cause"):
        cause = value_of(raised["cause"][0])
        if isinstance(cause, type) and issubclass(cause, BaseException):
            try:
                error.__cause__ = cause.__new__(cause) if type(cause) is Maker else cause(str(raised["cause"][1]))
            except Exception:
                pass
    return error


def made_error(kind, arguments):
    if type(kind) is not Maker:
        try:
            return kind(*arguments)
        except Exception:
            pass
    error = kind.__new__(kind, *arguments) if type(kind) is not Maker else kind.__new__(kind)
    error.args = arguments
    return error


class Maker(type):
    """A class of the program. Its instances are made in the program's box."""

    def __new__(maker, name, bases, namespace):
        if "_class" not in namespace:
            invalid("the test derives a class from one of the program")
        return type.__new__(maker, name, bases, namespace)

    def __call__(kind, *arguments, **keywords):
        name = kind.__name__
        rank = MADE if kind._named and is_used_as_class(name) else OWN if kind._named else FOREIGN
        return ask("new", ["C", kind._class], name, arguments, keywords, rank=lambda _: rank)

    def __getattribute__(kind, name):
        if name in ("__doc__", "__slots__", "__annotations__"):
            return ask("get", ["C", type.__getattribute__(kind, "_class")], name)
        return type.__getattribute__(kind, name)

    def __getattr__(kind, name):
        if name.startswith("__") and name.endswith("__") and name != "__members__":
            raise AttributeError(name)
        if name in DECIDING and not kind._named:
            raise AttributeError(f"a class of the program cannot decide about {name}")
        return attribute(["C", kind._class], name, lambda found: OWN if found._named else FOREIGN)

    def __setattr__(kind, name, value):
        if name.startswith("__") or name == "_named":
            return type.__setattr__(kind, name, value)
        ask("set", ["C", kind._class], name, (value,))

    def __subclasscheck__(kind, other):
        # How classes are derived is an answer of the program.
        State.calls += 1
        return type.__subclasscheck__(kind, other)

    def __instancecheck__(kind, value):
        return issubclass(getattr(type(value), "_twin", None) or type(value), kind)

    def __iter__(kind):
        return iter(ask("operate", None, "iter", (kind,), rank=lambda found: OWN))

    def __len__(kind):
        return ask("operate", None, "len", (kind,))

    def __bool__(kind):
        return True

    def __getitem__(kind, key):
        return ask("operate", None, "getitem", (kind, key), rank=lambda found: OWN)

    def __contains__(kind, value):
        return is_programs(value) and any(item is value for item in kind)

    def __repr__(kind):
        return f"<class 'solution.{kind.__name__}'>"


def is_used_as_class(name):
    """Whether the test's own text shows that a name is a class to it, and no function with a capital letter."""
    key = ("class", name)
    if key not in Seen:
        Seen[key] = False
        import ast

        try:
            Seen[key] = shows_class(ast, list(ast.walk(ast.parse(State.request["setup"] + "\n" + State.request["source"]))), name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return Seen[key]


def shows_class(ast, nodes, name):
    # Variables that hold what the name makes, and those that hold several such.
    ones, many = set(), set()

    def is_name(node):
        return getattr(node, "id", getattr(node, "attr", None)) == name

    def is_made(node):
        if isinstance(node, ast.Call):
            return is_name(node.func)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return ast.unparse(node) in ones
        if isinstance(node, ast.Subscript):
            return is_several(node.value)
        inner = {ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.IfExp: ("body", "orelse"), ast.NamedExpr: ("value",)}
        return any(is_made(getattr(node, field)) for field in inner.get(type(node), ()))

    def is_several(node):
        """What makes several: elements beside each other, or one for each item."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return any(map(is_made, node.elts))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return is_made(node.elt)
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in many

    for _ in range(3):
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
                targets, value = getattr(node, "targets", None) or [node.target], node.value
            elif isinstance(node, (ast.For, ast.comprehension)) and is_several(node.iter):
                ones |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
                continue
            else:
                continue
            for target in targets:
                pairs = [(target, value)]
                if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
                    pairs = [*zip(target.elts, value.elts)]
                for one, made in pairs:
                    if isinstance(one, (ast.Name, ast.Attribute)):
                        (ones if is_made(made) else many if is_several(made) else set()).add(ast.unparse(one))
    data = set().union(*map(dir, (str, list, dict, set, int, float, tuple, bytes)))
    others = {name, "candidate", *dir(builtins), *(word for words in NAMES.values() for word in words.split())}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            others.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module != "solution":
            others |= {part.asname or part.name for part in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            others.add(node.id)
    asks = {"isinstance": 1, "assertIsInstance": 1, "issubclass": 0, "raises": 0, "assertRaises": 0, "assertRaisesRegex": 0}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in data and (is_name(node.value) or is_made(node.value)):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and is_made(node.value):
            return True
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(is_made(item.context_expr) for item in node.items):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            # It is changed, and not only put in order to be compared.
            if is_made(node.value.func.value) and node.value.func.attr not in ("sort", "reverse"):
                return True
        if isinstance(node, ast.Call):
            if is_name(node.func) and not node.args and not node.keywords or is_made(node.func):
                return True
            # Another function of the program takes what it makes.
            if getattr(node.func, "id", name) not in others and any(is_made(part) or is_several(part) for part in node.args):
                return True
            first = asks.get(getattr(node.func, "id", getattr(node.func, "attr", None)))
            kinds = [] if first is None else node.args[first:]
            if any(is_name(part) for kind in kinds for part in ([kind, *kind.elts] if isinstance(kind, ast.Tuple) else [kind])):
                return True
    return False


Seen, Snapshots, Truths = {}, {}, {}


class Reading:
    """What was read ahead of an iterator."""

    def __init__(self):
        self.buffer, self.pulled, self.ended, self.value = [], 0, False, None


class Handle:
    """An object of the program."""

    __slots__ = ("_index", "_rank", "_reading", "__weakref__")

    def __getattribute__(self, name):
        if name.startswith("__") and name.endswith("__") and name not in TOLD:
            return object.__getattribute__(self, name)
        if name in DECIDING and RANK(self) < OWN:
            raise AttributeError(f"an object of the program cannot decide about {name}")
        if name == "send" and type(self).__name__ == "coroutine":
            return lambda _: wait_for(self)
        if name == "send" and State_of(self).buffer:
            invalid("the test sends to an iterator of which it has read ahead")
        return attribute(["h", INDEX(self)], name, derived(self))

    def __setattr__(self, name, value):
        ask("set", ["h", INDEX(self)], name, (value,))

    def __delattr__(self, name):
        ask("delete", ["h", INDEX(self)], name)

    def __copy__(self):
        return ask("operate", None, "copy", (self,), rank=lambda _: RANK(self))

    def __deepcopy__(self, memory):
        return ask("operate", None, "deepcopy", (self,), rank=lambda _: RANK(self))

    def __reduce_ex__(self, protocol):
        (invalid if RANK(self) == MADE else broken)("the test pickles an object of the program")

    def __dir__(self):
        return ask("operate", None, "dir", (self,))

    @property
    def __dict__(self):
        return ask("operate", None, "vars", (self,))


# Methods of plain data that answer a question with yes or no.
DECIDING = {name for kind in (str, set, float) for name in dir(kind) if name.startswith("is")} | {"startswith", "endswith", "find", "rfind"}
# Methods of sets that are told what a result is compared with.
DECIDING |= {"union", "intersection", "difference", "symmetric_difference"}
# What a function says of itself.
TOLD = ("__name__", "__qualname__", "__doc__", "__wrapped__", "__annotations__", "__defaults__")
INDEX, RANK = Handle.__dict__["_index"].__get__, Handle.__dict__["_rank"].__get__
State_of = Handle.__dict__["_reading"].__get__


def wait_for(coroutine):
    """What an event loop calls: the program's own loop runs the coroutine to its end."""
    raise StopIteration(ask("operate", None, "await", (coroutine,), rank=derived(coroutine)))


def is_programs(value):
    return isinstance(type(value), Maker)


def derived(source):
    """The rank of what comes from an object."""
    return (lambda kind: OWN if kind._named else FOREIGN) if RANK(source) >= OWN else (lambda kind: FOREIGN)


def handle(at, kind, arguments=(), text=None):
    """The handle of a number: always the same, so that an object is itself. Its rank is the lowest that it ever had."""
    found = State.handles.get(at)
    if found is None or type(found) is not kind:
        if issubclass(kind, BaseException):
            arguments = tuple(map(value_of, arguments))
            found = made_error(kind, arguments)
            vars(found).update(_handle=at, _text=None if text is None else str(text))
        else:
            found = object.__new__(kind)
            for name, value in (("_index", at), ("_rank", State.rank(kind)), ("_reading", Reading())):
                Handle.__dict__[name].__set__(found, value)
        State.handles[at] = found
    elif issubclass(kind, Handle):
        Handle.__dict__["_rank"].__set__(found, min(State.rank(kind), RANK(found)))
    return found


def attribute(on, name, rank):
    answer = ask("get", on, name, rank=rank)
    if type(answer) is dict and answer.get("method") is True:

        def method(*arguments, **keywords):
            return ask("call", on, name, arguments, keywords, rank=rank)

        method.__name__ = method.__qualname__ = name
        if "__doc__" in State.request["source"]:
            method.__doc__ = ask("get", on, f"{name}.__doc__")
        return method
    return answer


class Valued:
    """A value of a class that is derived from one of plain data: it compares as plain data, and has the attributes of its class."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name in DECIDING and not type(self)._twin._named:
            raise AttributeError(f"an object of the program cannot decide about {name}")
        return attribute(["h", vars(self)["_handle"]], name, lambda kind: OWN if kind._named else FOREIGN)


def valued(kind, at, data):
    kind, value = State.classes[kind], value_of(data)
    kind = kind if issubclass(kind, Valued) else kind._valued
    if type(value) is not kind._base or type(at) is not int:
        raise ValueError("no value of that class")
    found = State.handles.get(at)
    if type(found) is kind and kind._base in (int, str, float, bytes, tuple, frozenset) and kind._base(found) == value:
        return found
    made = kind._base.__new__(kind, value) if kind._base not in (list, dict, set) else kind._base.__new__(kind)
    if kind._base in (list, dict, set):
        kind._base.__init__(made, value)
    vars(made)["_handle"] = at
    State.handles[at] = made
    return made


def decoys(value):
    """What a value of the program is compared with beside what the test compares it with, in any order: numbers, texts and containers,
    some as likely as the value itself. Who equals one of them knows nothing. Those of a number lie 1 or a prime away from it, so that
    numbers modulo a smaller one differ from all of them.
    """
    import random

    chance = random.SystemRandom()
    luck, step = chance.randrange(10**6, 10**7), chance.randrange(1, 10)
    far = next(number for number in range(luck, 10**8) if all(number % part for part in range(2, 3200)))
    if type(value) in (int, float):
        luck = value + far
    found = [f"{luck}", luck, [luck], (luck, luck), {luck: luck}]
    if type(value) in (int, float):
        found += [value + 1, value - 1, value - far]
    elif type(value) is str and value:
        at = chance.randrange(len(value))
        found += [value[:at] + chance.choice("jqxz" if value[at] not in "jqxzJQXZ" else "aeio") + value[at + 1 :], value + str(step)]
    elif type(value) in (list, tuple):
        found += [value + type(value)([luck]), value[:-1] + type(value)([luck])]
    return [one for one in found if one != value]


def is_forgiven(error, trace, quiet):
    """The test's own failures are not the program's to forgive, nor is an error that keeps an assert from being looked at."""
    if quiet is not True or error is not State.raised and isinstance(error, (AssertionError, Invalid, Broken)):
        return False
    if skips_asserts(trace):
        broken("an object of the program hides an error before an assert")
    return True


def skips_asserts(trace):
    """Whether the block of a `with` that an error has ended has an assert at that line or after it."""
    while trace is not None and trace.tb_frame.f_code.co_filename != "test.py":
        trace = trace.tb_next
    if trace is None:
        return False
    import ast

    line, of_with = trace.tb_lineno, trace.tb_frame.f_lineno
    nodes = list(ast.walk(ast.parse(State.request["source"])))

    def holds(node, line):
        return node.lineno <= line <= node.end_lineno

    blocks = [node for node in nodes if isinstance(node, (ast.With, ast.AsyncWith)) and holds(node, line)]
    exact = [node for node in blocks if any(holds(item.context_expr, of_with) for item in node.items)]
    functions = {}

    def asserts(part):
        if isinstance(part, ast.Assert):
            return not isinstance(part.test, ast.Constant)
        called = getattr(part.func, "attr", getattr(part.func, "id", "")) if isinstance(part, ast.Call) else ""
        return called.startswith("assert") or called == "raises" or functions.get(called, False)

    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[node.name] = any(map(asserts, ast.walk(node)))
    for block in exact[-1:] or blocks[-1:]:
        parts = [part for statement in block.body for part in ast.walk(statement)]
        # What stands before it in a loop would have come again.
        loops = [part for part in parts if isinstance(part, (ast.For, ast.AsyncFor, ast.While)) and holds(part, line)]
        first = min([line, *(part.lineno for part in loops)])
        return any(getattr(part, "end_lineno", 0) >= first and asserts(part) for part in parts)
    return False


def special(name, news):
    """A method that Python calls by itself, as a class of the program has it."""
    function, specials = news["function"], news["specials"]
    iterates = "iter" in specials or "getitem" in specials
    # A result that looks like a list is one: its length, its items and what is in it cannot disagree.
    listed = "len" in specials and iterates and not news["mapping"]

    def refuse(self):
        broken(f"an object of the program cannot decide about __{name}__")

    def items(self):
        if INDEX(self) not in Snapshots:
            found = ask("operate", None, "items", (self,))
            if type(found) is not list:
                broken("the program's answer cannot be read: no items")
            Snapshots[INDEX(self)] = found
        return Snapshots[INDEX(self)]

    def is_list(self):
        return listed and RANK(self) < OWN

    def unary(self, *more):
        if RANK(self) == TAINTED and name not in ("str", "repr", "hash", "enter", "iter", "aiter"):
            raise TypeError(f"an object of the program cannot decide about __{name}__")
        return ask("operate", None, name, (self, *more), rank=derived(self))

    def length(self):
        return len(items(self)) if is_list(self) else unary(self)

    def iterate(self):
        return iter(items(self)) if is_list(self) else unary(self)

    def item(self, key):
        if is_list(self) and type(key) in (int, slice):
            return items(self)[key]
        return unary(self, key)

    def truth(self):
        if function or RANK(self) == TAINTED:
            refuse(self)
        # Whether a result is true is as much the program's to say as `True` would be; but only once, until the test asks for more, and not
        # by an object that equals anything.
        if INDEX(self) not in Truths:
            if RANK(self) < OWN and "eq" in specials and ask("operate", None, "equals_any", (self, decoys(None))):
                broken("an object of the program equals anything")
            Truths[INDEX(self)] = unary(self) is True
        return Truths[INDEX(self)]

    def following(self):
        reading = State_of(self)
        if not reading.buffer and not reading.ended:
            reading.pulled += 1
            most = 1 if reading.pulled < 32 else 4096
            answer = ask("pull", ["h", INDEX(self)], "next", rank=derived(self), most=most)
            reading.buffer = answer["items"][::-1]
            reading.ended, reading.value = answer.get("end") is True, answer["value"]
            if not reading.buffer and not reading.ended:
                broken("the program's answer cannot be read: no items")
        if reading.buffer:
            return reading.buffer.pop()
        raise StopIteration(reading.value)

    def contains(self, value):
        if RANK(self) == MADE or type(self)._named and is_used_as_class(type(self).__name__):
            return unary(self, value)
        if iterates:
            return any(found is value or found == value for found in self)
        raise TypeError(f"an object of the program cannot decide about __{name}__")

    def equal(self, value):
        if self is value:
            return True
        if is_programs(value):
            return ask("operate", None, "eq", (self, value)) is True
        if value is None or type(value) is types.FunctionType:
            return False
        if RANK(self) != MADE:
            found = items_equal(self, value)
            return refuse(self) if found is None else found
        others = [value, *decoys(value)]
        order = sorted(range(len(others)), key=lambda _: os.urandom(8))
        found = ask("operate", None, "equal", (self, [others[at] for at in order]))
        if type(found) is not list or len(found) != len(others) or not all(answer is None or type(answer) is bool for answer in found):
            broken("the program's answer cannot be read: no comparison")
        equals = [at for at, answer in zip(order, found) if answer]
        if any(at > 0 for at in equals):
            broken("an object of the program equals anything")
        if found[order.index(0)] is None:
            # The comparison fails, which the test is to see.
            ask("operate", None, "eq", (self, value))
            broken("an object of the program compares as it likes")
        return equals == [0]

    def items_equal(self, value):
        """A result that has items equals data where its items do: so it says what it holds before it is compared."""
        if listed and type(value) in (list, tuple):
            return items(self) == list(value)
        if listed and type(value) in (set, frozenset):
            return set(items(self)) == value
        if news["mapping"] and iterates and type(value) is dict:
            pairs = ask("operate", None, "pairs", (self,))
            return dict(pairs) == value
        return None

    def unequal(self, value):
        # As with an object that has no `__eq__`: it is another thing than data, where its items do not say otherwise.
        if RANK(self) == MADE or is_programs(value) or value is None or type(value) is types.FunctionType:
            return not equal(self, value)
        return items_equal(self, value) is not True

    def ordered(self, value):
        if not is_programs(value) and RANK(self) != MADE:
            return NotImplemented
        return ask("operate", None, name, (self, value))

    def binary(self, value, *more):
        turned = name[1:] if name[0] == "r" and name not in ("rshift", "round") else None
        pair = (value, self) if turned else (self, value)
        if is_programs(value) or RANK(self) == MADE:
            rank = derived(self)
            if RANK(self) == MADE and (not is_programs(value) or isinstance(value, Handle) and RANK(value) == MADE):
                # Of the same class, what the test calculates with what it made is as good as made.
                rank = lambda kind: MADE if kind is type(self) else derived(self)(kind)
            return ask("operate", None, turned or name, (*pair, *more), rank=rank)
        if RANK(self) == OWN:
            result = ask("operate", None, turned or name, (*pair, *more), rank=lambda kind: TAINTED)
            if is_programs(result) and isinstance(result, Handle):
                return result
        return NotImplemented

    def call(self, *arguments, **keywords):
        return ask("call", ["h", INDEX(self)], "__call__", arguments, keywords, rank=derived(self))

    def leave(self, kind, error, trace):
        return is_forgiven(error, trace, ask("operate", None, "exit", (self, error)))

    def wait(self):
        return ask("operate", None, "await", (self,), rank=derived(self))
        yield

    async def following_later(self):
        found = ask("operate", None, "anext", (self,), rank=derived(self))
        if type(found) is not list or len(found) > 1:
            broken("the program's answer cannot be read: no item")
        if not found:
            raise StopAsyncIteration
        return found[0]

    async def enter_later(self):
        return ask("operate", None, "aenter", (self,), rank=derived(self))

    async def leave_later(self, kind, error, trace):
        return is_forgiven(error, trace, ask("operate", None, "aexit", (self, error)))

    methods = {"len": length, "iter": iterate, "getitem": item, "bool": truth, "next": following, "contains": contains, "eq": equal}
    methods |= {"call": call, "exit": leave, "await": wait, "ne": unequal}
    methods |= {"anext": following_later, "aenter": enter_later, "aexit": leave_later}
    if name in methods:
        return methods[name]
    if name in ("lt", "le", "gt", "ge"):
        return ordered
    unaries = "str repr hash reversed int float complex index round abs neg pos invert enter aiter setitem delitem format"
    return unary if name in unaries.split() else binary


def make_class(news):
    """A class of the program as a class here, below the classes that it is derived from."""
    number, name, specials = news["class"], str(news["name"])[:200], news["specials"]
    if type(number) is not int or number in State.classes:
        raise ValueError("no class")
    module = str(news["module"])
    known_class = getattr(builtins, name, None)
    if module == "builtins" and isinstance(known_class, type) and issubclass(known_class, BaseException):
        State.classes[number] = known_class
        return
    standard = module in sys.modules and module.split(".")[0] in getattr(sys, "stdlib_module_names", ())
    if standard and module.split(".")[0] not in ("builtins", "unittest", "doctest"):
        known_class = getattr(sys.modules[module], name, None)
        if isinstance(known_class, type) and issubclass(known_class, Exception):
            State.classes[number] = known_class
            return
    bases = [value_of(base) for base in news["bases"]]
    errors = tuple(base for base in bases if isinstance(base, type) and issubclass(base, BaseException))
    namespace = {"_class": number, "_named": False, "_twin": None, "_valued": None, "__module__": "solution"}
    data = next((base for base in (int, str, float, bytes, tuple, frozenset, list, dict, set) if base.__name__ == news["base"]), None)
    if errors:
        namespace["__str__"] = lambda self: Exception.__str__(self) if vars(self).get("_text") is None else vars(self)["_text"]
        namespace["__getattr__"] = error_attribute
        State.classes[number] = Maker(name, errors, namespace)
        return
    methods = {f"__{word}__": special(word, news) for word in map(str, specials) if word.isalpha()}
    if "eq" in specials and "hash" not in specials:
        methods["__hash__"] = None
    elif "eq" in specials:
        methods["__hash__"] = lambda self: ask("operate", None, "hash", (self,))
    if "eq" in specials:
        methods["__ne__"] = special("ne", news)
    if news["function"]:
        # A function can be called, and says nothing else.
        refuse = special("bool", news)
        methods = {"__call__": methods.get("__call__", special("call", news)), "__bool__": refuse}
        methods["__eq__"] = lambda self, value: self is value if is_programs(value) or value is None else refuse(self)
        methods["__hash__"] = lambda self: INDEX(self)
        for word in ("lt", "le", "gt", "ge", "len"):
            methods[f"__{word}__"] = lambda self, *_: refuse(self)
    if news["generator"]:
        kind = types.CoroutineType if name == "coroutine" else types.GeneratorType
        methods["__class__"] = property(lambda self: kind)
    above = tuple(base for base in bases if isinstance(base, Maker) and issubclass(base, Handle)) or (Handle,)
    try:
        live = Maker(name, above, {**namespace, "__slots__": (), **methods})
    except TypeError:
        live = Maker(name, (Handle,), {**namespace, "__slots__": (), **methods})
    State.classes[number] = live
    if data is not None:
        texts = {key: value_method(key) for key in ("__str__", "__repr__", "__format__") if data is not str}
        above = tuple(base._valued for base in bases if getattr(base, "_valued", None)) or (Valued, data)
        overridden = [word for word in specials if word in OVERRIDDEN]
        texts |= {f"__{word}__": value_operator(word, data) for word in overridden}
        if "contains" in specials and not hasattr(data, "__contains__"):
            texts["__contains__"] = value_contains
        twin = Maker(name, above, {**namespace, "_base": data, "_twin": live, **texts})
        type.__setattr__(live, "_valued", twin)


OVERRIDDEN = "add sub mul truediv floordiv mod matmul radd rsub rmul and or xor".split()


def value_method(name):
    def method(self, *more):
        return ask("operate", None, name.strip("_"), (self, *more))

    return method


def value_operator(name, data):
    """Between two values of the program its own operator counts, with plain data that of plain data."""

    def method(self, value):
        if is_programs(value):
            pair = (value, self) if name[0] == "r" else (self, value)
            return ask("operate", None, name[1:] if name[0] == "r" else name, pair, rank=lambda kind: OWN if kind._named else FOREIGN)
        plain_method = getattr(data, f"__{name}__", None)
        return NotImplemented if plain_method is None else plain_method(self, value)

    return method


def value_contains(self, value):
    """What a flag holds; a number holds nothing else."""
    if not is_programs(value):
        raise TypeError(f"argument of type '{type(self).__name__}' is not iterable")
    return ask("operate", None, "contains", (self, value)) is True


def error_attribute(self, name):
    if name.startswith("__") and name.endswith("__") or vars(self).get("_handle") is None or name in DECIDING:
        raise AttributeError(name)
    return attribute(["h", vars(self)["_handle"]], name, lambda kind: FOREIGN)


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


def is_used_as_kind(name):
    """Whether a test asks what is of a class of that name, or catches it."""
    import ast

    asks = ("isinstance", "issubclass", "assertIsInstance", "raises", "assertRaises", "assertRaisesRegex", "suppress")

    def names(node):
        return any(name == getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node))

    for node in ast.walk(ast.parse(State.request["source"])):
        if isinstance(node, ast.ExceptHandler) and node.type is not None and names(node.type):
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) in asks:
            # Not one that is called in there: `isinstance(f(1), int)`.
            called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
            kinds = [part for argument in node.args for part in ast.walk(argument) if id(part) not in called]
            if any(name == getattr(part, "id", getattr(part, "attr", None)) for part in kinds):
                return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if any(name == getattr(side, "id", getattr(side, "attr", None)) for side in (node.left, *node.comparators)):
                return True
    return False


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


def takes_for_value(error):
    """Whether a test has failed because the program has made a function or a class of what the test takes for a value."""
    if isinstance(error, TypeError):
        said = ("Function", "Maker", "arg 1 must be a", "arg 2 must be a", "can only join an iterable")
        return any(part in str(error) for part in said)
    trace, last = error.__traceback__, None
    while trace is not None:
        last = trace if trace.tb_frame.f_code.co_filename == "test.py" else last
        trace = trace.tb_next
    if last is None or not isinstance(error, AssertionError):
        return False
    import ast

    frame = last.tb_frame
    held = [node for node in ast.walk(ast.parse(State.request["source"])) if isinstance(node, ast.stmt) and node_holds(node, last.tb_lineno)]
    parts = list(ast.walk(held[-1])) if held else []
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}

    def is_stand_in(part):
        if isinstance(part, ast.Attribute):
            return isinstance(Seen.get(part.attr), (Function, Maker))
        found = frame.f_locals.get(part.id, frame.f_globals.get(part.id)) if isinstance(part, ast.Name) else None
        return isinstance(found, (Function, Maker))

    return any(id(part) not in called and is_stand_in(part) for part in parts)


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
