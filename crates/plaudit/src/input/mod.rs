//! Input parser: one JSON line becomes a rollout or a group of them, or one error with its path.

mod conversation;
mod guess;
mod masked;
mod number;
mod path;
pub mod strict;

pub use crate::rollout::whole;
pub use conversation::{ParsedResponse, read_response, read_tools, tools_in};
pub use guess::{likely_reference, other_names, some_names};
pub use plaudit_text::exact;

use crate::conversation::Conversation;
use crate::reason::Code;
use crate::rollout::{FIELDS, Generation, Misfit, Prompt, Reference, Rollout, RolloutLine, place};
use number::{count, decimal};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The longest line, in bytes. What is longer is refused without being held in memory.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// The longest id or group name, in bytes.
pub const MAX_NAME: usize = 512;
/// The most responses of one group line.
pub const MAX_RESPONSES: usize = 65_536;

/// A line, or a row, that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct InputError {
    /// The number of the line, from 1, where it is known.
    pub line: Option<u64>,
    /// The stable code, such as `input.json`.
    pub code: &'static str,
    /// What is wrong, and the likely fix.
    pub message: String,
    /// Where what is missing seems to stand: fields with their names in the line, such as `("response", "completion")`.
    #[serde(skip)]
    pub renames: Vec<(&'static str, String)>,
}

impl InputError {
    /// An error of a line that is not known yet.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { line: None, code, message: message.into(), renames: Vec::new() }
    }

    /// The same error, at a line.
    #[must_use]
    pub fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(out, "line {line}: ")?;
        }
        write!(out, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for InputError {}

/// Under which names a data set holds what a rollout is made of. A dot leads into an object, as in
/// `reward_model.ground_truth`, or with a number into a list: `messages.-1.content` is in the last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    names: [Cow<'static, str>; FIELDS.len()],
    /// Whether a line with other fields is refused.
    strict: bool,
    /// What stands for the response of a line without one, where such lines are taken.
    stand_in: Option<&'static str>,
}

impl Fields {
    /// The names of plaudit's own format.
    pub fn own() -> Self {
        let names = std::array::from_fn(|at| Cow::Borrowed(FIELDS[at].name));
        Self { names, strict: false, stand_in: None }
    }

    /// Refuses lines with fields that are neither known nor mapped, which are else kept as `extra`.
    pub fn refuse_others(&mut self) {
        self.strict = true;
    }

    /// Takes lines without a response, as a data set has them before a training, and puts a text in its place.
    pub fn stand_in_response(&mut self, text: &'static str) {
        self.stand_in = Some(text);
    }

    /// Reads a field from another name. Gives back whether there is such a field.
    pub fn map(&mut self, field: &str, name: &str) -> bool {
        let place = FIELDS.iter().position(|known| known.name == field);
        if let Some(at) = place {
            self.names[at] = Cow::Owned(name.to_owned());
        }
        place.is_some()
    }

    /// Takes a field out of an object, or finds it deeper inside.
    fn take(&self, field: usize, from: &mut Map<String, Value>) -> Option<Value> {
        let name = &*self.names[field];
        // A name with a dot that stands in the line as it is wins over a path.
        let found = from.remove(name).or_else(|| path::find(from, name).cloned());
        // A large integer is its digits in a name or a reference, and a number like others elsewhere.
        let found = found.map(|value| match value.as_str().and_then(exact::number) {
            Some(digits) if matches!(field, ID | GROUP | REFERENCE) => Value::from(digits),
            Some(_) => exact::rounded(&value),
            None => value,
        });
        // A table has an empty cell where a line of JSON has no key.
        found.filter(|value| field == RESPONSE || !value.is_null())
    }

    /// Whether a field other than `extra` is read from a column, or from inside it.
    pub fn reads(&self, column: &str) -> bool {
        let read = |name: &str| name == column || name.split('.').next() == Some(column);
        self.names.iter().enumerate().any(|(field, name)| field != EXTRA && read(name))
    }

    /// Says whether what nothing took may stay.
    fn check_rest(&self, rest: &Map<String, Value>) -> Result<(), InputError> {
        let leads = |key: &str| self.names.iter().any(|name| name.split('.').next() == Some(key));
        match rest.keys().find(|key| self.strict && !leads(key)) {
            None => Ok(()),
            Some(key) => {
                Err(InputError::new("input.unknown_field", format!("the field {key:?} is not known")))
            }
        }
    }
}

