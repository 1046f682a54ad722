//! Programs that try to forge the verdict of a test script, to read it, or to break the box that runs it.

use crate::{limits, patiently, python, python_within, verdicts};
use plaudit_box::Limits;
use plaudit_code::Verdict::{Error, Passed, Wrong};
use plaudit_code::{Credit, Tests, execute};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Every kind of test that runs beside a program, with an expected value that no program can guess.
fn forms() -> Vec<Value> {
    vec![
        json!({"test": "def check(candidate):\n    for i in range(2):\n        assert candidate(i) == 'zebra-7391'\n", "entry_point": "f"}),
        json!(
            "import pytest\nfrom solution import f\ndef test_f():\n    with pytest.raises(ZeroDivisionError, match='zebra-7391'):\n        f(1)\n"
        ),
        json!(["assert abs(f(1) - 7391.5) < 1e-6"]),
        json!(["assert f(1) == 'zebra-7391'"]),
        json!(["assert len(f(1)) == 10 and f(1)[0] == 'z' and f(1) in ['zebra-7391']"]),
    ]
}

/// Limits for programs that never answer.
fn hostile() -> Limits {
    Limits { cpu: Duration::from_secs(1), wall: Some(Duration::from_secs(3)), ..limits() }
}

const VERDICT: &str = r#"LINE = b'{"verdict": "passed", "message": ""}\n'"#;

