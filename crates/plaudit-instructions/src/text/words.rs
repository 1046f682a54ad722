//! Words, white space and case as Python's `str` and `re` see them, which is not as Rust sees them.

use super::sets;
use std::borrow::Cow;

/// Python's `string.punctuation`: the 32 marks of ASCII.
pub const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

fn within(set: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    let at = set.partition_point(|&(_, last)| last < c);
    set.get(at).is_some_and(|&(first, _)| first <= c)
}

/// `str.isspace` and `\s`. Beside the white space of Unicode it has the separators U+001C to U+001F.
#[inline]
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r' | '\x1c'..='\x1f') || (c > '\x7f' && c.is_whitespace())
}

/// `str.isalpha`.
#[inline]
pub fn is_alpha(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { within(sets::ALPHA, c) }
}

/// `str.isalnum`: letters and numbers of every kind, but no marks and no joiners.
#[inline]
pub fn is_alnum(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { within(sets::ALNUM, c) }
}

/// `\w`.
#[inline]
pub fn is_word(c: char) -> bool {
    is_alnum(c) || c == '_'
}

/// `str.isdecimal` and `\d`.
#[inline]
pub fn is_decimal(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { within(sets::DECIMAL, c) }
}

/// `str.isdigit`: decimals, superscripts and the like.
#[inline]
pub fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { within(sets::DIGIT, c) }
}

/// One of the 32 marks of ASCII.
#[inline]
pub fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// A letter of title case, such as `ǅ`: neither upper nor lower.
fn is_title(c: char) -> bool {
    matches!(c, '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

/// `str.isupper`: at least one cased character, and none that is lower or title case.
pub fn is_upper(text: &str) -> bool {
    let mut cased = false;
    for c in text.chars() {
        if c.is_ascii() {
            if c.is_ascii_lowercase() {
                return false;
            }
            cased |= c.is_ascii_uppercase();
        } else if c.is_lowercase() || is_title(c) {
            return false;
        } else {
            cased |= c.is_uppercase();
        }
    }
    cased
}

/// `str.islower`: at least one cased character, and none that is upper or title case.
pub fn is_lower(text: &str) -> bool {
    let mut cased = false;
    for c in text.chars() {
        if c.is_ascii() {
            if c.is_ascii_uppercase() {
                return false;
            }
            cased |= c.is_ascii_lowercase();
        } else if c.is_uppercase() || is_title(c) {
            return false;
        } else {
            cased |= c.is_lowercase();
        }
    }
    cased
}

/// `str.lower`.
pub fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        }
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

/// Whether two texts are equal after `str.lower`.
pub fn same_lower(left: &str, right: &str) -> bool {
    if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        lower(left) == lower(right)
    }
}

/// What `re.IGNORECASE` compares: one character for each character, in lower case, and one for each group of letters
/// that have the same upper case.
pub fn fold(text: &str) -> String {
    text.chars().map(fold_char).collect()
}

fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let lower = match c {
        '\u{130}' => 'i',
        c => c.to_lowercase().next().map_or(c, |lower| lower),
    };
    match lower {
        '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{b5}' => '\u{3bc}',
        '\u{345}' | '\u{1fbe}' => '\u{3b9}',
        '\u{1fd3}' => '\u{390}',
        '\u{1fe3}' => '\u{3b0}',
        '\u{3d0}' => '\u{3b2}',
        '\u{3f5}' => '\u{3b5}',
        '\u{3d1}' => '\u{3b8}',
        '\u{3f0}' => '\u{3ba}',
        '\u{3d6}' => '\u{3c0}',
        '\u{3f1}' => '\u{3c1}',
        '\u{3c2}' => '\u{3c3}',
        '\u{3d5}' => '\u{3c6}',
        '\u{1e9b}' => '\u{1e61}',
        '\u{fb06}' => '\u{fb05}',
        '\u{1c80}' => '\u{432}',
        '\u{1c81}' => '\u{434}',
        '\u{1c82}' => '\u{43e}',
        '\u{1c83}' => '\u{441}',
        '\u{1c84}' | '\u{1c85}' => '\u{442}',
        '\u{1c86}' => '\u{44a}',
        '\u{1c87}' => '\u{463}',
        '\u{1c88}' => '\u{a64b}',
        lower => lower,
    }
}