const ID: usize = place("id");
const GROUP: usize = place("group");
const PROMPT: usize = place("prompt");
const RESPONSE: usize = place("response");
const RESPONSES: usize = place("responses");
const REFERENCE: usize = place("reference");
const EXTRA: usize = place("extra");

/// What each rollout of a line has of its own.
#[derive(Debug)]
struct LineMember {
    response: String,
    conversation: Option<Arc<Conversation>>,
    tokens: Option<u64>,
    generation: Generation,
}

impl LineMember {
    fn bytes(&self) -> usize {
        self.response.len() + self.conversation.as_ref().map_or(0, |conversation| conversation.bytes())
    }
}

/// The rollouts of one line. What they share is copied only as each is taken, so that a line takes no more memory
/// than it has bytes, however many responses it holds.
#[derive(Debug)]
pub struct Rollouts {
    shared: Rollout<'static>,
    responses: std::vec::IntoIter<LineMember>,
    /// The place of the next member in a group line.
    at: Option<usize>,
}

impl Rollouts {
    /// What all rollouts of the line have in common: everything but the response and the token count.
    pub fn shared(&self) -> &Rollout<'static> {
        &self.shared
    }

    /// About how many bytes the text of the rollouts will take, once each has its own copy of what they share.
    pub fn bytes(&self) -> usize {
        let responses: usize = self.responses.as_slice().iter().map(LineMember::bytes).sum();
        self.shared.bytes().saturating_mul(self.responses.len()).saturating_add(responses)
    }

    /// Gives the line an id where it has none of its own.
    pub fn name(&mut self, id: impl FnOnce() -> String) {
        self.shared.id.get_or_insert_with(|| Cow::Owned(id()));
    }

    /// The ids that the rollouts will have, where the line has one.
    pub fn ids(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let id = self.shared.id.as_deref();
        let many = self.at.map(|at| at..at + self.responses.len());
        let one = id.filter(|_| many.is_none() && self.responses.len() > 0).map(Cow::Borrowed);
        let members = id.into_iter().flat_map(move |id| {
            let places = many.clone().into_iter().flatten();
            places.map(move |at| Cow::Owned(format!("{id}.{at}")))
        });
        one.into_iter().chain(members)
    }
}

impl Iterator for Rollouts {
    type Item = Rollout<'static>;

    fn next(&mut self) -> Option<Rollout<'static>> {
        let member = self.responses.next()?;
        let mut rollout = match self.responses.len() {
            0 => std::mem::replace(&mut self.shared, Rollout::new("")),
            _ => self.shared.clone(),
        };
        if let Some(at) = &mut self.at {
            rollout.id = rollout.id.map(|id| Cow::Owned(format!("{id}.{at}")));
            *at += 1;
        }
        rollout.response = Cow::Owned(member.response);
        rollout.conversation = member.conversation;
        rollout.tokens = member.tokens;
        rollout.generation = member.generation;
        Some(rollout)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.responses.size_hint()
    }
}

impl ExactSizeIterator for Rollouts {}

/// Reads something of one row. A panic is that row's error, and concerns no other.
pub fn guarded<T>(read: impl FnOnce() -> Result<T, InputError>) -> Result<T, InputError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let message = "the reader failed as it must not; please report it";
        Err(InputError::new(Code::Panic.as_str(), message))
    })
}

/// The rollouts of one line of JSON: one, or those of a group line.
pub fn read_line(line: &[u8], fields: &Fields) -> Result<Rollouts, InputError> {
    guarded(|| read_text(line, fields))
}

fn read_text(line: &[u8], fields: &Fields) -> Result<Rollouts, InputError> {
    if line.len() > MAX_LINE {
        return Err(too_long());
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        let message = format!("the line is not UTF-8 text, from byte {} on", error.valid_up_to() + 1);
        InputError::new("input.utf8", message)
    })?;
    match strict::read(text)? {
        Value::Object(map) => read_object(map, fields, Some(text)),
        other => Err(InputError::new("input.schema", format!("an object is wanted, found {}", kind(&other)))),
    }
}

