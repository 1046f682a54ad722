//! Rows of public data sets: which constraints a response must follow.
//!
//! Three forms are known, and [`read`] finds out which one a row has:
//!
//! | Form | Fields |
//! |---|---|
//! | IFEval, IFBench | `instruction_id_list`, and `kwargs` with an object or null for each |
//! | IF-RLVR | `ground_truth`: a Python literal, `[{"instruction_id": [...], "kwargs": [...]}]`, or JSON inside of it |
//! | NeMo-Gym | `verifier_metadata` with the fields of the first form and `grading_mode` |
//!
//! A row without constraints is an error: nothing would be asked of the response.

use crate::argument::ArgumentError;
use crate::constraint::{Check, Semantics, parse};
use plaudit_text::{json_or_literal, strip};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// How many constraints a row may have.
const MAX_CONSTRAINTS: usize = 1000;

/// What a row asks for.
#[derive(Debug)]
pub struct Row {
    /// The constraints, in the order of the row.
    pub checks: Vec<Check>,
    /// How NeMo-Gym makes one number of them, where the row says it.
    pub grading: Option<Grading>,
}

/// NeMo-Gym's `grading_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grading {
    /// 1 where all constraints hold, else 0.
    Binary,
    /// The share of the constraints that hold.
    Fraction,
}

/// A row that says nothing that can be checked, and where the mistake is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The field, such as `kwargs[1]` or `ground_truth, byte 17`.
    pub place: String,
    /// What is wrong.
    pub problem: RowErrorKind,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowErrorKind {
    /// A constraint or one of its arguments.
    Argument(ArgumentError),
    /// Anything else, in words.
    Form(String),
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            RowErrorKind::Argument(error) => write!(f, "{}: {error}", self.place),
            RowErrorKind::Form(problem) => write!(f, "{}: {problem}", self.place),
        }
    }
}

impl std::error::Error for RowError {}

fn error(place: impl Into<String>, problem: impl Into<String>) -> RowError {
    RowError { place: place.into(), problem: RowErrorKind::Form(problem.into()) }
}

/// Reads a row of any of the three forms.
///
/// # Errors
///
/// A row of no known form, and any mistake in it, with its place.
pub fn read(row: &Map<String, Value>, semantics: Semantics) -> Result<Row, RowError> {
    let given = |name: &str| row.get(name).filter(|value| !value.is_null());
    if let Some(metadata) = given("verifier_metadata") {
        let Value::Object(metadata) = metadata else {
            return Err(error("verifier_metadata", "must be an object"));
        };
        return from_lists(metadata, "verifier_metadata.", semantics);
    }
    if given("instruction_id_list").is_some() {
        return from_lists(row, "", semantics);
    }
    if let Some(truth) = given("ground_truth") {
        return Ok(Row { checks: from_ground_truth(truth, semantics)?, grading: None });
    }
    Err(error("row", "has neither instruction_id_list nor verifier_metadata nor ground_truth"))
}

fn from_lists(row: &Map<String, Value>, place: &str, semantics: Semantics) -> Result<Row, RowError> {
    let grading = match row.get("grading_mode") {
        None | Some(Value::Null) => None,
        Some(Value::String(mode)) if mode == "binary" => Some(Grading::Binary),
        Some(Value::String(mode)) if mode == "fraction" => Some(Grading::Fraction),
        Some(_) => return Err(error(format!("{place}grading_mode"), "must be \"binary\" or \"fraction\"")),
    };
    let checks = checks(row, place, ["instruction_id_list", "kwargs"], semantics)?;
    Ok(Row { checks, grading })
}

/// Reads the `ground_truth` of IF-RLVR: a Python literal in a text, or the list or object itself.
///
/// # Errors
///
/// A text that is no literal, and any mistake in what it says, with its place.
pub fn from_ground_truth(truth: &Value, semantics: Semantics) -> Result<Vec<Check>, RowError> {
    let parsed = match truth {
        Value::String(text) => Cow::Owned(
            json_or_literal(text)
                .map_err(|(at, problem)| error(format!("ground_truth, byte {at}"), problem))?,
        ),
        other => Cow::Borrowed(other),
    };
    let first = match parsed.as_ref() {
        Value::Array(list) => match list.as_slice() {
            [first] => first,
            _ => return Err(error("ground_truth", "must be a list of one")),
        },
        other => other,
    };
    let inner = match first {
        Value::String(json) => Cow::Owned(
            serde_json::from_str(json)
                .map_err(|problem| error("ground_truth[0]", format!("is no JSON: {problem}")))?,
        ),
        other => Cow::Borrowed(other),
    };
    let Value::Object(object) = inner.as_ref() else {
        return Err(error("ground_truth[0]", "must be an object"));
    };
    let listed = object.contains_key("instruction_id_list") && !object.contains_key("instruction_id");
    let ids = if listed { "instruction_id_list" } else { "instruction_id" };
    checks(object, "ground_truth[0].", [ids, "kwargs"], semantics)
}

/// A list or an object that a table has as text, JSON or a literal of Python; anything else as it is.
fn of_text(value: &Value) -> Cow<'_, Value> {
    let Value::String(text) = value else { return Cow::Borrowed(value) };
    let read = serde_json::from_str(text).ok().or_else(|| json_or_literal(text).ok());
    read.filter(|read: &Value| !read.is_string()).map_or(Cow::Borrowed(value), Cow::Owned)
}

