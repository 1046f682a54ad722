//! The script of a letter, by blocks of Unicode: as fine as telling languages apart needs.

/// A writing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Script {
    /// a, é, ß, ạ.
    Latin,
    /// α.
    Greek,
    /// я.
    Cyrillic,
    /// ա.
    Armenian,
    /// א.
    Hebrew,
    /// ع, also for Persian and Urdu.
    Arabic,
    /// ह.
    Devanagari,
    /// ব.
    Bengali,
    /// ਪ.
    Gurmukhi,
    /// ગ.
    Gujarati,
    /// த.
    Tamil,
    /// త.
    Telugu,
    /// ಕ.
    Kannada,
    /// മ.
    Malayalam,
    /// ส.
    Thai,
    /// ກ.
    Lao,
    /// က.
    Myanmar,
    /// ខ.
    Khmer,
    /// བ.
    Tibetan,
    /// გ.
    Georgian,
    /// አ.
    Ethiopic,
    /// 한, and the letters that it is made of.
    Hangul,
    /// か and カ.
    Kana,
    /// 漢.
    Han,
}

use Script::*;

/// First and last character of a block, sorted.
#[rustfmt::skip]
static BLOCKS: &[(u32, u32, Script)] = &[
    (0x0041, 0x005a, Latin), (0x0061, 0x007a, Latin), (0x00aa, 0x00aa, Latin), (0x00ba, 0x00ba, Latin),
    (0x00c0, 0x02b8, Latin), (0x02e0, 0x02e4, Latin), (0x0370, 0x03ff, Greek), (0x0400, 0x052f, Cyrillic),
    (0x0531, 0x058a, Armenian), (0x0591, 0x05f4, Hebrew), (0x0600, 0x06ff, Arabic), (0x0750, 0x077f, Arabic),
    (0x0870, 0x08ff, Arabic), (0x0900, 0x097f, Devanagari), (0x0980, 0x09ff, Bengali), (0x0a00, 0x0a7f, Gurmukhi),
    (0x0a80, 0x0aff, Gujarati), (0x0b80, 0x0bff, Tamil), (0x0c00, 0x0c7f, Telugu), (0x0c80, 0x0cff, Kannada),
    (0x0d00, 0x0d7f, Malayalam), (0x0e00, 0x0e7f, Thai), (0x0e80, 0x0eff, Lao), (0x0f00, 0x0fff, Tibetan),
    (0x1000, 0x109f, Myanmar), (0x10a0, 0x10ff, Georgian), (0x1100, 0x11ff, Hangul), (0x1200, 0x139f, Ethiopic),
    (0x1780, 0x17ff, Khmer), (0x1c80, 0x1c8f, Cyrillic), (0x1c90, 0x1cbf, Georgian), (0x1d00, 0x1dbf, Latin),
    (0x1e00, 0x1eff, Latin), (0x1f00, 0x1fff, Greek), (0x2c60, 0x2c7f, Latin), (0x2d00, 0x2d2f, Georgian),
    (0x2d80, 0x2ddf, Ethiopic), (0x2de0, 0x2dff, Cyrillic), (0x2e80, 0x2fdf, Han), (0x3005, 0x3007, Han),
    (0x3041, 0x30ff, Kana), (0x3131, 0x318e, Hangul), (0x31f0, 0x31ff, Kana), (0x3400, 0x4dbf, Han),
    (0x4e00, 0x9fff, Han), (0xa640, 0xa69f, Cyrillic), (0xa722, 0xa7ff, Latin), (0xa8e0, 0xa8ff, Devanagari),
    (0xa960, 0xa97f, Hangul), (0xaa60, 0xaa7f, Myanmar), (0xab30, 0xab64, Latin), (0xac00, 0xd7ff, Hangul),
    (0xf900, 0xfaff, Han), (0xfb00, 0xfb06, Latin), (0xfb13, 0xfb17, Armenian), (0xfb1d, 0xfb4f, Hebrew),
    (0xfb50, 0xfdff, Arabic), (0xfe70, 0xfefc, Arabic), (0xff21, 0xff3a, Latin), (0xff41, 0xff5a, Latin),
    (0xff66, 0xff9f, Kana), (0xffa0, 0xffdc, Hangul), (0x1b000, 0x1b16f, Kana), (0x20000, 0x323af, Han),
];

/// The script of a letter or of a mark on it; nothing for digits, punctuation and scripts that are not in the list.
pub fn script(c: char) -> Option<Script> {
    if c.is_ascii() {
        return c.is_ascii_alphabetic().then_some(Latin);
    }
    let number = u32::from(c);
    let at = BLOCKS.partition_point(|&(_, last, _)| last < number);
    BLOCKS.get(at).filter(|&&(first, ..)| first <= number).map(|&(.., script)| script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_sorted() {
        assert!(BLOCKS.iter().all(|(first, last, _)| first <= last));
        assert!(BLOCKS.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn scripts_of_letters() {
        for (c, expected) in [
            ('a', Latin),
            ('ế', Latin),
            ('ﬁ', Latin),
            ('λ', Greek),
            ('ї', Cyrillic),
            ('ש', Hebrew),
            ('پ', Arabic),
            ('ह', Devanagari),
            ('ি', Bengali),
            ('ไ', Thai),
            ('ក', Khmer),
            ('한', Hangul),
            ('ア', Kana),
            ('ー', Kana),
            ('々', Han),
            ('漢', Han),
            ('𠮷', Han),
        ] {
            assert_eq!(script(c), Some(expected), "{c}");
        }
        for c in "1 .,，。\u{301}🎉".chars() {
            assert_eq!(script(c), None, "{c:?}");
        }
    }
}
