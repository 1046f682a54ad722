//! Which jobs are there, whose turn is it, and which are forgotten?

use super::config::Config;
use super::job::{Job, Stage, Written};
use super::reply::Refusal;
use super::run::clock;
use super::tokens::{Holder, Scope};
use super::{kept, log};
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most jobs that are over; the oldest are forgotten first.
const MOST_OVER: usize = 10_000;

/// All jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(super) folder: PathBuf,
    most: usize,
    hours: u64,
    bytes: u64,
    all: Mutex<BTreeMap<String, Arc<Job>>>,
    /// Says that one was added.
    pub(super) more: Notify,
}

impl Jobs {
    /// Takes up what lies in the folder; what was not done goes on.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Failure> {
        kept::private_folder(folder).map_err(|error| Failure::File(folder.display().to_string(), error))?;
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match Job::read(path.clone()) {
                Ok(Some(job)) => {
                    let id = job.written().job.clone();
                    all.insert(id, Arc::new(job));
                }
                // The service was killed before it had been accepted.
                Ok(None) => drop(fs::remove_dir_all(&path)),
                Err(error) => {
                    let facts = [
                        ("folder", Value::from(path.display().to_string())),
                        ("why", Value::from(error.to_string())),
                    ];
                    log::say("warning", "a job cannot be read and is left out", &facts);
                }
            }
        }
        let (most, hours, bytes) = (config.limits.jobs, config.keep.hours, config.keep.job_bytes);
        Ok(Self {
            folder: folder.to_path_buf(),
            most,
            hours,
            bytes,
            all: Mutex::new(all),
            more: Notify::new(),
        })
    }

    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many jobs there are of each state.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let stages: Vec<Stage> = self.all().values().map(|job| job.written().state).collect();
        let count = |stage: Stage| stages.iter().filter(|has| **has == stage).count();
        Stage::ALL.iter().map(|(stage, name)| (*name, count(*stage))).collect()
    }

    /// The job of that id, where the holder may know of it.
    pub(super) fn find(&self, holder: &Holder, id: &str) -> Result<Arc<Job>, Refusal> {
        let found = self.all().get(id).cloned();
        let mine = |job: &Arc<Job>| holder.may(Scope::Admin) || job.written().owner == holder.entry.id;
        found.filter(mine).ok_or_else(|| Refusal::not_found("job.unknown", "there is no such job"))
    }

    /// The next job that waits: of those whose run has the fewest jobs running, the oldest.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        loop {
            let job = self.first()?;
            if job.start() {
                return Some(job);
            }
        }
    }

    fn first(&self) -> Option<Arc<Job>> {
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
        next.map(|(_, job)| Arc::clone(job))
    }

    /// Forgets jobs whose results are too old, and the oldest where there are too many or they take too much.
    pub(crate) fn tick(&self) {
        let oldest = clock() - self.hours as f64 * 3600.0;
        let mut all = self.all();
        let ended = |(id, job): (&String, &Arc<Job>)| Some((job.written().ended?, id.clone()));
        let mut over: Vec<(f64, String)> = all.iter().filter_map(ended).collect();
        over.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let many = over.len().saturating_sub(MOST_OVER);
        let mut bytes: u64 = all.values().map(|job| job.bytes.load(Ordering::Relaxed)).sum();
        let mut gone = Vec::new();
        for (at, (ended, id)) in over.into_iter().enumerate() {
            if (at < many || ended < oldest || bytes > self.bytes)
                && let Some(job) = all.remove(&id)
            {
                bytes = bytes.saturating_sub(job.bytes.load(Ordering::Relaxed));
                gone.push(job);
            }
        }
        drop(all);
        for job in gone {
            let _ = fs::remove_dir_all(&job.folder);
        }
    }

    /// Takes a job in, unless the same has come before or too many wait. Holders share the places as runs share those of rollouts:
    /// one may have three quarters, two three eighths each, and whoever has none is let in while there is any.
    pub(super) fn insert(&self, job: &Arc<Job>) -> Result<Option<Arc<Job>>, Refusal> {
        let mut all = self.all();
        if let Some(first) = same(&all, &job.written()) {
            return Ok(Some(first));
        }
        let Written { job: id, owner, .. } = job.written().clone();
        let open: Vec<&Arc<Job>> = all.values().filter(|job| !job.written().state.is_over()).collect();
        let mut owners: BTreeMap<String, usize> = BTreeMap::from([(owner.clone(), 0)]);
        for job in &open {
            *owners.entry(job.written().owner.clone()).or_default() += 1;
        }
        let (mine, share) = (owners[&owner], (self.most * 3 / 4 / owners.len()).max(1));
        let bytes: u64 = open.iter().chain([&job]).map(|job| job.bytes.load(Ordering::Relaxed)).sum();
        let refuse = |message| Err(Refusal::busy("engine.overloaded", message, 30));
        if open.len() >= self.most {
            return refuse(format!("{} jobs wait, which is all there may be", open.len()));
        }
        if mine >= share {
            return refuse(format!("{mine} of your jobs wait; your share is {share}"));
        }
        if bytes > self.bytes {
            return refuse("the jobs that wait take all the space there is for them".to_owned());
        }
        all.insert(id, Arc::clone(job));
        Ok(None)
    }
}

