//! `POST /v1/join`: takes one rollout, and answers when its group is scored.

use super::extract::{Caller, JsonBody};
use super::names::Name;
use crate::admission::AdmissionPermit;
use crate::http::auth::{Principal, QuotaPermit};
use crate::http::response::{ApiError, ok};
use crate::runs::run::{self, Run};
use crate::state::AppState;
use crate::traces;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use plaudit::input::{self, Fields};
use plaudit::join::{Arrival, Joined};
use plaudit::reason::Code;
use plaudit::report::RowResult;
use plaudit::rollout::{Rollout, RolloutLine};
use plaudit::statistics::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest key of a group or name of a member.
const MAX_NAME: usize = 512;
/// The most members of a group.
const MAX_MEMBERS: usize = 65_536;

/// One rollout and its group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinRequest<'a> {
    /// The name of the recipe; it may be left out where only one is offered.
    recipe: Option<String>,
    /// The training that it is for, under any name.
    run: Option<String>,
    /// The step of the training; groups of different steps are different groups.
    step: Option<u64>,
    /// The group's key.
    group: Name,
    /// How many members the group has.
    size: usize,
    /// The rollout's name in its group, so that one that is sent again after a lost connection is known.
    member: Option<Name>,
    /// For how many seconds to wait for the group at most, where that is less than the recipe says.
    timeout: Option<f64>,
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said.
    validate: Option<bool>,
    /// The rollout.
    #[serde(borrow)]
    #[schemars(with = "RolloutLine")]
    rollout: &'a RawValue,
}

/// What comes back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JoinReply<'a> {
    /// The id of the run.
    run: &'a str,
    result: RowResult<'a>,
    /// How many members had arrived when the group was scored.
    group_size: usize,
    /// Whether some had not.
    partial: bool,
    /// Whether this one came after its group had been scored.
    late: bool,
    /// Whether a member of the same name had come before it.
    duplicate: bool,
    /// For how many seconds it waited for its group.
    waited: f64,
    /// The mean total of its siblings that have one.
    siblings_mean: Option<f64>,
}

/// Whether a member may have that name, and a group that size.
pub(crate) fn check(member: Option<&str>, size: usize) -> Result<(), ApiError> {
    if member.is_some_and(|name| name.len() > MAX_NAME) {
        let message = format!("member: a name of at most {MAX_NAME} bytes is wanted");
        return Err(ApiError::bad_request("input.group", message));
    }
    if size == 0 || size > MAX_MEMBERS {
        return Err(ApiError::bad_request(
            "input.group_size",
            format!("size: a number from 1 to {MAX_MEMBERS} is wanted"),
        ));
    }
    Ok(())
}

/// The permits of a rollout, which it holds until its group is scored, also after its client has gone away.
#[derive(Debug)]
pub(crate) struct JoinPermits {
    _quota: QuotaPermit,
    _rollout: AdmissionPermit,
    _bytes: AdmissionPermit,
}

impl JoinPermits {
    /// Admits a rollout.
    pub(crate) fn take(
        app: &AppState,
        principal: &Principal,
        run: &Run,
        rollout: &Rollout<'_>,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            _quota: principal.take(1)?,
            _rollout: app.joining.enter(&run.joining, 1)?,
            _bytes: app.texts.hold(&run.texts, rollout.bytes())?,
        })
    }
}

