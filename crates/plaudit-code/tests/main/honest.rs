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

/// Programs that return objects, errors and functions in the place of what a test expects: they pass nothing, and hide nowhere.
#[test]
fn objects_decide_nothing_beside_plain_data() {
    let rows = rows(include_str!("../../../../golden/abuse/forged_objects.jsonl"));
    let texts = |key: &str| -> Vec<&Value> { rows.iter().filter_map(|row| row.get(key)).collect() };
    let (tests, programs) = (texts("tests"), texts("program"));
    // Each test meets a quarter of the programs.
    let all = tests.iter().enumerate().flat_map(|(at, test)| {
        programs
            .iter()
            .enumerate()
            .filter(move |(number, _)| (at + number) % 4 == 0)
            .map(move |(_, program)| (test, program))
    });
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
