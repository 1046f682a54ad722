//! The keywords of JSON Schema and the form that the value of each must have.

use serde_json::{Value, json};
use std::sync::LazyLock;

/// What the value of a keyword is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordForm {
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
const KEYWORDS: &[(&str, KeywordForm, About)] = &[
    ("$anchor", KeywordForm::Any, About::All),
    ("$comment", KeywordForm::Any, About::All),
    ("$defs", KeywordForm::Definitions, About::All),
    ("$dynamicAnchor", KeywordForm::Text, About::All),
    ("$dynamicRef", KeywordForm::Text, About::All),
    ("$id", KeywordForm::Any, About::All),
    ("$recursiveAnchor", KeywordForm::Flag, About::All),
    ("$recursiveRef", KeywordForm::Text, About::All),
    ("$ref", KeywordForm::Text, About::All),
    ("$schema", KeywordForm::Any, About::All),
    ("$vocabulary", KeywordForm::Any, About::All),
    ("additionalItems", KeywordForm::Schema, About::Lists),
    ("additionalProperties", KeywordForm::Schema, About::Objects),
    ("allOf", KeywordForm::Schemas, About::All),
    ("anyOf", KeywordForm::Schemas, About::All),
    ("const", KeywordForm::Any, About::All),
    ("contains", KeywordForm::Schema, About::Lists),
    ("contentEncoding", KeywordForm::Any, About::All),
    ("contentMediaType", KeywordForm::Any, About::All),
    ("contentSchema", KeywordForm::Any, About::All),
    ("default", KeywordForm::Any, About::All),
    ("definitions", KeywordForm::Definitions, About::All),
    ("dependencies", KeywordForm::Dependencies, About::Objects),
    ("dependentRequired", KeywordForm::NamesByName, About::Objects),
    ("dependentSchemas", KeywordForm::Named, About::Objects),
    ("deprecated", KeywordForm::Any, About::All),
    ("description", KeywordForm::Any, About::All),
    ("discriminator", KeywordForm::Any, About::All),
    ("else", KeywordForm::Schema, About::All),
    ("enum", KeywordForm::Choices, About::All),
    ("example", KeywordForm::Any, About::All),
    ("examples", KeywordForm::Any, About::All),
    ("exclusiveMaximum", KeywordForm::Bound, About::Numbers),
    ("exclusiveMinimum", KeywordForm::Bound, About::Numbers),
    ("externalDocs", KeywordForm::Any, About::All),
    ("format", KeywordForm::Any, About::Texts),
    ("if", KeywordForm::Schema, About::All),
    ("items", KeywordForm::Items, About::Lists),
    ("maxContains", KeywordForm::Size, About::Lists),
    ("maxItems", KeywordForm::Size, About::Lists),
    ("maxLength", KeywordForm::Size, About::Texts),
    ("maxProperties", KeywordForm::Size, About::Objects),
    ("maximum", KeywordForm::Number, About::Numbers),
    ("minContains", KeywordForm::Size, About::Lists),
    ("minItems", KeywordForm::Size, About::Lists),
    ("minLength", KeywordForm::Size, About::Texts),
    ("minProperties", KeywordForm::Size, About::Objects),
    ("minimum", KeywordForm::Number, About::Numbers),
    ("multipleOf", KeywordForm::Step, About::Numbers),
    ("not", KeywordForm::Schema, About::All),
    ("nullable", KeywordForm::Flag, About::All),
    ("oneOf", KeywordForm::Schemas, About::All),
    ("pattern", KeywordForm::Text, About::Texts),
    ("patternProperties", KeywordForm::Named, About::Objects),
    ("prefixItems", KeywordForm::Schemas, About::Lists),
    ("properties", KeywordForm::Named, About::Objects),
    ("propertyNames", KeywordForm::Schema, About::Objects),
    ("readOnly", KeywordForm::Any, About::All),
    ("required", KeywordForm::Names, About::Objects),
    ("strict", KeywordForm::Any, About::All),
    ("then", KeywordForm::Schema, About::All),
    ("title", KeywordForm::Any, About::All),
    ("type", KeywordForm::Types, About::All),
    ("unevaluatedItems", KeywordForm::Schema, About::Lists),
    ("unevaluatedProperties", KeywordForm::Schema, About::Objects),
    ("uniqueItems", KeywordForm::Flag, About::Lists),
    ("writeOnly", KeywordForm::Any, About::All),
    ("xml", KeywordForm::Any, About::All),
];

pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// What a keyword is; nothing for one that is not known.
pub(super) fn find(key: &str) -> Option<(KeywordForm, About)> {
    match KEYWORDS.binary_search_by(|(name, ..)| (*name).cmp(key)) {
        Ok(at) => KEYWORDS.get(at).map(|(_, form, about)| (*form, *about)),
        Err(_) => key.starts_with("x-").then_some((KeywordForm::Any, About::All)),
    }
}

impl KeywordForm {
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

impl KeywordForm {
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
