//! The counter behind `abort_after`, for the adapters of trainers.

use crate::error;
use plaudit::abort::{Abort, AbortAfter, AbortCounter};
use pyo3::prelude::*;

/// Counts the steps of a run that have no valid rollout.
#[pyclass(name = "AbortCounter", module = "plaudit._plaudit")]
pub(crate) struct PyAbortCounter(AbortCounter);

#[pymethods]
impl PyAbortCounter {
    /// `after` is a number of steps as text, or `never`.
    #[new]
    fn new(after: &str) -> PyResult<Self> {
        let after: AbortAfter =
            after.parse().map_err(|wrong| error::argument(format!("abort_after: {wrong}")))?;
        Ok(Self(AbortCounter::new(after)))
    }

    /// Counts a step: whether any rollout was scored, and the code, the message and the number of what has no total. Returns the
    /// code and the sentence where the run is to end.
    fn observe(
        &mut self,
        any_scored: bool,
        failures: Vec<(String, String, u64)>,
    ) -> Option<(String, String)> {
        let failures = failures.iter().map(|(code, message, count)| (&**code, (&**message).into(), *count));
        let abort = self.0.observe(any_scored, failures)?;
        let sentence = abort.to_string();
        Some((abort.code, sentence))
    }
}

/// What the rows have, where something of them is missing; `rename` says how COLUMN becomes the reference.
#[pyfunction]
pub(crate) fn abort_advice(code: String, names: Vec<String>, rename: &str) -> Option<String> {
    let abort = Abort { steps: 1, code, message: String::new(), can_heal: false };
    abort.advice(names.iter().map(String::as_str), rename)
}
