//! `rouge`: ROUGE-L, the F1 score of the longest common subsequence of words.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use crate::text::scope::Scope;
use crate::tokenizer::Tokenizer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest common subsequence of words with the reference, as an F1 score.
///
/// ## What it scores
/// Both texts in lower case, cut at white space. With the length L of their longest common subsequence, P = L / words
/// of the response and R = L / words of the reference, the score is 2PR / (P + R), from 0 to 1. A rollout without a
/// reference, or with one that has no words, is skipped. A response of more than 65,536 words is floored as
/// `model.too_long`, a reference of more than 32,768 words is invalid: the work grows with their product.
///
/// ## When to use it
/// For summaries, translations and rewriting, where the order of words matters. For short answers, see `f1_score`.
///
/// ## How it can be gamed
/// It looks at words and not at meaning: one "not" costs next to nothing, and copying from the prompt pays where the
/// reference does so too. Text without spaces, as in Chinese, is one word: all or nothing.
///
/// ## Example
/// ```yaml
/// summary: { reward: rouge, weight: 1.0 }
/// ```
///
/// ## References
/// RM-Gallery `rouge`; Lin, ROUGE: A Package for Automatic Evaluation of Summaries (2004).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rouge {
    /// Which part of the response is read.
    pub scope: Scope,
}

/// The longest response, in words. With [`MAX_REFERENCE`] this bounds the work to 2^25 steps of one word of the
/// response and 64 of the reference, less than 50 ms.
const MAX_RESPONSE: usize = 1 << 16;

/// The longest reference, in words.
const MAX_REFERENCE: usize = 1 << 15;

impl Reward<Rule> for Rouge {
    const NAME: &'static str = "rouge";
    const NEEDS_REFERENCE: bool = true;

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| score(self.scope, sample)).compares_text(true))
    }
}

fn score(scope: Scope, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
    let (given, wanted) = sample.token_pair(&Tokenizer::Simple, scope)?;
    if given.len() > MAX_RESPONSE {
        let message = format!("The response has more than {MAX_RESPONSE} words.");
        return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooLong, message)));
    }
    if wanted.len() > MAX_REFERENCE {
        let message = format!("The reference has more than {MAX_REFERENCE} words.");
        return Err(Outcome::invalid(Reason::new(Code::ReferenceTooLong, message)));
    }
    let common = wanted.pattern().common(&given.ids);
    let score = if common == 0 {
        0.0
    } else {
        let (precision, recall) = (common as f64 / given.len() as f64, common as f64 / wanted.len() as f64);
        2.0 * precision * recall / (precision + recall)
    };
    let info = Info::of([
        ("lcs_length", Fact::Count(common as u64)),
        ("generated_length", Fact::Count(given.len() as u64)),
        ("reference_length", Fact::Count(wanted.len() as u64)),
    ]);
    Ok(Outcome::scored(score, info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::compared;
    use serde_json::json;

    #[test]
    fn order_counts() {
        let outcome = compared::<Rouge>(json!({}), "The cat sat on a mat", Some("the cat lay on the mat"));
        let info = outcome.info().expect("evidence");
        assert_eq!(info.get("lcs_length"), Some(&Fact::Count(4)));
        assert_eq!(info.get("generated_length"), Some(&Fact::Count(6)));
        assert_eq!(info.get("reference_length"), Some(&Fact::Count(6)));
        assert!((outcome.value().expect("a score") - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(compared::<Rouge>(json!({}), "b a", Some("a b")).value(), Some(0.5));
        assert_eq!(compared::<Rouge>(json!({}), "", Some("a b")).value(), Some(0.0));
    }

    #[test]
    fn limits_are_stated_and_kept() {
        let reason = |outcome: Outcome| outcome.reason().map(|reason| reason.code);
        let words = |count: usize| "a ".repeat(count);
        let at_most = compared::<Rouge>(json!({}), &words(MAX_RESPONSE), Some("a"));
        assert!(at_most.value() > Some(0.0));
        let too_long = compared::<Rouge>(json!({}), &words(MAX_RESPONSE + 1), Some("a"));
        assert_eq!((reason(too_long.clone()), too_long.value()), (Some(Code::ModelTooLong), Some(0.0)));
        let reference = words(MAX_REFERENCE + 1);
        assert_eq!(reason(compared::<Rouge>(json!({}), "a", Some(&reference))), Some(Code::ReferenceTooLong));
        assert_eq!(reason(compared::<Rouge>(json!({}), "a", Some(" "))), Some(Code::EmptyReference));
        assert_eq!(reason(compared::<Rouge>(json!({}), "a", None)), Some(Code::MissingReference));
    }
}
