//! One reward used by itself, aggregation of comparisons, and the lists of rewards and recipes.

use crate::batch::{self, Batch, Fields};
use crate::custom::{Function, kinds};
use crate::engine::interruptible;
use crate::error::{self, ReadError};
use crate::report::{from_fact, reason_dict};
use crate::value::{self, from_value, parameters};
use plaudit::aggregate::{Comparison, Method};
use plaudit::engine::{Engine, EngineOptions, ScoreOptions};
use plaudit::exec::CancelToken;
use plaudit::outcome::Outcome;
use plaudit::recipe::{Recipe, RecipeError, RecipeErrors};
use plaudit::registry::RewardEntry;
use plaudit::report::Row;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the one component of the recipe around a single reward.
const COMPONENT: &str = "reward";

/// The most responses whose comparisons are aggregated by hand: more than any group has, and little memory.
const MAX_RESPONSES: usize = 1_000_000;

/// The value, the outcome, the reason, the evidence, and whether the answer is right.
type Scored<'py> = (Option<f64>, &'static str, Option<Bound<'py, PyDict>>, Bound<'py, PyDict>, Option<bool>);
/// The scores, their errors where the method has them, and the evidence.
type Aggregated<'py> = (Vec<f64>, Option<Vec<f64>>, Bound<'py, PyAny>);

/// One reward with its parameters.
#[pyclass(frozen, name = "Reward", module = "plaudit._plaudit")]
pub(crate) struct PyReward {
    engine: Arc<Engine>,
}

#[pymethods]
impl PyReward {
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        params: &Bound<'_, PyDict>,
        functions: Vec<Function<'_>>,
    ) -> PyResult<Self> {
        let functions = kinds(functions)?;
        let mut component = parameters(params)?;
        component.insert("reward".to_owned(), Value::from(name));
        let judges = component.remove("judges").unwrap_or_else(|| json!({}));
        let recipe = json!({ "components": { COMPONENT: component }, "judges": judges });
        let plan = Recipe::from_value(&recipe).and_then(|recipe| recipe.plan_with(&functions));
        let plan = plan.map_err(|errors| error::recipe(py, without_recipe(errors), false))?;
        let keys = |name: &str| std::env::var(name).ok();
        let engine = Engine::open(plan, &EngineOptions { keys: &keys, ..EngineOptions::default() });
        Ok(Self { engine: Arc::new(engine.map_err(|error| error::run(py, &error))?) })
    }

    /// Scores one response.
    fn score<'py>(&self, py: Python<'py>, fields: Fields<'py>) -> PyResult<Scored<'py>> {
        let rollout = match batch::rollout(&fields) {
            Ok(rollout) => rollout,
            Err(ReadError::Argument(error)) => return Err(error),
            Err(ReadError::Rollout(reason)) => {
                let reason = reason_dict(py, reason.code, None, &reason.message)?;
                return Ok((None, "invalid", Some(reason), PyDict::new(py), None));
            }
        };
        let report = if self.engine.is_rules_only() {
            py.detach(|| self.engine.score(std::slice::from_ref(&rollout)))
        } else {
            let (engine, cancel) = (Arc::clone(&self.engine), CancelToken::default());
            let options = ScoreOptions { cancel: Some(cancel.clone()), ..ScoreOptions::default() };
            interruptible(py, &cancel, None, move || engine.score_with(&[rollout], &options))?
        };
        let report = report.map_err(|error| error::run(py, &error))?;
        scored(py, report.rows.first())
    }

    /// Scores a batch, one result a response.
    fn score_many<'py>(&self, py: Python<'py>, columns: Fields<'py>) -> PyResult<Vec<Scored<'py>>> {
        let batch = Batch::read(&columns)?;
        let (engine, cancel) = (Arc::clone(&self.engine), CancelToken::default());
        let options = ScoreOptions { cancel: Some(cancel.clone()), ..ScoreOptions::default() };
        let pool = engine.is_rules_only().then(|| Arc::clone(engine.pool()));
        let report = interruptible(py, &cancel, pool, move || {
            let report = engine.score_with(&batch.rollouts(), &options);
            report.map(|report| batch.complete(&engine, report))
        })?;
        let report = report.map_err(|error| error::run(py, &error))?;
        report.rows.iter().map(|row| scored(py, Some(row))).collect()
    }
}

/// What the reward gave a rollout.
fn scored<'py>(py: Python<'py>, row: Option<&Row>) -> PyResult<Scored<'py>> {
    let outcome = row.and_then(|row| row.outcomes.first()?.as_ref());
    let info = PyDict::new(py);
    for (name, fact) in outcome.and_then(Outcome::info).into_iter().flat_map(|info| info.iter()) {
        info.set_item(name, from_fact(py, fact)?)?;
    }
    // A rollout that no reward was asked about says why in its total.
    let refused = row.and_then(|row| row.total.cause()).map(|cause| &cause.reason);
    let why = outcome.map_or(refused, Outcome::reason);
    let why = why.map(|why| reason_dict(py, why.code, None, &why.message)).transpose()?;
    let word = outcome.map_or("invalid", |outcome| outcome.kind().as_str());
    Ok((outcome.and_then(Outcome::value), word, why, info, row.and_then(|row| row.correct)))
}

/// Mistakes with the paths that the caller wrote: parameters of a reward, without the recipe around it.
fn without_recipe(errors: RecipeErrors) -> RecipeErrors {
    let prefix = format!("components.{COMPONENT}.");
    let shorten = |mut error: RecipeError| {
        if let Some(path) = error.path.strip_prefix(&prefix) {
            error.path = path.to_owned();
        }
        error
    };
    let unchanged = errors.clone();
    RecipeErrors::none(errors.into_iter().map(shorten).collect()).err().unwrap_or(unchanged)
}

/// Scores from comparisons.
#[pyfunction]
pub(crate) fn aggregate<'py>(
    py: Python<'py>,
    name: &str,
    n: usize,
    comparisons: Vec<(usize, usize, Option<usize>)>,
    params: &Bound<'py, PyDict>,
) -> PyResult<Aggregated<'py>> {
    if n > MAX_RESPONSES {
        let message = format_args!("n: at most {MAX_RESPONSES} responses are compared, not {n}");
        return Err(error::argument(message));
    }
    let method = Method::named(name, parameters(params)?).map_err(error::argument)?;
    let comparisons: Vec<Comparison> =
        comparisons.into_iter().map(|(first, second, winner)| Comparison { first, second, winner }).collect();
    let aggregated = py.detach(|| plaudit::aggregate::aggregate(&method, n, &comparisons));
    let aggregated = aggregated.map_err(error::argument)?;
    Ok((aggregated.scores, aggregated.errors, from_value(py, &value::json(&aggregated.info)?)?))
}

/// What a trainer must know of a reward: whether its value says that an answer is right, and the keys of its info to log.
/// A reward that is not registered has none of both.
#[pyfunction]
pub(crate) fn reward_traits(name: &str) -> (bool, &'static [&'static str]) {
    RewardEntry::find(name).map_or((false, &[]), |entry| (entry.correctness(), entry.facts()))
}

/// The names of all rewards.
#[pyfunction]
pub(crate) fn rewards() -> Vec<String> {
    RewardEntry::all().map(|entry| entry.name().to_owned()).collect()
}

/// The names of the shipped recipes.
#[pyfunction]
pub(crate) fn recipes() -> Vec<&'static str> {
    plaudit::recipe::shipped().iter().map(|(name, _)| *name).collect()
}
