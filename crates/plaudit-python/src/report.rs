//! A report for Python, as columns: numpy arrays for numbers, lists for words.

use crate::batch::Batch;
use crate::error;
use crate::value::from_value;
use numpy::PyArray1;
use plaudit::exec::Pool;
use plaudit::outcome::{Fact, Outcome};
use plaudit::plan::Scorer;
use plaudit::reason::Code;
use plaudit::report::{Report, Row};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::sync::Arc;
use std::time::Duration;

/// The evidence of every comparison. Its columns exist also where nothing could be compared.
const COMPARED: [&str; 4] = ["comparisons", "wins", "losses", "ties"];
/// The evidence of every comparison with the reference.
const AGAINST_REFERENCE: [&str; 4] = ["comparison_score", "reference_score", "win", "win_and"];

/// The fields of a result, the size of its group, the mean of its siblings, and the totals of the group.
type ResultInGroup<'py> = (ResultFields<'py>, usize, Option<f64>, Vec<Option<f64>>);

/// A report, with the batch that it is about.
#[pyclass(frozen, name = "Report", module = "plaudit._plaudit")]
pub(crate) struct PyReport {
    pub(crate) report: Arc<Report>,
    pub(crate) batch: Arc<Batch>,
    pub(crate) seconds: Duration,
    /// Whether references took part in comparisons.
    pub(crate) validated: bool,
    pub(crate) freeing: Freeing,
}

/// Frees the rows of a large report on the engine's threads, so that Python does not wait for it.
pub(crate) struct Freeing {
    pub(crate) pool: Arc<Pool>,
    /// The process that the threads are of; a fork of it has none.
    pub(crate) process: u32,
}

/// From how many rows on that is worth it.
const MANY_ROWS: usize = 512;

impl Drop for PyReport {
    fn drop(&mut self) {
        if let Some(report) = Arc::get_mut(&mut self.report)
            && report.rows.len() >= MANY_ROWS
            && self.freeing.process == std::process::id()
        {
            let rows = std::mem::take(&mut report.rows);
            self.freeing.pool.spawn(move || drop(rows));
        }
    }
}

#[pymethods]
impl PyReport {
    fn __len__(&self) -> usize {
        self.report.rows.len()
    }

