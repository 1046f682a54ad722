//! `thought_length`: a bounded penalty on the length of the text in think tags.

use super::length::{self, Unit};
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::tokenizer::{Tokenizer, TokenizerParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for thoughts that are shorter or longer than they should be.
///
/// ## What it scores
/// With the length L of everything between `<think>` and `</think>`, every pair of them, the score is 0 from `min`
/// to `max`. Outside it falls, linearly over `band`, to -1. A thought that is never closed is none: its length is 0.
///
/// ## When to use it
/// With `weight: 0`, to watch how thinking grows over a training; with a weight, to keep it within a budget or to
/// make a policy think at all (`min`). For the length of the whole response, see `total_length`.
///
/// ## How it can be gamed
/// Thinking moves out of the tags, or the last `</think>` is left away: use it beside a reward for format. Filler
/// reaches `min` as well as thought does: use it beside a penalty for repetition.
///
/// ## Example
/// ```yaml
/// thought_length: { reward: thought_length, weight: 0, max: 8192, band: 2048 }
/// ```
///
/// ## References
/// Yu et al., DAPO (arXiv 2503.14476), equation 13, for the linear band.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThoughtLength {
    /// The shortest length without a penalty. At most `max`.
    pub min: u64,
    /// The longest length without a penalty.
    pub max: u64,
    /// Over how much beyond either end the penalty grows to -1; 0 makes it a step.
    pub band: u64,
    /// What is counted.
    pub unit: Unit,
    /// The tokenizer, where `unit` is `token`.
    #[serde(flatten)]
    pub tokenizer: TokenizerParams,
}

impl Default for ThoughtLength {
    fn default() -> Self {
        Self { min: 0, max: 8192, band: 2048, unit: Unit::Token, tokenizer: TokenizerParams::default() }
    }
}

impl Reward<Rule> for ThoughtLength {
    const NAME: &'static str = "thought_length";
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let ordered =
            ParamError::check(self.min <= self.max, "min", "the shortest length must not be above max");
        // Characters and words are counted without a tokenizer.
        let counter = match self.unit {
            Unit::Token => self.tokenizer.load(cache).map(Some),
            Unit::Character | Unit::Word => Ok(None),
        };
        let counter = ParamError::gather([ordered], counter)?;
        let any_length = counter.as_ref().is_none_or(Tokenizer::is_unlimited);
        let range = Range::new(-1.0, 0.0);
        let rule = Rule::each(range, move |sample| self.score(counter.as_ref(), range.min, sample));
        Ok(rule.any_length(any_length))
    }
}

impl ThoughtLength {
    fn score(
        &self,
        counter: Option<&Tokenizer>,
        floor: f64,
        sample: &RuleInput<'_>,
    ) -> Result<Outcome, Outcome> {
        let length = match (counter, self.unit) {
            (Some(counter), _) => {
                length::count(sample.text.thought(), counter).map_err(|uncut| uncut.of_response(floor))?
            }
            (None, Unit::Word) => length::words(sample.text.thought().as_str()),
            // Body by body, because the space that joins them in `thought` is not the model's.
            (None, _) if sample.text.conversation().is_some() => sample.text.thought().chars() as u64,
            (None, _) => {
                let text = sample.text.as_str();
                sample.text.tags().bodies(text, "think").map(|body| body.chars().count() as u64).sum()
            }
        };
        let outside = if length < self.min { self.min - length } else { length.saturating_sub(self.max) };
        let score = match outside {
            0 => 0.0,
            _ if outside >= self.band => -1.0,
            _ => -(outside as f64 / self.band as f64),
        };
        let info = Info::of([("length", Fact::Count(length)), ("unit", Fact::Word(self.unit.as_str()))]);
        Ok(Outcome::scored(score, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{rejected, scored};
    use serde_json::json;

    fn length(parameters: serde_json::Value, response: &str) -> Option<Fact> {
        scored::<ThoughtLength>(parameters, response).info().and_then(|info| info.get("length").cloned())
    }

    #[test]
    fn every_closed_thought_counts_and_nothing_else() {
        let response = "<think>one two</think> three <think>four</think> five <think>six";
        assert_eq!(length(json!({}), response), Some(Fact::Count(3)));
        assert_eq!(length(json!({"unit": "word"}), response), Some(Fact::Count(3)));
        assert_eq!(length(json!({"unit": "character"}), response), Some(Fact::Count(11)));
    }

    #[test]
    fn the_penalty_is_linear_on_both_sides() {
        let parameters = json!({"min": 4, "max": 6, "band": 4, "unit": "character"});
        let score = |count: usize| {
            scored::<ThoughtLength>(parameters.clone(), &format!("<think>{}</think>", "a".repeat(count)))
                .value()
        };
        let scores = [0, 1, 3, 4, 6, 7, 9, 10, 11].map(|count| score(count).expect("a score"));
        assert_eq!(scores, [-1.0, -0.75, -0.25, 0.0, 0.0, -0.25, -0.75, -1.0, -1.0]);
    }

    #[test]
    fn bounds_that_cross_are_refused() {
        assert_eq!(rejected::<ThoughtLength>(json!({"min": 5, "max": 4})), ["min"]);
        assert_eq!(rejected::<ThoughtLength>(json!({"tokenizer_type": "huggingface"})), ["tokenizer_file"]);
    }
}
