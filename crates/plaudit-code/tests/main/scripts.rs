//! Test scripts of data sets with right and wrong programs: HumanEval, HumanEval+, KodCode; in two boxes, in each isolation.

use crate::{python, verdicts};
use plaudit_code::Verdict::{self, Error, FaultyTest, Memory, Passed, Time, Wrong};
use plaudit_code::{Tests, TestsError};
use serde_json::{Value, json};

fn all_give(form: &Value, code: &str, wanted: &[Verdict]) {
    for execution in python(code, form) {
        assert_eq!(verdicts(&execution), wanted, "{form} {code}: {execution:?}");
    }
}

#[test]
fn pytest_functions_are_tests_of_their_own() {
    let form = json!({"test": "import pytest\nfrom solution import halve\n\n\
        def test_even():\n    assert halve(4) == 2\n\n\
        def test_error():\n    with pytest.raises(ValueError, match='odd') as caught:\n        halve(3)\n    assert 'odd' in str(caught.value)\n\n\
        @pytest.mark.parametrize('given, wanted', [(2, 1), (8, 4)])\ndef test_many(given, wanted):\n    assert halve(given) == pytest.approx(wanted)\n\n\
        class TestMore:\n    def test_zero(self):\n        assert not halve(0)\n"});
    let right = "def halve(x):\n    if x % 2: raise ValueError('odd number')\n    return x // 2";
    all_give(&form, right, &[Passed; 4]);
    all_give(&form, "def halve(x): return x / 2", &[Passed, Wrong, Passed, Passed]);
    all_give(&form, "def halve(x): raise KeyError('odd')", &[Error; 4]);
    all_give(&form, "def halve(x): return x // 2 if x else 7", &[Passed, Wrong, Passed, Wrong]);
    all_give(&form, "def half(x): return x // 2", &[Error; 4]);
    all_give(&form, "def halve(x) return x", &[Error; 4]);
    let one = json!("from solution import halve\ndef test_one():\n    assert halve(4) == 2\n");
    all_give(&one, "def halve(x):\n    while True: pass", &[Time]);
    all_give(&one, "def halve(x): return bytearray(64 << 30)", &[Memory]);
}

/// The form of HumanEval+: loops over inputs, a function that compares, numpy by its name.
#[test]
fn tests_of_evalplus_compare_numbers() {
    let form = json!({"entry_point": "mean", "test": "import numpy as np\n\n\
        def is_floats(x):\n    if isinstance(x, float):\n        return True\n    if isinstance(x, np.ndarray):\n        return x.dtype == np.float64\n    return False\n\n\
        def assertion(out, exp, atol):\n    exact_match = out == exp\n    if atol == 0 and is_floats(exp):\n        atol = 1e-6\n    if not exact_match and atol != 0:\n        assert np.allclose(out, exp, rtol=1e-07, atol=atol)\n    else:\n        assert exact_match\n\n\
        def check(candidate):\n    inputs = [[[1.0, 2.0]], [[0.1, 0.2, 0.3]]]\n    results = [1.5, 0.2]\n    for inp, exp in zip(inputs, results):\n        assertion(candidate(*inp), exp, 0)\n"});
    all_give(&form, "def mean(xs): return sum(xs) / len(xs)", &[Passed]);
    all_give(&form, "def mean(xs): return sum(xs)", &[Wrong]);
    all_give(&form, "def mean(xs): return str(sum(xs) / len(xs))", &[Error]);
}

#[test]
fn functions_of_the_prompt_are_the_data_sets_own() {
    let prompt = "import math\n\ndef poly(xs, x):\n    return sum(c * x ** i for i, c in enumerate(xs))\n\ndef zero(xs):\n    \"\"\" Finds a zero. \"\"\"\n";
    let test = "def check(candidate):\n    for xs in ([-1, 1], [-6, 2]):\n        assert math.fabs(poly(xs, candidate(xs))) < 1e-4\n";
    let form = json!({"prompt": prompt, "test": test, "entry_point": "zero"});
    all_give(&form, "def zero(xs): return -xs[0] / xs[1]", &[Passed]);
    // The program's own `poly` does not count.
    let forged = "def poly(xs, x): return 0\ndef zero(xs): return 0";
    all_give(&form, forged, &[Wrong]);
    all_give(&json!({"test": test, "entry_point": "zero"}), forged, &[FaultyTest]);
    // Prose is no code.
    let prose = json!({"prompt": "Write zero.", "test": "def check(f):\n    for i in [1]: assert f([-i, i]) == 1\n", "entry_point": "zero"});
    all_give(&prose, "def zero(xs): return -xs[0] / xs[1]", &[Passed]);
}

