//! The exceptions of the package: `PlauditError`, and below it `ArgumentError`, `RecipeError` and `RunError`.

use crate::value::{from_value, json};
use plaudit::error::RunError as EngineError;
use plaudit::reason::Reason;
use plaudit::recipe::RecipeErrors;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::fmt::Display;

create_exception!(plaudit, PlauditError, PyException, "The base of all exceptions of plaudit.");
create_exception!(
    plaudit,
    RecipeError,
    PlauditError,
    "A recipe that cannot be loaded. `errors` lists everything that is wrong with it."
);
create_exception!(plaudit, RunError, PlauditError, "A run that could not be done. `code` is stable.");

/// The type of `ArgumentError`, which has three bases: callers may catch it as plaudit's, or as Python's own.
pub(crate) fn argument_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = TYPE.get_or_try_init(py, || -> PyResult<Py<PyType>> {
        let bases =
            (py.get_type::<PlauditError>(), py.get_type::<PyTypeError>(), py.get_type::<PyValueError>());
        let attributes = PyDict::new(py);
        attributes.set_item("__module__", "plaudit")?;
        attributes
            .set_item("__doc__", "An argument that cannot be used. The message names it and its place.")?;
        let made = py.get_type::<PyType>().call1(("ArgumentError", bases, attributes))?;
        Ok(made.cast_into::<PyType>()?.unbind())
    });
    made.map(|made| made.bind(py))
}

/// An argument that cannot be used.
pub(crate) fn argument(message: impl Display) -> PyErr {
    Python::attach(|py| match argument_error(py) {
        Ok(kind) => PyErr::from_type(kind.clone(), message.to_string()),
        Err(error) => error,
    })
}

/// Everything that is wrong with a recipe, as one exception.
pub(crate) fn recipe(py: Python<'_>, errors: RecipeErrors, lines: bool) -> PyErr {
    // A recipe that came as a dict has no lines.
    let errors = if lines { errors } else { errors.without_lines() };
    let error = RecipeError::new_err(errors.to_string());
    let set = json(&errors).and_then(|errors| error.value(py).setattr("errors", from_value(py, &errors)?));
    set.err().unwrap_or(error)
}

/// A run that could not be done.
pub(crate) fn run(py: Python<'_>, error: &EngineError) -> PyErr {
    coded(py, error.code(), error.to_string())
}

/// A run that could not be done, by its code.
pub(crate) fn coded(py: Python<'_>, code: &str, message: String) -> PyErr {
    let error = RunError::new_err(message);
    let set = error.value(py).setattr("code", code);
    set.err().unwrap_or(error)
}

/// Why something of Python's cannot be read.
pub(crate) enum ReadError {
    /// Its text is not valid Unicode, or its turns are none: the rollout is invalid, and others are scored.
    Rollout(Reason),
    /// The caller's error.
    Argument(PyErr),
}

impl From<PyErr> for ReadError {
    fn from(error: PyErr) -> Self {
        Self::Argument(error)
    }
}

impl From<ReadError> for PyErr {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Rollout(reason) => argument(reason.message),
            ReadError::Argument(error) => error,
        }
    }
}
