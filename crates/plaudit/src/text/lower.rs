//! What is a text in lower case? The same as Python's `str.lower`, but by the shortest way that the text allows.

/// The text in lower case, or nothing where it is so already.
pub fn lower(text: &str) -> Option<String> {
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
        assert_eq!(lower("already 中文 lower").as_deref(), Some("already 中文 lower"));
        assert_eq!(lower("plain"), None);
    }
}
