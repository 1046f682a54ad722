//! Text functions that constraints share: what Python, NLTK and langdetect do, without them.

pub mod view;
pub mod punkt;
pub mod splitter;
pub mod treebank;
pub mod pattern;
pub mod reading;
pub mod common_words;
mod table;
pub mod word_set;
pub mod stop_words;
pub mod syllables;
pub mod tagger;
pub mod verbs;
pub mod emoji;
pub mod langdetect;
pub mod scripts;
pub mod language_share;
