//! `POST /v1/score`: rollouts in, results out, in one request.

use super::extract::{Caller, JsonBody, LARGE};
use crate::admission::AdmissionPermit;
use crate::http::auth::{Principal, QuotaPermit};
use crate::http::response::{ApiError, blocking, json_bytes};
use crate::runs::run::{self, Run};
use crate::state::AppState;
use crate::traces;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use plaudit::engine::ScoreOptions;
use plaudit::error::RunError;
use plaudit::exec::CancelToken;
use plaudit::input::{self, Fields, InputError};
use plaudit::report::{Report, RowResult};
use plaudit::rollout::{Rollout, RolloutLine};
use plaudit::statistics::Statistics;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The most rollouts of one request; more go as a job.
const MAX_ROLLOUTS: usize = 16_384;

/// What is to be scored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoreRequest<'a> {
    /// The name of the recipe; it may be left out where only one is offered.
    pub(crate) recipe: Option<String>,
    /// The training that it is for, under any name; the name of the recipe where nothing is said.
    pub(crate) run: Option<String>,
    /// The step of the training; cut by time where nothing is said.
    pub(crate) step: Option<u64>,
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said.
    pub(crate) validate: Option<bool>,
    /// Whether the statistics of these rollouts are wanted as well.
    #[serde(default)]
    pub(crate) statistics: bool,
    /// The rollouts, each as a line of a file has it.
    #[serde(borrow)]
    #[schemars(with = "Vec<RolloutLine>")]
    pub(crate) rollouts: Vec<&'a RawValue>,
}

/// What comes back.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScoreReply<'a> {
    /// The id of the run.
    run: &'a str,
    /// One a rollout that could be read, in the order of the request.
    #[schemars(with = "Vec<RowResult<'static>>")]
    results: Results<'a>,
    /// What could not be read, by its place in the request.
    errors: &'a [UnreadRollout],
    /// The statistics, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    statistics: Option<&'a Statistics>,
}

/// The results of a report, written without a list of them in memory.
struct Results<'a> {
    rollouts: &'a [Rollout<'static>],
    report: &'a Report,
}

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            self.rollouts
                .iter()
                .enumerate()
                .map(|(at, rollout)| self.report.result(at, rollout.id.as_deref().unwrap_or(""), rollout)),
        )
    }
}

/// A rollout that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unread")]
pub(crate) struct UnreadRollout {
    /// Its place in the request, from 0.
    pub(crate) index: usize,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The rollouts of a request that could be read, and what could not.
#[derive(Debug)]
pub(crate) struct ReadRollouts {
    pub(crate) rollouts: Vec<Rollout<'static>>,
    pub(crate) errors: Vec<UnreadRollout>,
}

/// Parses a body.
pub(crate) fn parse(body: &[u8]) -> Result<ScoreRequest<'_>, ApiError> {
    let request: ScoreRequest<'_> = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request("http.json", error.to_string()))?;
    run::check_step(request.step)?;
    Ok(request)
}

/// Reads the rollouts one by one, at most so many, and calls `admit` with their number and bytes. The rollouts of a group line have a
/// prompt each, so admission comes before they are copied.
pub(crate) fn read<T>(
    lines: &[&RawValue],
    most: usize,
    admit: impl FnOnce(usize, usize) -> Result<T, ApiError>,
) -> Result<(ReadRollouts, T), ApiError> {
    let fields = Fields::own();
    let mut read = ReadRollouts { rollouts: Vec::new(), errors: Vec::new() };
    let mut groups = Vec::with_capacity(lines.len().min(most));
    let (mut count, mut bytes) = (0, 0_usize);
    for (index, line) in lines.iter().enumerate() {
        match input::read_line(line.get().as_bytes(), &fields) {
            Ok(mut rollouts) => {
                rollouts.name(|| index.to_string());
                count += rollouts.len();
                bytes = bytes.saturating_add(rollouts.bytes());
                groups.push(rollouts);
            }
            Err(InputError { code, message, .. }) => {
                read.errors.push(UnreadRollout { index, code: code.to_owned(), message });
            }
        }
        if count.max(index + 1) > most {
            let message = format!("at most {most} rollouts at once: send less");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
    }
    let admitted = admit(count, bytes)?;
    read.rollouts = groups.into_iter().flatten().collect();
    Ok((read, admitted))
}

/// Cancels scoring when the client goes away. Judgments that are paid for stay in the journal.
#[derive(Debug)]
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The API error of an engine that gave no report.
pub(crate) fn run_error(error: &RunError) -> ApiError {
    match error {
        RunError::UnevenGroups { .. } => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), error.to_string())
        }
        error => {
            tracing::error!(code = error.code(), "a request could not be scored");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.code(), "something failed that must not")
        }
    }
}

