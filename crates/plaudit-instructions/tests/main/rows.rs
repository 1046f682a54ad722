//! Whole rows in their public forms, and the numbers that the public scorers make of them.

use crate::golden;
use plaudit_instructions::row::{self, Grading, Row, RowErrorKind};
use plaudit_instructions::{Mode, Semantics, parse, verdicts};
use serde_json::{Value, json};

fn rows() -> Vec<Value> {
    let text = std::fs::read_to_string(golden("instructions_rows.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A value as Python writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let escaped =
                text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r");
            format!("'{escaped}'")
        }
        Value::Array(list) => format!("[{}]", list.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs =
                map.iter().map(|(key, value)| format!("{}: {}", literal(&json!(key)), literal(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn read(row: &Value) -> Result<Row, RowErrorKind> {
    row::read(row.as_object().unwrap(), Semantics::Published).map_err(|error| error.problem)
}

#[test]
fn verdicts_and_credit() {
    let (mut agree, mut all) = (0, 0);
    for row in rows() {
        let text = row["response"].as_str().unwrap();
        let (ids, kwargs) =
            (row["instruction_id_list"].as_array().unwrap(), row["kwargs"].as_array().unwrap());
        for (name, mode) in [("strict", Mode::Strict), ("loose", Mode::Loose)] {
            for (at, expected) in row["expected"][name].as_array().unwrap().iter().enumerate() {
                let check = parse(ids[at].as_str().unwrap(), &kwargs[at], Semantics::Published);
                let ours = check.map_or(json!("error"), |check| json!(verdicts(text, &[check], mode)[0]));
                all += 1;
                agree += usize::from(ours == *expected);
                if ours != *expected {
                    println!("{} {} {name}: expected {expected}, ours {ours}", row["id"], ids[at]);
                }
            }
            let credit = &row["credit"][name];
            match read(&row) {
                Err(_) => assert_eq!(credit["all"], "error", "{}", row["id"]),
                Ok(found) => {
                    let verdicts = verdicts(text, &found.checks, mode);
                    let share = verdicts.iter().filter(|held| **held).count() as f64 / verdicts.len() as f64;
                    assert_eq!(credit["all"], json!(verdicts.iter().all(|held| *held)), "{}", row["id"]);
                    assert_eq!(credit["share"].as_f64(), Some(share), "{}", row["id"]);
                }
            }
        }
    }
    println!("{agree} of {all} verdicts");
    assert!(all > 3000 && agree == all);
}

#[test]
fn forms_say_the_same() {
    for row in rows() {
        let Ok(plain) = read(&row) else { continue };
        let ids = |row: &Row| row.checks.iter().map(|check| check.constraint().id).collect::<Vec<_>>();
        let inner = json!({"instruction_id": row["instruction_id_list"], "kwargs": row["kwargs"]});
        let nemo = json!({"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"],
            "prompt": "", "grading_mode": "binary"});
        let forms = [
            json!({"ground_truth": literal(&json!([inner]))}),
            json!({"ground_truth": literal(&json!([inner.to_string()]))}),
            json!({"ground_truth": [inner]}),
            json!({"verifier_metadata": nemo}),
        ];
        for form in forms {
            let found = read(&form).unwrap();
            assert_eq!(ids(&found), ids(&plain));
            assert_eq!(found.grading, form.get("verifier_metadata").map(|_| Grading::Binary));
        }
    }
}

#[test]
fn reward_of_if_rlvr() {
    let mut all = 0;
    for row in rows() {
        let (Some(expected), Ok(found)) = (row["ifrlvr_reward"].as_f64(), read(&row)) else { continue };
        let answer = row::without_thought(row["response"].as_str().unwrap());
        let verdicts = verdicts(&answer, &found.checks, Mode::Strict);
        let share = verdicts.iter().filter(|held| **held).count() as f64 / verdicts.len() as f64;
        assert!((share - expected).abs() < 1e-12, "{}: {share}, not {expected}", row["id"]);
        all += 1;
    }
    assert!(all > 350, "{all}");
}