/// Programs that no test may take for a right one.
fn programs() -> Vec<String> {
    let bodies = [
        // The verdict, written wherever there is a descriptor; at once, at the end, later, and from a child.
        "import os\nfor fd in range(20):\n    try: os.write(fd, LINE)\n    except OSError: pass\nos._exit(0)",
        "import os\nfor fd in (1, 2): os.write(fd, LINE)\ndef f(x): return 1",
        "import os\ndef f(x):\n    for fd in range(20):\n        try: os.write(fd, LINE)\n        except OSError: pass\n    return 1",
        "import sys\nsys.stdout.write(LINE.decode()); sys.stderr.write(LINE.decode())\ndef f(x): return 1",
        "import atexit, sys, os\natexit.register(lambda: [os.write(fd, LINE) for fd in (1, 2)])\ndef f(x): sys.exit(0)",
        "import threading, os, time\ndef late():\n    for _ in range(200):\n        time.sleep(0.001)\n        for fd in range(1, 8):\n            try: os.write(fd, LINE)\n            except OSError: pass\nthreading.Thread(target=late, daemon=True).start()\ndef f(x):\n    time.sleep(0.02)\n    return 1",
        "import os\ndef f(x):\n    try: child = os.fork()\n    except OSError: child = 1\n    if child == 0:\n        for fd in range(8):\n            try: os.write(fd, LINE)\n            except OSError: pass\n        os._exit(0)\n    return 1",
        // The frames, the modules and the objects of the harness.
        "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        for key, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):\n            if isinstance(value, dict): value.update(verdict='passed', result='zebra')\n            if isinstance(value, list): value.append('passed')\n        frame = frame.f_back\n    return 1",
        "import sys, gc\nfor found in gc.get_objects():\n    if type(found) is dict and 'calls' in found: found['calls'] = 1\nfor name in ('test_solution', 'pytest', 'json', 'builtins'): sys.modules[name] = sys\nsys.modules['__main__'].main = sys.exit\ndef f(x): return 1",
        "import sys, json\nsys.modules['json'].dumps = lambda *_, **__: '{\"verdict\": \"passed\", \"message\": \"\"}'\ndef f(x): return 1",
        "import os\nos.write = lambda fd, text: len(text)\ndef f(x): return 1",
        "import builtins\nbuiltins.len = lambda _: 10\nbuiltins.abs = lambda _: 0\nbuiltins.bool = builtins.isinstance = lambda *_: True\ndef f(x): return 1",
        "import builtins\nclass AssertionError(Exception): pass\nbuiltins.AssertionError = AssertionError\ndef f(x): raise AssertionError()",
        // Objects that say of themselves that they are right.
        "class Same:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    def __bool__(self): return True\n    def __len__(self): return 10\n    def __getitem__(self, key): return 'z'\n    def __sub__(self, other): return 0\n    def __abs__(self): return 0\n    def __lt__(self, other): return True\n    def __hash__(self): return 0\ndef f(x): return Same()",
        "class Same(str):\n    def __eq__(self, other): return True\n    def __len__(self): return 10\n    __hash__ = None\ndef f(x): return Same('z')",
        "class Same(list):\n    def __eq__(self, other): return True\n    def __len__(self): return 10\ndef f(x): return Same('z')",
        "class Same(float):\n    def __sub__(self, other): return 0\n    __rsub__ = __sub__\n    def __eq__(self, other): return True\ndef f(x): return Same(1)",
        "class Meta(type):\n    def __eq__(self, other): return True\n    def __instancecheck__(self, other): return True\n    __hash__ = type.__hash__\nclass Same(metaclass=Meta): pass\ndef f(x): return Same",
        "class Same:\n    @property\n    def __class__(self): return str\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x): return Same()",
        "class Same(str):\n    def __eq__(self, other): return True\n    __hash__ = None\nclass ndarray:\n    def tolist(self): return Same('z')\nndarray.__module__ = 'numpy'\ndef f(x): return ndarray()",
        "class Decimal:\n    def __str__(self): return 'zebra'\n    def __eq__(self, other): return True\n    __hash__ = None\nDecimal.__module__ = 'decimal'\ndef f(x): return Decimal()",
        "class Meta(type):\n    def mro(cls): return [cls, object]\nclass Same(metaclass=Meta):\n    __class__ = str\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x): return Same()",
        "class Table(dict):\n    def items(self): return [('zebra', 1)]\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x): return Table(a=1)",
        "import ctypes\nclass Same(str):\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(x):\n    same = Same('z')\n    ctypes.c_void_p.from_address(id(same) + 8).value = id(str)\n    return same",
        // Functions that say of themselves that they are right.
        "def f(x):\n    def g(*given, **named): return given[0] if given else 'zebra'\n    g.__len__ = lambda: 10\n    g.__eq__ = lambda other: True\n    return g",
        "import sys, json, os\nsys.modules['__main__'].OBJECTS[:] = [json, os, str]\nat = -3\ndef f(x):\n    global at\n    at += 1\n    for fd in range(3, 9):\n        try: os.write(fd, b'{\"result\": [\"h\", %d]}\\n' % at)\n        except OSError: pass\n    return 1",
        "import sys, builtins\nmain = sys.modules['__main__']\nmain.HANDLES = (int, str)\nmain.other = lambda value: 'zebra'\nbuiltins.issubclass = lambda *_: True\ndef f(x): return 1",
        "import sys\ndef trace(frame, event, argument):\n    for key in list(frame.f_locals):\n        if key in ('verdict', 'result', 'message'): frame.f_locals[key] = 'passed'\n    return trace\nsys.settrace(trace)\nsys.setprofile(trace)\ndef f(x): return 1",
        // Ends and errors.
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "def f(x): raise SystemExit(0)",
        "import os\ndef f(x): os._exit(0)",
        "def f(x): raise KeyboardInterrupt()",
        "def f(x): raise GeneratorExit()",
        "def f(x): raise StopIteration('passed')",
        "class Invalid(BaseException): pass\ndef f(x): raise Invalid('the test')",
        "class Broken(ZeroDivisionError, AssertionError): pass\ndef f(x): raise Broken('zebra')",
        "class Zero(ZeroDivisionError):\n    def __str__(self): return 'z' * 10\ndef f(x): raise Zero()",
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(x): return f(x)",
        // What is read: the request, the files, the memory, and the pipe.
        "import os, re, gc, sys\nseen = []\nfor name in os.listdir('.'): seen.append(open(name, errors='replace').read())\nfor found in gc.get_objects():\n    try: seen.append(repr(found))\n    except Exception: pass\nframe = sys._getframe()\nwhile frame:\n    seen.append(repr(frame.f_locals)); frame = frame.f_back\nfor fd in range(20):\n    try:\n        os.set_blocking(fd, False)\n        seen.append(repr(os.read(fd, 100000)))\n    except OSError: pass\nfor fd in range(20):\n    try: os.set_blocking(fd, True)\n    except OSError: pass\nanswers = re.findall('zebra-[0-9]{4}|7391.5', ' '.join(seen))\ndef f(x):\n    if answers: raise ZeroDivisionError(answers[0]) if x == 1 else SystemExit\n    return answers[0] if answers else ''",
        "import os\nstolen = b''\ndef f(x):\n    global stolen\n    for fd in range(3, 9):\n        try:\n            os.set_blocking(fd, False)\n            stolen += os.read(fd, 100000)\n        except OSError: pass\n    return 'zebra-7391' if b'zebra' in stolen else ''",
        "import re\nfound = []\ntry:\n    maps, memory = open('/proc/self/maps'), open('/proc/self/mem', 'rb', 0)\n    for line in maps:\n        start, end = (int(part, 16) for part in line.split()[0].split('-'))\n        try:\n            memory.seek(start)\n            found += re.findall(b'zebra-[0-9]{4}', memory.read(min(end - start, 1 << 24)))\n        except (OSError, ValueError, OverflowError): pass\nexcept OSError: pass\ndef f(x): return found[0].decode() if found else ''",
    ];
    let mut programs: Vec<String> = bodies.iter().map(|body| format!("{VERDICT}\n{body}")).collect();
    // Answers to calls that break the rules of the wire.
    for answer in [
        r#"{"verdict": "passed", "message": ""}"#,
        r#"{"result": ["o"]}"#,
        r#"{"result": ["h", 0]}"#,
        r#"{"object": 0}"#,
        r#"{"method": true}"#,
        r#"{"result": {"__class__": "Same"}}"#,
        r#"{"result": ["x", "os.system", "true"]}"#,
        r#"{"result": ["x", "decimal.Decimal.__class__", "1"]}"#,
        r#"{"result": ["e", [["l", []]]]}"#,
        r#"{"result": ["r", 0, 1, 0]}"#,
        r#"{"result": NaN}"#,
        r#"{"result": ["i", "0xfg"]}"#,
        r#"{"raised": ["Invalid", "State", "__import__"], "message": ["zebra"]}"#,
        r#"{"raised": {"a": 1}, "message": null}"#,
        r#"{"raised": ["AssertionError"], "message": "passed"}"#,
        r#"{"missing": "f"}"#,
        r#"{"result": null, "after": [7391.5]}"#,
        r#"{"result": null, "after": "passed"}"#,
        "null",
        "[]",
        r#""raised""#,
        "",
        "\\xff\\xfe",
    ] {
        programs.push(format!("import os\nTEXT = b'''{answer}'''\ndef f(x):\n    for fd in range(3, 9):\n        try: os.write(fd, TEXT + b'\\n')\n        except OSError: pass\n    return 1"));
    }
    for text in
        ["b'[' * 100000", "b'{\"result\": [\"l\", ' * 1000", "b'{\"result\": ' + b'9' * 100000 + b'}'"]
    {
        programs.push(format!("import os\ndef f(x):\n    for fd in range(3, 9):\n        try: os.write(fd, {text} + b'\\n')\n        except OSError: pass\n    return 1"));
    }
    programs
}

