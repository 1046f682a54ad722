//! Vectors of the published checkers: one constraint, one response, what the checker says and what is right.

use plaudit_instructions::{Mode, Semantics, parse, verdicts};
use serde_json::{Value, json};
use std::path::Path;

/// One line of a file of vectors.
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) constraint: String,
    pub(crate) kwargs: Value,
    pub(crate) response: Value,
    pub(crate) strict: Value,
    pub(crate) loose: Value,
    pub(crate) truth: Value,
    pub(crate) tag: String,
}

pub(crate) fn read(path: &Path) -> Vec<Vector> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            Vector {
                id: text("id"),
                constraint: text("constraint"),
                kwargs: row["kwargs"].clone(),
                response: row["response"].clone(),
                strict: row["expected"]["strict"].clone(),
                loose: row["expected"]["loose"].clone(),
                truth: row["truth"].clone(),
                tag: text("tag"),
            }
        })
        .collect()
}

/// What we say: true, false, or `error` where the constraint cannot be checked or the response is no text.
pub(crate) fn answer(vector: &Vector, semantics: Semantics, mode: Mode) -> Value {
    let Some(text) = vector.response.as_str() else { return json!("error") };
    match parse(&vector.constraint, &vector.kwargs, semantics) {
        Ok(check) => json!(verdicts(text, &[check], mode)[0]),
        Err(_) => json!("error"),
    }
}

/// The three questions, each with what is expected; truth that is open has nothing.
pub(crate) fn questions(vector: &Vector) -> [(&'static str, Semantics, Mode, Option<&Value>); 3] {
    [
        ("published_strict", Semantics::Published, Mode::Strict, Some(&vector.strict)),
        ("published_loose", Semantics::Published, Mode::Loose, Some(&vector.loose)),
        (
            "corrected_truth",
            Semantics::Corrected,
            Mode::Strict,
            Some(&vector.truth).filter(|truth| !truth.is_null()),
        ),
    ]
}
