//! How does a Python function become a reward? It is called with lists, and what it raises is an outcome.

use crate::error;
use crate::value::from_value;
use plaudit::outcome::{Info, Outcome};
use plaudit::reason::{Code, Reason};
use plaudit::registry;
use plaudit::reward::{Range, Stated};
use plaudit::rule::Sample;
use plaudit::rule::custom::{Custom, CustomKind, Unbounded};
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A function of the caller's with the parameters of one component.
struct PythonReward {
    /// Takes lists of prompts, responses, references and extras, one a group, the parameters, and the seconds that a call may
    /// take; gives one list a group, or what went wrong with it.
    ask: Arc<Py<PyAny>>,
    parameters: Value,
    compares: bool,
}

impl Stated for PythonReward {
    fn range(&self) -> Range {
        Unbounded.range()
    }

    fn floor(&self) -> f64 {
        Unbounded.floor()
    }

    fn any_length(&self) -> bool {
        Unbounded.any_length()
    }
}

impl Custom for PythonReward {
    fn compares(&self) -> bool {
        self.compares
    }

    fn score(&self, groups: &[Vec<Sample<'_>>], timeout: Duration) -> Vec<Vec<Outcome>> {
        let gone = || failed(groups, "The interpreter is going away.");
        Python::try_attach(|py| match self.call(py, groups, timeout) {
            Ok(outcomes) => outcomes,
            Err(error) => failed(groups, &error.to_string()),
        })
        .unwrap_or_else(gone)
    }
}

impl PythonReward {
    fn call(
        &self,
        py: Python<'_>,
        groups: &[Vec<Sample<'_>>],
        timeout: Duration,
    ) -> PyResult<Vec<Vec<Outcome>>> {
        let asked = PyList::empty(py);
        for group in groups {
            let lists = [PyList::empty(py), PyList::empty(py), PyList::empty(py), PyList::empty(py)];
            for sample in group {
                match sample.prompt {
                    Some(prompt) => lists[0].append(from_value(py, &prompt.to_value())?)?,
                    None => lists[0].append(py.None())?,
                }
                lists[1].append(PyString::new(py, sample.text.as_str()))?;
                lists[2].append(sample.reference.map(|reference| PyString::new(py, reference.as_str())))?;
                lists[3].append(from_value(py, &Value::Object(sample.extra.clone()))?)?;
            }
            asked.append(PyList::new(py, lists)?)?;
        }
        let parameters = from_value(py, &self.parameters)?;
        let answers = self.ask.call1(py, (asked, parameters, timeout.as_secs_f64()))?;
        let answers = answers.bind(py).cast::<PyList>()?;
        let mut outcomes = Vec::with_capacity(groups.len());
        for (group, answer) in groups.iter().zip(answers.iter()) {
            outcomes.push(match broken(&answer) {
                Some(reason) => vec![Outcome::invalid(reason); group.len()],
                None => answer.try_iter()?.map(|item| Ok(outcome(&item?))).collect::<PyResult<_>>()?,
            });
        }
        Ok(outcomes)
    }
}

/// What one item of an answer means: a number is a score, nothing says that the reward does not apply, and anything else says
/// what went wrong.
fn outcome(item: &Bound<'_, PyAny>) -> Outcome {
    if item.is_none() {
        return Outcome::skipped(Code::RewardAbstained);
    }
    if let Some(reason) = broken(item) {
        return Outcome::invalid(reason);
    }
    match item.cast::<PyFloat>() {
        Ok(number) => Outcome::scored(number.value(), Info::none()),
        Err(_) => Outcome::invalid(wrong("The reward gave back something that is no number.".to_owned())),
    }
}

/// What went wrong, where something did: a text says it, and a `TimeoutError` that the time was up.
fn broken(item: &Bound<'_, PyAny>) -> Option<Reason> {
    if let Ok(message) = item.cast::<PyString>() {
        return Some(wrong(message.to_string()));
    }
    item.is_instance_of::<PyTimeoutError>().then(|| Reason::new(Code::GroupDeadline, item.to_string()))
}

fn wrong(message: String) -> Reason {
    Reason::new(Code::RewardFailed, message)
}

fn failed(groups: &[Vec<Sample<'_>>], message: &str) -> Vec<Vec<Outcome>> {
    groups.iter().map(|group| vec![Outcome::invalid(wrong(message.to_owned())); group.len()]).collect()
}

/// A function as the package hands it over: its name, its page, the schema of its parameters, whether it compares a group, and
/// what is called.
pub(crate) type Function<'py> = (String, String, Bound<'py, PyDict>, bool, Py<PyAny>);

/// The rewards that functions are, for one recipe.
pub(crate) fn kinds(functions: Vec<Function<'_>>) -> PyResult<Vec<CustomKind>> {
    functions.into_iter().map(kind).collect()
}

fn kind((name, page, schema, compares, ask): Function<'_>) -> PyResult<CustomKind> {
    let schema = Value::Object(crate::engine::parameters(&schema)?);
    let ask = Arc::new(ask);
    let build = move |parameters| -> Result<Box<dyn Custom>, Vec<plaudit::error::ParamError>> {
        Ok(Box::new(PythonReward { ask: Arc::clone(&ask), parameters, compares }))
    };
    Ok(CustomKind { name, page, schema, build: Box::new(build) })
}

/// Puts a function into the registry of this process.
#[pyfunction]
pub(crate) fn register(
    name: String,
    page: String,
    schema: Bound<'_, PyDict>,
    compares: bool,
    ask: Py<PyAny>,
) -> PyResult<()> {
    let kind = kind((name, page, schema, compares, ask))?;
    let reserved = plaudit::recipe::file::reserved();
    let own = kind.schema["properties"].as_object();
    if let Some(taken) = own.and_then(|own| own.keys().find(|key| reserved.contains(key))) {
        return Err(error::value(format_args!(
            "the parameter {taken:?} would never be passed, because every component has a key of that name: name it otherwise"
        )));
    }
    registry::register(kind).map_err(|refusal| error::value(refusal.message))
}