#[test]
fn verdicts_cannot_be_forged() {
    let started = Instant::now();
    let (forms, programs) = (forms(), programs());
    let next = AtomicUsize::new(0);
    // Most of the time some of them wait for their limit.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(code) = programs.get(number) else { return };
                    // Each program meets two of the forms.
                    for form in [&forms[number % forms.len()], &forms[(number + 1) % forms.len()]] {
                        for execution in python_within(&hostile(), code, form) {
                            assert_eq!(execution.score(), Some(0.0), "{form}\n{code}\n{execution:?}");
                        }
                    }
                }
            });
        }
    });
    println!("{} programs in {:?}", programs.len(), started.elapsed());
}

/// A condition is decided in the test's own box: what is true there is true data.
#[test]
fn truth_is_not_the_programs_to_decide() {
    for test in
        [json!(["assert f(1)"]), json!(["assert not f(1) == 0"]), json!(["assert (f(1) == 3) == True"])]
    {
        for code in [
            "class Yes:\n    def __bool__(self): return True\n    def __eq__(self, other): return True\ndef f(x): return Yes()",
            "import builtins\nbuiltins.bool = lambda _: True\ndef f(x): return 0",
            "import os\ndef f(x):\n    os._exit(0)",
            "import json\njson.dumps = lambda _: '[\"b\", true]'\ndef f(x): return 0",
            "import sys\nsys.modules['__main__'].plain = lambda *_: ['b', True]\ndef f(x): return 0",
            "def f(x): return {}[x]",
            "def f(x): return 0",
        ] {
            for execution in python(code, &test) {
                assert_eq!(execution.score(), Some(0.0), "{test}\n{code}\n{execution:?}");
            }
        }
    }
}