/// The constraints of two parallel lists.
fn checks(
    object: &Map<String, Value>,
    place: &str,
    [ids_name, kwargs_name]: [&str; 2],
    semantics: Semantics,
) -> Result<Vec<Check>, RowError> {
    let list = |name: &str| match object.get(name).map(of_text) {
        None => Ok(None),
        Some(value) => match value.as_ref() {
            Value::Null => Ok(None),
            Value::Array(list) => Ok(Some(list.clone())),
            _ => Err(error(format!("{place}{name}"), "must be a list")),
        },
    };
    let ids = list(ids_name)?.ok_or_else(|| error(format!("{place}{ids_name}"), "is missing"))?;
    let kwargs = list(kwargs_name)?;
    if ids.is_empty() {
        return Err(error(format!("{place}{ids_name}"), "is empty: nothing is asked of the response"));
    }
    if ids.len() > MAX_CONSTRAINTS {
        return Err(error(
            format!("{place}{ids_name}"),
            format!("has more than {MAX_CONSTRAINTS} constraints"),
        ));
    }
    if let Some(kwargs) = &kwargs
        && kwargs.len() != ids.len()
    {
        let problem = format!("has {} entries for {} constraints", kwargs.len(), ids.len());
        return Err(error(format!("{place}{kwargs_name}"), problem));
    }
    ids.iter()
        .enumerate()
        .map(|(at, id)| {
            let Some(id) = id.as_str() else {
                return Err(error(format!("{place}{ids_name}[{at}]"), "must be a text"));
            };
            let arguments =
                kwargs.as_ref().map_or(Cow::Borrowed(&Value::Null), |kwargs| of_text(&kwargs[at]));
            parse(id, &arguments, semantics).map_err(|problem| {
                let name = if problem.argument.is_empty() { ids_name } else { kwargs_name };
                RowError { place: format!("{place}{name}[{at}]"), problem: RowErrorKind::Argument(problem) }
            })
        })
        .collect()
}

/// A response without its thought, as IF-RLVR takes it off: the marker of the assistant's turn and the tags of the answer
/// are taken out, and what stands up to the last `</think>`.
pub fn without_thought(response: &str) -> Cow<'_, str> {
    let marked = ["<|assistant|>", "<answer>", "</answer>"].iter().any(|mark| response.contains(mark));
    let text =
        if marked { Cow::Owned(response.replace("<|assistant|>", "")) } else { Cow::Borrowed(response) };
    let answer = text.rfind("</think>").map_or(0, |at| at + "</think>".len());
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(strip(&text[answer..])),
        Cow::Owned(text) => {
            let answer = text[answer..].replace("<answer>", "").replace("</answer>", "");
            Cow::Owned(strip(&answer).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(row: Value) -> Result<Vec<&'static str>, String> {
        let row = row.as_object().unwrap().clone();
        match read(&row, Semantics::Corrected) {
            Ok(row) => Ok(row.checks.iter().map(|check| check.constraint().id).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn three_forms() {
        let lists = json!({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"num_words": null}]});
        let literal =
            json!({"ground_truth": "[{'instruction_id': ['punctuation:no_comma'], 'kwargs': [None]}]"});
        let inner = json!({"ground_truth": "['{\"instruction_id\": [\"punctuation:no_comma\"], \"kwargs\": [null]}']"});
        for row in [lists.clone(), json!({"verifier_metadata": lists}), literal, inner] {
            assert_eq!(ids(row), Ok(vec!["punctuation:no_comma"]));
        }
    }

    #[test]
    fn grading_mode() {
        let row = json!({"verifier_metadata": {"instruction_id_list": ["copy:copy"], "grading_mode": "fraction",
            "kwargs": [{"prompt_to_repeat": "x"}]}});
        assert_eq!(
            read(row.as_object().unwrap(), Semantics::Published).unwrap().grading,
            Some(Grading::Fraction)
        );
    }

    #[test]
    fn mistakes_have_their_place() {
        let cases = [
            (json!({}), "row: "),
            (json!({"instruction_id_list": []}), "instruction_id_list: is empty"),
            (json!({"instruction_id_list": ["a:b"]}), "instruction_id_list[0]: \"a:b\" is not"),
            (json!({"instruction_id_list": ["copy:copy"], "kwargs": []}), "kwargs: has 0 entries for 1"),
            (
                json!({"instruction_id_list": ["copy:copy"]}),
                "kwargs[0]: copy:copy: the argument \"prompt_to_repeat\"",
            ),
            (
                json!({"verifier_metadata": {"instruction_id_list": [5]}}),
                "verifier_metadata.instruction_id_list[0]",
            ),
            (json!({"ground_truth": "[{'a': "}), "ground_truth, byte 7: "),
            (json!({"ground_truth": "[]"}), "ground_truth: must be a list of one"),
        ];
        for (row, message) in cases {
            let error = ids(row).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn thoughts_are_taken_off() {
        assert_eq!(without_thought("<|assistant|><think>a</think> <answer>b</answer>\n"), "b");
        assert_eq!(without_thought(" a <think>"), "a <think>");
        assert_eq!(without_thought("<think>a</think>"), "");
    }
}
