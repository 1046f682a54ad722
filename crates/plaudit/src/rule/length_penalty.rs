//! `length_penalty`: a penalty for every character outside the length bounds.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for every character below the shortest or above the longest allowed length.
///
/// ## What it scores
/// The length L of the response in Unicode code points, white space included. Between `min_length` and `max_length`
/// the score is 0. A shorter response gets `-(min_length - L) * penalty_rate`, a longer one
/// `-(L - max_length) * penalty_rate`. The test for "too short" comes first.
///
/// ## When to use it
/// To keep a policy from answering with a word or with a novel. For a bounded penalty in tokens, see `total_length`.
///
/// ## How it can be gamed
/// Characters are cheap: filler brings a short response over `min_length`. It has no lower bound, so one endless
/// response can outweigh every other component; `total_length` cannot.
///
/// ## Example
/// ```yaml
/// length: { reward: length_penalty, weight: 1.0, min_length: 10, max_length: 4000, penalty_rate: 0.001 }
/// ```
///
/// ## References
/// RM-Gallery `length_penalty`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LengthPenalty {
    /// The shortest length without a penalty, in characters.
    pub min_length: u64,
    /// The longest length without a penalty, in characters.
    pub max_length: u64,
    /// The penalty for each character outside. A negative rate makes it a bonus.
    pub penalty_rate: f64,
    /// Which part of the response is counted.
    pub scope: Scope,
}

impl Default for LengthPenalty {
    fn default() -> Self {
        Self { min_length: 10, max_length: 1000, penalty_rate: 0.01, scope: Scope::Final }
    }
}

impl Reward<Rule> for LengthPenalty {
    const NAME: &'static str = "length_penalty";
    const ALIASES: &'static [&'static str] = &["length"];
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let range = match self.penalty_rate {
            rate if rate > 0.0 => Range::new(f64::NEG_INFINITY, 0.0),
            rate if rate < 0.0 => Range::new(0.0, f64::INFINITY),
            _ => Range::new(0.0, 0.0),
        };
        // The floor is never used, because responses of any length are scored.
        Ok(Rule::each(range, move |sample| self.score(sample)).floor(0.0).any_length(true))
    }
}

impl LengthPenalty {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let length = self.scope.view(sample.text).chars() as u64;
        let outside = if length < self.min_length {
            self.min_length - length
        } else {
            length.saturating_sub(self.max_length)
        };
        Outcome::scored(-(outside as f64) * self.penalty_rate, Info::of([("length", Fact::Count(length))]))
    }
}
