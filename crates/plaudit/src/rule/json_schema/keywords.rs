//! The keywords of JSON Schema and the form that the value of each must have.

use serde_json::{Value, json};
use std::sync::LazyLock;

/// What the value of a keyword is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A schema for another value or for the same.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by name.
    Named,
    /// Schemas by name that count only where a reference leads to one of them.
    Definitions,
    /// A schema, or in older drafts a list of schemas.
    Items,
    /// By name a schema or a list of names.
    Dependencies,
    /// A type or a list of types.
    Types,
    Names,
    /// Lists of names by name.
    NamesByName,
    Choices,
    Text,
    Flag,
    Number,
    /// In draft 4 a flag that is about the bound beside it.
    Bound,
    Step,
    Size,
    /// The value restricts nothing, whatever it is.
    Any,
}

/// The values that a keyword is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    All,
    Numbers,
    Texts,
    Lists,
    Objects,
}

/// Every keyword that is known. Of others a schema may only have those that begin with `x-`.
const KEYWORDS: &[(&str, Form, About)] = &[
    ("$anchor", Form::Any, About::All),
    ("$comment", Form::Any, About::All),
    ("$defs", Form::Definitions, About::All),
    ("$dynamicAnchor", Form::Text, About::All),
    ("$dynamicRef", Form::Text, About::All),
    ("$id", Form::Any, About::All),
    ("$recursiveAnchor", Form::Flag, About::All),
    ("$recursiveRef", Form::Text, About::All),
    ("$ref", Form::Text, About::All),
    ("$schema", Form::Any, About::All),
    ("$vocabulary", Form::Any, About::All),
    ("additionalItems", Form::Schema, About::Lists),
    ("additionalProperties", Form::Schema, About::Objects),
    ("allOf", Form::Schemas, About::All),
    ("anyOf", Form::Schemas, About::All),
    ("const", Form::Any, About::All),
    ("contains", Form::Schema, About::Lists),
    ("contentEncoding", Form::Any, About::All),
    ("contentMediaType", Form::Any, About::All),
    ("contentSchema", Form::Any, About::All),
    ("default", Form::Any, About::All),
    ("definitions", Form::Definitions, About::All),
    ("dependencies", Form::Dependencies, About::Objects),
    ("dependentRequired", Form::NamesByName, About::Objects),
    ("dependentSchemas", Form::Named, About::Objects),
    ("deprecated", Form::Any, About::All),
    ("description", Form::Any, About::All),
    ("discriminator", Form::Any, About::All),
    ("else", Form::Schema, About::All),
    ("enum", Form::Choices, About::All),
    ("example", Form::Any, About::All),
    ("examples", Form::Any, About::All),
    ("exclusiveMaximum", Form::Bound, About::Numbers),
    ("exclusiveMinimum", Form::Bound, About::Numbers),
    ("externalDocs", Form::Any, About::All),
    ("format", Form::Any, About::Texts),
    ("if", Form::Schema, About::All),
    ("items", Form::Items, About::Lists),
    ("maxContains", Form::Size, About::Lists),
    ("maxItems", Form::Size, About::Lists),
    ("maxLength", Form::Size, About::Texts),
    ("maxProperties", Form::Size, About::Objects),
    ("maximum", Form::Number, About::Numbers),
    ("minContains", Form::Size, About::Lists),
    ("minItems", Form::Size, About::Lists),
    ("minLength", Form::Size, About::Texts),
    ("minProperties", Form::Size, About::Objects),
    ("minimum", Form::Number, About::Numbers),
    ("multipleOf", Form::Step, About::Numbers),
    ("not", Form::Schema, About::All),
    ("nullable", Form::Flag, About::All),
    ("oneOf", Form::Schemas, About::All),
    ("pattern", Form::Text, About::Texts),
    ("patternProperties", Form::Named, About::Objects),
    ("prefixItems", Form::Schemas, About::Lists),
    ("properties", Form::Named, About::Objects),
    ("propertyNames", Form::Schema, About::Objects),
    ("readOnly", Form::Any, About::All),
    ("required", Form::Names, About::Objects),
    ("strict", Form::Any, About::All),
    ("then", Form::Schema, About::All),
    ("title", Form::Any, About::All),
    ("type", Form::Types, About::All),
    ("unevaluatedItems", Form::Schema, About::Lists),
    ("unevaluatedProperties", Form::Schema, About::Objects),
    ("uniqueItems", Form::Flag, About::Lists),
    ("writeOnly", Form::Any, About::All),
    ("xml", Form::Any, About::All),
];

pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// What a keyword is; nothing for one that is not known.
pub(super) fn find(key: &str) -> Option<(Form, About)> {
    match KEYWORDS.binary_search_by(|(name, ..)| (*name).cmp(key)) {
        Ok(at) => KEYWORDS.get(at).map(|(_, form, about)| (*form, *about)),
        Err(_) => key.starts_with("x-").then_some((Form::Any, About::All)),
    }
}

impl Form {
    /// Whether a value has this form. What the schemas in it are is not looked at.
    pub(super) fn fits(self, value: &Value) -> bool {
        let names = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
        match self {
            Self::Any | Self::Schema | Self::Items => true,
            Self::Schemas | Self::Choices => value.is_array(),
            Self::Named => value.is_object(),
            // What is no object here is never looked at.
            Self::Definitions => true,
            Self::Dependencies => value
                .as_object()
                .is_some_and(|all| all.values().all(|value| !value.is_array() || names(value))),
            Self::Types => known(value) || value.as_array().is_some_and(|all| all.iter().all(known)),
            Self::Names => names(value),
            Self::NamesByName => value.as_object().is_some_and(|map| map.values().all(names)),
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Bound => value.is_number() || value.is_boolean(),
            Self::Step => value.as_f64().is_some_and(|step| step > 0.0),
            Self::Size => value.as_f64().is_some_and(|size| size >= 0.0 && size.fract() == 0.0),
        }
    }

    /// The schemas that a value of this form holds.
    pub(super) fn schemas(self, value: &Value) -> impl Iterator<Item = &Value> {
        let (one, list, map) = match (self, value) {
            (Self::Schema | Self::Items, Value::Object(_) | Value::Bool(_)) => (Some(value), None, None),
            (Self::Schemas | Self::Items, Value::Array(all)) => (None, Some(all), None),
            (Self::Named | Self::Definitions | Self::Dependencies, Value::Object(all)) => {
                (None, None, Some(all))
            }
            _ => (None, None, None),
        };
        let list = list.into_iter().flatten();
        one.into_iter().chain(list).chain(map.into_iter().flat_map(|map| map.values()))
    }
}

/// A meta-schema, for references to those of the drafts: every keyword has its form.
pub(super) static META: LazyLock<Value> = LazyLock::new(|| {
    let properties = KEYWORDS.iter().map(|(name, form, _)| ((*name).to_owned(), form.schema()));
    json!({"type": ["object", "boolean"], "properties": Value::Object(properties.collect())})
});

impl Form {
    /// The schema of the values that have this form.
    fn schema(self) -> Value {
        let schema = json!({"$ref": "#"});
        let schemas = json!({"type": "array", "minItems": 1, "items": schema});
        let names = json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}});
        match self {
            Self::Any => json!(true),
            Self::Schema => schema,
            Self::Schemas => schemas,
            Self::Named | Self::Definitions => json!({"type": "object", "additionalProperties": schema}),
            Self::Items => json!({"anyOf": [schema, schemas]}),
            Self::Dependencies => {
                json!({"type": "object", "additionalProperties": {"anyOf": [schema, names]}})
            }
            Self::Types => json!({"anyOf": [
                {"enum": TYPES},
                {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"enum": TYPES}},
            ]}),
            Self::Names => names,
            Self::NamesByName => json!({"type": "object", "additionalProperties": names}),
            Self::Choices => json!({"type": "array"}),
            Self::Text => json!({"type": "string"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Number => json!({"type": "number"}),
            Self::Bound => json!({"type": ["number", "boolean"]}),
            Self::Step => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Size => json!({"type": "integer", "minimum": 0}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keywords_stand_in_order() {
        assert!(KEYWORDS.is_sorted_by(|one, other| one.0 < other.0));
    }
}
