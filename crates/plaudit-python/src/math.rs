//! `plaudit.math`: the answers of responses held against references.

use crate::error::{self, ReadError};
use crate::parallel::{Workers, cores, on_threads};
use crate::text::{NumbersAsText, TextColumn, Unreadable, arrow, column, text, type_name};
use crate::value::parameters;
use numpy::PyArray1;
use plaudit::reason::Code;
use plaudit_math::{Options, Outcome, Reference, ReferenceError, Verdict, extract, kind_of, verify};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::Value;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// So many answers are compared on the caller's thread: that takes less than the start of others.
const QUICK_ITEMS: usize = 32;

/// Why the answer equals the reference or does not, and what is wrong with it.
type Why = (&'static str, Option<&'static str>);
/// A text and what it is read as.
type Read = (String, Option<&'static str>);
/// The answer, its normal form and kind, the rule and the place by which it was found, and the proof.
type Answer = (
    Option<String>,
    Option<String>,
    Option<&'static str>,
    Option<&'static str>,
    Option<Place>,
    Option<&'static str>,
);
/// The answer of a response, what it is read as, the rule by which it was found and its place.
type Extracted = (String, Option<&'static str>, &'static str, Place);
/// Where a text starts and ends, in characters.
type Place = (usize, usize);

/// The references of a call: one answer a place, or several that are accepted.
enum Golds {
    Arrow(TextColumn),
    Lists(Vec<Option<Vec<PyBackedStr>>>),
}

impl Golds {
    fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut unreadable = Unreadable::new();
        let golds = match arrow(given)? {
            Some(array) => Self::Arrow(TextColumn::arrow("golds", array, NumbersAsText::Any)?),
            None => Self::Lists(column("golds", given, &mut unreadable, |place, item| {
                accepted(place, item).map(Some)
            })?),
        };
        unreadable.into_values().next().map_or(Ok(golds), |reason| Err(error::argument(reason.message)))
    }

    fn len(&self) -> usize {
        match self {
            Self::Arrow(column) => column.len().unwrap_or(0),
            Self::Lists(lists) => lists.len(),
        }
    }

    /// The accepted answers at a place.
    fn get(&self, at: usize) -> impl Iterator<Item = &str> {
        let (one, several): (Option<&str>, &[PyBackedStr]) = match self {
            Self::Arrow(column) => (Some(column.get(at).unwrap_or("")), &[]),
            Self::Lists(lists) => (None, lists[at].as_deref().unwrap_or(&[])),
        };
        one.into_iter().chain(several.iter().map(|text| &**text))
    }
}

/// One reference: text or a number, or a list of them.
fn accepted(place: &dyn Fn() -> String, item: &Bound<'_, PyAny>) -> Result<Vec<PyBackedStr>, ReadError> {
    let one = |place: &dyn Fn() -> String, item: &Bound<'_, PyAny>| {
        let missing = || error::argument(format!("{}: text is wanted, not {}", place(), type_name(item)));
        Ok::<_, ReadError>(text(place, item, NumbersAsText::Any)?.ok_or_else(missing)?)
    };
    if !item.is_instance_of::<PyList>() && !item.is_instance_of::<PyTuple>() {
        return Ok(vec![one(place, item)?]);
    }
    let mut all = Vec::new();
    for (at, inner) in item.try_iter()?.enumerate() {
        all.push(one(&|| format!("{}[{at}]", place()), &inner?)?);
    }
    if all.is_empty() {
        return Err(error::argument(format!("{}: no answer is accepted, the list is empty", place())).into());
    }
    Ok(all)
}

/// The options by their names, with the secret of this process.
fn options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    let read: Options = serde_json::from_value(Value::Object(parameters(given)?)).map_err(error::argument)?;
    let seed = *SEED.get_or_init(|| getrandom::u64().ok());
    let missing = || "the system gives no random numbers".to_owned();
    let seed = seed.ok_or_else(|| error::coded(given.py(), "engine.no_randomness", missing()))?;
    Ok(Options { seed, ..read })
}

/// The message for a reference that is none.
fn unusable(place: &str, error: ReferenceError) -> PyErr {
    match error {
        ReferenceError::Unparsable(bound) => {
            error::argument(format!("{place}: the reference {}", bound.cause()))
        }
        error => error::argument(format!("{place}: {error}")),
    }
}

