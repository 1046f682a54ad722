//! The first and the last word of the response and of its sentences.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::if_rlvr::keywords::text_or_first;
use crate::text::reading;
use plaudit_text::{is_space, is_word, same_lower, split, strip};

const FIRST: &[Parameter] = &[Parameter::new("first_word", Kind::Text)];
const LAST: &[Parameter] = &[Parameter::new("last_word", Kind::Text)];
const MARKS: &str =
    "The published checker leaves marks on the word: \"Kettle,\" and \"**Kettle**\" are not \"Kettle\".";
const APART: &str = "The published checker takes a full stop that stands apart, or a number in brackets, for the last \
    word, and \"ket.tle\" for \"kettle\".";

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "first_word:first_word_sent",
        family: Family::IfRlvr,
        parameters: FIRST,
        checks: "Every sentence begins with the word, in upper or lower case.",
        gamed: "By a single sentence.",
        difference: MARKS,
        build: first_word_sent,
    },
    Constraint {
        id: "first_word:first_word_answer",
        family: Family::IfRlvr,
        parameters: FIRST,
        checks: "The response begins with the word, in upper or lower case.",
        gamed: "By the word alone.",
        difference: MARKS,
        build: first_word_answer,
    },
    Constraint {
        id: "last_word:last_word_sent",
        family: Family::IfRlvr,
        parameters: LAST,
        checks: "Every sentence ends with the word, before its marks.",
        gamed: "By a single sentence.",
        difference: APART,
        build: last_word_sent,
    },
    Constraint {
        id: "last_word:last_word_answer",
        family: Family::IfRlvr,
        parameters: LAST,
        checks: "The response ends with the word, before its marks.",
        gamed: "By the word alone.",
        difference: APART,
        build: last_word_answer,
    },
];

/// A text that is not empty, trimmed.
fn word(arguments: &Arguments<'_>, name: &str) -> Result<String, ArgumentError> {
    let word = arguments.text(name)?;
    if word.is_empty() {
        Err(arguments.refused(name, "must not be empty"))
    } else {
        Ok(strip(word).to_owned())
    }
}

/// The last word of a text as the published checkers see it: what is between spaces, without anything but `\w`.
fn is_last(text: &str, wanted: &str) -> bool {
    let text = text.trim_end_matches(is_space);
    let last = text.rsplit(is_space).next().map_or("", |last| last);
    let bare: String = last.chars().filter(|c| is_word(*c)).collect();
    same_lower(&bare, wanted)
}

fn is_first(text: &str, wanted: &str) -> bool {
    split(text).next().is_some_and(|first| same_lower(first, wanted))
}

/// Whether every sentence with words in it has the word at one end.
fn every_sentence(sentences: &[&str], at_end: fn(&[&str]) -> Option<String>, wanted: &str) -> bool {
    let mut any = false;
    sentences.iter().all(|sentence| match at_end(&reading::words(sentence)) {
        Some(word) => {
            any = true;
            same_lower(&word, wanted)
        }
        None => true,
    }) && any
}

fn first_of(words: &[&str]) -> Option<String> {
    words.first().map(|word| (*word).to_owned())
}

fn last_of(words: &[&str]) -> Option<String> {
    words.last().map(|word| (*word).to_owned())
}

fn first_word_sent(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = text_or_first(arguments, "first_word")?.to_owned();
    Ok(match arguments.corrected() {
        true => Box::new(move |view| every_sentence(view.read_sentences(), first_of, &wanted)),
        false => Box::new(move |view| {
            // A first word without marks is the first word of the first sentence.
            let first = split(view.text())
                .next()
                .filter(|first| first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            first.is_none_or(|first| same_lower(first, &wanted))
                && view.split_sentences().iter().all(|sentence| is_first(sentence, &wanted))
        }),
    })
}

fn last_word_sent(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = text_or_first(arguments, "last_word")?.to_owned();
    Ok(match arguments.corrected() {
        true => Box::new(move |view| every_sentence(view.read_sentences(), last_of, &wanted)),
        false => Box::new(move |view| {
            view.split_sentences().iter().all(|sentence| !sentence.is_empty() && is_last(sentence, &wanted))
        }),
    })
}

fn first_word_answer(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = word(arguments, "first_word")?;
    Ok(match arguments.corrected() {
        true => {
            Box::new(move |view| view.read_words().first().is_some_and(|first| same_lower(first, &wanted)))
        }
        false => Box::new(move |view| is_first(view.text(), &wanted)),
    })
}

fn last_word_answer(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = word(arguments, "last_word")?;
    Ok(match arguments.corrected() {
        true => Box::new(move |view| view.read_words().last().is_some_and(|last| same_lower(last, &wanted))),
        false => Box::new(move |view| is_last(view.text(), &wanted)),
    })
}
