//! The engine for Python. It works without the interpreter's lock, and Ctrl-C interrupts it.

use crate::batch::{self, Batch, Fields};
use crate::custom::{Function, kinds};
use crate::error;
use crate::journals::{self, JournalHandle};
use crate::report::{Freeing, PyReport};
use crate::value::{from_value, json};
use plaudit::code::{Isolation, SandboxPolicy};
use plaudit::compose::Combine;
use plaudit::engine::{Engine, EngineOptions, ScoreOptions};
use plaudit::error::RunError;
use plaudit::exec::{CancelToken, Pool};
use plaudit::journal::Store;
use plaudit::plan::{Gate, Plan, Scorer};
use plaudit::recipe::{Recipe, RecipeError, RecipeErrors, Source};
use plaudit::record::Network;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::rule::custom::CustomKind;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How often signals are checked while the engine works.
const SIGNAL_POLL: Duration = Duration::from_millis(20);
/// How often a closing engine checks whether its calls are over.
const CLOSE_POLL: Duration = Duration::from_millis(2);
/// How much longer than the timeout of a group a closing engine waits for calls under way.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Rules score this many bytes in some 50 ms, and in 300 ms where the text is most hostile, so that no thread is needed to
/// stay interruptible.
const QUICK_BYTES: usize = 6 << 20;

/// An engine and what it was made of.
#[pyclass(frozen, name = "Engine", module = "plaudit._plaudit")]
pub(crate) struct PyEngine {
    pub(crate) engine: Arc<Engine>,
    /// Warnings about the recipe, and about the store of judgments.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// The recipe with its overrides.
    recipe: Value,
    /// Its reference to the journal, until it is closed.
    journal: Mutex<Option<Arc<JournalHandle>>>,
    /// Held by every call under way.
    busy: Arc<()>,
    closed: AtomicBool,
}

/// A call under way.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct Call {
    cancel: CancelToken,
}

#[pymethods]
impl Call {
    /// Cancels the call: no further judge call begins for it.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}

#[pymethods]
impl PyEngine {
    /// Loads a recipe: a shipped one or a file by its name, or one that is given as JSON. A `dry` engine asks no judge and
    /// counts what it would ask.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "what an engine is made of")]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<String>,
        overrides: Vec<(String, String)>,
        state: Option<&str>,
        share: usize,
        functions: Vec<Function<'_>>,
        dry: bool,
        unsafe_no_sandbox: bool,
    ) -> PyResult<Self> {
        let has_lines = text.is_none();
        let functions = kinds(functions)?;
        // A shared store counts money and calls over all engines, but not how many are in flight.
        let counted_in_store = state.is_some_and(Store::is_redis);
        let loaded = py.detach(|| load(name, text, &overrides, &functions));
        let (mut plan, recipe) = loaded.map_err(|errors| error::recipe(py, errors, has_lines))?;
        for judge in &mut plan.judges {
            judge.take_share(share, counted_in_store);
        }
        let (handle, warnings) = state.map(|state| journals::open(py, state)).transpose()?.unzip();
        let journal = handle.as_ref().map(|handle| handle.0.clone());
        let text_of = |warning: &RecipeError| {
            RecipeError { line: warning.line.filter(|_| has_lines), ..warning.clone() }.to_string()
        };
        let mut warnings: Vec<String> = warnings.into_iter().flatten().collect();
        warnings.extend(plan.warnings.iter().map(text_of));
        let engine = py.detach(|| {
            let network = if dry { Network::Replay } else { Network::Live };
            let keys = |name: &str| std::env::var(name).ok();
            let sandbox = SandboxPolicy { allow_none: unsafe_no_sandbox, ..SandboxPolicy::default() };
            let keys: &dyn Fn(&str) -> Option<String> = &keys;
            let options = EngineOptions { journal, network, dry, keys, sandbox, ..EngineOptions::default() };
            Engine::open(plan, &options)
        });
        let engine = engine.map_err(|error| error::run(py, &error))?;
        if engine.sandbox_isolation() == Some(Isolation::None) {
            warnings.push("nothing isolates the programs of responses: unsafe_no_sandbox".to_owned());
        }
        Ok(Self {
            engine: Arc::new(engine),
            warnings,
            recipe,
            journal: Mutex::new(handle),
            busy: Arc::new(()),
            closed: AtomicBool::new(false),
        })
    }

