//! The job queue: admits jobs, picks the next one fairly between owners and runs, and deletes old results.

use super::job::{Job, JobRecord, JobState};
use crate::config::Config;
use crate::error::ServeError;
use crate::http::auth::Principal;
use crate::http::response::ApiError;
use crate::runs::store;
use crate::token_file::Scope;
use crate::unix_time;
use plaudit::exec::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// The most jobs that are over.
const MAX_OVER: usize = 10_000;
/// How many jobs run at once, since a running job has its rollouts in memory; and how many of these may be of one owner and of one run,
/// so that there is a place for others.
pub(crate) const AT_ONCE: usize = 4;
const OF_OWNER: usize = 3;
const OF_RUN: usize = 2;
/// For how many seconds a running job keeps its place while others wait.
const TURN: f64 = 10.0;

/// All jobs, open and over.
#[derive(Debug)]
pub(crate) struct JobQueue {
    pub(crate) folder: PathBuf,
    most: usize,
    hours: u64,
    bytes: u64,
    most_over: usize,
    all: Mutex<BTreeMap<String, Arc<Job>>>,
    /// Wakes the worker when a job was added.
    pub(crate) more: Notify,
}

impl JobQueue {
    /// Reads the jobs of a folder; those that are not over wait again.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, ServeError> {
        store::private_folder(folder).map_err(|error| ServeError::file(folder, error))?;
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match Job::read(path.clone()) {
                Ok(Some(job)) => {
                    let id = job.record().status.job.clone();
                    all.insert(id, Arc::new(job));
                }
                // The service was killed before it accepted the job.
                Ok(None) => drop(fs::remove_dir_all(&path)),
                Err(error) => {
                    let folder = path.display();
                    tracing::warn!(folder = %folder, why = %error, "a job cannot be read and is left out");
                }
            }
        }
        let (most, hours, bytes) = (config.limits.jobs, config.keep.job_hours, config.keep.job_bytes);
        Ok(Self {
            folder: folder.to_path_buf(),
            most,
            hours,
            bytes,
            most_over: MAX_OVER,
            all: Mutex::new(all),
            more: Notify::new(),
        })
    }

    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        lock(&self.all)
    }

    /// How many jobs there are of each state.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let stages: Vec<JobState> = self.all().values().map(|job| job.record().status.state).collect();
        let count = |stage: JobState| stages.iter().filter(|has| **has == stage).count();
        JobState::ALL.iter().map(|(stage, name)| (*name, count(*stage))).collect()
    }

    /// The job of that id, where the principal may see it.
    pub(crate) fn find(&self, principal: &Principal, id: &str) -> Result<Arc<Job>, ApiError> {
        let found = self.all().get(id).cloned();
        let mine =
            |job: &Arc<Job>| principal.may(Scope::Admin) || job.record().owner == principal.entry.owner();
        found.filter(mine).ok_or_else(|| ApiError::not_found("job.unknown", "there is no such job"))
    }

    /// Starts the next job, where there is a place for one.
    pub(crate) fn next(&self) -> Option<Arc<Job>> {
        loop {
            let job = self.first()?;
            if job.start() {
                return Some(job);
            }
        }
    }

    /// The waiting job whose owner and run have the fewest jobs running; of several, the one that has waited longest.
    fn first(&self) -> Option<Arc<Job>> {
        let all = self.all();
        let running = running(&all);
        if running.len() >= AT_ONCE {
            return None;
        }
        let rank = |job: &Arc<Job>| {
            let who = who(job);
            may_run(&running, &who).then(|| (places(&running, &who), job.since()))
        };
        let ranked = waiting(&all).filter_map(|job| Some((rank(job)?, job)));
        let next =
            ranked.min_by(|((one, early), _), ((other, late), _)| one.cmp(other).then(early.total_cmp(late)));
        next.map(|(_, job)| Arc::clone(job))
    }

    /// Whether a running job must give up its place: its time is over, others wait that would be picked before it, and no owner or run
    /// has more places than its own. One job does so at a time.
    pub(crate) fn must_leave(&self, job: &Job) -> bool {
        let all = self.all();
        let is_leaving = |job: &Arc<Job>| {
            job.leaving.load(Ordering::Relaxed) && job.record().status.state == JobState::Running
        };
        if unix_time() - job.since() < TURN || all.values().any(is_leaving) {
            return false;
        }
        let (mine, mut running) = (who(job), running(&all));
        if running.iter().any(|other| places(&running, other) > places(&running, &mine)) {
            return false;
        }
        if let Some(at) = running.iter().position(|other| *other == mine) {
            running.remove(at);
        }
        let comes_before = |other: &Arc<Job>| {
            let other = who(other);
            other != mine && may_run(&running, &other) && places(&running, &other) <= places(&running, &mine)
        };
        let leaves = waiting(&all).any(comes_before);
        job.leaving.store(leaves, Ordering::Relaxed);
        leaves
    }

    /// Cancels the open jobs of owners without a valid token.
    pub(crate) fn cancel_orphans(&self, is_known: impl Fn(&str) -> bool) {
        let is_orphaned = |job: &&Arc<Job>| {
            let record = job.record();
            !record.status.state.is_over() && !is_known(&record.owner)
        };
        let orphaned: Vec<Arc<Job>> = self.all().values().filter(is_orphaned).cloned().collect();
        orphaned.iter().for_each(|job| job.cancel_orphan());
    }

    /// Deletes jobs whose results are too old. Where there are too many or they take too much space, the owner with most loses its
    /// oldest.
    pub(crate) fn tick(&self) {
        let oldest = unix_time() - self.hours as f64 * 3600.0;
        let mut all = self.all();
        let mut shares: BTreeMap<String, OwnerJobs> = BTreeMap::new();
        for (id, job) in all.iter() {
            let (record, bytes) = (job.record(), job.bytes.load(Ordering::Relaxed));
            let share = shares.entry(record.owner.clone()).or_default();
            share.bytes += bytes;
            share.over.extend(record.status.ended.map(|ended| (ended, id.clone(), bytes)));
        }
        let mut gone = Vec::new();
        for share in shares.values_mut() {
            // The last is the oldest.
            share.over.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
            while share.over.last().is_some_and(|(ended, ..)| *ended < oldest) {
                gone.extend(share.drop_oldest());
            }
        }
        let mut many: usize = shares.values().map(|share| share.over.len()).sum();
        let mut bytes: u64 = shares.values().map(|share| share.bytes).sum();
        while many > self.most_over || bytes > self.bytes {
            let (too_many, with_some) =
                (many > self.most_over, shares.values_mut().filter(|has| !has.over.is_empty()));
            let most =
                with_some.max_by_key(|share| if too_many { share.over.len() as u64 } else { share.bytes });
            let Some(share) = most else { break };
            (many, bytes) = (many - 1, bytes - share.bytes);
            gone.extend(share.drop_oldest());
            bytes += share.bytes;
        }
        let gone: Vec<Arc<Job>> = gone.iter().filter_map(|id| all.remove(id)).collect();
        drop(all);
        for job in gone {
            let _ = fs::remove_dir_all(&job.folder);
        }
    }

    /// Adds a job, or returns the earlier one with the same key. Owners share the queue as runs share admission: one may have three
    /// quarters, two three eighths each, and an owner without jobs is admitted while there is any place.
    pub(crate) fn insert(&self, job: &Arc<Job>) -> Result<Option<Arc<Job>>, ApiError> {
        let mut all = self.all();
        if let Some(first) = find_same(&all, &job.record()) {
            return Ok(Some(first));
        }
        let (id, owner) = {
            let record = job.record();
            (record.status.job.clone(), record.owner.clone())
        };
        let open: Vec<&Arc<Job>> = all.values().filter(|job| !job.record().status.state.is_over()).collect();
        let is_mine = |job: &&&Arc<Job>| job.record().owner == owner;
        let weight = |job: &&Arc<Job>| job.bytes.load(Ordering::Relaxed);
        let owners = |jobs: &mut dyn Iterator<Item = &Arc<Job>>| {
            let mut owners: BTreeSet<String> = jobs.map(|job| job.record().owner.clone()).collect();
            owners.insert(owner.clone());
            owners.len()
        };
        let mine = open.iter().filter(is_mine).count();
        let share = (self.most * 3 / 4 / owners(&mut open.iter().copied())).max(1);
        let bytes = weight(&job) + open.iter().map(weight).sum::<u64>();
        let my_bytes = weight(&job) + open.iter().filter(is_mine).map(weight).sum::<u64>();
        // Owners that only have results have a share as well, so that jobs of one do not displace results of another.
        let my_share = self.bytes / 4 * 3 / owners(&mut all.values()) as u64;
        let refuse = |message| Err(ApiError::busy("engine.overloaded", message, 30));
        if open.len() >= self.most {
            return refuse(format!("{} jobs wait, which is all there may be", open.len()));
        }
        if mine >= share {
            return refuse(format!("{mine} of your jobs wait; your share is {share}"));
        }
        if bytes > self.bytes || (mine > 0 && my_bytes > my_share) {
            return refuse("the jobs that wait take all the space there is for them".to_owned());
        }
        all.insert(id, Arc::clone(job));
        Ok(None)
    }
}

