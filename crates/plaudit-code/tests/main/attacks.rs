//! Programs that attack the check of their results, and every form of tests with a right and a wrong program.

use crate::{python, verdicts};
use plaudit_code::Verdict::{self, Error, Memory, Output, Passed, Time, Wrong};
use plaudit_code::{Language, Tests, TestsError, extract};
use serde_json::{Value, json};

#[test]
fn every_form_of_tests_tells_right_from_wrong() {
    let forms = [
        json!({"fn_name": "add", "inputs": ["1\n2"], "outputs": ["3"]}),
        json!({"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}),
        json!({"tests": [{"input": "1\n2", "output": "3", "testtype": "functional"}], "fn_name": "add"}),
        json!(["assert add(1, 2) == 3"]),
        json!({"test_list": ["assert add(1, 2) == 3"], "test_setup_code": "import math"}),
        json!({"test": "def check(candidate):\n    assert candidate(1, 2) == 3\n", "entry_point": "add"}),
        json!(["assert add(1, 2) == 3 and add(2, 2) == 4"]),
        json!("from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"),
        json!({"test": "def check(candidate):\n    for i in range(3):\n        assert candidate(i, 1) == i + 1\n", "entry_point": "add"}),
    ];
    for form in forms {
        for (code, wanted) in [
            ("def add(a, b):\n    print('noise')\n    return a + b", Passed),
            (
                "class Solution:\n    def add(self, a: int, b: Optional[int]) -> int: return a + b\nadd = Solution().add",
                Passed,
            ),
            ("def add(a, b): return a - b", Wrong),
            ("def other(a, b): return a + b", Error),
        ] {
            for execution in python(code, &form) {
                assert_eq!(verdicts(&execution), [wanted], "{form} {code}: {execution:?}");
            }
        }
    }
}

/// Tricks that other checks have fallen for. None may pass.
#[test]
fn tricks_do_not_pass() {
    let call = json!({"fn_name": "f", "inputs": ["1"], "outputs": ["[2, 3]"]});
    let truth = json!(["assert f(1)"]);
    let tests: Vec<(&Value, &str)> = vec![
        (
            &call,
            "class Same:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x): return Same()",
        ),
        (
            &call,
            "class Same(list):\n    def __eq__(self, other): return True\n    def __len__(self): return 2\ndef f(x): return Same()",
        ),
        (&call, "def f(x): return 2"),
        (&call, "import os\nos._exit(0)"),
        (&call, "import sys\nsys.exit(0)"),
        (&call, "import os\ndef f(x):\n    os.write(1, b'[\"l\", []]'); os._exit(0)"),
        (
            &call,
            "import sys\ndef f(x):\n    frame = sys._getframe()\n    found = []\n    while frame:\n        found += [v for k, v in frame.f_locals.items() if 'expect' in k or 'output' in k]\n        frame = frame.f_back\n    return found[0] if found else None",
        ),
        (
            &call,
            "import os\ndef f(x):\n    for fd in range(3, 20):\n        try: os.write(fd, b'[\"b\", true]\\n')\n        except OSError: pass\n    os._exit(0)",
        ),
        (&call, "import json\njson.dumps = lambda *_: '[\"b\", true]'\ndef f(x): return None"),
        (&call, "def f(x): raise SystemExit(0)"),
        (&call, "import atexit\natexit.register(lambda: print(7))\ndef f(x): return 1"),
        (&truth, "import os\nos._exit(0)"),
        (&truth, "def f(x): return 0"),
    ];
    for (tests, code) in tests {
        for execution in python(code, tests) {
            assert!(execution.results.iter().all(|result| result.verdict != Passed), "{code}: {execution:?}");
            assert_eq!(execution.score(), Some(0.0), "{code}: {execution:?}");
        }
    }
}

/// The attacks that are none on the box: on the extraction of the program, on its length, and on the list of its tests.
#[test]
fn attacks_before_the_box() {
    let tests = json!({"inputs": ["3 4\n", "10 20\n"], "outputs": ["7\n", "30\n"]});
    let language = Language::python("/usr/bin/python3");
    // C44: the last block is the answer. C45: prose is none.
    let two = "```python\nprint(0)\n```\n```python\na,b=map(int,input().split());print(a+b)\n```";
    for execution in python(&extract(two, &language).unwrap(), &tests) {
        assert_eq!(verdicts(&execution), [Passed, Passed], "{execution:?}");
    }
    assert_eq!(extract("The answer is 7.", &language), None);
    // C46: nothing is proven by an empty list.
    for empty in [json!([]), json!({"inputs": [], "outputs": []}), json!({"test_list": []})] {
        assert_eq!(Tests::parse(&empty), Err(TestsError::Empty));
    }
    // C39: five megabytes. C40: nesting that a parser may crash at; that is the program's fault.
    let giant = "a,b=map(int,input().split());print(a+b)\n".repeat(130_000);
    let deep = format!("x = {}{}", "[".repeat(200_000), "]".repeat(200_000));
    for code in [giant, deep] {
        for execution in python(&code, &tests) {
            assert_eq!(verdicts(&execution), [Error, Error], "{execution:?}");
        }
    }
}

#[test]
fn verdicts_name_what_happened() {
    let tests = json!({"inputs": ["1"], "outputs": ["1"]});
    let deep = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let cases: [(&str, Verdict); 11] = [
        (&deep, Error),
        ("x = [-", Error),
        ("print(input())", Passed),
        ("print(2)", Wrong),
        ("pass", Wrong),
        ("1/0", Error),
        ("while True: pass", Time),
        ("x = bytearray(64 << 30)", Memory),
        ("while True: print('x' * 65536)", Output),
        ("print(1)\nimport os\nos._exit(1)", Error),
        ("print(1, flush=True)\nwhile True: pass", Time),
    ];
    for (code, wanted) in cases {
        for execution in python(code, &tests) {
            assert_eq!(verdicts(&execution), [wanted], "{code}: {execution:?}");
        }
    }
}

/// A program that ends by what it did to itself has failed, in every form of tests: there is always a score.
#[test]
fn no_program_hides_in_invalid() {
    let forms = [
        json!({"inputs": ["1"], "outputs": ["1"]}),
        json!({"fn_name": "f", "inputs": ["1"], "outputs": ["1"]}),
        json!({"test": "def check(candidate):\n    for i in range(3):\n        assert candidate(i) == i\n", "entry_point": "f"}),
    ];
    let limit = |name: &str| format!("resource.setrlimit(resource.RLIMIT_{name}, (0, 0))");
    let deeds = [
        format!("{}\n    while True: pass", limit("CPU")),
        format!("{}\n    open('/dev/null')", limit("NOFILE")),
        format!("{}\n    x = [bytearray(1 << 20) for _ in range(999)]", limit("AS")),
        format!("{}\n    x = [bytearray(1 << 20) for _ in range(999)]", limit("DATA")),
        format!("{}\n    os.write(2, b'x' * 100000); os.abort()", limit("FSIZE")),
        "os.kill(os.getpid(), 9)\n    os.kill(0, 9)\n    os._exit(1)".to_owned(),
        "os.closerange(0, 99)\n    os.abort()".to_owned(),
        "[os.remove(n) for n in os.listdir('.')]\n    os._exit(1)".to_owned(),
    ];
    for deed in &deeds {
        let code = format!("import os, resource\ndef f(x):\n    {deed}\nif __name__ == '__main__': f(0)\n");
        for form in &forms {
            for execution in python(&code, form) {
                assert_eq!(execution.score(), Some(0.0), "{form} {code}: {execution:?}");
            }
        }
    }
}
