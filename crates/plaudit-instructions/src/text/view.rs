//! A text with what checks look at: made when it is first asked for, and shared by all checks.

use super::{langdetect, punkt, reading, splitter, treebank};
use std::borrow::Cow;
use std::cell::OnceCell;

/// A text and its parts, each computed at most once.
pub struct View<'a> {
    text: &'a str,
    ascii: OnceCell<bool>,
    blank: OnceCell<bool>,
    lower: OnceCell<Cow<'a, str>>,
    folded: OnceCell<Option<String>>,
    words: OnceCell<Vec<&'a str>>,
    runs: OnceCell<Vec<&'a str>>,
    sentences: OnceCell<Vec<&'a str>>,
    split_sentences: OnceCell<splitter::Sentences>,
    tokens: OnceCell<Vec<&'a str>>,
    language: OnceCell<Option<&'static str>>,
    read_words: OnceCell<Vec<&'a str>>,
    read_sentences: OnceCell<Vec<&'a str>>,
}

impl<'a> View<'a> {
    /// Nothing is computed yet.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            ascii: OnceCell::new(),
            blank: OnceCell::new(),
            lower: OnceCell::new(),
            folded: OnceCell::new(),
            words: OnceCell::new(),
            runs: OnceCell::new(),
            sentences: OnceCell::new(),
            split_sentences: OnceCell::new(),
            tokens: OnceCell::new(),
            language: OnceCell::new(),
            read_words: OnceCell::new(),
            read_sentences: OnceCell::new(),
        }
    }

    /// The text as it stands.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether nothing but white space is there.
    pub fn is_blank(&self) -> bool {
        *self.blank.get_or_init(|| self.text.chars().all(plaudit_text::is_space))
    }

    /// Whether all of it is ASCII.
    pub fn is_ascii(&self) -> bool {
        *self.ascii.get_or_init(|| self.text.is_ascii())
    }

    /// `str.lower`.
    pub fn lower(&self) -> &str {
        self.lower.get_or_init(|| plaudit_text::lower(self.text))
    }

    /// One character for each, equal where `re.IGNORECASE` takes them for the same.
    pub fn folded(&self) -> &str {
        match self.folded.get_or_init(|| (!self.is_ascii()).then(|| plaudit_text::fold(self.text))) {
            Some(folded) => folded,
            None => self.lower(),
        }
    }

    /// `str.split`: the words between white space.
    pub fn words(&self) -> &[&'a str] {
        self.words.get_or_init(|| plaudit_text::split(self.text).collect())
    }

    /// The matches of `\w+`.
    pub fn runs(&self) -> &[&'a str] {
        self.runs.get_or_init(|| plaudit_text::runs(self.text).collect())
    }

    /// The sentences of NLTK's Punkt.
    pub fn sentences(&self) -> &[&'a str] {
        self.sentences.get_or_init(|| punkt::sentences(self.text))
    }

    /// The sentences of the regular-expression splitter of IFEval and IF-RLVR.
    pub fn split_sentences(&self) -> &splitter::Sentences {
        self.split_sentences.get_or_init(|| splitter::sentences(self.text))
    }

    /// The tokens of NLTK's `word_tokenize`.
    pub fn tokens(&self) -> &[&'a str] {
        self.tokens.get_or_init(|| treebank::tokens_of(self.sentences()))
    }

    /// The tokens, where they have been asked for before.
    pub fn tokens_if_known(&self) -> Option<&[&'a str]> {
        self.tokens.get().map(Vec::as_slice)
    }

    /// The language that langdetect names, or nothing where it finds no text.
    pub fn language(&self) -> Option<&'static str> {
        *self.language.get_or_init(|| langdetect::detect(self.text))
    }

    /// Words as a reader counts them.
    pub fn read_words(&self) -> &[&'a str] {
        self.read_words.get_or_init(|| reading::words(self.text))
    }

    /// Sentences as a reader counts them.
    pub fn read_sentences(&self) -> &[&'a str] {
        self.read_sentences.get_or_init(|| reading::sentences(self.text))
    }
}