/// The jobs of one owner.
#[derive(Debug, Default)]
struct OwnerJobs {
    bytes: u64,
    /// Those that are over, the oldest last: when they ended, their ids, and what they take.
    over: Vec<(f64, String, u64)>,
}

impl OwnerJobs {
    fn drop_oldest(&mut self) -> Option<String> {
        let (_, id, bytes) = self.over.pop()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(id)
    }
}

/// The owner of a job, the name of its run, and its recipe.
type JobOwner = (String, Option<String>, String);

fn who(job: &Job) -> JobOwner {
    let record = job.record();
    (record.owner.clone(), record.status.run.clone(), record.status.recipe.clone())
}

fn waiting(all: &BTreeMap<String, Arc<Job>>) -> impl Iterator<Item = &Arc<Job>> {
    all.values().filter(|job| job.record().status.state == JobState::Waiting)
}

/// The owners and runs of the jobs that run.
fn running(all: &BTreeMap<String, Arc<Job>>) -> Vec<JobOwner> {
    all.values().filter(|job| job.record().status.state == JobState::Running).map(|job| who(job)).collect()
}

/// How many places the same owner has, and the same run.
fn places(running: &[JobOwner], asks: &JobOwner) -> (usize, usize) {
    let of_holder = running.iter().filter(|who| who.0 == asks.0).count();
    (of_holder, running.iter().filter(|who| *who == asks).count())
}

