//! `turn_count`: a bounded penalty on conversations with more turns or tool calls than a budget.

use super::length::soft_overlong;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::Conversation;
use crate::outcome::{Fact, Info, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A penalty that grows over the last turns or tool calls before the most that are allowed.
///
/// ## What it scores
/// With the number N of the model's turns, or of its tool calls where `unit` is `call`: 0 up to `max - band`,
/// `(max - band - N) / band` up to `max`, and -1 beyond. Turns of tools and users do not count. A response that is plain
/// text is one turn without calls.
///
/// ## When to use it
/// Beside a reward for the result, so that an agent comes to the point: the same shape as `total_length`, over steps
/// instead of tokens. Set `max` to the trainer's limit on turns. Use `call` where one turn may call several tools.
///
/// ## How it can be gamed
/// It only ever punishes steps: giving up at once is safe from it. By turns, many calls in one turn are free; by calls, turns
/// of mere talk are.
///
/// ## Example
/// ```yaml
/// turns: { reward: turn_count, weight: 0.3, max: 20, band: 10, unit: turn }
/// ```
///
/// ## References
/// The shape is that of Yu et al., DAPO (arXiv 2503.14476), equation 13.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnCount {
    /// The most that are allowed.
    pub max: u64,
    /// Over how many of the last allowed ones the penalty grows; 0 makes it a step. At most `max`.
    pub band: u64,
    /// What is counted.
    pub unit: TurnUnit,
}

/// What is counted in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TurnUnit {
    /// Turns of the model.
    Turn,
    /// Its tool calls.
    Call,
}

impl Default for TurnCount {
    fn default() -> Self {
        Self { max: 16, band: 8, unit: TurnUnit::Turn }
    }
}

impl Reward<Rule> for TurnCount {
    const NAME: &'static str = "turn_count";
    const FACTS: &'static [&'static str] = &["turns", "calls"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let message = "the band is a part of the allowed number: at most max";
        ParamError::check(self.band <= self.max, "band", message)?;
        Ok(Rule::each(Range::new(-1.0, 0.0), move |sample| self.score(sample)).any_length(true))
    }
}

impl TurnCount {
    fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        let (turns, calls) = match sample.text.conversation() {
            None => (1, 0),
            Some(conversation) => turns_and_calls(conversation),
        };
        let counted = match self.unit {
            TurnUnit::Turn => turns,
            TurnUnit::Call => calls,
        };
        let info = Info::of([("turns", Fact::Count(turns)), ("calls", Fact::Count(calls))]);
        Outcome::scored(soft_overlong(counted, self.max, self.band), info)
    }
}

fn turns_and_calls(conversation: &Conversation) -> (u64, u64) {
    let counts = conversation.assistant_turns().map(|turn| turn.calls.len() as u64);
    counts.fold((0, 0), |(turns, calls), more| (turns + 1, calls + more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected, scored};
    use serde_json::{Value, json};

    fn count(parameters: Value, turns: usize, calls: usize) -> Option<f64> {
        let call = json!({"name": "f", "arguments": {}});
        let turn = json!({"role": "assistant", "content": "a", "tool_calls": vec![call; calls]});
        let tool = json!({"role": "tool", "content": "b"});
        let turns: Vec<Value> = (0..turns).flat_map(|_| [turn.clone(), tool.clone()]).collect();
        let rollout = TestRollout { turns: Some(Value::Array(turns)), ..TestRollout::default() };
        one::<TurnCount>(parameters, rollout).value()
    }

    #[test]
    fn only_the_models_own_steps_count() {
        let parameters = |unit: &str| json!({"max": 8, "band": 4, "unit": unit});
        let of = |unit: &str, turns, calls| count(parameters(unit), turns, calls);
        assert_eq!([4, 6, 8, 9].map(|turns| of("turn", turns, 3)), [0.0, -0.5, -1.0, -1.0].map(Some));
        assert_eq!([1, 2, 3].map(|calls| of("call", 3, calls)), [0.0, -0.5, -1.0].map(Some));
        assert_eq!(scored::<TurnCount>(json!({"max": 1, "band": 1}), "text").value(), Some(-1.0));
        assert_eq!(rejected::<TurnCount>(json!({"max": 1, "band": 2})), ["band"]);
    }
}
