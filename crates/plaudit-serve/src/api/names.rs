//! Names in request bodies: text, or a whole number, which is taken as its decimal text.

use plaudit::input;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The name of a group, a member or a rollout.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Name(pub(crate) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Name;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("text or a whole number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
                Ok(Name(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Name, E> {
                let digits = input::whole(number);
                digits.map(Name).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
            }
        }
        from.deserialize_any(Names)
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Text, or a whole number, which is taken as its decimal text.",
            "anyOf": [{ "type": "string" }, { "type": "integer" }],
        })
    }
}
