//! `action_loop`: a bounded penalty on tool calls that repeat an earlier one.

use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::{Arguments, Conversation, ToolCall};
use crate::outcome::{Fact, Info, Outcome};
use rapidhash::RapidHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty for making the same tool call again, from 0 down to -1.
///
/// ## What it scores
/// A call is a repeat where one with the same name and the same arguments came before it: `anywhere` in the conversation, or
/// with `consecutive` right before it. Arguments are compared as JSON, so that the order of their keys does not matter;
/// arguments that are no JSON are compared as text. With R repeats, of which `free` cost nothing, the penalty is
/// `(R - free) / calls` with `penalty: share`, and `(R - free) / max` with `penalty: count`, at most 1, below 0.
///
/// A response without calls, such as plain text, has no repeats and gets 0.
///
/// ## When to use it
/// For agents that get stuck and try the same thing until they run out of turns. `free` leaves room for an honest second
/// try; `ignore` names tools that may be called again, such as one that waits or that reads a page which changes.
///
/// ## How it can be gamed
/// A call that differs in one letter is another call: a policy may add a counter or a space to an argument. What the
/// tools answered is not looked at. Pair it with `turn_count`, which no spelling escapes.
///
/// ## Example
/// ```yaml
/// loops: { reward: action_loop, weight: 0.5, repeats: anywhere, free: 1, ignore: [wait] }
/// ```
///
/// ## References
/// None; the rule is plaudit's own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ActionLoop {
    /// Which earlier calls a call must not equal.
    pub repeats: Repeats,
    /// What the repeats are divided by.
    pub penalty: LoopPenalty,
    /// How many repeats cost nothing.
    pub free: u64,
    /// With `penalty: count`, how many repeats beyond the free ones give -1. At least 1.
    pub max: u64,
    /// Tools whose calls are left out.
    pub ignore: Vec<String>,
}

/// Which earlier calls a call must not equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Repeats {
    /// Any.
    Anywhere,
    /// The one right before it.
    Consecutive,
}

/// What repeats are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoopPenalty {
    /// The number of calls.
    Share,
    /// A number of repeats that is too many.
    Count,
}

impl Default for ActionLoop {
    fn default() -> Self {
        Self { repeats: Repeats::Anywhere, penalty: LoopPenalty::Share, free: 0, max: 10, ignore: Vec::new() }
    }
}

impl Reward<Rule> for ActionLoop {
    const NAME: &'static str = "action_loop";
    const FACTS: &'static [&'static str] = &["calls", "repeats"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        ParamError::check(self.max > 0, "max", "must be 1 or more; free says how many cost nothing")?;
        Ok(Rule::each(Range::new(-1.0, 0.0), move |sample| self.score(sample)))
    }
}

impl ActionLoop {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let (mut calls, mut repeats) = (0_u64, 0_u64);
        let mut seen: RapidHashSet<String> = RapidHashSet::default();
        let all = sample.text.conversation().into_iter().flat_map(Conversation::calls);
        for call in all.filter(|call| !self.ignore.contains(&call.name)) {
            calls += 1;
            let text = identity(call);
            repeats += u64::from(seen.contains(&text));
            if self.repeats == Repeats::Consecutive {
                seen.clear();
            }
            seen.insert(text);
        }
        let over = repeats.saturating_sub(self.free);
        let parts = match self.penalty {
            LoopPenalty::Share => calls.max(1),
            LoopPenalty::Count => self.max,
        };
        let info = Info::of([("calls", Fact::Count(calls)), ("repeats", Fact::Count(repeats))]);
        Outcome::scored(-(over as f64 / parts as f64).min(1.0), info)
    }
}

/// A text that two calls share where they are the same. The keys of an object are sorted.
fn identity(call: &ToolCall) -> String {
    let text = match &call.arguments {
        Arguments::Object(map) => serde_json::to_string(&(&call.name, map)),
        Arguments::Broken(text) => serde_json::to_string(&(&call.name, text)),
    };
    // Strings and values are always JSON.
    text.unwrap_or_else(|_| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected, scored};
    use serde_json::{Value, json};

    fn loops(parameters: Value, calls: &[(&str, &str)]) -> Option<f64> {
        let message = |(name, arguments): &(&str, &str)| json!({"role": "assistant", "tool_calls": [{"name": name, "arguments": arguments}]});
        let turns = Some(calls.iter().map(message).collect());
        one::<ActionLoop>(parameters, TestRollout { turns, ..TestRollout::default() }).value()
    }

    #[test]
    fn repeats_are_found_anywhere_or_in_a_row() {
        let calls = [
            ("f", "{\"a\": 1, \"b\": 2}"),
            ("f", "{\"b\": 2, \"a\": 1}"),
            ("g", "{}"),
            ("f", "{\"a\":1,\"b\":2}"),
            ("f", "{\"a\": 2}"),
        ];
        assert_eq!(loops(json!({}), &calls), Some(-0.4));
        assert_eq!(loops(json!({"repeats": "consecutive"}), &calls), Some(-0.2));
        assert_eq!(loops(json!({"free": 1}), &calls), Some(-0.2));
        assert_eq!(loops(json!({"penalty": "count", "max": 4}), &calls), Some(-0.5));
        assert_eq!(loops(json!({"penalty": "count", "max": 1}), &calls), Some(-1.0));
        assert_eq!(loops(json!({"ignore": ["f"]}), &calls), Some(0.0));
        assert_eq!(loops(json!({}), &[("f", "{bad"), ("f", "{bad"), ("g", "{bad")]), Some(-1.0 / 3.0));
    }

    #[test]
    fn text_has_no_calls() {
        assert_eq!(scored::<ActionLoop>(json!({}), "f() f()").value(), Some(0.0));
        assert_eq!(rejected::<ActionLoop>(json!({"max": 0})), ["max"]);
    }
}
