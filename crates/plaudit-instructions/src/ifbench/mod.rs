//! The 58 constraints of IFBench.

use crate::argument::ArgumentError;
use crate::constraint::{Constraint, Test};
use crate::text::reading;
use crate::text::view::View;
use plaudit_text::{is_punctuation, is_space};
use std::borrow::Cow;

mod count;
mod ratio;
mod words;
mod sentence;
mod format;
mod list;
mod repeat;
mod custom;
mod csv;

/// One table a file.
pub(crate) const TABLES: &[&[Constraint]] = &[
    count::TABLE,
    ratio::TABLE,
    words::TABLE,
    sentence::TABLE,
    format::TABLE,
    list::TABLE,
    repeat::TABLE,
    custom::TABLE,
    csv::TABLE,
];

/// A test, as a constraint's `build` returns it.
fn test(test: impl Fn(&View<'_>) -> bool + Send + Sync + 'static) -> Result<Test, ArgumentError> {
    Ok(Box::new(test))
}

/// A word without the 32 ASCII marks: `str.translate`.
fn without_marks(word: &str) -> Cow<'_, str> {
    if word.bytes().any(|byte| byte.is_ascii_punctuation()) {
        Cow::Owned(word.chars().filter(|&c| !is_punctuation(c)).collect())
    } else {
        Cow::Borrowed(word)
    }
}

/// A word without the 32 ASCII marks and spaces around it: `str.strip`.
fn stripped(word: &str) -> &str {
    word.trim_matches(|c| c == ' ' || is_punctuation(c))
}

/// The words of a text whose ASCII marks are taken out: those between white space, as far as anything is left of them.
fn words_without_marks<'v>(view: &'v View<'_>) -> impl Iterator<Item = Cow<'v, str>> {
    view.words().iter().map(|word| without_marks(word)).filter(|word| !word.is_empty())
}

/// The mark that ends a sentence, full-width ones as ASCII, after quotes, brackets and stars are left out.
fn final_mark(sentence: &str) -> Option<char> {
    let end =
        sentence.trim_end_matches(|c| is_space(c) || (is_closing(c) && !matches!(c, '。' | '！' | '？')));
    end.chars().next_back().map(|c| match c {
        '。' | '｡' => '.',
        '！' => '!',
        '？' => '?',
        c => c,
    })
}

/// What may stand after the last mark of a sentence and still belong to it.
fn is_closing(c: char) -> bool {
    matches!(
        c,
        '。' | '！'
            | '？'
            | '」'
            | '』'
            | '）'
            | '”'
            | '’'
            | '»'
            | '"'
            | '\''
            | ')'
            | ']'
            | '}'
            | '*'
            | '_'
            | '`'
    )
}

/// The words of a text without marks around them.
fn bare_words<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v str> {
    view.words().iter().map(|word| reading::bare(word)).filter(|word| !word.is_empty())
}

/// The first character of a word, without its ASCII marks and in lower case. A character whose lower case is two counts
/// by the first.
fn initial(word: &str) -> Option<char> {
    word.chars().find(|&c| !is_punctuation(c)).and_then(|c| c.to_lowercase().next())
}
