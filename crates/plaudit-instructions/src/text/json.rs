//! Whether a text is JSON: without recursion, so that no depth of nesting is too deep.

/// The depth at which Python's reader gives up.
const PYTHON_DEPTH: usize = 990;
/// The length of a whole number that Python refuses to read.
const PYTHON_DIGITS: usize = 4300;

/// Whether all of a text is one JSON value. `python`: as Python's `json` reads it, NaN and Infinity included.
pub fn is_json(text: &str, python: bool) -> bool {
    let mut reader = JsonReader { bytes: text.as_bytes(), at: 0, python };
    reader.document().is_some()
}

struct JsonReader<'a> {
    bytes: &'a [u8],
    at: usize,
    python: bool,
}

impl JsonReader<'_> {
    fn document(&mut self) -> Option<()> {
        // Whether each open bracket is an object.
        let mut open: Vec<bool> = Vec::new();
        'value: loop {
            self.space();
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    self.space();
                    if self.peek()? == b'}' {
                        self.at += 1;
                    } else {
                        self.key()?;
                        open.push(true);
                        continue 'value;
                    }
                }
                b'[' => {
                    self.at += 1;
                    self.space();
                    if self.peek()? == b']' {
                        self.at += 1;
                    } else {
                        open.push(false);
                        if self.python && open.len() > PYTHON_DEPTH {
                            return None;
                        }
                        continue 'value;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                b'N' if self.python => self.word("NaN")?,
                b'I' if self.python => self.word("Infinity")?,
                _ => self.number()?,
            }
            // After a value: close what ends here, or go on to the next value.
            loop {
                self.space();
                let Some(&object) = open.last() else {
                    return (self.at == self.bytes.len()).then_some(());
                };
                match (self.peek()?, object) {
                    (b',', true) => {
                        self.at += 1;
                        self.space();
                        self.key()?;
                        continue 'value;
                    }
                    (b',', false) => {
                        self.at += 1;
                        continue 'value;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return None,
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.space();
        (self.peek()? == b':').then_some(())?;
        self.at += 1;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    self.at += 1;
                    let escape = self.peek()?;
                    self.at += 1;
                    match escape {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            let digits = self.bytes.get(self.at..self.at + 4)?;
                            digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                            self.at += 4;
                        }
                        _ => return None,
                    }
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
            if self.python && self.peek() == Some(b'I') {
                return self.word("Infinity");
            }
        }
        let zero = self.peek()? == b'0';
        let whole = if zero {
            self.at += 1;
            1
        } else {
            self.digits()
        };
        (whole > 0).then_some(())?;
        let mut fraction = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            (self.digits() > 0).then_some(())?;
            fraction = true;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            (self.digits() > 0).then_some(())?;
            fraction = true;
        }
        (fraction || !self.python || whole <= PYTHON_DIGITS).then_some(())
    }
}

/// JSON's white space is less than that of Python, which is trimmed before.
#[cfg(test)]
fn trim(text: &str) -> &str {
    text.trim_matches(plaudit_text::is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for good in [
            "{}",
            "[]",
            "[1, -2.5e+3, \"a\\u00e9\"]",
            "{\"a\": {\"b\": [true, null]}}",
            "5",
            "\"x\"",
            " [0] ",
        ] {
            assert!(is_json(trim(good), false), "{good}");
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
            assert!(!is_json(bad, false), "{bad}");
        }
        assert!(is_json("[NaN, -Infinity]", true));
    }

    #[test]
    fn any_depth() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(is_json(&deep, false) && !is_json(&deep, true));
    }
}