/// As LeetCode's rows have them: in the test's box a node equals one that holds the same.
#[test]
fn nodes_are_compared_by_what_they_hold() {
    let form = json!(["assert f(list_node([1, 2])) == list_node([2])"]);
    all_give(&form, "def f(head): return head.next", &[Passed]);
    all_give(&form, "def f(head): return head", &[Wrong]);
    all_give(&form, "def f(head): return [2]", &[Wrong]);
    let form = json!({"entry_point": "Solution().depth", "test": "def check(candidate):\n    assert candidate(root = tree_node([1, None, 2])) == 2\n"});
    let right = "class Solution:\n    def depth(self, root: Optional[TreeNode]) -> int:\n        return 1 + max(self.depth(root.left), self.depth(root.right)) if root else 0";
    all_give(&form, right, &[Passed]);
    all_give(&form, "class Solution:\n    def depth(self, root): return 1", &[Wrong]);
    // Classes in the code of the task are the test's.
    let prompt = "class ListNode:\n    def __init__(self, val):\n        self.val, self.next = val, None\n\ndef last(head):\n    \"\"\" The last value. \"\"\"\n";
    let test = "def check(candidate):\n    head = ListNode(1)\n    head.next = ListNode(7)\n    assert candidate(head) == 7\n";
    let form = json!({"prompt": prompt, "test": test, "entry_point": "last"});
    all_give(&form, "def last(head: ListNode): return head.next.val", &[Passed]);
    all_give(&form, "def last(head: ListNode): return head.val", &[Wrong]);
}

/// Asserts that could be taken apart, were it not for the task's own functions.
#[test]
fn asserts_may_use_functions_of_the_task() {
    let two = "def two():\n    return 2\n\n";
    let test =
        "def check(candidate):\n    assert candidate(two(), 2) == 4\n    assert candidate(1, 2) == 3\n";
    for prompt in [
        format!("{two}def add(a, b):\n    \"\"\" Adds. \"\"\"\n"),
        format!("{two}def add(a, b):\n"),
        format!("Complete:\n```python\n{two}def add(a, b):\n```\n"),
    ] {
        let form = json!({"prompt": prompt, "test": test, "entry_point": "add"});
        all_give(&form, "def add(a, b): return a + b", &[Passed]);
        all_give(&form, "def two(): return 0\ndef add(a, b): return a + b", &[Passed]);
        all_give(&form, "def add(a, b): return a - b", &[Wrong]);
        let alone = json!({"test": test, "entry_point": "add"});
        let tests = Tests::parse_for(&alone, &prompt).unwrap();
        assert_eq!(tests, Tests::parse(&form).unwrap());
    }
}

#[test]
fn every_kind_of_value_goes_both_ways() {
    let test = "import collections, datetime, decimal, fractions\nfrom solution import same\n\
        def test_values():\n    values = [None, True, 0, -7, 1 << 80, 0.1, float('inf'), 1 + 2j, 'é\\ud800', b'\\x00', bytearray(b'x'), [1, [2]], (1,), {1, 'a'}, frozenset([1]), {1: {'a': (2,)}}, collections.deque([1]), range(0, 9, 2), decimal.Decimal('1.10'), fractions.Fraction(1, 3), datetime.date(2020, 2, 29)]\n\
        \x20   for value in values:\n        found = same(value)\n        assert found == value and type(found) is type(value), value\n\
        \x20   assert same(value=3) == 3\n    assert same(float('nan')) != same(float('nan'))\n\
        \x20   assert list(same(iter([1, 2]))) == [1, 2]\n    assert same({frozenset([1]): 2})[frozenset([1])] == 2\n    assert same('x' * 3000000) == 'x' * 3000000\n";
    all_give(&json!(test), "def same(value): return value", &[Passed]);
}

#[test]
fn arguments_that_were_changed_are_seen() {
    let form = json!(
        "from solution import change\n\
        def test_change():\n    xs, d, s = [3, 1, [2]], {'a': 1}, {1}\n    inner = xs[2]\n    assert change(xs, d, s) is None\n\
        \x20   assert xs == [1, 3, [2, 9]] and d == {'b': 2} and s == {2} and inner == [2, 9]\n"
    );
    let right = "def change(xs, d, s):\n    xs[:2] = sorted(xs[:2]); xs[2].append(9)\n    del d['a']; d['b'] = 2\n    s.clear(); s.add(2)";
    all_give(&form, right, &[Passed]);
    all_give(&form, "def change(xs, d, s): pass", &[Wrong]);
    // A function that returns a value cannot change what it is compared with.
    let sorts = json!(
        "from solution import order\ndef test_order():\n    xs = [3, 1, 2]\n    assert order(xs) == sorted(xs)\n"
    );
    all_give(&sorts, "def order(xs): return sorted(xs)", &[Passed]);
    all_give(&sorts, "def order(xs):\n    xs.clear()\n    return []", &[Wrong]);
}

