//! How much of the response was there before? Open-r1's penalty for repetition.

use super::{ParamError, Range, Registered, Reward, Rule, Sample, Scorer, Stated};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::Case;
use crate::text::ngrams::{self, LONGEST_NGRAM};
use crate::tokenizer::{ResourceCache, Tokenizer, TokenizerParams, TokenizerType, Uncut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        Self { ngram_size: 3, max_penalty: -1.0, language: Language::En }
    }
}

impl Registered for OpenR1Repetition {
    const NAME: &'static str = "open_r1.repetition";
}

impl Reward for OpenR1Repetition {
    fn build(self, cache: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        let mut refusals = Vec::new();
        if !(1..=LONGEST_NGRAM).contains(&self.ngram_size) {
            refusals.push(ParamError::new("ngram_size", format!("must be from 1 to {LONGEST_NGRAM}")));
        }
        if self.max_penalty > 0.0 {
            refusals.push(ParamError::new("max_penalty", "a penalty is not positive; write it with a minus"));
        }
        let tokenizer_type = match self.language {
            Language::En => TokenizerType::Simple,
            Language::Zh => TokenizerType::Jieba,
        };
        let named = TokenizerParams { tokenizer_type, ..TokenizerParams::default() };
        let tokenizer = ParamError::gather(refusals, named.load(cache))?;
        Ok(Scorer::Each(Box::new(Loaded { params: self, tokenizer })))
    }
}

struct Loaded {
    params: OpenR1Repetition,
    tokenizer: Tokenizer,
}

impl Stated for Loaded {
    fn range(&self) -> Range {
        Range::new(self.params.max_penalty, 0.0)
    }

    fn any_length(&self) -> bool {
        self.params.language == Language::En
    }
}

impl Loaded {
    fn repetition(&self, sample: &Sample<'_>) -> Result<Option<ngrams::Repetition>, Uncut> {
        let n = self.params.ngram_size;
        match self.params.language {
            Language::En => Ok(ngrams::repetition(&sample.text.tokens(&self.tokenizer, Case::Lower)?.ids, n)),
            // The origin does not strip here, and white space at the ends is words to jieba.
            Language::Zh if sample.text.as_str().len() > self.tokenizer.longest() => Err(Uncut::TooLong),
            Language::Zh => Ok(ngrams::repetition(&self.tokenizer.cut(sample.text.as_str())?.ids, n)),
        }
    }
}

impl Rule for Loaded {
    fn score(&self, sample: &Sample<'_>) -> Outcome {
        match self.repetition(sample) {
            Ok(Some(counted)) => {
                let rate = counted.rate();
                let info = Info::of([
                    ("repetition_rate", Fact::Number(rate)),
                    ("unique_ngrams", Fact::Count(counted.unique as u64)),
                    ("total_ngrams", Fact::Count(counted.total as u64)),
                ]);
                Outcome::scored(rate * self.params.max_penalty, info)
            }
            Ok(None) => Outcome::scored(0.0, Info::none()),
            Err(uncut) => uncut.of_response(self.floor()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::trial::{refused, scored};
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
        assert_eq!(refused::<OpenR1Repetition>(json!({"ngram_size": 0})), ["ngram_size"]);
        assert_eq!(refused::<OpenR1Repetition>(json!({"max_penalty": 0.1})), ["max_penalty"]);
    }

    #[test]
    fn too_long_for_the_dictionary_is_floored() {
        let outcome = scored::<OpenR1Repetition>(json!({"language": "zh"}), &"北京 ".repeat(200_000));
        assert_eq!((outcome.value(), outcome.info()), (Some(-1.0), None));
    }
}
