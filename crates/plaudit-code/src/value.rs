//! Values of Python as data: read from literals and JSON, received from the box, and compared as Python's `==` does.

use serde_json::Value as Json;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum PyValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer as decimal digits with a sign, without leading zeros.
    Int(String),
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
            Json::Number(number) => return number.as_i64().map(|value| Self::Int(value.to_string())),
            _ => return None,
        };
        let content = parts.get(1);
        let text = || content.and_then(Json::as_str);
        let items = || -> Option<Vec<Self>> {
            content?.as_array()?.iter().map(|item| Self::received_at(item, depth + 1)).collect()
        };
        Some(match parts.first()?.as_str()? {
            "i" => Self::Int(decimal_of_hex(text()?)?),
            "f" => Self::Float(float_of_hex(text()?)?),
            "y" => Self::Bytes(text()?.to_owned()),
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

    /// The value that a JSON text means in Python.
    pub fn of_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                let text = number.to_string();
                if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
                    Self::Int(text)
                } else {
                    number.as_f64().map_or(Self::Object, Self::Float)
                }
            }
            Json::String(text) => Self::Str(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::of_json).collect()),
            Json::Object(entries) => Self::Dict(
                entries.iter().map(|(key, value)| (Self::Str(key.clone()), Self::of_json(value))).collect(),
            ),
        }
    }

    /// Whether two values are equal.
    pub fn equals(&self, other: &Self, equality: Equality) -> bool {
        let all = |one: &[Self], other: &[Self]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.equals(other, equality))
        };
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(one), Self::Str(other)) | (Self::Bytes(one), Self::Bytes(other)) => one == other,
            (Self::List(one), Self::List(other)) | (Self::Tuple(one), Self::Tuple(other)) => all(one, other),
            (Self::List(one), Self::Tuple(other)) | (Self::Tuple(one), Self::List(other)) => {
                equality == Equality::Json && all(one, other)
            }
            // What the box sends may name an item twice: so each side must hold the other.
            (Self::Set(one), Self::Set(other)) => {
                let within = |one: &[Self], other: &[Self]| {
                    one.iter().all(|item| other.iter().any(|known| item.equals(known, equality)))
                };
                one.len() == other.len() && within(one, other) && within(other, one)
            }
            (Self::Dict(one), Self::Dict(other)) => {
                let within = |one: &[(Self, Self)], other: &[(Self, Self)]| {
                    one.iter().all(|(key, value)| {
                        let same = |(known, _): &&(Self, Self)| key.equals_key(known, equality);
                        other.iter().find(same).is_some_and(|(_, known)| value.equals(known, equality))
                    })
                };
                one.len() == other.len() && within(one, other) && within(other, one)
            }
            _ => self.equals_number(other),
        }
    }

    fn equals_key(&self, other: &Self, equality: Equality) -> bool {
        match (self, other) {
            (Self::Int(number), Self::Str(text)) | (Self::Str(text), Self::Int(number)) => {
                equality == Equality::Json && number == text
            }
            _ => self.equals(other, equality),
        }
    }

    fn equals_number(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(Number::Int(one)), Some(Number::Int(other))) => one == other,
            (Some(Number::Float(one)), Some(Number::Float(other))) => one == other,
            (Some(Number::Int(int)), Some(Number::Float(float)))
            | (Some(Number::Float(float)), Some(Number::Int(int))) => {
                // Every float that is an integer is written out in full by this; both zeros are 0.
                float.is_finite() && float.fract() == 0.0 && format!("{:.0}", float + 0.0) == int
            }
            _ => false,
        }
    }

    fn number(&self) -> Option<Number<'_>> {
        match self {
            Self::Bool(value) => Some(Number::Int(if *value { "1" } else { "0" })),
            Self::Int(text) => Some(Number::Int(text)),
            Self::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }

    /// Reads a literal of Python: numbers, text, bytes, `None`, `True`, `False`, and displays of them.
    pub fn literal(text: &str) -> Option<Self> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let value = reader.value(0)?;
        reader.space();
        (reader.at == reader.text.len()).then_some(value)
    }
}

enum Number<'v> {
    Int(&'v str),
    Float(f64),
}

/// The most digits of an integer from the box. More would take long to convert, and no test has them.
const HEX_DIGITS: usize = 4096;

fn decimal_of_hex(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest.strip_prefix("0x")?),
        None => ("", text.strip_prefix("0x")?),
    };
    if digits.len() > HEX_DIGITS {
        return None;
    }
    // Base 10^9, lowest part first.
    let mut parts: Vec<u64> = vec![0];
    for digit in digits.chars() {
        let mut carry = u64::from(digit.to_digit(16)?);
        for part in &mut parts {
            carry += *part * 16;
            *part = carry % 1_000_000_000;
            carry /= 1_000_000_000;
        }
        if carry > 0 {
            parts.push(carry);
        }
    }
    let mut decimal = sign.to_owned();
    for (index, part) in parts.iter().rev().enumerate() {
        decimal += &if index == 0 { part.to_string() } else { format!("{part:09}") };
    }
    Some(decimal)
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
            let exponent = exponent.parse::<i32>().ok()? - 4 * i32::try_from(fraction.len()).ok()?;
            // In two steps, because one power may leave the range where the product does not.
            let half = exponent / 2;
            digits as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half)
        }
    };
    Some(if negative { -value } else { value })
}

/// Reads literals; every step moves forward, and nesting is bounded.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<PyValue> {
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
            let trimmed = digits.trim_start_matches('0');
            let trimmed = if trimmed.is_empty() { "0" } else { trimmed };
            let sign = if text.starts_with('-') && trimmed != "0" { "-" } else { "" };
            return Some(PyValue::Int(format!("{sign}{trimmed}")));
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
    fn what_the_harness_writes_is_read() {
        let read = |text: &str| PyValue::received(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(read(r#"["i","-0x1ee7a3c7a1b8d6e1f"]"#), PyValue::Int("-35630857897041030687".into()));
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
                    PyValue::Int("-7".into())
                ]),
            )])
        );
        assert!(!PyValue::Object.equals(&PyValue::Object, Equality::Python));
        let python = Equality::Python;
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
