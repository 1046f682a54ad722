//! `total_length`: a bounded penalty on responses close to and above the length limit.

use super::length::{self, Unit};
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use crate::tokenizer::{CounterParams, Tokenizer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty that grows over the last stretch before the longest allowed length.
///
/// ## What it scores
/// With the length L of the whole response, 0 up to `max - band`, `(max - band - L) / band` up to `max`, and -1
/// beyond. L is the rollout's own token count where `unit` is `token`; a rollout without one is counted by the
/// tokenizer that `tokenizer_type` names, and skipped where none is named.
///
/// ## When to use it
/// Beside a reward for quality, to keep responses from growing until they are cut off: a policy feels the slope
/// before it meets the wall. Set `max` to the generation limit of the trainer. `dapo.overlong` has the variants of
/// the trainers; `length_penalty` has no bound.
///
/// ## How it can be gamed
/// It only ever punishes length: an empty response is safe from it. In characters or words it counts what no token
/// limit sees, such as one endless word.
///
/// ## Example
/// ```yaml
/// total_length: { reward: total_length, weight: 1.0, max: 4096, band: 1024, unit: token }
/// ```
///
/// ## References
/// Yu et al., DAPO (arXiv 2503.14476), equation 13.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TotalLength {
    /// The longest allowed length.
    pub max: u64,
    /// Over how much of the end of the allowed length the penalty grows; 0 makes it a step. At most `max`.
    pub band: u64,
    /// What is counted.
    pub unit: Unit,
    /// Which part of the response is counted, where the trainer's own count is not taken.
    pub scope: Scope,
    /// The tokenizer for rollouts without a token count.
    #[serde(flatten)]
    pub counter: CounterParams,
}

impl Default for TotalLength {
    fn default() -> Self {
        Self {
            max: 4096,
            band: 1024,
            unit: Unit::Token,
            scope: Scope::Final,
            counter: CounterParams::default(),
        }
    }
}

impl Reward<Rule> for TotalLength {
    const NAME: &'static str = "total_length";
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let message = "the band is a part of the allowed length: at most max";
        let banded = ParamError::check(self.band <= self.max, "band", message);
        let counter = ParamError::gather([banded], self.counter.load(cache))?;
        let by_token = self.unit == Unit::Token;
        let any_length = !by_token || counter.as_ref().is_none_or(Tokenizer::is_unlimited);
        let needs_tokens = by_token && counter.is_none();
        let range = Range::new(-1.0, 0.0);
        let rule = Rule::each(range, move |sample| self.score(counter.as_ref(), range.min, sample));
        Ok(rule.any_length(any_length).needs_tokens(needs_tokens))
    }
}

impl TotalLength {
    fn score(
        &self,
        counter: Option<&Tokenizer>,
        floor: f64,
        sample: &RuleInput<'_>,
    ) -> Result<Outcome, Outcome> {
        let length = match self.unit {
            Unit::Character => self.scope.view(sample.text).chars() as u64,
            Unit::Word => length::words(self.scope.of(sample.text)),
            Unit::Token => length::tokens(sample, self.scope, counter, floor)?,
        };
        let info = Info::of([("length", Fact::Count(length)), ("unit", Fact::Word(self.unit.as_str()))]);
        Ok(Outcome::scored(length::soft_overlong(length, self.max, self.band), info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::{counted, rejected, scored};
    use serde_json::json;

    #[test]
    fn the_trainers_own_count_comes_first() {
        let parameters = json!({"max": 4096, "band": 1024, "unit": "token"});
        assert_eq!(counted::<TotalLength>(parameters.clone(), 3584).value(), Some(-0.5));
        assert_eq!(scored::<TotalLength>(parameters, "text"), Outcome::skipped(Code::MissingTokens));
        let parameters = json!({"max": 4, "band": 2, "tokenizer_type": "tiktoken"});
        assert_eq!(counted::<TotalLength>(parameters.clone(), 3).value(), Some(-0.5));
        assert_eq!(scored::<TotalLength>(parameters, "one two three").value(), Some(-0.5));
    }

    #[test]
    fn units_are_counted_as_named() {
        for (unit, length) in [("character", 9), ("word", 4)] {
            let outcome =
                scored::<TotalLength>(json!({"max": 10, "band": 10, "unit": unit}), "中 文\u{3000}🤔 ab\n");
            assert_eq!(outcome.value(), Some(-(length as f64) / 10.0), "{unit}");
            let info = outcome.info().expect("evidence");
            assert_eq!(info.get("length"), Some(&Fact::Count(length)));
        }
    }

    #[test]
    fn a_band_longer_than_the_limit_is_refused() {
        assert_eq!(rejected::<TotalLength>(json!({"max": 10, "band": 11})), ["band"]);
        assert_eq!(rejected::<TotalLength>(json!({"tokenizer_type": "huggingface"})), ["tokenizer_file"]);
        assert!(rejected::<TotalLength>(json!({"max": 10, "band": 0})).is_empty());
    }

    #[test]
    fn too_long_to_count_is_too_long() {
        let long = "word ".repeat(200_000);
        assert_eq!(scored::<TotalLength>(json!({"tokenizer_type": "jieba"}), &long).value(), Some(-1.0));
    }
}
