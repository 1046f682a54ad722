//! The route table: one line per path, from which both the axum router and `/openapi.json` are made.

use super::openapi::{Operation, schema};
use super::{catalog, jobs, join, runs, score, service};
use crate::compat::{handlers as compat, nemo_gym, openrlhf, slime};
use crate::http::middleware::{RouteGuard, authorize, method_not_allowed, not_found};
use crate::state::AppState;
use crate::token_file::Scope;
use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A path, a method and their handler.
pub(crate) struct Route {
    /// In the syntax of axum: `{name}` stands for any part.
    pub(crate) path: &'static str,
    pub(crate) method: &'static str,
    /// The scopes of which a token must have one; none for a public path.
    pub(crate) scopes: &'static [Scope],
    /// Whether the token may come as the password of HTTP basic authentication.
    basic_auth: bool,
    /// What `/openapi.json` says of it; none for the dashboard.
    pub(crate) operation: Option<Operation>,
    handler: MethodRouter<Arc<AppState>>,
}

impl Route {
    fn new<H: Handler<T, Arc<AppState>>, T: 'static>(
        (method, filter): (&'static str, MethodFilter),
        path: &'static str,
        handler: H,
    ) -> Self {
        let scopes: &[Scope] = &[Scope::Score];
        Self { path, method, scopes, basic_auth: false, operation: None, handler: on(filter, handler) }
    }

    fn get<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(("GET", MethodFilter::GET), path, handler)
    }

    fn post<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(("POST", MethodFilter::POST), path, handler)
    }

    fn delete<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new(("DELETE", MethodFilter::DELETE), path, handler)
    }

    /// The scopes of which a token must have one, in the place of `score`.
    fn scopes(self, scopes: &'static [Scope]) -> Self {
        Self { scopes, ..self }
    }

    fn read(self) -> Self {
        self.scopes(&[Scope::Read])
    }

    fn public(self) -> Self {
        self.scopes(&[])
    }

    fn basic_auth(self) -> Self {
        Self { basic_auth: true, ..self }
    }

    /// Describes it in `/openapi.json`.
    fn docs(self, operation: Operation) -> Self {
        Self { operation: Some(operation), ..self }
    }
}

