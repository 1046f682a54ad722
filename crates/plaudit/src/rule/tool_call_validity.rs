//! `tool_call_validity`: the share of tool calls with a declared name and arguments that are valid by the tool's JSON schema.

use super::json_schema::{CompiledSchema, Reading, SchemaChecker, SchemaError};
use super::tool_names::DottedNames;
use super::tool_schema::schema_of;
use super::{ParamError, Range, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::{Arguments, Conversation, Tool};
use crate::outcome::{Fact, Info, Outcome};
use crate::reason::{Code, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The share of tool calls that name a declared tool and give it arguments that its schema allows.
///
/// ## What it scores
/// The calls of all turns, against the `tools` of the rollout. A call is valid where a tool of that name is declared, its
/// arguments are an object of JSON, and the object is valid by the tool's JSON schema; a tool without a schema takes any
/// object. The score is the share of valid calls, or with `score: all` 1 where every call is valid and else 0.
///
/// Declarations need not be JSON Schema to the letter. Types may have their names in Python, Java and JavaScript (`dict`, `float`, `tuple`,
/// `HashMap`, `str, optional`, `Optional[List[int]]`, `any`), and an object of arguments may stand without a schema around it: then those
/// without a default are required and no others allowed. A type that is not known makes the rollout invalid with
/// `input.schema_unsupported`. The declared default of an argument is allowed, whatever its type. A name with dots may be called with underscores in their place.
///
/// Of JSON Schema it checks all keywords of `structured_output`; `format` restricts nothing. Where a tool that is called has another
/// keyword, or a reference to a schema elsewhere, the rollout is skipped with `input.schema_unsupported`.
///
/// A rollout without declared tools is skipped with `input.missing_tools`. A response without calls, such as plain text, is
/// skipped with `model.no_calls`, unless `no_calls` says what it gets.
///
/// ## When to use it
/// While a model learns the form of calls, beside a reward for the result: an invalid call is told without running it. As a
/// gate (`gate: { min: 1.0 }`) it keeps trajectories with invented tools out.
///
/// ## How it can be gamed
/// A valid call may be useless: repeating one cheap valid call raises the share. Pair it with `action_loop` or
/// `turn_count`. Where `no_calls` is 1, not calling anything is safe.
///
/// ## Example
/// ```yaml
/// valid: { reward: tool_call_validity, weight: 0.2, score: share, no_calls: 0.0 }
/// ```
///
/// ## References
/// JSON Schema 2020-12, validation vocabulary.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolCallValidity {
    /// How the valid calls become a number.
    pub score: ValidityScore,
    /// What a response without calls gets, from 0 to 1; without it such a response is skipped.
    pub no_calls: Option<f64>,
}

/// How valid calls become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValidityScore {
    /// Their share.
    Share,
    /// 1 where all are valid.
    All,
}

impl Default for ToolCallValidity {
    fn default() -> Self {
        Self { score: ValidityScore::Share, no_calls: None }
    }
}

impl Reward<Rule> for ToolCallValidity {
    const NAME: &'static str = "tool_call_validity";
    const FACTS: &'static [&'static str] = &["calls", "valid"];

    fn build(self, _: &mut ResourceCache) -> Result<Rule, Vec<ParamError>> {
        let sensible = self.no_calls.is_none_or(|value| (0.0..=1.0).contains(&value));
        ParamError::check(sensible, "no_calls", "lies between 0 and 1, as the share does")?;
        Ok(Rule::each(Range::new(0.0, 1.0), move |sample| self.score(sample)))
    }
}

impl ToolCallValidity {
    fn score(&self, sample: &RuleInput<'_>) -> Result<Outcome, Outcome> {
        let tools = sample.tools.ok_or_else(|| no_tools(sample))?;
        let names = DottedNames::of(tools.iter().map(|tool| tool.name.as_str()));
        let mut by_name: BTreeMap<&str, (&Tool, Option<CompiledSchema>)> =
            tools.iter().map(|tool| (tool.name.as_str(), (tool, None))).collect();
        let mut checker = SchemaChecker::new();
        let (mut calls, mut valid, mut unknown, mut broken) = (0_u64, 0_u64, 0_u64, 0_u64);
        for call in sample.text.conversation().into_iter().flat_map(Conversation::calls) {
            calls += 1;
            let Some((tool, known)) = by_name.get_mut(names.meant(&call.name)) else {
                unknown += 1;
                continue;
            };
            if let (Some(declared), None) = (&tool.parameters, &*known) {
                *known = Some(compiled(tool, declared)?);
            }
            match (&call.arguments, &*known) {
                (Arguments::Broken(_), _) => broken += 1,
                (Arguments::Object(_), None) => valid += 1,
                (Arguments::Object(_), Some(schema)) => {
                    match checker.check(schema, &call.arguments_value()) {
                        Ok(()) => valid += 1,
                        Err(SchemaError::Wrong(_)) => {}
                        Err(failure) => return Err(cannot_tell(tool, failure)),
                    }
                }
            }
        }
        let value = match (calls, self.no_calls, self.score) {
            (0, None, _) => return Err(Outcome::skipped(Code::ModelNoCalls)),
            (0, Some(value), _) => value,
            (_, _, ValidityScore::Share) => valid as f64 / calls as f64,
            (_, _, ValidityScore::All) => f64::from(u8::from(valid == calls)),
        };
        let info = Info::of([
            ("calls", Fact::Count(calls)),
            ("valid", Fact::Count(valid)),
            ("unknown_tools", Fact::Count(unknown)),
            ("broken_arguments", Fact::Count(broken)),
        ]);
        Ok(Outcome::scored(value, info))
    }
}

