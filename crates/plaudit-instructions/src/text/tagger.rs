//! The part of speech of the first word of a text, as NLTK's averaged perceptron tags it (model `eng`, 45 tags).
//!
//! Only the first token is tagged. Nothing else is needed for that: the tagger goes from left to right, what it looks at
//! are the token itself, the next two, and two marks for the start in place of what is before. The model holds the
//! features that can occur there, and those are all of them: the weights of `i-1 tag+i word` after another tag than the
//! start mark, and of other previous tags and words, are never looked up for a first token.

use super::table::{StringTable, name_at, section, u16_at};
use plaudit_text::{is_digit, lower};
use std::borrow::Cow;
use std::sync::LazyLock;

static DATA: &[u8] = include_bytes!("../../data/tagger.bin");

const TAGS: usize = 45;
/// What is taken off a stored weight, in thousandths.
const WEIGHT_ZERO: i32 = 18_876;

static MODEL: LazyLock<StringTable> = LazyLock::new(|| StringTable::new(section(DATA, 1)));

fn tag_name(number: u8) -> &'static str {
    name_at(section(DATA, 0), usize::from(number) * 8, 8)
}

/// The tag of the first token, from the Penn Treebank set: `VB`, `NN` and so on. Nothing where there is no token. At most
/// three tokens are read.
pub fn first_tag(tokens: &[&str]) -> Option<&'static str> {
    let word = *tokens.first()?;
    let model = &*MODEL;
    if let Some(&[number]) = model.get(b"d", word.as_bytes()) {
        return Some(tag_name(number));
    }
    let this = normalize(word);
    let mut after = tokens[1..].iter().take(2).map(|token| normalize(token)).collect::<Vec<_>>();
    after.extend([Cow::Borrowed("-END-"), Cow::Borrowed("-END2-")]);
    let [next, next_but_one] = [&*after[0], &*after[1]];
    let start = word.chars().next().map_or("", |c| &word[..c.len_utf8()]);
    // In NLTK's order, since a sum of floating-point numbers depends on it.
    let features: [(&[u8], &[u8]); 14] = [
        (b"c", &[0]),
        (b"s", suffix(word)),
        (b"p", start.as_bytes()),
        (b"c", &[1]),
        (b"c", &[2]),
        (b"c", &[3]),
        (b"w", this.as_bytes()),
        (b"t", this.as_bytes()),
        (b"c", &[4]),
        (b"c", &[5]),
        (b"c", &[6]),
        (b"n", next.as_bytes()),
        (b"x", suffix(next)),
        (b"m", next_but_one.as_bytes()),
    ];
    let mut scores = [0.0; TAGS];
    for (group, key) in features {
        for weight in model.get(group, key).into_iter().flat_map(|value| value.chunks_exact(3)) {
            let thousandths = i32::from(u16_at(weight, 1)) - WEIGHT_ZERO;
            scores[usize::from(weight[0])] += f64::from(thousandths) / 1000.0;
        }
    }
    // Of equal scores the last tag in the order of the alphabet wins.
    let mut best = (0, f64::NEG_INFINITY);
    for (number, &score) in (0_u8..).zip(&scores) {
        if score >= best.1 {
            best = (number, score);
        }
    }
    Some(tag_name(best.0))
}

/// What the model knows a word as.
fn normalize(word: &str) -> Cow<'_, str> {
    if word.contains('-') && !word.starts_with('-') {
        Cow::Borrowed("!HYPHEN")
    } else if word.chars().count() == 4 && word.chars().all(is_digit) {
        Cow::Borrowed("!YEAR")
    } else if word.starts_with(is_digit) {
        Cow::Borrowed("!DIGITS")
    } else {
        lower(word)
    }
}

/// The last three characters.
fn suffix(word: &str) -> &[u8] {
    word.char_indices().rev().nth(2).map_or(word, |(at, _)| &word[at..]).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_nltk() {
        for (tag, text) in [
            ("VB", "Take two cups of flour ."),
            ("VB", "Build a small fire near the tent ."),
            ("NNP", "Run to the shop and buy bread ."),
            ("DT", "The kettle sings ."),
            ("PRP", "I run ."),
            ("NNS", "Kettles sing ."),
            ("NN", "Swimming is fun ."),
            (":", "..."),
            ("CD", "1 . Run home"),
            ("JJ", "Lantern"),
        ] {
            let tokens: Vec<&str> = text.split(' ').collect();
            assert_eq!(first_tag(&tokens), Some(tag), "{text}");
        }
        assert_eq!(first_tag(&[]), None);
    }

    #[test]
    fn the_model_is_nltks() {
        // 75,447 features of the full model, less those that a first token cannot have; 1,549 words with one tag.
        assert_eq!(section(DATA, 0).len(), TAGS * 8);
        assert_eq!(MODEL.len(), 33_959);
    }

    #[test]
    fn words_without_letters() {
        for word in ["1984", "12", "x-ray", "-", "é", "\u{301}", "🎉", ""] {
            assert!(first_tag(&[word]).is_some(), "{word:?}");
        }
    }
}
