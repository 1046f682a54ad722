//! A reader of Python's literals, which are how data sets write tests, calls, options and constraints. Nothing is evaluated.

use crate::json_tokens::escaped_utf16;
use crate::value::{PyValue, integer};
use dashu_int::IBig;
use serde_json::Value as Json;

/// How long a row's literal may be.
const MAX_BYTES: usize = 1 << 22;

/// What a literal is read for. The two differ where one of them would read wrongly what the other needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// Values of a program's tests, arguments of calls and lists of options: bytes, sets, keys of any kind, and integers of any size.
    /// Escapes that are not common are refused, and so are texts that follow each other: LaTeX in quotes, and the lists that NumPy prints,
    /// would be read as something else. A line may end in a text, because such data has been through another reader before.
    Data,
    /// The fields of a row, which JSON could hold too: JSON is read as well, with all escapes of both.
    Row,
}

impl Notation {
    /// How deep values may be nested.
    const fn deepest(self) -> usize {
        match self {
            Self::Data => 100,
            Self::Row => 64,
        }
    }
}

/// The value of a row's text, JSON or a literal that JSON could hold, or the place of the mistake and what it is.
pub fn json_or_literal(text: &str) -> Result<Json, (usize, &'static str)> {
    if text.len() > MAX_BYTES {
        return Err((MAX_BYTES, "is too long"));
    }
    let mut reader = LiteralReader::new(text, Notation::Row);
    reader
        .whole()
        .and_then(|value| value.into_json().ok_or("is no JSON"))
        .map_err(|problem| (reader.at, problem))
}

/// Reads literals; every step moves forward, and nesting is bounded.
pub(crate) struct LiteralReader<'t> {
    text: &'t str,
    at: usize,
    notation: Notation,
}

type Read<T> = Result<T, &'static str>;

impl<'t> LiteralReader<'t> {
    pub(crate) const fn new(text: &'t str, notation: Notation) -> Self {
        Self { text, at: 0, notation }
    }

    /// The value that the whole text is.
    pub(crate) fn whole(&mut self) -> Read<PyValue> {
        let value = self.value(0)?;
        self.space();
        if self.at < self.text.len() { Err("something follows the value") } else { Ok(value) }
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes over so many bytes.
    pub(crate) const fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Whether nothing follows but space.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().bytes().all(|byte| byte.is_ascii_whitespace())
    }

