//! `accuracy`: whether the response equals the reference.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Info, Outcome};
use crate::text::scope::Scope;
use plaudit_text::strip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 where the response is the reference, white space at the ends aside; otherwise 0.
///
/// ## What it scores
/// Response and reference without white space at their ends, compared by code point: case counts, and so do the
/// forms of accented letters. With `scope: answer` only the final answer of the response is compared. A rollout without a reference, or with one that is empty, is skipped.
///
/// ## When to use it
/// For answers with one spelling: a letter, a label, a number. For answers in a sentence, see `regex` with `compare`;
/// for numbers, `number_accuracy`.
///
/// ## How it can be gamed
/// Hardly: the response must be the reference. With few possible answers a guess is often right. With
/// `scope: answer` what stands outside the answer is not looked at, so pair it with `reasoning_format`.
///
/// ## Example
/// ```yaml
/// exact: { reward: accuracy, weight: 1.0, scope: answer }
/// ```
///
/// ## References
/// RM-Gallery `accuracy`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Accuracy {
    /// Which part of the response is compared with the reference.
    pub scope: Scope,
}

impl Default for Accuracy {
    fn default() -> Self {
        Self { scope: Scope::Final }
    }
}

impl Reward<Rule> for Accuracy {
    const NAME: &'static str = "accuracy";
    const NEEDS_REFERENCE: bool = true;
    const CORRECTNESS: bool = true;

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample))
            .any_length(true)
            .compares_text(true))
    }
}

impl Accuracy {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let right = strip(self.scope.of(sample.text)) == sample.reference()?.stripped();
        Ok(Outcome::scored(f64::from(u8::from(right)), Info::none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::score;

    #[test]
    fn nothing_is_right_by_absence() {
        for reference in [None, Some(""), Some(" \n")] {
            assert_eq!(score(Accuracy::default(), "", reference).value(), None);
        }
        assert_eq!(score(Accuracy::default(), "", Some("a")).value(), Some(0.0));
        assert_eq!(score(Accuracy::default(), "\u{3000}a\n", Some("a")).value(), Some(1.0));
    }
}
