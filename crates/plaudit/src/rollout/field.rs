//! The fields of a rollout as every front takes them: name, column in Python, type, meaning and an example, declared once.
//!
//! The parser of lines and rows, the OpenAPI document, `plaudit init`, the Python types and the tests that walk all fronts are made of
//! this list. A field that says how a response was generated needs nothing else but its place in [`Generation`].

use crate::conversation::FinishReason;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A field of a rollout.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in lines, tables, requests and Python.
    pub name: &'static str,
    /// The name of the argument of `Engine.score` in Python that holds it for a batch; empty where there is none.
    pub column: &'static str,
    /// Its type in Python.
    pub python: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// A value, as JSON.
    pub example: &'static str,
}

/// The names of the fields.
pub fn field_names() -> impl Iterator<Item = &'static str> + Clone {
    FIELDS.iter().map(|field| field.name)
}

/// Declares the fields: the list, the line that has them, and its JSON schema.
macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $name:ident: $schema:ty, $column:literal, $python:literal, $example:literal;)+) => {
        /// The fields of a rollout, in the order of [`RolloutLine`].
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            column: $column,
            python: $python,
            doc: concat!($($doc),+),
            example: $example,
        }),+];

        /// A rollout, or a group of them with `responses` in the place of `response`. Other fields are kept in `extra`.
        #[derive(Debug, Default)]
        pub struct RolloutLine {
            $($(#[doc = $doc])+ pub $name: Option<Value>,)+
        }

        impl RolloutLine {
            /// The line whose fields a function has, by their place in [`FIELDS`].
            pub fn read(mut field: impl FnMut(usize) -> Option<Value>) -> Self {
                let mut places = 0..;
                Self { $($name: places.next().and_then(&mut field),)+ }
            }

            /// Which fields it has.
            pub fn given(&self) -> [bool; FIELDS.len()] {
                [$(self.$name.is_some()),+]
            }

            /// A field by its name.
            pub fn get(&self, name: &str) -> Option<&Value> {
                match name {
                    $(stringify!($name) => self.$name.as_ref(),)+
                    _ => None,
                }
            }
        }

        impl JsonSchema for RolloutLine {
            fn schema_name() -> Cow<'static, str> {
                "RolloutLine".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut properties = Map::new();
                let mut put = |field: &Field, schema: Schema| {
                    let mut schema = schema.to_value();
                    schema["description"] = field.doc.trim().into();
                    properties.insert(field.name.to_owned(), schema);
                };
                let mut fields = FIELDS.iter();
                $(if let Some(field) = fields.next() {
                    put(field, Option::<$schema>::json_schema(generator));
                })+
                json_schema!({
                    "description": "A rollout, or a group of them with `responses` in the place of `response`. Other fields are kept in `extra`.",
                    "type": "object",
                    "properties": properties,
                })
            }
        }
    };
}

fields! {
    /// The caller's name for it; its place where there is none. In a group line, `NAME.0` and so on.
    id: Name, "ids", "str | int", r#""r1""#;
    /// The name of its group; where there is none, equal prompts make a group.
    group: Name, "groups", "str | int", r#""g1""#;
    /// What the model was asked: text, or chat messages.
    prompt: Prompt, "prompts", "str | Messages", r#""6 * 7?""#;
    /// What the model answered: text, or a conversation in any wire form.
    response: Response, "responses", "str | Conversation", r#""It is 42.""#;
    /// What it answered several times: a group in one line.
    responses: Vec<Response>, "", "", r#"["It is 42.", "41"]"#;
    /// The answer to compare with: a text or a number, a list of accepted answers, or an object.
    reference: Reference, "references", "Reference", r#""42""#;
    /// The length of the response in the model's own tokens.
    tokens: Each<Count>, "tokens", "int", "812";
    /// Why the generation ended: `stop`, `length`, `tool_calls` or another word of a server; or whether it was truncated.
    finish_reason: Each<Word>, "finish_reasons", "str | bool", r#""length""#;
    /// Whether the limit on its length cut the response off, where no `finish_reason` says it.
    truncated: Each<Flag>, "truncated", "bool", "true";
    /// The declarations of the tools that the model was given.
    tools: Tools, "tools", "Sequence[Any] | str", r#"[{"name": "multiply", "parameters": {"type": "object"}}]"#;
    /// Everything else that rewards and routes may read.
    extra: Extra, "extras", "Mapping[str, Any]", r#"{"data_source": "math"}"#;
}

