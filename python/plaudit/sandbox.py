"""The sandbox by itself: runs an untrusted program, or holds one against tests.

from plaudit import sandbox

sandbox.run("print(int(input()) + 1)", "41").stdout  # '42\\n'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from plaudit import _plaudit
from plaudit._plaudit import ArgumentError
from plaudit.fork import PerProcess

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Host",
    "Layer",
    "Limits",
    "Run",
    "TestLimits",
    "TestRun",
    "TestVerdict",
    "doctor",
    "extract",
    "run",
    "run_many",
    "test",
    "test_many",
]


class Limits(TypedDict, total=False):
    """What a program may use, as the reward `code_execution` has it, with its defaults."""

    timeout: float
    """CPU seconds; 5 by default."""
    wall_timeout: float | None
    """Seconds on the clock; by default five times the CPU time, and at least 10."""
    memory_mb: int
    """Megabytes of memory; 1024 by default."""
    processes: int
    """Processes and threads; 32 by default."""
    files_mb: int
    """Megabytes of all files that it writes; 64 by default."""
    output_kb: int
    """Kilobytes that it may print; 1024 by default."""


class TestLimits(Limits, total=False):
    """What a program may use in each test, and how tests are run."""

    continuous: bool
    """Whether each passed test counts; otherwise the first that does not pass ends the run."""
    most_tests: int | None
    """Only so many tests are run, the first ones."""
    isolation: Literal["apart", "together"]
    """Whether a test that is a program has a box of its own."""


@dataclass(frozen=True)
class Run:
    """What came of a program."""

    outcome: str
    """`finished` with exit code 0; or `error`, `time`, `memory`, `output`; or `infrastructure`: the sandbox failed, not the program."""
    stdout: str
    """What it wrote to standard output, up to the limit."""
    stderr: str
    """The beginning of what it wrote to standard error."""
    exit_code: int | None
    """Its exit code, where it ended by itself."""
    signal: int | None
    """The signal that ended it."""
    cpu_seconds: float
    """CPU time of all its processes, with the building of the box."""
    wall_seconds: float
    """Time on the clock."""
    why: str
    """Why it did not finish, in words; what a compiler says of it."""
    sandbox: str
    """What isolated it: `namespaces`, `landlock` or `none`."""


@dataclass(frozen=True)
class TestVerdict:
    """What came of one test."""

    verdict: str
    """`passed`, `wrong`, `error`, `time`, `memory` or `output`; `faulty_test` or `infrastructure` where it says nothing of the program."""
    cpu_seconds: float
    """CPU time."""
    message: str
    """The end of what the program wrote to standard error, or the start of a wrong output."""


@dataclass(frozen=True)
class TestRun:
    """What came of a program and its tests."""

    score: float | None
    """The share of the tests that passed, or 1 and 0; None where nothing can be said of the program."""
    results: list[TestVerdict]
    """One for each test that was run, in order."""
    tests: int
    """How many tests there are."""
    error: str | None
    """What is wrong with the tests, where they cannot be used."""
    sandbox: str
    """What isolated the program: `namespaces`, `landlock` or `none`."""

    @property
    def passed(self) -> int:
        """How many tests passed."""
        return self.verdicts.count("passed")

    @property
    def verdicts(self) -> list[str]:
        """The verdict on each test that was run."""
        return [result.verdict for result in self.results]


@dataclass(frozen=True)
class Layer:
    """One layer of an isolation, or an attack on it."""

    isolation: str
    """The isolation that was tried: `namespaces` or `landlock`."""
    name: str
    """The layer."""
    works: bool
    """Whether it works."""
    detail: str
    """What was tried, and what came of it."""
    remedy: str | None
    """What helps where it does not work."""


@dataclass(frozen=True)
class Host:
    """What isolates programs on this machine, and which languages it can run."""

    isolation: str | None
    """The isolation that is used: `namespaces`, `landlock`, or None where nothing isolates."""
    layers: list[Layer]
    """Everything that was tried."""
    languages: dict[str, str]
    """The languages that can be run, each with its tool."""
    missing: dict[str, str]
    """The others, each with the reason."""

    @property
    def remedies(self) -> list[str]:
        """What helps against what does not work, each once."""
        return list(dict.fromkeys(layer.remedy for layer in self.layers if layer.remedy and not layer.works))


_sandboxes: dict[bool, PerProcess[_plaudit.Sandbox]] = {False: PerProcess(), True: PerProcess()}


def _sandbox(unsafe_no_sandbox: bool) -> _plaudit.Sandbox:
    """The sandbox of this process, which is opened when it is first used."""
    return _sandboxes[bool(unsafe_no_sandbox)].get(lambda: _plaudit.Sandbox(bool(unsafe_no_sandbox)))


def run(
    program: str,
    stdin: str = "",
    language: str = "python",
    *,
    unsafe_no_sandbox: bool = False,
    **limits: Unpack[Limits],
) -> Run:
    """Runs a program in the sandbox. Whatever it does is in the result: it never raises.

    Args:
        program: The source, without a fence around it; `extract` takes it out of a response.
        stdin: Its standard input.
        language: `python`, `cpp`, `javascript`, `java`, `go` or `rust`.
        unsafe_no_sandbox: Run it without a sandbox where this machine has none. It can then do what this process can.
        limits: What it may use, as the reward `code_execution` has it.

    Returns:
        A `Run`.

    Raises:
        ArgumentError: An argument cannot be used.
        RunError: Nothing isolates programs here (`sandbox.unavailable`), or the host lacks the language (`sandbox.no_language`).

    Example:
        >>> run("print(int(input()) + 1)", "41").stdout
        '42\\n'
    """
    return run_many([program], [stdin], language, unsafe_no_sandbox=unsafe_no_sandbox, **limits)[0]


def run_many(
    programs: Sequence[str],
    stdins: Sequence[str] | None = None,
    language: str = "python",
    *,
    unsafe_no_sandbox: bool = False,
    **limits: Unpack[Limits],
) -> list[Run]:
    """Runs many programs, as many at once as there are cores, without the interpreter's lock.

    Args:
        programs: The sources.
        stdins: The standard input of each; empty where it is None.
        language: The language of all of them.
        unsafe_no_sandbox: As for `run`.
        limits: What each may use.

    Returns:
        One `Run` a program.

    Raises:
        ArgumentError: As for `run`.
        RunError: As for `run`.

    Example:
        >>> [each.outcome for each in run_many(["print(1)", "1 / 0"])]
        ['finished', 'error']
    """
    programs = _items("programs", programs)
    inputs = [""] * len(programs) if stdins is None else _items("stdins", stdins, len(programs))
    sandbox = _sandbox(unsafe_no_sandbox)
    done = sandbox.run(programs, inputs, {"language": language, **limits})
    return [Run(*fields, sandbox.isolation) for fields in done]


def test(
    program: str,
    tests: Any,
    language: str = "python",
    *,
    prompt: str | None = None,
    unsafe_no_sandbox: bool = False,
    **limits: Unpack[TestLimits],
) -> TestRun:
    """Runs a program against its tests, each in a box of its own. What a test expects stays outside.

    Args:
        program: The source, without a fence around it.
        tests: In any form that the reward `code_execution` reads: `{"inputs": [...], "outputs": [...]}`, asserts, a test script, ...
        language: As for `run`.
        prompt: The text of the task, where tests use its functions; the program may then be what comes behind it.
        unsafe_no_sandbox: As for `run`.
        limits: What it may use in each test, `continuous`, `most_tests` and `isolation`.

    Returns:
        A `TestRun`, with a verdict a test.

    Raises:
        ArgumentError: An argument, or the tests, cannot be used.
        RunError: As for `run`.

    Example:
        >>> test("def f(x): return x + 1", ["assert f(1) == 2", "assert f(2) == 4"]).verdicts
        ['passed', 'wrong']
    """
    done = test_many(
        [program], [tests], language, prompts=[prompt], unsafe_no_sandbox=unsafe_no_sandbox, **limits
    )[0]
    if done.error is not None:
        raise ArgumentError(f"tests: {done.error}")
    return done


def test_many(
    programs: Sequence[str],
    tests: Sequence[Any],
    language: str = "python",
    *,
    prompts: Sequence[str | None] | None = None,
    unsafe_no_sandbox: bool = False,
    **limits: Unpack[TestLimits],
) -> list[TestRun]:
    """Runs many programs, each against its own tests, as many at once as there are cores.

    Args:
        programs: The sources.
        tests: The tests of each. Tests that cannot be used are an error of that program's result, and others are run.
        language: The language of all of them.
        prompts: The text of each task.
        unsafe_no_sandbox: As for `run`.
        limits: As for `test`.

    Returns:
        One `TestRun` a program.

    Raises:
        ArgumentError: An argument cannot be used.
        RunError: As for `run`.

    Example:
        >>> tests = {"inputs": ["1 2"], "outputs": ["3"]}
        >>> [each.score for each in test_many(["print(3)", "print(4)"], [tests] * 2)]
        [1.0, 0.0]
    """
    programs = _items("programs", programs)
    tests = _items("tests", tests, len(programs))
    tasks = [None] * len(programs) if prompts is None else _items("prompts", prompts, len(programs))
    sandbox = _sandbox(unsafe_no_sandbox)
    done = sandbox.test(programs, tests, tasks, {"language": language, **limits})
    return [_tested(found, error, sandbox.isolation) for found, error in done]


def _tested(found: Any, error: str | None, isolation: str) -> TestRun:
    if found is None:
        return TestRun(None, [], 0, error, isolation)
    results, tests, score = found
    return TestRun(score, [TestVerdict(*each) for each in results], tests, None, isolation)


def _items(name: str, given: Any, length: int | None = None) -> list[Any]:
    """A list of a caller's, of the length that the others have."""
    if isinstance(given, (str, dict)) or not hasattr(given, "__iter__"):
        raise ArgumentError(f"{name}: a list is wanted, not {type(given).__name__}")
    items = list(given)
    if length is not None and len(items) != length:
        raise ArgumentError(f"{name} has {len(items)} items, but programs has {length}")
    return items


def extract(response: str, language: str = "python") -> str | None:
    """Finds the program in a response: its last code block of the language.

    Args:
        response: The response.
        language: The language.

    Returns:
        The source; None where there is no block.

    Example:
        >>> extract("So:\\n```python\\nprint(1)\\n```")
        'print(1)\\n'
    """
    return _plaudit.sandbox_program(response, language)


def doctor() -> Host:
    """Says what isolates programs on this machine, why not more, and which languages can be run. It makes attacks on each isolation.

    Returns:
        A `Host`, with the remedies.

    Example:
        >>> "python" in doctor().languages
        True
    """
    isolation, layers, languages = _plaudit.sandbox_report()
    usable = {name: tool for name, tool, _ in languages if tool is not None}
    missing = {name: why for name, _, why in languages if why is not None}
    return Host(isolation, [Layer(*each) for each in layers], usable, missing)


# `from plaudit.sandbox import *` in a test file must not make pytest collect these.
for _each in (test, test_many, TestLimits, TestRun, TestVerdict):
    _each.__test__ = False  # type: ignore[attr-defined]
