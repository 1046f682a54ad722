//! How is the engine called from Python? The lock of the interpreter is free while it works, and Ctrl-C is heard.

use crate::failure;
use crate::rollouts::{Batch, Columns};
use crate::scores::{Scores, json};
use crate::value::from_value;
use plaudit::compose::Combine;
use plaudit::court::Setup;
use plaudit::engine::{Engine, Terms};
use plaudit::journal::Store;
use plaudit::plan::{Gate, Scorer};
use plaudit::recipe::{Mistake, Recipe, Source};
use plaudit::report::Report;
use plaudit::schedule::Halt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often Ctrl-C is looked for while the engine works.
const TICK: Duration = Duration::from_millis(20);
/// So many bytes of responses are scored by rules before anybody could press Ctrl-C and wait for it: some 50 ms, and 300 ms of
/// the most hostile text.
const QUICK: usize = 6 << 20;

/// An engine and what it was made of.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct Core {
    pub(crate) engine: Arc<Engine>,
    /// What a person should know of the recipe, and of the store that judgments are kept in.
    doubts: Vec<String>,
}

/// A call under way, which can be let go of.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct Call {
    halt: Halt,
}

#[pymethods]
impl Call {
    /// Lets go of the call: no judge is asked any more for it.
    fn cancel(&self) {
        self.halt.raise();
    }
}

