//! `POST /v1/jobs`: what is too much for one request. A job is on the disk before it is accepted, goes on after a restart, and its
//! results can be fetched until they are too old.

use super::config::Config;
use super::house::House;
use super::reply::{Refusal, Reply, body, json};
use super::run::{Run, clock};
use super::score::{self, Unread};
use super::tokens::{Holder, Scope, hex, random};
use super::{kept, log};
use crate::failure::Failure;
use hyper::StatusCode;
use plaudit::engine::Terms;
use plaudit::group;
use plaudit::rollout::Rollout;
use plaudit::schedule::Halt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// How many jobs run at once.
const AT_ONCE: usize = 4;
/// How many rollouts of a job are scored together, and how many such parts at once, so that requests come between.
const PART: usize = 256;
const PARTS: usize = 4;
/// The longest Idempotency-Key.
const LONGEST_KEY: usize = 255;

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// It waits for its turn.
    Waiting,
    /// It is being scored.
    Running,
    /// Its results can be fetched.
    Done,
    /// It was called off.
    Cancelled,
    /// It could not be done; `message` says why.
    Failed,
}

impl Stage {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Cancelled, "cancelled"),
        (Self::Failed, "failed"),
    ];

    fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// A job as it is written and shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Written {
    /// Its id.
    pub(crate) job: String,
    pub(crate) state: Stage,
    pub(crate) recipe: String,
    /// The name of the run that it belongs to, and its id once it has begun.
    pub(crate) run: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) step: Option<u64>,
    /// How many rollouts it has.
    pub(crate) rollouts: usize,
    /// How many could not be read.
    pub(crate) bad: usize,
    pub(crate) created: f64,
    pub(crate) ended: Option<f64>,
    pub(crate) message: Option<String>,
    #[schemars(skip)]
    owner: String,
    #[schemars(skip)]
    key: Option<String>,
    #[schemars(skip)]
    hash: String,
}

#[derive(Debug)]
struct Job {
    folder: PathBuf,
    halt: Halt,
    scored: AtomicU64,
    written: Mutex<Written>,
}

impl Job {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> Value {
        let mut value = json!(&*self.written());
        value["scored"] = json!(self.scored.load(Ordering::Relaxed));
        for hidden in ["owner", "key", "hash"] {
            value.as_object_mut().map(|map| map.remove(hidden));
        }
        value
    }

    /// Moves on, on the disk as well.
    fn change(&self, change: impl FnOnce(&mut Written)) {
        let mut written = self.written();
        change(&mut written);
        let text = serde_json::to_string(&*written);
        if let Err(error) = text
            .map_err(std::io::Error::other)
            .and_then(|text| put(&self.folder.join("job.json"), text.as_bytes()))
        {
            let facts = [("job", Value::from(written.job.as_str())), ("why", Value::from(error.to_string()))];
            log::say("error", "a job could not be written", &facts);
        }
    }

    fn end(&self, stage: Stage, message: Option<String>) {
        self.change(|written| {
            // What has been called off stays so.
            if !written.state.is_over() {
                (written.state, written.message, written.ended) = (stage, message, Some(clock()));
            }
        });
    }
}

/// Writes a file that is there whole or not at all, even after a crash.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let mut options = fs::OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// All jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    folder: PathBuf,
    most: usize,
    hours: u64,
    all: Mutex<BTreeMap<String, Arc<Job>>>,
    more: Notify,
}

