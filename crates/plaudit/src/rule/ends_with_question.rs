//! `ends_with_question`: whether the response ends with a question mark.

use super::{ParamError, Range, ResourceCache, Reward, Rule};
use crate::outcome::{Info, Outcome};
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
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndsWithQuestion {
    /// Whether only the ASCII question mark counts, and not the full-width one.
    pub ascii_only: bool,
}

impl Reward<Rule> for EndsWithQuestion {
    const NAME: &'static str = "ends_with_question";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| {
            let last = sample.text.stripped().chars().next_back();
            let asks = last == Some('?') || (last == Some('？') && !self.ascii_only);
            Outcome::scored(f64::from(u8::from(asks)), Info::none())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::score;

    #[test]
    fn the_last_character_decides() {
        for (response, value) in [("Why? \n", 1.0), ("为什么？", 1.0), ("Why.", 0.0), ("", 0.0)] {
            assert_eq!(score(EndsWithQuestion::default(), response, None).value(), Some(value));
        }
    }
}
