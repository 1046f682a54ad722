//! Values of Python as data: read from literals and JSON, received from the box, and compared as Python's `==` does.

use dashu_int::ops::{BitTest, Gcd, PowerOfTwo};
use dashu_int::{IBig, UBig};
use plaudit_text::exact;
use serde_json::Value as Json;

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

/// How deep values may be nested.
const DEPTH: usize = 100;

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
    pub(crate) fn size(&self) -> usize {
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

    /// Reads what the harness wrote.
    pub fn received(json: &Json) -> Option<Self> {
        Self::received_at(json, 0)
    }

    fn received_at(json: &Json, depth: usize) -> Option<Self> {
        let parts = match json {
            Json::Array(parts) if depth <= 2 * DEPTH => parts,
            Json::Null => return Some(Self::None),
            Json::Bool(value) => return Some(Self::Bool(*value)),
            Json::String(text) => return Some(Self::Str(text.clone())),
            Json::Number(number) => return number.as_i64().map(|value| Self::Int(value.into())),
            _ => return None,
        };
        let content = parts.get(1);
        let text = || content.and_then(Json::as_str);
        let items = || -> Option<Vec<Self>> {
            content?.as_array()?.iter().map(|item| Self::received_at(item, depth + 1)).collect()
        };
        Some(match parts.first()?.as_str()? {
            "i" => Self::Int(integer_of_hex(text()?)?),
            "f" => Self::Float(float_of_hex(text()?)?),
            "y" | "a" => Self::Bytes(text()?.to_owned()),
            "x" => {
                let written = parts.get(2).and_then(Json::as_str)?;
                let value = match text()? {
                    "fractions.Fraction" => of_fraction(written),
                    "decimal.Decimal" => of_decimal(written),
                    _ => None,
                };
                value.unwrap_or(Self::Object)
            }
            "l" | "q" => Self::List(items()?),
            "t" => Self::Tuple(items()?),
            "e" | "z" => Self::Set(items()?),
            "d" => {
                let pair = |entry: &Json| {
                    let (key, value) = (entry.get(0)?, entry.get(1)?);
                    Some((Self::received_at(key, depth + 1)?, Self::received_at(value, depth + 1)?))
                };
                Self::Dict(content?.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?)
            }
            _ => Self::Object,
        })
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
        let mut reader = Reader::new(text);
        let value = reader.value(0)?;
        reader.space();
        (reader.at == reader.text.len()).then_some(value)
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

/// The most decimal digits of an integer that a test expects.
const DIGITS: usize = 1_000_000;

/// An integer in decimal digits.
fn integer(digits: &str) -> Option<IBig> {
    if digits.len() > DIGITS { None } else { IBig::from_str_radix(digits, 10).ok() }
}

/// An integer as Python's `hex` writes it.
fn integer_of_hex(text: &str) -> Option<IBig> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits =
        digits.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let value = IBig::from_str_radix(digits, 16).ok()?;
    Some(if negative { -value } else { value })
}

/// Reads Python's `float.hex`.
fn float_of_hex(text: &str) -> Option<f64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match text {
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            let (mantissa, exponent) = text.strip_prefix("0x")?.split_once('p')?;
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
            let exponent =
                exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(4 * fraction.len()).ok()?)?;
            scaled(digits as f64, exponent)
        }
    };
    Some(if negative { -value } else { value })
}

/// The integer or the float that Python finds equal to a `Fraction`, as it writes one; none where there is none. What equals a float has a
/// denominator of at most 2^1074.
fn of_fraction(written: &str) -> Option<PyValue> {
    let Some((numerator, denominator)) = written.split_once('/') else {
        return integer(written).map(PyValue::Int);
    };
    let short = numerator.len() <= FLOAT_DIGITS && denominator.len() <= FLOAT_DIGITS;
    let numerator = integer(numerator).filter(|_| short)?;
    of_quotient(numerator, integer(denominator).filter(|value| *value > IBig::ZERO)?)
}

