//! JSON documents, with what Python's `json.loads` takes beyond the standard.

use super::{Dialect, DocumentError};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, DocumentError> {
    let text = match dialect {
        Dialect::Standard => Cow::Borrowed(text),
        Dialect::Python => standard(text)?,
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
fn bounded(text: &str, dialect: Dialect) -> String {
    let largest = match dialect {
        Dialect::Standard => f64::MAX,
        Dialect::Python => super::PYTHON_INFINITY,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|char: char| char == '"' || char.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let digit = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E' | '+' | '-');
        let end = match rest.starts_with('"') {
            true => string_end(rest).unwrap_or(rest.len()),
            false => rest.find(|char| !digit(char)).unwrap_or(rest.len()),
        };
        let token = &rest[..end];
        match token.parse::<f64>() {
            Ok(number) if number.is_infinite() => out.push_str(&Value::from(largest).to_string()),
            _ => out.push_str(token),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The text with a number in the place of each `NaN` and infinity, and with half surrogate pairs replaced.
fn standard(text: &str) -> Result<Cow<'_, str>, DocumentError> {
    let half = memchr::memmem::find(text.as_bytes(), b"\\u").is_some();
    if !half && !text.contains("NaN") && !text.contains("Infinity") {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('"') {
            let end = string_end(rest).ok_or(DocumentError::Syntax)?;
            push_string(&mut out, &rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let (word, number) =
            if rest.starts_with('N') { ("NaN", f64::NAN) } else { ("Infinity", f64::INFINITY) };
        rest = rest.strip_prefix(word).ok_or(DocumentError::Syntax)?;
        // The sign, where there is one, has been written before it.
        out.push_str(&super::number(number, Dialect::Python)?.to_string());
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// Where a string that begins with a quote ends.
fn string_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// A string, in which half a surrogate pair becomes the replacement character.
fn push_string(out: &mut String, string: &str) {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let pair = (unit(rest), rest.get(6..).and_then(unit));
        let (written, length) = match pair {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&rest[..12], 12),
            (Some(0xd800..=0xdfff), _) => ("\\ufffd", 6),
            _ => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                (&rest[..length], length)
            }
        };
        out.push_str(written);
        rest = &rest[length..];
    }
    out.push_str(rest);
}
