//! Byte-pair encoding with OpenAI's vocabularies, equal to tiktoken's `encode_ordinary`.
//!
//! Numbers are compared and never the strings that they stand for: a token may be a part of a character, and all
//! such parts decode to the same replacement character. The name of a special token in a response is ordinary
//! text, so that a policy cannot change how it is measured by writing one.

use super::vocabulary::Vocabulary;
use super::{Encoding, Uncut};
use crate::text::tokens::Tokens;
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::sync::LazyLock;

/// How `cl100k_base` cuts a text into pieces, before each is encoded. In the original the last alternative is
/// `\s+(?!\S)|\s+`, which [`piece_end`] does.
const CL100K: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+",
    r"|\s+"
);

/// The same of `o200k_base`.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+"
);

/// The vocabulary, which is compiled in and unpacked by the first to ask.
pub(super) fn vocabulary(encoding: Encoding) -> &'static Vocabulary {
    static CL100K: LazyLock<Vocabulary> =
        LazyLock::new(|| Vocabulary::read(include_bytes!("../../data/cl100k_base.bpe")));
    static O200K: LazyLock<Vocabulary> =
        LazyLock::new(|| Vocabulary::read(include_bytes!("../../data/o200k_base.bpe")));
    match encoding {
        Encoding::Cl100kBase => &CL100K,
        Encoding::O200kBase => &O200K,
    }
}

/// The pattern of the pieces; none if it did not compile, which a test rules out.
fn pattern(encoding: Encoding) -> Option<&'static Regex> {
    static CL100K_PIECES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CL100K).ok());
    static O200K_PIECES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(O200K).ok());
    match encoding {
        Encoding::Cl100kBase => CL100K_PIECES.as_ref(),
        Encoding::O200kBase => O200K_PIECES.as_ref(),
    }
}

/// Where the piece of a text that starts at `from` ends.
///
/// Of white space before anything else the last character is left to the next piece, if there are two or more. Only
/// the last alternative of a pattern ends with white space that does not break the line.
fn piece_end(pattern: &Regex, text: &str, from: usize) -> Option<usize> {
    let input = Input::new(text).range(from..).anchored(Anchored::Yes);
    let end = pattern.search_half(&input)?.offset();
    if end < text.len()
        && let Some(last) = text[from..end].chars().next_back()
        && last.is_whitespace()
        && !matches!(last, '\r' | '\n')
        && end - last.len_utf8() > from
    {
        return Some(end - last.len_utf8());
    }
    Some(end)
}

/// The tokens of a text.
pub(super) fn cut(encoding: Encoding, text: &str) -> Result<Tokens, Uncut> {
    let vocabulary = vocabulary(encoding);
    let pattern = pattern(encoding).ok_or(Uncut::Failed)?;
    let mut tokens = Tokens::with_capacity(text.len() / 3);
    let mut encoded = Vec::new();
    let mut from = 0;
    while from < text.len() {
        // Any character is in some piece.
        let end = piece_end(pattern, text, from).ok_or(Uncut::Failed)?;
        let piece = &text.as_bytes()[from..end];
        if let Some(id) = vocabulary.find(piece) {
            tokens.push(Tokens::number_id(u64::from(id)), from, end);
            from = end;
            continue;
        }
        vocabulary.encode(piece, &mut encoded);
        for id in &encoded {
            let to = from + vocabulary.len_of(*id);
            tokens.push(Tokens::number_id(u64::from(*id)), from, to);
            from = to;
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Vector {
        text: String,
        cl100k_base: Vec<u64>,
        o200k_base: Vec<u64>,
    }

    #[test]
    fn numbers_are_those_of_tiktoken() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/tokenizers/tiktoken.jsonl");
        let vectors = std::fs::read_to_string(path).unwrap();
        for line in vectors.lines() {
            let Vector { text, cl100k_base, o200k_base } = serde_json::from_str(line).unwrap();
            for (encoding, ids) in [(Encoding::Cl100kBase, cl100k_base), (Encoding::O200kBase, o200k_base)] {
                let ids: Vec<u64> = ids.into_iter().map(Tokens::number_id).collect();
                assert_eq!(cut(encoding, &text).unwrap().ids, ids, "{encoding:?}: {text:?}");
            }
        }
        assert!(cut(Encoding::Cl100kBase, "").unwrap().is_empty());
        assert!(vectors.lines().count() > 100);
    }

    #[test]
    fn a_special_token_is_ordinary_text() {
        assert_eq!(
            cut(Encoding::Cl100kBase, "<|endoftext|>").unwrap().ids,
            [27, 91, 8862, 728, 428, 91, 29].map(Tokens::number_id)
        );
    }

    #[test]
    fn spans_cover_the_text() {
        let text = "Emoji 🤔🧮 and 中文,\r\n\r\n  white\u{3000}space \u{1c} e\u{301}  ";
        for encoding in [Encoding::Cl100kBase, Encoding::O200kBase] {
            let tokens = cut(encoding, text).unwrap();
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
