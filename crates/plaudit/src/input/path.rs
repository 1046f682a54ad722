//! Field paths into a line: `reward_model.ground_truth` into an object, `messages.-1.content` into a list.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The value at a path.
pub(super) fn find<'l>(line: &'l Map<String, Value>, path: &str) -> Option<&'l Value> {
    let mut steps = path.split('.');
    let first = line.get(steps.next()?)?;
    steps.try_fold(first, |value, step| match value {
        Value::Array(all) => all.get(place(step, all.len())?),
        value => value.get(step),
    })
}

/// The JSON text of the value at a path, as it was written; a name that stands in the line as it is wins over a path.
///
/// A float has lost how it was written, which this looks up again. The line must have been read before.
pub(super) fn literal<'l>(line: &'l str, path: &str) -> Option<&'l str> {
    let mut object: BTreeMap<String, &RawValue> = serde_json::from_str(line).ok()?;
    if let Some(value) = object.remove(path) {
        return Some(value.get());
    }
    let mut steps = path.split('.');
    let first = object.remove(steps.next()?)?.get();
    steps.try_fold(first, |text, step| match text.starts_with('[') {
        true => {
            let all: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            Some(all.get(place(step, all.len())?)?.get())
        }
        false => {
            let mut object: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            Some(object.remove(step)?.get())
        }
    })
}

/// A place in a list; a negative one counts from the end.
fn place(step: &str, length: usize) -> Option<usize> {
    match step.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok().filter(|back| *back > 0)?),
        None => step.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_same_value_and_text() {
        let line = r#"{"a":{"b":[1.50,{"c":2.0}]},"x.y":3.0,"x":{"y":4}}"#;
        let Ok(Value::Object(map)) = serde_json::from_str(line) else { panic!("an object") };
        for (path, text) in [("a.b.0", "1.50"), ("a.b.-2", "1.50"), ("a.b.1.c", "2.0"), ("a.b.-1.c", "2.0")] {
            assert_eq!(literal(line, path), Some(text), "{path}");
            assert_eq!(find(&map, path).and_then(Value::as_f64), text.parse().ok(), "{path}");
        }
        assert_eq!(literal(line, "x.y"), Some("3.0"));
        for path in ["a.b.2", "a.b.-3", "a.b.-0", "a.b.-", "a.b.c", "a.b.0.c", "z", "", "."] {
            assert_eq!((literal(line, path), find(&map, path)), (None, None), "{path}");
        }
    }
}
