//! `ends_with_question`: whether the response ends with a question mark.

use super::{ParamError, Range, Registered, Reward, Rule, Sample, Scorer, Stated};
use crate::outcome::{Info, Outcome};
use crate::tokenizer::ResourceCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 for a response that ends with a question mark, else 0.
///
/// ## What it scores
/// The last character of the response, white space aside.
///
/// ## When to use it
/// To train a policy that asks back.
///
/// ## How it can be gamed
/// By a question mark after anything at all.
///
/// ## Example
/// ```yaml
/// asks: { reward: ends_with_question, weight: 0.1 }
/// ```
///
/// ## References
/// None.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndsWithQuestion {
    /// Whether the full-width question mark counts as well.
    pub full_width: bool,
}

impl Default for EndsWithQuestion {
    fn default() -> Self {
        Self { full_width: true }
    }
}

impl Registered for EndsWithQuestion {
    const NAME: &'static str = "ends_with_question";
}

impl Reward for EndsWithQuestion {
    fn build(self, _: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        Ok(Scorer::Each(Box::new(self)))
    }
}

impl Stated for EndsWithQuestion {
    fn range(&self) -> Range {
        Range::new(0.0, 1.0)
    }
}

impl Rule for EndsWithQuestion {
    fn score(&self, sample: &Sample<'_>) -> Outcome {
        let asks = match sample.text.stripped().chars().next_back() {
            Some('?') => true,
            Some('？') => self.full_width,
            _ => false,
        };
        Outcome::scored(f64::from(u8::from(asks)), Info::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::trial::score;

    #[test]
    fn question_marks_count_white_space_aside() {
        for (response, value) in
            [("Why?", 1.0), ("Why? \n", 1.0), ("为什么？", 1.0), ("Why.", 0.0), ("", 0.0)]
        {
            assert_eq!(
                score(EndsWithQuestion::default(), response, None).value(),
                Some(value),
                "{response:?}"
            );
        }
        let strict = EndsWithQuestion { full_width: false };
        assert_eq!(score(strict, "为什么？", None).value(), Some(0.0));
    }
}
