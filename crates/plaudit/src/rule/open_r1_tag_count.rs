//! `open_r1.tag_count`: open-r1's count of the four tags that stand exactly once, with their line breaks.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quarter for each of four tags that stands exactly once, as open-r1 counts them.
///
/// ## What it scores
/// `<think>` before a line break, `</think>` and `<answer>` each between two line breaks, and `</answer>` after one:
/// each that occurs exactly once gives 0.25. Two tags that share a line break count as one.
///
/// ## When to use it
/// Beside `open_r1.format`, early in a training, when hardly any response has the whole layout: it rewards parts.
///
/// ## How it can be gamed
/// As in the origin, order does not matter, and a tag without its line breaks is not counted, so that it may be
/// repeated: four tags and nothing else score 1. With `strict` a tag must stand only once however it is laid out, and
/// gives its quarter only if all before it in the layout stand before it in the response.
///
/// ## Example
/// ```yaml
/// tags: { reward: open_r1.tag_count, weight: 0.5, strict: true }
/// ```
///
/// ## References
/// open-r1 `tag_count_reward`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenR1TagCount {
    /// Whether tags without line breaks are counted too, and the order matters.
    pub strict: bool,
}

impl Reward<Rule> for OpenR1TagCount {
    const NAME: &'static str = "open_r1.tag_count";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

/// What is known of one of the four tags.
#[derive(Clone, Copy)]
struct TagCount {
    /// How often it stands with its line breaks.
    laid_out: u64,
    /// How often it stands at all.
    all: u64,
    /// Where the last one with its line breaks starts.
    start: usize,
    /// Where the last one with its line breaks ends, the break included.
    end: usize,
}

impl OpenR1TagCount {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let text = sample.text.written().as_str();
        let bytes = text.as_bytes();
        let mut seen = [TagCount { laid_out: 0, all: 0, start: 0, end: 0 }; 4];
        for tag in sample.text.written().tags().as_slice() {
            // Which tag it is, and whether it wants a line break before and after it.
            let (which, before, after) = match (tag.name(text), tag.closes) {
                ("think", false) => (0, false, true),
                ("think", true) => (1, true, true),
                ("answer", false) => (2, true, true),
                ("answer", true) => (3, true, false),
                _ => continue,
            };
            let seen = &mut seen[which];
            seen.all += 1;
            // A line break that ended the last one is taken, as in any search that goes on after what it found.
            let begins = !before || (tag.start > seen.end && bytes[tag.start - 1] == b'\n');
            if begins && (!after || bytes.get(tag.end) == Some(&b'\n')) {
                seen.laid_out += 1;
                seen.start = tag.start;
                seen.end = tag.end + usize::from(after);
            }
        }
        let mut count = 0_u64;
        let mut reached = Some(0);
        for seen in seen {
            let once = seen.laid_out == 1;
            let good =
                once && (!self.strict || (seen.all == 1 && reached.is_some_and(|at| at <= seen.start)));
            reached = if good { Some(seen.start) } else { None };
            count += u64::from(good);
        }
        Outcome::scored(count as f64 * 0.25, Info::of([("tags", Fact::Count(count))]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(strict: bool, text: &str) -> f64 {
        crate::rule::test_util::score(OpenR1TagCount { strict }, text, None).value().expect("a value")
    }

    #[test]
    fn tags_that_share_a_line_break_count_once() {
        assert_eq!(score(false, "\n</think>\n</think>\n"), 0.25);
        assert_eq!(score(false, "\n</think>\n</think>\n</think>\n"), 0.0);
        assert_eq!(score(false, "\n</think>\n\n</think>\n"), 0.0);
    }

    #[test]
    fn strict_looks_at_order_and_bare_tags() {
        let good = "<think>\na\n</think>\n<answer>\nb\n</answer>";
        assert_eq!(score(true, good), 1.0);
        assert_eq!(score(false, &format!("{good}<answer>")), 1.0);
        assert_eq!(score(true, &format!("{good}<answer>")), 0.5);
        let turned = "\n</answer>\n<answer>\n</think>\n<think>\n";
        assert_eq!(score(false, turned), 1.0);
        assert_eq!(score(true, turned), 0.25);
        assert_eq!(score(true, "<think>\na"), 0.25);
    }
}
