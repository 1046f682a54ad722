//! `open_r1.repetition`: open-r1's n-gram repetition penalty.

use super::ngram_repetition_penalty::{POSITIVE_PENALTY, repetition_info};
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Info, Outcome};
use crate::text::Case;
use crate::text::ngrams::{self, MAX_NGRAM_LENGTH};
use crate::text::scope::Scope;
use crate::tokenizer::{Tokenizer, TokenizerParams, TokenizerType, Uncut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// A penalty by the share of n-grams of words that were there before, from the first repetition on.
///
/// ## What it scores
/// `(1 - different n-grams / all n-grams) * max_penalty`, and 0 for a response of fewer than `ngram_size` words.
/// Words are what stands between white space, in lower case; with `language: zh` they are those of `jieba`, as
/// written, with white space and punctuation as words.
///
/// ## When to use it
/// To keep a recipe of open-r1 as it is. `ngram_repetition_penalty` with `use_soft_penalty` says the same and can
/// leave alone what every text repeats.
///
/// ## How it can be gamed
/// A counter inside the loop makes every n-gram that holds it new. Text without spaces is one word in `language: en`
/// and never repeats.
///
/// ## Example
/// ```yaml
/// repetition: { reward: open_r1.repetition, weight: 1.0, ngram_size: 3, max_penalty: -1.0 }
/// ```
///
/// ## References
/// Open-r1 `get_repetition_penalty_reward`; Yeo et al. (arXiv 2502.03373), appendix C.2.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenR1Repetition {
    /// How many words in a row are compared.
    #[schemars(range(min = 1, max = 64))]
    pub ngram_size: usize,
    /// The penalty of a text that is nothing but repetition: 0 or less.
    #[schemars(range(max = 0.0))]
    pub max_penalty: f64,
    /// How words are cut.
    pub language: Language,
    /// Which part of the response is read.
    pub scope: Scope,
}

/// How words are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// At white space.
    En,
    /// By the Chinese dictionary of `jieba`.
    Zh,
}

impl Default for OpenR1Repetition {
    fn default() -> Self {
        Self { ngram_size: 3, max_penalty: -1.0, language: Language::En, scope: Scope::Final }
    }
}

impl Reward<Rule> for OpenR1Repetition {
    const NAME: &'static str = "open_r1.repetition";

    fn build(self, cache: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let (sized, sizes) = (
            (1..=MAX_NGRAM_LENGTH).contains(&self.ngram_size),
            format!("must be from 1 to {MAX_NGRAM_LENGTH}"),
        );
        let checks = [
            ParamError::check(sized, "ngram_size", &sizes),
            ParamError::check(self.max_penalty <= 0.0, "max_penalty", POSITIVE_PENALTY),
        ];
        let tokenizer_type = match self.language {
            Language::En => TokenizerType::Simple,
            Language::Zh => TokenizerType::Jieba,
        };
        let named = TokenizerParams { tokenizer_type, ..TokenizerParams::default() };
        let tokenizer = ParamError::gather(checks, named.load(cache))?;
        let (range, any_length) = (Range::new(self.max_penalty, 0.0), self.language == Language::En);
        Ok(Rule::each(range, move |sample| self.score(&tokenizer, sample)).any_length(any_length))
    }
}

impl OpenR1Repetition {
    fn score(&self, tokenizer: &Tokenizer, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let text = self.scope.view(sample.text);
        let words = match self.language {
            Language::En => text.tokens(tokenizer, Case::Lower),
            // The origin does not strip here, and white space at the ends is words to jieba.
            Language::Zh if text.as_str().len() > tokenizer.longest() => Err(Uncut::TooLong),
            Language::Zh => tokenizer.cut(text.as_str()).map(Rc::new),
        };
        let words = words.map_err(|uncut| uncut.of_response(self.max_penalty))?;
        Ok(match ngrams::repetition(&words.ids, self.ngram_size) {
            Some(counted) => Outcome::scored(counted.rate() * self.max_penalty, repetition_info(counted)),
            None => Outcome::scored(0.0, Info::none()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{rejected, scored};
    use serde_json::json;

    #[test]
    fn words_repeat_in_either_language() {
        let en = json!({"ngram_size": 2, "max_penalty": -2.0});
        assert_eq!(scored::<OpenR1Repetition>(en, "Go on go On go on").value(), Some(-1.2));
        let zh = json!({"ngram_size": 1, "language": "zh"});
        assert_eq!(scored::<OpenR1Repetition>(zh.clone(), "北京北京").value(), Some(-0.5));
        assert_eq!(scored::<OpenR1Repetition>(zh, " 北京 ").value(), Some(-(1.0 - 2.0 / 3.0)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(rejected::<OpenR1Repetition>(json!({"ngram_size": 0})), ["ngram_size"]);
        assert_eq!(rejected::<OpenR1Repetition>(json!({"max_penalty": 0.1})), ["max_penalty"]);
    }

    #[test]
    fn too_long_for_the_dictionary_is_floored() {
        let outcome = scored::<OpenR1Repetition>(json!({"language": "zh"}), &"北京 ".repeat(200_000));
        assert_eq!((outcome.value(), outcome.info()), (Some(-1.0), None));
    }
}
