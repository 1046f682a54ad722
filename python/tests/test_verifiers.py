"""The verifiers by themselves: the golden vectors through `plaudit.math`, `plaudit.instructions` and `plaudit.sandbox`, and their guide."""

from __future__ import annotations

import doctest
import functools
import inspect
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import documented
import plaudit
import pytest
from conftest import ROOT
from plaudit import instructions, math, sandbox
from plaudit.instructions import check, check_many
from plaudit.math import explain, extract, parse, verify, verify_many
from test_package import check_docstring

GOLDEN = ROOT / "golden"
PAGE = "docs/guide/verifiers.md"
MODULES = [math, instructions, sandbox]


def lines(name: str) -> list[dict[str, Any]]:
    with open(GOLDEN / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


VECTORS = [row for row in lines("math_verify.jsonl") if isinstance(row["reference"], str)]
GOLDS = [row["reference"] for row in VECTORS]
RESPONSES = [row["response"] for row in VECTORS]


# The modules.


def test_modules_are_loaded_when_they_are_used():
    source = (
        "import sys, plaudit; names = [f'plaudit.{each}' for each in ('math', 'instructions', 'sandbox')]; "
        "print([name in sys.modules for name in names], plaudit.math.verify('1', '1'), 'math' in dir(plaudit))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "[False, False, False] True True", done.stderr
    with pytest.raises(AttributeError):
        plaudit.geometry  # noqa: B018


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_functions_describe_their_arguments(module: Any):
    for name in module.__all__:
        if inspect.isfunction(thing := getattr(module, name)):
            check_docstring(name, thing)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_of_docstrings_give_what_they_say(module: Any):
    if module is sandbox and not isolates():
        pytest.skip("nothing isolates programs here")
    failed, tried = doctest.testmod(module)
    assert failed == 0 and tried >= 5


@pytest.mark.parametrize(
    "title", ["Math", "Instructions", "Programs", "Many at once, with any reward", "In a trainer"]
)
def test_the_guide(title: str):
    if title == "Programs" and not isolates():
        pytest.skip("nothing isolates programs here")
    documented.run(PAGE, title)


def test_the_table_of_differences_of_the_guide():
    text = (
        (ROOT / PAGE).read_text(encoding="utf-8").partition("## What changes if you replace math_verify")[2]
    )
    rows = re.findall(r"^\|[^|]*\| `([^|]*)` \| `([^|]*)` \| (\w+) \| (\w+) \|$", text, re.M)
    assert len(rows) > 12
    for gold, answer, _, wanted in rows:
        try:
            said = str(verify(gold, answer))
        except plaudit.ArgumentError:
            said = "ArgumentError"
        assert said == wanted, (gold, answer)


# Mathematics.


def test_math_vectors_have_the_verdicts_of_the_reward():
    scored = plaudit.reward("math").score_many(RESPONSES, references=GOLDS)
    equal = verify_many(GOLDS, RESPONSES, unparsable_reference="false").tolist()
    assert equal == [each.value == 1.0 for each in scored]
    settled = [
        (row["truth"] == 1) == said
        for row, said in zip(VECTORS, equal, strict=True)
        if row["truth"] is not None
    ]
    assert len(settled) > 1500 and sum(settled) >= 0.99 * len(settled)


def test_one_many_and_explained_are_the_same():
    for row in VECTORS[::7]:
        found = explain(row["reference"], row["response"], unparsable_reference="false")
        equal = verify(row["reference"], row["response"], unparsable_reference="false")
        assert equal == found.equal == bool(found) == (found.why == "equal"), row["id"]
        assert not found.equal or found.how in ("text", "exact", "identity", "numeric")
        if found.span is not None and found.rule == "last_number":
            assert found.answer in row["response"][slice(*found.span)]


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("\\frac12", "0.5", True),
        ("$\\frac12$", "\\boxed{0.5}", True),
        ("so \\boxed{\\frac12}", "The answer is 1/2.", True),
        (42, "42", True),
        (0.5, "1/2", True),
        (["3", "1/2"], "0.5", True),
        (("3", 7), "\\boxed{0.5}", False),
        (parse("\\boxed{3}"), parse("It is 3."), True),
        ("4", 4, True),
        ("4", "", False),
        ("4", "\ud800", False),
        ("4", "{" * 100_000, False),
        ("4", "<think>4", False),
    ],
)
def test_what_verify_takes(gold: Any, answer: Any, equal: bool):
    assert verify(gold, answer) is equal


