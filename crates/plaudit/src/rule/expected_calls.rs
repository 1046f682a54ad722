//! Reader of expected tool calls: lists of calls in OpenAI's forms, reference messages, NeMo-Gym's expected action, and calls with
//! the allowed values of each argument.

use super::Sample;
use super::arguments::ExpectedArguments;
use crate::conversation::{Arguments, Role, ToolCall, Turn};
use crate::input::read_response;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The fields of a row that hold the expected calls where the one that a component names and the reference are not there: the first
/// in which something like calls stands. After them come the fields of other references.
const FIELDS: [&str; 4] = ["ground_truth", "expected_answers", "answers", "possible_answer"];

/// The most expected calls.
pub(super) const MOST_EXPECTED: usize = 128;

/// What the model should call.
#[derive(Debug, PartialEq)]
pub(super) enum ExpectedCalls {
    /// Calls, in order.
    List(Vec<ToolCall>, ExpectedArguments),
    /// Calls in the turns of a conversation, from the first of the model's on, and whether others came before.
    Turns {
        /// The turns.
        turns: Vec<Turn>,
        /// Whether the messages begin with what the model was asked.
        prompted: bool,
    },
}

impl ExpectedCalls {
    /// What a rollout expects: what a field of `extra` says, else the reference, else one of [`FIELDS`].
    pub(super) fn of(sample: &Sample<'_>, field: &str) -> Result<Self, Outcome> {
        let given = |field| sample.extra.get(field).filter(|value| !value.is_null());
        let usual = FIELDS.into_iter().filter_map(|field| Some((Cow::Borrowed(given(field)?), field)));
        let found = || {
            let reference = sample.reference?;
            Some((Cow::Owned(Value::from(reference.as_str())), reference.field()?))
        };
        let (value, place) = match (given(field), sample.own_reference()) {
            (Some(value), _) => (Cow::Borrowed(value), field),
            (None, Some(reference)) if reference.stripped().is_empty() => {
                return Err(Outcome::skipped(Code::EmptyReference));
            }
            (None, Some(reference)) => (Cow::Owned(Value::from(reference.as_str())), "the reference"),
            (None, None) => {
                let mut all = usual.chain(found());
                all.find(|(value, _)| may_be_calls(value)).ok_or_else(|| missing(field))?
            }
        };
        let value = match value.as_str() {
            Some(text) => parsed(text, place)?,
            None => value.into_owned(),
        };
        let expected = Self::read(value, place).map_err(|what| unparsable(place, &what))?;
        if expected.calls().any(|call| matches!(call.arguments, Arguments::Broken(_))) {
            return Err(unparsable(place, "the arguments of a call are no object of JSON"));
        }
        if expected.calls().count() > MOST_EXPECTED {
            let message = format!("More than {MOST_EXPECTED} calls are expected.");
            return Err(Outcome::invalid(Reason::new(Code::ReferenceTooLong, message)));
        }
        Ok(expected)
    }

    /// What stands for each argument of a call.
    pub(super) fn arguments(&self) -> ExpectedArguments {
        match self {
            Self::List(_, arguments) => *arguments,
            Self::Turns { .. } => ExpectedArguments::Values,
        }
    }

    /// All expected calls, in order.
    pub(super) fn calls(&self) -> Box<dyn Iterator<Item = &ToolCall> + '_> {
        match self {
            Self::List(calls, _) => Box::new(calls.iter()),
            Self::Turns { turns, .. } => Box::new(turns.iter().flat_map(|turn| &turn.calls)),
        }
    }

    fn read(value: Value, place: &str) -> Result<Self, String> {
        match value {
            Value::Array(all) if !all.is_empty() && all.iter().all(has_allowed_values) => {
                Ok(Self::allowed(all))
            }
            map if has_allowed_values(&map) => Ok(Self::allowed(vec![map])),
            Value::Array(all) if all.iter().any(is_message) => Self::turns(Value::Array(all), place),
            Value::Array(all) => Self::list(all, place),
            Value::Object(mut map) => {
                let kind = map.get("type").and_then(Value::as_str);
                match kind {
                    // NeMo-Gym: a message is expected, and so no call.
                    Some("message") if !map.contains_key("role") => Ok(Self::none()),
                    Some("function_call_batch") => match map.remove("calls") {
                        Some(Value::Array(calls)) => Self::list(calls, place),
                        _ => Err("a batch without a list of calls".to_owned()),
                    },
                    _ if map.contains_key("role") => Self::turns(json!([map]), place),
                    _ if ["messages", "output", "choices", "nodes"]
                        .iter()
                        .any(|key| map.contains_key(*key)) =>
                    {
                        Self::turns(Value::Object(map), place)
                    }
                    _ => match map.remove("tool_calls") {
                        Some(Value::Array(calls)) => Self::list(calls, place),
                        _ => Self::list(vec![Value::Object(map)], place),
                    },
                }
            }
            _ => Err("a list of calls or of messages is wanted".to_owned()),
        }
    }

    fn none() -> Self {
        Self::List(Vec::new(), ExpectedArguments::Values)
    }

    /// Calls as objects of a function's name with the allowed values of its arguments.
    fn allowed(all: Vec<Value>) -> Self {
        let maps = all.into_iter().filter_map(|one| match one {
            Value::Object(map) => Some(map),
            _ => None,
        });
        let calls = maps.flatten().filter_map(|(name, arguments)| match arguments {
            Value::Object(map) => Some(ToolCall { name, arguments: Arguments::Object(map) }),
            _ => None,
        });
        Self::List(calls.collect(), ExpectedArguments::Allowed)
    }

    /// Calls that stand in no message are read as those of one.
    fn list(calls: Vec<Value>, place: &str) -> Result<Self, String> {
        if calls.is_empty() {
            return Ok(Self::none());
        }
        let message = json!([{ "role": "assistant", "tool_calls": calls }]);
        match Self::turns(message, place)? {
            Self::Turns { turns, .. } => {
                let calls = turns.into_iter().flat_map(|turn| turn.calls).collect();
                Ok(Self::List(calls, ExpectedArguments::Values))
            }
            list => Ok(list),
        }
    }

    fn turns(messages: Value, place: &str) -> Result<Self, String> {
        let read = read_response(messages, place, false).map_err(|error| error.message)?;
        let all = read.conversation.as_ref().map_or(&[][..], |conversation| &conversation.turns);
        let turns = from_the_first(all).to_vec();
        let prompted = turns.len() < all.len() || read.prompt.is_some_and(|prompt| !prompt.is_empty());
        Ok(Self::Turns { turns, prompted })
    }
}

