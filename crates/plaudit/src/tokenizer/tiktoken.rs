//! Byte-pair encoding with OpenAI's vocabularies, equal to tiktoken's `encode_ordinary`.
//!
//! Numbers are compared and never the strings that they stand for: a token may be a part of a character, and all
//! such parts decode to the same replacement character. The name of a special token in a response is ordinary
//! text, so that a policy cannot change how it is measured by writing one.

use super::Encoding;
use crate::text::id_set::{place_of, places_for};
use crate::text::tokens::Tokens;
use std::sync::LazyLock;

/// A vocabulary, and the way from the bytes of a token back to its number.
///
/// Most words of a text are one token, and tiktoken too looks for that before it merges pairs. It spares more than
/// half of the time.
struct Vocabulary {
    tokenizer: &'static bpe_openai::Tokenizer,
    /// One more than the number of a token, at a place that the hash of its bytes leads to; zero is an empty place.
    places: Box<[u32]>,
}

impl Vocabulary {
    fn new(tokenizer: &'static bpe_openai::Tokenizer) -> Self {
        let count = tokenizer.bpe.num_tokens();
        let mut places = vec![0; places_for(count)].into_boxed_slice();
        let mask = places.len() - 1;
        for id in 0..count as u32 {
            let mut at = start(tokenizer.bpe.token_bytes(id), places.len());
            while places[at] != 0 {
                at = (at + 1) & mask;
            }
            places[at] = id + 1;
        }
        Self { tokenizer, places }
    }

    /// The token that a piece of text is as a whole.
    #[inline]
    fn find(&self, piece: &[u8]) -> Option<u32> {
        let mut at = start(piece, self.places.len());
        loop {
            let id = self.places[at].checked_sub(1)?;
            if self.tokenizer.bpe.token_bytes(id) == piece {
                return Some(id);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }
}

fn start(bytes: &[u8], places: usize) -> usize {
    place_of(rapidhash::v3::rapidhash_v3(bytes), places)
}

/// The vocabulary, which is compiled in and unpacked by the first to ask.
fn vocabulary(encoding: Encoding) -> &'static Vocabulary {
    static CL100K: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::new(bpe_openai::cl100k_base()));
    static O200K: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::new(bpe_openai::o200k_base()));
    match encoding {
        Encoding::Cl100kBase => &CL100K,
        Encoding::O200kBase => &O200K,
    }
}

/// The tokens of a text.
pub(super) fn cut(encoding: Encoding, text: &str) -> Tokens {
    let vocabulary = vocabulary(encoding);
    let bpe = &vocabulary.tokenizer.bpe;
    let mut tokens = Tokens::with_capacity(text.len() / 3);
    let mut from = 0;
    for piece in vocabulary.tokenizer.split(text) {
        if let Some(id) = vocabulary.find(piece.as_bytes()) {
            tokens.push(Tokens::number_id(u64::from(id)), from, from + piece.len());
            from += piece.len();
            continue;
        }
        for id in bpe.encode_via_backtracking(piece.as_bytes()) {
            let to = from + bpe.token_len(id);
            tokens.push(Tokens::number_id(u64::from(id)), from, to);
            from = to;
        }
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
            let ids: Vec<u64> = ids.iter().map(|id| Tokens::number_id(*id)).collect();
            assert_eq!(cut(encoding, text).ids, ids, "{text}");
        }
    }

    #[test]
    fn a_special_token_is_ordinary_text() {
        assert_eq!(
            cut(Encoding::Cl100kBase, "<|endoftext|>").ids,
            [27, 91, 8862, 728, 428, 91, 29].map(Tokens::number_id)
        );
    }

    #[test]
    fn the_short_way_gives_what_the_library_gives() {
        for encoding in [Encoding::Cl100kBase, Encoding::O200kBase] {
            let library = vocabulary(encoding).tokenizer;
            for id in (0..library.bpe.num_tokens() as u32).step_by(7) {
                let Ok(word) = std::str::from_utf8(library.bpe.token_bytes(id)) else { continue };
                let text = format!("{word}{word} x{word} Ünique-{word}\n");
                let ids =
                    library.encode(text.as_str()).into_iter().map(|id| Tokens::number_id(u64::from(id)));
                let ids: Vec<u64> = ids.collect();
                assert_eq!(cut(encoding, &text).ids, ids, "{text:?}");
            }
        }
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