/// An admitted request.
struct AdmittedRequest {
    run: Arc<Run>,
    step: Option<u64>,
    validate: Option<bool>,
    statistics: bool,
    read: ReadRollouts,
    permits: (QuotaPermit, AdmissionPermit, AdmissionPermit),
}

/// Parses a body and admits its rollouts.
async fn admit(app: &AppState, principal: &Principal, body: &[u8]) -> Result<AdmittedRequest, ApiError> {
    let request = parse(body)?;
    let owner = principal.entry.owner();
    let run = app.runs.get_or_create(owner, request.run.as_deref(), request.recipe.as_deref()).await?;
    let (read, permits) = read(&request.rollouts, MAX_ROLLOUTS, |count, bytes| {
        let quota = principal.take(count)?;
        Ok((quota, app.admission.enter(&run.load, count)?, app.texts.hold(&run.texts, bytes)?))
    })?;
    let ScoreRequest { step, validate, statistics, .. } = request;
    Ok(AdmittedRequest { run, step, validate, statistics, read, permits })
}

/// `POST /v1/score`.
pub(crate) async fn score(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let admitted = match body.bytes().len() > LARGE {
        false => admit(&app, &principal, body.bytes()).await?,
        true => {
            let (app, bytes) = (Arc::clone(&app), body.bytes().clone());
            let runtime = tokio::runtime::Handle::current();
            let work = move || runtime.block_on(admit(&app, &principal, &bytes));
            blocking("the body could not be read", work).await??
        }
    };
    let AdmittedRequest { run, step, validate, statistics, read, permits } = admitted;
    let count = read.rollouts.len();
    let (given, step) = (step, run.begin(step)?);
    let watched = app.watchdog.begin("its judges", &run.id, format!("{count} rollouts of step {step}"));
    let cancel = CancelToken::new();
    let cancel_on_drop = CancelOnDrop(cancel.clone());
    let span = traces::current();
    if let Some(span) = &span {
        span.set("plaudit.run", (&*run.id).into());
        span.set("plaudit.step", step.into());
    }
    let options = ScoreOptions { validate, cancel: Some(cancel), span, usage: run.engine.usage_meter() };
    let scored_with = options.clone();
    let (send, receive) = oneshot::channel();
    let (state, scored) = (Arc::clone(&app), Arc::clone(&run));
    run.engine.submit(read.rollouts, options, move |rollouts, report| {
        let written = report.map_err(|error| run_error(&error)).and_then(|report| {
            scored.observe(step, &rollouts, &report, &scored_with);
            state.metrics.observe_report(&report.plan.name, &report);
            scored.check_abort(given, &report.statistics.outcomes, &report.rows, rollouts.first())?;
            let reply = ScoreReply {
                run: &scored.id,
                results: Results { rollouts: &rollouts, report: &report },
                errors: &read.errors,
                statistics: statistics.then_some(&report.statistics),
            };
            // Written here, on the thread that scored it.
            let mut out = Vec::with_capacity(128 + rollouts.len() * 320);
            match serde_json::to_writer(&mut out, &reply) {
                Ok(()) => Ok(out),
                Err(_) => Err(ApiError::internal("the answer is no JSON")),
            }
        });
        // Released before the answer goes out, so that the client can send its next request at once.
        drop(permits);
        let _ = send.send(written);
    });
    let written = receive.await.map_err(|_| ApiError::internal("something failed that must not"))??;
    drop((cancel_on_drop, watched, body));
    Ok(json_bytes(StatusCode::OK, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_rollouts_are_reported_by_index() {
        let body = br#"{"recipe":"r","step":3,"rollouts":[{"response":"a"},{"response":1},{"responses":["b","c"]}]}"#;
        let request = parse(body).unwrap();
        assert_eq!((request.recipe.as_deref(), request.step), (Some("r"), Some(3)));
        let any = |_, _| Ok(());
        let (read, ()) = read(&request.rollouts, MAX_ROLLOUTS, any).unwrap();
        let ids: Vec<_> = read.rollouts.iter().filter_map(|rollout| rollout.id.as_deref()).collect();
        assert_eq!(ids, ["0", "2.0", "2.1"]);
        assert_eq!((read.errors[0].index, read.errors[0].code.as_str()), (1, "input.response"));
        assert_eq!(super::read(&request.rollouts, 2, any).unwrap_err().code, "http.too_many");
        let step = |step: u64| format!(r#"{{"rollouts":[],"step":{step}}}"#);
        assert_eq!(parse(step((1 << 53) - 1).as_bytes()).unwrap().step, Some((1 << 53) - 1));
        assert_eq!(parse(step(1 << 53).as_bytes()).unwrap_err().code, "run.step");
        assert_eq!(parse(b"{").unwrap_err().code, "http.json");
        assert_eq!(parse(br#"{"rollouts":[],"url":"http://x"}"#).unwrap_err().code, "http.json");
        assert_eq!(parse(br#"{"rollouts":[],"rollouts":[]}"#).unwrap_err().code, "http.json");
    }
}
