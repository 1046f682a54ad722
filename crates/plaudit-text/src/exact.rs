//! JSON numbers that 64 bits do not hold, kept as they were written.
//!
//! `serde_json` makes a float of an integer beyond 64 bits; its feature `arbitrary_precision` would change what every reader in
//! a build sees of every number. So a number that would not survive is a text in its place, which begins with a mark. Who
//! compares numbers, or hands them on, asks for it here.

use crate::json_tokens::rewritten;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use std::borrow::Cow;

/// What the text of a number begins with: a noncharacter of Unicode, which stands in no text.
const MARK: char = '\u{FDD0}';

/// Reads JSON as Python's `json.loads` does: an integer of any size is one, and `1e400`, `Infinity` and `NaN` are numbers.
pub fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(&marked(text))
}

/// The same text with marks for the numbers that would not survive. In one pass; a text that is no JSON stays none.
pub fn marked(text: &str) -> Cow<'_, str> {
    rewritten(text, |token, rest| match token {
        // An integer in Python, and a float to `serde_json`.
        "-0" => Some("0".to_owned()),
        _ => (is_lost(token) && !names_value(rest)).then(|| format!("\"{MARK}{token}\"")),
    })
}

/// Whether what stands before is a key.
fn names_value(rest: &str) -> bool {
    rest.trim_ascii_start().starts_with(':')
}

/// Whether `serde_json` makes another number of what is written, or none.
fn is_lost(written: &str) -> bool {
    let digits = written.strip_prefix('-').unwrap_or(written);
    match digits.as_bytes() {
        b"Infinity" => true,
        b"NaN" => written == digits,
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            digits.len() > 18 && written.parse::<i64>().is_err() && written.parse::<u64>().is_err()
        }
        [b'0'..=b'9', ..] => {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            is_number && digits.parse::<f64>().is_ok_and(f64::is_infinite)
        }
        _ => false,
    }
}

/// The number as it was written, where a text stands for one.
pub fn number(text: &str) -> Option<&str> {
    text.strip_prefix(MARK).filter(|written| is_lost(written))
}

/// The text, or the number that it stands for as it was written.
pub fn plain(text: &str) -> &str {
    number(text).unwrap_or(text)
}

/// The value of a number that is written so, as [`read`] reads it.
pub fn of_number(written: &str) -> Value {
    read(written).unwrap_or_else(|_| Value::String(written.to_owned()))
}

/// The value as JSON text, with all numbers as they were written.
pub fn write(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(&format!("\"{MARK}")) {
        return text;
    }
    let written = |token: &str, rest: &str| {
        let content = token.strip_prefix('"')?.strip_suffix('"')?;
        number(content).filter(|_| !names_value(rest)).map(str::to_owned)
    };
    rewritten(&text, written).into_owned()
}

/// The value with the nearest float for every number that 64 bits do not hold, for those who only measure with it.
pub fn rounded(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let float = number(text).and_then(|written| written.parse().ok()).and_then(Number::from_f64);
            float.map_or_else(|| value.clone(), Value::Number)
        }
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_survive_reading_and_writing() {
        for text in [
            "100000000000000000001",
            "-9223372036854775809",
            "18446744073709551616",
            "[1,{\"a\":[100000000000000000001,\"100000000000000000001\"]}]",
            "1e400",
            "{\"a\\\"\":\"\\\\\",\"b\":-123456789012345678901234567890}",
            "18446744073709551615",
            "-9223372036854775808",
            "[0.1,1.0,1,-0.0]",
            "[-Infinity,NaN,Infinity]",
        ] {
            assert_eq!(write(&read::<Value>(text).unwrap()), text);
        }
        assert_eq!(read::<Value>("[-0, 1E5]").unwrap(), json!([0, 100000.0]));
        assert_eq!(read::<Value>("18446744073709551615").unwrap(), json!(u64::MAX));
        assert!(matches!(marked("{\"a\": [1, 2.5, \"x\\\\\"], \"b\": null}"), Cow::Borrowed(_)));
        assert_eq!(rounded(&read("[1e2, 100000000000000000001]").unwrap()), json!([1e2, 1e20]));
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in [
            "00000000000000000000012",
            "{100000000000000000001: 1}",
            "{100000000000000000001 : 1}",
            "100000000000000000001x",
            "--100000000000000000001",
            "+100000000000000000001",
            "1-100000000000000000001",
            "-NaN",
            "Infinity1",
            "\"100000000000000000001",
            "\"\\",
            "1e400e1",
            "-",
        ] {
            assert!(read::<Value>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_are_no_numbers() {
        for text in ["100000000000000000001", "\u{FDD0}", "\u{FDD0}x", "\u{FDD0}1", "\u{FDD0}1\",2,\""] {
            assert_eq!((number(text), plain(text)), (None, text));
            assert_eq!(write(&json!({ text: [text] })), json!({ text: [text] }).to_string());
        }
        let key = json!({"\u{FDD0}100000000000000000001": "\\\"\u{FDD0}100000000000000000001\""});
        assert_eq!(write(&key), key.to_string());
    }
}
