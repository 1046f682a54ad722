//! Values of Python as data: read from literals and JSON, and compared as Python's `==` does.

use crate::exact;
use crate::literal::{LiteralReader, Notation};
use dashu_int::IBig;
use dashu_int::ops::BitTest;
use serde_json::{Map, Number, Value as Json};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum PyValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(IBig),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes, as hexadecimal text.
    Bytes(String),
    /// A list.
    List(Vec<PyValue>),
    /// A tuple.
    Tuple(Vec<PyValue>),
    /// A set.
    Set(Vec<PyValue>),
    /// A dictionary.
    Dict(Vec<(PyValue, PyValue)>),
    /// An object of another class, which equals nothing.
    Object,
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equality {
    /// As `==` does.
    Python,
    /// As `==` does after a way through JSON: lists and tuples are one, and keys are text.
    Json,
}

impl PyValue {
    /// About how many bytes of memory it takes.
    pub fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Int(number) => number.bit_len() / 8,
                Self::Str(text) | Self::Bytes(text) => text.len(),
                Self::List(items) | Self::Tuple(items) | Self::Set(items) => {
                    items.iter().map(Self::size).sum()
                }
                Self::Dict(items) => items.iter().map(|(key, value)| key.size() + value.size()).sum(),
                Self::None | Self::Bool(_) | Self::Float(_) | Self::Object => 0,
            }
    }

    /// The value that JSON means in Python; none where it holds an integer of too many digits.
    pub fn of_json(json: &Json) -> Option<Self> {
        Some(match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) if number.is_f64() => Self::Float(number.as_f64()?),
            Json::Number(number) => Self::Int(integer(&number.to_string())?),
            Json::String(text) => match exact::number(text) {
                None => Self::Str(text.clone()),
                Some(written)
                    if written.ends_with(|last: char| last.is_ascii_digit())
                        && !written.contains(['e', 'E', '.']) =>
                {
                    Self::Int(integer(written)?)
                }
                // Rust reads "Infinity" and "NaN" as Python does.
                Some(written) => Self::Float(written.parse().ok()?),
            },
            Json::Array(items) => Self::List(items.iter().map(Self::of_json).collect::<Option<_>>()?),
            Json::Object(entries) => {
                let entry =
                    |(key, value): (&String, &Json)| Some((Self::Str(key.clone()), Self::of_json(value)?));
                Self::Dict(entries.iter().map(entry).collect::<Option<_>>()?)
            }
        })
    }

    /// The value as JSON: tuples and sets are lists, and keys are text. None for what JSON does not have.
    pub fn into_json(self) -> Option<Json> {
        match self {
            Self::None => Some(Json::Null),
            Self::Bool(value) => Some(Json::Bool(value)),
            Self::Int(value) => {
                Some(i64::try_from(&value).map_or_else(|_| exact::of_number(&value.to_string()), Json::from))
            }
            Self::Float(value) => Number::from_f64(value).map(Json::Number),
            Self::Str(text) => Some(Json::String(text)),
            Self::List(items) | Self::Tuple(items) | Self::Set(items) => {
                items.into_iter().map(Self::into_json).collect::<Option<Vec<_>>>().map(Json::Array)
            }
            Self::Dict(entries) => {
                let entry = |(key, value): (Self, Self)| {
                    let key = match key {
                        Self::Str(text) => text,
                        Self::Int(number) => number.to_string(),
                        _ => return None,
                    };
                    Some((key, value.into_json()?))
                };
                entries.into_iter().map(entry).collect::<Option<Map<_, _>>>().map(Json::Object)
            }
            Self::Bytes(_) | Self::Object => None,
        }
    }

    /// Whether two values are equal.
    pub fn equals(&self, other: &Self, equality: Equality) -> bool {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.encode(equality, &mut ours) && other.encode(equality, &mut theirs) && ours == theirs
    }

    /// Appends bytes that are the same for equal values and for no others. Says no where the value equals nothing, as NaN does.
    ///
    /// Sets and dictionaries are sorted by these bytes, so that comparing takes n log n steps. What stands twice counts once, and of
    /// equal keys the last one counts, as in Python.
    fn encode(&self, equality: Equality, out: &mut Vec<u8>) -> bool {
        match self {
            Self::None => out.push(b'n'),
            Self::Bool(value) => encode_integer(&IBig::from(*value), out),
            Self::Int(value) => encode_integer(value, out),
            // The conversion cuts fractions off.
            Self::Float(value) => match IBig::try_from(*value).ok().filter(|_| value.fract() == 0.0) {
                Some(whole) => encode_integer(&whole, out),
                None => {
                    encode_bytes(b'f', &value.to_bits().to_le_bytes(), out);
                    return !value.is_nan();
                }
            },
            Self::Str(text) => encode_bytes(b's', text.as_bytes(), out),
            Self::Bytes(digits) => encode_bytes(b'y', digits.as_bytes(), out),
            Self::List(items) | Self::Tuple(items) => {
                let is_list = matches!(self, Self::List(_)) || equality == Equality::Json;
                out.push(if is_list { b'l' } else { b't' });
                out.extend(items.len().to_le_bytes());
                return items.iter().all(|item| item.encode(equality, out));
            }
            Self::Set(items) => {
                let mut sorted = vec![Vec::new(); items.len()];
                if !items.iter().zip(&mut sorted).all(|(item, bytes)| item.encode(equality, bytes)) {
                    return false;
                }
                sorted.sort_unstable();
                sorted.dedup();
                out.push(b'e');
                out.extend(sorted.len().to_le_bytes());
                sorted.iter().for_each(|item| out.extend(item));
            }
            Self::Dict(entries) => {
                let mut sorted = Vec::with_capacity(entries.len());
                // The last comes first, and stays there among those of one key.
                for (key, value) in entries.iter().rev() {
                    let (mut key_bytes, mut bytes) = (Vec::new(), Vec::new());
                    if !key.encode_key(equality, &mut key_bytes) || !value.encode(equality, &mut bytes) {
                        return false;
                    }
                    sorted.push((key_bytes, bytes));
                }
                sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
                sorted.dedup_by(|(later, _), (first, _)| later == first);
                out.push(b'd');
                out.extend(sorted.len().to_le_bytes());
                sorted.iter().for_each(|(key, value)| out.extend(key.iter().chain(value)));
            }
            Self::Object => return false,
        }
        true
    }

    /// A key that is an integer is its digits in JSON; no other number is a text.
    fn encode_key(&self, equality: Equality, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Int(value) if equality == Equality::Json => {
                encode_bytes(b's', value.to_string().as_bytes(), out);
            }
            Self::Bool(_) | Self::Float(_) if equality == Equality::Json => {
                out.push(b'k');
                return self.encode(equality, out);
            }
            _ => return self.encode(equality, out),
        }
        true
    }

    /// Reads a literal of Python: numbers, text, bytes, `None`, `True`, `False`, and displays of them.
    pub fn literal(text: &str) -> Option<Self> {
        LiteralReader::new(text, Notation::Data).whole().ok()
    }
}

