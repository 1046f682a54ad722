//! Is the response the reference, letter for letter?

use super::{Range, Refusal, Reward, Rule, Sample, Scorer, Stated};
use crate::outcome::{Info, Outcome};
use crate::reason::Code;
use crate::tokenizer::Shelf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 where the response is the reference, white space at the ends aside; otherwise 0.
///
/// ## What it scores
/// Response and reference without white space at their ends, compared by code point: case counts, and so do the
/// forms of accented letters. A rollout without a reference, or with one that is empty, is skipped.
///
/// ## When to use it
/// For answers with one spelling: a letter, a label, a number. For answers in a sentence, see `regex` with `compare`;
/// for numbers, `number_accuracy`.
///
/// ## How it can be gamed
/// Hardly: the response must be the reference. With few possible answers a guess is often right.
///
/// ## Example
/// ```yaml
/// exact: { reward: accuracy, weight: 1.0 }
/// ```
///
/// ## References
/// RM-Gallery `accuracy`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Accuracy {}

impl Reward for Accuracy {
    const NAME: &'static str = "accuracy";
    const NEEDS_REFERENCE: bool = true;

    fn build(self, _: &mut Shelf) -> Result<Scorer, Vec<Refusal>> {
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
        Outcome::scored(f64::from(u8::from(sample.text.stripped() == reference)), Info::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::tests::score;

    #[test]
    fn nothing_is_right_by_absence() {
        for reference in [None, Some(""), Some(" \n")] {
            assert_eq!(score(Accuracy {}, "", reference).value(), None);
        }
        assert_eq!(score(Accuracy {}, "", Some("a")).value(), Some(0.0));
        assert_eq!(score(Accuracy {}, "\u{3000}a\n", Some("a")).value(), Some(1.0));
    }
}
