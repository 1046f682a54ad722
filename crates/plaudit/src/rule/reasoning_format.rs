//! `reasoning_format`: whether the response has a thought and an answer in tags.

use super::{ParamError, Range, ResourceCache, Reward, Rule};
use crate::outcome::{Fact, Info, Outcome};
use crate::text::Text;
use plaudit_text::{Census, Tag, is_blank, is_tag_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 for a response with a thought and an answer in tags, otherwise 0.
///
/// ## What it scores
/// Whether the response holds `<think>` with a `</think>` somewhere after it, and `<answer>` with an `</answer>`
/// somewhere after it. Both give 1, anything else 0. Tags are taken literally: case counts, and neither spaces nor
/// attributes are allowed in them.
///
/// With `strict`, the whole response must be one thought followed by one answer: each of the four tags exactly once,
/// nothing but white space before, between and after, and neither of the two empty.
///
/// ## When to use it
/// As a small part of the total, to teach a model a layout from which the answer can be cut. Use `strict` unless a
/// model that has no layout at all would then never score.
///
/// ## How it can be gamed
/// Without `strict` the tags may be empty, repeated, nested or in the wrong order, and any text may stand around
/// them: `<think></think><answer></answer>` scores 1. With `strict` the thought still says nothing about its worth:
/// one letter is enough.
///
/// ## Example
/// ```yaml
/// format: { reward: reasoning_format, weight: 0.05, strict: true }
/// ```
///
/// ## References
/// RM-Gallery `reasoning_format`; DeepSeek-R1, section 2.2.2 (arXiv:2501.12948).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReasoningFormat {
    /// The name of the tag around the thought.
    pub think_token: String,
    /// The name of the tag around the answer.
    pub answer_token: String,
    /// Whether the response must be one thought and one answer and nothing else.
    pub strict: bool,
}

impl Default for ReasoningFormat {
    fn default() -> Self {
        Self { think_token: "think".to_owned(), answer_token: "answer".to_owned(), strict: false }
    }
}

impl Reward<Rule> for ReasoningFormat {
    const NAME: &'static str = "reasoning_format";
    const ALIASES: &'static [&'static str] = &["format"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let mut errors = Vec::new();
        for (key, name) in [("think_token", &self.think_token), ("answer_token", &self.answer_token)] {
            if name.is_empty() {
                errors.push(ParamError::new(key, "is empty; name a tag, such as think"));
            } else if name.chars().any(|char| matches!(char, '<' | '>' | '/') || char.is_control()) {
                errors
                    .push(ParamError::new(key, "is the name alone, without <, >, / and control characters"));
            }
        }
        if self.strict && self.think_token == self.answer_token {
            errors.push(ParamError::new("answer_token", "must differ from think_token when strict is on"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (think, answer) = (TagName::new(self.think_token), TagName::new(self.answer_token));
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| {
            score(&think, &answer, self.strict, sample.text.written())
        }))
    }
}

/// The name of a tag, with its tags spelled out where the shared view does not know them.
struct TagName {
    name: String,
    spelled: Option<(String, String)>,
}

impl TagName {
    fn new(name: String) -> Self {
        let spelled = (!is_tag_name(&name)).then(|| (format!("<{name}>"), format!("</{name}>")));
        Self { name, spelled }
    }

    fn census(&self, text: &Text<'_>) -> Census {
        let Some((open, close)) = &self.spelled else {
            return text.tags().census(text.as_str(), &self.name);
        };
        // A census asks only for the first opening and the last closing tag, so the two kinds need no common order.
        spots(text.as_str(), open, false).chain(spots(text.as_str(), close, true)).collect()
    }
}

/// Where a tag that is spelled out stands.
fn spots<'t>(text: &'t str, tag: &'t str, closes: bool) -> impl Iterator<Item = Tag> + 't {
    let found = memchr::memmem::find_iter(text.as_bytes(), tag);
    found.map(move |start| Tag { start, end: start + tag.len(), closes })
}

fn score(think: &TagName, answer: &TagName, strict: bool, text: &Text<'_>) -> Outcome {
    let think = think.census(text);
    let answer = answer.census(text);
    let (has_think, has_answer) = (think.has_pair(), answer.has_pair());
    let good = if strict { is_whole(text.as_str(), &think, &answer) } else { has_think && has_answer };
    Outcome::scored(
        f64::from(u8::from(good)),
        Info::of([("has_think_tag", Fact::Bool(has_think)), ("has_answer_tag", Fact::Bool(has_answer))]),
    )
}

/// Whether the text is one thought and one answer, neither of them empty, and else only white space.
fn is_whole(text: &str, think: &Census, answer: &Census) -> bool {
    let (Some(think), Some(answer)) = (think.only_pair(), answer.only_pair()) else {
        return false;
    };
    let blank = |from: usize, to: usize| text.get(from..to).is_some_and(is_blank);
    blank(0, think.0.start)
        && blank(think.1.end, answer.0.start)
        && blank(answer.1.end, text.len())
        && !blank(think.0.end, think.1.start)
        && !blank(answer.0.end, answer.1.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(reward: &ReasoningFormat, text: &str) -> f64 {
        crate::rule::test_util::score(reward.clone(), text, None).value().expect("a value")
    }

    #[test]
    fn strict_wants_the_whole_text() {
        let strict = ReasoningFormat { strict: true, ..Default::default() };
        let good = " <think>a</think>\n<answer>b</answer>\n";
        assert_eq!(score(&strict, good), 1.0);
        for bad in [
            "x<think>a</think><answer>b</answer>",
            "<think>a</think>x<answer>b</answer>",
            "<think>a</think><answer>b</answer>x",
            "<think> </think><answer>b</answer>",
            "<think>a</think><answer>\n</answer>",
            "<think>a</think><answer>b</answer><answer>c</answer>",
            "<answer>b</answer><think>a</think>",
            "<think>a<answer>b</answer></think>",
            "<think>a<think>a</think><answer>b</answer>",
        ] {
            assert_eq!(score(&strict, bad), 0.0, "{bad}");
            assert_eq!(score(&ReasoningFormat::default(), bad), 1.0, "{bad}");
        }
    }

    #[test]
    fn names_are_literal() {
        let dotted = ReasoningFormat { think_token: "a.b".to_owned(), ..Default::default() };
        assert_eq!(score(&dotted, "<a.b>1</a.b><answer>2</answer>"), 1.0);
        assert_eq!(score(&dotted, "<axb>1</axb><answer>2</answer>"), 0.0);
        assert_eq!(score(&dotted, "</a.b>1<a.b><answer>2</answer>"), 0.0);
        let strict = ReasoningFormat { strict: true, ..dotted };
        assert_eq!(score(&strict, "<a.b>1</a.b><answer>2</answer>"), 1.0);
        assert_eq!(score(&strict, "<a.b>1</a.b><answer>2</answer></a.b>"), 0.0);
    }

    #[test]
    fn names_that_cannot_be_tags_are_refused() {
        for name in ["", "<think>", "/think", "a\nb"] {
            let reward = ReasoningFormat { answer_token: name.to_owned(), ..Default::default() };
            let errors = reward.build(&mut ResourceCache::default()).expect_err("a refusal");
            assert_eq!(errors[0].key, "answer_token");
        }
        let same = ReasoningFormat { answer_token: "think".to_owned(), strict: true, ..Default::default() };
        assert!(same.build(&mut ResourceCache::default()).is_err());
    }
}
