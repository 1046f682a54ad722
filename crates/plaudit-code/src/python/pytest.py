"""The part of pytest that tests of single functions use: `raises`, `approx`, `fail`, `fixture`, `param` and marks."""


class raises:
    def __init__(self, kinds, *call, match=None, **keywords):
        self.kinds, self.pattern = kinds, match
        if call:
            with self:
                call[0](*call[1:], **keywords)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert kind is not None, "nothing was raised"
        if not issubclass(kind, self.kinds):
            return False
        self.type, self.value = kind, error
        return self.pattern is None or self.match(self.pattern)

    def match(self, pattern):
        import re

        assert re.search(pattern, str(self.value)), f"{self.value} does not match {pattern}"
        return True


class approx:
    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.nan_ok = expected, nan_ok
        self.absolute = 1e-12 if abs is None else abs
        self.relative = (1e-6 if abs is None else 0) if rel is None else rel

    def __eq__(self, value):
        return self.close(value, self.expected)

    def close(self, value, expected):
        if isinstance(expected, dict):
            same = isinstance(value, dict) and value.keys() == expected.keys()
            return same and all(self.close(value[key], item) for key, item in expected.items())
        if isinstance(expected, (list, tuple)):
            same = type(value) is type(expected) and len(value) == len(expected)
            return same and all(map(self.close, value, expected))
        if isinstance(value, (int, float, complex)) and isinstance(expected, (int, float, complex)):
            if value == expected or self.nan_ok and value != value and expected != expected:
                return True
            distance = abs(value - expected)
            infinite = abs(expected) == float("inf")
            return not infinite and distance <= max(self.relative * abs(expected), self.absolute)
        return value == expected


def fail(reason="", pytrace=True):
    raise AssertionError(reason)


def fixture(function=None, scope="function", params=None, autouse=False, ids=None, name=None):
    def marked(found):
        found.is_fixture, found.is_automatic = True, autouse
        if params is not None:
            found.params = list(params)
        return found

    return marked if function is None else marked(function)


def param(*values, id=None, marks=()):
    return values if len(values) > 1 else values[0]


class Marks(type):
    def __getattr__(self, name):
        """A mark that says nothing about what is tested, such as `slow`, with or without arguments."""
        return lambda *given, **_: given[0] if len(given) == 1 and callable(given[0]) else lambda found: found


class mark(metaclass=Marks):
    @staticmethod
    def parametrize(names, values, ids=None):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def marked(test):
            rows = getattr(test, "rows", [{}])
            pairs = [dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values]
            test.rows = [{**row, **pair} for row in rows for pair in pairs]
            return test

        return marked
