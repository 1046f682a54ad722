//! `CliError`: why a command could not be carried out.

use crate::interrupt::Stopped;
use plaudit::error::RunError;
use plaudit::input::InputError;
use plaudit::journal::JournalError;
use plaudit::recipe::RecipeErrors;
use plaudit_serve::error::write_errors;
use std::fmt;
use std::io;

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The recipe has errors.
    Recipe(RecipeErrors),
    /// Arguments that turn out wrong when they are used.
    Arguments(String),
    /// The input as a whole cannot be read.
    Input(String, InputError),
    /// A file could not be opened, read or written.
    File(String, io::Error),
    /// The reader of the output closed it, which is no error for the user.
    Closed,
    /// A signal stopped the run.
    Stopped(Stopped),
    /// The engine could not score.
    Run(RunError),
    /// Nothing in the input can be scored, and why.
    NothingScored(String),
    /// The state folder cannot be used.
    State(JournalError),
}

impl CliError {
    /// An error from writing; a closed pipe is `Closed`.
    pub(crate) fn writing(name: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::File(name.to_owned(), error),
        }
    }

    /// The stable code, for a caller that is a program.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Recipe(_) => "recipe.invalid",
            Self::Arguments(_) => "run.arguments",
            Self::Input(..) | Self::File(..) | Self::Closed => "run.file",
            Self::Stopped(_) => "run.stopped",
            Self::Run(error) => error.code(),
            Self::NothingScored(_) => "run.nothing_scored",
            Self::State(error) => error.code(),
        }
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        Self::State(error)
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<RecipeErrors> for CliError {
    fn from(errors: RecipeErrors) -> Self {
        Self::Recipe(errors)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe(errors) => write_errors(out, "recipe", errors),
            Self::Arguments(message) | Self::NothingScored(message) => out.write_str(message),
            Self::Input(name, error) => write!(out, "{name:?}: {error}"),
            Self::File(name, error) => write!(out, "{name:?}: {error}"),
            Self::Stopped(stopped) => write!(out, "{stopped}"),
            Self::Closed => out.write_str("the output was closed"),
            Self::Run(error) => write!(out, "{error}"),
            Self::State(error) => write!(out, "{error}"),
        }
    }
}