/// The error of a line that is longer than [`MAX_LINE`].
pub fn too_long() -> InputError {
    let message = format!("the line is longer than {} MiB", MAX_LINE / 1024 / 1024);
    InputError::new("input.line_too_long", message)
}

/// The rollouts of one object, such as a row of a table.
pub fn read_map(map: Map<String, Value>, fields: &Fields) -> Result<Rollouts, InputError> {
    guarded(|| read_object(map, fields, None))
}

/// The rollouts of one object, with the text that it was read from where there is one.
fn read_object(
    mut map: Map<String, Value>,
    fields: &Fields,
    line: Option<&str>,
) -> Result<Rollouts, InputError> {
    let mut given = RolloutLine::read(|field| fields.take(field, &mut map));
    let found = given.given();
    let literal = |field: usize| path::literal(line?, &fields.names[field]);
    let id = given.id.take().map(|value| name("id", value, || literal(ID))).transpose()?;
    let group = given.group.take().map(|value| name("group", value, || literal(GROUP))).transpose()?;
    let prompt = given.prompt.take().map(read_prompt).transpose()?;
    let reference = given.reference.take().and_then(|value| read_reference(value, || literal(REFERENCE)));
    let mut tools = given.tools.take().map(|tools| read_tools(&tools, "tools")).transpose()?.flatten();
    let (mut said, at) = match (given.response.take(), given.responses.take()) {
        (Some(response), None) => {
            (vec![read_response(response, &fields.names[RESPONSE], line.is_none())?], None)
        }
        (None, Some(responses)) => (read_responses(responses, line.is_none())?, Some(0)),
        (Some(_), Some(_)) => {
            return Err(InputError::new("input.schema", "response and responses exclude each other"));
        }
        (None, None) => match fields.stand_in {
            Some(text) => (vec![ParsedResponse { text: text.to_owned(), ..ParsedResponse::default() }], None),
            None => return Err(guess::missing_response(&map, fields, found)),
        },
    };
    fields.check_rest(&map)?;
    // A wire form that holds the prompt and the tools as well fills in what the line does not say.
    let prompt = prompt.or_else(|| said[0].prompt.take().filter(|all| !all.is_empty()).map(Prompt::Messages));
    tools = tools.or_else(|| said[0].tools.take());
    let responses = read_members(&given, said, at.is_some())?.into_iter();
    let extra = read_extra(given.extra.take(), map)?;
    let tools = tools.or_else(|| tools_in(&extra));
    let id = id.map(Cow::Owned);
    let group = group.map(Cow::Owned);
    let shared = Rollout { id, group, prompt, tools, reference, extra, ..Rollout::default() };
    Ok(Rollouts { shared, responses, at })
}

/// What each response of a line has of its own. Of one response a field is its value, of several a list with one value each.
fn read_members(
    given: &RolloutLine,
    said: Vec<ParsedResponse>,
    many: bool,
) -> Result<Vec<LineMember>, InputError> {
    for field in Generation::FIELDS.into_iter().chain(["tokens"]).filter(|_| many) {
        let fits = |value: &Value| value.as_array().is_some_and(|all| all.len() == said.len());
        if !given.get(field).is_none_or(fits) {
            let (code, what) = match field {
                "tokens" => ("input.tokens", "count"),
                _ => ("input.schema", "value"),
            };
            let message = format!("{field}: a list with one {what} a response is wanted");
            return Err(InputError::new(code, message));
        }
    }
    let member = |(at, said): (usize, ParsedResponse)| -> Result<LineMember, InputError> {
        let own =
            |field: &str| given.get(field).and_then(|value| if many { value.get(at) } else { Some(value) });
        Ok(LineMember {
            tokens: own("tokens").map(|value| count("tokens", value)).transpose()?,
            generation: read_generation(own, said.generation)?,
            response: said.text,
            conversation: said.conversation,
        })
    };
    said.into_iter().enumerate().map(member).collect()
}

/// How a response was generated, from the fields of its row and what its wire form says.
pub fn read_generation<'v>(
    field: impl Fn(&str) -> Option<&'v Value>,
    known: Generation,
) -> Result<Generation, InputError> {
    Generation::read(&field, known).map_err(|Misfit { field: name, wanted: what }| {
        wanted("input.schema", name, what, field(name).unwrap_or(&Value::Null))
    })
}