/// The job of the same holder with the same key.
pub(super) fn same(all: &BTreeMap<String, Arc<Job>>, asked: &Written) -> Option<Arc<Job>> {
    let key = asked.key.as_ref()?;
    let same = |job: &&Arc<Job>| {
        let written = job.written();
        written.key.as_ref() == Some(key) && written.owner == asked.owner
    };
    all.values().find(same).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn opened(name: &str, config: &Config) -> Jobs {
        let folder = std::env::temp_dir().join(format!("plaudit-backlog-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Jobs::open(&folder, config).unwrap()
    }

    /// A job that waits, of that many bytes.
    fn waiting(jobs: &Jobs, owner: &str, number: usize, bytes: usize) -> Arc<Job> {
        let id = format!("{owner}-{number}");
        let folder = jobs.folder.join(&id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("request.json"), vec![b' '; bytes]).unwrap();
        let written = json!({
            "job": id, "state": "waiting", "recipe": "r", "run": null, "run_id": null, "step": null, "rollouts": 1,
            "bad": 0, "created": number, "ended": null, "message": null, "owner": owner, "key": null, "hash": "",
        });
        Arc::new(Job::new(folder, serde_json::from_value(written).unwrap()))
    }

    #[test]
    fn whoever_hands_in_all_it_can_leaves_room_for_another() {
        let mut config = Config::default();
        config.limits.jobs = 8;
        let jobs = opened("shares", &config);
        let mut taken = Vec::new();
        let refusal = loop {
            let job = waiting(&jobs, "greedy", taken.len(), 10);
            match jobs.insert(&job) {
                Ok(_) => taken.push(job),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!((taken.len(), refusal.status.as_u16(), refusal.code), (6, 429, "engine.overloaded"));
        assert!(refusal.message.contains("your share is 6"), "{}", refusal.message);
        assert!(jobs.insert(&waiting(&jobs, "modest", 0, 10)).is_ok());
        // The next that begins is the oldest of whoever has none running.
        assert_eq!(jobs.next().unwrap().written().job, "greedy-0");
        assert_eq!(jobs.next().unwrap().written().job, "modest-0");
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn jobs_take_no_more_of_the_disk_than_they_may() {
        let mut config = Config::default();
        config.keep.job_bytes = 1000;
        let jobs = opened("bytes", &config);
        let (first, second) = (waiting(&jobs, "a", 0, 400), waiting(&jobs, "a", 1, 400));
        assert!(jobs.insert(&first).is_ok() && jobs.insert(&second).is_ok());
        assert_eq!(jobs.insert(&waiting(&jobs, "a", 2, 400)).unwrap_err().code, "engine.overloaded");
        for job in [&first, &second] {
            fs::write(job.folder.join("results.jsonl"), vec![b' '; 600]).unwrap();
            assert!(job.end(Stage::Done, None));
        }
        jobs.tick();
        assert!(
            !first.folder.exists() && second.folder.exists(),
            "the older goes first, and only as many as must"
        );
        assert!(jobs.insert(&waiting(&jobs, "a", 3, 400)).is_ok());
        let _ = fs::remove_dir_all(&jobs.folder);
    }
}
