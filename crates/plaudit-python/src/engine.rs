//! How is the engine called from Python? The lock of the interpreter is free while it works, and Ctrl-C is heard.

use crate::batch::{Batch, Columns};
use crate::custom::{Function, kinds};
use crate::error;
use crate::journals::{self, JournalHandle};
use crate::report::{PyReport, json};
use crate::value::from_value;
use plaudit::compose::Combine;
use plaudit::engine::EngineOptions;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::exec::CancelToken;
use plaudit::journal::Store;
use plaudit::plan::{Gate, Plan, Scorer};
use plaudit::recipe::{Recipe, RecipeError, RecipeErrors, Source};
use plaudit::report::Report;
use plaudit::rule::custom::CustomKind;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How often Ctrl-C is looked for while the engine works.
const TICK: Duration = Duration::from_millis(20);
/// How often an engine that is being closed looks whether its calls are over.
const CLOSING: Duration = Duration::from_millis(2);
/// How much longer than its group a call under way is waited for.
const GRACE: Duration = Duration::from_secs(5);
/// So many bytes of responses are scored by rules before anybody could press Ctrl-C and wait for it: some 50 ms, and 300 ms of
/// the most hostile text.
const QUICK: usize = 6 << 20;

/// An engine and what it was made of.
#[pyclass(frozen, name = "Engine", module = "plaudit._plaudit")]
pub(crate) struct PyEngine {
    pub(crate) engine: Arc<Engine>,
    /// What a person should know of the recipe, and of the store that judgments are kept in.
    warnings: Vec<String>,
    /// The recipe with its overrides.
    recipe: Value,
    /// Its part in the journal, until it is closed.
    lease: Mutex<Option<Arc<JournalHandle>>>,
    /// Held by every call under way.
    busy: Arc<()>,
    closed: AtomicBool,
}

/// A call under way, which can be let go of.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct Call {
    cancel: CancelToken,
}

#[pymethods]
impl Call {
    /// Lets go of the call: no judge is asked any more for it.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}

#[pymethods]
impl PyEngine {
    /// Loads a recipe: a shipped one or a file by its name, or one that is given as JSON.
    #[new]
    #[pyo3(signature = (name, text, overrides, state, share, functions))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<String>,
        overrides: Vec<(String, String)>,
        state: Option<&str>,
        share: usize,
        functions: Vec<Function<'_>>,
    ) -> PyResult<Self> {
        let lines = text.is_none();
        let brought = kinds(functions)?;
        // A shared store counts money and calls over all engines; how many are in flight, nobody else knows.
        let counted_elsewhere = state.is_some_and(Store::is_redis);
        let loaded = py.detach(|| load(name, text, &overrides, &brought));
        let (mut plan, recipe) = loaded.map_err(|mistakes| error::recipe(py, mistakes, lines))?;
        for judge in &mut plan.judges {
            judge.take_share(share, counted_elsewhere);
        }
        let (lease, doubts) = state.map(|state| journals::open(py, state)).transpose()?.unzip();
        let journal = lease.as_ref().map(|lease| lease.0.clone());
        let told = |warning: &RecipeError| {
            RecipeError { line: warning.line.filter(|_| lines), ..warning.clone() }.to_string()
        };
        let mut doubts: Vec<String> = doubts.into_iter().flatten().collect();
        doubts.extend(plan.warnings.iter().map(told));
        let engine = py.detach(|| {
            let setup =
                EngineOptions { journal, keys: &|name| std::env::var(name).ok(), ..EngineOptions::default() };
            Engine::open(plan, &setup)
        });
        let engine = engine.map_err(|stopped| error::run(py, &stopped))?;
        Ok(Self {
            engine: Arc::new(engine),
            warnings: doubts,
            recipe,
            lease: Mutex::new(lease),
            busy: Arc::new(()),
            closed: AtomicBool::new(false),
        })
    }