/// The turns from the first of the model's on: what comes before is the prompt.
pub(super) fn from_the_first(turns: &[Turn]) -> &[Turn] {
    let first = turns.iter().position(|turn| turn.role == Role::Assistant).unwrap_or(turns.len());
    &turns[first..]
}

/// Whether an item of a list is a message, or an item of the Responses API beside messages.
fn is_message(item: &Value) -> bool {
    item.get("role").is_some()
        || matches!(item["type"].as_str(), Some("message" | "reasoning" | "function_call_output"))
}

/// Whether a value is a call in the form of the Berkeley Function-Calling Leaderboard: an object of the function's name with an
/// object that has a list of allowed values for each argument.
fn has_allowed_values(item: &Value) -> bool {
    let are_lists =
        |arguments: &Value| arguments.as_object().is_some_and(|map| map.values().all(Value::is_array));
    item.as_object().is_some_and(|map| !map.is_empty() && map.values().all(are_lists))
}

/// Whether a value is a list or an object, or the text of one.
fn may_be_calls(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim_start().starts_with(['[', '{']),
        value => value.is_array() || value.is_object(),
    }
}

/// The outcome of a row that does not say which calls are expected.
fn missing(field: &str) -> Outcome {
    let usual = FIELDS.map(|name| format!("`{name}`")).join(", ");
    let message = format!("The row has neither a reference nor the field `{field}`, nor {usual}.");
    Outcome::skipped(Reason::new(Code::MissingReference, message))
}

fn parsed(text: &str, place: &str) -> Result<Value, Outcome> {
    serde_json::from_str(text).map_err(|_| unparsable(place, "it is no JSON"))
}

fn unparsable(place: &str, what: &str) -> Outcome {
    let message = format!("The expected calls in {place} cannot be read: {what}.");
    Outcome::invalid(Reason::new(Code::ReferenceUnparsable, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Vec<String>, String> {
        ExpectedCalls::read(value, "reference").map(|read| read.calls().map(ToolCall::line).collect())
    }

    #[test]
    fn one_call_is_the_same_in_every_form() {
        let call = json!({"name": "f", "arguments": {"a": 1}});
        let text = json!({"name": "f", "arguments": "{\"a\": 1}"});
        let tool = json!({"id": "c", "type": "function", "function": text});
        let item = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\": 1}"});
        for form in [
            json!([call]),
            json!([text]),
            json!([tool]),
            json!([item]),
            call.clone(),
            item.clone(),
            json!({"tool_calls": [tool]}),
            json!({"role": "assistant", "tool_calls": [tool]}),
            json!([{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [tool]}]),
            json!({"messages": [{"role": "assistant", "tool_calls": [tool]}]}),
            json!([item, {"type": "function_call_output", "call_id": "c", "output": "2"}]),
            json!({"type": "function_call_batch", "calls": [text]}),
        ] {
            assert_eq!(read(form.clone()), Ok(vec!["f({\"a\":1})".to_owned()]), "{form}");
        }
    }

    #[test]
    fn nothing_is_expected_only_where_that_is_said() {
        for none in [json!([]), json!({"type": "message"}), json!([{"role": "assistant", "content": "hi"}])] {
            assert_eq!(read(none), Ok(Vec::new()));
        }
        for bad in [json!(7), json!("f"), json!({}), json!([7]), json!([{"name": 7}]), json!({"calls": []})] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
