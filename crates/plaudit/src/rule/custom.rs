//! How does a caller bring a reward of its own? A function under a name, which sees many groups at once.

use super::{ParamError, Range, Sample, Stated};
use crate::outcome::Outcome;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// A reward that is not the engine's own, with its parameters.
pub trait Custom: Stated {
    /// Whether it compares the members of a group, and so needs the group whole.
    fn compares(&self) -> bool;

    /// What it says of the members of some groups: one list a group, one outcome a member, in their order. Whatever goes
    /// wrong is an outcome of the rollouts that it touches; so is a call that takes longer than `timeout`.
    fn score(&self, groups: &[Vec<Sample<'_>>], timeout: Duration) -> Vec<Vec<Outcome>>;
}

/// Loads a custom reward from parameters that its schema allows.
pub type Build = Box<dyn Fn(Value) -> Result<Box<dyn Custom>, Vec<ParamError>> + Send + Sync>;

/// What is registered under a name.
pub struct CustomKind {
    /// The name in recipes.
    pub name: String,
    /// What it scores; the first line is a summary.
    pub page: String,
    /// The JSON schema of its parameters.
    pub schema: Value,
    /// Loads it.
    pub build: Build,
}

impl fmt::Debug for CustomKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CustomKind").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a custom reward states of itself where nothing is known: any number, and texts of any length.
#[derive(Debug, Clone, Copy)]
pub struct Unbounded;

impl Stated for Unbounded {
    fn range(&self) -> Range {
        Range::new(f64::NEG_INFINITY, f64::INFINITY)
    }

    fn floor(&self) -> f64 {
        0.0
    }

    fn any_length(&self) -> bool {
        true
    }
}
