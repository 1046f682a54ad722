"""Objects, classes and errors of the program as its test has them: handles, whose attributes and methods are asked of the program.

What a handle may decide:

- Attributes, methods and operators between two objects of the program are asked of the program.
- With plain data beside it, an object that a test got as a result decides nothing: it equals no plain data, has no order with
  it and does not calculate with it. Otherwise it could say of itself that it is what the test expects, which it would be told.
  Whether it is true it may say, as it could have been `True`, but not if it equals anything.
- An object that the test itself has made of a class, and uses as one, is asked; one that equals anything is refused.
"""


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
