//! Strings and numbers of a JSON text as they are written, for those who mend or check them before a parser reads the text.

use std::borrow::Cow;

/// The strings, with their quotes, and whatever looks like a number, `NaN` and infinities with their signs among them, each with where
/// it begins. One pass; of a text that is no JSON they are what a parser would come to, and the end of a string without an end is the
/// text's.
pub fn json_tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    /// What a byte is: 2 and 3 begin a token, 1 and 3 belong to a number.
    static KIND: [u8; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            table[at] = match at as u8 {
                b'"' => 2,
                b'-' | b'0'..=b'9' | b'N' | b'I' => 3,
                byte if byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'.' => 1,
                _ => 0,
            };
            at += 1;
        }
        table
    };
    let kind = |byte: &u8| KIND[usize::from(*byte)];
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|byte| kind(byte) > 1)?;
        at = match bytes[start] {
            b'"' => json_string_end(bytes, start),
            _ => start + bytes[start..].iter().take_while(|byte| kind(byte) & 1 == 1).count(),
        };
        Some((start, &text[start..at]))
    })
}

/// Where the string ends that begins here: after its closing quote, or at the end of the text.
pub fn json_string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or(&[])) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// The text with other tokens, where there are any for them: `change` is shown a token and what follows it.
pub fn rewritten<'t>(
    text: &'t str,
    mut change: impl FnMut(&'t str, &'t str) -> Option<String>,
) -> Cow<'t, str> {
    let (mut made, mut copied) = (String::new(), 0);
    for (start, token) in json_tokens(text) {
        let end = start + token.len();
        if let Some(other) = change(token, &text[end..]) {
            made.push_str(&text[copied..start]);
            made.push_str(&other);
            copied = end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    made.push_str(&text[copied..]);
    Cow::Owned(made)
}

/// The character that a text's first six or twelve bytes stand for as escapes of UTF-16, such as `\ud83d\ude00`, and how many they are.
/// Inside: nothing where they are one half of a character.
pub fn escaped_utf16(text: &str) -> Option<(Option<char>, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let first = unit(0)?;
    let pair = char::decode_utf16([first, unit(6).unwrap_or(0)]).next()?;
    let length = if pair.is_ok() && matches!(first, 0xd800..=0xdfff) { 12 } else { 6 };
    Some((pair.ok(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_strings_and_numbers() {
        let all = |text| json_tokens(text).map(|(_, token)| token.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            all(r#"{"a\"1": [-1.5e+3, true, -Infinity], "é":NaN}"#),
            ["\"a\\\"1\"", "-1.5e+3", "-Infinity", "\"é\"", "NaN"]
        );
        assert_eq!(all("[\"1"), ["\"1"]);
        assert_eq!(all("\"\\"), ["\"\\"]);
    }

    #[test]
    fn escapes_of_two_halves_are_one_character() {
        for (text, read) in [
            ("\\ud83d\\ude00", Some((Some('😀'), 12))),
            ("\\ud83d", Some((None, 6))),
            ("\\ude00\\ud83d", Some((None, 6))),
            ("\\ud83d\\u0041", Some((None, 6))),
            ("\\u0041\\u0042", Some((Some('A'), 6))),
            ("\\u+041", None),
            ("\\n", None),
        ] {
            assert_eq!(escaped_utf16(text), read, "{text}");
        }
    }
}