/// A response: its text, or nothing where it is not valid Unicode.
fn response(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Option<PyBackedStr>> {
    match text(&|| name.to_owned(), given, NumbersAsText::Any) {
        Ok(Some(text)) => Ok(Some(text)),
        Ok(None) => Err(error::argument(format!("{name}: text is wanted, not {}", type_name(given)))),
        Err(ReadError::Rollout(_)) => Ok(None),
        Err(ReadError::Argument(error)) => Err(error),
    }
}

/// Whether each answer equals its reference. A reference that cannot be read is an error, or equals nothing.
#[pyfunction]
pub(crate) fn math_verify_many<'py>(
    py: Python<'py>,
    golds: &Bound<'py, PyAny>,
    answers: &Bound<'py, PyAny>,
    given: &Bound<'py, PyDict>,
    unreadable_is_false: bool,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let options = options(given)?;
    let golds = Golds::read(golds)?;
    let mut unreadable = Unreadable::new();
    let answers = TextColumn::read("answers", answers, NumbersAsText::Any, &mut unreadable)?;
    let count = answers.len().ok_or_else(|| error::argument("answers: a list is wanted, not None"))?;
    if golds.len() != count {
        let (golds, answers) = (golds.len(), count);
        return Err(error::argument(format!("golds has {golds} items, but answers has {answers}")));
    }
    if let Some(at) = (0..count).find(|at| answers.get(*at).is_none() && !unreadable.contains_key(at)) {
        return Err(error::argument(format!("answers[{at}]: text is wanted, not None")));
    }
    let compare = move |workers: &Workers| {
        // Answers of a group have one reference, which is read once.
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut texts: Vec<&str> = Vec::new();
        for gold in (0..count).flat_map(|at| golds.get(at)) {
            places.entry(gold).or_insert_with(|| {
                texts.push(gold);
                texts.len() - 1
            });
        }
        let references = workers.map(texts.len(), |at| Reference::parse(texts[at], &options));
        let read = |gold: &str| references.get(*places.get(gold)?);
        let unusable = |at: &usize| golds.get(*at).all(|gold| matches!(read(gold), Some(Err(_))));
        if let Some(at) = (0..count).find(unusable).filter(|_| !unreadable_is_false) {
            let error = golds.get(at).find_map(|gold| read(gold)?.as_ref().err().copied());
            return Err((at, error.unwrap_or(ReferenceError::Empty)));
        }
        Ok(workers.map(count, |at| {
            let answer = answers.get(at);
            let is_right = |reference: &Reference, answer| verify(answer, reference).outcome.is_right();
            answer.is_some_and(|answer| {
                golds.get(at).any(|gold| {
                    read(gold).and_then(|read| read.as_ref().ok()).is_some_and(|gold| is_right(gold, answer))
                })
            })
        }))
    };
    let equal = on_threads(py, cores(), count <= QUICK_ITEMS, compare)?;
    let equal = equal.map_err(|(at, error)| unusable(&format!("golds[{at}]"), error))?;
    Ok(PyArray1::from_vec(py, equal))
}

/// Compares one answer with its reference, and says why they are equal or not. Nothing where no reference can be read and that is allowed.
#[pyfunction]
pub(crate) fn math_explain(
    py: Python<'_>,
    gold: &Bound<'_, PyAny>,
    answer: &Bound<'_, PyAny>,
    given: &Bound<'_, PyDict>,
    unreadable_is_false: bool,
) -> PyResult<Option<(Why, Read, Answer)>> {
    let options = options(given)?;
    let golds = accepted(&|| "gold".to_owned(), gold)?;
    let answer = response("answer", answer)?;
    let explained = py.detach(|| {
        let mut first = Err(ReferenceError::Empty);
        for gold in &golds {
            match Reference::parse(gold, &options) {
                Ok(reference) => {
                    let verdict = answer.as_deref().map(|answer| verify(answer, &reference));
                    let right = verdict.as_ref().is_some_and(|verdict| verdict.outcome.is_right());
                    if right || first.is_err() {
                        first = Ok((reference.text().to_owned(), reference.kind(), verdict));
                    }
                    if right {
                        break;
                    }
                }
                Err(error) => first = first.or(Err(error)),
            }
        }
        first
    });
    let (text, kind, verdict) = match explained {
        Ok(explained) => explained,
        Err(_) if unreadable_is_false => return Ok(None),
        Err(error) => return Err(unusable("gold", error)),
    };
    let read = (text, Some(kind));
    let Some(verdict) = verdict else {
        let why = (Code::NotUnicode.as_str(), Some("is not valid Unicode"));
        return Ok(Some((why, read, (None, None, None, None, None, None))));
    };
    let why = match verdict.outcome {
        Outcome::Right => ("equal", None),
        Outcome::Wrong => ("different", None),
        Outcome::NotParsed => ("not_parsed", None),
        Outcome::Unusable(bound) => (bound.code(), Some(bound.cause())),
        _ => ("no_answer", None),
    };
    let Verdict { answer: said, normal, kind, rule, span, how, .. } = verdict;
    let place = span.map(|span| in_characters(answer.as_deref().unwrap_or(""), span));
    let answer = (
        said,
        normal,
        kind,
        rule.map(plaudit_math::Rule::name),
        place,
        how.map(plaudit_math::ProofMethod::name),
    );
    Ok(Some((why, read, answer)))
}

/// The answer of a response, what it is read as, the rule by which it was found and its place; or why there is none.
#[pyfunction]
pub(crate) fn math_extract(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    given: &Bound<'_, PyDict>,
) -> PyResult<(Option<&'static str>, Option<Extracted>)> {
    let options = options(given)?;
    let Some(text) = response("text", text)? else { return Ok((Some(Code::NotUnicode.as_str()), None)) };
    Ok(py.detach(|| match extract(&text, &options) {
        Ok(Some(found)) => {
            let kind = kind_of(&found.text);
            let why = kind.err().map(plaudit_math::NoValue::code);
            let place = in_characters(&text, found.span);
            (why, Some((found.text.trim().to_owned(), kind.ok(), found.rule.name(), place)))
        }
        Ok(None) => (Some("no_answer"), None),
        Err(bound) => (Some(bound.code()), None),
    }))
}

/// A place in bytes as one in characters, as Python counts them.
fn in_characters(text: &str, span: Range<usize>) -> Place {
    let count = |part: Range<usize>| text.get(part).map_or(0, |part| part.chars().count());
    let start = count(0..span.start);
    (start, start + count(span))
}