/// The outcome of a row without tools, which may have them under another name.
fn no_tools(sample: &RuleInput<'_>) -> Outcome {
    const NAMES: [&str; 3] = ["function", "functions", "available_tools"];
    let found = NAMES.into_iter().find(|name| sample.extra.get(*name).is_some_and(|value| !value.is_null()));
    Outcome::skipped(found.map_or_else(
        || Code::MissingTools.into(),
        |name| {
            let message = format!("The rollout declares no tools. Its field `{name}` may have them.");
            Reason::new(Code::MissingTools, message)
        },
    ))
}

/// What the declaration of a tool means, looked through.
fn compiled(tool: &Tool, declared: &Value) -> Result<CompiledSchema, Outcome> {
    let schema = schema_of(declared).map_err(|unknown| {
        let message = format!(
            "The tool {:?} declares the type {:?}, which is not known. The types of JSON Schema are, and their names in \
             Python, Java and JavaScript.",
            tool.name, unknown.0
        );
        Outcome::invalid(Reason::new(Code::SchemaUnsupported, message))
    })?;
    CompiledSchema::read(&schema, Reading::default()).map_err(|failure| cannot_tell(tool, failure))
}

/// The outcome where it cannot be told whether a call of a tool is valid.
fn cannot_tell(tool: &Tool, failure: SchemaError) -> Outcome {
    match failure {
        SchemaError::Unsupported(what) => {
            let message =
                format!("The schema of the tool {:?} has {what:?}, which is not checked.", tool.name);
            Outcome::skipped(Reason::new(Code::SchemaUnsupported, message))
        }
        SchemaError::Wrong(_) | SchemaError::TooMuch => {
            let message = "The arguments of the calls take too long to check.";
            Outcome::floored(0.0, Reason::new(Code::ModelTooComplex, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::test_util::{TestRollout, one, rejected};
    use serde_json::json;

    fn score(parameters: Value, tools: Option<Value>, calls: Value) -> Outcome {
        let turns = Some(json!([{"role": "assistant", "content": "", "tool_calls": calls}]));
        one::<ToolCallValidity>(parameters, TestRollout { turns, tools, ..TestRollout::default() })
    }

    fn tools() -> Option<Value> {
        let schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let elsewhere = json!({"type": "object", "$ref": "https://example.org/post"});
        Some(json!([
            {"type": "function", "function": {"name": "weather", "parameters": schema}},
            {"name": "wait"},
            {"name": "post", "parameters": elsewhere},
        ]))
    }

    #[test]
    fn names_and_arguments_must_be_declared() {
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        let calls = json!([
            call("weather", json!({"city": "Oslo"})),
            call("weather", json!({"city": 7})),
            call("weather", json!("{bad")),
            call("wether", json!({"city": "Oslo"})),
            call("wait", json!({"any": 1})),
        ]);
        let outcome = score(json!({}), tools(), calls.clone());
        assert_eq!(outcome.value(), Some(0.4));
        let info = outcome.info().unwrap();
        for (fact, count) in [("calls", 5), ("valid", 2), ("unknown_tools", 1), ("broken_arguments", 1)] {
            assert_eq!(info.get(fact), Some(&Fact::Count(count)), "{fact}");
        }
        assert_eq!(score(json!({"score": "all"}), tools(), calls.clone()).value(), Some(0.0));
        assert_eq!(score(json!({"score": "all"}), tools(), json!([calls[0], calls[4]])).value(), Some(1.0));
    }

    #[test]
    fn what_cannot_be_told_is_skipped() {
        let call = json!([{"name": "post", "arguments": {"zip": "1"}}]);
        for (outcome, code) in [
            (score(json!({}), None, call.clone()), Code::MissingTools),
            (score(json!({}), tools(), call), Code::SchemaUnsupported),
            (score(json!({}), tools(), json!([])), Code::ModelNoCalls),
        ] {
            assert_eq!((outcome.value(), outcome.reason().unwrap().code), (None, code));
        }
        assert_eq!(score(json!({"no_calls": 0.5}), tools(), json!([])).value(), Some(0.5));
        assert_eq!(rejected::<ToolCallValidity>(json!({"no_calls": 2})), ["no_calls"]);
    }
}
