//! What was wrong with the input? Every bad line is counted, and the first few are told one by one.

use crate::talk::Talk;
use plaudit::input::InputError;
use std::collections::BTreeMap;

/// How many bad lines are told one by one.
const TOLD: u64 = 20;

/// The usage of the lines of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// How many lines were read, blank ones included.
    pub(crate) lines: u64,
    bad: BTreeMap<&'static str, u64>,
    count: u64,
    /// Whether other names of fields have been proposed.
    hinted: bool,
}

impl Ledger {
    /// Of nothing read.
    pub(crate) fn new() -> Self {
        Self { lines: 0, bad: BTreeMap::new(), count: 0, hinted: false }
    }

    /// Takes a bad line in.
    pub(crate) fn bad(&mut self, talk: &Talk, noun: &str, number: u64, error: &InputError) {
        self.count += 1;
        *self.bad.entry(error.code).or_insert(0) += 1;
        if self.count <= TOLD {
            talk.error(&format!("{noun} {number}: {error}"));
        }
        if !error.renames.is_empty() && !self.hinted {
            self.hinted = true;
            let flags = error.renames.iter().map(|(field, name)| format!(" --field {field}={name}"));
            talk.hint(&format!("try{}", flags.collect::<String>()));
        }
        if self.count == TOLD {
            talk.error("further bad lines are only counted");
        }
    }

    /// How many lines are bad.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// How many lines are bad, by code.
    pub(crate) fn by_code(&self) -> &BTreeMap<&'static str, u64> {
        &self.bad
    }
}
