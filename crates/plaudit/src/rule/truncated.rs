//! `truncated`: a penalty for responses that were cut off by the limit on their length.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::FinishReason;
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::Code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for a response that was cut off; 0 for one that ended by itself.
///
/// ## What it scores
/// `value` where the rollout's `finish_reason` is `length` or its `truncated` is true, else 0. A rollout of which it is not
/// known why it ended is skipped.
///
/// ## When to use it
/// Where the trainer tells how a generation ended: a response that was cut off has no end, whatever its length. As a gate
/// (`gate: { min: 0.0, total: -1.0 }`) nothing else is asked of such a rollout, no judge either. `dapo.overlong` and
/// `total_length` grow before the limit and need the number of tokens instead.
///
/// ## How it can be gamed
/// An agent that is cut off by the limit on turns or on time has another `finish_reason`, and is not told here: see
/// `turn_count`. It only ever punishes length.
///
/// ## Example
/// ```yaml
/// ended: { reward: truncated, weight: 1.0, value: -1.0, gate: { min: 0.0, total: -1.0 } }
/// ```
///
/// ## References
/// None; the words of `finish_reason` are those of OpenAI's API, vLLM and SGLang.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Truncated {
    /// What a response that was cut off gets: below 0.
    pub value: f64,
}

impl Default for Truncated {
    fn default() -> Self {
        Self { value: -1.0 }
    }
}

impl Reward<Rule> for Truncated {
    const NAME: &'static str = "truncated";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let sensible = self.value.is_finite() && self.value < 0.0;
        ParamError::check(sensible, "value", "must be below 0: what ended by itself gets 0")?;
        Ok(Rule::each(Range::new(self.value, 0.0), move |sample| self.score(sample)).any_length(true))
    }
}

impl Truncated {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let reason =
            sample.generation.finish_reason.ok_or_else(|| Outcome::skipped(Code::MissingFinishReason))?;
        let value = if reason == FinishReason::Length { self.value } else { 0.0 };
        Ok(Outcome::scored(value, Info::of([("finish_reason", Fact::Word(reason.as_str()))])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::Generation;
    use crate::rule::test_util::{TestRollout, one, rejected};
    use serde_json::json;

    #[test]
    fn only_the_limit_on_length_cuts_off() {
        let ended = |finish_reason: Option<FinishReason>| {
            let generation = finish_reason.map_or_else(Generation::default, Generation::from);
            one::<Truncated>(json!({"value": -0.5}), TestRollout { generation, ..TestRollout::default() })
        };
        assert_eq!(ended(Some(FinishReason::Length)).value(), Some(-0.5));
        for other in [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Other] {
            assert_eq!(ended(Some(other)).value(), Some(0.0));
        }
        assert_eq!(ended(None), Outcome::skipped(Code::MissingFinishReason));
        assert_eq!(rejected::<Truncated>(json!({"value": 0.0})), ["value"]);
    }
}
