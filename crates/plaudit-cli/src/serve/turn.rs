//! How is a job done? In parts that go in behind requests, and in turns where others wait for its place.

use super::admission::Inside;
use super::backlog::AT_ONCE;
use super::house::House;
use super::job::{Job, Stage, put};
use super::reply::Refusal;
use super::run::Run;
use super::score::{self, Unread};
use super::tokens::{SOON, Taken};
use super::watch::Watched;
use hyper::StatusCode;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::group;
use plaudit::rollout::Rollout;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The most rollouts of a job.
pub(super) const MOST: usize = 262_144;
/// The most bytes of its rollouts; those of a group line have their prompt each.
const MOST_BYTES: usize = 256 << 20;
/// How long a job waits that finds no room for its run.
const PAUSE: Duration = Duration::from_secs(2);
/// How often a job looks whether it comes further and whether its turn is over.
const LOOK: Duration = Duration::from_secs(1);

/// How many rollouts of a job are scored together, and how many are under way at once.
#[derive(Debug, Clone, Copy)]
struct Size {
    part: usize,
    most: usize,
}

impl Size {
    /// So many that judges are kept busy, and no more: others wait for what is under way.
    fn of(engine: &Engine, quota: Option<usize>) -> Self {
        let calls: usize = engine.plan().judges.iter().map(|judge| judge.concurrency).sum();
        let size = match calls {
            0 => Self { part: 256, most: 1024 },
            calls => Self { part: 16, most: calls.saturating_mul(2).clamp(64, 1024) },
        };
        Self { part: size.part.min((quota.unwrap_or(usize::MAX) / 2).max(1)), ..size }
    }
}

