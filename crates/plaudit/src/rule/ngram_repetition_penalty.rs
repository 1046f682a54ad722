//! `ngram_repetition_penalty`: a penalty by the share of repeated n-grams.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::Case;
use crate::text::ngrams::{self, MAX_NGRAM_LENGTH};
use crate::text::scope::Scope;
use crate::tokenizer::{Tokenizer, TokenizerParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for repeating the same sequences of tokens.
///
/// ## What it scores
/// The text is stripped, put in lower case (not for `jieba`) and cut into tokens. With r = 1 - different n-grams /
/// all n-grams, the score is
///
/// - `-(r - penalty_threshold) * penalty_rate` above the threshold and 0 below it, or,
/// - with `use_soft_penalty`, `max_penalty * max(0, (r - min_scaling) / (1 - min_scaling))`.
///
/// A text with fewer than `n` tokens scores 0. With `analyze_scope: thought` only what stands between `<think>` and
/// `</think>` is looked at.
///
/// ## When to use it
/// Against loops, which a policy falls into when length pays or when it runs away from its training data. The soft
/// penalty has a gradient from the first repetition on; `min_scaling` leaves alone what every text repeats.
///
/// ## How it can be gamed
/// A counter ("step 1, step 2, ...") inside the loop makes every n-gram that holds it new: small `n` sees through
/// that, large `n` does not. With `analyze_scope: thought`, repetition moves into the answer, or out of the tags.
/// With `tokenizer_type: simple`, a Chinese sentence without spaces is one token and never repeats: use `tiktoken`
/// or `jieba`.
///
/// ## Example
/// ```yaml
/// ngram: { reward: ngram_repetition_penalty, weight: 1.0, n: 5, use_soft_penalty: true, min_scaling: 0.1 }
/// ```
///
/// ## References
/// RM-Gallery `ngram_repetition_penalty`; Yeo et al., Demystifying Long Chain-of-Thought Reasoning in LLMs
/// (arXiv 2502.03373), appendix C.2.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NgramRepetitionPenalty {
    /// How many tokens in a row are compared.
    #[schemars(range(min = 1, max = 64))]
    pub n: usize,
    /// The share of repeated n-grams that is free, without `use_soft_penalty`.
    pub penalty_threshold: f64,
    /// The penalty for each part of the share above the threshold, without `use_soft_penalty`.
    pub penalty_rate: f64,
    /// Whether the penalty grows from `min_scaling` on, up to `max_penalty`.
    pub use_soft_penalty: bool,
    /// The penalty of a text that is nothing but repetition, with `use_soft_penalty`: 0 or less.
    #[schemars(range(max = 0.0))]
    pub max_penalty: f64,
    /// The share of repeated n-grams that is free, with `use_soft_penalty`: at least 0 and less than 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_scaling: f64,
    /// Which part of the response is looked at.
    pub analyze_scope: Scope,
    /// The tokenizer.
    #[serde(flatten)]
    pub tokenizer: TokenizerParams,
}

impl Default for NgramRepetitionPenalty {
    fn default() -> Self {
        Self {
            n: 3,
            penalty_threshold: 0.3,
            penalty_rate: 1.0,
            use_soft_penalty: false,
            max_penalty: -1.0,
            min_scaling: 0.0,
            analyze_scope: Scope::Full,
            tokenizer: TokenizerParams::default(),
        }
    }
}

impl Reward<Rule> for NgramRepetitionPenalty {
    const NAME: &'static str = "ngram_repetition_penalty";

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let sizes = format!("must be from 1 to {MAX_NGRAM_LENGTH}, not {}", self.n);
        let share = (0.0..1.0).contains(&self.min_scaling);
        let checks = [
            ParamError::check((1..=MAX_NGRAM_LENGTH).contains(&self.n), "n", &sizes),
            ParamError::check(self.max_penalty <= 0.0, "max_penalty", POSITIVE_PENALTY),
            ParamError::check(share, "min_scaling", "a share: must be at least 0 and less than 1"),
        ];
        let tokenizer = ParamError::gather(checks, self.tokenizer.load(cache))?;
        let worst = self.penalty(1.0);
        let any_length = tokenizer.is_unlimited();
        let range = Range::new(worst.min(0.0), worst.max(0.0));
        let rule = Rule::each(range, move |sample| self.score(&tokenizer, range.min, sample));
        Ok(rule.any_length(any_length))
    }
}

