//! JSON object scanner: checks that a text is an object and finds the types of some keys, without allocation.
//!
//! The dialect is that of Python's `json.loads`, because the vectors were made with it: `NaN`, `Infinity` and
//! `-Infinity` are values, of equal keys the last one counts, numbers may have any length, half a surrogate pair may
//! be escaped; control characters in strings, trailing commas, comments and a byte order mark are mistakes.

/// The deepest nesting that is read. Arguments of real tool calls stay far below it.
pub const DEEPEST: u32 = 128;

/// What a value is, as far as rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Shape {
    Object,
    Array,
    EmptyString,
    String,
    /// A number, `true`, `false`, `null`, `NaN` or an infinity.
    Other,
}

/// Why a text has no fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonError {
    /// It is not JSON.
    Malformed,
    /// It is JSON, but not an object.
    NotAnObject,
    /// It is nested deeper than [`DEEPEST`], and was read no further.
    TooDeep,
}

/// The shapes of the values of `keys` in the object that the text is; `None` for a key that it does not have.
pub fn fields<const N: usize>(text: &str, keys: [&str; N]) -> Result<[Option<Shape>; N], JsonError> {
    let mut reader = JsonReader { bytes: text.as_bytes(), at: 0 };
    let mut found = [None; N];
    let mut slot = None;
    // One bit a level, set where it is an object; the innermost is the lowest.
    let mut levels: u128 = 0;
    let mut depth = 0;
    let mut whole = None;
    loop {
        reader.space();
        let shape = reader.begin()?;
        whole = whole.or(Some(shape));
        if depth == 1
            && let Some(slot) = slot.take()
        {
            found[slot] = Some(shape);
        }
        if matches!(shape, Shape::Object | Shape::Array) {
            if depth == DEEPEST {
                return Err(JsonError::TooDeep);
            }
            let object = shape == Shape::Object;
            levels = (levels << 1) | u128::from(object);
            depth += 1;
            reader.space();
            if reader.peek() != Some(if object { b'}' } else { b']' }) {
                if object {
                    slot = reader.key(&keys)?;
                }
                continue;
            }
        }
        // A value has ended, or an empty object or array is about to.
        loop {
            reader.space();
            if depth == 0 {
                return match (reader.peek(), whole) {
                    (None, Some(Shape::Object)) => Ok(found),
                    (None, _) => Err(JsonError::NotAnObject),
                    (Some(_), _) => Err(JsonError::Malformed),
                };
            }
            let object = levels & 1 == 1;
            match reader.next() {
                Some(b',') => {
                    if object {
                        slot = reader.key(&keys)?;
                    }
                    break;
                }
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                _ => return Err(JsonError::Malformed),
            }
            levels >>= 1;
            depth -= 1;
        }
    }
}

struct JsonReader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> JsonReader<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// Passes over what JSON takes for white space.
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// A whole scalar, or the bracket that opens an object or an array.
    fn begin(&mut self) -> Result<Shape, JsonError> {
        match self.next() {
            Some(b'{') => Ok(Shape::Object),
            Some(b'[') => Ok(Shape::Array),
            Some(b'"') => {
                let empty = self.string()?.is_empty();
                Ok(if empty { Shape::EmptyString } else { Shape::String })
            }
            Some(b't') => self.word(b"rue"),
            Some(b'f') => self.word(b"alse"),
            Some(b'n') => self.word(b"ull"),
            Some(b'N') => self.word(b"aN"),
            Some(b'I') => self.word(b"nfinity"),
            Some(b'-') if self.peek() == Some(b'I') => self.word(b"Infinity"),
            Some(b'-') => match self.next() {
                Some(first @ b'0'..=b'9') => self.number(first),
                _ => Err(JsonError::Malformed),
            },
            Some(first @ b'0'..=b'9') => self.number(first),
            _ => Err(JsonError::Malformed),
        }
    }

    fn word(&mut self, rest: &[u8]) -> Result<Shape, JsonError> {
        if !self.bytes[self.at..].starts_with(rest) {
            return Err(JsonError::Malformed);
        }
        self.at += rest.len();
        Ok(Shape::Other)
    }

    /// The rest of a number. What does not belong to it, such as the dot of `1.`, is left, and is then a mistake.
    fn number(&mut self, first: u8) -> Result<Shape, JsonError> {
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') && matches!(self.bytes.get(self.at + 1), Some(b'0'..=b'9')) {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-')));
            if matches!(self.bytes.get(self.at + 1 + sign), Some(b'0'..=b'9')) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        Ok(Shape::Other)
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// The rest of a string after its opening quote: what stands before the closing one, escapes as written.
    fn string(&mut self) -> Result<&'t [u8], JsonError> {
        let start = self.at;
        loop {
            match self.next() {
                Some(b'"') => return Ok(&self.bytes[start..self.at - 1]),
                Some(b'\\') => match self.next() {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                    Some(b'u') => {
                        let digits = self.bytes.get(self.at..self.at + 4).ok_or(JsonError::Malformed)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return Err(JsonError::Malformed);
                        }
                        self.at += 4;
                    }
                    _ => return Err(JsonError::Malformed),
                },
                Some(0x20..) => {}
                Some(_) | None => return Err(JsonError::Malformed),
            }
        }
    }

    /// A key and its colon: which of the keys that are asked for it is.
    fn key(&mut self, keys: &[&str]) -> Result<Option<usize>, JsonError> {
        self.space();
        if self.next() != Some(b'"') {
            return Err(JsonError::Malformed);
        }
        let written = self.string()?;
        self.space();
        if self.next() != Some(b':') {
            return Err(JsonError::Malformed);
        }
        Ok(keys.iter().position(|key| spells(written, key.as_bytes())))
    }
}

