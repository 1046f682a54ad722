//! The service itself: `/v1/status`, `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and the files of the dashboard.

use super::openapi;
use crate::assets;
use crate::http::response::{ApiError, body, ok};
use crate::metrics;
use crate::state::AppState;
use axum::extract::{Path, State};
use axum::response::Response;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the service is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusReply {
    version: &'static str,
    /// For how many seconds it has been up.
    uptime_seconds: f64,
    /// How many rollouts are being scored, and how many may be.
    rollouts: usize,
    limit: usize,
    /// How many runs are live.
    runs: usize,
    /// How many jobs there are, by how far they are.
    jobs: BTreeMap<&'static str, usize>,
    /// How many tasks have made no progress for over a minute.
    stalled_tasks: usize,
    /// Whether it is about to end.
    draining: bool,
}

/// It is up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpReply {
    up: bool,
}

/// It can take work.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadyReply {
    ready: bool,
    /// What the operator should see to, though work is taken.
    warnings: Vec<Warning>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
struct Warning {
    code: &'static str,
    message: &'static str,
}

/// `GET /v1/status`.
pub(crate) async fn status(State(app): State<Arc<AppState>>) -> Response {
    ok(&StatusReply {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: app.started.elapsed().as_secs_f64(),
        rollouts: app.admission.admitted(),
        limit: app.limits.rollouts,
        runs: app.runs.live_count(),
        jobs: app.jobs.counts().into_iter().collect(),
        stalled_tasks: app.watchdog.stalled(),
        draining: app.is_draining(),
    })
}

/// `GET /healthz`.
pub(crate) async fn health() -> Response {
    ok(&UpReply { up: true })
}

/// `GET /readyz`: whether it takes work; not while it stops, and not where judgments cannot be written.
pub(crate) async fn ready(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let unavailable = |code, message| Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message));
    if app.is_draining() {
        return unavailable("service.draining", "the service is about to end");
    }
    if !app.recipes.can_write_journal() {
        return unavailable("engine.journal", "the journal of judgments cannot be written");
    }
    let mut warnings = Vec::new();
    if app.tokens.are_stale() {
        let message = "the file of tokens cannot be read: those that were known before stay valid, and none can be revoked";
        warnings.push(Warning { code: "service.tokens", message });
    }
    Ok(ok(&ReadyReply { ready: true, warnings }))
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let text = metrics::render(&app)?;
    Ok(body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> Response {
    ok(&openapi::openapi())
}

/// `GET /`: the dashboard.
pub(crate) async fn dashboard() -> Result<Response, ApiError> {
    assets::file("")
}

/// `GET /static/{file}`.
pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    assets::file(&name)
}
