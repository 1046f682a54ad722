//! Case as Python's `str` and `re` see it: `lower`, `isupper`, `islower`, and what `re.IGNORECASE` compares.

use std::borrow::Cow;

/// `str.lower`, with a fast path for ASCII and for scripts without case.
pub fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !may_have_other_case(text.as_bytes()) {
        if text.bytes().fold(0, |found, byte| found | u8::from(byte.is_ascii_uppercase())) == 0 {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }
    // The standard library is slower where most characters have no case, and faster elsewhere. A capital sigma is lowered by where it
    // stands in its word, which needs the whole text.
    let caseless = text.bytes().fold(0, |found, byte| found | u8::from((0xe3..=0xed).contains(&byte))) != 0;
    if !caseless || memchr::memmem::find(text.as_bytes(), "Σ".as_bytes()).is_some() {
        return Cow::Owned(text.to_lowercase());
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|byte| byte >= 0x80).unwrap_or(rest.len());
        let from = out.len();
        out.push_str(&rest[..ascii]);
        out[from..].make_ascii_lowercase();
        rest = &rest[ascii..];
        let mut chars = rest.char_indices();
        let wide = loop {
            match chars.next() {
                Some((_, char)) if is_caseless(char) => out.push(char),
                Some((_, char)) if char as u32 >= 0x80 => out.extend(char.to_lowercase()),
                Some((at, _)) => break at,
                None => break rest.len(),
            }
        };
        rest = &rest[wide..];
    }
    Cow::Owned(out)
}

/// Whether some character beyond ASCII may have a lower case of its own. Branchless, so that the compiler looks at
/// many bytes at once. Chinese, Japanese and Korean text with its punctuation has none, and neither have dashes and
/// quotation marks.
fn may_have_other_case(bytes: &[u8]) -> bool {
    let leads = bytes.iter().fold(0, |found, byte| {
        let two = u8::from(*byte >= 0xc3) & u8::from(*byte <= 0xdf);
        found | two | u8::from(*byte == 0xe1) | u8::from(*byte == 0xea) | u8::from(*byte >= 0xf0)
    });
    // A text of two bytes has no character of three.
    let Some((seconds, thirds)) = bytes.get(1..).zip(bytes.get(2..)) else { return leads != 0 };
    let threes = bytes.iter().zip(seconds).zip(thirds).fold(0, |found, ((a, b), c)| {
        // Letter-like symbols, numerals and old scripts lie from E2 84 on; full-width capitals at EF BC A1 to BA.
        let symbols = u8::from(*a == 0xe2) & u8::from(*b >= 0x84);
        let full = u8::from(*a == 0xef) & u8::from(*b == 0xbc);
        let capital = u8::from(*c >= 0xa1) & u8::from(*c <= 0xba);
        found | symbols | (full & capital)
    });
    (leads | threes) != 0
}

/// Characters of scripts that have no case at all: CJK, kana, Hangul and their punctuation.
fn is_caseless(char: char) -> bool {
    matches!(char as u32, 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xff00..=0xff20)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_lowered_as_the_standard_library_does() {
        for char in (0..=0x10ffff).filter_map(char::from_u32) {
            let text = format!("A{char}b");
            assert_eq!(lower(&text), text.to_lowercase(), "{char:?}");
        }
    }

    #[test]
    fn a_final_sigma_is_seen_in_its_word() {
        assert_eq!(lower("ΑΣ ΑΣΑ"), "ας ασα");
        assert!(matches!(lower("already 中文 lower"), Cow::Borrowed(_)));
        assert_eq!(lower("Mixed “中文” Ｌower"), "mixed “中文” ｌower");
        assert!(matches!(lower("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn case_of_python() {
        assert!(is_upper("A1 Ⅷ") && !is_upper("12") && !is_upper("ǅ") && !is_upper("Aª"));
        assert!(is_lower("a1") && !is_lower("aǅ") && is_lower("ß"));
        assert_eq!(lower("ΑΣ İ"), "ας i\u{307}");
    }
}
