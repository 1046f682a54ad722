//! The job worker: scores jobs in batches of whole groups that yield to requests, and rotates jobs while others wait.

use super::job::{Job, JobState};
use super::queue::AT_ONCE;
use crate::admission::AdmissionPermit;
use crate::api::score::{self, UnreadRollout};
use crate::atomic_file;
use crate::http::auth::{QuotaPermit, SOON};
use crate::http::response::{ApiError, blocking};
use crate::runs::run::Run;
use crate::state::AppState;
use crate::watchdog::WatchGuard;
use hyper::StatusCode;
use plaudit::abort;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::group;
use plaudit::rollout::Rollout;
use plaudit::statistics::Counts;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The most rollouts of a job.
pub(crate) const MAX_ROLLOUTS: usize = 262_144;
/// The most bytes of its rollouts; each rollout of a group line counts with its prompt.
const MAX_BYTES: usize = 256 << 20;
/// How soon a job tries again that finds no room for its run.
const PAUSE: Duration = Duration::from_secs(2);
/// How often a job checks for progress and for the end of its turn.
const LOOK: Duration = Duration::from_secs(1);

/// How many rollouts of a job are scored together, and how many are under way at once.
#[derive(Debug, Clone, Copy)]
struct BatchSize {
    batch: usize,
    most: usize,
}

impl BatchSize {
    /// As many as keep the judges busy, and no more, since others wait for what is under way.
    fn of(engine: &Engine, quota: Option<usize>) -> Self {
        let calls: usize = engine.plan().judges.iter().map(|judge| judge.config.concurrency).sum();
        let size = match calls {
            0 => Self { batch: 256, most: 1024 },
            calls => Self { batch: 16, most: calls.saturating_mul(2).clamp(64, 1024) },
        };
        Self { batch: size.batch.min((quota.unwrap_or(usize::MAX) / 2).max(1)), ..size }
    }
}

/// Rollouts of whole groups, with their places in the job.
type Batch = Vec<(usize, Rollout<'static>)>;
/// A batch with its permits.
type AdmittedBatch = (Batch, QuotaPermit, AdmissionPermit);
/// The results of a batch: places in the job, and JSON lines.
type Lines = Vec<(usize, String)>;
/// So many rollouts show whether anything of a job can be scored, as for a file.
const SHOWN_BY: u64 = 1000;

/// A job that is running.
#[derive(Debug)]
struct JobRun {
    app: Arc<AppState>,
    job: Arc<Job>,
    owner: String,
    run: Arc<Run>,
    step: u64,
    validate: Option<bool>,
}

/// Runs jobs, a few at once, until it is dropped.
pub(crate) async fn run(app: Arc<AppState>) {
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE && !app.is_draining() {
            let next = Arc::clone(&app);
            let next = tokio::task::spawn_blocking(move || next.jobs.next());
            let Ok(Some(job)) = next.await else { break };
            let app = Arc::clone(&app);
            running.spawn(async move {
                if let Err(error) = run_job(&app, &job).await
                    && !app.is_draining()
                {
                    job.cancel.cancel();
                    let ending = move || job.end(JobState::Failed, Some(error.message.into_owned()));
                    let _ = tokio::task::spawn_blocking(ending).await;
                }
            });
        }
        tokio::select! {
            () = app.jobs.more.notified() => {}
            Some(_) = running.join_next() => {}
        }
    }
}

/// Runs a job until it is done or its turn is over.
async fn run_job(app: &Arc<AppState>, job: &Arc<Job>) -> Result<(), ApiError> {
    let (owner, name, recipe, step) = {
        let record = job.record();
        (record.owner.clone(), record.status.run.clone(), record.status.recipe.clone(), record.status.step)
    };
    let Some(principal) = app.tokens.principal(&owner) else {
        let job = Arc::clone(job);
        let _ = tokio::task::spawn_blocking(move || job.cancel_orphan()).await;
        return Ok(());
    };
    let id = job.record().status.job.clone();
    let called: Arc<str> = Arc::from(name.as_deref().unwrap_or(&recipe));
    let watched = app.watchdog.begin("room for its run", &called, format!("job {id}"));
    let (run, step) = loop {
        let run = app.runs.get_or_create(&owner, name.as_deref(), Some(&recipe)).await;
        match run.and_then(|run| run.begin(step).map(|step| (run, step))) {
            // The job was accepted, so it waits for room.
            Err(error) if error.status == StatusCode::TOO_MANY_REQUESTS => {
                tokio::time::sleep(PAUSE).await;
                if job.cancel.is_cancelled() || app.is_draining() {
                    return Ok(());
                }
                if app.jobs.must_leave(job) {
                    job.set_aside(&[]);
                    return Ok(());
                }
            }
            found => break found?,
        }
    };
    drop(watched);
    let watched = app.watchdog.begin("its judges", &run.id, format!("job {id}"));
    let (reads, run_id) = (Arc::clone(job), run.id.to_string());
    let size = BatchSize::of(&run.engine, principal.entry.waiting);
    let read = move || JobWork::read(&reads, run_id, size.batch);
    let (work, validate) = blocking("the request could not be read", read).await??;
    let job_run = JobRun { app: Arc::clone(app), job: Arc::clone(job), owner, run, step, validate };
    Arc::new(job_run).score_batches(work, size, &watched).await
}

