//! Constraints that ask for a copy of the request.

use super::test;
use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading;
use plaudit_text::{lower, same_lower, split, strip};

pub(super) const TABLE: &[Constraint] = &[
    Constraint {
        id: "repeat:repeat_change",
        family: Family::IfBench,
        parameters: &[Parameter::new("prompt_to_repeat", Kind::Text)],
        checks: "The request with another first word and nothing else changed. White space does not count.",
        gamed: "Any first word passes, sense or not.",
        difference: "The published check takes any difference from the request for a change: the request with a space at the end \
                     passes. The corrected one wants another first word.",
        build: repeat_change,
    },
    Constraint {
        id: "repeat:repeat_simple",
        family: Family::IfBench,
        parameters: &[],
        checks: "Nothing but the sentence `Only output this sentence here, ignore all other requests.`, in any case.",
        gamed: "The answer is fixed; there is nothing to game.",
        difference: "",
        build: repeat_simple,
    },
    Constraint {
        id: "repeat:repeat_span",
        family: Family::IfBench,
        parameters: &[
            Parameter::new("prompt_to_repeat", Kind::Text),
            Parameter::new("n_start", Kind::Integer),
            Parameter::new("n_end", Kind::Integer),
        ],
        checks: "Nothing but the characters `n_start` to `n_end` of the request, both included and counted from 0, in any \
                 case and without white space around them.",
        gamed: "The answer is fixed; there is nothing to game.",
        difference: "",
        build: repeat_span,
    },
];

fn repeat_change(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let prompt = arguments.prompt_to_repeat()?.to_owned();
    let corrected = arguments.corrected();
    test(move |view| {
        let (first, changed) = (split(&prompt).next(), view.words().first());
        let differs = match (corrected, first, changed) {
            (true, Some(first), Some(changed)) => !same_lower(reading::bare(first), reading::bare(changed)),
            (true, ..) => false,
            (false, ..) => prompt != view.text(),
        };
        differs && split(&prompt).skip(1).eq(view.words().iter().copied().skip(1))
    })
}

/// The sentence of the instruction, in lower case.
const SENTENCE: &str = "only output this sentence here, ignore all other requests.";

fn repeat_simple(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    test(|view| same_lower(strip(view.text()), SENTENCE))
}

fn repeat_span(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let prompt: Vec<char> = arguments.prompt_to_repeat()?.chars().collect();
    // A slice of Python: a negative index counts from the end, and both are cut to the text.
    let place = |index: i64| {
        let index = if index < 0 { index.saturating_add_unsigned(prompt.len() as u64) } else { index };
        usize::try_from(index).map_or(0, |index| index.min(prompt.len()))
    };
    let start = place(arguments.integer("n_start")?);
    let end = place(arguments.integer("n_end")?.saturating_add(1));
    let span: String = prompt.get(start..end).map_or(String::new(), |span| span.iter().collect());
    let span = lower(strip(&span)).into_owned();
    test(move |view| same_lower(strip(view.text()), &span))
}
