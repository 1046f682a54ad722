//! Length counting and DAPO's soft penalty, shared by the length rewards.

use super::RuleInput;
use crate::outcome::Outcome;
use crate::reason::Code;
use crate::text::scope::Scope;
use crate::text::{Case, Text};
use crate::tokenizer::{Tokenizer, Uncut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Unicode code points.
    Character,
    /// What stands between white space.
    Word,
    /// Tokens.
    Token,
}

impl Unit {
    /// The word that stands in the evidence.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Character => "character",
            Self::Word => "word",
            Self::Token => "token",
        }
    }
}

/// The number of words of a text.
pub(super) fn words(text: &str) -> u64 {
    let mut count = 0;
    plaudit_text::each_word(text, |_, _| count += 1);
    count
}

/// The length of a response in tokens: what the trainer counted, or else what `counter` counts.
pub(super) fn tokens(
    sample: &RuleInput<'_>,
    scope: Scope,
    counter: Option<&Tokenizer>,
    floor: f64,
) -> Result<u64, Outcome> {
    match (sample.tokens, counter) {
        (Some(tokens), _) => Ok(tokens),
        (None, Some(counter)) => {
            count(scope.view(sample.text), counter).map_err(|uncut| uncut.of_response(floor))
        }
        (None, None) => Err(Outcome::skipped(Code::MissingTokens)),
    }
}

/// The number of tokens of a text, white space at its ends included: a policy could hide a novel in that.
pub(super) fn count(text: &Text<'_>, counter: &Tokenizer) -> Result<u64, Uncut> {
    let whole = text.as_str();
    if whole.len() > counter.longest() {
        return Err(Uncut::TooLong);
    }
    let tokens = if text.stripped().len() == whole.len() {
        // The tokens that other components see, and may have been cut already.
        text.tokens(counter, Case::Kept)?.len()
    } else {
        counter.cut(whole)?.len()
    };
    Ok(tokens as u64)
}

/// DAPO's soft overlong punishment: 0 up to `max - band`, from there linear to -1 at `max`, and -1 beyond.
///
/// Yu et al., DAPO: An Open-Source LLM Reinforcement Learning System at Scale (arXiv 2503.14476), equation 13.
pub(super) fn soft_overlong(length: u64, max: u64, band: u64) -> f64 {
    let free = max.saturating_sub(band);
    if length <= free {
        0.0
    } else if length <= max {
        -((length - free) as f64 / band as f64)
    } else {
        -1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_at_the_ends_is_counted() {
        let counter = Tokenizer::Jieba { chinese_only: false };
        let counted = ["北京", " 北京 ", "\n\n", ""].map(|text| count(&Text::new(text), &counter));
        assert_eq!(counted, [Ok(1), Ok(3), Ok(2), Ok(0)]);
        assert_eq!(count(&Text::new("\n".repeat(1 << 20)), &counter), Err(Uncut::TooLong));
    }

    #[test]
    fn the_punishment_is_linear_in_the_band() {
        let lengths = [0, 80, 81, 90, 100, 101, u64::MAX];
        assert_eq!(
            lengths.map(|length| soft_overlong(length, 100, 20)),
            [0.0, 0.0, -0.05, -0.5, -1.0, -1.0, -1.0]
        );
        assert_eq!([100, 101].map(|length| soft_overlong(length, 100, 0)), [0.0, -1.0]);
        assert_eq!([0, 5, 10].map(|length| soft_overlong(length, 10, 10)), [0.0, -0.5, -1.0]);
    }
}
