//! `/v1/runs`: runs, their steps and their sampled groups. The dashboard has no other source.

use super::extract::Query;
use crate::http::response::{ApiError, blocking, json_bytes, ok};
use crate::runs::steps::StepLine;
use crate::runs::store::{self, GroupSummary, RunSummary};
use crate::state::AppState;
use crate::unix_time;
use axum::extract::{Path, State};
use axum::response::Response;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The most steps or groups of one answer.
const MAX_ITEMS: usize = 2000;
/// What is said where reading panics.
const UNREAD: &str = "it could not be read";

/// The runs, the newest first, without their components.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    runs: Vec<RunReply>,
}

/// A run as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunReply {
    #[serde(flatten)]
    summary: RunSummary,
    /// Whether it is at hand for rollouts that come.
    live: bool,
}

/// Some steps of a run, in their order.
#[derive(JsonSchema)]
pub(crate) struct StepList {
    #[allow(dead_code, reason = "the lines of steps are joined as they are stored")]
    steps: Vec<StepLine<'static>>,
}

/// The groups that can be looked at, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupList {
    groups: Vec<GroupSummary>,
}

/// The query of steps.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepsQuery {
    /// Only steps of a higher number.
    after: Option<u64>,
    /// How many at most, the newest ones: 500 where nothing is said, and never more than 2000.
    limit: Option<u64>,
    /// With 1, steps from all of the run in the place of the newest ones.
    whole: Option<u64>,
}

/// The query of groups.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GroupsQuery {
    /// Only groups of that step.
    step: Option<u64>,
    /// How many at most, the newest ones: 500 where nothing is said, and never more than 2000.
    limit: Option<u64>,
}

fn clamp(limit: Option<u64>) -> usize {
    limit.map_or(500, |limit| limit as usize).clamp(1, MAX_ITEMS)
}

/// `GET /v1/runs`.
pub(crate) async fn list(State(app): State<Arc<AppState>>) -> Response {
    let reply = |(summary, live): (RunSummary, bool)| {
        let summary = RunSummary { components: Value::Null, ..summary };
        RunReply { summary, live }
    };
    ok(&RunList { runs: app.runs.list().into_iter().map(reply).collect() })
}

/// `GET /v1/runs/{run}`.
pub(crate) async fn show(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let (summary, _, live) = app.runs.find(&id)?;
    Ok(ok(&RunReply { summary, live: live.is_some() }))
}

fn unreadable(error: std::io::Error) -> ApiError {
    ApiError::internal(format!("the state folder cannot be read: {}", error.kind()))
}

/// `GET /v1/runs/{run}/steps`.
pub(crate) async fn steps(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
    Query(query): Query<StepsQuery>,
) -> Result<Response, ApiError> {
    let (_, folder, live) = app.runs.find(&id)?;
    let (after, most) = (query.after, clamp(query.limit));
    let whole = query.whole.is_some_and(|whole| whole > 0);
    let steps = blocking(UNREAD, move || {
        if let Some(run) = live {
            if !whole {
                let (steps, older) = run.steps(after, most);
                if !older || steps.len() >= most {
                    return Ok(steps);
                }
            }
            run.tick(unix_time(), false);
            app.runs.flush();
        }
        let mut steps = store::steps(&folder).map_err(unreadable)?;
        let is_after = |step: u64| after.is_none_or(|after| step > after);
        steps.retain(|step| store::step_number(step).is_some_and(is_after));
        match whole {
            true => store::spread(&mut steps, most),
            false => drop(steps.drain(..steps.len().saturating_sub(most))),
        }
        Ok(steps)
    });
    let text = format!("{{\"steps\":[{}]}}", steps.await??.join(","));
    Ok(json_bytes(StatusCode::OK, text))
}

/// `GET /v1/runs/{run}/groups`.
pub(crate) async fn groups(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
    Query(query): Query<GroupsQuery>,
) -> Result<Response, ApiError> {
    let (_, folder, live) = app.runs.find(&id)?;
    let (step, most) = (query.step, clamp(query.limit));
    let groups = blocking(UNREAD, move || {
        if live.is_some() {
            app.runs.flush();
        }
        let mut groups = store::groups(&folder, step).map_err(unreadable)?;
        groups.drain(..groups.len().saturating_sub(most));
        Ok(groups)
    });
    Ok(ok(&GroupList { groups: groups.await?? }))
}

/// `GET /v1/runs/{run}/groups/{group}`.
pub(crate) async fn group(
    State(app): State<Arc<AppState>>,
    Path((id, group)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (_, folder, live) = app.runs.find(&id)?;
    let found = blocking(UNREAD, move || {
        if live.is_some() {
            app.runs.flush();
        }
        store::group(&folder, &group).map_err(unreadable)
    });
    let found = found.await??.ok_or_else(|| {
        ApiError::not_found("run.no_group", "there is no such group, or it is not kept any more")
    })?;
    Ok(ok(&found))
}