    /// The recipe with its overrides.
    #[getter]
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &self.recipe)
    }

    /// The names of the functions that the recipe uses.
    #[getter]
    fn custom_rewards(&self) -> Vec<&str> {
        let components = self.engine.plan().branches.iter().flat_map(|branch| &branch.components);
        let brought = components.filter(|component| matches!(component.scorer, Scorer::Custom(_)));
        let mut names: Vec<&str> = brought.map(|component| component.reward.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Lets nothing more begin, waits for what is under way, and gives the journal back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.store(true, Ordering::Release);
        self.engine.stop();
        // Whatever is asked ends with the time of a group; what hangs after that is left behind.
        let deadline = Instant::now() + self.engine.plan().groups.timeout + GRACE;
        while Arc::strong_count(&self.busy) > 1 && Instant::now() < deadline {
            py.check_signals()?;
            py.detach(|| std::thread::sleep(CLOSING));
        }
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(lease) = lease {
            journals::close(py, lease);
        }
        Ok(())
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.engine.plan().name
    }

    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.engine.plan().columns()
    }

    /// The weight and the reward of each column; where recipes that are routed to differ, those of the first.
    #[getter]
    fn parts(&self) -> Vec<(&str, &str, f64)> {
        let plan = self.engine.plan();
        let part = |name| {
            plan.branches.iter().find_map(|branch| {
                let at = branch.components.iter().position(|component| component.name == name)?;
                Some((name, branch.components[at].reward.as_str(), branch.parts[at].weight))
            })
        };
        plan.columns().into_iter().filter_map(part).collect()
    }

    #[getter]
    fn compares_groups(&self) -> bool {
        self.engine.plan().compares_groups()
    }

    /// The component that takes the smallest groups, its aggregate, and how many responses that takes.
    #[getter]
    fn group_limit(&self) -> Option<(String, &'static str, usize)> {
        self.engine.group_limit().map(|limit| (limit.component, limit.method, limit.limit))
    }

    /// Why the total is not always the weighted sum of the components, where that is so.
    #[getter]
    fn indivisible(&self) -> Option<String> {
        let plan = self.engine.plan();
        if plan.branches.len() > 1 {
            return Some("`route`".to_owned());
        }
        plan.branches.iter().find_map(|branch| match branch.combine {
            Combine::Mean => Some("`combine: mean`".to_owned()),
            Combine::Sum => {
                let settles = |gate: &Option<Gate>| gate.is_some_and(|gate| gate.total.is_some());
                let settling = branch.components.iter().find(|component| settles(&component.gate))?;
                Some(format!("the gate of `{}`, which has a total of its own", settling.name))
            }
        })
    }

    #[getter]
    fn validates(&self) -> bool {
        self.engine.plan().validates
    }

    #[getter]
    fn invalid_value(&self) -> Option<f64> {
        self.engine.plan().invalid_value
    }

    #[getter]
    fn timeout(&self) -> f64 {
        self.engine.plan().groups.timeout.as_secs_f64()
    }

    /// The limits of every judge.
    #[getter]
    fn judges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for judge in &self.engine.plan().judges {
            let limits = PyDict::new(py);
            limits.set_item("concurrency", judge.concurrency)?;
            limits.set_item("per_minute", judge.per_minute)?;
            limits.set_item("budget_calls", judge.budget_calls)?;
            limits.set_item("budget_cost", judge.budget_cost)?;
            all.set_item(&judge.name, limits)?;
        }
        Ok(all)
    }

    /// What the judges have been asked so far.
    fn tallies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &json(&self.engine.tallies())?)
    }

    fn stop(&self) {
        self.engine.stop();
    }

    /// PyReport a batch and waits for it.
    #[pyo3(signature = (prompts, responses, references, groups, tokens, extras, ids, validate))]
    #[allow(clippy::too_many_arguments, reason = "the columns of a batch")]
    fn score(
        &self,
        py: Python<'_>,
        prompts: Option<&Bound<'_, PyAny>>,
        responses: &Bound<'_, PyAny>,
        references: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
        tokens: Option<&Bound<'_, PyAny>>,
        extras: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        validate: Option<bool>,
    ) -> PyResult<PyReport> {
        let busy = self.busy(py)?;
        let columns = Columns { prompts, responses, references, groups, tokens, extras, ids };
        let batch = Arc::new(Batch::take(&columns)?);
        let cancel = CancelToken::default();
        let validated = validate.unwrap_or(self.engine.plan().validates);
        let terms = ScoreOptions { validate, cancel: Some(cancel.clone()) };
        if batch.bytes() <= QUICK && self.is_quick() {
            let (report, seconds) = py.detach(|| timed(&self.engine, &batch, &terms));
            py.check_signals()?;
            let report = Arc::new(report.map_err(|stopped| error::run(py, &stopped))?);
            return Ok(PyReport { report, batch, seconds, validated });
        }
        let (tell, told) = mpsc::sync_channel(1);
        let work = (Arc::clone(&self.engine), Arc::clone(&batch));
        // On a thread of its own, because only this one can hear Ctrl-C.
        spawn(move || {
            let (engine, batch) = work;
            let told = timed(&engine, &batch, &terms);
            drop((engine, batch, busy));
            let _ = tell.send(told);
        })?;
        let mut told = told;
        loop {
            let (kept, heard) = py.detach(move || {
                let heard = told.recv_timeout(TICK);
                (told, heard)
            });
            told = kept;
            match heard {
                Ok((report, seconds)) => {
                    let report = Arc::new(report.map_err(|stopped| error::run(py, &stopped))?);
                    return Ok(PyReport { report, batch, seconds, validated });
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Err(interrupted) = py.check_signals() {
                        cancel.cancel();
                        return Err(interrupted);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(error::coded(
                        py,
                        "engine.panic",
                        "the engine failed in a way that it must not".to_owned(),
                    ));
                }
            }
        }
    }

    /// Begins to score a batch. `done` gets the report and nothing, or nothing and the error, on another thread.
    #[pyo3(signature = (done, prompts, responses, references, groups, tokens, extras, ids, validate))]
    #[allow(clippy::too_many_arguments, reason = "the columns of a batch")]
    fn start(
        &self,
        py: Python<'_>,
        done: Py<PyAny>,
        prompts: Option<&Bound<'_, PyAny>>,
        responses: &Bound<'_, PyAny>,
        references: Option<&Bound<'_, PyAny>>,
        groups: Option<&Bound<'_, PyAny>>,
        tokens: Option<&Bound<'_, PyAny>>,
        extras: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        validate: Option<bool>,
    ) -> PyResult<Call> {
        let busy = self.busy(py)?;
        let columns = Columns { prompts, responses, references, groups, tokens, extras, ids };
        let batch = Arc::new(Batch::take(&columns)?);
        let cancel = CancelToken::default();
        let validated = validate.unwrap_or(self.engine.plan().validates);
        let terms = ScoreOptions { validate, cancel: Some(cancel.clone()) };
        let began = Instant::now();
        if self.engine.plan().judges.is_empty() {
            let engine = Arc::clone(&self.engine);
            spawn(move || {
                let report = engine.score_with(&batch.rollouts(), &terms);
                finish(&done, &engine, (batch, validated), report, began);
                drop(busy);
            })?;
        } else {
            // Judges take so long that a copy of the text costs nothing, and a thread a call would.
            let (rollouts, engine) = (batch.owned(), Arc::clone(&self.engine));
            let done = move |_, report| {
                finish(&done, &engine, (batch, validated), report, began);
                drop(busy);
            };
            self.engine.submit(rollouts, terms, done);
        }
        Ok(Call { cancel })
    }
}