    /// Lets no further call begin, waits for those under way, and gives the journal back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.store(true, Ordering::Release);
        self.engine.stop();
        // A call ends with the timeout of its group; one that hangs after that is left behind.
        let deadline = Instant::now() + self.engine.plan().groups.timeout + CLOSE_GRACE;
        while Arc::strong_count(&self.busy) > 1 && Instant::now() < deadline {
            py.check_signals()?;
            py.detach(|| std::thread::sleep(CLOSE_POLL));
        }
        let handle = self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            journals::close(py, handle);
        }
        Ok(())
    }

    /// What is known of the recipe, under the names that the properties of the package have.
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let plan = self.engine.plan();
        let (rewards, weights, judges) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
        for name in plan.columns() {
            // Where recipes that are routed to differ, those of the first.
            let part = plan.branches.iter().find_map(|branch| {
                let at = branch.components.iter().position(|component| component.name == name)?;
                Some((&branch.components[at].reward, branch.parts[at].weight))
            });
            rewards.set_item(name, part.map(|(reward, _)| reward))?;
            weights.set_item(name, part.map(|(_, weight)| weight))?;
        }
        for judge in &plan.judges {
            let limits = PyDict::new(py);
            limits.set_item("concurrency", judge.config.concurrency)?;
            limits.set_item("calls_per_minute", judge.config.calls_per_minute)?;
            limits.set_item("budget_calls", judge.budget().calls)?;
            limits.set_item("budget_cost", judge.budget().cost)?;
            judges.set_item(&judge.name, limits)?;
        }
        let group_limit = self.engine.group_limit();
        let all = PyDict::new(py);
        all.set_item("name", &plan.name)?;
        all.set_item("recipe", from_value(py, &self.recipe)?)?;
        all.set_item("components", plan.columns())?;
        all.set_item("rewards", rewards)?;
        all.set_item("weights", weights)?;
        all.set_item("judges", judges)?;
        all.set_item("compares_groups", plan.compares_groups())?;
        all.set_item("group_limit", group_limit.map(|limit| (limit.component, limit.method, limit.limit)))?;
        all.set_item("validates", plan.validates)?;
        all.set_item("invalid_value", plan.invalid_value)?;
        all.set_item("timeout", plan.groups.timeout.as_secs_f64())?;
        all.set_item("additive_error", additive_error(plan))?;
        all.set_item("needs_tokens", needing_tokens(plan))?;
        all.set_item("custom_rewards", custom_rewards(plan).into_iter().collect::<Vec<_>>())?;
        Ok(all)
    }

    /// The usage of each judge so far: calls, tokens, cost and latency.
    fn judge_usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &json(&self.engine.judge_usage())?)
    }

    fn stop(&self) {
        self.engine.stop();
    }

    /// What a dry engine would have asked, one entry a component.
    fn cost_estimates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &json(&self.engine.estimates())?)
    }

    /// Scores a batch and waits for it.
    fn score(
        &self,
        py: Python<'_>,
        columns: Fields<'_>,
        validate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyReport> {
        let work = self.begin(py, &columns, validate)?;
        let (engine, batch, validated) = (Arc::clone(&self.engine), Arc::clone(&work.batch), work.validated);
        let freeing = work.freeing();
        let cancel = work.cancel.clone();
        let (report, seconds) = if batch.bytes() <= QUICK_BYTES && self.engine.is_rules_only() {
            let scored = py.detach(|| work.score(&engine));
            py.check_signals()?;
            scored
        } else {
            // Rules run on the engine's threads anyway; who may wait long gets a thread of its own.
            let pool = engine.is_rules_only().then(|| Arc::clone(engine.pool()));
            interruptible(py, &cancel, pool, move || work.score(&engine))?
        };
        let report = Arc::new(report.map_err(|error| error::run(py, &error))?);
        Ok(PyReport { report, batch, seconds, validated, freeing })
    }

    /// Starts to score a batch. `done` is called on another thread, with the report or an error.
    fn start(
        &self,
        py: Python<'_>,
        done: Py<PyAny>,
        columns: Fields<'_>,
        validate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Call> {
        let work = self.begin(py, &columns, validate)?;
        let (engine, cancel) = (Arc::clone(&self.engine), work.cancel.clone());
        if self.engine.plan().judges.is_empty() {
            spawn(move || {
                let (report, seconds) = work.score(&engine);
                work.finish(&done, report, seconds);
            })?;
        } else {
            // Judge calls take so long that copying the text costs nothing; a thread for each batch would.
            let (rollouts, options) = (work.batch.owned(), work.options());
            let began = Instant::now();
            let done = move |_, report: Result<Report, RunError>| {
                let report = report.map(|report| work.batch.complete(&engine, report));
                work.finish(&done, report, began.elapsed());
            };
            self.engine.submit(rollouts, options, done);
        }
        Ok(Call { cancel })
    }

    /// Scores a batch and returns, one a rollout, its result and the transcripts of the judge calls that showed it.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        columns: Fields<'py>,
        validate: Option<&Bound<'py, PyAny>>,
        full: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let work = self.begin(py, &columns, validate)?;
        let (engine, cancel) = (Arc::clone(&self.engine), work.cancel.clone());
        let explained = interruptible(py, &cancel, None, move || work.explain(&engine, full))?;
        from_value(py, &Value::Array(explained.map_err(|error| error::run(py, &error))?))
    }
}