#[pymethods]
impl Core {
    /// Loads a recipe: a shipped one or a file by its name, or one that is given as JSON.
    #[new]
    #[pyo3(signature = (name, text, overrides, state, share))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<String>,
        overrides: Vec<(String, String)>,
        state: Option<&str>,
        share: usize,
    ) -> PyResult<Self> {
        let lines = text.is_none();
        py.detach(|| Self::load(name, text, &overrides, state, share))
            .map_err(|refused| refused.raise(py, lines))
    }

    #[getter]
    fn doubts(&self) -> Vec<String> {
        self.doubts.clone()
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
                Some((name, branch.components[at].reward, branch.parts[at].weight))
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

    /// Scores a batch and waits for it.
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
    ) -> PyResult<Scores> {
        let columns = Columns { prompts, responses, references, groups, tokens, extras, ids };
        let batch = Arc::new(Batch::take(&columns)?);
        let halt = Halt::default();
        let terms = Terms { validate, halt: Some(halt.clone()) };
        if batch.bytes() <= QUICK && self.is_quick() {
            let (report, seconds) = py.detach(|| timed(&self.engine, &batch, &terms));
            py.check_signals()?;
            let report = Arc::new(report.map_err(|stopped| failure::run(py, &stopped))?);
            return Ok(Scores { report, batch, seconds });
        }
        let (tell, told) = mpsc::sync_channel(1);
        let work = (Arc::clone(&self.engine), Arc::clone(&batch));
        // On a thread of its own, because only this one can hear Ctrl-C.
        spawn(move || {
            let (engine, batch) = work;
            let told = timed(&engine, &batch, &terms);
            drop(batch);
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
                    let report = Arc::new(report.map_err(|stopped| failure::run(py, &stopped))?);
                    return Ok(Scores { report, batch, seconds });
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Err(interrupted) = py.check_signals() {
                        halt.raise();
                        return Err(interrupted);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(failure::coded(
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
        let columns = Columns { prompts, responses, references, groups, tokens, extras, ids };
        let batch = Arc::new(Batch::take(&columns)?);
        let halt = Halt::default();
        let terms = Terms { validate, halt: Some(halt.clone()) };
        let began = Instant::now();
        if self.engine.plan().judges.is_empty() {
            let engine = Arc::clone(&self.engine);
            spawn(move || {
                let report = engine.score_on(&batch.rollouts(), &terms);
                finish(&done, &engine, batch, report, began);
            })?;
        } else {
            // Judges take so long that a copy of the text costs nothing, and a thread a call would.
            let (rollouts, engine) = (batch.owned(), Arc::clone(&self.engine));
            let done = move |_, report| finish(&done, &engine, batch, report, began);
            self.engine.submit(rollouts, terms, done);
        }
        Ok(Call { halt })
    }
}

/// Why an engine could not be made.
enum Refused {
    Recipe(plaudit::recipe::Mistakes),
    Run(plaudit::error::RunError),
    State(plaudit::journal::JournalError),
}

impl Refused {
    fn raise(self, py: Python<'_>, lines: bool) -> PyErr {
        match self {
            Self::Recipe(mistakes) => failure::recipe(py, mistakes, lines),
            Self::Run(stopped) => failure::run(py, &stopped),
            Self::State(error) => failure::coded(py, error.code(), error.to_string()),
        }
    }
}

impl Core {
    /// Whether only the engine's own rules are asked, which are over in a moment.
    fn is_quick(&self) -> bool {
        let plan = self.engine.plan();
        let mut components = plan.branches.iter().flat_map(|branch| &branch.components);
        plan.judges.is_empty() && !components.any(|component| matches!(component.scorer, Scorer::Custom(_)))
    }

    fn load(
        name: &str,
        text: Option<String>,
        overrides: &[(String, String)],
        state: Option<&str>,
        share: usize,
    ) -> Result<Self, Refused> {
        let lines = text.is_none();
        let recipe = match text {
            Some(text) => {
                let name = name.to_owned();
                Recipe::from_source(Source { text, json: true, name, folder: None })
            }
            None => Recipe::named(name),
        };
        let mut recipe = recipe.map_err(Refused::Recipe)?;
        for (key, value) in overrides {
            recipe.set(key, value).map_err(Refused::Recipe)?;
        }
        let mut plan = recipe.plan().map_err(Refused::Recipe)?;
        // A shared store counts money and calls over all engines; how many are in flight, nobody else knows.
        let counted_elsewhere = state.is_some_and(Store::is_redis);
        for judge in &mut plan.judges {
            judge.take_share(share, counted_elsewhere);
        }
        let (journal, recovered) = state.map(Store::open).transpose().map_err(Refused::State)?.unzip();
        let mut doubts = recovered.map_or_else(Vec::new, |recovered| recovered.doubts);
        let told = |warning: &Mistake| {
            Mistake { line: warning.line.filter(|_| lines), ..warning.clone() }.to_string()
        };
        doubts.extend(plan.warnings.iter().map(told));
        let setup = Setup { journal, keys: &|name| std::env::var(name).ok(), ..Setup::default() };
        let engine = Engine::open(plan, &setup).map_err(Refused::Run)?;
        Ok(Self { engine: Arc::new(engine), doubts })
    }
}

/// Scores a batch, and says how long the engine worked on it.
fn timed(
    engine: &Engine,
    batch: &Batch,
    terms: &Terms,
) -> (Result<Report, plaudit::error::RunError>, Duration) {
    let rollouts = batch.rollouts();
    let began = Instant::now();
    let report = engine.score_on(&rollouts, terms);
    let seconds = began.elapsed();
    (report.map(|report| batch.complete(engine, report)), seconds)
}

/// A thread for one call.
fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let thread = std::thread::Builder::new().name("plaudit-call".to_owned());
    thread
        .spawn(work)
        .map(drop)
        .map_err(|error| failure::value(format_args!("no thread can be started: {error}")))
}

/// Tells Python that a call is over; where the interpreter is going away, nobody listens any more.
fn finish(
    done: &Py<PyAny>,
    engine: &Engine,
    batch: Arc<Batch>,
    report: Result<Report, plaudit::error::RunError>,
    began: Instant,
) {
    let seconds = began.elapsed();
    let report = report.map(|report| batch.complete(engine, report));
    Python::try_attach(|py| {
        let called = match report {
            Ok(report) => done.call1(py, (Scores { report: Arc::new(report), batch, seconds }, py.None())),
            Err(stopped) => done.call1(py, (py.None(), failure::run(py, &stopped))),
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
