//! `trl.think_format`: TRL's check that the response begins with one thought in tags.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Info, Outcome};
use plaudit_text::{is_blank, is_space};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 for a response that begins with `<think>`, has no second one, and closes it; otherwise 0.
///
/// ## What it scores
/// The first characters must be `<think>`, no other `<think>` may follow, and `</think>` must. That gives 1, anything
/// else 0.
///
/// ## When to use it
/// To continue or to compare with a training by TRL, for models that answer in plain text after the thought.
///
/// ## How it can be gamed
/// As in the origin, `<think></think>` alone scores 1: `empty_thought: false` and `empty_answer: false` ask for
/// something other than white space between the tags and after them. `</think>` may be repeated; the thought ends at
/// the first one. A single space before `<think>` scores 0, which punishes a harmless habit of some tokenizers;
/// `leading_space: true` allows it.
///
/// ## Example
/// ```yaml
/// think: { reward: trl.think_format, weight: 0.5, empty_thought: false, empty_answer: false }
/// ```
///
/// ## References
/// TRL `think_format_reward`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrlThinkFormat {
    /// Whether white space may stand before the thought.
    pub leading_space: bool,
    /// Whether the thought may be empty.
    pub empty_thought: bool,
    /// Whether nothing need follow the thought.
    pub empty_answer: bool,
}

impl Default for TrlThinkFormat {
    fn default() -> Self {
        Self { leading_space: false, empty_thought: true, empty_answer: true }
    }
}

impl Reward<Rule> for TrlThinkFormat {
    const NAME: &'static str = "trl.think_format";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| {
            Outcome::scored(f64::from(u8::from(self.fits(sample))), Info::none())
        }))
    }
}

impl TrlThinkFormat {
    fn fits(&self, sample: &RuleInput<'_>) -> bool {
        let text = sample.text.written().as_str();
        let start = if self.leading_space { text.len() - text.trim_start_matches(is_space).len() } else { 0 };
        // The cheap test comes first: a response without a thought needs no search for tags.
        if !text[start..].starts_with("<think>") {
            return false;
        }
        let tags = sample.text.written().tags();
        let mut pairs = tags.pairs(text, "think");
        let Some((open, close)) = pairs.next() else {
            return false;
        };
        tags.named(text, "think").filter(|tag| !tag.closes).count() == 1
            && open.start == start
            && (self.empty_thought || !is_blank(&text[open.end..close.start]))
            && (self.empty_answer || !is_blank(&text[close.end..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(reward: &TrlThinkFormat, text: &str) -> f64 {
        crate::rule::test_util::score(reward.clone(), text, None).value().expect("a value")
    }

    #[test]
    fn switches_close_the_gaps_of_the_origin() {
        let origin = TrlThinkFormat::default();
        let fixed = TrlThinkFormat { leading_space: true, empty_thought: false, empty_answer: false };
        for (text, theirs, ours) in [
            ("<think>a</think>b", 1.0, 1.0),
            ("<think></think>", 1.0, 0.0),
            ("<think>a</think>\n", 1.0, 0.0),
            ("<think> </think>b", 1.0, 0.0),
            (" <think>a</think>b", 0.0, 1.0),
            ("<think>a</think>b<think>", 0.0, 0.0),
            ("<think>a", 0.0, 0.0),
            ("</think><think>a</think>b", 0.0, 0.0),
        ] {
            assert_eq!(score(&origin, text), theirs, "{text}");
            assert_eq!(score(&fixed, text), ours, "{text}");
        }
    }
}