/// Errors that Python's own protocols take for an end, or for "not there": a loop that they cut short proves nothing.
#[test]
fn errors_that_end_loops_pass_no_test() {
    let check = |body: &str| json!({"entry_point": "f", "test": format!("CASES = [(1, 'zebra-7391'), (2, 'zebra-7392')]\ndef check(candidate):\n    {body}\n")});
    let tests = [
        check("assert all(map(lambda t: candidate(t[0]) == t[1], CASES))"),
        check("assert not list(filter(lambda t: candidate(t[0]) != t[1], CASES))"),
        check("for (x, want), got in zip(CASES, map(candidate, [1, 2])): assert got == want"),
        check("assert not any(map(lambda t: candidate(t[0]) != t[1], CASES))"),
        check("for got in iter(lambda: candidate(1), 'zebra'): assert got == 'zebra-7391'"),
        check("assert all(candidate(x) == want for x, want in CASES)"),
        check("assert sum(map(lambda t: candidate(t[0]) != t[1], CASES)) == 0"),
        check("assert next(map(candidate, [1]), 'zebra-7391') == 'zebra-7391'"),
        check("assert max(map(candidate, [1, 2]), default='zebra') == 'zebra'"),
        check("assert [candidate(x) for x, _ in CASES] == [] or not list(map(candidate, [1]))"),
        check("for got in map(candidate, [1, 2]): assert got == 'zebra-7391'"),
        check(
            "import itertools\n    for got in itertools.starmap(candidate, [(1,), (2,)]): assert got == 'zebra-7391'",
        ),
        check(
            "import itertools\n    assert not list(itertools.dropwhile(lambda t: candidate(t[0]) == t[1], CASES))",
        ),
        check(
            "import functools\n    for got in iter(functools.partial(candidate, 1), 0): assert got == 'zebra-7391'",
        ),
        check(
            "try:\n        assert all(map(candidate, [1, 2]))\n    except StopIteration:\n        assert False",
        ),
        check(
            "try:\n        for got in iter(lambda: candidate(1), 0): assert got == 'zebra-7391'\n    except Exception:\n        raise",
        ),
        check(
            "class Each:\n        def __getitem__(self, at): return candidate(CASES[at][0]) == CASES[at][1]\n    assert all(Each())",
        ),
        check(
            "class Each:\n        def __iter__(self): return self\n        def __next__(self): return candidate(1)\n    for got in Each(): assert got == 'zebra-7391'",
        ),
        check(
            "class Lazy:\n        def __getattr__(self, name): return candidate(1)\n    assert getattr(Lazy(), 'x', 'zebra-7391') == 'zebra-7391'",
        ),
        check(
            "class Table(dict):\n        def __missing__(self, key): return candidate(key)\n    assert all(map(lambda t: Table()[t[0]] == t[1], CASES))",
        ),
    ];
    for error in [
        "StopIteration",
        "StopIteration('zebra')",
        "StopAsyncIteration",
        "GeneratorExit",
        "SystemExit(0)",
        "KeyboardInterrupt",
        "IndexError('zebra')",
        "type('Stop', (StopIteration,), {})()",
        "type('Missing', (AttributeError, IndexError, KeyError), {})()",
    ] {
        for test in &tests {
            let code = format!("def f(x): raise {error}");
            for execution in python(&code, test) {
                assert_eq!(execution.score(), Some(0.0), "{test}\n{code}\n{execution:?}");
            }
        }
    }
}