/// `str.strip`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.rstrip`.
pub fn rstrip(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.split`: the pieces between runs of white space, none of them empty.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    Split { text, at: 0 }
}

struct Split<'a> {
    text: &'a str,
    at: usize,
}

/// What a byte is to `str.split`: part of a word, white space, or the start of a character that may be white space.
static SPACE: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match at as u8 {
            b' ' | b'\t'..=b'\r' | 0x1c..=0x1f => 1,
            0xc2 | 0xe1..=0xe3 => 2,
            _ => 0,
        };
        at += 1;
    }
    table
};

impl<'a> Iterator for Split<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        let mut start = at;
        while let Some(&byte) = bytes.get(at) {
            let (space, length) = match SPACE[usize::from(byte)] {
                0 => (false, 1),
                1 => (true, 1),
                _ => self.text[at..].chars().next().map_or((false, 1), |c| (is_space(c), c.len_utf8())),
            };
            if space {
                if at > start {
                    self.at = at + length;
                    return Some(&self.text[start..at]);
                }
                start = at + length;
            }
            at += length;
        }
        self.at = at;
        (at > start).then(|| &self.text[start..at])
    }
}

/// What a byte of ASCII is to `\w`.
static WORD: [bool; 128] = {
    let mut table = [false; 128];
    let mut at = 0;
    while at < 128 {
        table[at] = (at as u8).is_ascii_alphanumeric() || at as u8 == b'_';
        at += 1;
    }
    table
};

fn find_word(text: &str, wanted: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(&word) = WORD.get(usize::from(byte)) {
            if word == wanted {
                return Some(at);
            }
            at += 1;
        } else {
            let c = text[at..].chars().next()?;
            if is_word(c) == wanted {
                return Some(at);
            }
            at += c.len_utf8();
        }
    }
    None
}

/// The matches of `\w+`.
pub fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = find_word(rest, true)?;
        let tail = &rest[start..];
        let end = find_word(tail, false).map_or(tail.len(), |end| end);
        rest = &tail[end..];
        Some(&tail[..end])
    })
}

/// How many matches of `\w+` there are.
pub fn count_runs(text: &str) -> usize {
    if !text.is_ascii() {
        return runs(text).count();
    }
    let mut inside = false;
    text.bytes().fold(0, |count, byte| {
        let before = std::mem::replace(&mut inside, WORD[usize::from(byte & 0x7f)]);
        count + usize::from(inside & !before)
    })
}

/// Whether `\b` matches between the character before and the one after; nothing stands for an end of the text.
pub fn is_boundary(before: Option<char>, after: Option<char>) -> bool {
    before.is_some_and(is_word) != after.is_some_and(is_word)
}

/// `str.splitlines`.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = |c: char| matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let Some((at, found)) = rest.char_indices().find(|&(_, c)| end(c)) else {
            return Some(std::mem::take(&mut rest));
        };
        let line = &rest[..at];
        rest = &rest[at + found.len_utf8()..];
        if found == '\r' {
            rest = rest.strip_prefix('\n').map_or(rest, |tail| tail);
        }
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_of_python() {
        assert_eq!(
            split(" a\x1cb\u{a0}c\u{3000}\u{200b}d ").collect::<Vec<_>>(),
            ["a", "b", "c", "\u{200b}d"]
        );
        assert_eq!(strip("\x1f a \u{2029}"), "a");
    }

    #[test]
    fn runs_of_word_characters() {
        // A vowel sign and a combining accent end a run, a superscript and a circled number do not.
        assert_eq!(
            runs("don't e\u{301}t x² ①a नदी").collect::<Vec<_>>(),
            ["don", "t", "e", "t", "x²", "①a", "नद"]
        );
    }

    #[test]
    fn runs_are_counted_as_they_are_found() {
        for text in ["", "a", " a_1 b-c\n", "don't e\u{301}t", "--", "x y z "] {
            assert_eq!(count_runs(text), runs(text).count(), "{text}");
        }
    }

    #[test]
    fn case_of_python() {
        assert!(is_upper("A1 Ⅷ") && !is_upper("12") && !is_upper("ǅ") && !is_upper("Aª"));
        assert!(is_lower("a1") && !is_lower("aǅ") && is_lower("ß"));
        assert_eq!(lower("ΑΣ İ"), "ας i\u{307}");
    }

    #[test]
    fn lines_of_python() {
        assert_eq!(lines("a\r\nb\x0bc\n\nd\u{85}").collect::<Vec<_>>(), ["a", "b", "c", "", "d"]);
    }
}