def test_options_are_those_of_the_reward():
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("4", "4", {"answer": "box"}),
        ("50", "50%", {"percent": "strict"}),
        ("5 cm", "5", {"units": "strict"}),
        ("1,2", "2,1", {"order": "strict"}),
        ("\\pi", "3.14", {"tolerance": 0.01}),
        ("4", "<think>\\boxed{4}", {"think": "keep"}),
    ]
    for gold, answer, options in cases:
        plain, with_options = verify(gold, answer), verify(gold, answer, **options)
        assert plain != with_options, options
        assert with_options == (plaudit.reward("math", **options)(answer, reference=gold).value == 1.0)


def test_parts_of_a_response():
    found = parse("Zwölf: \\boxed{ \\frac{1}{2} }")
    assert found and (found.text, found.kind, found.rule, found.why) == (
        "\\frac{1}{2}",
        "expression",
        "box",
        None,
    )
    assert found.span is not None and "\\frac{1}{2}" in found.source[slice(*found.span)]
    assert extract("I cannot say.") is None and not parse("I cannot say.")
    assert parse("\\boxed{1/0").why == "math.unbalanced"
    assert len(extract("x" * 9 + " \\boxed{" + "1" * 500 + "}") or "") == 500
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: verify("", "4"), "gold: the reference is empty"),
        (lambda: verify("1/0", "4"), "gold: the reference is undefined"),
        (lambda: verify(None, "4"), "gold: text is wanted, not NoneType"),  # type: ignore[arg-type]
        (lambda: verify([], "4"), "gold: no answer is accepted"),
        (lambda: verify("4", None), "answer: text is wanted, not NoneType"),  # type: ignore[arg-type]
        (lambda: verify("4", "4", answer="boxes"), "boxes"),  # type: ignore[arg-type]
        (lambda: verify("4", "4", seed=1), "seed"),  # type: ignore[call-arg]
        (lambda: verify("4", "4", tolerance=0.0), "tolerance must be above 0"),
        (lambda: verify("4", "4", unparsable_reference="skip"), "unparsable_reference"),  # type: ignore[arg-type]
        (lambda: verify_many(["4", "1/0"], ["4", "4"]), r"golds\[1\]: the reference is undefined"),
        (lambda: verify_many(["4"], ["4", "4"]), "golds has 1 items, but answers has 2"),
        (lambda: verify_many("4", ["4"]), "golds: a list is wanted, not one string"),
        (lambda: verify_many(["4"], [None]), r"answers\[0\]"),  # type: ignore[list-item]
    ],
)
def test_mistakes_of_the_caller_are_named(call: Callable[[], object], message: str):
    with pytest.raises(plaudit.ArgumentError, match=message):
        call()


def test_a_gold_that_cannot_be_read_can_equal_nothing():
    assert verify("1/0", "1/0", unparsable_reference="false") is False
    assert explain("1/0", "1/0", unparsable_reference="false").why == "unparsable_reference"
    assert verify_many([["1/0", "4"], "1/0"], ["4", "4"], unparsable_reference="false").tolist() == [
        True,
        False,
    ]


def test_columns_may_be_arrays():
    numpy = pytest.importorskip("numpy")
    assert verify_many(numpy.array(["1/2", "4"]), numpy.array(["0.5", "5"])).tolist() == [True, False]
    assert verify_many([], []).tolist() == []


# Instructions.

CHECKED = [
    row
    for row in lines("instructions.jsonl")
    if isinstance(row["kwargs"], (dict, type(None))) and isinstance(row["response"], str)
]


@pytest.mark.parametrize("mode", ["strict", "loose"])
def test_instruction_vectors_are_answered_as_published(mode: Any):
    usable, asked = [], []
    for row in CHECKED:
        one = (row["constraint"], row["kwargs"])
        try:
            check("a", [one], semantics="published")
        except plaudit.ArgumentError:
            continue  # The published checker draws what is missing at random.
        usable.append(row)
        asked.append([one])
    said = check_many(
        [row["response"] for row in usable], asked, semantics="published", mode=mode, think="keep"
    )
    wrong = [
        row["id"]
        for row, verdict in zip(usable, said, strict=True)
        if isinstance(row["expected"][mode], bool) and verdict != [row["expected"][mode]]
    ]
    # The one difference stands with its reason in golden/README.md.
    assert len(usable) > 3000 and len(wrong) <= 1, wrong