/// The batches of a job that are left, and the results so far.
#[derive(Debug)]
struct JobWork {
    batches: std::vec::IntoIter<Batch>,
    results: Vec<Option<String>>,
    errors: Vec<UnreadRollout>,
    /// The places of the results of this turn.
    fresh: Vec<usize>,
}

impl JobWork {
    /// Reads the request, and the results of earlier turns.
    fn read(job: &Job, run_id: String, batch: usize) -> Result<(Self, Option<bool>), ApiError> {
        let bytes = fs::read(job.folder.join("request.json"))
            .map_err(|error| ApiError::internal(format!("the request is lost: {}", error.kind())))?;
        let request = score::parse(&bytes)?;
        let (read, ()) = score::read(&request.rollouts, MAX_ROLLOUTS, |_, bytes| match bytes <= MAX_BYTES {
            true => Ok(()),
            false => {
                let message =
                    format!("the rollouts take more than {MAX_BYTES} bytes with their prompts: send less");
                Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message))
            }
        })?;
        let validate = request.validate;
        let (rollouts, bad) = (read.rollouts.len(), read.errors.len());
        if job.record().status.run_id.as_ref() != Some(&run_id) {
            job.change(|record| {
                (record.status.rollouts, record.status.bad, record.status.run_id) =
                    (rollouts, bad, Some(run_id));
            });
        }
        let mut results: Vec<Option<String>> = vec![None; rollouts];
        for (place, line) in job.earlier() {
            if let Some(result) = results.get_mut(place) {
                *result = Some(line);
            }
        }
        job.scored.store(results.iter().flatten().count() as u64, Ordering::Relaxed);
        let mut batches = batches(read.rollouts, batch);
        batches.retain(|batch| batch.iter().any(|(place, _)| results[*place].is_none()));
        Ok((Self { batches: batches.into_iter(), results, errors: read.errors, fresh: Vec::new() }, validate))
    }

    fn add(&mut self, lines: Lines) {
        for (place, line) in lines {
            self.results[place] = Some(line);
            self.fresh.push(place);
        }
    }

    /// `results.jsonl`.
    fn text(self) -> String {
        let mut text = String::new();
        for line in self.results.into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
        for UnreadRollout { index, code, message } in self.errors {
            let line = json!({ "index": index, "error": { "code": code, "message": message } });
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    /// Ends the job where it is done, or puts it back into the queue.
    fn leave(mut self, job: &Job, is_done: bool) -> Result<(), ApiError> {
        if !is_done {
            let fresh = self.fresh.into_iter();
            let fresh: Lines = fresh.filter_map(|place| Some((place, self.results[place].take()?))).collect();
            job.set_aside(&fresh);
            return Ok(());
        }
        atomic_file::write(&job.folder.join("results.jsonl"), self.text().as_bytes()).map_err(|error| {
            ApiError::internal(format!("the results could not be written: {}", error.kind()))
        })?;
        job.end(JobState::Done, None);
        Ok(())
    }
}

impl JobRun {
    /// Scores the batches that are left, until all are scored or others wait for the place.
    async fn score_batches(
        self: Arc<Self>,
        mut work: JobWork,
        size: BatchSize,
        watched: &WatchGuard<'_>,
    ) -> Result<(), ApiError> {
        // At most one batch waits for room, and others are scored meanwhile.
        let (mut entering, mut scoring): (JoinSet<AdmittedBatch>, JoinSet<_>) =
            (JoinSet::new(), JoinSet::new());
        let (mut under_way, mut leaves, mut answered) = (0, false, 0);
        let mut outcomes = Counts::default();
        let mut looked = Instant::now();
        loop {
            if entering.is_empty()
                && under_way < size.most
                && !leaves
                && let Some(batch) = work.batches.next()
            {
                entering.spawn(Arc::clone(&self).enter(batch));
            }
            if entering.is_empty() && scoring.is_empty() {
                break;
            }
            watched.awaits(if scoring.is_empty() { "room beside others" } else { "its judges" });
            tokio::select! {
                Some(entered) = entering.join_next() => if !leaves {
                    let entered = entered.map_err(|_| ApiError::internal("a part of the job failed"))?;
                    under_way += entered.0.len();
                    scoring.spawn(Arc::clone(&self).score(entered));
                },
                Some(done) = scoring.join_next() => {
                    let (lines, scored) = done.map_err(|_| ApiError::internal("a part of the job failed"))??;
                    outcomes.merge(&scored);
                    let is_early = outcomes.all() >= SHOWN_BY && work.batches.len() > 0;
                    if is_early && self.run.may_abort() && let Some(fault) = abort::hopeless(&outcomes) {
                        return Err(ApiError::bad_request("run.nothing_scored", fault.to_string()));
                    }
                    under_way -= lines.len().min(under_way);
                    work.add(lines);
                    watched.renew();
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            // The job goes on after the next start of the service.
            if self.job.cancel.is_cancelled() || self.app.is_draining() {
                return Ok(());
            }
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            let before = std::mem::replace(&mut answered, self.run.engine.answered());
            if answered != before {
                watched.renew();
            }
            if !leaves && self.app.jobs.must_leave(&self.job) {
                leaves = true;
                entering.abort_all();
            }
        }
        let job = Arc::clone(&self.job);
        let is_done = !leaves || work.results.iter().all(Option::is_some);
        blocking("the results could not be written", move || work.leave(&job, is_done)).await?
    }

    /// Waits for the permits of a batch: the quota of its token, and admission beside requests.
    async fn enter(self: Arc<Self>, batch: Batch) -> AdmittedBatch {
        loop {
            // Jobs of a token that is gone are cancelled.
            if let Some(principal) = self.app.tokens.principal(&self.owner) {
                let quota = principal.wait_for_quota(batch.len()).await;
                if let Some(permit) = self.app.admission.enter_job(&self.run.load, batch.len()) {
                    return (batch, quota, permit);
                }
            }
            tokio::time::sleep(SOON).await;
        }
    }

    async fn score(
        self: Arc<Self>,
        (batch, quota, permit): AdmittedBatch,
    ) -> Result<(Lines, Counts), ApiError> {
        let (places, rollouts): (Vec<usize>, Vec<Rollout<'static>>) = batch.into_iter().unzip();
        let span = self.app.tracer.as_ref().map(|tracer| {
            let span = tracer.root("job");
            span.set("plaudit.run", (&*self.run.id).into());
            span.set("plaudit.step", self.step.into());
            span
        });
        let cancel = Some(self.job.cancel.clone());
        let usage = self.run.engine.usage_meter();
        let options = ScoreOptions { validate: self.validate, cancel, span, usage };
        let scored_with = options.clone();
        let (send, receive) = oneshot::channel();
        let this = Arc::clone(&self);
        self.run.engine.submit(rollouts, options, move |rollouts, report| {
            let lines = report.map_err(|error| score::run_error(&error)).map(|report| {
                let line = |(at, place): (usize, usize)| {
                    let rollout = &rollouts[at];
                    let result = report.result(at, rollout.id.as_deref().unwrap_or(""), rollout);
                    Some((place, serde_json::to_string(&result).ok()?))
                };
                let lines: Lines = places.into_iter().enumerate().filter_map(line).collect();
                if !this.job.cancel.is_cancelled() {
                    this.run.observe(this.step, &rollouts, &report, &scored_with);
                    this.app.metrics.observe_report(&report.plan.name, &report);
                    this.job.scored.fetch_add(lines.len() as u64, Ordering::Relaxed);
                }
                (lines, report.statistics.outcomes.clone())
            });
            let _ = send.send(lines);
        });
        let lines = receive.await.map_err(|_| ApiError::internal("something failed that must not"))?;
        drop((quota, permit));
        lines
    }
}

/// Cuts rollouts into batches of whole groups, of at most `size` rollouts where groups are not larger.
fn batches(rollouts: Vec<Rollout<'static>>, size: usize) -> Vec<Batch> {
    let groups = group::gather(&rollouts);
    let mut rollouts: Vec<Option<Rollout<'static>>> = rollouts.into_iter().map(Some).collect();
    let mut batches: Vec<Batch> = Vec::new();
    for group in groups {
        let members = group.members.iter().filter_map(|at| Some((*at, rollouts[*at].take()?)));
        match batches.last_mut() {
            Some(batch) if batch.len() + group.members.len() <= size => batch.extend(members),
            _ => batches.push(members.collect()),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_whole_groups() {
        let rollout = |at: usize| Rollout::new(at.to_string()).in_group((at % 100).to_string());
        for (size, count) in [(256, 4), (25, 50), (7, 100)] {
            let batches = batches((0..1000).map(rollout).collect(), size);
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 1000);
            assert!(batches.len() == count && batches.iter().all(|batch| batch.len() % 10 == 0), "{size}");
            assert!(batches.iter().flatten().all(|(at, rollout)| rollout.response == at.to_string()));
        }
        assert!(batches(Vec::new(), 16).is_empty());
    }
}
