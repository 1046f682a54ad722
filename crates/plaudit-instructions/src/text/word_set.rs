//! A set of short ASCII words, for one look-up in a few nanoseconds: one number a word in an open-addressing table.

/// Twice the number of words that fit well.
const SLOTS: usize = 512;

/// Words of at most 16 ASCII letters, without regard to case.
pub struct WordSet([u128; SLOTS]);

impl WordSet {
    /// A word of more than 16 bytes can never be found, and the empty word neither.
    pub fn new(words: &[&str]) -> Self {
        let mut slots = [0; SLOTS];
        for word in words {
            if let Some(key) = key(word) {
                let mut at = slot(key);
                while slots[at] != 0 && slots[at] != key {
                    at = (at + 1) % SLOTS;
                }
                slots[at] = key;
            }
        }
        Self(slots)
    }

    /// Whether the word is in the set, in any case.
    #[inline]
    pub fn contains(&self, word: &str) -> bool {
        let Some(key) = key(word) else { return false };
        let mut at = slot(key);
        while self.0[at] != 0 {
            if self.0[at] == key {
                return true;
            }
            at = (at + 1) % SLOTS;
        }
        false
    }
}

/// The bytes of a word in lower case as one number. Bytes beyond ASCII stay as they are, so they match no ASCII word.
#[inline]
fn key(word: &str) -> Option<u128> {
    let mut bytes = [0_u8; 16];
    if word.is_empty() {
        return None;
    }
    bytes.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
    bytes.make_ascii_lowercase();
    Some(u128::from_le_bytes(bytes))
}

#[inline]
fn slot(key: u128) -> usize {
    let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 55) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_case() {
        let set = WordSet::new(&["the", "yourselves", "i"]);
        assert!(
            set.contains("the") && set.contains("THE") && set.contains("I") && set.contains("Yourselves")
        );
        for word in ["", "th", "them", "yourselveses", "\u{212a}", "a word that is too long", "\0"] {
            assert!(!set.contains(word), "{word:?}");
        }
    }
}