/// A program cannot make a test invalid in order to be left out of the score.
#[test]
fn a_program_cannot_make_its_test_invalid() {
    let form =
        json!("import pytest, math\nfrom solution import f\ndef test_f():\n    assert f(f(1)) == math.inf\n");
    for code in [
        "def f(x): return lambda: 1",
        "def f(x): raise ModuleNotFoundError('numpy')",
        "def f(x): raise SyntaxError('test')",
        "def f(x): raise NameError('candidate')",
        "def f(x): return (x for x in [object()])",
        "def f(x):\n    import itertools\n    return itertools.count()",
        "def f(x): raise MemoryError()",
        "def f(x): return 'x' * (70 << 20)",
        "import sys, os\nsys.stdout.close(); sys.stderr.close()\nfor fd in range(9):\n    try: os.close(fd)\n    except OSError: pass\ndef f(x): return 1",
    ] {
        for execution in python_within(&hostile(), code, &form) {
            let found = verdicts(&execution);
            assert!(
                !found.iter().any(|verdict| verdict.is_no_verdict() || *verdict == Passed),
                "{code}: {execution:?}"
            );
        }
    }
}

/// The same, by what a name is bound to, by what is handed back, and by answers of another harness.
#[test]
fn a_name_bound_to_anything_makes_no_test_invalid() {
    let forms = [
        json!("from solution import f\ndef test_f():\n    for x in [3, 4]:\n        assert f(f(x)) == 91\n"),
        json!({"test": "def check(candidate):\n    for x in [3]:\n        assert candidate(candidate(x)) == 91\n", "entry_point": "f"}),
        json!(
            "import unittest\nimport solution\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(solution.f(solution.f(3)), 91)\n"
        ),
        json!(
            "from solution import f\ndef test_f():\n    for x in [1, 2]:\n        assert isinstance(f(x), int) and f(x) == 91, message\n"
        ),
        json!(
            "from solution import f\ndef test_f():\n    try:\n        found = f(f(1))\n    except Exception as error:\n        logger.error(error)\n        raise\n    if found != 91:\n        raise Failed(found)\n"
        ),
    ];
    let bound = [
        "int",
        "bool",
        "type",
        "object",
        "map",
        "slice",
        "property",
        "super",
        "ValueError",
        "None",
        "...",
        "[f]",
    ];
    let library =
        ["json.JSONDecodeError", "collections.OrderedDict", "asyncio.CancelledError", "unittest.SkipTest"];
    let others = [
        "class Meta(type):\n    @property\n    def __module__(self): raise ValueError\nclass Odd(metaclass=Meta): pass\nf = Odd()",
        "import json\ndef f(x): return json.JSONDecodeError",
        "import datetime\ndef f(x): return datetime.timezone",
        "def f(x): return (i for i in range(3))",
        "def f(x): return slice(1)",
    ];
    let bound = bound.iter().map(|value| format!("f = 1\nf = {value}"));
    let library =
        library.iter().map(|value| format!("import json, collections, asyncio, unittest\nf = {value}"));
    for (at, code) in bound.chain(library).chain(others.map(str::to_owned)).enumerate() {
        // Each meets half of the forms.
        for form in forms.iter().skip(at % 2).step_by(2) {
            for execution in python_within(&hostile(), &code, form) {
                assert_eq!(execution.score(), Some(0.0), "{form} {code}: {execution:?}");
            }
        }
    }
    // A function or a class in the place of a value.
    let values = [
        "assert f == 91",
        "assert [x for x in f] == [91]",
        "assert 91 in f",
        "assert f['a'] == 91",
        "assert f + 1 == 92",
        "assert f < 92",
        "assert len(f) == 91",
        "assert isinstance(91, f)",
        "with f as it:\n        assert it == 91",
    ];
    for value in values {
        let form = json!(format!("from solution import f\ndef test_f():\n    {value}\n"));
        for code in ["def f(*x): return 1", "class f: pass"] {
            for execution in python_within(&hostile(), code, &form) {
                assert_eq!(execution.score(), Some(0.0), "{form} {code}: {execution:?}");
            }
        }
    }
    // An error that is made and never raised is true, and made by the program.
    let form = json!(
        "from solution import f\ndef test_f():\n    assert f(1)\ndef test_g():\n    assert f(2) == 91\n"
    );
    for execution in python("f = StopIteration", &form) {
        assert_eq!(verdicts(&execution), [Passed, Wrong], "{execution:?}");
    }
    // More items than the test has asked for would be read ahead.
    let ahead = "import sys\ndef f(x):\n    while True: x = yield x\ndef g(it): return 0\n\
                 sys.modules['__main__'].pull = lambda at, most: {'items': [1, 1, 1]}";
    for test in ["assert it.send(91) == 91", "assert g(it) == 91"] {
        let form = json!(format!(
            "from solution import f, g\ndef test_f():\n    it = f(1)\n    next(it)\n    {test}\n"
        ));
        for execution in python_within(&hostile(), ahead, &form) {
            assert_eq!(execution.score(), Some(0.0), "{test}: {execution:?}");
        }
    }
}

