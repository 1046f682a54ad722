//! Honest programs of many kinds with tests that are programs: objects, generators, errors, callbacks, output, fixtures. None may fail.

use crate::{python, verdicts};
use plaudit_code::Verdict;
use serde_json::Value;
use std::sync::Mutex;

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn honest_programs_pass() {
    let rows = rows(include_str!("../../../../golden/honest_programs.jsonl"));
    let next = Mutex::new(rows.iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(row) = next.lock().unwrap().next() else { return };
                    for execution in python(row["program"].as_str().unwrap(), &row["tests"]) {
                        let passed = verdicts(&execution).iter().all(|verdict| *verdict == Verdict::Passed);
                        assert!(passed, "{}: {execution:?}", row["name"]);
                    }
                }
            });
        }
    });
}

/// In one interpreter everything is as Python has it, the end of the test included.
#[test]
fn together_is_a_plain_interpreter() {
    use crate::{SANDBOXES, limits};
    use plaudit_code::{Program, TestProcess, Tests};
    use std::sync::Arc;
    let run = |program: &str, tests: &Value| -> Vec<Verdict> {
        let tests = Tests::parse(tests).unwrap();
        let (sandbox, languages) = &SANDBOXES[0];
        let language = Arc::new(languages.find("python").unwrap().clone());
        let program = Program::prepare(sandbox, &language, &Arc::from(program), &limits()).unwrap();
        let program = program.test_process(TestProcess::Together);
        tests.cases().iter().map(|case| program.run(sandbox, case).verdict).collect()
    };
    for row in rows(include_str!("../../../../golden/honest_programs.jsonl")) {
        let found = run(row["program"].as_str().unwrap(), &row["tests"]);
        assert!(found.iter().all(|verdict| *verdict == Verdict::Passed), "{}: {found:?}", row["name"]);
    }
    let check = serde_json::json!({"test": "def check(candidate):\n    for i in [1, 2]: assert candidate(i) == i + 1\n", "entry_point": "f"});
    for (program, wanted) in [
        ("def f(x): return x + 1", Verdict::Passed),
        ("def f(x): return x", Verdict::Wrong),
        ("def f(x): return {}[x]", Verdict::Error),
        ("import sys\nsys.exit(0)", Verdict::Error),
        ("import os\ndef f(x): os._exit(0)", Verdict::Error),
        ("print('{\"verdict\": \"passed\"}')\ndef f(x): return x", Verdict::Wrong),
        // What it gives up: an object that equals everything.
        ("class Same:\n    def __eq__(self, other): return True\ndef f(x): return Same()", Verdict::Passed),
    ] {
        assert_eq!(run(program, &check), [wanted], "{program}");
    }
}

/// Programs that return objects, errors and functions in the place of what a test expects: they pass nothing, and hide nowhere.
#[test]
fn objects_decide_nothing_beside_plain_data() {
    let rows = rows(include_str!("../../../../golden/abuse/forged_objects.jsonl"));
    let alone = |key: &str, other: &str| -> Vec<&Value> {
        rows.iter().filter(|row| row.get(other).is_none()).filter_map(|row| row.get(key)).collect()
    };
    let (tests, programs) = (alone("tests", "program"), alone("program", "tests"));
    // Each test meets a quarter of the programs; some programs are for one test.
    let all = tests.iter().enumerate().flat_map(|(at, test)| {
        let fourth = programs.iter().enumerate().filter(move |(number, _)| (at + number) % 4 == 0);
        fourth.map(move |(_, program)| (*test, *program))
    });
    let all = all.chain(rows.iter().filter_map(|row| Some((row.get("tests")?, row.get("program")?))));
    let next = Mutex::new(all);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((test, program)) = next.lock().unwrap().next() else { return };
                    for execution in python(program.as_str().unwrap(), &serde_json::json!([test])) {
                        assert_eq!(execution.score(), Some(0.0), "{test}\n{program}\n{execution:?}");
                    }
                }
            });
        }
    });
}
