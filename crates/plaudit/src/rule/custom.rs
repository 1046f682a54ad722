//! Custom rewards: a function of the caller's, registered under a name, which scores many groups in one call.

use super::{ParamError, Properties, Range, RuleInput};
use crate::outcome::Outcome;
use crate::question::AskJudge;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A loaded custom reward, with the parameters of one component.
pub trait Custom: Send + Sync {
    /// The range, the floor and the limits: by default any number, and the floor 0 for responses that are too long.
    fn properties(&self) -> Properties {
        let range = Range::new(f64::NEG_INFINITY, f64::INFINITY);
        Properties { floor: 0.0, ..Properties::new(range) }
    }

    /// Whether it compares the members of a group, and so needs the group whole.
    fn compares(&self) -> bool;

    /// Scores the members of some groups: one list per group, one outcome per member, in their order. An error is an
    /// outcome of the rollouts that it concerns; so is a call that takes longer than its timeout. A floored outcome gets
    /// the floor of its component.
    fn score(&self, groups: &[Vec<RuleInput<'_>>], call: &CustomCall) -> Vec<Vec<Outcome>>;
}

/// What a custom reward is called with beside its rollouts.
pub struct CustomCall {
    /// How long a call may take.
    pub timeout: Duration,
    /// Asks the judges of the recipe; none where it has none.
    pub judges: Option<Arc<dyn AskJudge>>,
}

impl fmt::Debug for CustomCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CustomCall").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Loads a custom reward from parameters that its schema allows.
pub type CustomBuild = Box<dyn Fn(Value) -> Result<Box<dyn Custom>, Vec<ParamError>> + Send + Sync>;

/// The registration of a custom reward.
pub struct CustomKind {
    /// The name in recipes.
    pub name: String,
    /// What it scores; the first line is a summary.
    pub page: String,
    /// The JSON schema of its parameters.
    pub schema: Value,
    /// Loads it.
    pub build: CustomBuild,
}

impl fmt::Debug for CustomKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CustomKind").field("name", &self.name).finish_non_exhaustive()
    }
}
