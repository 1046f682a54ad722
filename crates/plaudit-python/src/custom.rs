//! Custom rewards: registered Python functions, called with lists. An exception becomes an invalid outcome.

use crate::error;
use crate::judges::Judges;
use crate::value::{from_value, to_value};
use plaudit::outcome::{Fact, Info, Outcome};
use plaudit::reason::{Code, Reason};
use plaudit::registry;
use plaudit::rule::RuleInput;
use plaudit::rule::custom::{Custom, CustomCall, CustomKind};
use plaudit::rule::reference_view::ReferenceView;
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString};
use serde_json::Value;
use std::sync::Arc;

/// A registered function with the parameters of one component.
struct PythonReward {
    /// Takes lists of prompts, responses, references and extras, one a group, the parameters, the timeout in seconds, and the
    /// judges or None; returns one list a group, or an error message for the group.
    call: Arc<Py<PyAny>>,
    parameters: Value,
    compares: bool,
}

impl Custom for PythonReward {
    fn compares(&self) -> bool {
        self.compares
    }

    fn score(&self, groups: &[Vec<RuleInput<'_>>], call: &CustomCall) -> Vec<Vec<Outcome>> {
        let gone = || failed(groups, "The interpreter is going away.");
        Python::try_attach(|py| match self.outcomes(py, groups, call) {
            Ok(outcomes) => outcomes,
            Err(error) => failed(groups, &error.to_string()),
        })
        .unwrap_or_else(gone)
    }
}

impl PythonReward {
    fn outcomes(
        &self,
        py: Python<'_>,
        groups: &[Vec<RuleInput<'_>>],
        call: &CustomCall,
    ) -> PyResult<Vec<Vec<Outcome>>> {
        let columns = PyList::empty(py);
        for group in groups {
            let lists = [PyList::empty(py), PyList::empty(py), PyList::empty(py), PyList::empty(py)];
            for sample in group {
                match sample.prompt {
                    Some(prompt) => lists[0].append(from_value(py, &prompt.to_value())?)?,
                    None => lists[0].append(py.None())?,
                }
                lists[1].append(PyString::new(py, sample.text.as_str()))?;
                match sample.reference.map(ReferenceView::to_value) {
                    Some(reference) => lists[2].append(from_value(py, &reference)?)?,
                    None => lists[2].append(py.None())?,
                }
                lists[3].append(from_value(py, &Value::Object(sample.extra.clone()))?)?;
            }
            columns.append(PyList::new(py, lists)?)?;
        }
        let parameters = from_value(py, &self.parameters)?;
        let judges = call.judges.clone().map(|asks| Judges { asks });
        let answers = self.call.call1(py, (columns, parameters, call.timeout.as_secs_f64(), judges))?;
        let answers = answers.bind(py).cast::<PyList>()?;
        let mut outcomes = Vec::with_capacity(groups.len());
        for (group, answer) in groups.iter().zip(answers.iter()) {
            outcomes.push(match error_of(&answer) {
                Some(reason) => vec![Outcome::invalid(reason); group.len()],
                None => answer.try_iter()?.map(|item| Ok(outcome(&item?))).collect::<PyResult<_>>()?,
            });
        }
        Ok(outcomes)
    }
}

/// The outcome of one item: a number is a score, None says that the reward does not apply, a tuple has an outcome by its name,
/// and anything else is an error.
fn outcome(item: &Bound<'_, PyAny>) -> Outcome {
    if item.is_none() {
        return Outcome::skipped(Code::RewardAbstained);
    }
    if let Some(reason) = error_of(item) {
        return Outcome::invalid(reason);
    }
    if let Ok(number) = item.cast::<PyFloat>() {
        return Outcome::scored(number.value(), Info::none());
    }
    named(item).unwrap_or_else(|error| Outcome::invalid(failure(error.to_string())))
}

/// An outcome by its name: `scored` with a value and facts, or another one with a code and a message, either of them or none.
fn named(item: &Bound<'_, PyAny>) -> PyResult<Outcome> {
    let (name, first, second) = item.extract::<(String, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
    if name == "scored" {
        let mut info = Info::none();
        for (name, fact) in second.cast::<PyDict>()?.iter() {
            info.push(name.extract::<String>()?, fact_of(&fact)?);
        }
        return Ok(Outcome::scored(first.extract()?, info));
    }
    let code = first.extract::<Option<String>>()?;
    let code = code.and_then(|code| Code::ALL.iter().copied().find(|known| known.as_str() == code));
    let message = second.extract::<Option<String>>()?;
    let reason = |usual: Code| match (code.unwrap_or(usual), message) {
        (code, Some(message)) => Reason::new(code, message),
        (code, None) => code.into(),
    };
    Ok(match name.as_str() {
        "floored" => Outcome::floored(0.0, reason(Code::RewardFloored)),
        "skipped" => Outcome::skipped(reason(Code::RewardAbstained)),
        _ => Outcome::invalid(reason(Code::RewardFailed)),
    })
}

/// One fact of the evidence, which the package has made plain and short.
fn fact_of(item: &Bound<'_, PyAny>) -> PyResult<Fact> {
    Ok(match to_value(item, &|| "info".to_owned())? {
        Value::Bool(flag) => Fact::Bool(flag),
        Value::String(text) => Fact::Text(text),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Fact::Count(count),
            (None, Some(value)) if number.is_f64() => Fact::Number(value),
            _ => Fact::Json(Value::Number(number)),
        },
        value => Fact::Json(value),
    })
}

/// The reason where the item is an error: a message, or a `TimeoutError`.
fn error_of(item: &Bound<'_, PyAny>) -> Option<Reason> {
    if let Ok(message) = item.cast::<PyString>() {
        return Some(failure(message.to_string()));
    }
    item.is_instance_of::<PyTimeoutError>().then(|| Reason::new(Code::GroupDeadline, item.to_string()))
}

fn failure(message: String) -> Reason {
    Reason::new(Code::RewardFailed, message)
}

fn failed(groups: &[Vec<RuleInput<'_>>], message: &str) -> Vec<Vec<Outcome>> {
    groups.iter().map(|group| vec![Outcome::invalid(failure(message.to_owned())); group.len()]).collect()
}

/// A registered function: its name, its page, the schema of its parameters, whether it compares a group, and the callable.
pub(crate) type Function<'py> = (String, String, Bound<'py, PyDict>, bool, Py<PyAny>);

/// Registered functions as the kinds of reward that a recipe may name.
pub(crate) fn kinds(functions: Vec<Function<'_>>) -> PyResult<Vec<CustomKind>> {
    functions.into_iter().map(kind).collect()
}

fn kind((name, page, schema, compares, call): Function<'_>) -> PyResult<CustomKind> {
    let schema = Value::Object(crate::value::parameters(&schema)?);
    let call = Arc::new(call);
    let build = move |parameters| -> Result<Box<dyn Custom>, Vec<plaudit::error::ParamError>> {
        Ok(Box::new(PythonReward { call: Arc::clone(&call), parameters, compares }))
    };
    Ok(CustomKind { name, page, schema, build: Box::new(build) })
}

/// Registers a function as a reward of this process.
#[pyfunction]
pub(crate) fn register(
    name: String,
    page: String,
    schema: Bound<'_, PyDict>,
    compares: bool,
    call: Py<PyAny>,
) -> PyResult<()> {
    let kind = kind((name, page, schema, compares, call))?;
    let reserved = plaudit::recipe::file::reserved();
    let own = kind.schema["properties"].as_object();
    if let Some(taken) = own.and_then(|own| own.keys().find(|key| reserved.contains(key))) {
        return Err(error::argument(format_args!(
            "the parameter {taken:?} would never be passed, because every component has a key of that name: name it otherwise"
        )));
    }
    registry::register(kind).map_err(|refusal| error::argument(refusal.message))
}