impl Jobs {
    /// Takes up what lies in the folder; what was not done goes on.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::File(folder.display().to_string(), error))?;
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let read = |folder: PathBuf| -> Option<(String, Arc<Job>)> {
            let mut written: Written =
                serde_json::from_str(&fs::read_to_string(folder.join("job.json")).ok()?).ok()?;
            if written.state == Stage::Running {
                written.state = Stage::Waiting;
            }
            let scored = if written.state == Stage::Done { written.rollouts } else { 0 };
            let (halt, scored) = (Halt::new(), AtomicU64::new(scored as u64));
            Some((written.job.clone(), Arc::new(Job { folder, halt, scored, written: Mutex::new(written) })))
        };
        let all = entries.filter_map(|entry| read(entry.path())).collect();
        let (most, hours) = (config.limits.jobs, config.keep.hours);
        Ok(Self { folder: folder.to_path_buf(), most, hours, all: Mutex::new(all), more: Notify::new() })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many jobs there are of each state.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let stages: Vec<Stage> = self.all().values().map(|job| job.written().state).collect();
        let count = |stage: Stage| stages.iter().filter(|has| **has == stage).count();
        Stage::ALL.iter().map(|(stage, name)| (*name, count(*stage))).collect()
    }

    /// The job of that id, where the holder may know of it.
    fn find(&self, holder: &Holder, id: &str) -> Result<Arc<Job>, Refusal> {
        let found = self.all().get(id).cloned();
        let mine = |job: &Arc<Job>| holder.may(Scope::Admin) || job.written().owner == holder.entry.id;
        found.filter(mine).ok_or_else(|| Refusal::not_found("job.unknown", "there is no such job"))
    }

    /// The next job that waits: of those whose run has the fewest jobs running, the oldest.
    fn next(&self) -> Option<Arc<Job>> {
        let all = self.all();
        let of = |job: &Job| {
            let written = job.written();
            (written.owner.clone(), written.run.clone(), written.recipe.clone())
        };
        let running: Vec<_> =
            all.values().filter(|job| job.written().state == Stage::Running).map(|job| of(job)).collect();
        let waiting = all.values().filter(|job| job.written().state == Stage::Waiting);
        let rank = |job: &&Arc<Job>| {
            let who = of(job);
            (running.iter().filter(|other| **other == who).count(), job.written().created)
        };
        let ranked = waiting.map(|job| (rank(&job), job));
        let next =
            ranked.min_by(|((one, early), _), ((other, late), _)| one.cmp(other).then(early.total_cmp(late)));
        let job = next.map(|(_, job)| Arc::clone(job))?;
        job.change(|written| written.state = Stage::Running);
        Some(job)
    }

    /// Forgets jobs whose results are too old.
    pub(crate) fn tick(&self) {
        let oldest = clock() - self.hours as f64 * 3600.0;
        let old = |job: &Job| job.written().ended.is_some_and(|ended| ended < oldest);
        let mut all = self.all();
        let gone: Vec<String> = all.iter().filter(|(_, job)| old(job)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            if let Some(job) = all.remove(&id) {
                let _ = fs::remove_dir_all(&job.folder);
            }
        }
    }
}

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
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let known = |house: &House| {
        let all = house.jobs.all();
        let same = |job: &&Arc<Job>| {
            let written = job.written();
            key.is_some() && written.key == key && written.owner == holder.entry.id
        };
        all.values().find(same).cloned()
    };
    let again = |job: &Job| {
        let same = job.written().hash == hash;
        match same {
            true => Ok((StatusCode::OK, json(StatusCode::OK, &job.shown()))),
            false => Err(Refusal::new(
                StatusCode::CONFLICT,
                "job.conflict",
                "this Idempotency-Key was used for another body",
            )),
        }
    };
    if let Some(job) = known(house) {
        return again(&job);
    }
    let open = house.jobs.all().values().filter(|job| !job.written().state.is_over()).count();
    if open >= house.jobs.most {
        return Err(Refusal::busy(
            "engine.overloaded",
            format!("{open} jobs wait, which is all there may be"),
            30,
        ));
    }
    let id = hex(&random::<16>().map_err(|failure| Refusal::broken(failure.to_string()))?);
    let folder = house.jobs.folder.join(&id);
    let (owner, inner) = (holder.entry.id.clone(), Arc::clone(house));
    let made = (folder.clone(), key.clone(), hash.clone());
    let work = tokio::task::spawn_blocking(move || -> Result<Arc<Job>, Refusal> {
        let (folder, key, hash) = made;
        let request = score::parse(&bytes)?;
        let recipe = inner.recipes.chosen(request.recipe.as_deref())?.to_owned();
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
            hash,
        };
        let text = serde_json::to_string(&written).map_err(|error| Refusal::broken(error.to_string()))?;
        let kept = fs::create_dir_all(&folder)
            .and_then(|()| put(&folder.join("request.json"), &bytes))
            .and_then(|()| put(&folder.join("job.json"), text.as_bytes()));
        if let Err(error) = kept {
            let _ = fs::remove_dir_all(&folder);
            return Err(Refusal::broken(format!("the job could not be kept: {error}")));
        }
        let (halt, scored) = (Halt::new(), AtomicU64::new(0));
        Ok(Arc::new(Job { folder, halt, scored, written: Mutex::new(written) }))
    });
    let job = work.await.map_err(|_| Refusal::broken("the job could not be read"))??;
    // The same may have come twice at the same time.
    if let Some(first) = known(house) {
        let _ = fs::remove_dir_all(&folder);
        return again(&first);
    }
    let id = job.written().job.clone();
    house.jobs.all().insert(id, Arc::clone(&job));
    house.jobs.more.notify_one();
    Ok((StatusCode::ACCEPTED, json(StatusCode::ACCEPTED, &job.shown())))
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
pub(crate) fn cancel(house: &House, holder: &Holder, id: &str) -> Result<Reply, Refusal> {
    let job = house.jobs.find(holder, id)?;
    let over = job.written().state.is_over();
    if over {
        house.jobs.all().remove(id);
        let _ = fs::remove_dir_all(&job.folder);
    } else {
        job.end(Stage::Cancelled, None);
        job.halt.raise();
    }
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
    let from = query.number("from")?.unwrap_or(0) as usize;
    let most = query.number("limit")?.map_or(usize::MAX, |most| most as usize);
    let path = job.folder.join("results.jsonl");
    let read = tokio::task::spawn_blocking(move || kept::lines(&path));
    let lines = read.await.map_err(|_| Refusal::broken("the results could not be read"))?;
    let lines =
        lines.map_err(|error| Refusal::broken(format!("the results could not be read: {}", error.kind())))?;
    let mut text = String::new();
    for line in lines.iter().skip(from).take(most) {
        text.push_str(line);
        text.push('\n');
    }
    Ok(body(StatusCode::OK, "application/x-ndjson", text))
}

