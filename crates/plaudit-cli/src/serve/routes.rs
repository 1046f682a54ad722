//! Which paths are there? One line a route; the table is also what `/openapi.json` is made of.

use super::dialect::{self, nemo_gym, openrlhf, slime};
use super::reply::Refusal;
use super::tokens::Scope;
use super::{join, score, shape as shapes};
use dialect::routes::Kind;
use hyper::{Method, StatusCode};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};
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

/// What describes a body.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// A parameter after the question mark that is a whole number, and what it means.
pub(crate) type Parameter = (&'static str, &'static str);

/// A path and what is behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// Parts in braces stand for anything.
    pub(crate) path: &'static str,
    pub(crate) deed: Deed,
    /// What a token must allow; none for what everybody may see.
    pub(crate) scope: Option<Scope>,
    pub(crate) summary: &'static str,
    /// The parameters after the question mark; those of a dialect are its settings.
    pub(crate) query: &'static [Parameter],
    pub(crate) request: Option<Shape>,
    pub(crate) reply: Shape,
}

const fn get(
    path: &'static str,
    deed: Deed,
    scope: Option<Scope>,
    summary: &'static str,
    reply: Shape,
) -> Route {
    Route { method: "GET", path, deed, scope, summary, query: &[], request: None, reply }
}

const fn post(path: &'static str, deed: Deed, summary: &'static str, request: Shape, reply: Shape) -> Route {
    let request = Some(request);
    Route { method: "POST", path, deed, scope: Some(Scope::Score), summary, query: &[], request, reply }
}

const fn asking(route: Route, query: &'static [Parameter]) -> Route {
    Route { query, ..route }
}

/// A path of another trainer's client.
const fn dialect(path: &'static str, kind: Kind, summary: &'static str) -> Route {
    let (request, reply): (Shape, Shape) = match kind {
        Kind::OpenRlhf => (shape::<openrlhf::Ask>, shape::<shapes::OpenRlhfReply>),
        Kind::Slime => (shape::<slime::Ask>, shapes::slime),
        Kind::Verify => (shape::<nemo_gym::Ask>, shape::<shapes::VerifyReply>),
        Kind::Seed => (shape::<Value>, shape::<Map<String, Value>>),
        Kind::Aggregate => (shape::<nemo_gym::aggregate::Ask>, shape::<shapes::AggregateReply>),
    };
    post(path, Deed::Dialect(kind), summary, request, reply)
}