    /// Whether a line ends before what follows.
    pub(crate) fn is_on_a_new_line(&self) -> bool {
        let before = self.text[..self.at].trim_ascii_end().len();
        let after = self.text.len() - self.rest().trim_ascii_start().len();
        self.text[before..after].contains('\n')
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
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

    pub(crate) fn value(&mut self, depth: usize) -> Read<PyValue> {
        if depth > self.notation.deepest() {
            return Err("is nested too deeply");
        }
        self.space();
        match self.peek().ok_or("ends too early")? {
            b'[' => Ok(PyValue::List(self.items(b']', depth)?.0)),
            b'(' => {
                let (mut items, comma) = self.items(b')', depth)?;
                // One value in brackets without a comma is itself.
                let one = if items.len() == 1 && !comma { items.pop() } else { None };
                Ok(one.unwrap_or(PyValue::Tuple(items)))
            }
            b'{' => self.braces(depth),
            b'"' | b'\'' => self.string(false).map(PyValue::Str),
            b'-' | b'+' | b'0'..=b'9' | b'.' => self.number(),
            _ => self.word(depth),
        }
    }

    /// The values up to a closing bracket, and whether a comma follows the last.
    fn items(&mut self, close: u8, depth: usize) -> Read<(Vec<PyValue>, bool)> {
        self.at += 1;
        let (mut items, mut comma) = (Vec::new(), true);
        while !self.eat(close) {
            if !comma {
                return Err("a comma or a closing bracket is missing");
            }
            items.push(self.value(depth + 1)?);
            comma = self.eat(b',');
        }
        Ok((items, comma))
    }

    /// A dictionary, or a set.
    fn braces(&mut self, depth: usize) -> Read<PyValue> {
        self.at += 1;
        let (mut entries, mut items, mut comma) = (Vec::new(), Vec::new(), true);
        while !self.eat(b'}') {
            if !comma {
                return Err("a comma or a closing bracket is missing");
            }
            let key = self.value(depth + 1)?;
            if self.notation == Notation::Row && !matches!(key, PyValue::Str(_)) {
                return Err("a key must be a text");
            }
            if self.eat(b':') {
                entries.push((key, self.value(depth + 1)?));
            } else {
                items.push(key);
            }
            let is_set = !items.is_empty();
            if is_set && (self.notation == Notation::Row || !entries.is_empty()) {
                return Err("a colon is missing");
            }
            comma = self.eat(b',');
        }
        Ok(if items.is_empty() { PyValue::Dict(entries) } else { PyValue::Set(items) })
    }

    fn number(&mut self) -> Read<PyValue> {
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative || self.peek() == Some(b'+'));
        let bytes = self.rest().as_bytes();
        let belongs = |at: usize| match bytes[at] {
            b'+' | b'-' => at > 0 && matches!(bytes[at - 1], b'e' | b'E'),
            byte => byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'_'),
        };
        let end = (0..bytes.len()).find(|at| !belongs(*at)).unwrap_or(bytes.len());
        let written = self.rest()[..end].replace('_', "");
        let whole = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
        let of_integer = |value: IBig| PyValue::Int(if negative { -value } else { value });
        let of_float = |value: f64| PyValue::Float(if negative { -value } else { value });
        let data = self.notation == Notation::Data;
        let value = if whole && data {
            integer(&written).map(of_integer)
        } else if whole && let Ok(value) = written.parse::<i64>() {
            Some(of_integer(value.into()))
        } else {
            written.parse().ok().filter(|value: &f64| data || value.is_finite()).map(of_float)
        };
        let value = value.ok_or("is no number")?;
        self.at += end;
        Ok(value)
    }

    /// A name, a text with a letter before it, or `set()`.
    fn word(&mut self, depth: usize) -> Read<PyValue> {
        let data = self.notation == Notation::Data;
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let quoted = after.starts_with(['"', '\'']);
        let start = self.at;
        self.at += end;
        let value = match word {
            "r" | "R" if quoted => PyValue::Str(self.string(true)?),
            "u" | "U" if quoted => PyValue::Str(self.string(false)?),
            "b" | "B" if quoted && data => PyValue::Bytes(self.bytes()?),
            _ if quoted => {
                self.at = start;
                return Err("no value begins here");
            }
            "None" => PyValue::None,
            "True" => PyValue::Bool(true),
            "False" => PyValue::Bool(false),
            "null" if !data => PyValue::None,
            "true" if !data => PyValue::Bool(true),
            "false" if !data => PyValue::Bool(false),
            // `set()` and `set([1, 2])`: the one class that has no display of its own.
            "set" | "frozenset" if data && after.starts_with('(') => {
                let (mut items, _) = self.items(b')', depth)?;
                match (items.len(), items.pop()) {
                    (0, _) => PyValue::Set(Vec::new()),
                    (1, Some(PyValue::List(items) | PyValue::Tuple(items) | PyValue::Set(items))) => {
                        PyValue::Set(items)
                    }
                    _ => return Err("is no set"),
                }
            }
            _ => {
                self.at = start;
                return Err("no value begins here");
            }
        };
        Ok(value)
    }

    /// A text in quotes; of a row, with those that follow directly, which are one.
    fn string(&mut self, verbatim: bool) -> Read<String> {
        let mut made = String::new();
        let mut verbatim = verbatim;
        loop {
            let rest = self.rest();
            let triple = ["\"\"\"", "'''"].iter().any(|quote| rest.starts_with(quote));
            let quote = &rest[..if triple { 3 } else { 1 }];
            self.at += quote.len();
            self.until(quote, verbatim, &mut made)?;
            verbatim = false;
            let end = self.at;
            self.space();
            if self.notation == Notation::Data || !matches!(self.peek(), Some(b'\'' | b'"')) {
                self.at = end;
                return Ok(made);
            }
        }
    }

    fn until(&mut self, quote: &str, verbatim: bool, made: &mut String) -> Read<()> {
        let mark = quote.as_bytes()[0];
        let one_line = quote.len() == 1 && self.notation == Notation::Row;
        loop {
            let rest = self.rest();
            let Some(found) = memchr::memchr3(mark, b'\\', b'\n', rest.as_bytes()) else {
                self.at = self.text.len();
                return Err("a text is not closed");
            };
            made.push_str(&rest[..found]);
            self.at += found;
            if rest[found..].starts_with(quote) {
                self.at += quote.len();
                return Ok(());
            }
            let c = self.next().ok_or("a text is not closed")?;
            match c {
                '\n' if one_line => return Err("a text is not closed"),
                '\\' if verbatim => {
                    made.push('\\');
                    made.push(self.next().ok_or("a text is not closed")?);
                }
                '\\' => self.escape(made)?,
                c => made.push(c),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn escape(&mut self, made: &mut String) -> Read<()> {
        let start = self.at - 1;
        let row = self.notation == Notation::Row;
        let c = self.next().ok_or("a text is not closed")?;
        match c {
            'n' => made.push('\n'),
            't' => made.push('\t'),
            'r' => made.push('\r'),
            '\\' | '\'' | '"' => made.push(c),
            'x' => made.push(self.code(2)?),
            'u' => match escaped_utf16(&self.text[start..]) {
                // JSON writes characters beyond the first 65,536 as two.
                Some((Some(c), length)) if row || length == 6 => {
                    made.push(c);
                    self.at = start + length;
                }
                _ => return Err("bad escape"),
            },
            _ if !row => return Err("bad escape"),
            '\n' => {}
            'a' => made.push('\u{7}'),
            'b' => made.push('\u{8}'),
            'f' => made.push('\u{c}'),
            'v' => made.push('\u{b}'),
            '/' => made.push(c),
            'U' => made.push(self.code(8)?),
            '0'..='7' => {
                while self.at < start + 4 && matches!(self.peek(), Some(b'0'..=b'7')) {
                    self.at += 1;
                }
                let code =
                    u32::from_str_radix(&self.text[start + 1..self.at], 8).map_err(|_| "bad escape")?;
                made.push(char::from_u32(code).ok_or("bad escape")?);
            }
            c => {
                made.push('\\');
                made.push(c);
            }
        }
        Ok(())
    }

    /// The character of so many hexadecimal digits.
    fn code(&mut self, length: usize) -> Read<char> {
        let digits = self.rest().get(..length).ok_or("bad escape")?;
        let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or("bad escape")?;
        self.at += length;
        Ok(code)
    }

    /// Bytes in quotes, as hexadecimal text. A character below 256 stands for the byte of its number; beyond that there is none.
    fn bytes(&mut self) -> Read<String> {
        let start = self.at;
        let text = self.string(false)?;
        if self.text[start..self.at].contains("\\u") {
            return Err("bad escape");
        }
        let byte = |letter: char| Some(format!("{:02x}", u8::try_from(u32::from(letter)).ok()?));
        text.chars().map(byte).collect::<Option<String>>().ok_or("is no byte")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn literals() {
        let text = "[{'a': ['it\\'s', \"x\\n\" 'y', r'\\d', None, True, -3, 2.5, 1e3], 'b': (1,), 'c': (2), 'é': {}}]";
        let value =
            json!([{"a": ["it's", "x\ny", "\\d", null, true, -3, 2.5, 1000.0], "b": [1], "c": 2, "é": {}}]);
        assert_eq!(json_or_literal(text), Ok(value));
        assert_eq!(
            json_or_literal(" {\"a\": [null, false, \"\\ud83d\\ude00\"]} "),
            Ok(json!({"a": [null, false, "😀"]}))
        );
    }

    #[test]
    fn mistakes() {
        for (text, at) in
            [("[", 1), ("[1 2]", 3), ("{1: 2}", 2), ("'a", 2), ("__import__('os')", 0), ("[1] x", 4)]
        {
            assert_eq!(json_or_literal(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
        assert!(json_or_literal(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn what_data_may_hold_and_rows_may_not() {
        for (text, in_data) in [
            ("{1, 2}", true),
            ("{1: 2}", true),
            ("b'a'", true),
            ("set()", true),
            ("'a\nb'", true),
            ("1e400", true),
            ("'a' 'b'", false),
            ("['a' 'b']", false),
            ("'\\frac'", false),
            ("'\\ud83d\\ude00'", false),
            ("'\\0'", false),
            ("null", false),
        ] {
            assert_eq!(PyValue::literal(text).is_some(), in_data, "{text}");
            assert_eq!(json_or_literal(text).is_ok(), !in_data, "{text}");
        }
    }
}