/// The source of a program is bounded: what is longer is not run.
#[test]
fn a_giant_source_costs_no_time() {
    let giant = "x = 1\n".repeat(900_000);
    let nested = format!("x = {}1{}", "(".repeat(90_000), ")".repeat(90_000));
    for form in [json!({"inputs": ["1"], "outputs": ["1"]}), json!(["assert f(1) == 1"])] {
        for execution in python(&giant, &form) {
            assert_eq!(verdicts(&execution), [Error], "{execution:?}");
            let result = &execution.results[0];
            assert!(result.message.contains("too long") && result.cpu == Duration::ZERO, "{result:?}");
        }
        for execution in python(&nested, &form) {
            assert_eq!(verdicts(&execution), [Error], "{execution:?}");
        }
    }
}

/// Pairs need no second slot, so that any number of threads gets through on one.
#[test]
fn pairs_on_one_slot_do_not_wait_for_each_other() {
    use crate::{LANGUAGES, sandboxes};
    let tests = Tests::parse(&json!(["assert f(1) > 0"])).unwrap();
    for (known, _) in sandboxes().iter() {
        let options = plaudit_box::Options {
            isolation: Some(known.isolation()),
            read_only: LANGUAGES.folders(),
            slots: 1,
            ..plaudit_box::Options::default()
        };
        let sandbox = plaudit_box::Sandbox::open(options).unwrap();
        let languages = LANGUAGES.usable_in(&sandbox);
        let limits = Limits { wall: Some(Duration::from_secs(60)), ..limits() };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let language = languages.find("python").unwrap();
                    let code = "def f(x): return x";
                    let execution = patiently(&limits, |limits| {
                        execute(&sandbox, language, code, &tests, limits, Credit::Partial)
                    });
                    assert_eq!(verdicts(&execution), [Passed], "{execution:?}");
                });
            }
        });
    }
}