/// What is said of a penalty above 0.
pub(super) const POSITIVE_PENALTY: &str = "a penalty is not positive; write it with a minus";
/// The longest piece of a text that is shown as evidence, in bytes.
const MAX_SHOWN: usize = 200;

impl NgramRepetitionPenalty {
    fn penalty(&self, rate: f64) -> f64 {
        if self.use_soft_penalty {
            self.max_penalty * ((rate - self.min_scaling) / (1.0 - self.min_scaling)).max(0.0)
        } else if rate > self.penalty_threshold {
            -(rate - self.penalty_threshold) * self.penalty_rate
        } else {
            0.0
        }
    }

    fn score(&self, tokenizer: &Tokenizer, floor: f64, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let text = self.analyze_scope.view(sample.text);
        let case = if matches!(tokenizer, Tokenizer::Jieba { .. }) { Case::Kept } else { Case::Lower };
        let tokens = text.tokens(tokenizer, case).map_err(|uncut| uncut.of_response(floor))?;
        let Some(counted) = ngrams::repetition(&tokens.ids, self.n) else {
            return Ok(Outcome::scored(0.0, Info::of([("token_count", Fact::Count(tokens.len() as u64))])));
        };
        let rate = counted.rate();
        let penalty = self.penalty(rate);
        let mut info = repetition_info(counted);
        if penalty != 0.0
            && let Some((first, count)) = ngrams::most_repeated(&tokens.ids, self.n)
        {
            let shown = tokens.shown(text.in_case(case), first, self.n, MAX_SHOWN);
            info.push("most_common_ngram", Fact::Text(shown.to_owned()));
            info.push("most_common_count", Fact::Count(count as u64));
        }
        Ok(Outcome::scored(penalty, info))
    }
}

/// The evidence of a repetition.
pub(super) fn repetition_info(counted: ngrams::Repetition) -> Info {
    Info::of([
        ("repetition_rate", Fact::Number(counted.rate())),
        ("unique_ngrams", Fact::Count(counted.unique as u64)),
        ("total_ngrams", Fact::Count(counted.total as u64)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{rejected, scored};
    use serde_json::json;

    #[test]
    fn the_most_repeated_ngram_is_shown() {
        let parameters = json!({"tokenizer_type": "simple", "use_soft_penalty": true});
        let outcome = scored::<NgramRepetitionPenalty>(parameters, "A b c. a B c. a b c. end");
        assert_eq!(outcome.value(), Some(-0.5));
        let info = outcome.info().expect("evidence");
        assert_eq!(info.get("most_common_ngram"), Some(&Fact::Text("a b c.".to_owned())));
        assert_eq!(info.get("most_common_count"), Some(&Fact::Count(3)));
    }

    #[test]
    fn different_emoji_do_not_collapse() {
        let outcome = scored::<NgramRepetitionPenalty>(json!({"n": 1}), "🤔🧮🪐🦜🫠🥟");
        let Some(Fact::Number(rate)) = outcome.info().and_then(|info| info.get("repetition_rate")) else {
            panic!("{outcome:?}");
        };
        // Emoji share their first bytes, which are tokens of their own, and not their last ones.
        assert!(*rate < 0.5, "{rate}");
    }

    #[test]
    fn nothing_jumps_where_the_rate_equals_the_free_share() {
        let parameters =
            json!({"tokenizer_type": "simple", "n": 1, "use_soft_penalty": true, "min_scaling": 0.25});
        assert_eq!(scored::<NgramRepetitionPenalty>(parameters, "a b c a").value(), Some(0.0));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (key, parameters) in [
            ("n", json!({"n": 0})),
            ("n", json!({"n": 65})),
            ("max_penalty", json!({"max_penalty": 0.5})),
            ("min_scaling", json!({"min_scaling": 1.0})),
            ("min_scaling", json!({"min_scaling": -0.1})),
            ("tokenizer_file", json!({"tokenizer_type": "huggingface"})),
        ] {
            assert_eq!(rejected::<NgramRepetitionPenalty>(parameters), [key]);
        }
        assert_eq!(rejected::<NgramRepetitionPenalty>(json!({"n": 0, "min_scaling": 2})).len(), 2);
    }

    #[test]
    fn too_long_for_the_vocabulary_is_floored() {
        let long = "word ".repeat(200_000);
        let outcome = scored::<NgramRepetitionPenalty>(json!({}), &long);
        assert_eq!((outcome.value(), outcome.info()), (Some(-0.7), None));
        assert!(
            scored::<NgramRepetitionPenalty>(json!({"tokenizer_type": "simple"}), &long).info().is_some()
        );
    }
}