    /// How long the engine worked on it.
    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds.as_secs_f64()
    }

    /// The totals, not a number where there is none.
    fn totals<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.report.totals())
    }

    /// The totals in the 32 bits of trainers, with the recipe's `invalid_value` where there is none.
    fn totals_or_invalid_value<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_iter(py, self.report.totals_or_invalid_value().into_iter().map(narrow))
    }

    /// The totals, with the mean of the group where there is none; not a number where no member of the group has one.
    fn totals_or_group_mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let totals: Vec<Option<f64>> = self.known_totals().collect();
        let groups = self.batch.groups(&self.report);
        let filled =
            plaudit::report::fill_with_group_means(&totals, groups.iter().map(|group| &*group.members));
        PyArray1::from_iter(py, filled.into_iter().map(|total| total.unwrap_or(f64::NAN)))
    }

    /// The outcome of each rollout.
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let words = self.report.rows.iter().map(|row| PyString::intern(py, row.total.kind().as_str()));
        PyList::new(py, words.collect::<Vec<_>>())
    }

    /// Whether each answer is right; nothing where no component says so.
    fn correct(&self) -> Vec<Option<bool>> {
        self.report.rows.iter().map(|row| row.correct).collect()
    }

    /// The total of each rollout spread over its turns; nothing where the recipe does not ask for it.
    fn turn_rewards(&self) -> Vec<Option<Vec<Option<f64>>>> {
        self.report.rows.iter().map(|row| row.turn_rewards().map(<[_]>::to_vec)).collect()
    }

    /// The names of the components, in the order of the recipe.
    fn columns(&self) -> Vec<&str> {
        self.report.plan.columns()
    }

    /// The values of one component, not a number where there is none.
    fn component<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let places = self.places(name)?;
        let values = (self.report.rows.iter())
            .map(|row| outcome(row, &places).and_then(Outcome::value).map_or(f32::NAN, narrow));
        Ok(PyArray1::from_iter(py, values))
    }

    /// The outcomes of one component.
    fn component_outcomes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let places = self.places(name)?;
        let word = |row: &Row| outcome(row, &places).map_or("skipped", |outcome| outcome.kind().as_str());
        let words = self.report.rows.iter().map(|row| PyString::intern(py, word(row)));
        PyList::new(py, words.collect::<Vec<_>>())
    }

    /// The evidence by component and name: one list a fact, with nothing where a rollout has none.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (all, rows) = (PyDict::new(py), &self.report.rows);
        let nothing = || PyList::new(py, (0..rows.len()).map(|_| py.None()));
        for component in self.report.plan.branches.iter().flat_map(|branch| &branch.components) {
            if matches!(&component.scorer, Scorer::Judged(question) if question.compares()) {
                let against = AGAINST_REFERENCE.iter().filter(|_| self.validated);
                for name in COMPARED.iter().chain(against) {
                    all.set_item((component.name.as_str(), *name), nothing()?)?;
                }
            }
        }
        for (at, row) in rows.iter().enumerate() {
            let Some(branch) = row.branch.map(|branch| &self.report.plan.branches[branch]) else { continue };
            for (component, outcome) in branch.components.iter().zip(&row.outcomes) {
                let Some(info) = outcome.as_ref().and_then(Outcome::info) else { continue };
                for (name, fact) in info.iter() {
                    let key = (component.name.as_str(), name);
                    let list = match all.get_item(key)? {
                        Some(list) => list.cast_into::<PyList>()?,
                        None => {
                            let list = nothing()?;
                            all.set_item(key, &list)?;
                            list
                        }
                    };
                    list.set_item(at, from_fact(py, fact)?)?;
                }
            }
        }
        Ok(all)
    }

    /// Why a rollout has no plain number, where that is so.
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        self.report.rows.iter().map(|row| reason(py, &self.report, row)).collect()
    }

    /// The fields of one rollout's result; `members` are the places of its group, its own among them.
    fn result<'py>(&self, py: Python<'py>, at: usize, members: Vec<usize>) -> PyResult<ResultInGroup<'py>> {
        let row = self.found(at)?;
        let total = |at: usize| self.report.rows.get(at).and_then(|row| row.total.value());
        let siblings: Vec<Option<f64>> =
            members.iter().filter(|member| **member != at).map(|member| total(*member)).collect();
        let mean = plaudit::report::mean_of_known(siblings.iter().copied());
        let totals = std::iter::once(total(at)).chain(siblings).collect();
        Ok((fields(py, &self.report, row)?, members.len(), mean, totals))
    }

    /// The places of the rollouts that were scored together.
    fn groups(&self) -> Vec<Vec<usize>> {
        self.report.groups.iter().map(|group| group.members.clone()).collect()
    }

    /// The names of the rollouts and of their groups.
    fn names(&self) -> Vec<(String, Option<String>)> {
        let group = |at: usize| {
            let rollout = self.batch.rollout(at);
            plaudit::group::Key::of(&rollout).map(|key| key.label().into_owned())
        };
        (0..self.batch.len()).map(|at| (self.batch.id(at).into_owned(), group(at))).collect()
    }

    /// Which fields the references were read from; None where all stood under their own name.
    fn reference_remark(&self) -> Option<String> {
        self.report.statistics.reference_remark()
    }

    /// The statistics as JSON.
    fn statistics(&self) -> PyResult<String> {
        serde_json::to_string(&self.report.statistics).map_err(error::argument)
    }

    /// One result as a line of JSON.
    fn row(&self, at: usize) -> PyResult<String> {
        self.found(at)?;
        let (id, rollout) = (self.batch.id(at), self.batch.rollout(at));
        serde_json::to_string(&self.report.result(at, &id, &rollout)).map_err(error::argument)
    }
}

impl PyReport {
    fn found(&self, at: usize) -> PyResult<&Row> {
        self.report.rows.get(at).ok_or_else(|| PyIndexError::new_err("there is no such rollout"))
    }

    fn known_totals(&self) -> impl Iterator<Item = Option<f64>> {
        self.report.rows.iter().map(|row| row.total.value())
    }

    /// Where a component stands in each branch of the plan.
    fn places(&self, name: &str) -> PyResult<Vec<Option<usize>>> {
        let branches = &self.report.plan.branches;
        let place = |branch: &plaudit::plan::Branch| {
            branch.components.iter().position(|component| component.name == name)
        };
        let places: Vec<Option<usize>> = branches.iter().map(place).collect();
        if places.iter().all(Option::is_none) {
            return Err(PyKeyError::new_err(name.to_owned()));
        }
        Ok(places)
    }
}