/// Whether owner and run may have one more.
fn may_run(running: &[JobOwner], asks: &JobOwner) -> bool {
    let (of_holder, of_run) = places(running, asks);
    of_holder < OF_OWNER && of_run < OF_RUN
}

/// The job of the same owner with the same Idempotency-Key.
pub(crate) fn find_same(all: &BTreeMap<String, Arc<Job>>, asked: &JobRecord) -> Option<Arc<Job>> {
    let key = asked.key.as_ref()?;
    let same = |job: &&Arc<Job>| {
        let record = job.record();
        record.key.as_ref() == Some(key) && record.owner == asked.owner
    };
    all.values().find(same).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn opened(name: &str, config: &Config) -> JobQueue {
        let folder = std::env::temp_dir().join(format!("plaudit-backlog-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        JobQueue::open(&folder, config).unwrap()
    }

    /// A job that waits, of that many bytes.
    fn waiting_job(jobs: &JobQueue, owner: &str, number: usize, bytes: usize) -> Arc<Job> {
        let id = format!("{owner}-{number}");
        let folder = jobs.folder.join(&id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("request.json"), vec![b' '; bytes]).unwrap();
        let record = json!({
            "job": id, "state": "waiting", "recipe": "r", "run": null, "run_id": null, "step": null, "rollouts": 1,
            "bad": 0, "created": number, "ended": null, "message": null, "owner": owner, "key": null, "hash": "",
        });
        Arc::new(Job::new(folder, serde_json::from_value(record).unwrap()))
    }

    #[test]
    fn greedy_owner_leaves_room_for_another() {
        let mut config = Config::default();
        config.limits.jobs = 8;
        let jobs = opened("shares", &config);
        let mut taken = Vec::new();
        let error = loop {
            let job = waiting_job(&jobs, "greedy", taken.len(), 10);
            match jobs.insert(&job) {
                Ok(_) => taken.push(job),
                Err(error) => break error,
            }
        };
        assert_eq!((taken.len(), error.status.as_u16(), error.code), (6, 429, "engine.overloaded"));
        assert!(error.message.contains("your share is 6"), "{}", error.message);
        assert!(jobs.insert(&waiting_job(&jobs, "modest", 0, 10)).is_ok());
        // The next is the oldest of the owner with none running.
        let next = || jobs.next().map(|job| job.record().status.job.clone());
        assert_eq!(next().unwrap(), "greedy-0");
        assert_eq!(next().unwrap(), "modest-0");
        assert_eq!(next().unwrap(), "greedy-1");
        assert_eq!(next(), None, "one run has two places at most");
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn places_rotate_between_owners() {
        let jobs = opened("turns", &Config::default());
        let add = |owner: &str, number: usize, run: &str| {
            let job = waiting_job(&jobs, owner, number, 10);
            job.change(|record| record.status.run = Some(run.to_owned()));
            assert!(jobs.insert(&job).is_ok());
            job
        };
        let greedy: Vec<_> = (0..4).map(|at| add("a", at, &at.to_string())).collect();
        let next = || jobs.next().map(|job| job.record().status.job.clone());
        assert_eq!([next(), next(), next(), next()].map(|id| id.is_some()), [true, true, true, false]);
        // The runs of one owner take turns.
        assert!(!jobs.must_leave(&greedy[0]), "its turn is not over");
        greedy[..3].iter().for_each(|job| job.backdate(60.0));
        assert!(jobs.must_leave(&greedy[0]) && !jobs.must_leave(&greedy[1]), "one at a time");
        greedy[0].set_aside(&[]);
        assert_eq!(next().unwrap(), "a-3");
        let others: Vec<_> = ["b", "c", "d", "e"].iter().map(|owner| add(owner, 9, "r")).collect();
        assert_eq!((next().unwrap(), next()), ("b-9".to_owned(), None));
        others[0].backdate(60.0);
        assert!(!jobs.must_leave(&others[0]), "somebody has more places");
        for (leaves, comes) in [(1, "c-9"), (2, "d-9"), (3, "e-9")] {
            greedy[leaves].backdate(60.0);
            assert!(jobs.must_leave(&greedy[leaves]));
            greedy[leaves].set_aside(&[]);
            assert_eq!(next().unwrap(), comes);
        }
        // All have one now but the first, which is next.
        others.iter().for_each(|job| job.backdate(60.0));
        assert!(jobs.must_leave(&others[0]) && !jobs.must_leave(&others[1]));
        others[0].set_aside(&[]);
        assert!(next().unwrap().starts_with("a-"));
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn owner_with_most_loses_its_oldest_results() {
        let mut config = Config::default();
        config.keep.job_bytes = 1000;
        let mut jobs = opened("most", &config);
        jobs.most_over = 6;
        let ended = |jobs: &JobQueue, owner: &str, number: usize, bytes: usize| {
            let job = waiting_job(jobs, owner, number, 0);
            assert!(jobs.insert(&job).is_ok());
            fs::write(job.folder.join("results.jsonl"), vec![b' '; bytes]).unwrap();
            assert!(job.end(JobState::Done, None));
            job
        };
        let small = ended(&jobs, "small", 0, 10);
        let many: Vec<_> = (0..12).map(|at| ended(&jobs, "many", at, 1)).collect();
        jobs.tick();
        assert!(small.folder.exists(), "it is the oldest, but not whose there are too many");
        assert_eq!(
            many.iter().map(|job| job.folder.exists()).collect::<Vec<_>>(),
            [[false; 7].as_slice(), &[true; 5]].concat()
        );
        let large: Vec<_> = (0..4).map(|at| ended(&jobs, "large", at, 400)).collect();
        jobs.most_over = 100;
        jobs.tick();
        assert_eq!(
            large.iter().map(|job| job.folder.exists()).collect::<Vec<_>>(),
            [false, false, true, true]
        );
        assert!(small.folder.exists() && many[11].folder.exists());
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn disk_space_of_jobs_is_limited() {
        let mut config = Config::default();
        config.keep.job_bytes = 1000;
        let jobs = opened("bytes", &config);
        let (first, second) = (waiting_job(&jobs, "a", 0, 350), waiting_job(&jobs, "a", 1, 350));
        assert!(jobs.insert(&first).is_ok() && jobs.insert(&second).is_ok());
        assert_eq!(jobs.insert(&waiting_job(&jobs, "a", 2, 100)).unwrap_err().code, "engine.overloaded");
        assert!(jobs.insert(&waiting_job(&jobs, "b", 0, 300)).is_ok(), "there is room for whoever is new");
        assert_eq!(jobs.insert(&waiting_job(&jobs, "c", 0, 300)).unwrap_err().code, "engine.overloaded");
        for job in [&first, &second] {
            fs::write(job.folder.join("results.jsonl"), vec![b' '; 600]).unwrap();
            assert!(job.end(JobState::Done, None));
        }
        jobs.tick();
        assert!(
            !first.folder.exists() && second.folder.exists(),
            "the older goes first, and only as many as must"
        );
        assert!(jobs.insert(&waiting_job(&jobs, "a", 3, 400)).is_ok());
        let _ = fs::remove_dir_all(&jobs.folder);
    }
}
