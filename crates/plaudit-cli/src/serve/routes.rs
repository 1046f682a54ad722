//! Which paths are there? One line a route; the table is also what `/openapi.json` is made of.

use super::dialect::{self, nemo_gym, openrlhf, slime};
use super::reply::Refusal;
use super::tokens::Scope;
use super::{job, join, kept, score};
use dialect::routes::Kind;
use hyper::{Method, StatusCode};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Score,
    Join,
    Dialect(dialect::routes::Kind),
    CreateJob,
    Jobs,
    Job,
    CancelJob,
    Results,
    Runs,
    Run,
    Steps,
    Groups,
    Group,
    Rewards,
    Reward,
    Recipes,
    Judges,
    Status,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Page,
    File,
}

type Shape = fn(&mut SchemaGenerator) -> Schema;

/// A path and what is behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// Parts in braces stand for anything.
    pub(crate) path: &'static str,
    pub(crate) deed: Deed,
    /// What a token must allow; none for what everybody may see.
    pub(crate) scope: Option<Scope>,
    summary: &'static str,
    /// The parameters after the question mark.
    query: &'static [&'static str],
    request: Option<Shape>,
    reply: Option<Shape>,
}

const fn get(path: &'static str, deed: Deed, scope: Option<Scope>, summary: &'static str) -> Route {
    Route { method: "GET", path, deed, scope, summary, query: &[], request: None, reply: None }
}

const fn post(path: &'static str, deed: Deed, summary: &'static str, request: Shape, reply: Shape) -> Route {
    let (request, reply) = (Some(request), Some(reply));
    Route { method: "POST", path, deed, scope: Some(Scope::Score), summary, query: &[], request, reply }
}

const fn asking(route: Route, query: &'static [&'static str]) -> Route {
    Route { query, ..route }
}

const fn giving(route: Route, reply: Shape) -> Route {
    Route { reply: Some(reply), ..route }
}

/// A path of another trainer's client.
const fn dialect(path: &'static str, kind: Kind, summary: &'static str, request: Shape) -> Route {
    let query: &[&str] = match kind {
        Kind::Seed | Kind::Aggregate => &[],
        _ => &["size", "step"],
    };
    let route = post(path, Deed::Dialect(kind), summary, request, shape::<Value>);
    Route { query, ..route }
}

const READ: Option<Scope> = Some(Scope::Read);
const SCORE: Option<Scope> = Some(Scope::Score);

