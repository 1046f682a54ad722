//! Lower case as Python's `str.lower`, with a fast path for ASCII.

/// The text in lower case, or nothing where it is so already.
pub fn lower(text: &str) -> Option<String> {
    if !may_have_other_case(text.as_bytes()) {
        if text.bytes().fold(0, |found, byte| found | u8::from(byte.is_ascii_uppercase())) == 0 {
            return None;
        }
        return Some(text.to_ascii_lowercase());
    }
    let first = text.bytes().position(|byte| byte.is_ascii_uppercase() || byte >= 0x80)?;
    // A capital sigma is lowered by where it stands in its word, which needs the whole text.
    if memchr::memmem::find(text.as_bytes(), "Σ".as_bytes()).is_some() {
        return Some(text.to_lowercase());
    }
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
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
    Some(out)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_lowered_as_the_standard_library_does() {
        for char in (0..=0x10ffff).filter_map(char::from_u32) {
            let text = format!("A{char}b");
            assert_eq!(lower(&text).unwrap_or_else(|| text.clone()), text.to_lowercase(), "{char:?}");
        }
    }

    #[test]
    fn a_final_sigma_is_seen_in_its_word() {
        assert_eq!(lower("ΑΣ ΑΣΑ").as_deref(), Some("ας ασα"));
        assert_eq!(lower("already 中文 lower"), None);
        assert_eq!(lower("Mixed “中文” Ｌower").as_deref(), Some("mixed “中文” ｌower"));
        assert_eq!(lower("plain"), None);
    }
}
