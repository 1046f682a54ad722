//! Constraints on shares and balances: stop words, kinds of sentences, overlap with a reference.

use super::{final_mark, test};
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading;
use crate::text::stop_words::is_stop_word;
use crate::text::view::View;
use plaudit_text::{lower, strip};
use serde_json::Value;
use std::collections::HashSet;

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "ratio:stop_words",
        family: Family::IfBench,
        parameters: &[Parameter::new("percentage", Kind::Number)],
        checks: "At most `percentage` of 100 words are English stop words, of NLTK's list of 179.",
        gamed: "Telegram style, a list of nouns, or another language.",
        difference: "",
        build: stop_words,
    },
    Constraint {
        id: "ratio:sentence_type",
        family: Family::IfBench,
        parameters: &[],
        checks: "Twice as many sentences end with a full stop as with a question mark.",
        gamed: "A text without either, such as a list or exclamations, passes: nought is twice nought.",
        difference: "The published check looks at the last character: quotes and brackets after the mark hide it, and `。` is none.",
        build: sentence_type,
    },
    Constraint {
        id: "ratio:sentence_balance",
        family: Family::IfBench,
        parameters: &[],
        checks: "As many sentences end with a full stop as with a question mark and with an exclamation mark.",
        gamed: "A text without any of the three marks passes.",
        difference: "The published check looks at the last character: quotes and brackets after the mark hide it, and `。` is none.",
        build: sentence_balance,
    },
    Constraint {
        id: "ratio:overlap",
        family: Family::IfBench,
        parameters: &[
            Parameter::new("reference_text", Kind::Text),
            Parameter::new("percentage", Kind::Number),
        ],
        checks: "Of the different character trigrams of the text, `percentage` of 100 occur in the reference, give or \
                 take two.",
        gamed: "Copying a piece of the reference and filling up with other text until the share is met.",
        difference: "",
        build: overlap,
    },
    Constraint {
        id: "ratio:sentence_words",
        family: Family::IfBench,
        parameters: &[],
        checks: "Three sentences of the same number of characters that share no word.",
        gamed: "Three sentences without meaning.",
        difference: "The published check does not look at the words: the same sentence three times passes.",
        build: sentence_words,
    },
];

fn stop_words(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let most = arguments.count("percentage")?;
    test(move |view| {
        let words = view.runs();
        let stop_words = words.iter().filter(|word| is_stop_word(word)).count();
        !words.is_empty() && stop_words as f64 / words.len() as f64 * 100.0 <= most
    })
}

/// How many sentences end with each of `.`, `?` and `!`.
fn endings(view: &View<'_>, corrected: bool) -> [usize; 3] {
    let mut counts = [0; 3];
    let mut count = |mark: Option<char>| {
        if let Some(place) = mark.and_then(|mark| ".?!".find(mark)) {
            counts[place] += 1;
        }
    };
    match corrected {
        true => view.read_sentences().iter().map(|sentence| final_mark(sentence)).for_each(&mut count),
        false => view.sentences().iter().map(|sentence| sentence.chars().next_back()).for_each(&mut count),
    }
    counts
}

fn sentence_type(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let [stops, questions, _] = endings(view, corrected);
        stops == 2 * questions
    })
}

fn sentence_balance(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let [stops, questions, exclamations] = endings(view, corrected);
        stops == questions && stops == exclamations
    })
}

/// Three characters as one number.
fn trigram(one: char, two: char, three: char) -> u64 {
    u64::from(u32::from(one)) << 42 | u64::from(u32::from(two)) << 21 | u64::from(u32::from(three))
}

/// The different trigrams, sorted.
fn trigrams(chars: impl Iterator<Item = char>) -> Vec<u64> {
    let mut found = Vec::new();
    let mut before = (None, None);
    for c in chars {
        if let (Some(one), Some(two)) = before {
            found.push(trigram(one, two, c));
        }
        before = (before.1, Some(c));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// How many different trigrams a text of ASCII has, and how many of them the reference has: one bit for each.
fn overlap_of_ascii(text: &[u8], reference: &[u64]) -> (usize, usize) {
    let mut seen = vec![0_u64; 1 << 15];
    let mut count = 0;
    for window in text.windows(3) {
        let place = usize::from(window[0]) << 14 | usize::from(window[1]) << 7 | usize::from(window[2]);
        let bit = 1 << (place & 63);
        count += usize::from(seen[place >> 6] & bit == 0);
        seen[place >> 6] |= bit;
    }
    let shared = reference.iter().filter(|&&wanted| {
        let parts = [wanted >> 42, wanted >> 21 & 0x1f_ffff, wanted & 0x1f_ffff];
        let place = parts[0] << 14 | parts[1] << 7 | parts[2];
        parts.iter().all(|&part| part < 0x80) && seen[place as usize >> 6] >> (place & 63) & 1 != 0
    });
    (count, shared.count())
}

fn overlap(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let wanted = arguments.count("percentage")?;
    // The published checker takes a list as well: its items stand for characters.
    let reference = match arguments.required("reference_text")? {
        Value::String(text) => trigrams(text.chars()),
        Value::Array(items) if !arguments.corrected() => {
            let single = |item: &Value| {
                let mut chars = item.as_str().map_or("", |item| item).chars();
                chars.next().filter(|_| chars.as_str().is_empty())
            };
            // An item that is no character matches nothing: it stands as one that no text has.
            trigrams(items.iter().map(|item| single(item).map_or('\u{10ffff}', |c| c)))
        }
        _ => return Err(arguments.mistyped("reference_text", Kind::Text)),
    };
    test(move |view| {
        let (count, shared) = if view.is_ascii() {
            overlap_of_ascii(view.text().as_bytes(), &reference)
        } else {
            let found = trigrams(view.text().chars());
            (found.len(), found.iter().filter(|trigram| reference.binary_search(trigram).is_ok()).count())
        };
        let share = shared as f64 / count as f64 * 100.0;
        count > 0 && wanted - 2.0 <= share && share <= wanted + 2.0
    })
}

fn sentence_words(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    test(move |view| {
        let sentences = if corrected { view.read_sentences() } else { view.sentences() };
        let [one, two, three] = sentences else { return false };
        let length = |sentence: &str| strip(sentence).chars().count();
        if length(one) != length(two) || length(one) != length(three) {
            return false;
        }
        let mut seen = HashSet::new();
        let mut all = [one, two, three].into_iter().flat_map(|sentence| reading::words(sentence));
        !corrected || all.all(|word| seen.insert(lower(word)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_of_ascii_and_others_agree() {
        let (text, reference) = ("the cat sat on the mat", "a cat sat here");
        let reference = trigrams(reference.chars());
        let found = trigrams(text.chars());
        let shared = found.iter().filter(|trigram| reference.binary_search(trigram).is_ok()).count();
        assert_eq!(overlap_of_ascii(text.as_bytes(), &reference), (found.len(), shared));
        assert_eq!(overlap_of_ascii(b"ab", &reference), (0, 0));
        assert_eq!(overlap_of_ascii(b"caf", &trigrams("café".chars())), (1, 1));
    }
}