def test_rows_of_data_sets_are_constraints():
    row = lines("instructions_rows.jsonl")[0]
    asked = list(zip(row["instruction_id_list"], row["kwargs"], strict=True))
    fields = {"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"]}
    assert check(row["response"], fields) == check(row["response"], asked)


def test_constraints_are_listed_with_their_arguments():
    known = {each.id: each for each in instructions.constraints()}
    public = [each for each in known.values() if each.family != "own"]
    assert len(public) == 112 and all(each.checks and each.gamed for each in public)
    assert known["punctuation:no_comma"].parameters == {}
    assert known["keywords:existence"].parameters == {"keywords": "a list of texts"}


def test_thoughts_and_prompts():
    no_comma = ["punctuation:no_comma"]
    assert check("<think>a, b</think> c", no_comma) == [True]
    assert check("<think>a, b</think> c", no_comma, think="keep") == [False]
    assert check("<think>a", no_comma) == [False]
    assert "never ends" in instructions.explain("<think>a", no_comma)[0].message
    repeat = [("combination:repeat_prompt", {})]
    assert check("Say it. Done.", repeat, prompt="Say it.") == [True]
    assert check(
        "Done.", [("combination:repeat_prompt", {"prompt_to_repeat": "Say it."})], prompt="Done."
    ) == [False]
    assert check("", no_comma) == check("\ud800", no_comma) == [False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: check("a", [("keywords:existance", {})]),
            r'constraints\[0\]\[0\]: "keywords:existance" is not the id',
        ),
        (lambda: check("a", [("keywords:existence", {})]), 'the argument "keywords" is missing'),
        (lambda: check("a", []), "the list is empty"),
        (lambda: check("a", ["punctuation:no_comma"], semantics="mine"), "mine"),  # type: ignore[arg-type]
        (lambda: check(None, ["punctuation:no_comma"]), "responses"),  # type: ignore[arg-type]
        (lambda: check_many(["a"], []), "constraints has 0 items, but responses has 1"),
        (lambda: instructions.register("punctuation:no_comma", lambda text: True), "public constraint"),
        (lambda: instructions.register("mine:spread", lambda *texts: True), "first parameter"),
    ],
)
def test_mistakes_in_constraints_are_named(call: Callable[[], object], message: str):
    with pytest.raises(plaudit.ArgumentError, match=message):
        call()


def test_a_constraint_of_ones_own():
    @instructions.register("mine:shorter")
    def shorter(text: str, than: int, strictly: bool = True) -> bool:
        """The text has fewer words."""
        count = len(text.split())
        return count < than if strictly else count <= than

    asked = [("mine:shorter", {"than": 2}), ("mine:shorter", {"than": 2, "strictly": False})]
    assert check("a b", asked) == [False, True]
    assert check("", asked) == [False, False]
    assert check_many(["a b"] * 500, [asked] * 500) == [[False, True]] * 500
    own = {each.id: each for each in instructions.constraints()}["mine:shorter"]
    assert (own.family, own.checks, own.optional) == ("own", "The text has fewer words.", ("strictly",))
    with pytest.raises(plaudit.ArgumentError, match='"than" is missing'):
        check("a", ["mine:shorter"])
    extra = {"instruction_id_list": ["mine:shorter"], "kwargs": [{"than": 2}]}
    engine = plaudit.Engine({"components": {"follows": {"reward": "instructions"}}})
    assert engine.score(None, ["a", "a b"] * 8, extras=[extra] * 16).totals.tolist() == [1.0, 0.0] * 8


def test_a_constraint_that_fails_is_no_verdict():
    @instructions.register("mine:fails")
    def fails(text: str) -> bool:
        raise ValueError("out of order")

    instructions.register("mine:count", lambda text: len(text))  # type: ignore[arg-type, return-value]
    assert check("a", ["mine:fails", "mine:count", "punctuation:no_comma"]) == [None, None, True]
    messages = [each.message for each in instructions.explain("a", ["mine:fails", "mine:count"])]
    assert "ValueError: out of order" in messages[0] and "not True or False" in messages[1]
    result = plaudit.reward("instructions")(
        "a", extra={"instruction_id_list": ["mine:fails"], "kwargs": [None]}
    )
    assert (result.outcome, result.reason and result.reason["code"]) == ("invalid", "reward.failed")


