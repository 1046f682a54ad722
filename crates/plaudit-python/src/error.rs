//! What is raised? Python's own exceptions for wrong arguments, and the package's for recipes and runs.

use plaudit::error::RunError as Stopped;
use plaudit::recipe::RecipeErrors;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(plaudit, PlauditError, PyException, "What plaudit raises; the base of the others.");
create_exception!(
    plaudit,
    RecipeError,
    PlauditError,
    "A recipe that cannot be loaded. `mistakes` lists everything that is wrong with it."
);
create_exception!(plaudit, RunError, PlauditError, "A run that could not be done. `code` is stable.");

/// Everything that is wrong with a recipe, as one exception.
pub(crate) fn recipe(py: Python<'_>, mistakes: RecipeErrors, lines: bool) -> PyErr {
    // What came as a dict has no lines.
    let mistakes = if lines { mistakes } else { mistakes.without_lines() };
    let error = RecipeError::new_err(mistakes.to_string());
    let list = PyList::empty(py);
    let told = || -> PyResult<()> {
        for mistake in mistakes {
            let dict = PyDict::new(py);
            dict.set_item("code", mistake.code)?;
            dict.set_item("path", mistake.path)?;
            dict.set_item("line", mistake.line)?;
            dict.set_item("message", mistake.message)?;
            dict.set_item("fix", mistake.fix)?;
            list.append(dict)?;
        }
        error.value(py).setattr("mistakes", list)
    };
    match told() {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// A run that could not be done.
pub(crate) fn run(py: Python<'_>, stopped: &Stopped) -> PyErr {
    coded(py, stopped.code(), stopped.to_string())
}

/// A run that could not be done, by its code.
pub(crate) fn coded(py: Python<'_>, code: &str, message: String) -> PyErr {
    let error = RunError::new_err(message);
    match error.value(py).setattr("code", code) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// An argument that does not fit.
pub(crate) fn value(message: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}
