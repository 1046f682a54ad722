//! `plaudit.instructions`: responses held against constraints, and constraints of one's own.

use crate::error::{self, ReadError};
use crate::parallel::{Workers, cores, on_threads};
use crate::text::{NumbersAsText, TextColumn, Unreadable, text, type_name};
use crate::value::{from_value, parameters, to_value};
use plaudit::rule::instructions::checked_text;
use plaudit_instructions::{
    Check, Constraint, Mode, OwnConstraint, OwnTest, Response, Semantics, Texts, constraints, find, parse,
    registered, row,
};
use plaudit_math::Think;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// So many bytes, once for each constraint, are checked on the caller's thread.
const QUICK_BYTES: usize = 64 << 10;

/// A constraint's id, whether it is followed, what it checks, and why there is no verdict.
type Explained = (&'static str, Option<bool>, &'static str, Option<String>);
/// A parameter's name, what it must be, and whether it must be given.
type Argument = (&'static str, &'static str, bool);
/// A constraint's id, family, what it checks, how it can be gamed, where the semantics differ, and its parameters.
type Line = (&'static str, &'static str, &'static str, &'static str, &'static str, Vec<Argument>);

/// How responses are checked.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CheckOptions {
    semantics: Semantics,
    mode: Mode,
    think: Think,
}

impl CheckOptions {
    fn read(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        serde_json::from_value(Value::Object(parameters(given)?)).map_err(error::argument)
    }
}

/// What a response follows of its constraints: true, false, or why one of one's own failed. Nothing where the thought never ends.
fn verdicts(response: &str, checks: &[Check], options: CheckOptions) -> Option<Vec<Result<bool, String>>> {
    let text = match options.think {
        Think::Cut => checked_text(response, options.semantics, false)?,
        Think::Keep => Cow::Borrowed(response),
    };
    let texts = Texts::new(&text);
    let response = Response::new(&texts);
    let verdict = |check| response.verdict(check, options.mode).map_err(|error| error.to_string());
    Some(checks.iter().map(verdict).collect())
}

/// The constraints of one response: `(id, arguments)` pairs, ids alone, or a row of a data set.
fn read_checks(
    place: &str,
    given: &Bound<'_, PyAny>,
    prompt: Option<&str>,
    semantics: Semantics,
) -> PyResult<Vec<Check>> {
    let wrong = |message: String| error::argument(format!("{place}: {message}"));
    if let Ok(fields) = given.cast::<PyDict>() {
        let fields = parameters(fields)?;
        return Ok(row::read(&fields, semantics).map_err(|error| wrong(error.to_string()))?.checks);
    }
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return Err(wrong(
            "a list of (id, arguments) is wanted, or a row with instruction_id_list".to_owned(),
        ));
    }
    let mut checks = Vec::with_capacity(given.len()?);
    for (at, item) in given.try_iter()?.enumerate() {
        let item = item?;
        let place = || format!("{place}[{at}]");
        let wrong = |message: String| error::argument(format!("{}: {message}", place()));
        let (id, arguments) = match item.cast::<PyString>() {
            Ok(id) => (id.to_string(), Value::Null),
            Err(_) => {
                let pair = || -> PyResult<(String, Bound<'_, PyAny>)> {
                    match item.len()? {
                        2 => Ok((item.get_item(0)?.extract()?, item.get_item(1)?)),
                        _ => Err(wrong(String::new())),
                    }
                };
                let (id, arguments) = pair().map_err(|_| wrong("(id, arguments) is wanted".to_owned()))?;
                (id, to_value(&arguments, &place)?)
            }
        };
        let arguments = with_prompt(&id, arguments, prompt);
        checks.push(parse(&id, &arguments, semantics).map_err(|error| wrong(error.to_string()))?);
    }
    if checks.is_empty() {
        return Err(wrong("nothing is asked of the response: the list is empty".to_owned()));
    }
    Ok(checks)
}

