//! Which jobs are there, whose turn is it, and which are forgotten?

use super::config::Config;
use super::job::{Job, Stage, Written};
use super::reply::Refusal;
use super::run::clock;
use super::tokens::{Holder, Scope};
use super::{kept, log};
use crate::error::CliError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most jobs that are over.
const MOST_OVER: usize = 10_000;
/// How many jobs run at once, as their rollouts are in memory meanwhile; and how many of these may be one holder's, and one run's, so
/// that there is a place for whoever has none.
pub(super) const AT_ONCE: usize = 4;
const OF_HOLDER: usize = 3;
const OF_RUN: usize = 2;
/// For how many seconds a job keeps its place though others wait for one.
const TURN: f64 = 10.0;

/// All jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(super) folder: PathBuf,
    most: usize,
    hours: u64,
    bytes: u64,
    most_over: usize,
    all: Mutex<BTreeMap<String, Arc<Job>>>,
    /// Says that one was added.
    pub(super) more: Notify,
}

impl Jobs {
    /// Takes up what lies in the folder; what was not done goes on.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, CliError> {
        kept::private_folder(folder).map_err(|error| CliError::File(folder.display().to_string(), error))?;
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
            most_over: MOST_OVER,
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
        let mine = |job: &Arc<Job>| holder.may(Scope::Admin) || job.written().owner == holder.entry.owner();
        found.filter(mine).ok_or_else(|| Refusal::not_found("job.unknown", "there is no such job"))
    }

    /// The next job whose turn it is, where there is a place for it.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        loop {
            let job = self.first()?;
            if job.start() {
                return Some(job);
            }
        }
    }

    /// Of the jobs that wait, one of those whose holder and run have the fewest running, and of these the one that has waited longest.
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

    /// Whether a job that has had its turn must give its place up: others wait that come before it, or would if it waited as well,
    /// and nobody has more places than its holder and its run. One does so at a time.
    pub(super) fn must_leave(&self, job: &Job) -> bool {
        let all = self.all();
        let is_leaving =
            |job: &Arc<Job>| job.leaving.load(Ordering::Relaxed) && job.written().state == Stage::Running;
        if clock() - job.since() < TURN || all.values().any(is_leaving) {
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

    /// Calls off what is open of those whose token is worth nothing any more.
    pub(crate) fn call_off(&self, is_known: impl Fn(&str) -> bool) {
        let is_orphaned = |job: &&Arc<Job>| {
            let written = job.written();
            !written.state.is_over() && !is_known(&written.owner)
        };
        let orphaned: Vec<Arc<Job>> = self.all().values().filter(is_orphaned).cloned().collect();
        orphaned.iter().for_each(|job| job.disown());
    }

    /// Forgets jobs whose results are too old, and where there are too many or they take too much, the oldest of whoever has most.
    pub(crate) fn tick(&self) {
        let oldest = clock() - self.hours as f64 * 3600.0;
        let mut all = self.all();
        let mut shares: BTreeMap<String, Share> = BTreeMap::new();
        for (id, job) in all.iter() {
            let (written, bytes) = (job.written(), job.bytes.load(Ordering::Relaxed));
            let share = shares.entry(written.owner.clone()).or_default();
            share.bytes += bytes;
            share.over.extend(written.ended.map(|ended| (ended, id.clone(), bytes)));
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

    /// Takes a job in, unless the same has come before or too many wait. Holders share the places as runs share those of rollouts:
    /// one may have three quarters, two three eighths each, and whoever has none is let in while there is any.
    pub(super) fn insert(&self, job: &Arc<Job>) -> Result<Option<Arc<Job>>, Refusal> {
        let mut all = self.all();
        if let Some(first) = same(&all, &job.written()) {
            return Ok(Some(first));
        }
        let Written { job: id, owner, .. } = job.written().clone();
        let open: Vec<&Arc<Job>> = all.values().filter(|job| !job.written().state.is_over()).collect();
        let is_mine = |job: &&&Arc<Job>| job.written().owner == owner;
        let weight = |job: &&Arc<Job>| job.bytes.load(Ordering::Relaxed);
        let holders = |jobs: &mut dyn Iterator<Item = &Arc<Job>>| {
            let mut owners: BTreeSet<String> = jobs.map(|job| job.written().owner.clone()).collect();
            owners.insert(owner.clone());
            owners.len()
        };
        let mine = open.iter().filter(is_mine).count();
        let share = (self.most * 3 / 4 / holders(&mut open.iter().copied())).max(1);
        let bytes = weight(&job) + open.iter().map(weight).sum::<u64>();
        let my_bytes = weight(&job) + open.iter().filter(is_mine).map(weight).sum::<u64>();
        // Those who have results only have a share as well, so that nobody's jobs take the place of another's results.
        let my_share = self.bytes / 4 * 3 / holders(&mut all.values()) as u64;
        let refuse = |message| Err(Refusal::busy("engine.overloaded", message, 30));
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

/// What one holder has of the jobs.
#[derive(Debug, Default)]
struct Share {
    bytes: u64,
    /// Those that are over, the oldest last: when they ended, their ids, and what they take.
    over: Vec<(f64, String, u64)>,
}

impl Share {
    fn drop_oldest(&mut self) -> Option<String> {
        let (_, id, bytes) = self.over.pop()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(id)
    }
}

/// Whose a job is, and which run's.
type Who = (String, Option<String>, String);

fn who(job: &Job) -> Who {
    let written = job.written();
    (written.owner.clone(), written.run.clone(), written.recipe.clone())
}

fn waiting(all: &BTreeMap<String, Arc<Job>>) -> impl Iterator<Item = &Arc<Job>> {
    all.values().filter(|job| job.written().state == Stage::Waiting)
}

/// Whose jobs run.
fn running(all: &BTreeMap<String, Arc<Job>>) -> Vec<Who> {
    all.values().filter(|job| job.written().state == Stage::Running).map(|job| who(job)).collect()
}

/// How many places the same holder has, and the same run.
fn places(running: &[Who], asks: &Who) -> (usize, usize) {
    let of_holder = running.iter().filter(|who| who.0 == asks.0).count();
    (of_holder, running.iter().filter(|who| *who == asks).count())
}

/// Whether these are fewer than they may have.
fn may_run(running: &[Who], asks: &Who) -> bool {
    let (of_holder, of_run) = places(running, asks);
    of_holder < OF_HOLDER && of_run < OF_RUN
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
    fn waiting_job(jobs: &Jobs, owner: &str, number: usize, bytes: usize) -> Arc<Job> {
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
            let job = waiting_job(&jobs, "greedy", taken.len(), 10);
            match jobs.insert(&job) {
                Ok(_) => taken.push(job),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!((taken.len(), refusal.status.as_u16(), refusal.code), (6, 429, "engine.overloaded"));
        assert!(refusal.message.contains("your share is 6"), "{}", refusal.message);
        assert!(jobs.insert(&waiting_job(&jobs, "modest", 0, 10)).is_ok());
        // The next that begins is the oldest of whoever has none running.
        let next = || jobs.next().map(|job| job.written().job.clone());
        assert_eq!(next().unwrap(), "greedy-0");
        assert_eq!(next().unwrap(), "modest-0");
        assert_eq!(next().unwrap(), "greedy-1");
        assert_eq!(next(), None, "one run has two places at most");
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn places_go_round_and_one_is_kept_for_whoever_has_none() {
        let jobs = opened("turns", &Config::default());
        let add = |owner: &str, number: usize, run: &str| {
            let job = waiting_job(&jobs, owner, number, 10);
            job.change(|written| written.run = Some(run.to_owned()));
            assert!(jobs.insert(&job).is_ok());
            job
        };
        let greedy: Vec<_> = (0..4).map(|at| add("a", at, &at.to_string())).collect();
        let next = || jobs.next().map(|job| job.written().job.clone());
        assert_eq!([next(), next(), next(), next()].map(|id| id.is_some()), [true, true, true, false]);
        // The runs of one holder take turns; whoever has a place of its own to take needs nobody's.
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
        // All have one now, and the one that has none is not forgotten.
        others.iter().for_each(|job| job.backdate(60.0));
        assert!(jobs.must_leave(&others[0]) && !jobs.must_leave(&others[1]));
        others[0].set_aside(&[]);
        assert!(next().unwrap().starts_with("a-"));
        let _ = fs::remove_dir_all(&jobs.folder);
    }

    #[test]
    fn whoever_has_most_loses_its_oldest_results_first() {
        let mut config = Config::default();
        config.keep.job_bytes = 1000;
        let mut jobs = opened("most", &config);
        jobs.most_over = 6;
        let ended = |jobs: &Jobs, owner: &str, number: usize, bytes: usize| {
            let job = waiting_job(jobs, owner, number, 0);
            assert!(jobs.insert(&job).is_ok());
            fs::write(job.folder.join("results.jsonl"), vec![b' '; bytes]).unwrap();
            assert!(job.end(Stage::Done, None));
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
    fn jobs_take_no_more_of_the_disk_than_they_may() {
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
            assert!(job.end(Stage::Done, None));
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
