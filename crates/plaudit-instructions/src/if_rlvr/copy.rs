//! The prompt or a phrase, copied.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::pattern::{compile, find_all, is_literal};
use crate::text::reading::bare;
use plaudit_text::{same_lower, split, strip};

const PROMPT: &[Parameter] = &[Parameter::new("prompt_to_repeat", Kind::Text)];
const SPAN: &[Parameter] = &[
    Parameter::new("prompt_to_repeat", Kind::Text),
    Parameter::new("n_start", Kind::Integer),
    Parameter::new("n_end", Kind::Integer),
];
const CASE: &str = "The published checker ignores case, although the prompt is to be copied without change.";

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "copy:repeat_phrase",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("phrase", Kind::Text), Parameter::new("small_n", Kind::Integer)],
        checks: "The phrase is there exactly so many times, each time with one other word between its first and its \
            last.",
        gamed: "By any other word, whether it makes sense or not.",
        difference: "The published checker takes the first and the last word for regular expressions: with the phrase \
            \"What (is) it?\" it does not find \"What (was) it?\".",
        build: repeat_phrase,
    },
    Constraint {
        id: "copy:copy",
        family: Family::IfRlvr,
        parameters: PROMPT,
        checks: "The response is the prompt, without change.",
        gamed: "Not at all: the response is known.",
        difference: CASE,
        build: copy,
    },
    Constraint {
        id: "copy:copying_simple",
        family: Family::IfRlvr,
        parameters: PROMPT,
        checks: "The response is the request, without change.",
        gamed: "Not at all: the response is known.",
        difference: CASE,
        build: copy,
    },
    Constraint {
        id: "copy:copying_multiple",
        family: Family::IfRlvr,
        parameters: &[Parameter::new("prompt_to_repeat", Kind::Text), Parameter::new("N", Kind::Number)],
        checks: "The response is the request, without change, so many times with `******` between.",
        gamed: "Not at all: the response is known.",
        difference: CASE,
        build: copying_multiple,
    },
    Constraint {
        id: "new:copy_span_idx",
        family: Family::IfRlvr,
        parameters: SPAN,
        checks: "The response is the part of the prompt from character `n_start` to character `n_end`, both included.",
        gamed: "Not at all: the response is known.",
        difference: "The published checker leaves out the character `n_end`, although the instruction includes it, so \
            that the right answer fails; it ignores case; and it draws `n_start` at random where it is 0.",
        build: copy_span_idx,
    },
];

/// Whether two texts are the same but for white space around them and, in the published checkers, case.
fn same(text: &str, wanted: &str, corrected: bool) -> bool {
    if corrected { strip(text) == wanted } else { same_lower(strip(text), wanted) }
}

fn copy(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let (wanted, corrected) = (strip(arguments.prompt_to_repeat()?).to_owned(), arguments.corrected());
    Ok(Box::new(move |view| same(view.text(), &wanted, corrected)))
}

fn copying_multiple(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let (wanted, corrected) = (strip(arguments.prompt_to_repeat()?).to_owned(), arguments.corrected());
    let given = arguments.required("N")?;
    let times = match given.as_f64() {
        Some(times) if times != 0.0 => times,
        // The published checker compares with anything that is given, and never finds it equal.
        None if !corrected && given.as_str() != Some("") => return Ok(Box::new(|_| false)),
        None => return Err(arguments.mistyped("N", Kind::Number)),
        Some(_) => return Err(arguments.refused("N", "must not be 0")),
    };
    Ok(Box::new(move |view| {
        let pieces = view.text().split("******");
        pieces.clone().count() as f64 == times
            && pieces.into_iter().all(|piece| same(piece, &wanted, corrected))
    }))
}

