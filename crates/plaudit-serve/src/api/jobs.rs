//! `/v1/jobs`: background scoring of what is too much for one request. A job is on the disk before it is accepted, goes on after a
//! restart, and its results can be fetched until they are too old.

use super::extract::{Caller, JsonBody, Query};
use super::openapi::AnyOf;
use super::score;
use crate::atomic_file;
use crate::http::body::BodyLease;
use crate::http::response::{ApiError, ErrorBody, blocking, body, json, ok};
use crate::jobs::job::{Job, JobRecord, JobReply, JobState, JobStatus};
use crate::jobs::queue::find_same;
use crate::jobs::worker::MAX_ROLLOUTS;
use crate::runs::run;
use crate::state::AppState;
use crate::token_file::{Scope, hex, random};
use crate::unix_time;
use axum::extract::{Path, State};
use axum::response::Response;
use hyper::{HeaderMap, StatusCode};
use plaudit::report::RowResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::BufRead as _;
use std::sync::Arc;

/// The longest Idempotency-Key.
const MAX_KEY: usize = 255;
/// The most jobs of one answer.
const MAX_LISTED: usize = 1000;

/// The jobs of a holder, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobList {
    jobs: Vec<JobReply>,
    /// Whether there are older ones.
    more: bool,
}

/// A rollout that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UnreadLine {
    /// Its place in the request, from 0.
    index: usize,
    error: ErrorBody,
}

/// A line of results: of a rollout, or of one that could not be read.
pub(crate) type ResultLine = AnyOf<RowResult<'static>, UnreadLine>;

/// The query of a list of jobs.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListQuery {
    /// How many at most, the newest ones; never more than 1000.
    limit: Option<u64>,
}

/// The query of results.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResultsQuery {
    /// The first line, from 0.
    from: Option<u64>,
    /// How many lines at most; all, where nothing is said.
    limit: Option<u64>,
}

/// `POST /v1/jobs`: accepts a job.
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (bytes, key) = (body.bytes().clone(), headers.get("idempotency-key"));
    let key = match key.map(|key| std::str::from_utf8(key.as_bytes())) {
        None => None,
        Some(Ok(key)) if !key.is_empty() && key.len() <= MAX_KEY => Some(key.to_owned()),
        Some(_) => {
            return Err(ApiError::bad_request("job.key", "Idempotency-Key: 1 to 255 letters are wanted"));
        }
    };
    let id = hex(&random::<16>().map_err(|error| ApiError::internal(error.to_string()))?);
    let (owner, inner) = (principal.entry.owner().to_owned(), Arc::clone(&app));
    let work = move || -> Result<(StatusCode, Arc<Job>), ApiError> {
        let request = score::parse(&bytes)?;
        let recipe = inner.recipes.resolve(request.recipe.as_deref())?.to_owned();
        run::check_name(request.run.as_deref().unwrap_or(&recipe))?;
        if request.rollouts.len() > MAX_ROLLOUTS {
            let message = format!("at most {MAX_ROLLOUTS} rollouts of a job: make several of it");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
        let status = JobStatus {
            job: id,
            state: JobState::Waiting,
            recipe,
            run: request.run,
            run_id: None,
            step: request.step,
            rollouts: request.rollouts.len(),
            bad: 0,
            created: unix_time(),
            ended: None,
            message: None,
        };
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let record = JobRecord { status, owner, key, hash };
        let again = |first: Arc<Job>, hash: &str| match first.record().hash == hash {
            true => Ok((StatusCode::OK, Arc::clone(&first))),
            false => {
                let message = "this Idempotency-Key was used for another body";
                Err(ApiError::new(StatusCode::CONFLICT, "job.conflict", message))
            }
        };
        let known = find_same(&inner.jobs.all(), &record);
        if let Some(first) = known {
            return again(first, &record.hash);
        }
        let (folder, hash) = (inner.jobs.folder.join(&record.status.job), record.hash.clone());
        let text = serde_json::to_string(&record).map_err(|error| ApiError::internal(error.to_string()))?;
        let job = Arc::new(Job::new(folder.clone(), record));
        let stored = fs::create_dir_all(&folder)
            .and_then(|()| atomic_file::write(&folder.join("request.json"), &bytes))
            .and_then(|()| atomic_file::write(&folder.join("job.json"), text.as_bytes()))
            .and_then(|()| atomic_file::sync_folder(&inner.jobs.folder));
        let added = match stored {
            Ok(()) => inner.jobs.insert(&job),
            Err(error) => Err(ApiError::disk("the job could not be kept", &error)),
        };
        match added {
            Ok(None) => Ok((StatusCode::ACCEPTED, job)),
            // The same job came twice at the same time, or the queue is full.
            other => {
                let _ = fs::remove_dir_all(&folder);
                other.and_then(|first| {
                    first.map_or_else(|| Ok((StatusCode::OK, job)), |first| again(first, &hash))
                })
            }
        }
    };
    let (status, job) = blocking("the job could not be read", work).await??;
    app.jobs.more.notify_one();
    Ok(json(status, &job.reply()))
}

