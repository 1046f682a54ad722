//! `POST /v1/jobs`: what is too much for one request. A job is on the disk before it is accepted, goes on after a restart, and its
//! results can be fetched until they are too old.

use super::backlog::same;
use super::body::{Lent, Room};
use super::house::House;
use super::job::{self, Job, Stage, Written, put};
use super::reply::{Refusal, Reply, body, json};
use super::run::clock;
use super::score;
use super::tokens::{Holder, Scope, hex, random};
use super::turn::MOST;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;

/// The longest Idempotency-Key.
const LONGEST_KEY: usize = 255;
/// The most jobs of one answer.
const MOST_LISTED: usize = 1000;

/// Accepts a job.
pub(crate) async fn create(
    house: &Arc<House>,
    holder: &Holder,
    bytes: bytes::Bytes,
    key: Option<&[u8]>,
) -> Result<(StatusCode, Reply), Refusal> {
    let key = match key.map(std::str::from_utf8) {
        None => None,
        Some(Ok(key)) if !key.is_empty() && key.len() <= LONGEST_KEY => Some(key.to_owned()),
        Some(_) => return Err(Refusal::bad("job.key", "Idempotency-Key: 1 to 255 letters are wanted")),
    };
    let id = hex(&random::<16>().map_err(|failure| Refusal::broken(failure.to_string()))?);
    let (owner, inner) = (holder.entry.owner().to_owned(), Arc::clone(house));
    let work = tokio::task::spawn_blocking(move || -> Result<(StatusCode, Arc<Job>), Refusal> {
        let request = score::parse(&bytes)?;
        let recipe = inner.recipes.chosen(request.recipe.as_deref())?.to_owned();
        House::check_name(request.run.as_deref().unwrap_or(&recipe))?;
        if request.rollouts.len() > MOST {
            let message = format!("at most {MOST} rollouts of a job: make several of it");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
        }
        let written = Written {
            job: id,
            state: Stage::Waiting,
            recipe,
            run: request.run,
            run_id: None,
            step: request.step,
            rollouts: request.rollouts.len(),
            bad: 0,
            created: clock(),
            ended: None,
            message: None,
            owner,
            key,
            hash: blake3::hash(&bytes).to_hex().to_string(),
        };
        let again = |first: Arc<Job>, hash: &str| match first.written().hash == hash {
            true => Ok((StatusCode::OK, Arc::clone(&first))),
            false => {
                let message = "this Idempotency-Key was used for another body";
                Err(Refusal::new(StatusCode::CONFLICT, "job.conflict", message))
            }
        };
        let known = same(&inner.jobs.all(), &written);
        if let Some(first) = known {
            return again(first, &written.hash);
        }
        let (folder, hash) = (inner.jobs.folder.join(&written.job), written.hash.clone());
        let text = serde_json::to_string(&written).map_err(|error| Refusal::broken(error.to_string()))?;
        let job = Arc::new(Job::new(folder.clone(), written));
        let kept = fs::create_dir_all(&folder)
            .and_then(|()| put(&folder.join("request.json"), &bytes))
            .and_then(|()| put(&folder.join("job.json"), text.as_bytes()))
            .and_then(|()| job::sync(&inner.jobs.folder));
        let taken = match kept {
            Ok(()) => inner.jobs.insert(&job),
            Err(error) => Err(Refusal::disk("the job could not be kept", &error)),
        };
        match taken {
            Ok(None) => Ok((StatusCode::ACCEPTED, job)),
            // The same may have come twice at the same time, or too many at once.
            other => {
                let _ = fs::remove_dir_all(&folder);
                other.and_then(|first| {
                    first.map_or_else(|| Ok((StatusCode::OK, job)), |first| again(first, &hash))
                })
            }
        }
    });
    let (status, job) = work.await.map_err(|_| Refusal::broken("the job could not be read"))??;
    house.jobs.more.notify_one();
    Ok((status, json(status, &job.shown())))
}

/// The jobs of a holder, newest first, at most so many, and whether there are more.
pub(crate) fn list(house: &House, holder: &Holder, query: &super::look::Query<'_>) -> Result<Reply, Refusal> {
    let most = query.number("limit")?.map_or(MOST_LISTED, |limit| (limit as usize).clamp(1, MOST_LISTED));
    let all: Vec<Arc<Job>> = house.jobs.all().values().cloned().collect();
    let mine = |job: &&Arc<Job>| holder.may(Scope::Admin) || job.written().owner == holder.entry.owner();
    let mut jobs: Vec<&Arc<Job>> = all.iter().filter(mine).collect();
    jobs.sort_by(|one, other| {
        let (one, other) = (one.written().created, other.written().created);
        other.total_cmp(&one)
    });
    let shown: Vec<Value> = jobs.iter().take(most).map(|job| job.shown()).collect();
    Ok(json(StatusCode::OK, &json!({ "jobs": shown, "more": jobs.len() > most })))
}

pub(crate) fn show(house: &House, holder: &Holder, id: &str) -> Result<Reply, Refusal> {
    house.jobs.find(holder, id).map(|job| json(StatusCode::OK, &job.shown()))
}

/// Calls a job off; one that is over is forgotten with its results.
pub(crate) async fn cancel(house: &Arc<House>, holder: &Holder, id: &str) -> Result<Reply, Refusal> {
    let job = house.jobs.find(holder, id)?;
    let house = Arc::clone(house);
    let work = tokio::task::spawn_blocking(move || {
        if job.end(Stage::Cancelled, None) {
            job.cancel.cancel();
        } else {
            let id = job.written().job.clone();
            house.jobs.all().remove(&id);
            let _ = fs::remove_dir_all(&job.folder);
        }
        job
    });
    let job = work.await.map_err(|_| Refusal::broken("the job could not be called off"))?;
    Ok(json(StatusCode::OK, &job.shown()))
}

/// The results of a job that is done, as lines: from one on, and at most so many.
pub(crate) async fn results(
    house: &House,
    holder: &Holder,
    id: &str,
    query: &super::look::Query<'_>,
) -> Result<Reply, Refusal> {
    let job = house.jobs.find(holder, id)?;
    let state = job.written().state;
    if state != Stage::Done {
        let refusal =
            Refusal::new(StatusCode::CONFLICT, "job.not_done", "this job has no results, or not yet");
        let retry_after = (!state.is_over()).then_some(1);
        return Err(Refusal { retry_after, ..refusal });
    }
    let from = query.number("from")?.unwrap_or(0);
    let most = query.number("limit")?.unwrap_or(u64::MAX);
    let (path, lent) = (job.folder.join("results.jsonl"), Room::lend(&house.room));
    let read = tokio::task::spawn_blocking(move || part(&path, (from, most), lent));
    let text = read.await.map_err(|_| Refusal::broken("the results could not be read"))??;
    Ok(body(StatusCode::OK, "application/x-ndjson", text))
}

/// Some lines of a file, for which there is room in memory until they are sent.
fn part(path: &Path, (from, most): (u64, u64), mut lent: Lent) -> Result<bytes::Bytes, Refusal> {
    let unread =
        |error: std::io::Error| Refusal::broken(format!("the results could not be read: {}", error.kind()));
    let mut file = std::io::BufReader::new(fs::File::open(path).map_err(unread)?);
    let (mut text, mut at) = (Vec::new(), 0);
    while at < from.saturating_add(most) {
        let before = text.len();
        if file.read_until(b'\n', &mut text).map_err(unread)? == 0 {
            break;
        }
        match at < from {
            true => text.truncate(before),
            false => lent.grow(text.len() - before)?,
        }
        at += 1;
    }
    Ok(lent.with(text))
}
