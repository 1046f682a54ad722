//! What can be asked of the service, and what comes back? `/openapi.json`, from the table of routes and the types.

use super::dialect::options::COMMON;
use super::dialect::routes::Kind;
use super::dialect::{nemo_gym, openrlhf, slime};
use super::house::LAST_STEP;
use super::routes::{Deed, ROUTES, Route, Shape};
use super::shape::RefusalReply;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The description of the service.
pub(crate) fn openapi() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in described() {
        let one = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase().as_str()] = one;
    }
    let refused = written(|generator| generator.subschema_for::<RefusalReply>(), &mut generator);
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

/// The routes for programs: all but the dashboard.
fn described() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !matches!(route.deed, Deed::Page | Deed::File))
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut one = json!({ "summary": route.summary, "operationId": name(route) });
    let parameters = parameters(route);
    if !parameters.is_empty() {
        one["parameters"] = Value::Array(parameters);
    }
    if let Some(request) = route.request {
        let schema = written(request, generator);
        one["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    let (kind, said) = match route.deed {
        Deed::Results => ("application/x-ndjson", "Done; every line is such a value"),
        Deed::Metrics => ("text/plain", "Done"),
        _ => ("application/json", "Done"),
    };
    let schema = written(route.reply, generator);
    let done = |said: &str| json!({ "description": said, "content": { kind: { "schema": schema } } });
    let refused = json!({ "$ref": "#/components/responses/Refused" });
    one["responses"] = match route.deed {
        Deed::CreateJob => json!({
            "200": done("A job with this key and this body has been accepted before: how far it is"),
            "202": done("Accepted"),
            "default": refused,
        }),
        _ => json!({ "200": done(said), "default": refused }),
    };
    if route.scope.is_some() {
        one["security"] = json!([{ "token": [] }, {}]);
    }
    one
}

/// The name of an operation: that of its deed, and of its path where several have the same deed.
fn name(route: &Route) -> String {
    let deed = format!("{:?}", route.deed);
    let Some((_, kind)) = deed.trim_end_matches(')').split_once('(') else { return deed };
    format!("{kind}{}", if route.path.contains("{run}") { "OfRun" } else { "" })
}

/// The schema of a body. Anything at all is written as a schema without conditions, since there are no others of that kind here.
fn written(shape: Shape, generator: &mut SchemaGenerator) -> Value {
    match shape(generator).to_value() {
        Value::Bool(_) => json!({}),
        schema => schema,
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let inside = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let inside = inside.map(|name| {
        let (about, schema) = (part(name), json!({ "type": "string" }));
        json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
    });
    let query = route.query.iter().map(|(name, about)| {
        let schema = json!({ "type": "integer", "minimum": 0 });
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    });
    let settings = settings(route.deed).into_iter().map(|name| {
        let (schema, about) = setting(name);
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    });
    let key = (route.deed == Deed::CreateJob).then(|| {
        let about =
            "Any text. A request with the key of an earlier one and the same body makes no second job.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": schema })
    });
    inside.chain(query).chain(settings).chain(key).collect()
}

/// What a part of a path in braces stands for.
fn part(name: &str) -> &'static str {
    match name {
        "recipe" => "The name of a recipe.",
        "run" => "A run: its id where it is looked at, and any name where rollouts are scored for it.",
        "job" => "The id of a job.",
        "group" => "The id of a group.",
        "reward" => "The name of a reward.",
        _ => "",
    }
}

/// What can be set behind the question mark of a dialect.
fn settings(deed: Deed) -> Vec<&'static str> {
    let own: &[&str] = match deed {
        Deed::Dialect(Kind::OpenRlhf) => &openrlhf::SETTINGS,
        Deed::Dialect(Kind::Slime) => &slime::SETTINGS,
        Deed::Dialect(Kind::Verify) => &nemo_gym::SETTINGS,
        _ => return Vec::new(),
    };
    [&COMMON[..], own].concat()
}

/// What a setting may be, and what it means.
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

    #[test]
    fn reference_of_the_api_is_current() {
        super::super::config::tests::keep("openapi.json", &openapi());
    }

    #[test]
    fn the_description_names_every_route_and_resolves() {
        let value = openapi();
        let text = value.to_string();
        for route in described() {
            assert!(text.contains(&format!("{:?}", route.path)), "{}", route.path);
        }
        for (at, _) in text.match_indices("\"$ref\":\"#") {
            let pointer = text[at + 9..].split('"').next().unwrap();
            assert!(value.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn every_parameter_is_described() {
        for parameter in described().flat_map(parameters) {
            assert!(parameter["description"].as_str().is_some_and(|about| !about.is_empty()), "{parameter}");
        }
    }
}
