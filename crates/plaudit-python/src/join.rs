//! The join for Python callers, who hand in one rollout each. Every result is delivered exactly once: to a callback of the
//! caller's, or into a completion queue, whose owner is woken once and takes all results that have come.

use crate::batch::{self, Fields};
use crate::engine::PyEngine;
use crate::error;
use crate::report;
use crate::value::{from_value, json};
use plaudit::join::{Arrival, Join, Joined, Policy};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::mem;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A join and its policy.
#[pyclass(frozen, name = "Join", module = "plaudit._plaudit")]
pub(crate) struct PyJoin {
    join: Join,
    policy: Policy,
    /// Held by every rollout that has no result yet, as by the calls of the engine.
    busy: Weak<()>,
    notifier: OnceLock<Sender<Notice>>,
}

/// What the notifier thread calls.
enum Notice {
    /// A callback, with its result.
    Result(Py<PyAny>, Joined),
    /// The owner of a completion queue.
    Wake(Arc<Completions>),
}

/// The results of many rollouts, each under the number that its caller gave it.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct CompletionQueue {
    join: Py<PyJoin>,
    completions: Arc<Completions>,
}

/// Results that were not taken yet, and the callback that wakes whoever takes them.
struct Completions {
    wake: Py<PyAny>,
    results: Mutex<Vec<(u64, Joined)>>,
}

impl Completions {
    fn results(&self) -> MutexGuard<'_, Vec<(u64, Joined)>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a result. Returns whether it is the first since all were taken.
    fn push(&self, number: u64, joined: Joined) -> bool {
        let mut results = self.results();
        results.push((number, joined));
        results.len() == 1
    }
}

#[pymethods]
impl PyJoin {
    #[new]
    fn new(
        py: Python<'_>,
        engine: &PyEngine,
        timeout: Option<&Bound<'_, PyAny>>,
        quiet: Option<&Bound<'_, PyAny>>,
        remember: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let busy = Arc::downgrade(&engine.busy(py)?);
        let mut policy = Policy::of(engine.engine.plan());
        if let Some(timeout) = timeout {
            policy.timeout = batch::seconds("timeout", timeout)?;
        }
        if let Some(quiet) = quiet {
            policy.quiet = Some(batch::seconds("quiet", quiet)?);
        }
        if let Some(remember) = remember {
            policy.remember = batch::size("remember", remember)?;
        }
        Ok(Self { join: Join::with(&engine.engine, policy), policy, busy, notifier: OnceLock::new() })
    }

    #[getter]
    fn timeout(&self) -> f64 {
        self.policy.timeout.as_secs_f64()
    }

    #[getter]
    fn quiet(&self) -> Option<f64> {
        self.policy.quiet.map(|quiet| quiet.as_secs_f64())
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &json(&self.join.status())?)
    }

    /// The statistics of everything that was scored, as JSON.
    fn statistics(&self) -> PyResult<String> {
        serde_json::to_string(&self.join.statistics()).map_err(error::argument)
    }

    /// Ends a step of the training and returns its statistics, as JSON.
    fn take_step(&self, step: &Bound<'_, PyAny>) -> PyResult<String> {
        let step = batch::size("step", step)? as u64;
        serde_json::to_string(&self.join.take_step(step)).map_err(error::argument)
    }

    /// The step that ended last, as JSON.
    fn last_step(&self) -> PyResult<Option<String>> {
        self.join.last_step().map(|step| serde_json::to_string(&step).map_err(error::argument)).transpose()
    }

    /// Hands one rollout in. `done` is called on another thread, with the fields of the result or an error.
    #[allow(clippy::too_many_arguments, reason = "what the caller says of a rollout")]
    fn submit(
        &self,
        done: Py<PyAny>,
        group: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        member: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
        validate: Option<&Bound<'_, PyAny>>,
        fields: Fields<'_>,
    ) -> PyResult<()> {
        let mut arrival = arrival(group, size, member, &fields)?;
        arrival.timeout = timeout.map(|timeout| batch::seconds("timeout", timeout)).transpose()?;
        arrival.validate = batch::flag("validate", validate)?;
        let (notifier, busy) = (self.notifier(), self.busy.upgrade());
        // Without releasing the interpreter's lock: this takes microseconds, and getting the lock back milliseconds.
        self.join.hand_in(arrival, move |joined| {
            // The receiver is gone only where the interpreter is.
            let _ = notifier.send(Notice::Result(done, joined));
            drop(busy);
        });
        Ok(())
    }

    /// A completion queue. `wake` is called without arguments, on another thread, when there is something to take.
    fn completion_queue(slf: Py<Self>, wake: Py<PyAny>) -> CompletionQueue {
        let completions = Arc::new(Completions { wake, results: Mutex::default() });
        CompletionQueue { join: slf, completions }
    }

    fn leave(
        &self,
        py: Python<'_>,
        group: &Bound<'_, PyAny>,
        member: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let group = batch::name("group", group)?;
        let member = member.map(|member| batch::name("member", member)).transpose()?;
        py.detach(|| self.join.leave(&group, member.as_deref()));
        Ok(())
    }

    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.join.flush());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.join.close());
    }
}

