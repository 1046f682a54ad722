//! The extension behind the Python package: conversions and exceptions, nothing else. What users see is in `python/plaudit`.

// A test harness of this crate would have to be linked with libpython, and there is nothing in it: pytest tests the extension.
#![cfg(not(test))]

mod abort;
mod batch;
mod custom;
mod engine;
mod error;
mod instructions;
mod join;
mod journals;
mod judges;
mod math;
mod parallel;
mod report;
mod reward;
mod sandbox;
mod text;
mod value;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Rows are made on many threads at once, which the system's allocator slows down. Python's own memory is not touched.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the command and gives back its exit code. `import_module` imports a module for `--import`, or returns why it cannot.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, import_module: Py<PyAny>) -> u8 {
    let import = |name: &str| {
        let why = Python::attach(|py| import_module.call1(py, (name,))?.extract::<Option<String>>(py));
        why.unwrap_or_else(|error| Some(error.to_string())).map_or(Ok(()), Err)
    };
    py.detach(|| plaudit_cli::main(arguments, Some(&import)))
}

#[pymodule]
mod _plaudit {
    use super::error::argument_error;
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_export]
    use super::abort::{PyAbortCounter, abort_advice};
    #[pymodule_export]
    use super::batch::{misfit, read_columns, read_rollout};
    #[pymodule_export]
    use super::custom::register;
    #[pymodule_export]
    use super::engine::{Call, PyEngine, replay};
    #[pymodule_export]
    use super::error::{PlauditError, RecipeError, RunError};
    #[pymodule_export]
    use super::instructions::{
        instructions_check_many, instructions_constraints, instructions_explain, instructions_register,
    };
    #[pymodule_export]
    use super::join::{CompletionQueue, PyJoin};
    #[pymodule_export]
    use super::journals::check_state;
    #[pymodule_export]
    use super::judges::Judges;
    #[pymodule_export]
    use super::main;
    #[pymodule_export]
    use super::math::{math_explain, math_extract, math_verify_many};
    #[pymodule_export]
    use super::report::{PyReport, fill_with_group_means};
    #[pymodule_export]
    use super::reward::{PyReward, aggregate, recipes, reward_traits, rewards};
    #[pymodule_export]
    use super::sandbox::{PySandbox, sandbox_program, sandbox_report};
    #[pymodule_export]
    use super::text::{response_of, strip_end_of_turn};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// `abort_after` where nothing is said.
    #[pymodule_export]
    const ABORT_AFTER: u32 = plaudit::abort::DEFAULT;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("REFERENCE_FIELDS", PyTuple::new(module.py(), plaudit::rollout::REFERENCE_FIELDS)?)?;
        module.add(
            "RUBRIC_FIELDS",
            PyTuple::new(module.py(), plaudit::rubric::columns().collect::<Vec<_>>())?,
        )?;
        module.add("ArgumentError", argument_error(module.py())?)
    }
}
