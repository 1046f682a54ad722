//! Completeness test of a rollout's fields: every declared one is read, written again, and part of what makes rollouts equal.

use plaudit::input::{Fields, read_line, read_map};
use plaudit::rollout::{FIELDS, Rollout};
use serde_json::{Map, Value, json};

fn read(line: &Value) -> Rollout<'static> {
    read_line(line.to_string().as_bytes(), &Fields::own()).unwrap().next().unwrap()
}

/// A line with a response and an example of a field.
fn line(field: &str, example: &str) -> Value {
    let mut line = json!({ "response": "x" });
    line[field] = serde_json::from_str(example).unwrap();
    line
}

#[test]
fn every_field_is_read_and_written() {
    let plain = read(&json!({ "response": "x" }));
    for field in FIELDS.iter().filter(|field| field.name != "responses") {
        let with = line(field.name, field.example);
        let rollout = read(&with);
        assert_ne!(rollout, plain, "{} is not read", field.name);
        assert!(field.name == "extra" || rollout.extra.is_empty(), "{} is left in `extra`", field.name);
        assert_eq!(read(&rollout.to_value()), rollout, "{} is not written", field.name);
        assert_eq!(rollout.clone().into_owned(), rollout, "{} is lost by a copy", field.name);
        let Value::Object(row) = with else { unreachable!("an object") };
        let of_table = read_map(row, &Fields::own()).unwrap().next().unwrap();
        assert_eq!(of_table, rollout, "{} of a table is another", field.name);
        let names = ["id", "group"].contains(&field.name);
        assert_eq!(rollout.is_like(&plain), names, "{} does not tell rollouts apart", field.name);
    }
}

#[test]
fn every_field_has_another_name_where_one_is_given() {
    for field in FIELDS.iter().filter(|field| !["response", "responses", "extra"].contains(&field.name)) {
        let mut fields = Fields::own();
        assert!(fields.map(field.name, "deep.inside"));
        let example: Value = serde_json::from_str(field.example).unwrap();
        let row = json!({ "response": "x", "deep": { "inside": example } });
        let mut found = read_line(row.to_string().as_bytes(), &fields).unwrap().next().unwrap();
        found.extra = Map::new();
        assert_eq!(found, read(&line(field.name, field.example)), "{}", field.name);
    }
}

#[test]
fn a_group_line_has_a_value_for_each_response() {
    let line = json!({
        "responses": ["a", [{"role": "assistant", "content": "b"}], "c"],
        "tokens": [1, 2, 3], "truncated": [true, null, false], "finish_reason": ["stop", "tool_calls", null],
    });
    let read = read_line(line.to_string().as_bytes(), &Fields::own()).unwrap();
    let ended: Vec<_> = read
        .map(|rollout| (rollout.generation.finish_reason.map(|reason| reason.as_str()), rollout.tokens))
        .collect();
    assert_eq!(ended, [(Some("length"), Some(1)), (Some("tool_calls"), Some(2)), (Some("stop"), Some(3))]);
    for field in ["tokens", "truncated", "finish_reason"] {
        let line = json!({ "responses": ["a", "b"], field: [null] });
        let error = read_line(line.to_string().as_bytes(), &Fields::own()).unwrap_err();
        assert!(error.message.starts_with(&format!("{field}: a list with one")), "{}", error.message);
    }
}
