//! Token sequences: one id per token, equal for equal tokens, with their spans.

use super::id_set::IdSet;
use super::lcs::Pattern;
use std::cell::OnceCell;

/// The tokens of one text.
///
/// A tokenizer with a vocabulary gives its own numbers, spread over 64 bits; one that cuts words gives a 64-bit hash
/// of each.
/// Two different words share a hash with a chance of about 1 in 10^19, which no rule notices.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// One number a token.
    pub ids: Vec<u64>,
    /// Where each token stands in the text that was cut, as byte offsets. A token may be a part of a character.
    pub spans: Vec<(u32, u32)>,
    /// The views below are made once, because a group shares the tokens of its reference.
    distinct: OnceCell<IdSet>,
    pattern: OnceCell<Pattern>,
}

impl Tokens {
    /// No tokens, with room for `capacity`.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            ids: Vec::with_capacity(capacity),
            spans: Vec::with_capacity(capacity),
            distinct: OnceCell::new(),
            pattern: OnceCell::new(),
        }
    }

    /// Adds the token at `from..to`.
    #[inline]
    pub fn push(&mut self, id: u64, from: usize, to: usize) {
        self.ids.push(id);
        self.spans.push((from as u32, to as u32));
    }

    /// The hash of a word, as `ids` holds it.
    #[inline]
    pub fn word_id(word: &str) -> u64 {
        word_at(word.as_bytes(), 0, word.len())
    }

    /// The number of a token in a vocabulary, spread over 64 bits one to one, as `ids` holds it.
    #[inline]
    pub fn number_id(number: u64) -> u64 {
        let id = (number ^ (number >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        id ^ (id >> 29)
    }

    /// Adds the word at `from..to` of a text.
    #[inline]
    pub fn push_word(&mut self, text: &str, from: usize, to: usize) {
        self.push(word_at(text.as_bytes(), from, to), from, to);
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The set of the tokens.
    pub fn distinct(&self) -> &IdSet {
        self.distinct.get_or_init(|| IdSet::of(&self.ids))
    }

    /// The tokens, prepared for the comparison of sequences.
    pub fn pattern(&self) -> &Pattern {
        self.pattern.get_or_init(|| Pattern::new(&self.ids))
    }

    /// What the tokens `first..first + count` look like in the text that was cut: whole characters, and no more
    /// bytes than `longest`.
    pub fn shown<'t>(&self, text: &'t str, first: usize, count: usize, longest: usize) -> &'t str {
        let (Some(from), Some(to)) = (self.spans.get(first), self.spans.get(first + count.saturating_sub(1)))
        else {
            return "";
        };
        let from = text.floor_char_boundary(from.0 as usize);
        let to = text.ceil_char_boundary(to.1 as usize).max(from);
        &text[from..text.floor_char_boundary(to.min(from + longest)).max(from)]
    }
}

/// What keeps the first so many of 16 bytes, as two numbers.
const MASKS: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut length = 1;
    while length <= 16 {
        let all = u128::MAX >> (8 * (16 - length));
        masks[length] = [all as u64, (all >> 64) as u64];
        length += 1;
    }
    masks
};

/// The hash of the word at `from..to`.
///
/// Most words have at most 16 bytes: they are taken from the text as two numbers, with what follows the word masked
/// away, and multiplied to 128 bits of which both halves count. That takes no branch that depends on the length.
/// Longer words are left to a general hash.
#[inline]
fn word_at(text: &[u8], from: usize, to: usize) -> u64 {
    let length = to - from;
    if length > 16 {
        return rapidhash::v3::rapidhash_v3(&text[from..to]);
    }
    let word = match text.get(from..from + 16).and_then(|bytes| bytes.first_chunk::<16>()) {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&text[from..to]);
            bytes
        }
    };
    let [low, high] = [u128::from_le_bytes(word) as u64, (u128::from_le_bytes(word) >> 64) as u64];
    let masks = MASKS[length];
    // No text in UTF-8 has the bytes FF or FE, so neither factor is ever zero, whatever a response contains.
    let low = (low & masks[0]) ^ 0xfe5b_9cff_2d45_a1ff;
    let high = (high & masks[1]) ^ 0xffd1_34fe_96a7_0bff ^ ((length as u64) << 56);
    let product = u128::from(low) * u128::from(high);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_hash_wherever_it_stands() {
        let words = [
            "a",
            "b",
            "ab",
            "ba",
            "abcdefgh",
            "abcdefghi",
            "sixteen-letters!",
            "seventeen-letters",
            "中",
            "\0",
            "\0\0",
        ];
        let mut seen = Vec::new();
        for word in words {
            let text = format!("{word} {word} and then something more {word}");
            let end = text.len() - word.len();
            let id = Tokens::word_id(word);
            assert_eq!(word_at(text.as_bytes(), 0, word.len()), id);
            assert_eq!(word_at(text.as_bytes(), end, text.len()), id);
            assert!(!seen.contains(&id), "{word}");
            seen.push(id);
        }
    }

    #[test]
    fn parts_of_characters_are_shown_as_whole_ones() {
        let mut tokens = Tokens::with_capacity(3);
        for (id, from, to) in [(1, 0, 2), (2, 2, 4), (3, 4, 5)] {
            tokens.push(id, from, to);
        }
        let text = "🤔a";
        assert_eq!(tokens.shown(text, 0, 1, 200), "🤔");
        assert_eq!(tokens.shown(text, 1, 2, 200), "🤔a");
        assert_eq!(tokens.shown(text, 2, 1, 200), "a");
        assert_eq!(tokens.shown(text, 0, 3, 3), "");
        assert_eq!(tokens.shown(text, 2, 2, 200), "");
        assert_eq!(tokens.distinct().len(), 3);
    }
}
