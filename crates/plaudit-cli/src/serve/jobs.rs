//! `POST /v1/jobs`: what is too much for one request. A job is on the disk before it is accepted, goes on after a restart, and its
//! results can be fetched until they are too old.

use super::backlog::same;
use super::body::{Lent, Room};
use super::house::House;
use super::job::{self, Job, Stage, Written, put};
use super::reply::{Refusal, Reply, body, json};
use super::run::{Run, clock};
use super::score::{self, Unread};
use super::tokens::{Holder, Scope, hex, random};
use hyper::StatusCode;
use plaudit::engine::Terms;
use plaudit::group;
use plaudit::rollout::Rollout;
use serde_json::json;
use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How many jobs run at once.
const AT_ONCE: usize = 4;
/// How many rollouts of a job are scored together, and how many such parts at once, so that requests come between.
const PART: usize = 256;
const PARTS: usize = 4;
/// The longest Idempotency-Key.
const LONGEST_KEY: usize = 255;
/// The most rollouts of a job.
const MOST: usize = 262_144;
/// How long a job waits that finds no room for its run.
const PAUSE: Duration = Duration::from_secs(2);

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
    let (owner, inner) = (holder.entry.id.clone(), Arc::clone(house));
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

/// The jobs of a holder, newest first.
pub(crate) fn list(house: &House, holder: &Holder) -> Reply {
    let all: Vec<Arc<Job>> = house.jobs.all().values().cloned().collect();
    let mine = |job: &&Arc<Job>| holder.may(Scope::Admin) || job.written().owner == holder.entry.id;
    let mut jobs: Vec<&Arc<Job>> = all.iter().filter(mine).collect();
    jobs.sort_by(|one, other| other.written().created.total_cmp(&one.written().created));
    json(
        StatusCode::OK,
        &json!({ "jobs": jobs.iter().take(1000).map(|job| job.shown()).collect::<Vec<_>>() }),
    )
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
            job.halt.raise();
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

/// Does jobs, a few at once, until it is dropped.
pub(crate) async fn work(house: Arc<House>) {
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE && !house.is_draining() {
            let house = Arc::clone(&house);
            let next = Arc::clone(&house);
            let next = tokio::task::spawn_blocking(move || next.jobs.next());
            let Ok(Some(job)) = next.await else { break };
            running.spawn(async move {
                let run: Arc<str> = Arc::from(job.written().recipe.as_str());
                let _watched = house.watch.begin("its job", &run, job.written().job.clone());
                if let Err(refusal) = perform(&house, &job).await
                    && !house.is_draining()
                {
                    let ending = move || job.end(Stage::Failed, Some(refusal.message.into_owned()));
                    let _ = tokio::task::spawn_blocking(ending).await;
                }
            });
        }
        tokio::select! {
            () = house.jobs.more.notified() => {}
            Some(_) = running.join_next() => {}
        }
    }
}

/// What a part of a job comes to: the places of its rollouts, and their results.
type Part = Result<Vec<(usize, String)>, Refusal>;

