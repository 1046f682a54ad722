//! How do Python callers hand in one rollout each? Every answer is told once: to a function of the caller's, or into a
//! mailbox, whose owner is woken once and takes all that has come.

use crate::engine::PyEngine;
use crate::error;
use crate::report::json;
use crate::value::{from_value, to_map, to_value};
use plaudit::join::{Arrival, Join, Joined, Policy};
use plaudit::rollout::{Prompt, Rollout};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyTuple;
use serde_json::Value;
use std::borrow::Cow;
use std::mem;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// A join and how it waits.
#[pyclass(frozen, name = "Join", module = "plaudit._plaudit")]
pub(crate) struct PyJoin {
    join: Join,
    policy: Policy,
    /// Held by every rollout that is not answered yet, as by the calls of its engine.
    busy: Weak<()>,
    notifier: OnceLock<Sender<Notice>>,
}

/// What the notifier says, and to whom.
enum Notice {
    Result(Py<PyAny>, Joined),
    Wake(Arc<Completions>),
}

/// Where the answers to many callers come in, each under the number that its rollout was handed in with.
#[pyclass(frozen, module = "plaudit._plaudit")]
pub(crate) struct CompletionQueue {
    join: Py<PyJoin>,
    completions: Arc<Completions>,
}

/// What has come and was not taken yet, and what wakes the one who takes it.
struct Completions {
    wake: Py<PyAny>,
    come: Mutex<Vec<(u64, Joined)>>,
}

impl Completions {
    fn come(&self) -> MutexGuard<'_, Vec<(u64, Joined)>> {
        self.come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer in, and says whether it is the first since all were taken.
    fn put(&self, number: u64, joined: Joined) -> bool {
        let mut come = self.come();
        come.push((number, joined));
        come.len() == 1
    }
}

#[pymethods]
impl PyJoin {
    #[new]
    fn new(
        py: Python<'_>,
        engine: &PyEngine,
        timeout: Option<f64>,
        quiet: Option<f64>,
        remember: Option<usize>,
    ) -> PyResult<Self> {
        let busy = Arc::downgrade(&engine.busy(py)?);
        let mut policy = Policy::of(engine.engine.plan());
        if let Some(timeout) = timeout {
            policy.timeout = seconds("timeout", timeout)?;
        }
        if let Some(quiet) = quiet {
            policy.quiet = Some(seconds("quiet", quiet)?);
        }
        if let Some(remember) = remember {
            policy.remember = remember;
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

    /// Everything that has been scored so far, as JSON.
    fn statistics(&self) -> PyResult<String> {
        serde_json::to_string(&self.join.statistics()).map_err(error::value)
    }

    /// Ends a step of the training, as JSON.
    fn take_step(&self, step: u64) -> PyResult<String> {
        serde_json::to_string(&self.join.take_step(step)).map_err(error::value)
    }

    /// The step that ended last, as JSON.
    fn last_step(&self) -> PyResult<Option<String>> {
        self.join.last_step().map(|step| serde_json::to_string(&step).map_err(error::value)).transpose()
    }

    /// Hands one rollout in. `done` gets the fields of the answer and nothing else, on another thread.
    #[pyo3(signature = (done, group, size, member, timeout, validate, prompt, response, reference, tokens, extra))]
    #[allow(clippy::too_many_arguments, reason = "the fields of a rollout")]
    fn submit(
        &self,
        done: Py<PyAny>,
        group: String,
        size: usize,
        member: Option<String>,
        timeout: Option<f64>,
        validate: Option<bool>,
        prompt: Option<&Bound<'_, PyAny>>,
        response: PyBackedStr,
        reference: Option<PyBackedStr>,
        tokens: Option<u64>,
        extra: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let rollout = read(member.as_deref(), prompt, &response, reference, tokens, extra)?;
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        let (notifier, busy) = (self.notifier(), self.busy.upgrade());
        // With the lock, because this takes microseconds, and whoever gives the lock away waits milliseconds to get it back.
        // Where nobody tells any more, Python is going away.
        self.join.hand_in(Arrival { group, member, size, timeout, validate, rollout }, move |joined| {
            let _ = notifier.send(Notice::Result(done, joined));
            drop(busy);
        });
        Ok(())
    }

    /// A mailbox for answers. `wake` is called without arguments, on another thread, when there is something to take.
    fn completion_queue(slf: Py<Self>, wake: Py<PyAny>) -> CompletionQueue {
        CompletionQueue { join: slf, completions: Arc::new(Completions { wake, come: Mutex::default() }) }
    }

    fn leave(&self, py: Python<'_>, group: &str, member: Option<&str>) {
        py.detach(|| self.join.leave(group, member));
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
    /// Hands one rollout in for training; its answer comes under this number.
    #[pyo3(signature = (number, group, size, member, prompt, response, reference, tokens, extra))]
    #[allow(clippy::too_many_arguments, reason = "the fields of a rollout")]
    fn submit(
        &self,
        number: u64,
        group: String,
        size: usize,
        member: Option<String>,
        prompt: Option<&Bound<'_, PyAny>>,
        response: PyBackedStr,
        reference: Option<PyBackedStr>,
        tokens: Option<u64>,
        extra: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let rollout = read(member.as_deref(), prompt, &response, reference, tokens, extra)?;
        let arrival = Arrival { group, member, size, timeout: None, validate: Some(false), rollout };
        let join = self.join.get();
        let (notifier, completions) = (join.notifier(), Arc::clone(&self.completions));
        let busy = join.busy.upgrade();
        join.join.hand_in(arrival, move |joined| {
            if completions.put(number, joined) {
                let _ = notifier.send(Notice::Wake(completions));
            }
            drop(busy);
        });
        Ok(())
    }

    /// The answers that have come, each with its number: the fields of the answer, or what went wrong with it.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u64, Bound<'py, PyAny>)>> {
        let come = mem::take(&mut *self.completions.come());
        let told = come.iter().map(|(number, joined)| match fields(py, joined) {
            Ok(fields) => Ok((*number, fields.into_any())),
            Err(error) => Ok((*number, error.into_pyobject(py)?.into_any())),
        });
        told.collect()
    }
}

impl PyJoin {
    fn notifier(&self) -> Sender<Notice> {
        self.notifier.get_or_init(notifier).clone()
    }
}

fn read(
    member: Option<&str>,
    prompt: Option<&Bound<'_, PyAny>>,
    response: &str,
    reference: Option<PyBackedStr>,
    tokens: Option<u64>,
    extra: Option<&Bound<'_, PyAny>>,
) -> PyResult<Rollout<'static>> {
    let mut rollout = Rollout::new(Cow::Owned(response.to_owned()));
    rollout.id = member.map(|member| Cow::Owned(member.to_owned()));
    rollout.prompt = asked(prompt)?;
    rollout.reference = reference.map(|reference| Cow::Owned(reference.to_string()));
    rollout.tokens = tokens;
    if let Some(extra) = extra {
        rollout.extra = to_map(extra, &|| "extra".to_owned())?;
    }
    Ok(rollout)
}

fn seconds(name: &str, given: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| error::value(format_args!("{name}: {given} is no time to wait")))
}

