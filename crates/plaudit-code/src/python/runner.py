"""Runs one function of a test, as pytest and unittest would: with fixtures, rows of parameters, and what is set up before it."""

import builtins
import sys
import types

python_next = next


class Capture:
    """pytest's `capsys`: what the program and the test print."""

    def __init__(self):
        import io

        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()

    def readouterr(self):
        import collections

        found = sys.stdout.getvalue(), sys.stderr.getvalue()
        Capture.__init__(self)
        return collections.namedtuple("CaptureResult", "out err")(*found)


class Patches:
    """pytest's `monkeypatch`, for the program's module and for the standard streams."""

    def setattr(self, target, name, *value, raising=True):
        if isinstance(target, str):
            (target, name), value = target.rsplit(".", 1), (name,)
            target = sys.modules.get(target) or invalid(f"the test patches {target}")
        if not may_patch(target, name):
            invalid(f"the test patches {name} of something that the program does not share")
        setattr(target, name, value[0])

    def __getattr__(self, name):
        invalid(f"the test uses monkeypatch.{name}")


def fixture(name, space, instance, values):
    """The value of a parameter of a test."""
    if name in values:
        return values[name]
    if name in ("capsys", "capfd"):
        value = Capture()
    elif name == "monkeypatch":
        value = Patches()
    else:
        found = fixture_named(name, space, instance)
        if hasattr(found, "params"):
            values["request"] = types.SimpleNamespace(param=values["param", name])
        if not isinstance(found, (types.FunctionType, types.MethodType)) or not hasattr(found, "is_fixture"):
            invalid(f"the test needs {name}, which only pytest has")
        value = found(**given_to(found, space, instance, values))
        if isinstance(value, types.GeneratorType):
            values.setdefault(("rest",), []).append(value)
            value = python_next(value)
    values[name] = value
    return value


def fixture_named(name, space, instance):
    found = getattr(instance, name, None) if instance is not None else None
    return found or dict.get(space, name)


def names_given_to(function):
    code = function.__code__
    bound = isinstance(function, types.MethodType)
    return code.co_varnames[bound : code.co_argcount - len(function.__defaults__ or ())]


def given_to(function, space, instance, values):
    """The arguments of a test or a fixture."""
    return {name: fixture(name, space, instance, values) for name in names_given_to(function)}


def rows_of_fixtures(rows, names, space, instance):
    """A row for each parameter of every fixture that a test needs, also by way of another."""
    names = list(names)
    for name in names:
        found = fixture_named(name, space, instance)
        if hasattr(found, "is_fixture"):
            names += [more for more in names_given_to(found) if more not in names]
            for_each = [{("param", name): value} for value in getattr(found, "params", [])]
            rows = [{**row, **more} for row in rows for more in for_each or [{}]]
    return rows


def run_function(space, path):
    first, *rest = path.split(".")
    found = dict.get(space, first)
    instance = None
    if rest:
        if not isinstance(found, type):
            invalid(f"the test has no {path}")
        unit = sys.modules.get("unittest")
        if unit is not None and issubclass(found, unit.TestCase):
            found.setUpClass()
            try:
                found(rest[0]).debug()
            except unit.SkipTest:
                invalid("the test is skipped") if State.calls == 0 else broken("the test was skipped")
            return
        instance = found()
        for name in ("setup_class", "setup_method"):
            if hasattr(instance, name):
                setup = getattr(instance, name)
                setup(*[None] * (setup.__code__.co_argcount - 1))
        found = getattr(instance, rest[0], None)
    elif callable(dict.get(space, "setup_function")):
        space["setup_function"](*[None] * space["setup_function"].__code__.co_argcount)
    if callable(dict.get(space, "setup_module")):
        space["setup_module"](*[None] * space["setup_module"].__code__.co_argcount)
    if not callable(found) or not hasattr(found, "__code__"):
        invalid(f"the test has no {path}")
    rows = getattr(found, "rows", [{}])
    if not rows or found.__code__.co_flags & 0x20:
        invalid(f"{path} needs what only pytest has")
    own = [*space.items(), *(vars(type(instance)).items() if rest else ())]
    always = [name for name, value in own if isinstance(value, types.FunctionType) and getattr(value, "is_automatic", False)]
    for row in rows_of_fixtures(rows, [*always, *names_given_to(found)], space, instance):
        values = dict(row)
        for name in always:
            fixture(name, space, instance, values)
        given = given_to(found, space, instance, values)
        result = found(**{**{name: row[name] for name in row if name in found.__code__.co_varnames}, **given})
        if found.__code__.co_flags & 0x80:
            __import__("asyncio").run(result)
        # What fixtures do after the test can fail it.
        for generator in reversed(values.get(("rest",), [])):
            python_next(generator, None)
        stream = sys.modules["sys"].__stdout__
        sys.stdout = sys.stderr = stream


