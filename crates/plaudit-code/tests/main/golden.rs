//! RM-Gallery's vectors of `code_execution`, with the differences that are meant.

use crate::{limits, patiently, sandboxes};
use plaudit_box::{Limits, Sandbox};
use plaudit_code::{Credit, Language, Tests, TestsError, execute, extract};
use serde_json::Value;
use std::time::Duration;

/// Where plaudit answers otherwise, by the vector's tag: its score (`None`: invalid, the data are at fault), and why.
const DIFFERENCES: [(&str, Option<f64>, &str); 23] = [
    ("two blocks: first is taken", Some(1.0), "the last block is the answer"),
    ("two blocks good first", Some(0.0), "the last block is the answer"),
    ("quit()", Some(1.0), "a program runs as a program: it may end itself"),
    ("stdin.buffer", Some(1.0), "a program has a real standard input"),
    ("no tests", None, "nothing is proven by an empty list"),
    ("bad json tests", None, "the data are at fault"),
    ("empty dict", None, "the data are at fault"),
    ("no tests key", None, "the data are at fault"),
    ("cmp: nothing printed", None, "a test that expects nothing is left out"),
    ("cmp: empty expected", None, "a test that expects nothing is left out"),
    ("cmp: extra output", None, "a test that expects nothing is left out"),
    ("cmp: two floats on a line", Some(1.0), "decimals are close, wherever they stand"),
    ("cmp: rtol 1e-5 accepts", Some(0.0), "an integer is expected, which has no tolerance"),
    ("list-typed outputs", Some(1.0), "a list is its lines"),
    ("list-typed inputs", Some(1.0), "a list is its lines"),
    ("fn: list of tuples", Some(1.0), "JSON has no tuples, at any depth"),
    ("no fence", Some(0.0), "prose is no program"),
    ("12 tests, 5 of the first 10", Some(5.0 / 12.0), "all tests count"),
    ("os.system disabled", Some(1.0), "a program may start others, inside the box"),
    ("infinite loop", Some(0.0), "the same, sooner"),
    ("numpy", Some(0.0), "packages of the host are not in the box by default"),
    ("continuous=False failing", Some(0.0), "the same, without an error of the harness"),
    ("7 s sleep: passes the second 10 s try", Some(1.0), "the same: sleeping costs no CPU time"),
];

#[test]
fn vectors_of_rm_gallery() {
    std::thread::scope(|scope| {
        for (sandbox, languages) in sandboxes().iter() {
            scope.spawn(|| vectors_in(sandbox, languages.find("python").unwrap()));
        }
    });
}

fn vectors_in(sandbox: &Sandbox, python: &Language) {
    let text = include_str!("../../../../golden/code_execution.jsonl");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let tag = vector["tag"].as_str().unwrap();
        let credit =
            if vector["params"]["continuous"] == false { Credit::AllOrNothing } else { Credit::Partial };
        let limits = Limits { wall: Some(Duration::from_secs(60)), ..limits() };
        let score = match Tests::parse(&vector["inputs_outputs"]) {
            Err(TestsError::Empty | TestsError::Form(_)) => None,
            Ok(tests) => match extract(vector["response"].as_str().unwrap(), python) {
                Some(code) => {
                    patiently(&limits, |limits| execute(sandbox, python, &code, &tests, limits, credit))
                        .score()
                }
                None => Some(0.0),
            },
        };
        let difference = DIFFERENCES.iter().find(|(known, _, _)| *known == tag);
        let wanted = difference.map_or(vector["expected"]["score"].as_f64(), |(_, score, _)| *score);
        count += 1;
        if score != wanted {
            wrong.push(format!("{tag}: {score:?}, wanted {wanted:?}"));
        }
    }
    assert!(
        wrong.is_empty() && count == 74,
        "isolation {}, {count}:\n{}",
        sandbox.isolation(),
        wrong.join("\n")
    );
}
