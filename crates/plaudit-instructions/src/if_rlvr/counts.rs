//! Counts of letters and words, and words that must differ.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::ifeval::keywords::{LETTER, compare, letter_frequency};
use crate::text::treebank::tokens_of_one;
use plaudit_text::{is_alpha, is_lower, is_word, lower};
use std::collections::{HashMap, HashSet};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "count:lowercase_counting",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("N", Kind::Number)],
        checks: "No word in small letters is there more than so many times.",
        gamed: "By capital letters.",
        difference: "The published checker wants at most so many words in small letters in all: with 3, \"a pot and a \
            lid\" fails.",
        build: lowercase_counting,
    },
    Constraint {
        id: "letters:letter_counting",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("N", Kind::Number), Parameter::new("relation", Kind::Relation)],
        checks: "There are at least, or less than, so many letters.",
        gamed: "By a line of one letter.",
        difference: "The published checker counts a to z alone: éèê and привет have no letters. A relation that it \
            does not know never holds; corrected refuses it.",
        build: letter_counting,
    },
    Constraint {
        id: "letters:letter_counting2",
        family: Family::IfRlvr,
        parameters: LETTER,
        checks: "The letter is there at least, or less than, so many times, in upper or lower case.",
        gamed: "By a line of that letter alone.",
        difference: "As `keywords:letter_frequency`.",
        build: letter_frequency,
    },
    Constraint {
        id: "count:count_unique",
        family: Family::IfRlvr,
        parameters: &[],
        checks: "No word is there twice, in upper or lower case.",
        gamed: "By a response of one word.",
        difference: "The published checker compares tokens of NLTK: two full stops fail, and \"Old kettles rust old.\" \
            passes.",
        build: count_unique,
    },
];

/// A number that is not 0, which the published checkers take for one that is not given.
fn number(arguments: &Arguments<'_>) -> Result<f64, ArgumentError> {
    let number = arguments.number("N")?;
    if number == 0.0 { Err(arguments.refused("N", "must not be 0")) } else { Ok(number) }
}

fn lowercase_counting(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let most = number(arguments)?;
    if !arguments.corrected() {
        return Ok(Box::new(move |view| lowercase_runs(view.text()) as f64 <= most));
    }
    Ok(Box::new(move |view| {
        let mut counts = HashMap::new();
        view.read_words().iter().filter(|word| is_lower(word)).all(|word| {
            let count: &mut usize = counts.entry(*word).or_insert(0);
            *count += 1;
            *count as f64 <= most
        })
    }))
}

/// The matches of `\b[a-z]+\b`.
fn lowercase_runs(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut count, mut at) = (0, 0);
    while at < bytes.len() {
        let start = at;
        let mut small = true;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii_lowercase() {
                at += 1;
            } else if byte.is_ascii_alphanumeric() || byte == b'_' {
                small = false;
                at += 1;
            } else if byte < 0x80 {
                break;
            } else {
                let Some(c) = text[at..].chars().next().filter(|c| is_word(*c)) else { break };
                small = false;
                at += c.len_utf8();
            }
        }
        count += usize::from(small && at > start);
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    count
}

fn letter_counting(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let relation = arguments.required("relation")?;
    if relation.as_str() == Some("") {
        return Err(arguments.refused("relation", "must not be empty"));
    }
    let known = matches!(relation.as_str(), Some("at least" | "less than"));
    if !known && !arguments.corrected() {
        let given = arguments.required("N")?;
        if given.as_f64() == Some(0.0) {
            return Err(arguments.refused("N", "must not be 0"));
        }
        return Ok(Box::new(|_| false));
    }
    let limit = number(arguments)?;
    let relation = arguments.relation("relation")?;
    Ok(match arguments.corrected() {
        true => compare(relation, limit, |view| view.text().chars().filter(|c| is_alpha(*c)).count()),
        false => compare(relation, limit, |view| view.text().bytes().filter(u8::is_ascii_alphabetic).count()),
    })
}

fn count_unique(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(match arguments.corrected() {
        true => Box::new(|view| {
            let mut seen = HashSet::new();
            view.read_words().iter().all(|word| seen.insert(lower(word)))
        }),
        false => Box::new(|view| {
            // Sentence by sentence: most texts repeat a token soon.
            let mut seen = HashSet::new();
            view.sentences()
                .iter()
                .all(|sentence| tokens_of_one(sentence).into_iter().all(|token| seen.insert(token)))
        }),
    })
}
