//! Emoji: single characters as the Python package emoji 2.15.0 knows them, and sequences of them at the ends of a text.

use super::table::u24_at;

/// Ranges, sorted: first and last character, three bytes each.
static RANGES: &[u8] = include_bytes!("../../data/emoji.bin");

/// `emoji.is_emoji` of one character. Flags and keycaps are none: they are sequences.
pub fn is_emoji(c: char) -> bool {
    let c = u32::from(c);
    let (mut low, mut high) = (0, RANGES.len() / 6);
    while low < high {
        let middle = low.midpoint(high);
        if u24_at(RANGES, middle * 6 + 3) < c {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low * 6 < RANGES.len() && u24_at(RANGES, low * 6) <= c
}

/// A character that asks for the emoji form of the one before.
const VARIATION_SELECTOR: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

fn is_flag_letter(c: char) -> bool {
    ('\u{1f1e6}'..='\u{1f1ff}').contains(&c)
}

fn is_keycap_base(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Whether the last thing in the text is an emoji: a character, a flag, a keycap, or a sequence of several.
pub fn ends_with_emoji(text: &str) -> bool {
    let skipped = |c: &char| *c == VARIATION_SELECTOR || ('\u{e0020}'..='\u{e007f}').contains(c);
    let mut back = text.chars().rev().skip_while(skipped);
    match back.next() {
        Some(KEYCAP) => back.find(|c| *c != VARIATION_SELECTOR).is_some_and(is_keycap_base),
        Some(c) if is_flag_letter(c) => back.next().is_some_and(is_flag_letter),
        Some(c) => is_emoji(c),
        None => false,
    }
}

/// Whether the first thing in the text is an emoji.
pub fn starts_with_emoji(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if is_flag_letter(c) => chars.next().is_some_and(is_flag_letter),
        Some(c) if is_keycap_base(c) => chars.find(|c| *c != VARIATION_SELECTOR) == Some(KEYCAP),
        Some(c) => is_emoji(c),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_characters() {
        for c in "🎉🍕❤☺©👍🏽🪁".chars() {
            assert!(is_emoji(c), "{c}");
        }
        for c in "a1#*.今\u{fe0f}\u{200d}\u{20e3}🇳\u{10ffff}\0".chars() {
            assert!(!is_emoji(c), "{c:?}");
        }
    }

    #[test]
    fn sequences() {
        for text in ["a 🎉", "❤️", "👍🏽", "1️⃣", "#⃣", "🇳🇴", "👨‍👩‍👧", "🏴\u{e0067}\u{e0062}\u{e007f}", "🏃‍♂️"]
        {
            assert!(ends_with_emoji(text), "{text}");
        }
        for text in ["", "a", "🎉x", "1", "🇳", "\u{20e3}", "\u{fe0f}", ":)"] {
            assert!(!ends_with_emoji(text), "{text:?}");
        }
        for text in ["🎉 a", "🇳🇴a", "1️⃣ a", "❤️"] {
            assert!(starts_with_emoji(text), "{text}");
        }
        for text in ["", "1 a", "🇳a", "a🎉", "1\u{fe0f}"] {
            assert!(!starts_with_emoji(text), "{text:?}");
        }
    }
}