impl PyEngine {
    /// The guard that a call holds while it is under way; an error where the engine was closed.
    pub(crate) fn busy(&self, py: Python<'_>) -> PyResult<Arc<()>> {
        let busy = Arc::clone(&self.busy);
        if self.closed.load(Ordering::Acquire) {
            let message = "the engine was closed; make another plaudit.Engine".to_owned();
            return Err(error::coded(py, "engine.closed", message));
        }
        Ok(busy)
    }

    fn begin(
        &self,
        py: Python<'_>,
        columns: &Fields<'_>,
        validate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Work> {
        let busy = self.busy(py)?;
        let validate = batch::flag("validate", validate)?;
        let validated = validate.unwrap_or(self.engine.plan().validates);
        let batch = Arc::new(Batch::read(columns)?);
        let pool = Arc::clone(self.engine.pool());
        Ok(Work { batch, validate, validated, cancel: CancelToken::default(), pool, _busy: busy })
    }
}

/// One batch that is to be scored.
struct Work {
    batch: Arc<Batch>,
    validate: Option<bool>,
    /// Whether references take part in comparisons.
    validated: bool,
    cancel: CancelToken,
    pool: Arc<Pool>,
    _busy: Arc<()>,
}

impl Work {
    fn freeing(&self) -> Freeing {
        Freeing { pool: Arc::clone(&self.pool), process: std::process::id() }
    }

    fn options(&self) -> ScoreOptions {
        ScoreOptions { validate: self.validate, cancel: Some(self.cancel.clone()), ..ScoreOptions::default() }
    }

    /// The report, and how long the engine took.
    fn score(&self, engine: &Engine) -> (Result<Report, RunError>, Duration) {
        let places: Vec<usize> = self.batch.readable().collect();
        let rollouts = self.pool.map(&places, |at| self.batch.rollout(*at));
        let began = Instant::now();
        let report = engine.score_with(&rollouts, &self.options());
        let seconds = began.elapsed();
        (report.map(|report| self.batch.complete(engine, report)), seconds)
    }

    /// As `plaudit explain --json`, one entry a rollout.
    fn explain(&self, engine: &Engine, full: bool) -> Result<Vec<Value>, RunError> {
        let mut rollouts: Vec<Rollout<'_>> = self.batch.rollouts();
        for (rollout, at) in rollouts.iter_mut().zip(self.batch.readable()) {
            rollout.id = Some(Cow::Owned(self.batch.id(at).into_owned()));
        }
        let (report, transcripts) = engine.explain(&rollouts, &self.options())?;
        let mut explained: Vec<Option<Value>> = vec![None; self.batch.len()];
        for (at, place) in self.batch.readable().enumerate() {
            let value = plaudit_cli::explanation(&report, at, &rollouts, &transcripts, full);
            explained[place] = Some(value);
        }
        let whole = self.batch.complete(engine, report);
        let unreadable = |at: usize| {
            let (id, rollout) = (self.batch.id(at), self.batch.rollout(at));
            json!({ "result": whole.result(at, &id, &rollout), "exchanges": [] })
        };
        let each = explained.into_iter().enumerate();
        Ok(each.map(|(at, value)| value.unwrap_or_else(|| unreadable(at))).collect())
    }

