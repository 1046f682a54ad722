//! Strict JSON reader: no duplicate keys, bounded depth and size, and no number that changes when read.

use super::InputError;
use plaudit_text::{exact, json_tokens};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// How deep values may lie inside one another.
const MAX_DEPTH: usize = 64;
/// The most keys of one object.
const MAX_KEYS: usize = 4096;
/// The longest key, in bytes.
const MAX_KEY: usize = 1024;

/// Reads one JSON value that takes the whole text. A large integer is what [`plaudit_text::exact`] makes of it.
pub fn read(text: &str) -> Result<Value, InputError> {
    let lossy = Cell::new(false);
    let value = match read_once(text, &lossy) {
        // It may be an integer that no float is near to.
        Err(error) if error.code == "input.number" => {
            let marked = exact::marked(text);
            let value = read_once(&marked, &lossy).ok().filter(holds_no_float);
            return value.ok_or(error);
        }
        value => value?,
    };
    if !lossy.get() {
        return Ok(value);
    }
    match exact::marked(text) {
        Cow::Borrowed(_) => Ok(value),
        Cow::Owned(marked) => read_once(&marked, &lossy),
    }
}

/// Whether all numbers that a text stands for are integers.
fn holds_no_float(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let digits =
                |written: &str| written.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            exact::number(text).is_none_or(digits)
        }
        Value::Array(items) => items.iter().all(holds_no_float),
        Value::Object(map) => map.values().all(holds_no_float),
        _ => true,
    }
}

/// Reads one JSON value, and tells whether it may hold an integer as a float.
fn read_once(text: &str, lossy: &Cell<bool>) -> Result<Value, InputError> {
    let cause = Cell::new("input.json");
    let zero = Cell::new(false);
    let mut json = serde_json::Deserializer::from_str(text);
    let seed = Strict { depth: 0, cause: &cause, zero: &zero, lossy };
    let value = serde::de::DeserializeSeed::deserialize(seed, &mut json)
        .and_then(|value| json.end().map(|()| value))
        .map_err(|error| {
            // The line's own number is the caller's to say, so only the column is of use.
            let message = error.to_string();
            let what = message.split(" at line ").next().unwrap_or(&message);
            let code = if what == "number out of range" { "input.number" } else { cause.get() };
            InputError::new(code, format!("{what}, at character {}", error.column()))
        })?;
    if zero.get() && underflows(text) {
        return Err(InputError::new("input.number", "a number is too small to be told from 0"));
    }
    Ok(value)
}

/// Whether some number of a valid JSON text has a digit other than 0 and yet reads as 0.
fn underflows(text: &str) -> bool {
    json_tokens(text).any(|(_, number)| {
        let digits = number.split(['e', 'E']).next().unwrap_or(number);
        let is_zero = number.parse::<f64>().is_ok_and(|value| value == 0.0);
        is_zero && digits.bytes().any(|digit| matches!(digit, b'1'..=b'9'))
    })
}

#[derive(Clone, Copy)]
struct Strict<'c> {
    depth: usize,
    /// The code of the error that is about to be raised; serde carries only its text.
    cause: &'c Cell<&'static str>,
    /// Whether a fraction was read as 0, so that the text must be looked at again.
    zero: &'c Cell<bool>,
    /// Whether a float was read that may have been written as an integer.
    lossy: &'c Cell<bool>,
}

impl Strict<'_> {
    fn fail<E: serde::de::Error>(self, code: &'static str, message: String) -> E {
        self.cause.set(code);
        E::custom(message)
    }

    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.fail("input.depth", format!("values lie more than {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.zero.set(self.zero.get() || value == 0.0);
        // -0, and what 64 bits do not hold.
        let was_integer =
            value.abs() >= 9_223_372_036_854_775_808.0 || (value == 0.0 && value.is_sign_negative());
        self.lossy.set(self.lossy.get() || was_integer);
        // -0.0 and 0.0 are one number to whoever reads the result.
        let number = Number::from_f64(value + 0.0);
        number
            .map(Value::Number)
            .ok_or_else(|| self.fail("input.number", "a number is not finite".to_owned()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut all = Vec::new();
        while let Some(value) = from.next_element_seed(inner)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if key.len() > MAX_KEY {
                return Err(self.fail("input.key_length", format!("a key has {} bytes", key.len())));
            }
            if map.len() == MAX_KEYS {
                return Err(self.fail("input.keys", format!("an object has more than {MAX_KEYS} keys")));
            }
            if map.contains_key(&key) {
                return Err(self.fail("input.duplicate_key", format!("the key {key:?} stands twice")));
            }
            let value = from.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(text: &str) -> &'static str {
        read(text).map_or_else(|error| error.code, |_| "ok")
    }

    #[test]
    fn what_changes_when_read_is_refused() {
        assert_eq!(code(r#"{"a":1,"a":2}"#), "input.duplicate_key");
        assert_eq!(code(r#"{"x":{"a":1,"b":{"c":1,"c":1}}}"#), "input.duplicate_key");
        let huge = format!("1{}1", "0".repeat(400));
        for text in [huge.clone(), format!("-{huge}"), format!("[1,{{\"a\":{huge}}}]")] {
            assert_eq!(exact::write(&read(&text).unwrap()), text);
        }
        assert_eq!(code(&format!("[{huge}, 1e400]")), "input.number");
        assert_eq!(code(&format!("[{huge}, 1e-400]")), "input.number");
        assert_eq!(code("1e-400"), "input.number");
        assert_eq!(code(r#"{"a":"1e-400","b":0.0}"#), "ok");
        assert_eq!(code(r#"["\"1e-400\"", 0.0, 0.000e9, -0.0]"#), "ok");
        assert_eq!(code("[0.0, -0.00001e-400]"), "input.number");
        assert_eq!(code("1e400"), "input.number");
        assert_eq!(code("NaN"), "input.json");
        assert_eq!(code(r#""\ud800""#), "input.json");
        assert_eq!(code("{} {}"), "input.json");
        assert_eq!(code(&"[".repeat(100_000)), "input.depth");
        assert_eq!(code(&format!("{}{}", "[".repeat(64), "]".repeat(64))), "ok");
    }

    #[test]
    fn integers_stay_integers() {
        let text = r#"{"a":[100000000000000000001,-9223372036854775809,-0,-0.0,1e20],"b":"1"}"#;
        let written = r#"{"a":[100000000000000000001,-9223372036854775809,0,0.0,1e+20],"b":"1"}"#;
        assert_eq!(exact::write(&read(text).unwrap()), written);
        assert_eq!(code(r#"[100000000000000000001, 1e-400]"#), "input.number");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = read(&text);
        }

        #[test]
        fn numbers_survive(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
            let text = serde_json::to_string(&number).unwrap();
            prop_assert_eq!(read(&text).unwrap().as_f64(), Some(number));
        }
    }
}
