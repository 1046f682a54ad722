//! A reader for the part of Python's literals that rows are written in: lists, tuples, dictionaries with texts as keys,
//! texts, numbers, `None`, `True` and `False`. JSON is read as well. Nothing is evaluated.

use serde_json::{Map, Number, Value};

/// How deep lists and dictionaries may be nested.
const MOST_NESTED: usize = 64;
/// How long a literal may be.
const MOST_BYTES: usize = 1 << 22;

/// The value that a text says, or the place of the mistake and what it is.
pub(super) fn parse(text: &str) -> Result<Value, (usize, &'static str)> {
    if text.len() > MOST_BYTES {
        return Err((MOST_BYTES, "is too long"));
    }
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0).map_err(|problem| (reader.at, problem))?;
    reader.space();
    if reader.at < text.len() { Err((reader.at, "something follows the value")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Read<T> = Result<T, &'static str>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        if depth > MOST_NESTED {
            return Err("is nested too deeply");
        }
        self.space();
        match self.peek().ok_or("ends too early")? {
            '[' => self.list(']', depth).map(|(list, _)| Value::Array(list)),
            '(' => match self.list(')', depth)? {
                // Brackets around a value without a comma are only brackets.
                (mut list, false) if list.len() == 1 => Ok(list.remove(0)),
                (list, _) => Ok(Value::Array(list)),
            },
            '{' => self.dictionary(depth),
            '\'' | '"' => self.text().map(Value::String),
            'r' | 'R' | 'u' | 'U' if self.rest()[1..].starts_with(['\'', '"']) => {
                self.text().map(Value::String)
            }
            c if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => self.name(),
        }
    }

    fn name(&mut self) -> Read<Value> {
        let names = [
            ("None", Value::Null),
            ("True", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
        ];
        for (name, value) in names {
            let rest = self.rest().strip_prefix(name);
            if rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')) {
                self.at += name.len();
                return Ok(value);
            }
        }
        Err("no value begins here")
    }

    /// The values up to a bracket, and whether there was a comma.
    fn list(&mut self, end: char, depth: usize) -> Read<(Vec<Value>, bool)> {
        self.at += 1;
        let (mut list, mut comma) = (Vec::new(), false);
        loop {
            self.space();
            if self.peek() == Some(end) {
                self.at += 1;
                return Ok((list, comma));
            }
            if !list.is_empty() && !comma {
                return Err("a comma is missing");
            }
            list.push(self.value(depth + 1)?);
            self.space();
            let found = self.take(",");
            comma = found || (comma && list.len() > 1);
            if !found && self.peek() != Some(end) {
                return Err("a comma or a closing bracket is missing");
            }
        }
    }

    fn dictionary(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.space();
            if self.take("}") {
                return Ok(Value::Object(map));
            }
            let Value::String(key) = self.value(depth + 1)? else { return Err("a key must be a text") };
            self.space();
            if !self.take(":") {
                return Err("a colon is missing");
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.space();
            if !self.take(",") && self.peek() != Some('}') {
                return Err("a comma or a closing bracket is missing");
            }
        }
    }

    fn number(&mut self) -> Read<Value> {
        let negative = self.take("-");
        if !negative {
            self.take("+");
        }
        let digits = self.rest();
        let end = digits
            .char_indices()
            .find(|&(at, c)| {
                let exponent = matches!(digits[..at].chars().next_back(), Some('e' | 'E'));
                !(c.is_ascii_digit()
                    || matches!(c, '.' | 'e' | 'E' | '_')
                    || (exponent && matches!(c, '+' | '-')))
            })
            .map_or(digits.len(), |(at, _)| at);
        let written: String = digits[..end].chars().filter(|c| *c != '_').collect();
        let whole = written.bytes().all(|byte| byte.is_ascii_digit());
        let number = if let Some(number) = written.parse::<i64>().ok().filter(|_| whole) {
            Some(Number::from(if negative { -number } else { number }))
        } else {
            let number: Option<f64> = written.parse().ok();
            number.and_then(|number| Number::from_f64(if negative { -number } else { number }))
        };
        let number = number.ok_or("is no number")?;
        self.at += end;
        Ok(Value::Number(number))
    }

    /// A text, and those that follow directly, which are one.
    fn text(&mut self) -> Read<String> {
        let mut made = String::new();
        loop {
            let raw = matches!(self.peek(), Some('r' | 'R'));
            if matches!(self.peek(), Some('r' | 'R' | 'u' | 'U')) {
                self.at += 1;
            }
            let quote = ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| self.rest().starts_with(quote));
            let quote = quote.ok_or("a quotation mark is missing")?;
            self.at += quote.len();
            self.until(quote, raw, &mut made)?;
            let end = self.at;
            self.space();
            if !matches!(self.peek(), Some('\'' | '"')) {
                self.at = end;
                return Ok(made);
            }
        }
    }

    fn until(&mut self, quote: &str, raw: bool, made: &mut String) -> Read<()> {
        while !self.take(quote) {
            let c = self.peek().ok_or("a text is not closed")?;
            self.at += c.len_utf8();
            match c {
                '\\' if raw => {
                    made.push('\\');
                    let next = self.peek().ok_or("a text is not closed")?;
                    self.at += next.len_utf8();
                    made.push(next);
                }
                '\\' => self.escape(made)?,
                '\n' if quote.len() == 1 => return Err("a text is not closed"),
                c => made.push(c),
            }
        }
        Ok(())
    }

    fn escape(&mut self, made: &mut String) -> Read<()> {
        let c = self.peek().ok_or("a text is not closed")?;
        self.at += c.len_utf8();
        match c {
            '\n' => {}
            'n' => made.push('\n'),
            't' => made.push('\t'),
            'r' => made.push('\r'),
            'a' => made.push('\u{7}'),
            'b' => made.push('\u{8}'),
            'f' => made.push('\u{c}'),
            'v' => made.push('\u{b}'),
            '\\' | '\'' | '"' | '/' => made.push(c),
            'x' => made.push(char::from_u32(self.hex(2)?).ok_or("bad escape")?),
            'U' => made.push(char::from_u32(self.hex(8)?).ok_or("bad escape")?),
            'u' => {
                let mut code = self.hex(4)?;
                // JSON writes characters beyond the first 65,536 as two.
                if (0xd800..0xdc00).contains(&code) && self.take("\\u") {
                    let low = self.hex(4)?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err("bad escape");
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                made.push(char::from_u32(code).ok_or("bad escape")?);
            }
            '0'..='7' => {
                let start = self.at - 1;
                while self.at < start + 3 && matches!(self.peek(), Some('0'..='7')) {
                    self.at += 1;
                }
                let code = u32::from_str_radix(&self.text[start..self.at], 8).map_err(|_| "bad escape")?;
                made.push(char::from_u32(code).ok_or("bad escape")?);
            }
            c => {
                made.push('\\');
                made.push(c);
            }
        }
        Ok(())
    }

    fn hex(&mut self, length: usize) -> Read<u32> {
        let digits = self.rest().get(..length).ok_or("bad escape")?;
        let code = u32::from_str_radix(digits, 16).map_err(|_| "bad escape")?;
        self.at += length;
        Ok(code)
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
        assert_eq!(parse(text), Ok(value));
        assert_eq!(
            parse(" {\"a\": [null, false, \"\\ud83d\\ude00\"]} "),
            Ok(json!({"a": [null, false, "😀"]}))
        );
    }

    #[test]
    fn mistakes() {
        for (text, at) in
            [("[", 1), ("[1 2]", 3), ("{1: 2}", 2), ("'a", 2), ("__import__('os')", 0), ("[1] x", 4)]
        {
            assert_eq!(parse(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
