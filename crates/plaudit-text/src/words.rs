//! Classes of characters, `\w+` and lines as Python's `str` and `re` see them, which is not as Rust sees them.

use crate::digit::digit;
use crate::sets;

/// Python's `string.punctuation`: the 32 marks of ASCII.
pub const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

fn within(set: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    let at = set.partition_point(|&(_, last)| last < c);
    set.get(at).is_some_and(|&(first, _)| first <= c)
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
    digit(c).is_some()
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
    fn lines_of_python() {
        assert_eq!(lines("a\r\nb\x0bc\n\nd\u{85}").collect::<Vec<_>>(), ["a", "b", "c", "", "d"]);
    }
}
