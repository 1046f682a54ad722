//! JSON scanner: whether a text is JSON, and the types of some keys, without making values of it.
//!
//! The dialect is that of Python's `json.loads`, or the standard. To Python `NaN`, `Infinity` and `-Infinity` are values, and numbers
//! may have any length; to both, of equal keys the last one counts, half a surrogate pair may be escaped, and control characters in
//! strings, trailing commas, comments and a byte order mark are mistakes.

/// The deepest nesting in which [`fields`] are looked for. Arguments of real tool calls stay far below it.
const DEEPEST: usize = 128;
/// About the depth at which Python's reader gives up: its stack also has the frames around it.
const PYTHON_DEPTH: usize = 990;
/// The length of a whole number that Python refuses to read.
const PYTHON_DIGITS: usize = 4300;

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
    /// It is nested deeper than 128 levels, and was read no further.
    TooDeep,
}

/// The shapes of the values of `keys` in the object that the text is to Python; `None` for a key that it does not have.
pub fn fields<const N: usize>(text: &str, keys: [&str; N]) -> Result<[Option<Shape>; N], JsonError> {
    let mut found = [None; N];
    let scanner =
        JsonScanner { bytes: text.as_bytes(), at: 0, python: true, deepest: DEEPEST, digits: usize::MAX };
    let whole = scanner.scan(|depth, key, shape| {
        let named =
            keys.iter().position(|name| depth == 1 && key.is_some_and(|key| spells(key, name.as_bytes())));
        if let Some(slot) = named {
            found[slot] = Some(shape);
        }
    })?;
    if whole == Shape::Object { Ok(found) } else { Err(JsonError::NotAnObject) }
}

/// Whether all of a text is one JSON value, however deep.
pub fn is_json(text: &str) -> bool {
    let (bytes, most) = (text.as_bytes(), usize::MAX);
    JsonScanner { bytes, at: 0, python: false, deepest: most, digits: most }.scan(|_, _, _| {}).is_ok()
}

/// Whether Python's `json.loads` reads a text, with its limits on depth and digits.
pub fn is_python_json(text: &str) -> bool {
    let (bytes, deepest, digits) = (text.as_bytes(), PYTHON_DEPTH, PYTHON_DIGITS);
    JsonScanner { bytes, at: 0, python: true, deepest, digits }.scan(|_, _, _| {}).is_ok()
}

/// Which of the open brackets are objects, one bit each: no number of them takes recursion, and 128 no memory of its own.
#[derive(Default)]
struct Levels {
    /// The innermost, lowest bit first.
    inner: u128,
    outer: Vec<u128>,
    depth: usize,
}

impl Levels {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(128) {
            self.outer.push(self.inner);
        }
        self.inner = (self.inner << 1) | u128::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.inner >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(128) {
            self.inner = self.outer.pop().unwrap_or(0);
        }
    }

    const fn is_object(&self) -> bool {
        self.inner & 1 == 1
    }
}

/// Which bytes of a string stand for themselves.
static PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = false;
        at += 1;
    }
    table[b'"' as usize] = false;
    table[b'\\' as usize] = false;
    table
};

struct JsonScanner<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Whether `NaN` and infinities are values.
    python: bool,
    deepest: usize,
    /// The most digits of a whole number.
    digits: usize,
}

impl<'t> JsonScanner<'t> {
    /// Reads one value that takes the whole text, and tells of every value how deep it lies, its key as written, and its shape.
    fn scan(mut self, mut each: impl FnMut(usize, Option<&'t [u8]>, Shape)) -> Result<Shape, JsonError> {
        let mut levels = Levels::default();
        let (mut whole, mut key) = (None, None);
        loop {
            self.space();
            let shape = self.begin()?;
            whole = whole.or(Some(shape));
            each(levels.depth, key.take(), shape);
            if matches!(shape, Shape::Object | Shape::Array) {
                if levels.depth == self.deepest {
                    return Err(JsonError::TooDeep);
                }
                let object = shape == Shape::Object;
                levels.push(object);
                self.space();
                if self.peek() != Some(if object { b'}' } else { b']' }) {
                    key = if object { Some(self.key()?) } else { None };
                    continue;
                }
            }
            // A value has ended, or an empty object or array is about to.
            loop {
                self.space();
                if levels.depth == 0 {
                    return whole.filter(|_| self.peek().is_none()).ok_or(JsonError::Malformed);
                }
                let object = levels.is_object();
                match self.next() {
                    Some(b',') => {
                        key = if object { Some(self.key()?) } else { None };
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ => return Err(JsonError::Malformed),
                }
                levels.pop();
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// Passes over what JSON takes for white space.
    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// A whole scalar, or the bracket that opens an object or an array.
    #[inline]
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
            Some(b'N') if self.python => self.word(b"aN"),
            Some(b'I') if self.python => self.word(b"nfinity"),
            Some(b'-') if self.python && self.peek() == Some(b'I') => self.word(b"Infinity"),
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
        let mut whole = 1;
        if first != b'0' {
            whole += self.pass_digits();
        }
        let end = self.at;
        if self.peek() == Some(b'.') && matches!(self.bytes.get(self.at + 1), Some(b'0'..=b'9')) {
            self.at += 1;
            self.pass_digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-')));
            if matches!(self.bytes.get(self.at + 1 + sign), Some(b'0'..=b'9')) {
                self.at += 1 + sign;
                self.pass_digits();
            }
        }
        let is_read = whole <= self.digits || self.at > end;
        if is_read { Ok(Shape::Other) } else { Err(JsonError::Malformed) }
    }

    /// Passes over digits, and tells how many there were.
    fn pass_digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// The rest of a string after its opening quote: what stands before the closing one, escapes as written.
    #[inline]
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
                Some(0x20..) => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().take_while(|byte| PLAIN[usize::from(**byte)]).count();
                }
                Some(_) | None => return Err(JsonError::Malformed),
            }
        }
    }

    /// A key and its colon: the key as written.
    #[inline]
    fn key(&mut self) -> Result<&'t [u8], JsonError> {
        self.space();
        if self.next() != Some(b'"') {
            return Err(JsonError::Malformed);
        }
        let written = self.string()?;
        self.space();
        if self.next() != Some(b':') {
            return Err(JsonError::Malformed);
        }
        Ok(written)
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

    #[test]
    fn whole_texts_are_read() {
        for good in [
            "{}",
            "[]",
            "[1, -2.5e+3, \"a\\u00e9\"]",
            "{\"a\": {\"b\": [true, null]}}",
            "5",
            "\"x\"",
            " [0] ",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            "'x'",
            "{a:1}",
            "[1] 2",
            "\"a\nb\"",
            "NaN",
            "[}",
            "- 1",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
        assert!(is_python_json("[NaN, -Infinity]"));
    }

    #[test]
    fn any_depth() {
        let objects = "{\"a\":".repeat(1000) + "1" + &"}".repeat(1000);
        assert!(is_json(&objects) && !is_python_json(&objects));
        let mixed = "[{\"a\":[".repeat(100) + &"]}]".repeat(100);
        assert!(is_json(&mixed) && is_python_json(&mixed) && !is_json(&mixed.replacen("]}", "}]", 1)));
        let digits = "1".repeat(4301);
        assert!(
            is_python_json(&digits[1..])
                && !is_python_json(&digits)
                && is_python_json(&format!("{digits}e1"))
        );
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(is_json(&deep) && !is_python_json(&deep));
    }
}
