//! How does Python reach the engine? Conversions and exceptions, nothing else; what users see is in `python/plaudit`.

// A test harness of this crate would have to be linked with libpython, and there is nothing in it: pytest tests the extension.
#![cfg(not(test))]

mod core;
mod custom;
mod failure;
mod folders;
mod meeting;
mod rollouts;
mod scores;
mod single;
mod texts;
mod value;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command and gives back its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| plaudit_cli::main(arguments))
}

#[pymodule]
mod _plaudit {
    #[pymodule_export]
    use super::core::{Call, Core};
    #[pymodule_export]
    use super::custom::register;
    #[pymodule_export]
    use super::failure::{PlauditError, RecipeError, RunError};
    #[pymodule_export]
    use super::folders::check_state;
    #[pymodule_export]
    use super::main;
    #[pymodule_export]
    use super::meeting::{Mailbox, Meeting};
    #[pymodule_export]
    use super::scores::Scores;
    #[pymodule_export]
    use super::single::{Single, aggregate, recipes, rewards};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
