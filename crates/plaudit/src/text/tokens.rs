//! What are the tokens of a text? A sequence of numbers, equal where the tokens are equal, with their spans.

/// The tokens of one text.
///
/// A tokenizer with a vocabulary gives its own numbers; a tokenizer that cuts words gives a 64-bit hash of each.
/// Two different words share a hash with a chance of about 1 in 10^19, which no rule notices.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// One number a token.
    pub ids: Vec<u64>,
    /// Where each token stands in the text that was cut, as byte offsets.
    pub spans: Vec<(u32, u32)>,
}

impl Tokens {
    /// No tokens, with room for `capacity`.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { ids: Vec::with_capacity(capacity), spans: Vec::with_capacity(capacity) }
    }

    /// Adds the token at `from..to`.
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
}
