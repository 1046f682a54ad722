//! Lists of texts in a row: a field of `extra`, or the reference as a JSON list or as one text.

use super::RuleInput;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use crate::rollout::ReferenceForm;
use plaudit_text::exact;
use plaudit_text::is_blank;
use serde_json::Value;

/// The texts of a row: of the field where it is there, else of the reference. A text that is no JSON list is one.
pub(super) fn texts(sample: &RuleInput<'_>, field: &str, most: usize) -> Result<Vec<String>, Outcome> {
    let given = sample.extra.get(field).filter(|value| !value.is_null());
    let texts = match given {
        Some(Value::String(text)) => written(text),
        Some(value) => list(value),
        None => match sample.any_reference()? {
            reference if reference.form() == ReferenceForm::Document => None,
            reference => written(reference.stripped()),
        },
    };
    let bad = |code: Code, message: String| Outcome::invalid(Reason::new(code, message));
    let texts = texts
        .ok_or_else(|| bad(Code::ReferenceUnparsable, "A text or a list of texts is wanted.".to_owned()))?;
    if texts.len() > most {
        return Err(bad(Code::ReferenceTooLong, format!("More than {most} texts are given.")));
    }
    // An empty text is in every response, and an empty list asks for nothing.
    match texts.is_empty() || texts.iter().any(|text| is_blank(text)) {
        true => Err(Outcome::skipped(Code::EmptyReference)),
        false => Ok(texts),
    }
}

/// A list as JSON, or one text.
fn written(text: &str) -> Option<Vec<String>> {
    let value = text.trim_start().starts_with('[').then(|| exact::read::<Value>(text).ok()).flatten();
    value.map_or_else(|| Some(vec![text.to_owned()]), |value| list(&value))
}

fn list(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(exact::plain(text).to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Array(all) => all.iter().map(text).collect(),
        one => text(one).map(|text| vec![text]),
    }
}
