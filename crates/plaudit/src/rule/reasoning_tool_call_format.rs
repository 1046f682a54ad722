//! `reasoning_tool_call_format`: think tags followed by an answer or by readable JSON tool calls.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use plaudit_text::json::{self, Shape};
use plaudit_text::{Census, Tags, is_blank, strip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 1 for a thought followed by an answer, or by tool calls whose JSON has a name and arguments; otherwise 0.
///
/// ## What it scores
/// A response without `<think>...</think>` gets 0, and so does one with both or neither of an answer and a tool call.
///
/// With an answer: the whole response must be the thought and the answer, with only white space around and between,
/// and each of the four tags must stand exactly once.
///
/// With tool calls: the thought, with its tags exactly once, must come first; then, after white space, a
/// `<tool_call>`; the last `</tool_call>` must end the response; as many calls must be opened as closed, and no two
/// opening or closing tags may follow each other without anything between. Every call must be a JSON object with the
/// keys `name` and `arguments`, as Python reads JSON. JSON nested deeper than 128 levels gives the floor, 0, with
/// the reason `model.too_complex`.
///
/// ## When to use it
/// When a model learns to call tools in this layout. Use `strict` unless the tools take anything for arguments.
///
/// ## How it can be gamed
/// Thought and answer may be empty. Text may stand between two calls, a call inside the thought counts as a call, and
/// no tool need have the name. Without `strict`, `{"name": 1, "arguments": null}` is a call.
///
/// ## Example
/// ```yaml
/// tools: { reward: reasoning_tool_call_format, weight: 0.1, strict: true }
/// ```
///
/// ## References
/// RM-Gallery `reasoning_tool_call_format`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReasoningToolCallFormat {
    /// Whether the name of a call must be a text that is not empty, and its arguments an object.
    pub strict: bool,
}

impl Reward<Rule> for ReasoningToolCallFormat {
    const NAME: &'static str = "reasoning_tool_call_format";

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl ReasoningToolCallFormat {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let text = sample.text.written().as_str();
        let tags = sample.text.written().tags();
        let think = tags.census(text, "think");
        let answer = tags.census(text, "answer");
        let calls = tags.pairs(text, "tool_call").count();
        let (mut valid, mut readable) = (false, false);
        if think.has_pair() {
            match (answer.has_pair(), calls > 0) {
                (true, false) => valid = is_answer(text, &think, &answer),
                (false, true) => {
                    valid = are_calls(text, tags, &think);
                    // The calls are read only where the layout is right, and until then count as readable.
                    readable = true;
                    if valid {
                        readable = self.readable(text, tags)?;
                        valid = readable;
                    }
                }
                _ => {}
            }
        }
        let info = Info::of([
            ("has_think_tag", Fact::Bool(think.has_pair())),
            ("has_answer_tag", Fact::Bool(answer.has_pair())),
            ("has_tool_call_tag", Fact::Bool(calls > 0)),
            ("valid_format", Fact::Bool(valid)),
            ("valid_tool_call_json", Fact::Bool(readable)),
            ("tool_call_count", Fact::Count(calls as u64)),
        ]);
        Ok(Outcome::scored(f64::from(u8::from(valid)), info))
    }

    /// Whether every call is an object with a name and arguments; the floor where one is too deep to be read.
    fn readable(&self, text: &str, tags: &Tags) -> Result<bool, Outcome> {
        for body in tags.bodies(text, "tool_call") {
            let good = match json::fields(strip(body), ["name", "arguments"]) {
                Ok([Some(name), Some(arguments)]) => {
                    !self.strict || (name == Shape::String && arguments == Shape::Object)
                }
                Ok(_) | Err(json::JsonError::Malformed | json::JsonError::NotAnObject) => false,
                Err(json::JsonError::TooDeep) => {
                    let message = "The JSON of a tool call is nested deeper than 128 levels.";
                    return Err(Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message)));
                }
            };
            if !good {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether nothing but white space stands between two offsets, which are in order.
fn blank(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to).is_some_and(is_blank)
}

/// Whether the text is one thought and one answer.
fn is_answer(text: &str, think: &Census, answer: &Census) -> bool {
    let (Some(think), Some(answer)) = (think.only_pair(), answer.only_pair()) else {
        return false;
    };
    blank(text, 0, think.0.start)
        && blank(text, think.1.end, answer.0.start)
        && blank(text, answer.1.end, text.len())
}

/// Whether the text is one thought and then calls, as far as the tags tell.
///
/// What stands between the first call's opening and the last call's closing tag is free but for the two checks on
/// the order of the tags.
fn are_calls(text: &str, tags: &Tags, think: &Census) -> bool {
    let Some((open, close)) = think.only_pair() else {
        return false;
    };
    if !blank(text, 0, open.start) {
        return false;
    }
    let mut balance = 0_i64;
    let mut first = None;
    let mut last = None;
    for tag in tags.named(text, "tool_call") {
        balance += if tag.closes { -1 } else { 1 };
        if let Some(before) = last.replace(tag)
            && before.closes == tag.closes
            && blank(text, before.end, tag.start)
        {
            return false;
        }
        if first.is_none() && tag.start >= close.end {
            first = Some(tag);
        }
    }
    let (Some(first), Some(last)) = (first, last) else {
        return false;
    };
    balance == 0
        && !first.closes
        && blank(text, close.end, first.start)
        && last.closes
        && blank(text, last.end, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::OutcomeKind;

    fn outcome(strict: bool, text: &str) -> Outcome {
        crate::rule::test_util::score(ReasoningToolCallFormat { strict }, text, None)
    }

    fn call(json: &str) -> String {
        format!("<think>t</think>\n<tool_call>{json}</tool_call>")
    }

    #[test]
    fn strict_looks_at_the_values() {
        for (json, strict) in [
            (r#"{"name": "f", "arguments": {}}"#, 1.0),
            (r#"{"name": "", "arguments": {}}"#, 0.0),
            (r#"{"name": 1, "arguments": {}}"#, 0.0),
            (r#"{"name": "f", "arguments": []}"#, 0.0),
            (r#"{"name": "f", "arguments": {}, "arguments": null}"#, 0.0),
        ] {
            assert_eq!(outcome(false, &call(json)).value(), Some(1.0), "{json}");
            assert_eq!(outcome(true, &call(json)).value(), Some(strict), "{json}");
        }
    }

    #[test]
    fn what_is_not_an_object_is_no_call() {
        for json in ["1", "null", r#""name arguments""#, r#"["name", "arguments"]"#, "{}"] {
            assert_eq!(outcome(false, &call(json)).value(), Some(0.0), "{json}");
        }
    }

    #[test]
    fn deep_json_is_floored() {
        let deep = format!(r#"{{"name":"f","arguments":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        let outcome = outcome(false, &call(&deep));
        assert_eq!(outcome.kind(), OutcomeKind::Floored);
        assert_eq!(outcome.reason().expect("a reason").code, Code::ModelTooComplex);
    }

    #[test]
    fn many_calls_before_other_text_take_no_time() {
        let one = r#"<tool_call>{"name":"f","arguments":{}}</tool_call>"#;
        let text = format!("<think>t</think>{} and then", one.repeat(10_000));
        assert_eq!(outcome(false, &text).value(), Some(0.0));
        assert_eq!(outcome(false, text.trim_end_matches(" and then")).value(), Some(1.0));
    }
}
