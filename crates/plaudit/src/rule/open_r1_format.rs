//! `open_r1.format`: open-r1's check of the think and answer layout, line breaks included.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Info, Outcome};
use plaudit_text::is_blank;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 for a thought and an answer in tags on lines of their own, as open-r1 trains it; otherwise 0.
///
/// ## What it scores
/// The response must begin with `<think>` and a line break. Then must come, in this order and with anything between:
/// the lines `</think>` and `<answer>`, one directly after the other, and a line that begins with `</answer>` and
/// ends there. That gives 1, anything else 0.
///
/// ## When to use it
/// To continue or to compare with a training by open-r1. Otherwise `reasoning_format` with `strict` is easier to
/// satisfy and harder to game.
///
/// ## How it can be gamed
/// As in the origin, the answer need only end a *line*: anything may follow on the next ones. `end_of_line: false`
/// asks that nothing but white space follows. Tags may also be repeated inside the thought and the answer;
/// `repeated_tags: false` asks for each of the four exactly once. Both bodies may be empty lines.
///
/// ## Example
/// ```yaml
/// format: { reward: open_r1.format, weight: 1.0, end_of_line: false, repeated_tags: false }
/// ```
///
/// ## References
/// open-r1 `format_reward`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenR1Format {
    /// Whether the end of any line may end the answer, and not only the end of the response.
    pub end_of_line: bool,
    /// Whether the tags may stand more than once.
    pub repeated_tags: bool,
}

impl Default for OpenR1Format {
    fn default() -> Self {
        Self { end_of_line: true, repeated_tags: true }
    }
}

impl Reward<Rule> for OpenR1Format {
    const NAME: &'static str = "open_r1.format";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

/// How the response begins.
const BEGIN: &str = "<think>\n";
/// What follows the tag that closes the thought.
const TURN: &str = "\n<answer>\n";

impl OpenR1Format {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let text = sample.text.written().as_str();
        // The cheap test comes first: most responses without the layout fail it.
        let good = text.starts_with(BEGIN) && self.fits(sample);
        Outcome::scored(f64::from(u8::from(good)), Info::none())
    }

    fn fits(&self, sample: &RuleInput<'_>) -> bool {
        let text = sample.text.written().as_str();
        let tags = sample.text.written().tags();
        let begins_line = |at: usize| text.as_bytes()[at - 1] == b'\n';
        // The first possible turn leaves the most room for the answer, so no later one need be tried.
        let turn = tags.named(text, "think").find(|tag| {
            tag.closes
                && tag.start > BEGIN.len()
                && begins_line(tag.start)
                && text[tag.end..].starts_with(TURN)
        });
        let Some(body) = turn.map(|tag| tag.end + TURN.len()) else {
            return false;
        };
        let ended = tags.named(text, "answer").any(|tag| {
            let rest = &text[tag.end..];
            let ends =
                if self.end_of_line { rest.is_empty() || rest.starts_with('\n') } else { is_blank(rest) };
            tag.closes && tag.start > body && begins_line(tag.start) && ends
        });
        let once = |name: &str| tags.census(text, name).only_pair().is_some();
        ended && (self.repeated_tags || (once("think") && once("answer")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::score;

    #[test]
    fn switches_close_the_gaps_of_the_origin() {
        let strict = OpenR1Format { end_of_line: false, repeated_tags: false };
        let good = "<think>\na\n</think>\n<answer>\nb\n</answer>";
        assert_eq!(score(strict.clone(), good, None).value(), Some(1.0));
        assert_eq!(score(strict.clone(), &format!("{good}\n"), None).value(), Some(1.0));
        for gamed in [
            format!("{good}\nmore <answer>\nc\n</answer> and more"),
            good.replace("\na\n", "\n<think>\na\n"),
            good.replace("\nb\n", "\nb\n</answer>\n<answer>\nc\n"),
        ] {
            assert_eq!(score(OpenR1Format::default(), &gamed, None).value(), Some(1.0), "{gamed}");
            assert_eq!(score(strict.clone(), &gamed, None).value(), Some(0.0), "{gamed}");
        }
    }
}
