//! Is the response the reference, letter for letter?

use super::{ParamError, Range, Registered, Reward, Rule, Sample, Scorer, Stated};
use crate::outcome::{Info, Outcome};
use crate::reason::Code;
use crate::text::answer::Scope;
use crate::text::space::strip;
use crate::tokenizer::ResourceCache;
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
        Self { scope: Scope::Full }
    }
}

impl Registered for Accuracy {
    const NAME: &'static str = "accuracy";
    const NEEDS_REFERENCE: bool = true;
}

impl Reward for Accuracy {
    fn build(self, _: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>> {
        Ok(Scorer::Each(Box::new(self)))
    }
}

impl Stated for Accuracy {
    fn range(&self) -> Range {
        Range::new(0.0, 1.0)
    }

    fn any_length(&self) -> bool {
        true
    }
}

impl Rule for Accuracy {
    fn score(&self, sample: &Sample<'_>) -> Outcome {
        let Some(reference) = sample.reference.map(|reference| reference.stripped()) else {
            return Outcome::skipped(Code::MissingReference);
        };
        // An empty response would equal it, and would be right by saying nothing.
        if reference.is_empty() {
            return Outcome::skipped(Code::EmptyReference);
        }
        Outcome::scored(f64::from(u8::from(strip(self.scope.of(sample.text)) == reference)), Info::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::trial::score;

    #[test]
    fn nothing_is_right_by_absence() {
        for reference in [None, Some(""), Some(" \n")] {
            assert_eq!(score(Accuracy::default(), "", reference).value(), None);
        }
        assert_eq!(score(Accuracy::default(), "", Some("a")).value(), Some(0.0));
        assert_eq!(score(Accuracy::default(), "\u{3000}a\n", Some("a")).value(), Some(1.0));
    }
}