const READ: Option<Scope> = Some(Scope::Read);
const SCORE: Option<Scope> = Some(Scope::Score);
const LIMIT: Parameter =
    ("limit", "How many at most, the newest ones: 500 where nothing is said, and never more than 2000.");

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
        shape::<shapes::JobReply>,
    ),
    dialect("/openrlhf/{recipe}", Kind::OpenRlhf, "Score as OpenRLHF's remote reward model"),
    dialect("/openrlhf/{recipe}/{run}", Kind::OpenRlhf, "The same, for a run"),
    dialect("/slime/{recipe}", Kind::Slime, "Score as slime's remote_rm"),
    dialect("/slime/{recipe}/{run}", Kind::Slime, "The same, for a run"),
    dialect("/nemo-gym/{recipe}/verify", Kind::Verify, "Verify as a resources server of NeMo-Gym"),
    dialect(
        "/nemo-gym/{recipe}/seed_session",
        Kind::Seed,
        "Begin a session, which a reward keeps nothing of",
    ),
    dialect("/nemo-gym/{recipe}/aggregate_metrics", Kind::Aggregate, "Figures over many rewards"),
    dialect("/nemo-gym/{recipe}/{run}/verify", Kind::Verify, "The same, for a run"),
    dialect("/nemo-gym/{recipe}/{run}/seed_session", Kind::Seed, "The same, for a run"),
    dialect("/nemo-gym/{recipe}/{run}/aggregate_metrics", Kind::Aggregate, "The same, for a run"),
    asking(
        get("/v1/jobs", Deed::Jobs, SCORE, "List jobs", shape::<shapes::JobList>),
        &[("limit", "How many at most, the newest ones; never more than 1000.")],
    ),
    get("/v1/jobs/{job}", Deed::Job, SCORE, "See how far a job is", shape::<shapes::JobReply>),
    Route {
        method: "DELETE",
        ..get(
            "/v1/jobs/{job}",
            Deed::CancelJob,
            SCORE,
            "Call a job off, or forget one that is over",
            shape::<shapes::JobReply>,
        )
    },
    asking(
        get(
            "/v1/jobs/{job}/results",
            Deed::Results,
            SCORE,
            "Fetch the results of a job, as JSON lines",
            shapes::job_line,
        ),
        &[
            ("from", "The first line, from 0."),
            ("limit", "How many lines at most; all, where nothing is said."),
        ],
    ),
    get("/v1/runs", Deed::Runs, READ, "List runs", shape::<shapes::RunList>),
    get("/v1/runs/{run}", Deed::Run, READ, "See what a run is", shape::<shapes::RunReply>),
    asking(
        get(
            "/v1/runs/{run}/steps",
            Deed::Steps,
            READ,
            "See the statistics of its steps",
            shape::<shapes::StepList>,
        ),
        &[
            ("after", "Only steps of a higher number."),
            LIMIT,
            ("whole", "With 1, steps from all of the run in the place of the newest ones."),
        ],
    ),
    asking(
        get(
            "/v1/runs/{run}/groups",
            Deed::Groups,
            READ,
            "List the groups that can be looked at",
            shape::<shapes::GroupList>,
        ),
        &[("step", "Only groups of that step."), LIMIT],
    ),
    get(
        "/v1/runs/{run}/groups/{group}",
        Deed::Group,
        READ,
        "Look at a group: texts, values, and what judges said",
        shape::<shapes::GroupReply>,
    ),
    get("/v1/rewards", Deed::Rewards, READ, "List rewards", shape::<shapes::RewardList>),
    get("/v1/rewards/{reward}", Deed::Reward, READ, "Explain a reward", shape::<shapes::RewardReply>),
    get(
        "/v1/recipes",
        Deed::Recipes,
        READ,
        "List the recipes that can be named",
        shape::<shapes::RecipeList>,
    ),
    get("/v1/judges", Deed::Judges, READ, "See what judges have been asked", shape::<shapes::JudgeList>),
    get("/v1/status", Deed::Status, READ, "See what the service is doing", shape::<shapes::StatusReply>),
    get("/healthz", Deed::Health, None, "Whether the service is up", shape::<shapes::UpReply>),
    get("/readyz", Deed::Ready, None, "Whether the service can take work", shape::<shapes::ReadyReply>),
    get("/metrics", Deed::Metrics, READ, "Counts and times for Prometheus", shape::<String>),
    get("/openapi.json", Deed::OpenApi, None, "This description", shape::<Map<String, Value>>),
    get("/", Deed::Page, None, "The dashboard", shape::<String>),
    get("/static/{file}", Deed::File, None, "A file of the dashboard", shape::<String>),
];

/// The route of a request, with what its braces stand for.
pub(crate) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Route, Vec<Cow<'p, str>>), Refusal> {
    let mut methods = Vec::new();
    for route in ROUTES {
        if let Some(found) = fits(route.path, path) {
            // What can be fetched can be asked about.
            if route.method == method.as_str() || (*method == Method::HEAD && route.method == "GET") {
                return Ok((route, found));
            }
            methods.push(route.method);
            methods.extend((route.method == "GET").then_some("HEAD"));
        }
    }
    if methods.is_empty() {
        return Err(Refusal::not_found("http.not_found", "there is nothing under this path"));
    }
    let message = "this path does not take this method";
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "http.method", message);
    Err(Refusal { allow: Some(methods.join(", ").into()), ..refusal })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_what_is_not_there_is_not() {
        let deed = |method: Method, path: &str| find(&method, path).map(|(route, _)| route.deed);
        assert_eq!(deed(Method::POST, "/v1/score").unwrap(), Deed::Score);
        assert_eq!(deed(Method::HEAD, "/").unwrap(), Deed::Page);
        let refusal = deed(Method::GET, "/v1/score").unwrap_err();
        assert_eq!((refusal.status.as_u16(), refusal.allow.as_deref()), (405, Some("POST")));
        let refusal = deed(Method::PUT, "/v1/jobs/7").unwrap_err();
        assert_eq!(refusal.reply().headers()["allow"], "GET, HEAD, DELETE");
        for path in ["/v1/", "/v1/score/", "//", "/static/../x", "/static/%00.js", "/static/%2", "/V1/score"]
        {
            assert_eq!(deed(Method::GET, path).unwrap_err().status, 404, "{path}");
        }
        let (_, found) = find(&Method::GET, "/v1/runs/a%20b/groups/7").unwrap();
        assert_eq!(found, ["a b", "7"]);
    }
}