/// The constraints of each response. Responses of a group share the object that holds theirs, which is read once.
fn read_rows(
    given: &Bound<'_, PyAny>,
    prompts: &TextColumn,
    semantics: Semantics,
) -> PyResult<Vec<Arc<Vec<Check>>>> {
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyDict>() {
        return Err(error::argument("constraints: a list is wanted, with the constraints of each response"));
    }
    // The objects are held, so that no other one is made at their address.
    let (mut rows, mut known, mut held) = (Vec::new(), HashMap::new(), Vec::new());
    for (at, item) in given.try_iter().map_err(error::argument)?.enumerate() {
        let item = item?;
        let prompt = prompts.get(at);
        let key = (item.as_ptr() as usize, prompt);
        let checks = match known.get(&key) {
            Some(checks) => Arc::clone(checks),
            None => Arc::new(read_checks(&format!("constraints[{at}]"), &item, prompt, semantics)?),
        };
        known.insert(key, Arc::clone(&checks));
        rows.push(checks);
        held.push(item);
    }
    Ok(rows)
}

/// The arguments with the prompt that is to be repeated, where a constraint asks for one and none is given.
fn with_prompt(id: &str, mut arguments: Value, prompt: Option<&str>) -> Value {
    const NAME: &str = "prompt_to_repeat";
    let (Some(prompt), Some(constraint)) = (prompt, find(id)) else { return arguments };
    if !constraint.parameters.iter().any(|parameter| parameter.name == NAME) {
        return arguments;
    }
    if arguments.is_null() {
        arguments = Value::Object(Map::new());
    }
    if let Value::Object(given) = &mut arguments
        && given.get(NAME).is_none_or(Value::is_null)
    {
        given.insert(NAME.to_owned(), prompt.into());
    }
    arguments
}

