//! `f1_score`: the F1 score of the token sets of response and reference.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use crate::tokenizer::{Tokenizer, TokenizerParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The overlap of the response's tokens with the reference's, each token counted once.
///
/// ## What it scores
/// Both texts are stripped, put in lower case and cut into tokens; order and repetition do not count. With the share
/// P of the response's tokens that the reference has, and the share R of the reference's tokens that the response
/// has, the score is 2PR / (P + R), from 0 to 1. A rollout without a reference, or with one that has no tokens, is
/// skipped.
///
/// ## When to use it
/// For short answers in free words: question answering, extraction, keywords. Where order matters, see `rouge`.
///
/// ## How it can be gamed
/// A list of likely words in any order, without a sentence, scores as well as an answer. Denying the reference
/// ("it is not Paris") shares nearly all of it.
///
/// ## Example
/// ```yaml
/// overlap: { reward: f1_score, weight: 1.0, tokenizer_type: simple }
/// ```
///
/// ## References
/// RM-Gallery `f1_score`; Rajpurkar et al., SQuAD (arXiv 1606.05250), whose F1 counts repeated tokens as well.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct F1Score {
    /// Which part of the response is read.
    pub scope: Scope,
    /// The tokenizer.
    #[serde(flatten)]
    pub tokenizer: TokenizerParams,
}

impl Reward<Rule> for F1Score {
    const NAME: &'static str = "f1_score";
    const NEEDS_REFERENCE: bool = true;
    const FACTS: &'static [&'static str] = &["precision", "recall"];

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let tokenizer = self.tokenizer.load(cache)?;
        let any_length = tokenizer.is_unlimited();
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| score(&tokenizer, self.scope, sample))
            .any_length(any_length)
            .compares_text(true))
    }
}

fn score(tokenizer: &Tokenizer, scope: Scope, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
    let (tokens, reference) = sample.token_pair(tokenizer, scope)?;
    let wanted = reference.distinct();
    let (given, shared) = wanted.overlap(&tokens.ids);
    let share = |of: usize| if of == 0 { 0.0 } else { shared as f64 / of as f64 };
    let (precision, recall) = (share(given), share(wanted.len()));
    let score = if shared == 0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) };
    let info = Info::of([("precision", Fact::Number(precision)), ("recall", Fact::Number(recall))]);
    Ok(Outcome::scored(score, info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Code;
    use crate::rule::test_util::compared;
    use serde_json::json;

    #[test]
    fn sets_are_compared() {
        let simple = json!({"tokenizer_type": "simple"});
        let outcome = compared::<F1Score>(simple.clone(), "Paris is Paris", Some("paris"));
        assert_eq!(outcome.value(), Some(2.0 / 3.0));
        assert_eq!(outcome.info().and_then(|info| info.get("precision")), Some(&Fact::Number(0.5)));
        assert_eq!(outcome.info().and_then(|info| info.get("recall")), Some(&Fact::Number(1.0)));
        assert_eq!(compared::<F1Score>(simple, "", Some("paris")).value(), Some(0.0));
    }

    #[test]
    fn nothing_is_credited_for_an_absent_reference() {
        for (reference, code) in [
            (None, Code::MissingReference),
            (Some(""), Code::EmptyReference),
            (Some(" \n"), Code::EmptyReference),
        ] {
            for response in ["", "x"] {
                let outcome = compared::<F1Score>(json!({}), response, reference);
                assert_eq!(outcome, Outcome::skipped(code));
            }
        }
    }

    #[test]
    fn whose_text_is_too_long_decides() {
        let long = "word ".repeat(200_000);
        let reason = |outcome: Outcome| outcome.reason().map(|reason| reason.code);
        assert_eq!(reason(compared::<F1Score>(json!({}), &long, Some("x"))), Some(Code::ModelTooLong));
        assert_eq!(reason(compared::<F1Score>(json!({}), "x", Some(&long))), Some(Code::ReferenceTooLong));
    }
}
