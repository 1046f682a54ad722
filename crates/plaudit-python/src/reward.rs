//! How is one reward, or one way of putting comparisons together, used by itself?

use crate::batch::count;
use crate::custom::{Function, kinds};
use crate::engine::parameters;
use crate::error;
use crate::join::asked;
use crate::report::{from_fact, json};
use crate::text::{NumbersAsText, text};
use crate::value::{from_value, to_map};
use plaudit::aggregate::{Comparison, Method};
use plaudit::engine::Engine;
use plaudit::outcome::Outcome;
use plaudit::reason::Code;
use plaudit::recipe::{Recipe, RecipeError, RecipeErrors};
use plaudit::registry::Entry;
use plaudit::rollout::Rollout;
use pyo3::exceptions::{PyTypeError, PyUnicodeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The name of the one component of such a recipe.
const ONLY: &str = "reward";

/// The most responses that comparisons are put together for by hand: more than any group has, and little memory.
const MOST: usize = 1_000_000;

/// The word, the value, the reason and the evidence.
type Said<'py> = (&'static str, Option<f64>, Option<Bound<'py, PyDict>>, Bound<'py, PyDict>);
/// The scores, their errors where the method knows them, and the evidence.
type Made<'py> = (Vec<f64>, Option<Vec<f64>>, Bound<'py, PyAny>);

/// One reward with its parameters.
#[pyclass(frozen, name = "Reward", module = "plaudit._plaudit")]
pub(crate) struct PyReward {
    engine: Engine,
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
        let brought = kinds(functions)?;
        let mut component = parameters(params)?;
        component.insert("reward".to_owned(), Value::from(name));
        let judges = component.remove("judges").unwrap_or_else(|| Value::Object(Map::new()));
        let mut components = Map::new();
        components.insert(ONLY.to_owned(), Value::Object(component));
        let mut whole = Map::new();
        whole.insert("components".to_owned(), Value::Object(components));
        whole.insert("judges".to_owned(), judges);
        let plan = Recipe::from_value(&Value::Object(whole)).and_then(|recipe| recipe.plan_with(&brought));
        let plan = plan.map_err(|mistakes| error::recipe(py, alone(mistakes), false))?;
        Ok(Self { engine: Engine::new(plan).map_err(|stopped| error::run(py, &stopped))? })
    }

    /// What the reward says of one response.
    #[pyo3(signature = (response, prompt, reference, tokens, extra))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        response: &Bound<'py, PyAny>,
        prompt: Option<&Bound<'py, PyAny>>,
        reference: Option<&Bound<'py, PyAny>>,
        tokens: Option<&Bound<'py, PyAny>>,
        extra: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Said<'py>> {
        let texts = read(response, prompt, reference, extra)?;
        let (response, reference, mut rollout) = match &texts {
            Ok((response, reference, rollout)) => (response, reference, rollout.clone()),
            Err(fault) => return unreadable(py, fault),
        };
        rollout.response = Cow::Borrowed(response);
        rollout.reference = reference.as_deref().map(Cow::Borrowed);
        rollout.tokens = tokens.map(|tokens| count(&|| "tokens".to_owned(), tokens)).transpose()?.flatten();
        let report = py.detach(|| self.engine.score(std::slice::from_ref(&rollout)));
        let report = report.map_err(|stopped| error::run(py, &stopped))?;
        let said = report.rows.first().and_then(|row| row.outcomes.first()?.as_ref());
        let info = PyDict::new(py);
        for (name, fact) in said.and_then(Outcome::info).into_iter().flat_map(|info| info.iter()) {
            info.set_item(name, from_fact(py, fact)?)?;
        }
        let reason = said.and_then(Outcome::reason).map(|reason| -> PyResult<_> {
            let dict = PyDict::new(py);
            dict.set_item("code", reason.code.as_str())?;
            dict.set_item("message", &*reason.message)?;
            Ok(dict)
        });
        let word = said.map_or("invalid", |outcome| outcome.kind().as_str());
        Ok((word, said.and_then(Outcome::value), reason.transpose()?, info))
    }
}

