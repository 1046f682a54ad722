//! What is white space? What Python's `str.split` and `str.strip` take for it, because references, vectors and
//! the peers' numbers were made with those.

/// Whether a character is white space to Python: Unicode white space and the four information separators.
pub fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}')
}

/// The text without white space at its ends.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Whether a text holds nothing but white space.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// How many bytes of white space stand at the start of `bytes`, which start at a character of valid UTF-8: 0 to 3.
#[inline]
pub fn space_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'\t'..=b'\r' | 0x1c..=b' ', ..] => 1,
        [0xc2, 0x85 | 0xa0, ..] => 2,
        // U+1680; U+2000 to 200A, 2028, 2029, 202F; U+205F; U+3000.
        [0xe1, 0x9a, 0x80, ..]
        | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
        | [0xe2, 0x81, 0x9f, ..]
        | [0xe3, 0x80, 0x80, ..] => 3,
        _ => 0,
    }
}

/// The spans of the words of a text: what stands between white space.
pub fn words(text: &str, mut each: impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let space = space_len(&bytes[at..]);
        if space > 0 {
            at += space;
            continue;
        }
        let start = at;
        at += 1;
        while at < bytes.len() {
            // Only these can begin white space; everything else is passed over by one comparison.
            let byte = bytes[at];
            if (byte <= b' ' || (0xc2..=0xe3).contains(&byte)) && space_len(&bytes[at..]) > 0 {
                break;
            }
            at += 1;
        }
        each(start, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_agree_on_every_character() {
        for char in (0..=0x10ffff).filter_map(char::from_u32) {
            let mut buffer = [0; 4];
            let len = space_len(char.encode_utf8(&mut buffer).as_bytes());
            assert_eq!(len > 0, is_space(char), "{char:?}");
            assert!(len == 0 || len == char.len_utf8());
        }
    }

    #[test]
    fn words_are_what_python_splits() {
        let mut seen = Vec::new();
        let text = " a\u{1c}b\u{3000}中文 \u{200b}x\r\n";
        words(text, |from, to| seen.push(&text[from..to]));
        assert_eq!(seen, ["a", "b", "中文", "\u{200b}x"]);
    }
}