#[test]
fn classes_answer_by_their_methods() {
    let form = json!(
        "from solution import Stack, LIMIT\n\
        def test_stack():\n    stack = Stack()\n    stack.push(1)\n    stack.push([2])\n    assert isinstance(stack, Stack) and len(stack) == 2 and stack.top == [2]\n\
        \x20   assert stack.pop() == [2] and stack.pop() == 1 and LIMIT == 5\n    stack.name = 'a'\n    assert stack.name == 'a'\n\
        \x20   try:\n        stack.pop()\n        assert False\n    except IndexError:\n        pass\n"
    );
    let right = "LIMIT = 5\nclass Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n    def pop(self): return self.items.pop()\n    def __len__(self): return len(self.items)\n    @property\n    def top(self): return self.items[-1]";
    all_give(&form, right, &[Passed]);
    all_give(&form, &right.replace("items[-1]", "items[0]"), &[Wrong]);
    let method = json!(["assert Solution().add(1, 2) in (3, 4)"]);
    all_give(&method, "class Solution:\n    def add(self, a, b): return a + b", &[Passed]);
    all_give(&method, "class Solution:\n    def add(self, a, b): return a - b", &[Wrong]);
}

/// Where the test is at fault there is no score, whatever the program does.
#[test]
fn tests_at_fault_are_no_wrong_answers() {
    for test in [
        "import no_such_module\nfrom solution import f\ndef test_f():\n    assert f(1) == 1",
        "from solution import f\ndef test_f():\n    assert 1 == 1",
        "from solution import f\ndef test_f(tmp_path):\n    assert f(1) == 1",
        "from solution import f\nclass Own: pass\ndef test_f():\n    assert f(Own) == 1",
        "from solution import f\ndef test_f():\n    assert helper(f(1)) == 1",
        "from solution import f\nasync def helper(): pass\nassert 1 == 1 if f else 0",
    ] {
        for code in ["def f(x): return 1", "def f(x): return 2", "import os\nos._exit(0)"] {
            for execution in python(code, &json!(test)) {
                let found = verdicts(&execution);
                assert_eq!(found, [FaultyTest], "{test} {code}: {execution:?}");
                assert_eq!(execution.score(), None);
            }
        }
    }
    for test in [
        "import numpy as np\nfrom solution import f\ndef test_f():\n    assert f(np.array([1])) == 1",
        "def check(candidate):\n    assert candidate(1) > 1",
        "def check(candidate):\n    assert candidate(1) == 2\n",
        "from solution import f\ndef test_f():\n    assert f(1 == 1",
        "from solution import f\ndef test_f():\n    assert (f(1) == 1, 'always true')",
    ] {
        assert!(matches!(Tests::parse(&json!(test)), Err(TestsError::Form(_))), "{test}");
    }
}

/// Asserts are read as Python reads them.
#[test]
fn asserts_over_several_lines_keep_their_text() {
    let lines = json!("assert f() == \"\"\"a\nb\"\"\"\n");
    all_give(&lines, "def f(): return 'a\\nb'", &[Passed]);
    all_give(&lines, "def f(): return 'a b'", &[Wrong]);
    let comment = json!("assert f(1) == 1 # one \\\nassert f(2) == 2\n");
    all_give(&comment, "def f(x): return x", &[Passed, Passed]);
    all_give(&comment, "def f(x): return 1", &[Passed, Wrong]);
}

/// What data sets put before every program is there where a program uses it, and is never the function under test.
#[test]
fn names_taken_for_granted_are_there() {
    let stdin = json!({"inputs": ["4"], "outputs": ["2.0 [1] abc 4 1"]});
    let code = "q = deque([1])\ndef f(x: List[int]) -> Optional[int]: return bisect.bisect_left(x, 2)\n\
        print(math.sqrt(int(sys.stdin.readline())), list(q), ascii_lowercase[:3], gcd(12, 8), f([1, 2]))";
    all_give(&stdin, code, &[Passed]);
    let call = json!({"fn_name": "f", "inputs": ["3"], "outputs": ["5"]});
    for code in [
        "import math\ndef f(x): return pow(x, -1, 7) + math.floor(0.5)",
        "class Solution:\n    def f(self, x: Optional[int]) -> int: return operator.add(x, 2)",
        "from __future__ import annotations\ndef f(x): return bisect.bisect_left([1, 2, 3], 9) + 2",
        "class heapq: top = 5\ndef f(x): return heapq.top",
    ] {
        all_give(&call, code, &[Passed]);
    }
    for form in [
        json!({"fn_name": "gcd", "inputs": ["12\n8"], "outputs": ["4"]}),
        json!(["assert gcd(12, 8) == 4"]),
        json!(["assert gcd(12, 8) > 3"]),
        json!({"test": "def check(candidate):\n    assert candidate(12, 8) == 4\n", "entry_point": "gcd"}),
    ] {
        all_give(&form, "def f(): return gcd(12, 8)", &[Error]);
        all_give(&form, "from math import gcd", &[Passed]);
    }
    all_give(&json!(["assert max(1, 2) == 2"]), "x = 1", &[Error]);
    all_give(&json!(["assert max(1, 2) == 2"]), "def max(a, b): return b", &[Passed]);
    all_give(&json!({"inputs": ["1"], "outputs": ["main.py"]}), "print(__file__)", &[Passed]);
}