/// The place of a field in [`FIELDS`]; that of the last one where no field has the name, as a test checks.
pub(crate) const fn place(name: &str) -> usize {
    let mut at = 0;
    while at + 1 < FIELDS.len() && !equal(FIELDS[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A value that a field cannot hold: the field, and what is wanted there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The field.
    pub field: &'static str,
    /// What it holds.
    pub wanted: &'static str,
}

/// How a response was generated, beside its text: one value a response, which rewards read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// Why it ended, where that is known.
    pub finish_reason: Option<FinishReason>,
}

impl From<FinishReason> for Generation {
    fn from(reason: FinishReason) -> Self {
        Self { finish_reason: Some(reason) }
    }
}

impl Generation {
    /// The fields that it is read from.
    pub const FIELDS: [&str; 2] = ["finish_reason", "truncated"];

    /// Reads its fields. `known` is what the wire form of the response says, which counts where a field is missing.
    pub fn read<'v>(field: impl Fn(&str) -> Option<&'v Value>, known: Self) -> Result<Self, Misfit> {
        let (mut reason, mut cut_off) = (None, None);
        match field("finish_reason") {
            None | Some(Value::Null) => {}
            Some(Value::String(word)) => reason = Some(FinishReason::from_word(word)),
            Some(Value::Bool(flag)) => cut_off = Some(*flag),
            Some(_) => return Err(Misfit { field: "finish_reason", wanted: "text" }),
        }
        match field("truncated") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(flag)) => cut_off = Some(*flag),
            Some(_) => return Err(Misfit { field: "truncated", wanted: "true or false" }),
        }
        let reason = reason.or(known.finish_reason);
        let finish_reason = match cut_off {
            None => reason,
            Some(true) => Some(FinishReason::Length),
            Some(false) => reason.or(Some(FinishReason::Stop)),
        };
        Ok(Self { finish_reason })
    }

    /// The fields that it would be read from.
    pub fn write(&self, map: &mut Map<String, Value>) {
        if let Some(reason) = self.finish_reason {
            map.insert("finish_reason".to_owned(), reason.as_str().into());
        }
    }
}

/// Declares types that stand for the JSON schema of a field.
macro_rules! schemas {
    ($($name:ident: $schema:tt;)+) => {$(
        struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

schemas! {
    Name: { "anyOf": [{ "type": "string" }, { "type": "integer" }] };
    Prompt: { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "object" } }] };
    Response: { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "object" } }, { "type": "object" }] };
    Reference: {
        "anyOf": [
            { "type": "string" },
            { "type": "number" },
            { "type": "boolean" },
            { "type": "array", "items": {} },
            { "type": "object" },
        ],
    };
    Count: { "type": "integer", "minimum": 0 };
    Word: { "anyOf": [{ "type": "string" }, { "type": "boolean" }] };
    Flag: { "type": "boolean" };
    Tools: { "anyOf": [{ "type": "array", "items": { "type": "object" } }, { "type": "string" }] };
    Extra: { "type": "object" };
}

/// One value, or, in a group line, a list with one for each response.
struct Each<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Each<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Each{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [T::json_schema(generator), Vec::<Option<T>>::json_schema(generator)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_place() {
        let line = RolloutLine::read(|at| Some(Value::from(FIELDS[at].name)));
        for (at, field) in FIELDS.iter().enumerate() {
            assert_eq!(place(field.name), at);
            assert_eq!(line.get(field.name), Some(&Value::from(field.name)));
            assert!(field.doc.trim().ends_with('.'), "{} has no sentence", field.name);
            assert!(serde_json::from_str::<Value>(field.example).is_ok(), "{} has no example", field.name);
        }
        assert!(Generation::FIELDS.iter().all(|name| FIELDS[place(name)].name == *name));
    }

    #[test]
    fn a_missing_flag_says_nothing_and_a_reason_wins_over_false() {
        let read = |reason: Value, truncated: Value| {
            let field = |name: &str| if name == "truncated" { Some(&truncated) } else { Some(&reason) };
            Generation::read(field, FinishReason::ToolCalls.into()).map(|read| read.finish_reason)
        };
        assert_eq!(read(Value::Null, Value::Null), Ok(Some(FinishReason::ToolCalls)));
        assert_eq!(read("stop".into(), true.into()), Ok(Some(FinishReason::Length)));
        assert_eq!(read("length".into(), false.into()), Ok(Some(FinishReason::Length)));
        assert_eq!(read(Value::Null, false.into()), Ok(Some(FinishReason::ToolCalls)));
        assert_eq!(read(true.into(), Value::Null), Ok(Some(FinishReason::Length)));
        assert_eq!(read(7.into(), true.into()).map_err(|misfit| misfit.field), Err("finish_reason"));
        assert_eq!(read(Value::Null, "no".into()).map_err(|misfit| misfit.wanted), Err("true or false"));
    }
}