fn copy_span_idx(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let (prompt, corrected) = (arguments.prompt_to_repeat()?, arguments.corrected());
    let (start, end) = (arguments.integer("n_start")?, arguments.integer("n_end")?);
    let length = prompt.chars().count();
    let (start, end) = if corrected {
        let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else {
            return Err(arguments.refused("n_start", "and n_end must not be negative"));
        };
        (start, end.saturating_add(1))
    } else {
        for (name, value) in [("n_start", start), ("n_end", end)] {
            if value == 0 {
                return Err(arguments.refused(name, "must not be 0"));
            }
        }
        // A negative index counts from the end.
        let place = |index: i64| match usize::try_from(index) {
            Ok(index) => index,
            Err(_) => {
                length.saturating_sub(usize::try_from(index.unsigned_abs()).map_or(usize::MAX, |back| back))
            }
        };
        (place(start), place(end))
    };
    let span: String = prompt.chars().take(end).skip(start).collect();
    let wanted = strip(&span).to_owned();
    Ok(Box::new(move |view| same(view.text(), &wanted, corrected)))
}

fn repeat_phrase(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    const NAME: &str = "phrase";
    let given = arguments.text(NAME)?;
    let times = arguments.integer("small_n")?;
    if times == 0 {
        return Err(arguments.refused("small_n", "must not be 0"));
    }
    let times = usize::try_from(times).map_or(usize::MAX, |times| times);
    let phrase: Vec<String> = split(given).map(str::to_owned).collect();
    let (Some(first), Some(last)) = (phrase.first().cloned(), phrase.last().cloned()) else {
        return Err(arguments.refused(NAME, "must not be empty"));
    };
    if arguments.corrected() {
        return Ok(Box::new(move |view| repeats_with_a_change(view.words(), &phrase) == Some(times)));
    }
    if is_literal(&first) && is_literal(&last) {
        return Ok(Box::new(move |view| {
            published_repeats(between(view.text(), &first, &last), &phrase, times)
        }));
    }
    let (regex, groups) =
        compile(&format!("{first} .*? {last}"), false).map_err(|reason| arguments.refused(NAME, reason))?;
    if groups > 0 {
        return Err(arguments.refused(NAME, "is a regular expression that is not supported: groups"));
    }
    Ok(Box::new(move |view| published_repeats(find_all(&regex, view.text()), &phrase, times)))
}

/// The matches of `FIRST .*? LAST`, each on one line.
fn between<'t>(text: &'t str, first: &'t str, last: &'t str) -> impl Iterator<Item = &'t str> {
    let (open, close) = (format!("{first} "), format!(" {last}"));
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + memchr::memmem::find(text.as_bytes().get(from..)?, open.as_bytes())?;
            let inside = start + open.len();
            let line =
                memchr::memchr(b'\n', &text.as_bytes()[inside..]).map_or(text.len(), |end| inside + end);
            match memchr::memmem::find(&text.as_bytes()[inside..line], close.as_bytes()) {
                Some(at) => {
                    from = inside + at + close.len();
                    return Some(&text[start..from]);
                }
                // Nor is there one for what begins later on this line.
                None => from = line.max(start + 1),
            }
        }
    })
}

/// Whether so many were found, each as long as the phrase and with one word changed.
fn published_repeats<'t>(found: impl Iterator<Item = &'t str>, phrase: &[String], times: usize) -> bool {
    let mut count = 0;
    let changed_once = found.inspect(|_| count += 1).all(|found| {
        let words: Vec<&str> = split(found).collect();
        words.len() == phrase.len()
            && words.iter().zip(phrase).filter(|(word, wanted)| *word != *wanted).count() == 1
    });
    changed_once && count == times
}

/// How often the phrase is there, or nothing where it is there without one change between its first and last word.
fn repeats_with_a_change(words: &[&str], phrase: &[String]) -> Option<usize> {
    let same =
        |word: &str, wanted: &str| word == wanted || (!bare(word).is_empty() && bare(word) == bare(wanted));
    let mut count = 0;
    let mut at = 0;
    while let Some(window) = words.get(at..at + phrase.len()) {
        let ends = same(window[0], &phrase[0]) && same(window[window.len() - 1], &phrase[phrase.len() - 1]);
        if !ends {
            at += 1;
            continue;
        }
        let changes = window.iter().zip(phrase).filter(|(word, wanted)| !same(word, wanted)).count();
        if changes != 1 {
            return None;
        }
        count += 1;
        at += phrase.len();
    }
    Some(count)
}
