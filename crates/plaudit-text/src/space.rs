//! White space as Python's `str.isspace`, `str.split` and `str.strip` define it.

/// `str.isspace` of one character, and `\s`. Beside the white space of Unicode it has the separators U+001C to U+001F.
#[inline]
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r' | '\x1c'..='\x1f') || (c > '\x7f' && c.is_whitespace())
}

/// `str.strip`: the text without white space at its ends.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.rstrip`.
pub fn rstrip(text: &str) -> &str {
    text.trim_end_matches(is_space)
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

/// `str.split`: the pieces between runs of white space, none of them empty. It reads no further than it is asked.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    Spans { bytes: text.as_bytes(), at: 0 }.map(|(from, to)| &text[from..to])
}

/// The same pieces as spans, for those who want all of them: without a branch for each byte, where no space is wider than one.
pub fn each_word(text: &str, mut each: impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    if has_wide_space(bytes) {
        Spans { bytes, at: 0 }.for_each(|(from, to)| each(from, to));
    } else {
        words_between_ascii_space(bytes, each);
    }
}

/// Whether some white space of more than one byte is there. Branchless, so that the compiler looks at many bytes at
/// once; it may say yes where there is none, never no where there is one.
fn has_wide_space(bytes: &[u8]) -> bool {
    let Some(seconds) = bytes.get(1..) else { return false };
    let thirds = bytes.get(2..).unwrap_or(&[]);
    let two = bytes.iter().zip(seconds).fold(0, |found, (a, b)| {
        found | u8::from(*a == 0xc2) & (u8::from(*b == 0x85) | u8::from(*b == 0xa0))
    });
    let three = bytes.iter().zip(seconds).zip(thirds).fold(0, |found, ((a, b), c)| {
        // The general punctuation of E2 80 has spaces below 8B and above A7; dashes and quotes lie between.
        let general =
            u8::from(*a == 0xe2) & u8::from(*b == 0x80) & (u8::from(*c <= 0x8a) | u8::from(*c >= 0xa8));
        let ideographic = u8::from(*a == 0xe3) & u8::from(*b == 0x80) & u8::from(*c == 0x80);
        let rare = u8::from(*a == 0xe1) & u8::from(*b == 0x9a) | u8::from(*a == 0xe2) & u8::from(*b == 0x81);
        found | general | ideographic | rare
    });
    (two | three) != 0
}

/// How many bytes are looked at together: one bit of a word each.
const BLOCK: usize = 64;

/// Where words begin and end is first found for a whole block without a branch, because the length of the next word
/// is what no processor can predict.
fn words_between_ascii_space(bytes: &[u8], mut each: impl FnMut(usize, usize)) {
    // One where the last byte of the block before belongs to a word, which then began at `start`.
    let mut inside = 0;
    let mut start = 0;
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let place = |edges: u64| number * BLOCK + edges.trailing_zeros() as usize;
        let words = word_bits(block);
        // An edge is where the bit differs from the one before it.
        let mut edges = words ^ (words << 1 | inside);
        if inside == 1 {
            if edges == 0 {
                continue;
            }
            each(start, place(edges));
            edges &= edges - 1;
        }
        inside = words >> (BLOCK - 1);
        while edges != 0 {
            start = place(edges);
            edges &= edges - 1;
            if edges != 0 {
                each(start, place(edges));
                edges &= edges - 1;
            }
        }
    }
    if inside == 1 {
        each(start, bytes.len());
    }
}

/// One bit for each byte of a block, lowest first: whether it belongs to a word. What lies beyond the end does not.
#[inline]
fn word_bits(block: &[u8]) -> u64 {
    let mut flags = [0_u8; BLOCK];
    for (flag, byte) in flags.iter_mut().zip(block) {
        // Tab to carriage return, and the information separators with the space that follows them.
        *flag = u8::from(byte.wrapping_sub(b'\t') > 4) & u8::from(byte.wrapping_sub(0x1c) > 4);
    }
    // The multiplication moves the lowest bit of each of eight bytes into the highest byte, in their order.
    flags.as_chunks::<8>().0.iter().enumerate().fold(0, |bits, (at, eight)| {
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | gathered << (8 * at)
    })
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

/// The spans between white space of any width, found when they are asked for.
struct Spans<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Iterator for Spans<'_> {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        let (mut at, mut start) = (self.at, self.at);
        while let Some(&byte) = self.bytes.get(at) {
            let (space, length) = match SPACE[usize::from(byte)] {
                0 => (false, 1),
                1 => (true, 1),
                _ => match space_len(&self.bytes[at..]) {
                    0 => (false, 1),
                    length => (true, length),
                },
            };
            if space {
                if at > start {
                    self.at = at + length;
                    return Some((start, at));
                }
                start = at + length;
            }
            at += length;
        }
        self.at = at;
        (at > start).then_some((start, at))
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
    fn both_ways_find_the_same_words() {
        for char in (0..=0x10ffff).filter_map(char::from_u32) {
            let text = format!("a{char}b");
            assert!(!is_space(char) || char.is_ascii() || has_wide_space(text.as_bytes()), "{char:?}");
        }
        let spans = |text: &str, way: fn(&str) -> Vec<(usize, usize)>| way(text);
        let ascii = |text: &str| {
            let mut all = Vec::new();
            words_between_ascii_space(text.as_bytes(), |from, to| all.push((from, to)));
            all
        };
        let any = |text: &str| {
            let mut all = Vec::new();
            all.extend(Spans { bytes: text.as_bytes(), at: 0 });
            all
        };
        let mut texts = vec![String::new(), " ".to_owned(), "a".to_owned(), " a b\n".to_owned()];
        for length in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5] {
            texts.push("x".repeat(length));
            texts.push(" ".repeat(length));
            texts.push("ab c ".repeat(length / 5));
            texts.push(format!("{} {}", "y".repeat(length - 1), "中".repeat(length)));
            texts.push(format!("{} {} ", "y".repeat(length), "z".repeat(BLOCK)));
        }
        for text in &texts {
            assert_eq!(spans(text, ascii), spans(text, any), "{} bytes", text.len());
        }
    }

    #[test]
    fn words_are_what_python_splits() {
        let mut seen = Vec::new();
        let text = " a\u{1c}b\u{3000}中文 \u{200b}x\r\n";
        each_word(text, |from, to| seen.push(&text[from..to]));
        assert_eq!(seen, ["a", "b", "中文", "\u{200b}x"]);
        assert_eq!(split(text).collect::<Vec<_>>(), seen);
        assert_eq!(strip("\x1f a \u{2029}"), "a");
    }
}