/// Every path there is.
pub(crate) fn routes() -> Vec<Route> {
    let op = Operation::new;
    vec![
        Route::post("/v1/score", score::score).docs(
            op("Score", "Score rollouts", schema::<score::ScoreReply<'static>>)
                .body(schema::<score::ScoreRequest<'static>>),
        ),
        Route::post("/v1/join", join::join).docs(
            op("Join", "Hand in one rollout of a group", schema::<join::JoinReply<'static>>)
                .body(schema::<join::JoinRequest<'static>>),
        ),
        Route::post("/v1/jobs", jobs::create).docs(
            op("CreateJob", "Score many rollouts in the background", schema::<crate::jobs::job::JobReply>)
                .body(schema::<score::ScoreRequest<'static>>)
                .idempotent(),
        ),
        Route::post("/openrlhf/{recipe}", compat::openrlhf)
            .basic_auth()
            .docs(openrlhf_docs("OpenRlhf", "Score as OpenRLHF's remote reward model")),
        Route::post("/openrlhf/{recipe}/{run}", compat::openrlhf)
            .basic_auth()
            .docs(openrlhf_docs("OpenRlhfOfRun", OF_RUN)),
        Route::post("/slime/{recipe}", compat::slime)
            .basic_auth()
            .docs(slime_docs("Slime", "Score as slime's remote_rm")),
        Route::post("/slime/{recipe}/{run}", compat::slime)
            .basic_auth()
            .docs(slime_docs("SlimeOfRun", OF_RUN)),
        Route::post("/nemo-gym/{recipe}/verify", compat::verify)
            .basic_auth()
            .docs(verify_docs("Verify", "Verify as a resources server of NeMo-Gym")),
        Route::post("/nemo-gym/{recipe}/seed_session", compat::seed)
            .basic_auth()
            .docs(seed_docs("Seed", "Begin a session, which a reward keeps nothing of")),
        Route::post("/nemo-gym/{recipe}/aggregate_metrics", compat::aggregate)
            .basic_auth()
            .docs(aggregate_docs("Aggregate", "Figures over many rewards")),
        Route::post("/nemo-gym/{recipe}/{run}/verify", compat::verify)
            .basic_auth()
            .docs(verify_docs("VerifyOfRun", OF_RUN)),
        Route::post("/nemo-gym/{recipe}/{run}/seed_session", compat::seed)
            .basic_auth()
            .docs(seed_docs("SeedOfRun", OF_RUN)),
        Route::post("/nemo-gym/{recipe}/{run}/aggregate_metrics", compat::aggregate)
            .basic_auth()
            .docs(aggregate_docs("AggregateOfRun", OF_RUN)),
        Route::get("/v1/jobs", jobs::list)
            .docs(op("Jobs", "List jobs", schema::<jobs::JobList>).query::<jobs::ListQuery>()),
        Route::get("/v1/jobs/{job}", jobs::show).docs(op(
            "Job",
            "See how far a job is",
            schema::<crate::jobs::job::JobReply>,
        )),
        Route::delete("/v1/jobs/{job}", jobs::cancel).docs(op(
            "CancelJob",
            "Call a job off, or forget one that is over",
            schema::<crate::jobs::job::JobReply>,
        )),
        Route::get("/v1/jobs/{job}/results", jobs::results).docs(
            op("Results", "Fetch the results of a job, as JSON lines", jobs::result_line)
                .query::<jobs::ResultsQuery>()
                .content("application/x-ndjson", "Done; every line is such a value"),
        ),
        Route::get("/v1/runs", runs::list).read().docs(op("Runs", "List runs", schema::<runs::RunList>)),
        Route::get("/v1/runs/{run}", runs::show).read().docs(op(
            "Run",
            "See what a run is",
            schema::<runs::RunReply>,
        )),
        Route::get("/v1/runs/{run}/steps", runs::steps).read().docs(
            op("Steps", "See the statistics of its steps", schema::<runs::StepList>)
                .query::<runs::StepsQuery>(),
        ),
        Route::get("/v1/runs/{run}/groups", runs::groups).read().docs(
            op("Groups", "List the groups that can be looked at", schema::<runs::GroupList>)
                .query::<runs::GroupsQuery>(),
        ),
        Route::get("/v1/runs/{run}/groups/{group}", runs::group).read().docs(op(
            "Group",
            "Look at a group: texts, values, and what judges said",
            schema::<runs::GroupTextsReply>,
        )),
        Route::get("/v1/rewards", catalog::rewards).read().docs(op(
            "Rewards",
            "List rewards",
            schema::<catalog::RewardList>,
        )),
        Route::get("/v1/rewards/{reward}", catalog::reward).read().docs(op(
            "Reward",
            "Explain a reward",
            schema::<catalog::RewardReply>,
        )),
        // A client that scores must know the recipes.
        Route::get("/v1/recipes", catalog::recipes).scopes(&[Scope::Read, Scope::Score]).docs(op(
            "Recipes",
            "List the recipes that can be named",
            schema::<catalog::RecipeList<'static>>,
        )),
        Route::get("/v1/judges", catalog::judges).read().docs(op(
            "Judges",
            "See what judges have been asked",
            schema::<catalog::JudgeList>,
        )),
        Route::get("/v1/status", service::status).read().docs(op(
            "Status",
            "See what the service is doing",
            schema::<service::StatusReply>,
        )),
        Route::get("/healthz", service::health).public().docs(op(
            "Health",
            "Whether the service is up",
            schema::<service::UpReply>,
        )),
        Route::get("/readyz", service::ready).public().docs(op(
            "Ready",
            "Whether the service can take work",
            schema::<service::ReadyReply>,
        )),
        Route::get("/metrics", service::metrics).read().docs(
            op("Metrics", "Counts and times for Prometheus", schema::<String>).content("text/plain", "Done"),
        ),
        Route::get("/openapi.json", service::openapi).public().docs(op(
            "OpenApi",
            "This description",
            schema::<Map<String, Value>>,
        )),
        Route::get("/", service::dashboard).public(),
        Route::get("/static/{file}", service::asset).public(),
    ]
}

/// The summary of a path of a trainer's client that names a run as well.
const OF_RUN: &str = "The same, for a run";

fn openrlhf_docs(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary, schema::<openrlhf::OpenRlhfReply>)
        .body(schema::<openrlhf::OpenRlhfRequest>)
        .settings(&openrlhf::SETTINGS)
}

fn slime_docs(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary, slime::reply).body(schema::<slime::SlimeRequest>).settings(&slime::SETTINGS)
}

fn verify_docs(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary, schema::<nemo_gym::VerifyReply>)
        .body(schema::<nemo_gym::VerifyRequest>)
        .settings(&nemo_gym::SETTINGS)
}

fn seed_docs(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary, schema::<Map<String, Value>>).body(schema::<Value>)
}

fn aggregate_docs(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, summary, schema::<nemo_gym::aggregate::AggregateReply>)
        .body(schema::<nemo_gym::aggregate::AggregateRequest>)
}

/// The router of all paths, each behind its authentication.
pub(crate) fn router(app: &Arc<AppState>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let guard = RouteGuard {
            app: Arc::clone(app),
            path: route.path,
            scopes: route.scopes,
            basic_auth: route.basic_auth,
        };
        let handler = route.handler.route_layer(from_fn_with_state(guard, authorize));
        router = router.route(route.path, handler);
    }
    router.fallback(not_found).method_not_allowed_fallback(method_not_allowed).with_state(Arc::clone(app))
}