fn read_responses(value: Value, table: bool) -> Result<Vec<ParsedResponse>, InputError> {
    let Value::Array(all) = value else {
        return Err(wanted("input.response", "responses", "a list", &value));
    };
    match all.len() {
        0 => Err(InputError::new("input.group_size", "responses is empty: a group has at least one")),
        many if many > MAX_RESPONSES => {
            let message = format!("{many} responses, at most {MAX_RESPONSES} are read");
            Err(InputError::new("input.group_size", message))
        }
        _ => {
            let read = |(at, value)| read_response(value, &format!("responses[{at}]"), table);
            all.into_iter().enumerate().map(read).collect()
        }
    }
}

/// `extra`, with the fields of the line that nothing else took.
fn read_extra(extra: Option<Value>, mut rest: Map<String, Value>) -> Result<Map<String, Value>, InputError> {
    match extra {
        None => {}
        // What was written in `extra` itself wins.
        Some(Value::Object(map)) => rest.extend(map),
        Some(other) => return Err(wanted("input.schema", "extra", "an object", &other)),
    }
    Ok(rest)
}

fn read_prompt(value: Value) -> Result<Prompt<'static>, InputError> {
    match value {
        Value::String(text) => Ok(Prompt::Text(Cow::Owned(text))),
        Value::Array(messages) if !messages.is_empty() && messages.iter().all(Value::is_object) => {
            Ok(Prompt::Messages(messages))
        }
        Value::Array(_) => Err(InputError::new("input.schema", "prompt: a list of chat messages is wanted")),
        other => {
            let message = format!("prompt: text or chat messages are wanted, found {}", kind(&other));
            Err(InputError::new("input.schema", message))
        }
    }
}

/// What a name may be.
const A_NAME: &str = "text or a whole number";

/// A name: text, or a whole number as its decimal text. `literal` is how a number was written, where that is known.
fn name<'l>(
    field: &'static str,
    value: Value,
    literal: impl FnOnce() -> Option<&'l str>,
) -> Result<String, InputError> {
    let code = if field == "id" { "input.id" } else { "input.group" };
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => {
            let text = decimal(&number, literal);
            let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            match number.as_f64().filter(|_| !is_integer).map(whole) {
                None => text,
                Some(Some(digits)) => digits,
                Some(None) => {
                    let found = format!("found the number {text}");
                    return Err(InputError::new(code, format!("{field}: {A_NAME} is wanted, {found}")));
                }
            }
        }
        other => return Err(wanted(code, field, A_NAME, &other)),
    };
    match text.len() {
        0 if field == "id" => {
            Err(InputError::new(code, "id is empty: give it a name, or leave it out to have one made"))
        }
        length if length > MAX_NAME => Err(InputError::new(
            if field == "id" { "input.id_length" } else { "input.group_length" },
            format!("{field} has {length} bytes, at most {MAX_NAME} are read"),
        )),
        _ => Ok(text),
    }
}

/// A reference: a number as its decimal text, anything else as [`Reference::of_value`] has it.
fn read_reference<'l>(value: Value, literal: impl FnOnce() -> Option<&'l str>) -> Option<Reference<'static>> {
    match value {
        Value::String(text) => Some(Reference::from(text)),
        Value::Number(number) => Some(Reference::from(decimal(&number, literal))),
        other => Reference::of_value(&other),
    }
}