fn shape<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Every path there is.
pub(crate) static ROUTES: &[Route] = &[
    post(
        "/v1/score",
        Deed::Score,
        "Score rollouts",
        shape::<score::ScoreRequest<'static>>,
        shape::<score::ScoreReply>,
    ),
    post(
        "/v1/join",
        Deed::Join,
        "Hand in one rollout of a group",
        join::schema,
        shape::<join::JoinReply<'static>>,
    ),
    post(
        "/v1/jobs",
        Deed::CreateJob,
        "Score many rollouts in the background",
        shape::<score::ScoreRequest<'static>>,
        shape::<job::Written>,
    ),
    dialect(
        "/openrlhf/{recipe}",
        Kind::OpenRlhf,
        "Score as OpenRLHF's remote reward model",
        shape::<openrlhf::Ask>,
    ),
    dialect("/openrlhf/{recipe}/{run}", Kind::OpenRlhf, "The same, for a run", shape::<openrlhf::Ask>),
    dialect("/slime/{recipe}", Kind::Slime, "Score as slime's remote_rm", shape::<slime::Ask>),
    dialect("/slime/{recipe}/{run}", Kind::Slime, "The same, for a run", shape::<slime::Ask>),
    dialect(
        "/nemo-gym/{recipe}/verify",
        Kind::Verify,
        "Verify as a resources server of NeMo-Gym",
        shape::<nemo_gym::Ask>,
    ),
    dialect(
        "/nemo-gym/{recipe}/seed_session",
        Kind::Seed,
        "Begin a session, which a reward keeps nothing of",
        shape::<Value>,
    ),
    dialect(
        "/nemo-gym/{recipe}/aggregate_metrics",
        Kind::Aggregate,
        "Figures over many rewards",
        shape::<nemo_gym::aggregate::Ask>,
    ),
    dialect("/nemo-gym/{recipe}/{run}/verify", Kind::Verify, "The same, for a run", shape::<nemo_gym::Ask>),
    dialect("/nemo-gym/{recipe}/{run}/seed_session", Kind::Seed, "The same, for a run", shape::<Value>),
    dialect(
        "/nemo-gym/{recipe}/{run}/aggregate_metrics",
        Kind::Aggregate,
        "The same, for a run",
        shape::<nemo_gym::aggregate::Ask>,
    ),
    asking(get("/v1/jobs", Deed::Jobs, SCORE, "List jobs"), &["limit"]),
    giving(get("/v1/jobs/{job}", Deed::Job, SCORE, "See how far a job is"), shape::<job::Written>),
    Route {
        method: "DELETE",
        ..giving(
            get("/v1/jobs/{job}", Deed::CancelJob, SCORE, "Call a job off, or forget one that is over"),
            shape::<job::Written>,
        )
    },
    asking(
        get("/v1/jobs/{job}/results", Deed::Results, SCORE, "Fetch the results of a job, as JSON lines"),
        &["from", "limit"],
    ),
    get("/v1/runs", Deed::Runs, READ, "List runs"),
    giving(get("/v1/runs/{run}", Deed::Run, READ, "See what a run is"), shape::<kept::About>),
    asking(
        get("/v1/runs/{run}/steps", Deed::Steps, READ, "See the statistics of its steps"),
        &["after", "limit", "whole"],
    ),
    asking(
        get("/v1/runs/{run}/groups", Deed::Groups, READ, "List the groups that can be looked at"),
        &["step", "limit"],
    ),
    get(
        "/v1/runs/{run}/groups/{group}",
        Deed::Group,
        READ,
        "Look at a group: texts, values, and what judges said",
    ),
    get("/v1/rewards", Deed::Rewards, READ, "List rewards"),
    get("/v1/rewards/{reward}", Deed::Reward, READ, "Explain a reward"),
    get("/v1/recipes", Deed::Recipes, READ, "List the recipes that can be named"),
    get("/v1/judges", Deed::Judges, READ, "See what judges have been asked"),
    get("/v1/status", Deed::Status, READ, "See what the service is doing"),
    get("/healthz", Deed::Health, None, "Whether the service is up"),
    get("/readyz", Deed::Ready, None, "Whether the service can take work"),
    get("/metrics", Deed::Metrics, READ, "Counts and times for Prometheus"),
    get("/openapi.json", Deed::OpenApi, None, "This description"),
    get("/", Deed::Page, None, "The dashboard"),
    get("/static/{file}", Deed::File, None, "A file of the dashboard"),
];

/// The route of a request, with what its braces stand for.
pub(crate) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Route, Vec<Cow<'p, str>>), Refusal> {
    let mut other = false;
    for route in ROUTES {
        if let Some(found) = fits(route.path, path) {
            // What can be fetched can be asked about.
            if route.method == method.as_str() || (*method == Method::HEAD && route.method == "GET") {
                return Ok((route, found));
            }
            other = true;
        }
    }
    Err(match other {
        true => {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "http.method", "this path does not take this method")
        }
        false => Refusal::not_found("http.not_found", "there is nothing under this path"),
    })
}

fn fits<'p>(pattern: &str, path: &'p str) -> Option<Vec<Cow<'p, str>>> {
    let (mut parts, mut found) = (path.split('/'), Vec::new());
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted.starts_with('{') {
            true => found.push(decoded(part)?),
            false if wanted == part => {}
            false => return None,
        }
    }
    parts.next().is_none().then_some(found)
}

