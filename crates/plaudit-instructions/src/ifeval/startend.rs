//! How the response begins and ends.

use crate::argument::{ArgumentError, Arguments, Kind, Parameter};
use crate::constraint::{Constraint, Family, Test};
use crate::text::reading::{is_unspaced, is_word_part};
use plaudit_text::{is_space, lower, strip};

pub(crate) const TABLE: &[Constraint] = &[
    Constraint {
        id: "startend:end_checker",
        family: Family::IfEval,
        parameters: &[Parameter::new("end_phrase", Kind::Text)],
        checks: "The response ends with the phrase, in upper or lower case.",
        gamed: "By the phrase alone.",
        difference: "The published checker lets \"Many other questions?\" end with \"Any other questions?\", and takes \
            quotation marks off the response but not off the phrase.",
        build: end_checker,
    },
    Constraint {
        id: "startend:quotation",
        family: Family::IfEval,
        parameters: &[],
        checks: "The whole response is in one pair of double quotation marks.",
        gamed: "By an empty text in quotation marks.",
        difference: "The published checker lets `\"One\" and \"two\"` pass and does not know “curly” quotation marks.",
        build: quotation,
    },
];

fn end_checker(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    const NAME: &str = "end_phrase";
    let phrase = lower(strip(arguments.text(NAME)?)).into_owned();
    if !arguments.corrected() {
        return Ok(Box::new(move |view| lower(strip(view.text()).trim_matches('"')).ends_with(&phrase)));
    }
    if phrase.is_empty() {
        return Err(arguments.refused(NAME, "must not be empty"));
    }
    Ok(Box::new(move |view| {
        let text = strip(view.text());
        let unquoted = strip(text.trim_matches(['"', '“', '”']));
        [text, unquoted].into_iter().any(|text| {
            let text = lower(text);
            text.strip_suffix(phrase.as_str()).is_some_and(|before| {
                let ends = (before.chars().next_back(), phrase.chars().next());
                !matches!(ends, (Some(last), Some(first)) if is_word_part(last) && is_word_part(first) && !is_unspaced(last))
            })
        })
    }))
}

fn quotation(arguments: &Arguments<'_>) -> Result<Test, ArgumentError> {
    let corrected = arguments.corrected();
    Ok(Box::new(move |view| {
        let text = strip(view.text());
        if corrected {
            return is_quoted(text);
        }
        text.chars().nth(1).is_some() && text.starts_with('"') && text.ends_with('"')
    }))
}

/// Whether the first quotation mark closes at the last one.
fn is_quoted(text: &str) -> bool {
    let inside = |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(inside) = inside('“', '”') {
        let mut depth = 0i64;
        return !strip(inside).is_empty()
            && inside.chars().all(|c| {
                depth += i64::from(c == '“') - i64::from(c == '”');
                depth >= 0
            });
    }
    let Some(inside) = inside('"', '"') else { return false };
    // A mark opens where white space is before it and none after it, and closes otherwise.
    let mut depth = 0i64;
    let mut before = '"';
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '"' {
            let opens = (is_space(before) || matches!(before, '(' | '[' | '{' | '"'))
                && chars.peek().is_some_and(|next| !is_space(*next));
            depth += if opens { 1 } else { -1 };
            if depth < 0 {
                return false;
            }
        }
        before = c;
    }
    !strip(inside).is_empty()
}
