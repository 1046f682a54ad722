//! Reader of expected tool calls: lists of calls in OpenAI's forms, reference messages, NeMo-Gym's expected action, calls with
//! the allowed values of each argument, and calls as text: in tags, in Python.

use super::RuleInput;
use super::arguments::ExpectedArguments;
use crate::conversation::{Arguments, Role, ToolCall, Turn};
use crate::input::read_response;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The fields of a row that hold the expected calls where the one that a component names and the reference are not there: the first
/// in which something like calls stands. After them come the fields of other references.
const FIELDS: [&str; 5] =
    ["expected_tool_calls", "ground_truth", "expected_answers", "answers", "possible_answer"];

/// The tags around calls in a text, as Hermes, ToolACE and Glaive write them. The last one is never closed.
const TAGS: [(&str, &str); 3] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<functioncall>", "<|endoftext|>"),
];

/// What data sets call the name of a function and its arguments beside the words of OpenAI.
const NAMES: [&str; 4] = ["tool_name", "function_name", "api_name", "tool"];
const ARGUMENTS: [&str; 4] = ["parameters", "args", "input", "kwargs"];

/// The most expected calls.
pub(super) const MAX_EXPECTED: usize = 128;

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
    pub(super) fn of(sample: &RuleInput<'_>, field: &str) -> Result<Self, Outcome> {
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
        if expected.calls().count() > MAX_EXPECTED {
            let message = format!("More than {MAX_EXPECTED} calls are expected.");
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
        let calls = calls.into_iter().map(usual).collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
        let calls: Vec<Value> = calls.collect();
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

/// The calls that an item of a list means, under OpenAI's words: of a text or a list, all that stand in it.
fn usual(item: Value) -> Result<Vec<Value>, String> {
    match item {
        Value::String(text) => {
            let mut all = match in_text(&text) {
                Some(Value::Array(all)) => all,
                Some(map @ Value::Object(_)) => vec![map],
                _ => return Err("a text that is no call".to_owned()),
            };
            all.iter_mut().filter_map(Value::as_object_mut).for_each(rename);
            Ok(all)
        }
        // A list for each turn.
        Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_string) => {
            let read = all.into_iter().map(usual).collect::<Result<Vec<_>, _>>()?;
            Ok(read.into_iter().flatten().collect())
        }
        Value::Object(mut map) => {
            if let Some(Value::Object(call)) = map.remove("function_call") {
                map = call;
            }
            if let Some(Value::Object(function)) = map.get_mut("function") {
                rename(function);
            }
            rename(&mut map);
            let mut entries = map.iter();
            Ok(vec![match (entries.next(), entries.next()) {
                // The name is the key.
                (Some((name, arguments @ Value::Object(_))), None) if name != "function" => {
                    json!({ "name": name, "arguments": arguments })
                }
                _ => Value::Object(map),
            }])
        }
        other => Ok(vec![other]),
    }
}

/// Gives a call the keys `name` and `arguments`, where it has them under other words.
fn rename(call: &mut Map<String, Value>) {
    let lacks = |call: &Map<String, Value>, key: &str| call.get(key).is_none_or(Value::is_null);
    if lacks(call, "name") {
        let other =
            NAMES.iter().chain(&["function"]).find(|key| call.get(**key).is_some_and(Value::is_string));
        if let Some(name) = other.and_then(|key| call.remove(*key)) {
            call.insert("name".to_owned(), name);
        }
    }
    if lacks(call, "arguments") && call.contains_key("name") {
        let given = |key: &&&str| call.get(**key).is_some_and(|value| value.is_object() || value.is_string());
        if let Some(arguments) = ARGUMENTS.iter().find(given).and_then(|key| call.remove(*key)) {
            call.insert("arguments".to_owned(), arguments);
        }
    }
}

/// Whether a value is a list or an object, or the text of calls.
fn may_be_calls(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let text = text.trim_start();
            text.starts_with(['[', '{'])
                || TAGS.iter().any(|(tag, _)| text.contains(tag))
                || plaudit_text::calls(text).is_some()
        }
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
    in_text(text).ok_or_else(|| unparsable(place, "it is neither JSON nor calls in tags or in Python"))
}

/// The calls of a text: JSON, one value or several after each other, between tags or not, a literal of Python, or its calls.
fn in_text(text: &str) -> Option<Value> {
    if let Some((open, close)) = TAGS.into_iter().find(|(open, _)| text.contains(open)) {
        let mut calls = Vec::new();
        for part in text.split(open).skip(1) {
            match untagged(part.split(close).next().unwrap_or(part))? {
                Value::Array(all) => calls.extend(all),
                one => calls.push(one),
            }
        }
        return Some(Value::Array(calls));
    }
    untagged(text)
}

fn untagged(text: &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let first = values.next().and_then(Result::ok);
    let rest = || values.collect::<Result<Vec<_>, _>>().ok();
    if let Some(first) = first
        && let Some(rest) = rest()
        && (rest.is_empty() || first.is_object() && rest.iter().all(Value::is_object))
    {
        return Some(if rest.is_empty() { first } else { [vec![first], rest].concat().into() });
    }
    let literal = plaudit_text::PyValue::literal(text).and_then(plaudit_text::PyValue::into_json);
    literal.filter(|value| !value.is_string()).or_else(|| plaudit_text::calls(text))
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
    fn calls_may_be_text() {
        for form in [
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            "I need it.\n<tool_call>{'name': 'f', 'arguments': {'a': 1}}</tool_call>",
            "<functioncall> {\"name\": \"f\", \"arguments\": '{\"a\": 1}'} <|endoftext|>",
            "[{'name': 'f', 'arguments': {'a': 1}}]",
            "[f(a=1)]",
            "f(a=1)",
            "[\"f(a=1)\"]",
            "{\"name\": \"f\", \"parameters\": {\"a\": 1}}\n",
            "[{\"f\": {\"a\": 1}}]",
            "{\"function_call\": {\"name\": \"f\", \"args\": {\"a\": 1}}}",
            "[\"{'name': 'f', 'input': {'a': 1}}\"]",
        ] {
            let read = in_text(form).map(read);
            assert_eq!(read, Some(Ok(vec!["f({\"a\":1})".to_owned()])), "{form}");
        }
        let two = "{\"name\": \"f\", \"args\": {}}\n{\"tool\": \"g\", \"input\": {\"b\": 2}}";
        let both = Some(Ok(vec!["f({})".to_owned(), "g({\"b\":2})".to_owned()]));
        assert_eq!(in_text(two).map(read), both);
        assert_eq!(in_text("[[\"f()\", \"g(b=2)\"]]").map(read), both);
        for other in ["", "no call", "7 8", "'f'", "{\"name\": \"f\"} and", "<tool_call>f</tool_call>"] {
            assert_eq!(in_text(other), None, "{other}");
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