/// Whether a string as written, which has been read before, spells `word`, which is printable ASCII.
fn spells(written: &[u8], word: &[u8]) -> bool {
    if !written.contains(&b'\\') {
        return written == word;
    }
    let mut rest = written;
    for letter in word {
        let (spelled, len) = match rest {
            [b'\\', b'u', a, b, c, d, ..] => {
                let code = [a, b, c, d]
                    .iter()
                    .fold(0, |code, digit| code * 16 + char::from(**digit).to_digit(16).unwrap_or(0));
                (code, 6)
            }
            // The other escapes spell control characters, quotes and slashes, which no key has that is asked for.
            [b'\\', ..] | [] => return false,
            [byte, ..] => (u32::from(*byte), 1),
        };
        if spelled != u32::from(*letter) {
            return false;
        }
        rest = &rest[len..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<Option<Shape>, JsonError> {
        fields(text, ["name"]).map(|[name]| name)
    }

    #[test]
    fn values_have_shapes() {
        assert_eq!(name(r#"{"name": "f"}"#), Ok(Some(Shape::String)));
        assert_eq!(name(r#"{"name": "f", "name": ""}"#), Ok(Some(Shape::EmptyString)));
        assert_eq!(name(r#"{"name": {}, "x": [[], {"name": 1}]}"#), Ok(Some(Shape::Object)));
        assert_eq!(name(r#"{"x": {"name": 1}}"#), Ok(None));
        assert_eq!(name(" {\"n\\u0061me\"\t:\r\n-0.5E-10 } "), Ok(Some(Shape::Other)));
        assert_eq!(name("{}"), Ok(None));
        assert_eq!(name("[\"name\"]"), Err(JsonError::NotAnObject));
    }

    #[test]
    fn what_python_reads_is_read_and_nothing_else() {
        let long = "9".repeat(10_000);
        for good in
            ["NaN", "-Infinity", "1e999", "-0", "0.0", r#""\ud800""#, r#""\ud800\u0041""#, long.as_str()]
        {
            assert!(name(&format!(r#"{{"name":{good}}}"#)).is_ok(), "{good}");
        }
        for bad in [
            "",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "-x",
            "1e",
            "nan",
            "Inf",
            "tru",
            "'a'",
            r#""\x""#,
            r#""\u12g4""#,
            "\"\t\"",
            "\"a",
            "1,",
            "[1,]",
            "[1",
            "{\"a\"}",
            "{\"a\":}",
            "{,}",
            "[,]",
            "1]",
            "1}",
            "/**/1",
            "\u{a0}1",
            "\u{feff}1",
        ] {
            assert_eq!(name(&format!(r#"{{"name":{bad}}}"#)), Err(JsonError::Malformed), "{bad}");
        }
    }

    #[test]
    fn depth_has_a_bound() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(name(&nested(128)), Err(JsonError::NotAnObject));
        assert_eq!(name(&nested(129)), Err(JsonError::TooDeep));
        assert_eq!(name(&"[".repeat(1_000_000)), Err(JsonError::TooDeep));
        assert_eq!(name(&"{".repeat(1_000_000)), Err(JsonError::Malformed));
    }
}