/// The values, with the mean of the group where one is missing.
#[pyfunction]
pub(crate) fn fill_with_group_means(values: Vec<Option<f64>>, groups: Vec<Vec<usize>>) -> Vec<Option<f64>> {
    plaudit::report::fill_with_group_means(&values, groups.iter().map(Vec::as_slice))
}

/// A number in the 32 bits that trainers compute with. One beyond their range becomes the largest, so that it stays finite.
#[allow(clippy::cast_possible_truncation, reason = "the bounds are those of the narrower type")]
fn narrow(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// The fields of a result that every front has: total, outcome, reason, components, evidence, whether it is right, and the
/// rewards of its turns.
pub(crate) type ResultFields<'py> = (
    Option<f64>,
    &'static str,
    Option<Bound<'py, PyDict>>,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
    Option<bool>,
    Option<Vec<Option<f64>>>,
);

pub(crate) fn fields<'py>(py: Python<'py>, report: &Report, row: &Row) -> PyResult<ResultFields<'py>> {
    let (components, info) = (PyDict::new(py), PyDict::new(py));
    let branch = row.branch.map(|branch| &report.plan.branches[branch]);
    for name in report.plan.columns() {
        components.set_item(name, py.None())?;
    }
    for (component, outcome) in branch.iter().flat_map(|branch| &branch.components).zip(&row.outcomes) {
        let outcome = outcome.as_ref();
        components.set_item(&component.name, outcome.and_then(Outcome::value))?;
        for (name, fact) in outcome.and_then(Outcome::info).into_iter().flat_map(|info| info.iter()) {
            info.set_item((component.name.as_str(), name), from_fact(py, fact)?)?;
        }
    }
    let (total, outcome) = (row.total.value(), row.total.kind().as_str());
    let turn_rewards = row.turn_rewards().map(<[_]>::to_vec);
    Ok((total, outcome, reason(py, report, row)?, components, info, row.correct, turn_rewards))
}

/// Why a row has no plain number: code, component and message.
fn reason<'py>(py: Python<'py>, report: &Report, row: &Row) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(cause) = row.total.cause() else { return Ok(None) };
    let name = |(at, branch): (usize, usize)| report.plan.branches[branch].components[at].name.as_str();
    let component = cause.component.zip(row.branch).map(name);
    reason_dict(py, cause.reason.code, component, &cause.reason.message).map(Some)
}

/// A reason as results have it.
pub(crate) fn reason_dict<'py>(
    py: Python<'py>,
    code: Code,
    component: Option<&str>,
    message: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("code", code.as_str())?;
    dict.set_item("component", component)?;
    dict.set_item("message", message)?;
    Ok(dict)
}

/// The outcome of a component in a row, whichever branch the row took.
fn outcome<'r>(row: &'r Row, places: &[Option<usize>]) -> Option<&'r Outcome> {
    row.outcomes.get((*places.get(row.branch?)?)?)?.as_ref()
}

/// One fact of the evidence.
pub(crate) fn from_fact<'py>(py: Python<'py>, fact: &Fact) -> PyResult<Bound<'py, PyAny>> {
    Ok(match fact {
        Fact::Bool(flag) => pyo3::types::PyBool::new(py, *flag).to_owned().into_any(),
        Fact::Count(count) => count.into_pyobject(py)?.into_any(),
        Fact::Number(number) => number.into_pyobject(py)?.into_any(),
        Fact::Word(word) => PyString::intern(py, word).into_any(),
        Fact::Text(text) => PyString::new(py, text).into_any(),
        Fact::Numbers(numbers) => PyList::new(py, numbers)?.into_any(),
        Fact::Texts(texts) => PyList::new(py, texts)?.into_any(),
        Fact::Constraints(verdicts) => {
            let list = PyList::empty(py);
            for verdict in verdicts {
                let dict = PyDict::new(py);
                dict.set_item("id", verdict.id)?;
                dict.set_item("followed", verdict.followed)?;
                list.append(dict)?;
            }
            list.into_any()
        }
        Fact::Json(value) => from_value(py, value)?,
    })
}
