"""The part of numpy that the tests of EvalPlus use to compare numbers: a program's results are never arrays here."""


class ndarray:
    pass


class float32:
    pass


class float64:
    pass


def isclose(one, other, rtol=1e-05, atol=1e-08):
    return one == other or abs(one - other) <= atol + rtol * abs(other) < float("inf")


def allclose(one, other, rtol=1e-05, atol=1e-08):
    if isinstance(other, (list, tuple)):
        same = isinstance(one, (list, tuple)) and len(one) == len(other)
        return same and all(allclose(*pair, rtol, atol) for pair in zip(one, other))
    if not isinstance(one, (int, float, complex)) or not isinstance(other, (int, float, complex)):
        raise TypeError("no numbers")
    return isclose(one, other, rtol, atol)