# Programs.


@functools.cache
def isolates() -> bool:
    """Whether programs can be run here."""
    return sandbox.doctor().isolation is not None


@pytest.fixture
def isolated() -> None:
    if not isolates() and not os.environ.get("PLAUDIT_TEST_ALL"):
        pytest.skip("nothing isolates programs here")


@pytest.mark.usefixtures("isolated")
def test_code_vectors_have_the_scores_of_the_reward():
    rows, programs = [], []
    for row in lines("code_execution.jsonl"):
        program = sandbox.extract(row["response"])
        if program is not None and not row["params"] and row.get("inputs_outputs"):
            rows.append(row)
            programs.append(program)
    rows, programs = rows[:60], programs[:60]
    tests = [row["inputs_outputs"] for row in rows]
    done = sandbox.test_many(programs, tests)
    scored = plaudit.reward("code").score_many(
        [row["response"] for row in rows], extras=[{"inputs_outputs": each} for each in tests]
    )
    assert len(rows) > 20
    for row, alone, beside in zip(rows, done, scored, strict=True):
        assert alone.score == beside.value, row["id"]
        assert (alone.error is None) == (beside.outcome == "scored"), row["id"]


@pytest.mark.usefixtures("isolated")
def test_honest_programs_pass():
    rows = lines("honest_programs.jsonl")[:20]
    done = sandbox.test_many([row["program"] for row in rows], [row["tests"] for row in rows])
    assert [row["name"] for row, one in zip(rows, done, strict=True) if one.score != 1.0] == []


@pytest.mark.usefixtures("isolated")
def test_what_programs_do_is_in_the_result():
    programs = {
        "print(input())": "finished",
        "1 / 0": "error",
        "raise SystemExit(3)": "error",
        "while True: pass": "time",
        "x = [0] * 10**9": "memory",
        "while True: print('x' * 1000)": "output",
        "\ud800": "error",
    }
    done = sandbox.run_many(list(programs), ["in"] * len(programs), timeout=1, output_kb=64)
    assert [each.outcome for each in done] == list(programs.values())
    assert done[0].stdout == "in\n" and done[0].exit_code == 0 and done[0].why == ""
    assert "ZeroDivisionError" in done[1].stderr and done[1].exit_code == 1
    assert done[2].exit_code == 3 and "3" in done[2].why
    assert done[0].sandbox in ("namespaces", "landlock") and pickle.loads(pickle.dumps(done)) == done


@pytest.mark.usefixtures("isolated")
def test_forms_of_tests():
    double = "def f(x): return 2 * x"
    for tests in (
        ["assert f(2) == 4"],
        {"fn_name": "f", "inputs": [[2]], "outputs": [4]},
        {"test": "def check(candidate):\n    assert candidate(2) == 4", "entry_point": "f"},
        "from solution import f\ndef test_f():\n    assert f(2) == 4",
        json.dumps({"fn_name": "f", "inputs": [[2]], "outputs": [4]}),
    ):
        done = sandbox.test(double, tests)
        assert (done.score, done.passed, done.tests) == (1.0, 1, 1), tests
    stops = sandbox.test("print(1)", {"inputs": ["", ""], "outputs": ["2", "1"]}, continuous=False)
    assert (stops.score, stops.verdicts, stops.tests) == (0.0, ["wrong"], 2)
    body = {"test": "def check(candidate):\n    assert candidate(2) == 4", "entry_point": "f"}
    assert sandbox.test("    return 2 * x", body, prompt='def f(x):\n    """Doubles."""\n').score == 1.0


@pytest.mark.usefixtures("isolated")
def test_mistakes_about_programs():
    for call, message in [
        (lambda: sandbox.test("print(1)", {"inputs": [], "outputs": []}), "tests: there is no test"),
        (lambda: sandbox.test("print(1)", 5), "tests: the tests cannot be read"),
        (lambda: sandbox.run("print(1)", timeout=-1), "timeout"),
        (lambda: sandbox.run("print(1)", language="cobol"), "language"),
        (lambda: sandbox.run("print(1)", seconds=1), "seconds"),  # type: ignore[call-arg]
        (lambda: sandbox.run(None), "programs"),  # type: ignore[arg-type]
        (lambda: sandbox.run_many("print(1)"), "programs: a list is wanted"),
        (lambda: sandbox.run_many(["print(1)"], []), "stdins has 0 items, but programs has 1"),
    ]:
        with pytest.raises(plaudit.ArgumentError, match=message):
            call()
    done = sandbox.test_many(["print(1)"] * 2, [{"inputs": [""], "outputs": ["1"]}, "?"])
    assert done[0].score == 1.0 and done[1].score is None and done[1].error