/// Does jobs, a few at once, until it is dropped.
pub(crate) async fn work(house: Arc<House>) {
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE && !house.is_draining() {
            let Some(job) = house.jobs.next() else { break };
            let house = Arc::clone(&house);
            running.spawn(async move {
                let run: Arc<str> = Arc::from(job.written().recipe.as_str());
                let _watched = house.watch.begin("its job", &run, job.written().job.clone());
                if let Err(refusal) = perform(&house, &job).await
                    && !house.is_draining()
                {
                    job.end(Stage::Failed, Some(refusal.message.into_owned()));
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
        let bytes =
            fs::read(&path).map_err(|error| Refusal::broken(format!("the request is lost: {error}")))?;
        let request = score::parse(&bytes)?;
        Ok::<_, Refusal>((score::read(&request.rollouts), request.step, request.validate))
    });
    let (read, step, validate) =
        read.await.map_err(|_| Refusal::broken("the request could not be read"))??;
    let (owner, name, recipe) = {
        let written = job.written();
        (written.owner.clone(), written.run.clone(), written.recipe.clone())
    };
    let run = house.run(&owner, name.as_deref(), Some(&recipe))?;
    let step = run.begin(step);
    job.change(|written| {
        (written.rollouts, written.bad) = (read.rollouts.len(), read.errors.len());
        written.run_id = Some(run.id.to_string());
    });
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
    let path = job.folder.join("results.jsonl");
    let write = tokio::task::spawn_blocking(move || put(&path, text.as_bytes()));
    let written = write.await.map_err(|_| Refusal::broken("the results could not be written"))?;
    written.map_err(|error| Refusal::broken(format!("the results could not be written: {error}")))?;
    job.end(Stage::Done, None);
    Ok(())
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
