//! The number of syllables of an English word, as syllapy 0.7.2 counts it: a list of words first, then a rule.

use super::table::{section, u16_at, u24_at};
use plaudit_text::{is_decimal, is_punctuation, lower, strip};

static DATA: &[u8] = include_bytes!("../../data/syllables.bin");

/// What the list says to a word: an open-addressing table by FNV-1a.
fn known(word: &str) -> Option<usize> {
    let [slots, offsets, words] = [0, 1, 2].map(|part| section(DATA, part));
    let mask = slots.len() / 2 - 1;
    let hash =
        word.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mut slot = hash as usize & mask;
    loop {
        let number = u16_at(slots, 2 * slot);
        if number == u16::MAX {
            return None;
        }
        let offset = |number: usize| u24_at(offsets, 3 * number) as usize;
        let record = &words[offset(usize::from(number))..offset(usize::from(number) + 1)];
        if record[1..] == *word.as_bytes() {
            return Some(usize::from(record[0]));
        }
        slot = (slot + 1) & mask;
    }
}

/// 0 for a word with a digit, or with nothing but marks. The parts of a word with a hyphen are not looked up one by one,
/// as syllapy does: callers have taken the hyphens out.
pub fn syllables(word: &str) -> usize {
    let word = lower(strip(word));
    let word = word.trim_matches(is_punctuation);
    if word.is_empty() || word.chars().any(is_decimal) {
        return 0;
    }
    known(word).unwrap_or_else(|| by_rule(word))
}

/// Groups of vowels; a silent e at the end does not count, `le` after a consonant does; at least one.
fn by_rule(word: &str) -> usize {
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    let mut groups = 0_usize;
    let mut before = false;
    for c in word.chars() {
        let now = vowel(c);
        groups += usize::from(now && !before);
        before = now;
    }
    if let Some(stem) = word.strip_suffix('e') {
        groups = groups.saturating_sub(1);
        let third = stem.strip_suffix('l').and_then(|stem| stem.chars().next_back());
        groups += usize::from(third.is_some_and(|c| !vowel(c)));
    }
    groups.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_syllapy() {
        for (word, expected) in [
            ("cat", 1),
            ("lantern", 2),
            ("banana", 3),
            ("the", 1),
            ("above", 2),
            ("education", 4),
            ("rhythm", 1),
            ("table", 2),
            ("xyzzy", 2),
            ("42", 0),
            ("b2", 0),
            ("", 0),
            ("!?", 0),
            ("Café.", 1),
            ("今天", 1),
            ("me", 1),
        ] {
            assert_eq!(syllables(word), expected, "{word}");
        }
        assert_eq!(section(DATA, 1).len() / 3 - 1, 6_392);
    }
}
