//! The English stop words of NLTK, as its data of 2023 has them.

use super::word_set::WordSet;
use std::sync::LazyLock;

/// Sorted. The list has 179 words; the 26 with an apostrophe are left out, since a run of word characters never has one.
#[rustfmt::skip]
static STOP_WORDS: [&str; 153] = [
    "a", "about", "above", "after", "again", "against", "ain", "all", "am", "an", "and", "any", "are",
    "aren", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both", "but",
    "by", "can", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "down", "during",
    "each", "few", "for", "from", "further", "had", "hadn", "has", "hasn", "have", "haven", "having",
    "he", "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into",
    "is", "isn", "it", "its", "itself", "just", "ll", "m", "ma", "me", "mightn", "more", "most",
    "mustn", "my", "myself", "needn", "no", "nor", "not", "now", "o", "of", "off", "on", "once", "only",
    "or", "other", "our", "ours", "ourselves", "out", "over", "own", "re", "s", "same", "shan", "she",
    "should", "shouldn", "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under",
    "until", "up", "ve", "very", "was", "wasn", "we", "were", "weren", "what", "when", "where", "which",
    "while", "who", "whom", "why", "will", "with", "won", "wouldn", "y", "you", "your", "yours",
    "yourself", "yourselves",
];

static SET: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(&STOP_WORDS));

/// Whether a run of word characters is a stop word, in any case.
pub fn is_stop_word(word: &str) -> bool {
    SET.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
        assert!(is_stop_word("the") && is_stop_word("YOURSELVES") && is_stop_word("t"));
        assert!(!is_stop_word("lantern") && !is_stop_word("") && !is_stop_word("yourselveses"));
        // The Kelvin sign is a k in lower case: no stop word has one.
        assert!(!is_stop_word("\u{212a}") && STOP_WORDS.iter().all(|word| !word.contains('k')));
    }
}
