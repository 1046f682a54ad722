//! `open_r1.cosine_length`: open-r1's reward on a cosine of the length, for right and wrong answers.

use super::correct::CorrectParams;
use super::length;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Short right answers earn more than long ones, and long wrong answers lose less than short ones.
///
/// ## What it scores
/// With the length L and p = L / `max_len`, a right answer gets
/// `min_value_correct + (max_value_correct - min_value_correct) * (1 + cos(pi * p)) / 2`: the best value at length 0,
/// the least at `max_len`. A wrong answer gets the same between `min_value_wrong` at length 0 and `max_value_wrong`
/// at `max_len`. Whether an answer is right is looked up as `correct` says; where it cannot be known, the rollout
/// is skipped.
///
/// ## When to use it
/// To reward brevity where the policy is right and effort where it is wrong. As in open-r1 the cosine goes on beyond
/// `max_len`; set `clamp`, as TRL does, unless those very numbers are wanted.
///
/// ## How it can be gamed
/// Without `clamp` the reward is periodic: a right answer of twice `max_len` earns as much as an empty one. A policy
/// that expects to be wrong gains by filler up to `max_len`.
///
/// ## Example
/// ```yaml
/// cosine: { reward: open_r1.cosine_length, weight: 1.0, max_len: 4000, clamp: true }
/// ```
///
/// ## References
/// Open-r1 `get_cosine_scaled_reward`; Yeo et al. (arXiv 2502.03373), appendix C.1.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenR1CosineLength {
    /// What a wrong answer of length 0 gets.
    pub min_value_wrong: f64,
    /// What a wrong answer of length `max_len` gets.
    pub max_value_wrong: f64,
    /// What a right answer of length `max_len` gets.
    pub min_value_correct: f64,
    /// What a right answer of length 0 gets.
    pub max_value_correct: f64,
    /// The length at which the cosine reaches its other end.
    #[schemars(range(min = 1))]
    pub max_len: u64,
    /// Whether a longer response counts as one of `max_len`.
    pub clamp: bool,
    /// What is counted.
    pub unit: CosineUnit,
    /// Whether the answer is right.
    #[serde(flatten)]
    pub correct: CorrectParams,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CosineUnit {
    /// Unicode code points, as open-r1 counts.
    Character,
    /// The rollout's own token count. A rollout without one is skipped.
    Token,
}

impl Default for OpenR1CosineLength {
    fn default() -> Self {
        Self {
            min_value_wrong: -1.0,
            max_value_wrong: -0.5,
            min_value_correct: 0.5,
            max_value_correct: 1.0,
            max_len: 1000,
            clamp: false,
            unit: CosineUnit::Character,
            correct: CorrectParams::default(),
        }
    }
}

impl Reward<Rule> for OpenR1CosineLength {
    const NAME: &'static str = "open_r1.cosine_length";
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        ParamError::check(self.max_len > 0, "max_len", "the length is divided by it: at least 1")?;
        let ends =
            [self.min_value_wrong, self.max_value_wrong, self.min_value_correct, self.max_value_correct];
        let range = Range::new(
            ends.into_iter().fold(f64::INFINITY, f64::min),
            ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        );
        let needs_tokens = self.unit == CosineUnit::Token;
        let rule = Rule::each(range, move |sample| self.score(range.min, sample));
        Ok(rule.any_length(true).needs_tokens(needs_tokens))
    }
}

impl OpenR1CosineLength {
    fn score(&self, floor: f64, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let length = match self.unit {
            CosineUnit::Character => sample.text.chars() as u64,
            CosineUnit::Token => length::tokens(sample, Scope::Final, None, floor)?,
        };
        let correct = self.correct.ask(sample)?;
        let (at_end, at_start) = if correct {
            (self.min_value_correct, self.max_value_correct)
        } else {
            (self.max_value_wrong, self.min_value_wrong)
        };
        let counted = if self.clamp { length.min(self.max_len) } else { length };
        let cosine = (counted as f64 / self.max_len as f64 * PI).cos();
        let score = at_end + 0.5 * (at_start - at_end) * (1.0 + cosine);
        let info = Info::of([("length", Fact::Count(length)), ("correct", Fact::Bool(correct))]);
        Ok(Outcome::scored(score, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::{TestRollout, compared, one, rejected, scored};
    use serde_json::{Map, json};

    #[test]
    fn it_is_periodic_unless_clamped() {
        let long = format!("{}<answer>4</answer>", "a".repeat(34));
        let score = |clamp: bool| {
            compared::<OpenR1CosineLength>(json!({"max_len": 26, "clamp": clamp}), &long, Some("4")).value()
        };
        assert_eq!(score(true), Some(0.5));
        assert!(score(false).is_some_and(|score| (score - 1.0).abs() < 1e-12));
    }

    #[test]
    fn what_extra_says_comes_before_the_answer() {
        let rollout = |correct: serde_json::Value| TestRollout {
            response: "4",
            reference: Some("4"),
            tokens: Some(0),
            extra: Map::from_iter([("correct".to_owned(), correct)]),
            ..TestRollout::default()
        };
        let score = |parameters: serde_json::Value, correct| {
            one::<OpenR1CosineLength>(parameters, rollout(correct)).value()
        };
        let token = json!({"unit": "token"});
        assert_eq!(score(token.clone(), json!(false)), Some(-1.0));
        assert_eq!(score(token.clone(), json!(0.5)), Some(1.0));
        assert_eq!(score(token.clone(), json!(null)), Some(1.0));
        assert_eq!(score(token.clone(), json!("yes")), None);
        assert_eq!(score(json!({"unit": "token", "correct": "answer"}), json!(false)), Some(1.0));
        assert_eq!(
            score(json!({"unit": "token", "correct_field": "right", "correct": "extra"}), json!(true)),
            None
        );
    }

    #[test]
    fn what_cannot_be_known_is_skipped() {
        let reason = |outcome: Outcome| outcome.reason().map(|reason| reason.code);
        assert_eq!(reason(scored::<OpenR1CosineLength>(json!({}), "4")), Some(Code::MissingReference));
        assert_eq!(
            reason(scored::<OpenR1CosineLength>(json!({"correct": "extra"}), "4")),
            Some(Code::MissingExtra)
        );
        assert_eq!(
            reason(compared::<OpenR1CosineLength>(json!({}), "", Some(" "))),
            Some(Code::EmptyReference)
        );
        assert_eq!(
            reason(scored::<OpenR1CosineLength>(json!({"unit": "token"}), "4")),
            Some(Code::MissingTokens)
        );
        assert_eq!(rejected::<OpenR1CosineLength>(json!({"max_len": 0})), ["max_len"]);
    }
}