/// Joins a rollout with its group and waits for the result. Where the client goes away, the rollout keeps its place in the group until
/// another one needs it; sent again under the same name, it gets the same result. `observe` gets the result in any case.
pub(crate) async fn join_rollout(
    app: &AppState,
    run: &Arc<Run>,
    (step, arrival): (Option<u64>, Arrival),
    permits: JoinPermits,
    observe: impl FnOnce(&Joined) + Send + 'static,
) -> Result<Joined, ApiError> {
    let _watched = app.watchdog.begin("its group", &run.id, arrival.group.chars().take(80).collect());
    let (send, receive) = oneshot::channel();
    let step_begun = run.begin(step)?;
    let span = traces::current();
    if let Some(span) = &span {
        span.set("plaudit.run", (&*run.id).into());
        span.set("plaudit.step", step_begun.into());
    }
    let arrival = Arrival { span, ..arrival };
    let _present = run.join(step).hand_in_watched(arrival, move |joined| {
        drop(permits);
        observe(&joined);
        drop(send.send(joined));
    });
    // The service may have begun to stop since the request was admitted.
    if app.is_draining() {
        run.close_joins();
    }
    let joined = receive.await.map_err(|_| ApiError::internal("something failed that must not"))?;
    if joined.may_retry() {
        let message = "too many rollouts wait for their groups";
        return Err(ApiError::busy("engine.overloaded", message, 5));
    }
    let total = &joined.row().total;
    let code = total.cause().map(|cause| cause.reason.code.as_str());
    if code == Some(Code::GroupClosed.as_str()) && app.is_draining() {
        return Err(ApiError::draining());
    }
    app.metrics.observe_joined(&joined.report.plan.name, total.kind(), code);
    let mut outcome = Counts::default();
    outcome.observe(total.kind(), total.cause().map(|cause| cause.reason.code));
    run.check_abort(step, &outcome, std::slice::from_ref(joined.row()), None)?;
    Ok(joined)
}

/// What a body says: the run, the recipe, the step and the rollout.
type Joining = (Option<String>, Option<String>, Option<u64>, Arrival);

/// Parses a body.
fn read(body: &[u8]) -> Result<Joining, ApiError> {
    let request: JoinRequest<'_> = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request("http.json", error.to_string()))?;
    let JoinRequest { recipe, run, step, group, size, member, timeout, validate, rollout } = request;
    run::check_step(step)?;
    let (group, member) = (group.0, member.map(|member| member.0));
    if group.is_empty() || group.len() > MAX_NAME {
        let message = format!("group: a name of 1 to {MAX_NAME} bytes is wanted");
        return Err(ApiError::bad_request("input.group", message));
    }
    check(member.as_deref(), size)?;
    let timeout = match timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(time)) if !time.is_zero() => Some(time),
        Some(_) => {
            return Err(ApiError::bad_request(
                "input.timeout",
                "timeout: a number of seconds above 0 is wanted",
            ));
        }
    };
    let mut read = input::read_line(rollout.get().as_bytes(), &Fields::own())
        .map_err(|error| ApiError::unreadable(StatusCode::BAD_REQUEST, error))?;
    let (1, Some(rollout)) = (read.len(), read.next()) else {
        return Err(ApiError::bad_request("input.response", "one rollout with one response is wanted"));
    };
    Ok((run, recipe, step, Arrival { member, timeout, validate, ..Arrival::new(group, size, rollout) }))
}

/// `POST /v1/join`.
pub(crate) async fn join(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (run, recipe, step, arrival) = body.parse(read).await?;
    let owner = principal.entry.owner();
    let run = app.runs.get_or_create(owner, run.as_deref(), recipe.as_deref()).await?;
    let permits = JoinPermits::take(&app, &principal, &run, &arrival.rollout)?;
    let shown = Rollout { group: Some(arrival.group.clone().into()), ..Rollout::new("") };
    let id = arrival.rollout.id.clone().or_else(|| arrival.member.clone().map(Into::into));
    let joined = join_rollout(&app, &run, (step, arrival), permits, |_| ()).await?;
    Ok(ok(&JoinReply {
        run: &run.id,
        result: joined.report.result(joined.at, id.as_deref().unwrap_or(""), &shown),
        group_size: joined.group_size,
        partial: joined.partial,
        late: joined.late,
        duplicate: joined.duplicate,
        waited: joined.waited.as_secs_f64(),
        siblings_mean: joined.siblings_mean(),
    }))
}
