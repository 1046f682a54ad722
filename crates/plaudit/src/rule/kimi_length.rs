//! `kimi.length`: Kimi's length reward, which compares the lengths within a group.

use super::correct::CorrectParams;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Within a group, short right answers earn and long answers of any kind lose.
///
/// ## What it scores
/// With the length L of a response in characters, and the shortest and the longest of its group,
/// `0.5 - (L - shortest) / (longest - shortest)`: from 0.5 to -0.5. A wrong answer gets no more than 0. Where all are
/// of one length, all get 0. Whether an answer is right is looked up as `correct` says; a rollout of which it cannot
/// be known is skipped, but its length counts.
///
/// ## When to use it
/// Against overthinking, once a policy is mostly right: it compares with what this prompt needs and not with one
/// limit for all. Beside a reward for being right, because alone it pays more for being short than for that.
///
/// ## How it can be gamed
/// One endless response in a group makes all the others look short. A wrong short answer loses nothing.
///
/// ## Example
/// ```yaml
/// brevity: { reward: kimi.length, weight: 0.2 }
/// ```
///
/// ## References
/// Kimi k1.5 (arXiv 2501.12599), section 2.3.3; open-r1 `len_reward`, which compares over a whole batch where this
/// compares over the prompt's group, as in the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KimiLength {
    /// Whether the answer is right.
    #[serde(flatten)]
    pub correct: CorrectParams,
}

impl Reward<Rule> for KimiLength {
    const NAME: &'static str = "kimi.length";
    const FACTS: &'static [&'static str] = &["length"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::group(Range::new(-0.5, 0.5), move |samples| self.score(samples)).any_length(true))
    }
}

impl KimiLength {
    fn score(&self, samples: &[RuleInput<'_>]) -> Vec<Outcome> {
        let lengths = samples.iter().map(|sample| sample.text.chars());
        let shortest = lengths.clone().min().unwrap_or(0);
        let spread = lengths.max().unwrap_or(0) - shortest;
        let each = |sample: &RuleInput<'_>| {
            let correct = self.correct.ask(sample)?;
            let length = sample.text.chars();
            let score = match spread {
                0 => 0.0,
                _ => 0.5 - (length - shortest) as f64 / spread as f64,
            };
            let score = if correct { score } else { score.min(0.0) };
            let info = Info::of([("length", Fact::Count(length as u64)), ("correct", Fact::Bool(correct))]);
            Ok(Outcome::scored(score, info))
        };
        samples.iter().map(each).map(Outcome::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::{TestRollout, score_group};
    use serde_json::json;

    #[test]
    fn lengths_are_compared_within_the_group() {
        let rollout =
            |response: &'static str| TestRollout { response, reference: Some("4"), ..TestRollout::default() };
        let group = ["4", "<answer>4</answer>", "5", "\\boxed{4}"].map(rollout);
        let values: Vec<Option<f64>> =
            score_group::<KimiLength>(json!({}), &group).iter().map(Outcome::value).collect();
        assert_eq!(values, [Some(0.5), Some(-0.5), Some(0.0), Some(0.5 - 8.0 / 17.0)]);
        let same = ["4", "5"].map(rollout);
        assert!(
            score_group::<KimiLength>(json!({}), &same).iter().all(|outcome| outcome.value() == Some(0.0))
        );
    }

    #[test]
    fn a_rollout_of_which_nothing_is_known_is_skipped_alone() {
        let group = [
            TestRollout { response: "4", reference: Some("4"), ..TestRollout::default() },
            TestRollout { response: "44", reference: Some("44"), ..TestRollout::default() },
            TestRollout { response: "444", ..TestRollout::default() },
        ];
        let outcomes = score_group::<KimiLength>(json!({}), &group);
        assert_eq!(outcomes[0].value(), Some(0.5));
        assert_eq!(outcomes[1].value(), Some(0.0));
        assert_eq!(outcomes[2], Outcome::skipped(Code::MissingReference));
        assert!(score_group::<KimiLength>(json!({}), &[]).is_empty());
    }
}
