//! The route table: one entry per path, from which both the axum router and `/openapi.json` are made.

use super::join::{self, JoinReply, JoinRequest};
use super::openapi::{Operation, op};
use super::score::{self, ScoreReply, ScoreRequest};
use super::{catalog, jobs, runs, service};
use crate::compat::nemo_gym::aggregate::{AggregateReply, AggregateRequest};
use crate::compat::{handlers as compat, nemo_gym, openrlhf as openrlhf_api, slime as slime_api};
use crate::http::middleware::{RouteGuard, authorize, method_not_allowed, not_found};
use crate::jobs::job::JobReply;
use crate::runs::sample::GroupReply;
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
    let mut routes = vec![
        Route::post("/v1/score", score::score)
            .docs(op::<ScoreReply<'static>>("Score", "Score rollouts").body::<ScoreRequest<'static>>()),
        Route::post("/v1/join", join::join).docs(
            op::<JoinReply<'static>>("Join", "Hand in one rollout of a group").body::<JoinRequest<'static>>(),
        ),
        Route::post("/v1/jobs", jobs::create).docs(
            op::<JobReply>("CreateJob", "Score many rollouts in the background")
                .body::<ScoreRequest<'static>>()
                .idempotent(),
        ),
        Route::get("/v1/jobs", jobs::list)
            .docs(op::<jobs::JobList>("Jobs", "List jobs").query::<jobs::ListQuery>()),
        Route::get("/v1/jobs/{job}", jobs::show).docs(op::<JobReply>("Job", "See how far a job is")),
        Route::delete("/v1/jobs/{job}", jobs::cancel)
            .docs(op::<JobReply>("CancelJob", "Call a job off, or forget one that is over")),
        Route::get("/v1/jobs/{job}/results", jobs::results).docs(
            op::<jobs::ResultLine>("Results", "Fetch the results of a job, as JSON lines")
                .query::<jobs::ResultsQuery>()
                .content("application/x-ndjson", "Done; every line is such a value"),
        ),
        Route::get("/v1/runs", runs::list).read().docs(op::<runs::RunList>("Runs", "List runs")),
        Route::get("/v1/runs/{run}", runs::show)
            .read()
            .docs(op::<runs::RunReply>("Run", "See what a run is")),
        Route::get("/v1/runs/{run}/steps", runs::steps).read().docs(
            op::<runs::StepList>("Steps", "See the statistics of its steps").query::<runs::StepsQuery>(),
        ),
        Route::get("/v1/runs/{run}/groups", runs::groups).read().docs(
            op::<runs::GroupList>("Groups", "List the groups that can be looked at")
                .query::<runs::GroupsQuery>(),
        ),
        Route::get("/v1/runs/{run}/groups/{group}", runs::group)
            .read()
            .docs(op::<GroupReply<'static>>("Group", "Look at a group: texts, values, and what judges said")),
        Route::get("/v1/rewards", catalog::rewards)
            .read()
            .docs(op::<catalog::RewardList>("Rewards", "List rewards")),
        Route::get("/v1/rewards/{reward}", catalog::reward)
            .read()
            .docs(op::<catalog::RewardReply>("Reward", "Explain a reward")),
        // A client that scores must know the recipes.
        Route::get("/v1/recipes", catalog::recipes).scopes(&[Scope::Read, Scope::Score]).docs(op::<
            catalog::RecipeList<'static>,
        >(
            "Recipes",
            "List the recipes that can be named",
        )),
        Route::get("/v1/judges", catalog::judges)
            .read()
            .docs(op::<catalog::JudgeList>("Judges", "See what judges have been asked")),
        Route::get("/v1/status", service::status)
            .read()
            .docs(op::<service::StatusReply>("Status", "See what the service is doing")),
        Route::get("/healthz", service::health)
            .public()
            .docs(op::<service::UpReply>("Health", "Whether the service is up")),
        Route::get("/readyz", service::ready)
            .public()
            .docs(op::<service::ReadyReply>("Ready", "Whether the service can take work")),
        Route::get("/metrics", service::metrics)
            .read()
            .docs(op::<String>("Metrics", "Counts and times for Prometheus").content("text/plain", "Done")),
        Route::get("/openapi.json", service::openapi)
            .public()
            .docs(op::<Map<String, Value>>("OpenApi", "This description")),
        Route::get("/", service::dashboard).public(),
        Route::get("/static/{file}", service::asset).public(),
    ];
    // Clients of other trainers, each with and without a run in its path.
    let openrlhf = "Score as OpenRLHF's remote reward model";
    let verify = "Verify as a resources server of NeMo-Gym";
    let seed = "Begin a session, which a reward keeps nothing of";
    for (run, [openrlhf_id, slime_id, verify_id, seed_id, aggregate_id]) in [
        (false, ["OpenRlhf", "Slime", "Verify", "Seed", "Aggregate"]),
        (true, ["OpenRlhfOfRun", "SlimeOfRun", "VerifyOfRun", "SeedOfRun", "AggregateOfRun"]),
    ] {
        let path = |plain, of_run| if run { of_run } else { plain };
        let summary = |text| if run { "The same, for a run" } else { text };
        routes.extend(
            [
                Route::post(path("/openrlhf/{recipe}", "/openrlhf/{recipe}/{run}"), compat::openrlhf).docs(
                    op::<openrlhf_api::OpenRlhfReply>(openrlhf_id, summary(openrlhf))
                        .body::<openrlhf_api::OpenRlhfRequest>()
                        .settings(&openrlhf_api::SETTINGS),
                ),
                Route::post(path("/slime/{recipe}", "/slime/{recipe}/{run}"), compat::slime).docs(
                    op::<slime_api::SlimeReply>(slime_id, summary("Score as slime's remote_rm"))
                        .body::<slime_api::SlimeRequest>()
                        .settings(&slime_api::SETTINGS),
                ),
                Route::post(
                    path("/nemo-gym/{recipe}/verify", "/nemo-gym/{recipe}/{run}/verify"),
                    compat::verify,
                )
                .docs(
                    op::<nemo_gym::VerifyReply>(verify_id, summary(verify))
                        .body::<nemo_gym::VerifyRequest>()
                        .settings(&nemo_gym::SETTINGS),
                ),
                Route::post(
                    path("/nemo-gym/{recipe}/seed_session", "/nemo-gym/{recipe}/{run}/seed_session"),
                    compat::seed,
                )
                .docs(op::<Map<String, Value>>(seed_id, summary(seed)).body::<Value>()),
                Route::post(
                    path(
                        "/nemo-gym/{recipe}/aggregate_metrics",
                        "/nemo-gym/{recipe}/{run}/aggregate_metrics",
                    ),
                    compat::aggregate,
                )
                .docs(
                    op::<AggregateReply>(aggregate_id, summary("Figures over many rewards"))
                        .body::<AggregateRequest>(),
                ),
            ]
            .map(Route::basic_auth),
        );
    }
    routes
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
