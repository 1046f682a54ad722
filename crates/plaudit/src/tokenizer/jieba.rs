//! How is Chinese cut into words? By jieba's dictionary and its model for unknown words, in accurate mode.

use crate::text::tokens::Tokens;
use jieba_rs::Jieba;
use std::sync::LazyLock;

/// The dictionary, which is compiled in and unpacked by the first to ask.
static DICTIONARY: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Unpacks the dictionary now, so that no response waits for it.
pub(super) fn load() {
    LazyLock::force(&DICTIONARY);
}

/// The words of a text. White space and punctuation are words as well, a character each.
pub(super) fn cut(text: &str) -> Tokens {
    let words = DICTIONARY.cut(text, true);
    let mut tokens = Tokens::with_capacity(words.len());
    for word in words {
        tokens.push(Tokens::word_id(word.word), word.byte_start, word.byte_end);
    }
    tokens
}

/// The words of what is left of a text when only the ideographs U+4E00 to U+9FFF are kept.
pub(super) fn cut_chinese(text: &str) -> Tokens {
    let mut kept = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len() / 3);
    for (at, char) in text.char_indices().filter(|(_, char)| matches!(char, '\u{4e00}'..='\u{9fff}')) {
        kept.push(char);
        places.push(at);
    }
    // Each of these characters has three bytes, which leads from an offset in `kept` to one in the text.
    let words = DICTIONARY.cut(&kept, true);
    let mut tokens = Tokens::with_capacity(words.len());
    for word in words {
        let from = places[word.byte_start / 3];
        let to = places[word.byte_end / 3 - 1] + 3;
        tokens.push(Tokens::word_id(word.word), from, to);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, tokens: &Tokens) -> Vec<String> {
        (0..tokens.len()).map(|at| tokens.shown(text, at, 1, 200).to_owned()).collect()
    }

    #[test]
    fn words_are_those_of_jieba() {
        let text = "我来到北京清华大学, ok 3.14\r\n杭研大厦";
        let words = shown(text, &cut(text));
        assert_eq!(
            words,
            ["我", "来到", "北京", "清华大学", ",", " ", "ok", " ", "3.14", "\r\n", "杭研", "大厦"]
        );
        assert!(cut("").is_empty());
    }

    #[test]
    fn chinese_only_leaves_out_the_rest_and_shows_it_in_between() {
        let text = "清华 X 大学🤔, 北京";
        let tokens = cut_chinese(text);
        assert_eq!(tokens.ids, ["清华大学", "北京"].map(Tokens::word_id));
        assert_eq!(shown(text, &tokens), ["清华 X 大学", "北京"]);
        assert!(cut_chinese("no Chinese").is_empty());
    }
}
