//! Which response of a group says it shortest? Kimi's reward for length.

use super::correct::CorrectParams;
use super::{GroupRule, ParamError, Range, Registered, Reward, Sample, Scorer, Stated};
use crate::outcome::{Fact, Info, Outcome};
use crate::tokenizer::ResourceCache;
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

impl Registered for KimiLength {
    const NAME: &'static str = "kimi.length";
}

impl Reward for KimiLength {
    fn build(self, _: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        Ok(Scorer::Group(Box::new(self)))
    }
}

impl Stated for KimiLength {
    fn range(&self) -> Range {
        Range::new(-0.5, 0.5)
    }

    fn any_length(&self) -> bool {
        true
    }
}

impl GroupRule for KimiLength {
    fn score(&self, samples: &[Sample<'_>]) -> Vec<Outcome> {
        let lengths = samples.iter().map(|sample| sample.text.chars());
        let shortest = lengths.clone().min().unwrap_or(0);
        let spread = lengths.max().unwrap_or(0) - shortest;
        let each = |sample: &Sample<'_>| {
            let correct = match self.correct.ask(sample) {
                Ok(correct) => correct,
                Err(outcome) => return outcome,
            };
            let length = sample.text.chars();
            let score = match spread {
                0 => 0.0,
                _ => 0.5 - (length - shortest) as f64 / spread as f64,
            };
            let score = if correct { score } else { score.min(0.0) };
            Outcome::scored(
                score,
                Info::of([("length", Fact::Count(length as u64)), ("correct", Fact::Bool(correct))]),
            )
        };
        samples.iter().map(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::trial::{Rollout, tried};
    use serde_json::json;

    #[test]
    fn lengths_are_compared_within_the_group() {
        let rollout =
            |response: &'static str| Rollout { response, reference: Some("4"), ..Rollout::default() };
        let group = ["4", "<answer>4</answer>", "5", "\\boxed{4}"].map(rollout);
        let values: Vec<Option<f64>> =
            tried::<KimiLength>(json!({}), &group).iter().map(Outcome::value).collect();
        assert_eq!(values, [Some(0.5), Some(-0.5), Some(0.0), Some(0.5 - 8.0 / 17.0)]);
        let same = ["4", "5"].map(rollout);
        assert!(tried::<KimiLength>(json!({}), &same).iter().all(|outcome| outcome.value() == Some(0.0)));
    }

    #[test]
    fn a_rollout_of_which_nothing_is_known_is_skipped_alone() {
        let group = [
            Rollout { response: "4", reference: Some("4"), ..Rollout::default() },
            Rollout { response: "44", reference: Some("44"), ..Rollout::default() },
            Rollout { response: "444", ..Rollout::default() },
        ];
        let outcomes = tried::<KimiLength>(json!({}), &group);
        assert_eq!(outcomes[0].value(), Some(0.5));
        assert_eq!(outcomes[1].value(), Some(0.0));
        assert_eq!(outcomes[2], Outcome::skipped(Code::MissingReference));
        assert!(tried::<KimiLength>(json!({}), &[]).is_empty());
    }
}
