//! Two responses, and the prompt repeated before the answer.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading::{is_unspaced, is_word_part};
use plaudit_text::{is_space, lower, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "combination:two_responses",
        family: Family::IfEval,
        parameters: &[],
        checks: "There are two different responses with `******` between them.",
        gamed: "By two responses that differ in one letter.",
        difference: "",
        build: two_responses,
    },
    Constraint {
        id: "combination:repeat_prompt",
        family: Family::IfEval,
        parameters: &[Parameter::new("prompt_to_repeat", Kind::Text)],
        checks: "The response begins with the prompt, unchanged, and an answer follows.",
        gamed: "By an answer of one letter.",
        difference: "The published checker ignores case, wants no answer, and takes \"Name a catalog\" for \"Name a \
            cat\".",
        build: repeat_prompt,
    },
];

fn two_responses(_: &Arguments<'_>) -> Result<Test, ArgumentError> {
    Ok(Box::new(|view| {
        let pieces: Vec<&str> = view.text().split("******").collect();
        let blank = |piece: &str| piece.chars().all(is_space);
        let inner =
            pieces.iter().enumerate().any(|(at, piece)| at != 0 && at + 1 != pieces.len() && blank(piece));
        let mut responses = pieces.iter().filter(|piece| !blank(piece)).map(|piece| strip(piece));
        let (first, second, third) = (responses.next(), responses.next(), responses.next());
        !inner && second.is_some() && third.is_none() && first != second
    }))
}

fn repeat_prompt(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    const NAME: &str = "prompt_to_repeat";
    let given = arguments.text(NAME)?;
    if given.is_empty() || (arguments.corrected() && strip(given).is_empty()) {
        return Err(arguments.refused(NAME, "must not be empty"));
    }
    if arguments.corrected() {
        let prompt = strip(given).to_owned();
        return Ok(Box::new(move |view| {
            let Some(answer) = strip(view.text()).strip_prefix(prompt.as_str()) else { return false };
            let ends = (prompt.chars().next_back(), answer.chars().next());
            let runs_on = matches!(ends, (Some(last), Some(next)) if is_word_part(last) && is_word_part(next) && !is_unspaced(next));
            !runs_on && answer.chars().any(|c| !is_space(c))
        }));
    }
    let prompt = lower(strip(given)).into_owned();
    Ok(Box::new(move |view| {
        // Trimming before and after the change of case is the same.
        let text = strip(view.lower());
        text.starts_with(&prompt)
    }))
}