#[pymethods]
impl CompletionQueue {
    /// Hands one rollout in for training. Its result comes under this number.
    fn submit(
        &self,
        number: u64,
        group: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        member: Option<&Bound<'_, PyAny>>,
        fields: Fields<'_>,
    ) -> PyResult<()> {
        let mut arrival = arrival(group, size, member, &fields)?;
        arrival.validate = Some(false);
        let join = self.join.get();
        let (notifier, completions) = (join.notifier(), Arc::clone(&self.completions));
        let busy = join.busy.upgrade();
        join.join.hand_in(arrival, move |joined| {
            if completions.push(number, joined) {
                let _ = notifier.send(Notice::Wake(completions));
            }
            drop(busy);
        });
        Ok(())
    }

    /// Takes the results that have come, each with its number: the fields of the result, or an exception.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u64, Bound<'py, PyAny>)>> {
        let results = mem::take(&mut *self.completions.results());
        let taken = results.iter().map(|(number, joined)| match result_fields(py, joined) {
            Ok(fields) => Ok((*number, fields.into_any())),
            Err(error) => Ok((*number, error.into_pyobject(py)?.into_any())),
        });
        taken.collect()
    }
}

impl PyJoin {
    fn notifier(&self) -> Sender<Notice> {
        self.notifier.get_or_init(start_notifier).clone()
    }
}

fn arrival(
    group: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    member: Option<&Bound<'_, PyAny>>,
    fields: &Fields<'_>,
) -> PyResult<Arrival> {
    let member = member.map(|member| batch::name("member", member)).transpose()?;
    let mut rollout = batch::rollout(fields)?;
    rollout.id = member.clone().map(Into::into);
    let (group, size) = (batch::name("group", group)?, batch::size("size", size)?);
    Ok(Arrival { member, ..Arrival::new(group, size, rollout) })
}

/// Starts the thread that calls back into Python, with all results that there are at a time: a thread waits milliseconds for
/// the interpreter's lock, and a group has many members. It ends with the last sender.
fn start_notifier() -> Sender<Notice> {
    let (sender, receiver) = mpsc::channel::<Notice>();
    let thread = std::thread::Builder::new().name("plaudit-notify".to_owned());
    let _ = thread.spawn(move || {
        while let Ok(first) = receiver.recv() {
            let notices: Vec<Notice> = std::iter::once(first).chain(receiver.try_iter()).collect();
            let attached = Python::try_attach(|py| notices.iter().for_each(|notice| notify(py, notice)));
            if attached.is_none() {
                return;
            }
        }
    });
    sender
}

fn notify(py: Python<'_>, notice: &Notice) {
    let (callback, called) = match notice {
        Notice::Wake(completions) => (&completions.wake, completions.wake.call0(py)),
        Notice::Result(done, joined) => (
            done,
            match result_fields(py, joined) {
                Ok(fields) => done.call1(py, (fields, py.None())),
                Err(error) => done.call1(py, (py.None(), error)),
            },
        ),
    };
    if let Err(error) = called {
        error.write_unraisable(py, Some(callback.bind(py)));
    }
}

/// The fields of a result, in the order of the package's own class.
fn result_fields<'py>(py: Python<'py>, joined: &Joined) -> PyResult<Bound<'py, PyTuple>> {
    let (total, outcome, reason, components, info, correct, turn_rewards) =
        report::fields(py, &joined.report, joined.row())?;
    let totals: Vec<Option<f64>> = std::iter::once(total).chain(joined.siblings()).collect();
    let fields = [
        total.into_bound_py_any(py)?,
        outcome.into_bound_py_any(py)?,
        reason.into_bound_py_any(py)?,
        components.into_any(),
        info.into_any(),
        correct.into_bound_py_any(py)?,
        turn_rewards.into_bound_py_any(py)?,
        joined.group_size.into_bound_py_any(py)?,
        joined.partial.into_bound_py_any(py)?,
        joined.late.into_bound_py_any(py)?,
        joined.duplicate.into_bound_py_any(py)?,
        joined.waited.as_secs_f64().into_bound_py_any(py)?,
        joined.siblings_mean().into_bound_py_any(py)?,
        totals.into_bound_py_any(py)?,
    ];
    PyTuple::new(py, fields)
}