def test_the_doctor_says_what_isolates():
    host = sandbox.doctor()
    assert host.isolation in ("namespaces", "landlock", None) and host.layers
    assert {*host.languages, *host.missing} >= {"python", "cpp", "rust"}
    assert host.isolation is not None or host.remedies


# Threads, forks and signals.


def everything() -> list[Any]:
    return [
        verify_many(GOLDS[:200], RESPONSES[:200], unparsable_reference="false").tolist(),
        check_many(["a, b", "a b"] * 50, [["punctuation:no_comma", "change_case:english_lowercase"]] * 100),
    ]


def in_a_process(sender: Any) -> None:
    done = [*everything(), not isolates() or sandbox.run("print(7)").stdout]
    sender.send(done)
    sender.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_same_in_threads_and_processes(method: str):
    wanted = everything()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: everything(), range(4))) == [wanted] * 4
    usable = isolates()
    if usable:
        assert sandbox.run("print(7)").stdout == "7\n"
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=in_a_process, args=(sender,))
    child.start()
    assert receiver.poll(120)
    assert receiver.recv() == [*wanted, "7\n" if usable else True]
    child.join(30)


LONG_MATH = "\\boxed{" + "+".join(f"\\sin({at}x)^{{{at}}}" for at in range(2, 40)) + "}"
LONG_TEXT = "The wooden harbor near the market waits, quietly. " * 4000


@pytest.mark.parametrize("name", ["math", "instructions", "sandbox"])
def test_ctrl_c_ends_a_call(name: str):
    if name == "sandbox" and not isolates():
        pytest.skip("nothing isolates programs here")
    # Each would take minutes.
    calls: dict[str, Callable[[], object]] = {
        "math": lambda: verify_many([LONG_MATH.replace("2x", "3x")] * 300_000, [LONG_MATH] * 300_000),
        "instructions": lambda: check_many(
            [LONG_TEXT] * 50_000, [[("words:repeats", {"small_n": 2})]] * 50_000
        ),
        "sandbox": lambda: sandbox.run_many(["while True: pass"] * 50, timeout=10),
    }
    interrupted = []

    def interrupt() -> None:
        interrupted.append(time.monotonic())
        interrupt_main()

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        calls[name]()
    print(f"{name}: {time.monotonic() - interrupted[0]:.3f} s after the signal")
    timer.join()


# Single rewards in batches.


def test_a_reward_scores_batches():
    right = plaudit.reward("math")
    many = right.score_many(RESPONSES[:300], references=GOLDS[:300])
    alone = [
        right(response, reference=gold) for response, gold in zip(RESPONSES[:300], GOLDS[:300], strict=True)
    ]
    assert [(each.value, each.outcome, each.reason, each.info) for each in many] == [
        (each.value, each.outcome, each.reason, each.info) for each in alone
    ]
    results = right.score_many(["4", "\ud800", "5"], references=["4", "4", None])
    assert [each.value for each in results] == [1.0, None, None]
    assert [each.reason["code"] for each in results if each.reason] == [
        "input.utf8",
        "input.missing_reference",
    ]
    with pytest.raises(plaudit.ArgumentError, match="references has 1 items, but responses has 2"):
        right.score_many(["4", "5"], references=["4"])


def test_a_reward_that_compares_scores_groups():
    shorter = plaudit.reward("kimi.length")
    results = shorter.score_many(
        ["a", "a b c d"] * 2, tokens=[1, 4, 1, 4], extras=[{"correct": True}] * 4, groups=["x", "x", "y", "y"]
    )
    assert [each.value for each in results[:2]] == [each.value for each in results[2:]]
    assert results[0].value is not None and results[0].value > (results[1].value or 0.0)


def test_marks_left_out_chain_no_sentences():
    chained, marks = "We like tea.\nTea is warm.", [("words:last_first", {})]
    assert check(chained, marks) == [True]
    assert check("Model\n\ntraining\n\nvaries", marks) == [False]
    assert check("Model\n\ntraining\n\nvaries", marks, semantics="published") == [True]
