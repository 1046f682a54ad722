//! How does a byte-pair vocabulary of OpenAI cut a text? As tiktoken's `encode_ordinary` does, number for number.
//!
//! Numbers are compared and never the strings that they stand for: a token may be a part of a character, and all
//! such parts decode to the same replacement character. The name of a special token in a response is ordinary
//! text, so that a policy cannot change how it is measured by writing one.

use crate::text::tokens::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which byte-pair vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encoding {
    /// The vocabulary of GPT-4: about 100,000 tokens.
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
    /// The vocabulary of GPT-4o: about 200,000 tokens.
    #[serde(rename = "o200k_base")]
    O200kBase,
}

/// The vocabulary, which is compiled in and unpacked by the first to ask.
fn vocabulary(encoding: Encoding) -> &'static bpe_openai::Tokenizer {
    match encoding {
        Encoding::Cl100kBase => bpe_openai::cl100k_base(),
        Encoding::O200kBase => bpe_openai::o200k_base(),
    }
}

/// Unpacks the vocabulary now, so that no response waits for it.
pub(super) fn load(encoding: Encoding) {
    vocabulary(encoding);
}

/// The tokens of a text.
pub(super) fn cut(encoding: Encoding, text: &str) -> Tokens {
    let vocabulary = vocabulary(encoding);
    let mut tokens = Tokens::with_capacity(text.len() / 3);
    let mut from = 0;
    for id in vocabulary.encode(text) {
        let to = from + vocabulary.bpe.token_len(id);
        tokens.push(u64::from(id), from, to);
        from = to;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_tiktoken() {
        let cases: [(Encoding, &str, &[u64]); 8] = [
            (Encoding::Cl100kBase, "hello world", &[15339, 1917]),
            (Encoding::Cl100kBase, "tiktoken is great!", &[83, 1609, 5963, 374, 2294, 0]),
            (Encoding::Cl100kBase, "", &[]),
            (Encoding::Cl100kBase, "2 + 2 = 4", &[17, 489, 220, 17, 284, 220, 19]),
            (
                Encoding::Cl100kBase,
                "お誕生日おめでとう",
                &[33334, 45918, 243, 21990, 9080, 33334, 62004, 16556, 78699],
            ),
            (Encoding::Cl100kBase, "🤔", &[9468, 97, 242]),
            (Encoding::O200kBase, "hello world", &[24912, 2375]),
            (Encoding::O200kBase, "2 + 2 = 4", &[17, 659, 220, 17, 314, 220, 19]),
        ];
        for (encoding, text, ids) in cases {
            assert_eq!(cut(encoding, text).ids, ids, "{text}");
        }
    }

    #[test]
    fn a_special_token_is_ordinary_text() {
        assert_eq!(cut(Encoding::Cl100kBase, "<|endoftext|>").ids, [27, 91, 8862, 728, 428, 91, 29]);
    }

    #[test]
    fn spans_cover_the_text() {
        let text = "Emoji 🤔🧮 and 中文,\r\n\r\n  white\u{3000}space \u{1c} e\u{301}  ";
        for encoding in [Encoding::Cl100kBase, Encoding::O200kBase] {
            let tokens = cut(encoding, text);
            let mut end = 0;
            for (from, to) in &tokens.spans {
                assert_eq!(*from, end);
                end = *to;
            }
            assert_eq!(end as usize, text.len());
            assert_eq!(tokens.ids.len(), tokens.spans.len());
        }
    }
}
