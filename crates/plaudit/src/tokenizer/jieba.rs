//! Chinese word segmentation by jieba, in accurate mode.
//!
//! The words are those of Python's jieba, where the Rust library differs too: it joins `left-hand` and `a_b`, which
//! the original cuts at the mark. Only ideographs beyond U+9FD5 and of the extension blocks, which the original takes
//! one by one, may be cut otherwise.

use super::Uncut;
use crate::text::tokens::Tokens;
use flate2::bufread::GzDecoder;
use jieba_rs::Jieba;
use std::io::BufReader;
use std::sync::LazyLock;

/// The dictionary, which is compiled in and unpacked by the first to ask; none if it is broken, which a test rules
/// out.
static DICTIONARY: LazyLock<Option<Jieba>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!("../../data/jieba.txt.gz");
    Jieba::with_dict(&mut BufReader::new(GzDecoder::new(packed))).ok()
});

/// The words of a text. White space and punctuation are words as well, a character each.
pub(super) fn cut(text: &str) -> Result<Tokens, Uncut> {
    let dictionary = DICTIONARY.as_ref().ok_or(Uncut::Failed)?;
    let words = dictionary.cut(text, true);
    let mut tokens = Tokens::with_capacity(words.len());
    for word in words {
        if is_joined(word.word.as_bytes()) && !dictionary.has_word(word.word) {
            pieces(word.word, |from, to| {
                tokens.push(
                    Tokens::word_id(&word.word[from..to]),
                    word.byte_start + from,
                    word.byte_start + to,
                );
            });
        } else {
            tokens.push(Tokens::word_id(word.word), word.byte_start, word.byte_end);
        }
    }
    Ok(tokens)
}

/// Whether a word may be one that the library has joined: letters and digits with a mark between them.
fn is_joined(word: &[u8]) -> bool {
    word.len() > 2
        && word[0].is_ascii_alphanumeric()
        && word.iter().any(|byte| matches!(byte, b'.' | b'_' | b'-'))
}

/// The spans of a joined word that the original gives: letters and digits with, at most, one decimal part and a
/// per cent sign, and each mark between them alone.
fn pieces(word: &str, mut each: impl FnMut(usize, usize)) {
    let bytes = word.as_bytes();
    let run =
        |from: usize, is: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|byte| is(byte)).count();
    let mut from = 0;
    while from < bytes.len() {
        let mut to = run(from, u8::is_ascii_alphanumeric);
        if to == from {
            to += 1;
        } else {
            if bytes.get(to) == Some(&b'.') && bytes.get(to + 1).is_some_and(u8::is_ascii_digit) {
                to = run(to + 1, u8::is_ascii_digit);
            }
            to += usize::from(bytes.get(to) == Some(&b'%'));
        }
        each(from, to);
        from = to;
    }
}

/// The words of what is left of a text when only the ideographs U+4E00 to U+9FFF are kept.
pub(super) fn cut_chinese(text: &str) -> Result<Tokens, Uncut> {
    let dictionary = DICTIONARY.as_ref().ok_or(Uncut::Failed)?;
    let mut kept = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len() / 3);
    for (at, char) in text.char_indices().filter(|(_, char)| matches!(char, '\u{4e00}'..='\u{9fff}')) {
        kept.push(char);
        places.push(at);
    }
    // Each of these characters has three bytes, which leads from an offset in `kept` to one in the text.
    let words = dictionary.cut(&kept, true);
    let mut tokens = Tokens::with_capacity(words.len());
    for word in words {
        let from = places[word.byte_start / 3];
        let to = places[word.byte_end / 3 - 1] + 3;
        tokens.push(Tokens::word_id(word.word), from, to);
    }
    Ok(tokens)
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
        let words = shown(text, &cut(text).unwrap());
        assert_eq!(
            words,
            ["我", "来到", "北京", "清华大学", ",", " ", "ok", " ", "3.14", "\r\n", "杭研", "大厦"]
        );
        assert!(cut("").unwrap().is_empty());
    }

    #[test]
    fn marks_between_letters_are_cut_as_in_the_original() {
        for (text, words) in [
            ("left-hand", vec!["left", "-", "hand"]),
            ("a_b.c", vec!["a", "_", "b", ".", "c"]),
            ("3.14.15", vec!["3.14", ".", "15"]),
            ("3.14%", vec!["3.14%"]),
            ("foo.3bar", vec!["foo.3", "bar"]),
            ("a--b", vec!["a", "--", "b"]),
            ("e.g.", vec!["e", ".", "g", "."]),
            ("c++ AT&T T恤", vec!["c++", " ", "AT&T", " ", "T恤"]),
            ("50%off", vec!["50%", "off"]),
            ("卡拉OK-x", vec!["卡拉", "OK", "-", "x"]),
        ] {
            assert_eq!(shown(text, &cut(text).unwrap()), words);
        }
    }

    #[test]
    fn chinese_only_leaves_out_the_rest_and_shows_it_in_between() {
        let text = "清华 X 大学🤔, 北京";
        let tokens = cut_chinese(text).unwrap();
        assert_eq!(tokens.ids, ["清华大学", "北京"].map(Tokens::word_id));
        assert_eq!(shown(text, &tokens), ["清华 X 大学", "北京"]);
        assert!(cut_chinese("no Chinese").unwrap().is_empty());
    }
}