/// RecipeErrors as the caller wrote them: the parameters of a reward, and no recipe around it.
fn alone(mistakes: RecipeErrors) -> RecipeErrors {
    let around = format!("components.{ONLY}.");
    let own = |mut mistake: RecipeError| {
        if let Some(path) = mistake.path.strip_prefix(&around) {
            mistake.path = path.to_owned();
        }
        mistake
    };
    let whole = mistakes.clone();
    RecipeErrors::none(mistakes.into_iter().map(own).collect()).err().unwrap_or(whole)
}

/// The texts of a call and the rest of its rollout; or which of them is not valid Unicode, as an engine would say of a rollout.
type Read = Result<(PyBackedStr, Option<PyBackedStr>, Rollout<'static>), String>;

fn read(
    response: &Bound<'_, PyAny>,
    prompt: Option<&Bound<'_, PyAny>>,
    reference: Option<&Bound<'_, PyAny>>,
    extra: Option<&Bound<'_, PyAny>>,
) -> PyResult<Read> {
    let mut rollout = Rollout::new(Cow::Borrowed(""));
    let mut others = || -> PyResult<()> {
        rollout.prompt = asked(prompt)?;
        if let Some(extra) = extra {
            rollout.extra = to_map(extra, &|| "extra".to_owned())?;
        }
        Ok(())
    };
    if let Err(error) = others() {
        let py = response.py();
        let broken = error.is_instance_of::<PyUnicodeError>(py);
        return if broken { Ok(Err(error.value(py).to_string())) } else { Err(error) };
    }
    let response = match text(&|| "response".to_owned(), response, NumbersAsText::Whole)? {
        Ok(Some(response)) => response,
        Ok(None) => return Err(PyTypeError::new_err("response: text is wanted, not None")),
        Err(fault) => return Ok(Err(fault)),
    };
    let reference = match reference {
        Some(reference) => text(&|| "reference".to_owned(), reference, NumbersAsText::Any)?,
        None => Ok(None),
    };
    Ok(reference.map(|reference| (response, reference, rollout)))
}

/// What is said of texts that are not valid Unicode.
fn unreadable<'py>(py: Python<'py>, fault: &str) -> PyResult<Said<'py>> {
    let reason = PyDict::new(py);
    reason.set_item("code", Code::NotUnicode.as_str())?;
    reason.set_item("message", fault)?;
    Ok(("invalid", None, Some(reason), PyDict::new(py)))
}

/// PyReport from comparisons.
#[pyfunction]
pub(crate) fn aggregate<'py>(
    py: Python<'py>,
    name: &str,
    n: usize,
    comparisons: Vec<(usize, usize, Option<usize>)>,
    params: &Bound<'py, PyDict>,
) -> PyResult<Made<'py>> {
    if n > MOST {
        return Err(error::value(format_args!("n: at most {MOST} responses are compared, not {n}")));
    }
    let method = Method::named(name, parameters(params)?).map_err(error::value)?;
    let comparisons: Vec<Comparison> =
        comparisons.into_iter().map(|(first, second, winner)| Comparison { first, second, winner }).collect();
    let made = py.detach(|| plaudit::aggregate::aggregate(&method, n, &comparisons)).map_err(error::value)?;
    Ok((made.scores, made.errors, from_value(py, &json(&made.info)?)?))
}

/// Every reward with its summary, and what it needs.
#[pyfunction]
pub(crate) fn rewards() -> Vec<(String, String)> {
    Entry::all().map(|entry| (entry.name().to_owned(), entry.page().0)).collect()
}

/// The names of the shipped recipes.
#[pyfunction]
pub(crate) fn recipes() -> Vec<&'static str> {
    plaudit::recipe::shipped().iter().map(|(name, _)| *name).collect()
}
