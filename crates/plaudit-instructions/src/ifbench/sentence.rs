//! Constraints on single sentences and their order.

use super::test;
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading;
use plaudit_text::{fold, is_boundary, is_punctuation, split};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "sentence:alliteration_increment",
        family: Family::IfBench,
        parameters: &[],
        checks: "The longest run of words with the same first letter grows from sentence to sentence.",
        gamed: "A single sentence passes, without any alliteration.",
        difference: "The published check adds up all runs of a sentence: two runs of two count as four, more than a run of three.",
        build: alliteration_increment,
    },
    Constraint {
        id: "sentence:keyword",
        family: Family::IfBench,
        parameters: &[Parameter::new("word", Kind::Text), Parameter::new("N", Kind::Number)],
        checks: "Sentence `N` has the word, in any case.",
        gamed: "Short sentences up to the place.",
        difference: "The published check wants word boundaries at both ends, so that `C++`, `.net` and 散步 in 我们散步吧 are missed; and \
                     takes `N` 0 for the last sentence, which the corrected one refuses.",
        build: keyword,
    },
    Constraint {
        id: "sentence:increment",
        family: Family::IfBench,
        parameters: &[Parameter::new("small_n", Kind::Number)],
        checks: "Each sentence has exactly `small_n` words more than the one before.",
        gamed: "A single sentence passes.",
        difference: "The published check counts a long dash as a word, and closing stars as a sentence.",
        build: increment,
    },
];

fn alliteration_increment(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let mut before = None;
        let all = if corrected { view.read_sentences() } else { view.sentences() };
        let sentences = all.iter().map(|sentence| {
            let initials = split(sentence).filter_map(|word| {
                let word =
                    if corrected { reading::bare(word) } else { word.trim_start_matches(is_punctuation) };
                word.chars().next().and_then(|c| c.to_lowercase().next())
            });
            initials.collect::<Vec<char>>()
        });
        sentences.filter(|initials| !(corrected && initials.is_empty())).all(|initials| {
            let runs =
                initials.chunk_by(|one, next| one == next).map(<[char]>::len).filter(|&length| length > 1);
            let size: usize = if corrected { runs.max().map_or(0, |longest| longest) } else { runs.sum() };
            before.replace(size).is_none_or(|before| size > before)
        })
    })
}

fn keyword(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let word = arguments.text("word")?;
    if word.is_empty() {
        return Err(arguments.refused("word", "must not be empty"));
    }
    let place = arguments.count("N")?;
    let corrected = arguments.corrected();
    if corrected && place < 1.0 {
        return Err(arguments.refused("N", "must be at least 1"));
    }
    let word = fold(word);
    test(move |view| {
        let sentences = if corrected { view.read_sentences() } else { view.sentences() };
        // Python: place 0 is index -1, the last.
        let at = if place == 0.0 { sentences.len().saturating_sub(1) } else { (place - 1.0) as usize };
        if (sentences.len() as f64) < place {
            return false;
        }
        sentences.get(at).is_some_and(|sentence| {
            let sentence = fold(sentence);
            if corrected {
                reading::find_phrase(&sentence, &word).next().is_some()
            } else {
                has_bounded(&sentence, &word)
            }
        })
    })
}

/// `\bWORD\b`.
fn has_bounded(text: &str, word: &str) -> bool {
    let first = word.chars().next();
    let mut from = 0;
    while let Some(at) =
        text.as_bytes().get(from..).and_then(|rest| memchr::memmem::find(rest, word.as_bytes()))
    {
        let start = from + at;
        let end = start + word.len();
        if is_boundary(text[..start].chars().next_back(), first)
            && is_boundary(word.chars().next_back(), text[end..].chars().next())
        {
            return true;
        }
        from = start + first.map_or(1, char::len_utf8);
    }
    false
}

fn increment(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let more = arguments.count("small_n")?;
    let corrected = arguments.corrected();
    test(move |view| {
        let mut before = None;
        let mut grows = |count: usize| {
            before.replace(count).is_none_or(|before: usize| count as f64 == before as f64 + more)
        };
        if corrected {
            return view.read_sentences().iter().map(|sentence| reading::words(sentence).len()).all(grows);
        }
        let words =
            |sentence: &&str| split(sentence).filter(|word| !word.chars().all(is_punctuation)).count();
        view.sentences().iter().all(|sentence| grows(words(sentence)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_words() {
        assert!(has_bounded("the kettle sings", "kettle") && !has_bounded("the kettles", "kettle"));
        assert!(!has_bounded("i use c++ daily", "c++") && has_bounded("c++x", "c++"));
        assert!(!has_bounded(&"a".repeat(100_000), "aa"));
    }
}
