//! JSON documents, with what Python's `json.loads` takes beyond the standard.

use super::{Dialect, DocumentError};
use plaudit_text::{escaped_utf16, rewritten};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    let text = match dialect {
        Dialect::Standard => Cow::Borrowed(text),
        Dialect::Python => standard(text),
    };
    let parse = |text: &str| {
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let deep = message.starts_with("recursion limit exceeded");
            let cause = if deep { DocumentError::TooLarge } else { DocumentError::Syntax };
            (cause, message.starts_with("number out of range"))
        })
    };
    match parse(&text) {
        Err((_, true)) => parse(&bounded(&text, dialect)).map_err(|(cause, _)| cause),
        read => read.map_err(|(cause, _)| cause),
    }
}

/// The text with the largest number in the place of those that no double holds. They are JSON.
fn bounded(text: &str, dialect: Dialect) -> Cow<'_, str> {
    let largest = match dialect {
        Dialect::Standard => f64::MAX,
        Dialect::Python => super::PYTHON_INFINITY,
    };
    rewritten(text, |token, _| {
        let is_number = token.ends_with(|last: char| last.is_ascii_digit());
        let number = token.parse::<f64>().ok().filter(|number| is_number && number.is_infinite())?;
        Some(Value::from(largest.copysign(number)).to_string())
    })
}

/// The text with a number in the place of each `NaN` and infinity, and with half surrogate pairs replaced.
fn standard(text: &str) -> Cow<'_, str> {
    rewritten(text, |token, _| {
        let number = match token {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            string if string.starts_with('"') => return whole_characters(string),
            _ => return None,
        };
        super::number(number, Dialect::Python).ok().map(|number| number.to_string())
    })
}

/// A string in which half a surrogate pair is the replacement character, where there is one.
fn whole_characters(string: &str) -> Option<String> {
    let (mut made, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &string.as_bytes()[at..]) {
        at += found;
        let rest = &string[at..];
        let escape = escaped_utf16(rest);
        if let Some((None, length)) = escape {
            made.push_str(&string[copied..at]);
            made.push_str("\\ufffd");
            copied = at + length;
        }
        let length =
            escape.map_or(1 + rest[1..].chars().next().map_or(0, char::len_utf8), |(_, length)| length);
        at += length;
    }
    (copied > 0).then(|| made + &string[copied..])
}
