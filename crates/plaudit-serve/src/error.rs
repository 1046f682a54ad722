//! Errors of the service as a whole: why it cannot start, or why a file of tokens cannot be used.

use plaudit::error::RunError;
use plaudit::journal::JournalError;
use plaudit::recipe::RecipeErrors;
use std::fmt;
use std::io;

/// Why the service cannot start or a token file cannot be used.
#[derive(Debug)]
pub enum ServeError {
    /// A recipe or the configuration has errors.
    Recipe(RecipeErrors),
    /// An argument or a file has the wrong content.
    Arguments(String),
    /// A file could not be opened, read or written, or an address could not be bound.
    File(String, io::Error),
    /// An engine could not be opened.
    Run(RunError),
    /// The journal cannot be used.
    Journal(JournalError),
}

impl ServeError {
    /// An error about a path.
    pub(crate) fn file(path: &std::path::Path, error: io::Error) -> Self {
        Self::File(path.display().to_string(), error)
    }
}

impl From<JournalError> for ServeError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<RunError> for ServeError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<RecipeErrors> for ServeError {
    fn from(errors: RecipeErrors) -> Self {
        Self::Recipe(errors)
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe(errors) => write_errors(out, "recipe", errors),
            Self::Arguments(message) => out.write_str(message),
            Self::File(name, error) => write!(out, "{name:?}: {error}"),
            Self::Run(error) => write!(out, "{error}"),
            Self::Journal(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Writes how many errors a file has (`what`: "recipe" or "configuration"), and each on a line of its own.
pub fn write_errors(out: &mut impl fmt::Write, what: &str, errors: &RecipeErrors) -> fmt::Result {
    match errors.as_slice() {
        [one] => write!(out, "the {what} has an error\n  {one}"),
        many => {
            write!(out, "the {what} has {} errors", many.len())?;
            many.iter().try_for_each(|error| write!(out, "\n  {error}"))
        }
    }
}