impl PyEngine {
    /// Whether only the engine's own rules are asked, which are over in a moment.
    fn is_quick(&self) -> bool {
        let plan = self.engine.plan();
        let mut components = plan.branches.iter().flat_map(|branch| &branch.components);
        plan.judges.is_empty() && !components.any(|component| matches!(component.scorer, Scorer::Custom(_)))
    }

    /// What a call holds while it is under way; an error where the engine was closed.
    pub(crate) fn busy(&self, py: Python<'_>) -> PyResult<Arc<()>> {
        let busy = Arc::clone(&self.busy);
        if self.closed.load(Ordering::Acquire) {
            let message = "the engine was closed; make another plaudit.Engine".to_owned();
            return Err(error::coded(py, "engine.closed", message));
        }
        Ok(busy)
    }
}

/// What a recipe means, and the recipe with its overrides.
fn load(
    name: &str,
    text: Option<String>,
    overrides: &[(String, String)],
    brought: &[CustomKind],
) -> Result<(Plan, Value), RecipeErrors> {
    let mut recipe = match text {
        Some(text) => {
            let name = name.to_owned();
            Recipe::from_source(Source { text, json: true, name, folder: None })
        }
        None => Recipe::named(name),
    }?;
    for (key, value) in overrides {
        recipe.set(key, value)?;
    }
    Ok((recipe.plan_with(brought)?, recipe.to_value()))
}

/// PyReport a batch, and says how long the engine worked on it.
fn timed(
    engine: &Engine,
    batch: &Batch,
    terms: &ScoreOptions,
) -> (Result<Report, plaudit::error::RunError>, Duration) {
    let rollouts = batch.rollouts();
    let began = Instant::now();
    let report = engine.score_with(&rollouts, terms);
    let seconds = began.elapsed();
    (report.map(|report| batch.complete(engine, report)), seconds)
}

/// A thread for one call.
fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let thread = std::thread::Builder::new().name("plaudit-call".to_owned());
    thread
        .spawn(work)
        .map(drop)
        .map_err(|error| error::value(format_args!("no thread can be started: {error}")))
}

/// Tells Python that a call is over; where the interpreter is going away, nobody listens any more.
fn finish(
    done: &Py<PyAny>,
    engine: &Engine,
    (batch, validated): (Arc<Batch>, bool),
    report: Result<Report, plaudit::error::RunError>,
    began: Instant,
) {
    let seconds = began.elapsed();
    let report = report.map(|report| batch.complete(engine, report));
    Python::try_attach(|py| {
        let called = match report {
            Ok(report) => {
                let report = Arc::new(report);
                done.call1(py, (PyReport { report, batch, seconds, validated }, py.None()))
            }
            Err(stopped) => done.call1(py, (py.None(), error::run(py, &stopped))),
        };
        if let Err(error) = called {
            error.write_unraisable(py, Some(done.bind(py)));
        }
    });
}

/// The parameters of something, as Python gives them.
pub(crate) fn parameters(given: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    crate::value::to_map(given.as_any(), &|| "parameters".to_owned())
}
