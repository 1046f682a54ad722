//! The `judges` and `validation` sections of a recipe.

pub use crate::judge::config::{AddressConfig, BudgetConfig, BudgetPeriod, FormatConfig, JudgeConfig, Price};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens beside training.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// Whether the reference takes part in comparisons: `include` or `ignore`.
    pub reference: ReferencePart,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self { reference: ReferencePart::Ignore }
    }
}

/// What part the reference has in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReferencePart {
    /// It joins each group, and every rollout is told whether it beats it.
    Include,
    /// It takes no part.
    Ignore,
}