/// `GET /v1/jobs`: the jobs of the caller, newest first.
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Query(query): Query<ListQuery>,
) -> Response {
    let most = query.limit.map_or(MAX_LISTED, |limit| (limit as usize).clamp(1, MAX_LISTED));
    let all: Vec<Arc<Job>> = app.jobs.all().values().cloned().collect();
    let is_visible =
        |job: &&Arc<Job>| principal.may(Scope::Admin) || job.record().owner == principal.entry.owner();
    let mut jobs: Vec<&Arc<Job>> = all.iter().filter(is_visible).collect();
    jobs.sort_by(|one, other| {
        let (one, other) = (one.record().status.created, other.record().status.created);
        other.total_cmp(&one)
    });
    let shown = jobs.iter().take(most).map(|job| job.reply()).collect();
    ok(&JobList { jobs: shown, more: jobs.len() > most })
}

/// `GET /v1/jobs/{job}`.
pub(crate) async fn show(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    app.jobs.find(&principal, &id).map(|job| ok(&job.reply()))
}

/// `DELETE /v1/jobs/{job}`: cancels a job; one that is over is deleted with its results.
pub(crate) async fn cancel(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let job = app.jobs.find(&principal, &id)?;
    let work = move || {
        if job.end(JobState::Cancelled, None) {
            job.cancel.cancel();
        } else {
            app.jobs.all().remove(&id);
            let _ = fs::remove_dir_all(&job.folder);
        }
        ok(&job.reply())
    };
    blocking("the job could not be called off", work).await
}

/// `GET /v1/jobs/{job}/results`: the results of a job that is done, as JSON lines.
pub(crate) async fn results(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Path(id): Path<String>,
    Query(query): Query<ResultsQuery>,
) -> Result<Response, ApiError> {
    let job = app.jobs.find(&principal, &id)?;
    let state = job.record().status.state;
    if state != JobState::Done {
        let error =
            ApiError::new(StatusCode::CONFLICT, "job.not_done", "this job has no results, or not yet");
        let retry_after = (!state.is_over()).then_some(1);
        return Err(ApiError { retry_after, ..error });
    }
    let (from, most) = (query.from.unwrap_or(0), query.limit.unwrap_or(u64::MAX));
    let (path, lease) = (job.folder.join("results.jsonl"), BodyLease::new(&app.body_budget));
    let read = move || read_lines(&path, (from, most), lease);
    let text = blocking("the results could not be read", read).await??;
    Ok(body(StatusCode::OK, "application/x-ndjson", text))
}

/// Reads some lines of a file into memory that is leased until they are sent.
fn read_lines(
    path: &std::path::Path,
    (from, most): (u64, u64),
    mut lease: BodyLease,
) -> Result<bytes::Bytes, ApiError> {
    let unread = |error: std::io::Error| {
        ApiError::internal(format!("the results could not be read: {}", error.kind()))
    };
    let mut file = std::io::BufReader::new(fs::File::open(path).map_err(unread)?);
    let (mut text, mut at) = (Vec::new(), 0);
    while at < from.saturating_add(most) {
        let before = text.len();
        if file.read_until(b'\n', &mut text).map_err(unread)? == 0 {
            break;
        }
        match at < from {
            true => text.truncate(before),
            false => lease.grow_reply(text.len() - before)?,
        }
        at += 1;
    }
    Ok(lease.with(text))
}