async fn perform(house: &Arc<House>, job: &Arc<Job>) -> Result<(), Refusal> {
    let path = job.folder.join("request.json");
    let read = tokio::task::spawn_blocking(move || {
        let bytes = fs::read(&path)
            .map_err(|error| Refusal::broken(format!("the request is lost: {}", error.kind())))?;
        let request = score::parse(&bytes)?;
        let (read, ()) = score::read(&request.rollouts, MOST, |_, _| Ok(()))?;
        Ok::<_, Refusal>((read, request.step, request.validate))
    });
    let (read, step, validate) =
        read.await.map_err(|_| Refusal::broken("the request could not be read"))??;
    let (owner, name, recipe) = {
        let written = job.written();
        (written.owner.clone(), written.run.clone(), written.recipe.clone())
    };
    let (run, step) = loop {
        let run = house.run(&owner, name.as_deref(), Some(&recipe)).await;
        match run.and_then(|run| run.begin(step).map(|step| (run, step))) {
            // It has been accepted: that there is no room now is no reason not to do it.
            Err(refusal) if refusal.status == StatusCode::TOO_MANY_REQUESTS => {
                tokio::time::sleep(PAUSE).await;
                if job.halt.is_raised() || house.is_draining() {
                    return Ok(());
                }
            }
            found => break found?,
        }
    };
    let (changed, id) = (Arc::clone(job), run.id.to_string());
    let (rollouts, bad) = (read.rollouts.len(), read.errors.len());
    let change = move || {
        changed.change(|written| {
            (written.rollouts, written.bad, written.run_id) = (rollouts, bad, Some(id));
        });
    };
    let _ = tokio::task::spawn_blocking(change).await;
    job.scored.store(0, Ordering::Relaxed);
    let mut results: Vec<Option<String>> = vec![None; read.rollouts.len()];
    let mut parts = parts(read.rollouts).into_iter();
    let mut under_way: JoinSet<Part> = JoinSet::new();
    loop {
        while under_way.len() < PARTS && !job.halt.is_raised() {
            let Some(part) = parts.next() else { break };
            under_way.spawn(one_part(
                Arc::clone(house),
                Arc::clone(&run),
                Arc::clone(job),
                part,
                (step, validate),
            ));
        }
        let Some(done) = under_way.join_next().await else { break };
        for (at, line) in done.map_err(|_| Refusal::broken("a part of the job failed"))?? {
            results[at] = Some(line);
        }
        if job.halt.is_raised() {
            return Ok(());
        }
    }
    let mut text = String::new();
    for line in results.into_iter().flatten() {
        text.push_str(&line);
        text.push('\n');
    }
    for Unread { index, code, message } in read.errors {
        let line = json!({ "index": index, "error": { "code": code, "message": message } });
        text.push_str(&format!("{line}\n"));
    }
    let done = Arc::clone(job);
    let write = tokio::task::spawn_blocking(move || {
        put(&done.folder.join("results.jsonl"), text.as_bytes())?;
        done.end(Stage::Done, None);
        Ok::<_, std::io::Error>(())
    });
    let written = write.await.map_err(|_| Refusal::broken("the results could not be written"))?;
    written.map_err(|error| Refusal::broken(format!("the results could not be written: {}", error.kind())))
}

/// Whole groups, about so many rollouts at a time.
fn parts(rollouts: Vec<Rollout<'static>>) -> Vec<Vec<(usize, Rollout<'static>)>> {
    let groups = group::gather(&rollouts);
    let mut rollouts: Vec<Option<Rollout<'static>>> = rollouts.into_iter().map(Some).collect();
    let mut parts: Vec<Vec<(usize, Rollout<'static>)>> = vec![Vec::new()];
    for group in groups {
        if parts.last().is_some_and(|part| part.len() >= PART) {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(group.members.iter().filter_map(|at| Some((*at, rollouts[*at].take()?))));
        }
    }
    parts
}

async fn one_part(
    house: Arc<House>,
    run: Arc<Run>,
    job: Arc<Job>,
    part: Vec<(usize, Rollout<'static>)>,
    (step, validate): (u64, Option<bool>),
) -> Part {
    let (places, rollouts): (Vec<usize>, Vec<Rollout<'static>>) = part.into_iter().unzip();
    let terms = Terms { validate, halt: Some(job.halt.clone()) };
    let (send, receive) = oneshot::channel();
    let scored = Arc::clone(&run);
    run.engine.submit(rollouts, terms, move |rollouts, report| {
        let lines = report.map_err(|error| score::refuse(&error)).map(|report| {
            let line = |(at, place): (usize, usize)| {
                let rollout = &rollouts[at];
                let result = report.result(at, rollout.id.as_deref().unwrap_or(""), rollout);
                Some((place, serde_json::to_string(&result).ok()?))
            };
            let lines: Vec<(usize, String)> = places.into_iter().enumerate().filter_map(line).collect();
            if !job.halt.is_raised() {
                scored.observe(step, &rollouts, &report, validate);
                house.meters.scored(&report.plan.name, &report);
                job.scored.fetch_add(lines.len() as u64, Ordering::Relaxed);
            }
            lines
        });
        let _ = send.send(lines);
    });
    receive.await.map_err(|_| Refusal::broken("something failed that must not"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_whole_groups() {
        let rollout = |at: usize| Rollout::new(at.to_string()).in_group((at % 100).to_string());
        let parts = parts((0..1000).map(rollout).collect());
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 1000);
        assert!(parts.len() >= 3 && parts.iter().all(|part| part.len() % 10 == 0));
        assert!(parts.iter().flatten().all(|(at, rollout)| rollout.response == at.to_string()));
    }
}