fn encode_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(bytes.len().to_le_bytes());
    out.extend(bytes);
}

fn encode_integer(value: &IBig, out: &mut Vec<u8>) {
    encode_bytes(b'i', &value.to_le_bytes(), out);
}

/// The most decimal digits of an integer that is read.
pub const DIGITS: usize = 1_000_000;

/// An integer in decimal digits.
pub fn integer(digits: &str) -> Option<IBig> {
    if digits.len() > DIGITS { None } else { IBig::from_str_radix(digits, 10).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn same(one: &str, other: &str) -> bool {
        PyValue::literal(one).unwrap().equals(&PyValue::literal(other).unwrap(), Equality::Python)
    }

    #[test]
    fn literals_compare_as_python_does() {
        for (one, other) in [
            ("1", "1.0"),
            ("True", "1"),
            ("[1, (2,)]", "[1.0, (2,)]"),
            ("{1, 2}", "{2, 1}"),
            ("{'a': 1}", "{\"a\": True}"),
            ("-0", "0"),
            ("0", "-0.0"),
            ("10_000", "1e4"),
            ("'a\\n'", "\"a\\n\""),
            ("(3)", "3"),
            ("set()", "set([])"),
            ("''", "\"\"\"\"\"\""),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("b'a'", "b\"a\""),
            ("b'\\x61'", "b'a'"),
            ("-7", "-7.0"),
            ("1e22", "10000000000000000000000"),
            ("set([1, 1, 2])", "{2, 1}"),
            ("{1, 1.0, True}", "{1}"),
            ("{1: 'a', True: 'b'}", "{1: 'b'}"),
            ("{(1, 2.0), (1.0, 2)}", "{(True, 2)}"),
            ("{frozenset([1, 2]), frozenset([2, 1, 1])}", "{frozenset([1, 2])}"),
            ("{'a': {1: [set([3])]}}", "{'a': {1.0: [{3}]}}"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "2"),
            ("[1]", "(1,)"),
            ("None", "False"),
            ("''", "None"),
            ("'1'", "1"),
            ("{}", "set()"),
            ("[1, 2]", "[2, 1]"),
            ("b'\\xff'", "b'\\xc3\\xbf'"),
            ("0.1", "0"),
            ("1e23", "100000000000000000000000"),
            ("100000000000000000001", "1e20"),
            ("{1, 2}", "{1, 3}"),
            ("{1}", "{1, 2}"),
            ("{1: 'a', 1: 'b'}", "{1: 'a'}"),
            ("{'1': 2}", "{1: 2}"),
            ("{(1, 2)}", "{(2, 1)}"),
            ("['ab', 'c']", "['a', 'bc']"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
        for text in [
            "",
            "f(1)",
            "[1",
            "1 + 1",
            "x",
            "[1 2]",
            "'a",
            "__import__('os')",
            "{1: 2, 3}",
            "'\\N{DASH}'",
            "1-2",
            "inf",
        ] {
            assert_eq!(PyValue::literal(text), None, "{text}");
        }
        assert_eq!(PyValue::literal(&"[".repeat(100_000)), None);
    }

    #[test]
    fn large_sets_and_dicts_are_compared_at_once() {
        let keys = || (0..80_000_i64).map(|key| PyValue::Int(key.into()));
        let dict = |step: i64| {
            let entry = |key| (key, PyValue::List(vec![PyValue::Int(step.into())]));
            PyValue::Dict(keys().map(entry).collect())
        };
        let reversed = PyValue::Set(keys().rev().collect());
        let started = std::time::Instant::now();
        assert!(PyValue::Set(keys().collect()).equals(&reversed, Equality::Python));
        assert!(!PyValue::Set(keys().skip(1).collect()).equals(&reversed, Equality::Python));
        for equality in [Equality::Python, Equality::Json] {
            assert!(dict(1).equals(&dict(1), equality) && !dict(1).equals(&dict(2), equality));
        }
        // Quadratic it was most of a minute; the limit leaves room for a busy machine.
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }

    #[test]
    fn json_keys_are_text() {
        let same = |received: &str, expected: &str| {
            let expected = PyValue::of_json(&exact::read(expected).unwrap()).unwrap();
            PyValue::literal(received).unwrap().equals(&expected, Equality::Json)
        };
        assert!(same("{1: (2, 3)}", r#"{"1": [2, 3]}"#));
        assert!(same("{-100000000000000000001: None}", r#"{"-100000000000000000001": null}"#));
        assert!(same("100000000000000000001", "100000000000000000001"));
        assert!(same("1e999", "1e400") && same("1e999", "Infinity") && same("0", "-0"));
        for (received, expected) in [
            ("{1.0: 2}", r#"{"1": 2}"#),
            ("{True: 2}", r#"{"1": 2}"#),
            ("{1: 2}", r#"{"01": 2}"#),
            ("'1'", "1"),
            ("100000000000000000000", "100000000000000000001"),
            ("1e20", "100000000000000000001"),
            ("'100000000000000000001'", "100000000000000000001"),
            ("'Infinity'", "Infinity"),
        ] {
            assert!(!same(received, expected), "{received} {expected}");
        }
    }

    #[test]
    fn literals_become_json() {
        let read = |text: &str| PyValue::literal(text)?.into_json();
        assert_eq!(read("{'a': (1, None), 2: {'b'}}"), Some(json!({"a": [1, null], "2": ["b"]})));
        for text in ["b'a'", "{(1,): 2}", "1e400"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn huge_integers_are_read_to_a_limit() {
        assert!(PyValue::literal(&"7".repeat(DIGITS)).is_some());
        assert_eq!(PyValue::literal(&"7".repeat(DIGITS + 1)), None);
    }
}