/// A part of a path as text: no part is empty, and none holds what does not show.
pub(crate) fn decoded(part: &str) -> Option<Cow<'_, str>> {
    let text = match part.contains('%') {
        false => Cow::Borrowed(part),
        true => {
            let mut bytes = Vec::with_capacity(part.len());
            let mut rest = part.as_bytes();
            while let [first, after @ ..] = rest {
                rest = after;
                bytes.push(match (first, after) {
                    (b'%', [high, low, after @ ..]) => {
                        rest = after;
                        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
                        digit(*high)? << 4 | digit(*low)?
                    }
                    (b'%', _) => return None,
                    (byte, _) => *byte,
                });
            }
            Cow::Owned(String::from_utf8(bytes).ok()?)
        }
    };
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

/// The name of an operation: that of its deed, and of its path where several have the same deed.
fn operation(route: &Route) -> String {
    let deed = format!("{:?}", route.deed);
    let Some((_, kind)) = deed.trim_end_matches(')').split_once('(') else { return deed };
    format!("{kind}{}", if route.path.contains("{run}") { "OfRun" } else { "" })
}

/// The description of the service, from the table and the types.
pub(crate) fn openapi() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES.iter().filter(|route| !matches!(route.deed, Deed::Page | Deed::File)) {
        let mut one = json!({ "summary": route.summary, "operationId": operation(route) });
        let inside = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let text = json!({ "type": "string" });
        let parameters: Vec<Value> = inside
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }))
            .chain(route.query.iter().map(
                |name| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 0 } }),
            ))
            .collect();
        if !parameters.is_empty() {
            one["parameters"] = Value::Array(parameters);
        }
        if let Some(request) = route.request {
            let schema = request(&mut generator);
            one["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        let good = match route.deed {
            Deed::CreateJob => "202",
            _ => "200",
        };
        let reply = match route.reply {
            Some(reply) => {
                let schema = reply(&mut generator);
                json!({ "description": "Done", "content": { "application/json": { "schema": schema } } })
            }
            None => json!({ "description": "Done" }),
        };
        one["responses"] = json!({ good: reply, "default": { "$ref": "#/components/responses/Refused" } });
        if route.scope.is_some() {
            one["security"] = json!([{ "token": [] }, {}]);
        }
        let method = route.method.to_ascii_lowercase();
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method.as_str()] = one;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "plaudit",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Rewards for LLM post-training. A failure is never a number: an invalid rollout has no total, and a reason.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "Refused": {
                "description": "Refused; Retry-After says when to come back, where that helps",
                "content": { "application/json": { "schema": {
                    "type": "object",
                    "properties": { "error": {
                        "type": "object",
                        "required": ["code", "message"],
                        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
                    } },
                } } },
            } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_what_is_not_there_is_not() {
        let deed = |method: Method, path: &str| find(&method, path).map(|(route, _)| route.deed);
        assert_eq!(deed(Method::POST, "/v1/score").unwrap(), Deed::Score);
        assert_eq!(deed(Method::HEAD, "/").unwrap(), Deed::Page);
        assert_eq!(deed(Method::GET, "/v1/score").unwrap_err().status, 405);
        for path in ["/v1/", "/v1/score/", "//", "/static/../x", "/static/%00.js", "/static/%2", "/V1/score"]
        {
            assert_eq!(deed(Method::GET, path).unwrap_err().status, 404, "{path}");
        }
        let (_, found) = find(&Method::GET, "/v1/runs/a%20b/groups/7").unwrap();
        assert_eq!(found, ["a b", "7"]);
    }

    #[test]
    fn reference_of_the_api_is_current() {
        super::super::config::tests::keep("openapi.json", &openapi());
    }

    #[test]
    fn the_description_names_every_route_and_resolves() {
        let text = openapi().to_string();
        for route in ROUTES.iter().filter(|route| !matches!(route.deed, Deed::Page | Deed::File)) {
            assert!(text.contains(&format!("{:?}", route.path)), "{}", route.path);
        }
        let value = openapi();
        for (at, _) in text.match_indices("\"$ref\":\"#") {
            let pointer = text[at + 9..].split('"').next().unwrap();
            assert!(value.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
