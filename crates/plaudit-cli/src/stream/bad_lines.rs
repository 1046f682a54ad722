//! Bad input lines: counts them by error code and prints the first few.

use crate::console::Console;
use plaudit::input::InputError;
use std::collections::BTreeMap;

/// How many bad lines are printed one by one.
const MAX_PRINTED: u64 = 20;

/// The bad lines of a run.
#[derive(Debug, Default)]
pub(crate) struct BadLines {
    /// How many lines were read, blank ones included.
    pub(crate) lines: u64,
    /// How many lines are bad.
    pub(crate) count: u64,
    /// The same by code.
    pub(crate) by_code: BTreeMap<&'static str, u64>,
    /// Whether other names of fields have been proposed.
    hinted: bool,
}

impl BadLines {
    /// Counts a bad line, and prints it if it is among the first.
    pub(crate) fn bad(&mut self, console: &Console, noun: &str, number: u64, error: &InputError) {
        self.count += 1;
        *self.by_code.entry(error.code).or_insert(0) += 1;
        if self.count <= MAX_PRINTED {
            console.error(&format!("{noun} {number}: {error}"));
        }
        if !error.renames.is_empty() && !self.hinted {
            self.hinted = true;
            let flags = error.renames.iter().map(|(field, name)| format!(" --field {field}={name}"));
            console.hint(&format!("try{}", flags.collect::<String>()));
        }
        if self.count == MAX_PRINTED {
            console.error("further bad lines are only counted");
        }
    }
}