/// Rollouts of whole groups, with their places in the job.
type Part = Vec<(usize, Rollout<'static>)>;
/// A part that there is room for.
type Entered = (Part, Taken, Inside);
/// What a part comes to: the places of its rollouts, and their results.
type Lines = Vec<(usize, String)>;

/// A job that has its turn.
#[derive(Debug)]
struct Turn {
    house: Arc<House>,
    job: Arc<Job>,
    owner: String,
    run: Arc<Run>,
    step: u64,
    validate: Option<bool>,
}

/// Does jobs, a few at once, until it is dropped.
pub(crate) async fn work(house: Arc<House>) {
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE && !house.is_draining() {
            let next = Arc::clone(&house);
            let next = tokio::task::spawn_blocking(move || next.jobs.next());
            let Ok(Some(job)) = next.await else { break };
            let house = Arc::clone(&house);
            running.spawn(async move {
                if let Err(refusal) = begin(&house, &job).await
                    && !house.is_draining()
                {
                    job.cancel.cancel();
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

/// Takes a job up, and does as much of it as its turn allows.
async fn begin(house: &Arc<House>, job: &Arc<Job>) -> Result<(), Refusal> {
    let (owner, name, recipe, step) = {
        let written = job.written();
        (written.owner.clone(), written.run.clone(), written.recipe.clone(), written.step)
    };
    let Some(holder) = house.tokens.holder(&owner) else {
        let job = Arc::clone(job);
        let _ = tokio::task::spawn_blocking(move || job.disown()).await;
        return Ok(());
    };
    let id = job.written().job.clone();
    let called: Arc<str> = Arc::from(name.as_deref().unwrap_or(&recipe));
    let watched = house.watch.begin("room for its run", &called, format!("job {id}"));
    let (run, step) = loop {
        let run = house.run(&owner, name.as_deref(), Some(&recipe)).await;
        match run.and_then(|run| run.begin(step).map(|step| (run, step))) {
            // It has been accepted: that there is no room now is no reason not to do it.
            Err(refusal) if refusal.status == StatusCode::TOO_MANY_REQUESTS => {
                tokio::time::sleep(PAUSE).await;
                if job.cancel.is_cancelled() || house.is_draining() {
                    return Ok(());
                }
                if house.jobs.must_leave(job) {
                    job.set_aside(&[]);
                    return Ok(());
                }
            }
            found => break found?,
        }
    };
    drop(watched);
    let watched = house.watch.begin("its judges", &run.id, format!("job {id}"));
    let (reads, run_id) = (Arc::clone(job), run.id.to_string());
    let size = Size::of(&run.engine, holder.entry.waiting);
    let read = tokio::task::spawn_blocking(move || Work::read(&reads, run_id, size.part));
    let (work, validate) = read.await.map_err(|_| Refusal::broken("the request could not be read"))??;
    let turn = Turn { house: Arc::clone(house), job: Arc::clone(job), owner, run, step, validate };
    Arc::new(turn).take(work, size, &watched).await
}

/// What there is to do of a job, and what has been done.
#[derive(Debug)]
struct Work {
    parts: std::vec::IntoIter<Part>,
    results: Vec<Option<String>>,
    errors: Vec<Unread>,
    /// The places of the results of this turn.
    fresh: Vec<usize>,
}

impl Work {
    /// Reads what was asked, and the results of earlier turns.
    fn read(job: &Job, run_id: String, part: usize) -> Result<(Self, Option<bool>), Refusal> {
        let bytes = fs::read(job.folder.join("request.json"))
            .map_err(|error| Refusal::broken(format!("the request is lost: {}", error.kind())))?;
        let request = score::parse(&bytes)?;
        let (read, ()) = score::read(&request.rollouts, MOST, |_, bytes| match bytes <= MOST_BYTES {
            true => Ok(()),
            false => {
                let message =
                    format!("the rollouts take more than {MOST_BYTES} bytes with their prompts: send less");
                Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message))
            }
        })?;
        let validate = request.validate;
        let (rollouts, bad) = (read.rollouts.len(), read.errors.len());
        if job.written().run_id.as_ref() != Some(&run_id) {
            job.change(|written| {
                (written.rollouts, written.bad, written.run_id) = (rollouts, bad, Some(run_id));
            });
        }
        let mut results: Vec<Option<String>> = vec![None; rollouts];
        for (place, line) in job.earlier() {
            if let Some(result) = results.get_mut(place) {
                *result = Some(line);
            }
        }
        job.scored.store(results.iter().flatten().count() as u64, Ordering::Relaxed);
        let mut parts = parts(read.rollouts, part);
        parts.retain(|part| part.iter().any(|(place, _)| results[*place].is_none()));
        Ok((Self { parts: parts.into_iter(), results, errors: read.errors, fresh: Vec::new() }, validate))
    }

    fn add(&mut self, lines: Lines) {
        for (place, line) in lines {
            self.results[place] = Some(line);
            self.fresh.push(place);
        }
    }

    /// The results as they are fetched.
    fn text(self) -> String {
        let mut text = String::new();
        for line in self.results.into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
        for Unread { index, code, message } in self.errors {
            let line = json!({ "index": index, "error": { "code": code, "message": message } });
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    /// Ends the job, where it is done, or puts it aside until its next turn.
    fn leave(mut self, job: &Job, is_done: bool) -> Result<(), Refusal> {
        if !is_done {
            let fresh = self.fresh.into_iter();
            let fresh: Lines = fresh.filter_map(|place| Some((place, self.results[place].take()?))).collect();
            job.set_aside(&fresh);
            return Ok(());
        }
        put(&job.folder.join("results.jsonl"), self.text().as_bytes()).map_err(|error| {
            Refusal::broken(format!("the results could not be written: {}", error.kind()))
        })?;
        job.end(Stage::Done, None);
        Ok(())
    }
}

impl Turn {
    /// Does what there is to do, until it is done or others wait for the place.
    async fn take(self: Arc<Self>, mut work: Work, size: Size, watched: &Watched<'_>) -> Result<(), Refusal> {
        // At most one part waits for room, and others are scored meanwhile.
        let (mut entering, mut scoring): (JoinSet<Entered>, JoinSet<_>) = (JoinSet::new(), JoinSet::new());
        let (mut under_way, mut leaves, mut answered) = (0, false, 0);
        let mut looked = Instant::now();
        loop {
            if entering.is_empty()
                && under_way < size.most
                && !leaves
                && let Some(part) = work.parts.next()
            {
                entering.spawn(Arc::clone(&self).enter(part));
            }
            if entering.is_empty() && scoring.is_empty() {
                break;
            }
            watched.awaits(if scoring.is_empty() { "room beside others" } else { "its judges" });
            tokio::select! {
                Some(entered) = entering.join_next() => if !leaves {
                    let entered = entered.map_err(|_| Refusal::broken("a part of the job failed"))?;
                    under_way += entered.0.len();
                    scoring.spawn(Arc::clone(&self).score(entered));
                },
                Some(done) = scoring.join_next() => {
                    let lines = done.map_err(|_| Refusal::broken("a part of the job failed"))??;
                    under_way -= lines.len().min(under_way);
                    work.add(lines);
                    watched.renew();
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            // What is under way when the service ends may still be answered, and goes on after the next start.
            if self.job.cancel.is_cancelled() || self.house.is_draining() {
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
            if !leaves && self.house.jobs.must_leave(&self.job) {
                leaves = true;
                entering.abort_all();
            }
        }
        let job = Arc::clone(&self.job);
        let is_done = !leaves || work.results.iter().all(Option::is_some);
        let left = tokio::task::spawn_blocking(move || work.leave(&job, is_done));
        left.await.map_err(|_| Refusal::broken("the results could not be written"))?
    }

    /// Waits until there is room for a part: in what its token allows, and beside requests.
    async fn enter(self: Arc<Self>, part: Part) -> Entered {
        loop {
            // A token that is not known any more has its jobs called off.
            if let Some(holder) = self.house.tokens.holder(&self.owner) {
                let taken = holder.wait(part.len()).await;
                if let Some(inside) = self.house.admission.enter_behind(&self.run.load, part.len()) {
                    return (part, taken, inside);
                }
            }
            tokio::time::sleep(SOON).await;
        }
    }

    async fn score(self: Arc<Self>, (part, taken, inside): Entered) -> Result<Lines, Refusal> {
        let (places, rollouts): (Vec<usize>, Vec<Rollout<'static>>) = part.into_iter().unzip();
        let terms = ScoreOptions { validate: self.validate, cancel: Some(self.job.cancel.clone()) };
        let (send, receive) = oneshot::channel();
        let turn = Arc::clone(&self);
        self.run.engine.submit(rollouts, terms, move |rollouts, report| {
            let lines = report.map_err(|error| score::refuse(&error)).map(|report| {
                let line = |(at, place): (usize, usize)| {
                    let rollout = &rollouts[at];
                    let result = report.result(at, rollout.id.as_deref().unwrap_or(""), rollout);
                    Some((place, serde_json::to_string(&result).ok()?))
                };
                let lines: Lines = places.into_iter().enumerate().filter_map(line).collect();
                if !turn.job.cancel.is_cancelled() {
                    turn.run.observe(turn.step, &rollouts, &report, turn.validate);
                    turn.house.meters.scored(&report.plan.name, &report);
                    turn.job.scored.fetch_add(lines.len() as u64, Ordering::Relaxed);
                }
                lines
            });
            let _ = send.send(lines);
        });
        let lines = receive.await.map_err(|_| Refusal::broken("something failed that must not"))?;
        drop((taken, inside));
        lines
    }
}

/// Whole groups, about so many rollouts at a time and no more where groups are small enough.
fn parts(rollouts: Vec<Rollout<'static>>, size: usize) -> Vec<Part> {
    let groups = group::gather(&rollouts);
    let mut rollouts: Vec<Option<Rollout<'static>>> = rollouts.into_iter().map(Some).collect();
    let mut parts: Vec<Part> = Vec::new();
    for group in groups {
        let members = group.members.iter().filter_map(|at| Some((*at, rollouts[*at].take()?)));
        match parts.last_mut() {
            Some(part) if part.len() + group.members.len() <= size => part.extend(members),
            _ => parts.push(members.collect()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_whole_groups_and_no_more_than_they_may() {
        let rollout = |at: usize| Rollout::new(at.to_string()).in_group((at % 100).to_string());
        for (size, count) in [(256, 4), (25, 50), (7, 100)] {
            let parts = parts((0..1000).map(rollout).collect(), size);
            assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 1000);
            assert!(parts.len() == count && parts.iter().all(|part| part.len() % 10 == 0), "{size}");
            assert!(parts.iter().flatten().all(|(at, rollout)| rollout.response == at.to_string()));
        }
        assert!(parts(Vec::new(), 16).is_empty());
    }
}