/// A prompt: text, messages, or nothing.
pub(crate) fn asked(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Prompt<'static>>> {
    match given.map(|prompt| to_value(prompt, &|| "prompt".to_owned())).transpose()? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(Prompt::Text(Cow::Owned(text)))),
        Some(Value::Array(messages)) if messages.iter().all(Value::is_object) => {
            Ok(Some(Prompt::Messages(messages)))
        }
        Some(_) => Err(error::value("prompt: text or a list of messages is wanted")),
    }
}

/// A thread that tells callers their answers, all that there are at a time: a thread that wants the interpreter's lock waits
/// for it some milliseconds, and a group has many members. It ends with the last one who could send to it.
fn notifier() -> Sender<Notice> {
    let (tell, told) = mpsc::channel::<Notice>();
    let thread = std::thread::Builder::new().name("plaudit-notify".to_owned());
    let _ = thread.spawn(move || {
        while let Ok(first) = told.recv() {
            let news: Vec<Notice> = std::iter::once(first).chain(told.try_iter()).collect();
            let told = Python::try_attach(|py| news.iter().for_each(|each| tell_one(py, each)));
            if told.is_none() {
                return;
            }
        }
    });
    tell
}

fn tell_one(py: Python<'_>, news: &Notice) {
    let (told, called) = match news {
        Notice::Wake(completions) => (&completions.wake, completions.wake.call0(py)),
        Notice::Result(done, joined) => (
            done,
            match fields(py, joined) {
                Ok(fields) => done.call1(py, (fields, py.None())),
                Err(error) => done.call1(py, (py.None(), error)),
            },
        ),
    };
    if let Err(error) = called {
        error.write_unraisable(py, Some(told.bind(py)));
    }
}

/// The fields of a result, in the order in which the package's own class has them.
fn fields<'py>(py: Python<'py>, joined: &Joined) -> PyResult<Bound<'py, PyTuple>> {
    let row = joined.row();
    let (total, outcome, reason, components, info) = crate::report::fields(py, &joined.report, row)?;
    let totals: Vec<Option<f64>> = std::iter::once(total).chain(joined.siblings()).collect();
    let result = (
        total,
        outcome,
        reason,
        components,
        info,
        joined.group_size,
        joined.partial,
        joined.late,
        joined.duplicate,
        joined.waited.as_secs_f64(),
        joined.siblings_mean(),
        totals,
    );
    result.into_pyobject(py)
}