/// Which constraints each response follows: None for one of one's own that failed.
#[pyfunction]
pub(crate) fn instructions_check_many(
    py: Python<'_>,
    responses: &Bound<'_, PyAny>,
    given: &Bound<'_, PyAny>,
    prompts: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Vec<Vec<Option<bool>>>> {
    let options = CheckOptions::read(options)?;
    // A response that is not valid Unicode follows nothing.
    let mut unreadable = Unreadable::new();
    let responses = TextColumn::read("responses", responses, NumbersAsText::Whole, &mut unreadable)?;
    let count = responses.len().ok_or_else(|| error::argument("responses: a list is wanted, not None"))?;
    let prompts = TextColumn::read("prompts", prompts, NumbersAsText::Whole, &mut Unreadable::new())?;
    let rows = read_rows(given, &prompts, options.semantics)?;
    for (name, length) in [("constraints", Some(rows.len())), ("prompts", prompts.len())] {
        if let Some(length) = length.filter(|length| *length != count) {
            return Err(error::argument(format!("{name} has {length} items, but responses has {count}")));
        }
    }
    if let Some(at) = (0..count).find(|at| responses.get(*at).is_none() && !unreadable.contains_key(at)) {
        return Err(error::argument(format!("responses[{at}]: text is wanted, not None")));
    }
    let work = |at: usize| responses.get(at).map_or(0, str::len).saturating_mul(rows[at].len());
    let quick = (0..count).map(work).fold(0, usize::saturating_add) <= QUICK_BYTES;
    on_threads(py, cores(), quick, move |workers: &Workers| {
        workers.map(count, |at| {
            let checks = &rows[at];
            let verdicts = responses.get(at).and_then(|response| verdicts(response, checks, options));
            let nothing = || vec![Some(false); checks.len()];
            verdicts.map_or_else(nothing, |verdicts| verdicts.into_iter().map(Result::ok).collect())
        })
    })
}

/// The verdict on each constraint: its id, whether it is followed, what it checks, and why one of one's own failed; and whether there
/// is anything to check.
#[pyfunction]
pub(crate) fn instructions_explain(
    py: Python<'_>,
    response: &Bound<'_, PyAny>,
    given: &Bound<'_, PyAny>,
    prompt: Option<&str>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(bool, Vec<Explained>)> {
    let options = CheckOptions::read(options)?;
    let checks = read_checks("constraints", given, prompt, options.semantics)?;
    let text = match text(&|| "response".to_owned(), response, NumbersAsText::Whole) {
        Ok(Some(text)) => Some(text),
        Ok(None) => return Err(error::argument("response: text is wanted, not None")),
        Err(ReadError::Rollout(_)) => None,
        Err(ReadError::Argument(error)) => return Err(error),
    };
    let found = py.detach(|| verdicts(text.as_deref()?, &checks, options));
    py.check_signals()?;
    let readable = found.is_some();
    let found = found.unwrap_or_else(|| vec![Ok(false); checks.len()]);
    let one = |(check, verdict): (&Check, Result<bool, String>)| {
        let Constraint { id, checks, .. } = *check.constraint();
        (id, verdict.as_ref().ok().copied(), checks, verdict.err())
    };
    Ok((readable, checks.iter().zip(found).map(one).collect()))
}

/// Every constraint that this process knows: id, family, what it checks, how it can be gamed, where the semantics differ, and the
/// parameters with what each must be and whether it must be given.
#[pyfunction]
pub(crate) fn instructions_constraints() -> Vec<Line> {
    let line = |one: &'static Constraint| {
        let parameters = one.parameters.iter().map(|each| (each.name, each.kind.name(), !each.optional));
        (one.id, one.family.name(), one.checks, one.gamed, one.difference, parameters.collect())
    };
    constraints().chain(registered()).map(line).collect()
}

/// A constraint that is a Python function.
struct PythonConstraint {
    checks: String,
    required: Vec<String>,
    optional: Vec<String>,
    function: Py<PyAny>,
}

impl OwnConstraint for PythonConstraint {
    fn checks(&self) -> &str {
        &self.checks
    }

    fn parameters(&self) -> Vec<&str> {
        self.required.iter().map(String::as_str).collect()
    }

    fn optional_parameters(&self) -> Vec<&str> {
        self.optional.iter().map(String::as_str).collect()
    }

    fn build(&self, arguments: &Map<String, Value>) -> Result<OwnTest, String> {
        let bound = Python::try_attach(|py| -> PyResult<(Py<PyAny>, Py<PyDict>)> {
            let arguments = from_value(py, &Value::Object(arguments.clone()))?.cast_into::<PyDict>()?;
            Ok((self.function.clone_ref(py), arguments.unbind()))
        });
        let (function, arguments) = bound.ok_or_else(ending)?.map_err(|error| error.to_string())?;
        Ok(Box::new(move |text| {
            Python::try_attach(|py| call(py, &function, text, &arguments)).unwrap_or_else(|| Err(ending()))
        }))
    }
}

fn ending() -> String {
    "the interpreter is ending".to_owned()
}

fn call(py: Python<'_>, function: &Py<PyAny>, text: &str, arguments: &Py<PyDict>) -> Result<bool, String> {
    // The function may change what it is given.
    let arguments = arguments.bind(py).copy();
    let said = arguments.and_then(|arguments| function.bind(py).call((text,), Some(&arguments)));
    let said = said.map_err(|error| {
        // Ctrl-C is not the function's: it ends the call.
        if error.is_instance_of::<PyKeyboardInterrupt>(py)
            && let Ok(thread) = py.import("_thread")
        {
            drop(thread.call_method0("interrupt_main"));
        }
        error.to_string()
    })?;
    said.extract::<bool>().map_err(|_| format!("gave back {}, not True or False", type_name(&said)))
}

/// Registers a function as a constraint of this process.
#[pyfunction]
pub(crate) fn instructions_register(
    id: &str,
    checks: String,
    required: Vec<String>,
    optional: Vec<String>,
    function: Py<PyAny>,
) -> PyResult<()> {
    let own = PythonConstraint { checks, required, optional, function };
    plaudit_instructions::register(id, own).map_err(error::argument)
}