/// The error of a field that holds something else than what is wanted.
fn wanted(code: &'static str, field: &str, what: &str, found: &Value) -> InputError {
    InputError::new(code, format!("{field}: {what} is wanted, found {}", kind(found)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<Rollout<'static>>, InputError> {
        read_line(line.as_bytes(), &Fields::own()).map(Iterator::collect)
    }

    #[test]
    fn a_flat_line_keeps_what_it_does_not_know() {
        let rollouts =
            read(r#"{"id":"r1","prompt":"p","response":"a","tokens":3,"extra":{"k":1},"source":"x"}"#)
                .unwrap();
        assert_eq!(rollouts.len(), 1);
        assert_eq!(rollouts[0].tokens, Some(3));
        assert_eq!(rollouts[0].extra["k"], 1);
        assert_eq!(rollouts[0].extra["source"], "x");
    }

    #[test]
    fn a_group_line_is_many_rollouts() {
        let rollouts = read(
            r#"{"id":"g","prompt":[{"role":"user","content":"q"}],"responses":["a","b"],"tokens":[1,2]}"#,
        );
        let rollouts = rollouts.unwrap();
        assert_eq!(rollouts[1].id.as_deref(), Some("g.1"));
        let mut line = read_line(br#"{"responses":["a","b"]}"#, &Fields::own()).unwrap();
        line.name(|| "line-7".to_owned());
        assert_eq!(line.ids().collect::<Vec<_>>(), ["line-7.0", "line-7.1"]);
        assert_eq!(line.next().and_then(|rollout| rollout.id).as_deref(), Some("line-7.0"));
        assert_eq!(rollouts[1].tokens, Some(2));
        assert_eq!(read(r#"{"responses":[]}"#).unwrap_err().code, "input.group_size");
    }

    #[test]
    fn names_of_another_data_set_are_mapped() {
        let mut fields = Fields::own();
        assert!(fields.map("prompt", "question") && fields.map("reference", "reward_model.ground_truth"));
        assert!(!fields.map("prmopt", "question"));
        let line = br#"{"question":"q","response":"a","reward_model":{"ground_truth":"42","style":"rule"}}"#;
        let rollout = read_line(line, &fields).unwrap().next().unwrap();
        assert_eq!(rollout.reference.as_deref(), Some("42"));
        assert_eq!(rollout.prompt, Some(Prompt::Text("q".into())));
        assert!(rollout.extra.contains_key("reward_model"));
    }

    #[test]
    fn other_fields_are_refused_on_demand() {
        let mut fields = Fields::own();
        fields.map("reference", "reward_model.ground_truth");
        fields.refuse_others();
        let line = br#"{"response":"a","reward_model":{"ground_truth":"42"},"extra":{"k":1}}"#;
        assert!(read_line(line, &fields).is_ok());
        let error = read_line(br#"{"response":"a","respones":["b"]}"#, &fields).unwrap_err();
        assert_eq!(error.code, "input.unknown_field");
    }

    #[test]
    fn numbers_are_taken_as_they_were_written() {
        let mut fields = Fields::own();
        fields.map("reference", "gold.0");
        let line = br#"{"id":-12345678901234567890123,"group":7,"response":"a","tokens":3.0,"gold":[1.50]}"#;
        let rollout = read_line(line, &fields).unwrap().next().unwrap();
        assert_eq!(rollout.id.as_deref(), Some("-12345678901234567890123"));
        assert_eq!((rollout.group.as_deref(), rollout.tokens), (Some("7"), Some(3)));
        assert_eq!(rollout.reference.as_deref(), Some("1.50"));
        // A row of a table was never written.
        let row = serde_json::json!({"id": 1.0, "response": "a", "reference": 42.0});
        let Value::Object(row) = row else { panic!("an object") };
        let rollout = read_map(row, &Fields::own()).unwrap().next().unwrap();
        assert_eq!((rollout.id.as_deref(), rollout.reference.as_deref()), (Some("1"), Some("42")));
        assert_eq!((whole(-0.0).as_deref(), whole(0.5), whole(1e16)), (Some("0"), None, None));
        for tokens in ["2.5", "-1.0", "1e300", "true"] {
            let line = format!(r#"{{"response":"a","tokens":{tokens}}}"#);
            assert_eq!(read(&line).unwrap_err().code, "input.tokens");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let code = |line: &str| read(line).unwrap_err().code;
        assert_eq!(code("[1]"), "input.schema");
        assert_eq!(code(r#"{"id":1.5,"response":"r"}"#), "input.id");
        assert_eq!(code(r#"{"id":"","response":"r"}"#), "input.id");
        assert_eq!(code(r#"{"response":null}"#), "input.response");
        assert_eq!(code(r#"{"prompt":"p"}"#), "input.response");
        assert_eq!(code(r#"{"response":"a","responses":["b"]}"#), "input.schema");
        assert_eq!(code(r#"{"response":"a","tokens":-1}"#), "input.tokens");
        assert_eq!(code(r#"{"response":"a","prompt":7}"#), "input.schema");
        assert_eq!(code(r#"{"response":"a","extra":[]}"#), "input.schema");
    }
}
