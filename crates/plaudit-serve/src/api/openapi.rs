//! `/openapi.json`: the description of the service, made from the route table and the types of requests and replies.

use super::routes::{Route, routes};
use crate::compat::query::COMMON;
use crate::http::response::ErrorReply;
use crate::runs::run::LAST_STEP;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// Makes the schema of a body.
type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a value of one of two types.
pub(crate) struct AnyOf<One, Other>(PhantomData<(One, Other)>);

impl<One: JsonSchema, Other: JsonSchema> JsonSchema for AnyOf<One, Other> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", One::schema_name(), Other::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<One>(), generator.subschema_for::<Other>()] })
    }
}

/// What the document says of a route.
pub(crate) struct Operation {
    id: &'static str,
    summary: &'static str,
    reply: SchemaFn,
    request: Option<SchemaFn>,
    /// The struct of the query, whose fields are whole numbers.
    query: Option<SchemaFn>,
    /// The settings in the query of a trainer's client.
    settings: &'static [&'static str],
    content_type: &'static str,
    done: &'static str,
    /// Whether it takes an Idempotency-Key, and answers 202 the first time.
    idempotent: bool,
}

/// An operation that replies with a `T`.
pub(crate) fn op<T: JsonSchema>(id: &'static str, summary: &'static str) -> Operation {
    Operation {
        id,
        summary,
        reply: SchemaGenerator::subschema_for::<T>,
        request: None,
        query: None,
        settings: &[],
        content_type: "application/json",
        done: "Done",
        idempotent: false,
    }
}

impl Operation {
    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        Self { request: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    pub(crate) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }
    }

    pub(crate) fn settings(self, settings: &'static [&'static str]) -> Self {
        Self { settings, ..self }
    }

    pub(crate) fn content(self, content_type: &'static str, done: &'static str) -> Self {
        Self { content_type, done, ..self }
    }

    pub(crate) fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }
}

/// The document.
pub(crate) fn openapi() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let Some(operation) = &route.operation else { continue };
        let described = describe(&route, operation, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase().as_str()] = described;
    }
    let refused = written(SchemaGenerator::subschema_for::<ErrorReply>, &mut generator);
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "plaudit",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Rewards for LLM post-training. A failure is never a number: an invalid rollout has no total, and a reason.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "Refused": {
                "description": "Refused; Retry-After says when to come back, where that helps",
                "content": { "application/json": { "schema": refused } },
            } },
        },
    })
}

fn describe(route: &Route, operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut one = json!({ "summary": operation.summary, "operationId": operation.id });
    let parameters = parameters(route, operation, generator);
    if !parameters.is_empty() {
        one["parameters"] = Value::Array(parameters);
    }
    if let Some(request) = operation.request {
        let schema = written(request, generator);
        one["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    let (content_type, schema) = (operation.content_type, written(operation.reply, generator));
    let done = |said: &str| json!({ "description": said, "content": { content_type: { "schema": schema } } });
    let refused = json!({ "$ref": "#/components/responses/Refused" });
    one["responses"] = match operation.idempotent {
        true => json!({
            "200": done("A job with this key and this body has been accepted before: how far it is"),
            "202": done("Accepted"),
            "default": refused,
        }),
        false => json!({ "200": done(operation.done), "default": refused }),
    };
    if !route.scopes.is_empty() {
        one["security"] = json!([{ "token": [] }, {}]);
    }
    one
}

/// The schema of a body. OpenAPI 3.0 has no boolean schemas; the only one here stands for any value.
fn written(schema: SchemaFn, generator: &mut SchemaGenerator) -> Value {
    match schema(generator).to_value() {
        Value::Bool(_) => json!({}),
        schema => schema,
    }
}

fn parameters(route: &Route, operation: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| {
        let (about, schema) = (path_parameter(name), json!({ "type": "string" }));
        json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
    });
    let query = operation.query.map_or(Value::Null, |query| query(generator).to_value());
    let fields = query["properties"].as_object().into_iter().flatten();
    let in_query = fields.map(|(name, field)| {
        let schema = json!({ "type": "integer", "minimum": 0 });
        json!({ "name": name, "in": "query", "description": field["description"], "schema": schema })
    });
    let common: &[&str] = if operation.settings.is_empty() { &[] } else { &COMMON };
    let settings = common.iter().chain(operation.settings).map(|name| {
        let (schema, about) = setting(name);
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    });
    let key = operation.idempotent.then(|| {
        let about =
            "Any text. A request with the key of an earlier one and the same body makes no second job.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": schema })
    });
    in_path.chain(in_query).chain(settings).chain(key).collect()
}

/// What a parameter of a path stands for.
fn path_parameter(name: &str) -> &'static str {
    match name {
        "recipe" => "The name of a recipe.",
        "run" => "A run: its id where it is looked at, and any name where rollouts are scored for it.",
        "job" => "The id of a job.",
        "group" => "The id of a group.",
        "reward" => "The name of a reward.",
        _ => "",
    }
}

/// The schema and the meaning of a setting in the query of a trainer's client.
fn setting(name: &str) -> (Value, &'static str) {
    let text = json!({ "type": "string" });
    match name {
        "size" => (
            json!({ "type": "integer", "minimum": 1 }),
            "How many samples a prompt has; needed where the recipe compares them.",
        ),
        "step" => (
            json!({ "type": "integer", "minimum": 0, "maximum": LAST_STEP }),
            "The step of the training that the samples belong to; cut by time where nothing is said.",
        ),
        "validate" => (json!({ "type": "boolean" }), "Whether the reference takes part in comparisons."),
        "eos" => (
            json!({ "type": "array", "items": text }),
            "A text to cut off the end of a response; may be given more than once.",
        ),
        "score" => (text, "The component that a filter looks at in place of the total."),
        "key" => (text, "The field of the answer that holds the total."),
        "reference" => (text, "The field that holds the reference, with dots where it lies deeper."),
        "failure" => (
            json!({ "type": "string", "enum": ["http", "class"] }),
            "How a sample without a number is said: by the status, or by a field of the answer.",
        ),
        _ => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::check_reference;

    #[test]
    fn reference_of_the_api_is_current() {
        check_reference("openapi.json", &openapi());
    }

    #[test]
    fn all_references_resolve() {
        let value = openapi();
        let text = value.to_string();
        for (at, _) in text.match_indices("\"$ref\":\"#") {
            let pointer = text[at + 9..].split('"').next().unwrap();
            assert!(value.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn every_parameter_is_described() {
        let mut generator = SchemaSettings::openapi3().into_generator();
        for route in routes() {
            let Some(operation) = &route.operation else { continue };
            for parameter in parameters(&route, operation, &mut generator) {
                let about = parameter["description"].as_str();
                assert!(about.is_some_and(|about| !about.is_empty()), "{} {parameter}", route.path);
            }
        }
    }
}
