//! What are the tokens of a text? A sequence of numbers, equal where the tokens are equal, with their spans.

use super::lcs::Pattern;
use super::set::IdSet;
use std::cell::OnceCell;

/// The tokens of one text.
///
/// A tokenizer with a vocabulary gives its own numbers; a tokenizer that cuts words gives a 64-bit hash of each.
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
        rapidhash::v3::rapidhash_v3(word.as_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

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
