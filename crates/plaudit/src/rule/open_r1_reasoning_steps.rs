//! `open_r1.reasoning_steps`: open-r1's count of step markers.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::scope::Scope;
use plaudit_text::{digit, digits_end};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of marks of step-by-step reasoning, divided by three, and 1 at most.
///
/// ## What it scores
/// The marks are `Step 1:` with any number, a number and a dot at the very start of the response, a line that begins
/// with `-` or `*`, and `First,`, `Second,`, `Next,` and `Finally,` anywhere. With m marks the score is
/// min(1, m / `steps`).
///
/// ## When to use it
/// With a small weight, in the first steps of a training, for a model that answers without any reasoning.
///
/// ## How it can be gamed
/// Very easily: three bare hyphens, or `First, First, First,`, score 1. `once: true` counts each of the four words
/// only once. As in the origin, a numbered list counts as one mark, because only the start of the response is looked
/// at for a number and a dot; `every_line: true` looks at the start of every line.
///
/// ## Example
/// ```yaml
/// steps: { reward: open_r1.reasoning_steps, weight: 0.1, every_line: true, once: true }
/// ```
///
/// ## References
/// open-r1 `reasoning_steps_reward`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenR1ReasoningSteps {
    /// How many marks give 1.
    pub steps: u64,
    /// Whether a number and a dot count at the start of every line, and not only of the response.
    pub every_line: bool,
    /// Whether each of the four words counts only once.
    pub once: bool,
    /// Which part of the response is read.
    pub scope: Scope,
}

impl Default for OpenR1ReasoningSteps {
    fn default() -> Self {
        Self { steps: 3, every_line: false, once: false, scope: Scope::Final }
    }
}

impl Reward<Rule> for OpenR1ReasoningSteps {
    const NAME: &'static str = "open_r1.reasoning_steps";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let message = "must be 1 or more; no response has fewer than no steps";
        ParamError::check(self.steps > 0, "steps", message)?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

/// The words that begin a step, each with a comma after it.
const WORDS: [&str; 4] = ["First", "Second", "Next", "Finally"];

impl OpenR1ReasoningSteps {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let text = self.scope.of(sample.text);
        let bytes = text.as_bytes();
        let mut marks = u64::from(is_numbered(text, 0));
        let mut words = [0_u64; 4];
        // Every mark but the first ends or begins with one of these, and no two marks can share a byte.
        for at in memchr::memchr3_iter(b'\n', b',', b':', bytes) {
            marks += match bytes[at] {
                b'\n' => {
                    let bullet = matches!(bytes.get(at + 1), Some(b'-' | b'*'));
                    u64::from(bullet || (self.every_line && is_numbered(text, at + 1)))
                }
                b',' => {
                    if let Some(word) = WORDS.iter().position(|word| text[..at].ends_with(word)) {
                        words[word] += 1;
                    }
                    0
                }
                _ => u64::from(is_step(&text[..at])),
            };
        }
        marks += words.iter().map(|count| if self.once { (*count).min(1) } else { *count }).sum::<u64>();
        Outcome::scored(
            (marks as f64 / self.steps as f64).min(1.0),
            Info::of([("steps", Fact::Count(marks))]),
        )
    }
}

/// Whether a number and a dot stand at `at`.
fn is_numbered(text: &str, at: usize) -> bool {
    let end = digits_end(text, at);
    end > at && text.as_bytes().get(end) == Some(&b'.')
}

/// Whether a text ends with `Step`, a space and a number. Numbers hold no colon, so that over all colons of a response
/// every digit is looked at once.
fn is_step(text: &str) -> bool {
    let rest = text.trim_end_matches(|char| digit(char).is_some());
    rest.len() < text.len() && rest.ends_with("Step ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(reward: &OpenR1ReasoningSteps, text: &str) -> f64 {
        crate::rule::test_util::score(reward.clone(), text, None).value().expect("a value")
    }

    #[test]
    fn switches_close_the_gaps_of_the_origin() {
        let origin = OpenR1ReasoningSteps::default();
        let fixed = OpenR1ReasoningSteps { every_line: true, once: true, ..origin.clone() };
        assert_eq!(score(&origin, "1.\n2.\n3."), 1.0 / 3.0);
        assert_eq!(score(&fixed, "1.\n2.\n3."), 1.0);
        assert_eq!(score(&origin, "First, First, First,"), 1.0);
        assert_eq!(score(&fixed, "First, First, First,"), 1.0 / 3.0);
    }

    #[test]
    fn steps_are_numbers_of_any_script() {
        let origin = OpenR1ReasoningSteps::default();
        assert_eq!(score(&origin, "Step 12: Step ٣: Step : Step x1: step 1:"), 2.0 / 3.0);
        assert_eq!(score(&origin, "\n-\n*\nNext,"), 1.0);
        assert!(OpenR1ReasoningSteps { steps: 0, ..origin }.build(&mut ResourceCache::default()).is_err());
    }
}