#[test]
fn values_of_subclasses_are_values() {
    let code = "import enum, collections\nclass Colour(enum.IntEnum):\n    RED = 3\nclass Name(str): pass\nclass Size(float): pass\n\
        Pair = collections.namedtuple('Pair', 'a b')\n\
        def f(x): return [Colour.RED, Name('a'), Size(0.5), Pair(1, 2), b'\\x00\\xff', collections.Counter('a')]";
    all_give(&json!(["assert f(1) == [3, 'a', 0.5, (1, 2), b'\\x00\\xff', {'a': 1}]"]), code, &[Passed]);
    all_give(&json!(["assert f(1)[0] == 3 and f(1)[4] == b'\\x00\\xff'"]), code, &[Passed]);
    let call = json!({"fn_name": "f", "inputs": ["1"], "outputs": ["3"]});
    all_give(&call, "import enum\nclass C(enum.IntEnum):\n    A = 3\ndef f(x): return C.A", &[Passed]);
    all_give(
        &call,
        "class C(int):\n    def __eq__(self, other): return True\n    __pos__ = __index__ = lambda self: 3\ndef f(x): return C(4)",
        &[Wrong],
    );
    // Arguments that are values: a text may be meant as it is.
    let text = json!({"fn_name": "f", "inputs": [["1", "2"]], "outputs": ["12"]});
    all_give(&text, "def f(a, b): return a + b", &[Passed]);
    all_give(&text, "def f(a, b): return b + a", &[Wrong]);
    all_give(&json!(["assert f(1) is True"]), "def f(x): return True", &[Passed]);
    all_give(&json!(["assert f(1) is True"]), "def f(x): return 1", &[Wrong]);
}

#[test]
fn objects_of_the_program_are_handed_over() {
    let nodes = json!(["root = Node(1)\nroot.left = Node(2)\nassert total(root) == 3"]);
    let class = "class Node:\n    def __init__(self, value): self.value, self.left = value, None\n";
    all_give(
        &nodes,
        &format!("{class}def total(node): return node.value + total(node.left) if node else 0"),
        &[Passed],
    );
    all_give(&nodes, &format!("{class}def total(node): return node.value"), &[Wrong]);
    for entry in ["Solution().add", "add"] {
        for test in [
            "def check(candidate):\n    assert candidate(a = 1, b = 2) == 3\n",
            "def check(candidate):\n    for i in range(2): assert candidate(a = i, b = 2) == i + 2\n",
        ] {
            let form = json!({"test": test, "entry_point": entry});
            all_give(&form, "class Solution:\n    def add(self, a, b): return a + b", &[Passed]);
            all_give(&form, "class Solution:\n    def add(self, a, b): return a - b", &[Wrong]);
        }
    }
}

/// A function that is returned can be called; it says nothing else.
#[test]
fn functions_that_are_returned_are_called() {
    let form = json!(["assert adder(1)(2) == 3 and adder(5)(5) == 10"]);
    all_give(&form, "def adder(x): return lambda y: x + y", &[Passed]);
    all_give(
        &form,
        "import functools, operator\ndef adder(x): return functools.partial(operator.add, x)",
        &[Passed],
    );
    all_give(&form, "def adder(x): return lambda y: x - y", &[Wrong]);
    all_give(&form, "def adder(x): return x", &[Error]);
    let kept = json!(
        "from solution import counter, twice\ndef test_counter():\n    one = counter()\n    assert callable(one) and [one(), one()] == [1, 2]\n    assert twice(one)() == 8\n"
    );
    let right = "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up\ndef twice(f): return lambda: (f() + 1) * 2";
    all_give(&kept, right, &[Passed]);
    for test in [
        json!(["assert f(1)"]),
        json!(["assert not f(1) == 3"]),
        json!(["assert f(1) != 3"]),
        json!(["assert len(f(1)) > 0 or f(1)"]),
        json!(["assert f(1) > 0"]),
    ] {
        all_give(&test, "def f(x): return f", &[Error]);
    }
}