/// The same of a `Decimal`: digits with a point, and an exponent of ten.
fn of_decimal(written: &str) -> Option<PyValue> {
    match written {
        "Infinity" => return Some(PyValue::Float(f64::INFINITY)),
        "-Infinity" => return Some(PyValue::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let (mantissa, exponent) = written.split_once('E').unwrap_or((written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    if digits.trim_start_matches('-').is_empty() {
        return integer(&all).map(PyValue::Int);
    }
    let zeros = all.len() as i64 - digits.len() as i64;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros - fraction.len() as i64)?;
    let most = if exponent < 0 { FLOAT_DIGITS } else { DIGITS };
    let power = usize::try_from(exponent.unsigned_abs()).ok().filter(|power| *power <= most)?;
    let (value, power) = (integer(digits).filter(|_| digits.len() <= most)?, IBig::from(10).pow(power));
    if exponent < 0 { of_quotient(value, power) } else { Some(PyValue::Int(value * power)) }
}

/// As many digits as a float has at most, written out.
const FLOAT_DIGITS: usize = 1100;

/// The float that is exactly this quotient: a numerator of 53 bits over a power of two.
fn of_quotient(numerator: IBig, denominator: IBig) -> Option<PyValue> {
    let common = IBig::from((&numerator).gcd(&denominator));
    let (numerator, denominator) = (numerator / &common, UBig::try_from(denominator / common).ok()?);
    let exponent = i32::try_from(denominator.trailing_zeros()?).ok()?;
    if !denominator.is_power_of_two() || numerator.bit_len() > 53 || exponent > 1074 {
        return None;
    }
    Some(PyValue::Float(scaled(i64::try_from(numerator).ok()? as f64, -exponent)))
}

/// A number times a power of two, in two steps, because one power may leave the range where the product does not.
fn scaled(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * 2_f64.powi(half) * 2_f64.powi(exponent - half)
}

/// Reads literals; every step moves forward, and nesting is bounded.
pub(crate) struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text: text.as_bytes(), at: 0 }
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Passes over so many bytes.
    pub(crate) const fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Whether nothing follows but space.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().iter().all(u8::is_ascii_whitespace)
    }

    /// Whether a line ends before what follows.
    pub(crate) fn is_on_a_new_line(&self) -> bool {
        let read = self.text.get(..self.at).unwrap_or(&[]);
        let before = read.trim_ascii_end().len();
        let after = self.text.len() - self.rest().trim_ascii_start().len();
        self.text.get(before..after).is_some_and(|space| space.contains(&b'\n'))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn value(&mut self, depth: usize) -> Option<PyValue> {
        if depth > DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            b'[' => Some(PyValue::List(self.items(b']', depth)?.0)),
            b'(' => {
                let (mut items, comma) = self.items(b')', depth)?;
                // One value in parentheses is itself.
                if items.len() == 1 && !comma { items.pop() } else { Some(PyValue::Tuple(items)) }
            }
            b'{' => self.braces(depth),
            b'"' | b'\'' => self.text(false).map(PyValue::Str),
            b'-' | b'+' | b'0'..=b'9' | b'.' => self.number(),
            _ => self.word(depth),
        }
    }

    /// The values up to a closing bracket, and whether a comma follows the last.
    fn items(&mut self, close: u8, depth: usize) -> Option<(Vec<PyValue>, bool)> {
        self.at += 1;
        let (mut items, mut comma) = (Vec::new(), true);
        while !self.eat(close) {
            if !comma {
                return None;
            }
            items.push(self.value(depth + 1)?);
            comma = self.eat(b',');
        }
        Some((items, comma))
    }

    fn braces(&mut self, depth: usize) -> Option<PyValue> {
        self.at += 1;
        let (mut entries, mut items, mut comma) = (Vec::new(), Vec::new(), true);
        while !self.eat(b'}') {
            if !comma {
                return None;
            }
            let key = self.value(depth + 1)?;
            if self.eat(b':') {
                entries.push((key, self.value(depth + 1)?));
            } else {
                items.push(key);
            }
            comma = self.eat(b',');
        }
        match (entries.is_empty(), items.is_empty()) {
            (_, true) => Some(PyValue::Dict(entries)),
            (true, false) => Some(PyValue::Set(items)),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<PyValue> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte)) {
            // A sign stands at the start or after an exponent.
            let sign = matches!(self.peek(), Some(b'+' | b'-'));
            if sign && self.at != start && !matches!(self.text[self.at - 1], b'e' | b'E') {
                break;
            }
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).ok()?.replace('_', "");
        let text = text.strip_prefix('+').unwrap_or(&text);
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return integer(text).map(PyValue::Int);
        }
        let numeric = digits.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse::<f64>().ok().filter(|_| numeric).map(PyValue::Float)
    }

    fn word(&mut self, depth: usize) -> Option<PyValue> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            return match word {
                "b" | "B" => {
                    // A character below 256 stands for the byte of its number; beyond that there is none.
                    let start = self.at;
                    let text = self.text(false)?;
                    if self.text[start..self.at].windows(2).any(|pair| pair == b"\\u") {
                        return None;
                    }
                    let byte = |letter: char| Some(format!("{:02x}", u8::try_from(u32::from(letter)).ok()?));
                    text.chars().map(byte).collect::<Option<String>>().map(PyValue::Bytes)
                }
                "r" | "R" => self.text(true).map(PyValue::Str),
                "u" | "U" => self.text(false).map(PyValue::Str),
                _ => None,
            };
        }
        match word {
            "None" => Some(PyValue::None),
            "True" => Some(PyValue::Bool(true)),
            "False" => Some(PyValue::Bool(false)),
            // `set()` and `set([1, 2])`: the one class that has no display of its own.
            "set" | "frozenset" if self.peek() == Some(b'(') => {
                let (mut items, _) = self.items(b')', depth)?;
                match (items.len(), items.pop()) {
                    (0, _) => Some(PyValue::Set(Vec::new())),
                    (1, Some(PyValue::List(items) | PyValue::Tuple(items) | PyValue::Set(items))) => {
                        Some(PyValue::Set(items))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A text in quotes. Escapes that are not common are refused, so that nothing is read wrongly.
    fn text(&mut self, verbatim: bool) -> Option<String> {
        let quote = self.peek()?;
        let triple = self.text[self.at..].starts_with(&[quote; 3]);
        self.at += if triple { 3 } else { 1 };
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek()?;
            let closes = byte == quote && (!triple || self.text[self.at..].starts_with(&[quote; 3]));
            if closes {
                self.at += if triple { 3 } else { 1 };
                return String::from_utf8(bytes).ok();
            }
            self.at += 1;
            if byte != b'\\' || verbatim {
                bytes.push(byte);
                continue;
            }
            let escaped = self.peek()?;
            self.at += 1;
            match escaped {
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'r' => bytes.push(b'\r'),
                b'\\' | b'\'' | b'"' => bytes.push(escaped),
                b'u' | b'x' => {
                    let length = if escaped == b'u' { 4 } else { 2 };
                    let digits = std::str::from_utf8(self.text.get(self.at..self.at + length)?).ok()?;
                    let letter = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                    bytes.extend(letter.to_string().bytes());
                    self.at += length;
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn huge_integers_are_compared() {
        let digits = "7".repeat(300_000);
        let value = integer(&digits).unwrap();
        let hex = format!(r#"["i","0x{value:x}"]"#);
        let received = PyValue::received(&serde_json::from_str(&hex).unwrap()).unwrap();
        assert!(received.equals(&PyValue::literal(&digits).unwrap(), Equality::Python));
        assert!(
            !received.equals(&PyValue::literal(&format!("{}8", &digits[1..])).unwrap(), Equality::Python)
        );
        assert_eq!(PyValue::literal(&"7".repeat(DIGITS + 1)), None);
        for text in
            [r#"["i","0x"]"#, r#"["i","0x-1"]"#, r#"["i","0x1_0"]"#, r#"["i","--0x1"]"#, r#"["i","12"]"#]
        {
            assert_eq!(PyValue::received(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn what_the_harness_writes_is_read() {
        let read = |text: &str| PyValue::received(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(
            read(r#"["i","-0x1ee7a3c7a1b8d6e1f"]"#),
            PyValue::Int("-35630857897041030687".parse().unwrap())
        );
        assert_eq!(read(r#"["f","0x1.5555555555555p-2"]"#), PyValue::Float(1.0 / 3.0));
        assert_eq!(read(r#"["f","0x0.0000000000001p-1022"]"#), PyValue::Float(f64::from_bits(1)));
        assert_eq!(read(r#"["f","-inf"]"#), PyValue::Float(f64::NEG_INFINITY));
        assert_eq!(
            read(r#"["d",[["a",["l",[null,true,["o"],-7]]]]]"#).clone(),
            PyValue::Dict(vec![(
                PyValue::Str("a".into()),
                PyValue::List(vec![
                    PyValue::None,
                    PyValue::Bool(true),
                    PyValue::Object,
                    PyValue::Int((-7).into())
                ]),
            )])
        );
        assert!(!PyValue::Object.equals(&PyValue::Object, Equality::Python));
        let python = Equality::Python;
        let exact = |class: &str, written: &str, literal: &str| {
            let received = read(&format!(r#"["x","{class}","{written}"]"#));
            received.equals(&PyValue::literal(literal).unwrap(), python)
        };
        let tiny = format!("1/{}", IBig::ONE << 1074);
        for (class, written, literal) in [
            ("fractions.Fraction", "1/2", "0.5"),
            ("fractions.Fraction", "-7/4", "-1.75"),
            ("fractions.Fraction", "6/4", "1.5"),
            ("fractions.Fraction", "3", "3"),
            ("fractions.Fraction", "-3", "-3.0"),
            ("fractions.Fraction", &tiny, "5e-324"),
            ("decimal.Decimal", "0.5", "0.5"),
            ("decimal.Decimal", "-0.1250", "-0.125"),
            ("decimal.Decimal", "3.00", "3"),
            ("decimal.Decimal", "0E-7", "0"),
            ("decimal.Decimal", "-0", "0.0"),
            ("decimal.Decimal", "1E+3", "1000"),
            ("decimal.Decimal", "25E-2", "0.25"),
            ("decimal.Decimal", "Infinity", "1e999"),
        ] {
            assert!(exact(class, written, literal), "{written} {literal}");
        }
        let tinier = format!("1/{}", IBig::ONE << 1075);
        for (class, written, literal) in [
            ("fractions.Fraction", "1/3", "0.3333333333333333"),
            ("fractions.Fraction", "1/0", "0"),
            ("fractions.Fraction", "1/-2", "-0.5"),
            ("fractions.Fraction", "9007199254740993/2", "4503599627370496.5"),
            ("fractions.Fraction", &tinier, "0.0"),
            ("fractions.Fraction", "1/2", "'1/2'"),
            ("decimal.Decimal", "0.1", "0.1"),
            ("decimal.Decimal", "0.1", "'0.1'"),
            ("decimal.Decimal", "NaN", "0"),
            ("decimal.Decimal", "1E+999999999999999999", "0"),
            ("decimal.Decimal", "1.5E-9223372036854775808", "0"),
            ("decimal.Decimal", "x", "0"),
            ("datetime.date", "2020-01-01", "'2020-01-01'"),
        ] {
            assert!(!exact(class, written, literal), "{written} {literal}");
        }
        for (forged, wanted) in
            [(r#"["e",[1,1]]"#, "{1, 2}"), (r#"["d",[["a",1],["a",1]]]"#, "{'a': 1, 'b': 2}")]
        {
            assert!(!read(forged).equals(&PyValue::literal(wanted).unwrap(), python), "{forged}");
            assert!(!PyValue::literal(wanted).unwrap().equals(&read(forged), python), "{forged}");
        }
        for text in ["{}", "1.5", "[]", "[1]", r#"["l"]"#, r#"["i", 1]"#] {
            assert_eq!(PyValue::received(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}