    /// Calls back into Python; where the interpreter is going away, nobody waits any more.
    fn finish(self, done: &Py<PyAny>, report: Result<Report, RunError>, seconds: Duration) {
        let freeing = self.freeing();
        let Self { batch, validated, _busy, .. } = self;
        Python::try_attach(|py| {
            let called = match report {
                Ok(report) => {
                    let report = Arc::new(report);
                    let report = PyReport { report, batch, seconds, validated, freeing };
                    done.call1(py, (report, py.None()))
                }
                Err(error) => done.call1(py, (py.None(), error::run(py, &error))),
            };
            if let Err(error) = called {
                error.write_unraisable(py, Some(done.bind(py)));
            }
        });
    }
}

/// Runs work on a thread of the pool or of its own, while this one, which gets the signals, waits. Ctrl-C cancels the work.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    cancel: &CancelToken,
    pool: Option<Arc<Pool>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let work = move || drop(sender.send(work()));
    match pool {
        Some(pool) => pool.spawn(work),
        None => spawn(work)?,
    }
    loop {
        let received = py.detach(move || {
            let received = receiver.recv_timeout(SIGNAL_POLL);
            (receiver, received)
        });
        receiver = received.0;
        match received.1 {
            Ok(done) => return Ok(done),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = py.check_signals() {
                    cancel.cancel();
                    return Err(interrupted);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let message = "the engine failed in a way that it must not".to_owned();
                return Err(error::coded(py, "engine.panic", message));
            }
        }
    }
}

/// Starts a thread for one call.
fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let started = std::thread::Builder::new().name("plaudit-call".to_owned()).spawn(work);
    started.map(drop).map_err(|error| {
        let message = format!("no thread can be started: {error}");
        Python::attach(|py| error::coded(py, "engine.threads", message))
    })
}

/// The names of the registered functions that a recipe uses.
fn custom_rewards(plan: &Plan) -> BTreeSet<&str> {
    let components = plan.branches.iter().flat_map(|branch| &branch.components);
    let custom = components.filter(|component| matches!(component.scorer, Scorer::Custom(_)));
    custom.map(|component| component.reward.as_str()).collect()
}

/// The components that take the token count from the trainer, and skip a rollout without one.
fn needing_tokens(plan: &Plan) -> Vec<&str> {
    let components = || plan.branches.iter().flat_map(|branch| &branch.components);
    let needs =
        |name: &&str| components().any(|part| part.name == *name && part.scorer.properties().needs_tokens);
    plan.columns().into_iter().filter(needs).collect()
}

/// Why the total is not always the weighted sum of the components, where that is so.
fn additive_error(plan: &Plan) -> Option<String> {
    if plan.branches.len() > 1 {
        return Some("`route`".to_owned());
    }
    plan.branches.iter().find_map(|branch| match branch.combine {
        Combine::Mean => Some("`combine: mean`".to_owned()),
        Combine::Sum => {
            let sets_total = |gate: &Option<Gate>| gate.is_some_and(|gate| gate.total.is_some());
            let gate = branch.components.iter().find(|component| sets_total(&component.gate))?;
            Some(format!("the gate of `{}`, which has a total of its own", gate.name))
        }
    })
}

/// The plan of a recipe, and the recipe with its overrides.
fn load(
    name: &str,
    text: Option<String>,
    overrides: &[(String, String)],
    functions: &[CustomKind],
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
    Ok((recipe.plan_with(functions)?, recipe.to_value()))
}

/// The results of the last finished run of a state, as the lines of JSON that `plaudit replay` writes.
#[pyfunction]
pub(crate) fn replay(py: Python<'_>, state: &str) -> PyResult<Vec<String>> {
    let replayed = py.detach(|| plaudit_cli::replay(state));
    replayed.map_err(|(code, message)| error::coded(py, code, message))
}
