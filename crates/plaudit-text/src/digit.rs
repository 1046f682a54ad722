//! Unicode digits as Python's `\d`, `int` and `float` define them.

/// The zeros of all decimal digits in Unicode 14; the nine code points after each are the digits 1 to 9.
const ZEROS: [u32; 66] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30,
    0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0,
    0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec,
    0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// The value of a decimal digit of any script.
pub fn digit(char: char) -> Option<u8> {
    if char.is_ascii() {
        return char.is_ascii_digit().then(|| char as u8 - b'0');
    }
    let code = char as u32;
    let zero = ZEROS[ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?];
    u8::try_from(code - zero).ok().filter(|value| *value < 10)
}

/// The digit that begins at byte `at`, and how many bytes it has. `at` may be any byte of the text.
pub fn digit_at(text: &str, at: usize) -> Option<(u8, usize)> {
    match *text.as_bytes().get(at)? {
        byte @ b'0'..=b'9' => Some((byte - b'0', 1)),
        // The first bytes of all digits above ASCII, so that Chinese text is passed over without decoding it.
        0xd9 | 0xdb | 0xdf | 0xe0 | 0xe1 | 0xea | 0xef | 0xf0 => {
            let char = text.get(at..)?.chars().next()?;
            digit(char).map(|value| (value, char.len_utf8()))
        }
        _ => None,
    }
}

/// The offset after the digits that begin at byte `at`: `at` itself where there are none.
pub fn digits_end(text: &str, mut at: usize) -> usize {
    while let Some((_, len)) = digit_at(text, at) {
        at += len;
    }
    at
}

/// Whether a byte can begin a digit of any script: a filter that takes a few bytes too many and none too few.
pub fn may_begin_digit(byte: u8) -> bool {
    byte.is_ascii_digit() | ((byte >= 0xd9) & !(0xe3..=0xe9).contains(&byte))
}

/// The first byte at or after `from` for which `is` holds. Blocks without one are passed over at once, which the
/// compiler turns into vector instructions as long as `is` has no branches.
#[inline]
pub fn find_byte(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool + Copy) -> Option<usize> {
    const BLOCK: usize = 32;
    let mut at = from;
    while let Some(block) = bytes.get(at..at + BLOCK) {
        if block.iter().fold(false, |any, byte| any | is(*byte)) {
            break;
        }
        at += BLOCK;
    }
    bytes.get(at..)?.iter().position(|byte| is(*byte)).map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_agree_on_every_character() {
        let mut count = 0;
        for char in (0..=0x10ffff).filter_map(char::from_u32) {
            let mut buffer = [0; 4];
            let text = char.encode_utf8(&mut buffer);
            let found = digit_at(text, 0);
            assert_eq!(found.map(|(value, _)| value), digit(char), "{char:?}");
            assert!(found.is_none_or(|(_, len)| len == char.len_utf8()));
            if found.is_some() {
                count += 1;
                assert!(may_begin_digit(text.as_bytes()[0]), "{char:?}");
                assert!(char.is_numeric());
            }
        }
        assert_eq!(count, 660);
    }

    #[test]
    fn blocks_lose_no_byte() {
        for length in 0..100 {
            let mut bytes = vec![b'x'; 100];
            bytes[length] = b'7';
            assert_eq!(find_byte(&bytes, 0, |byte| byte.is_ascii_digit()), Some(length));
            assert_eq!(find_byte(&bytes, length + 1, |byte| byte.is_ascii_digit()), None);
        }
        assert_eq!(find_byte(b"", 3, |_| true), None);
        assert_eq!(digits_end("a12３x", 1), 6);
    }
}
