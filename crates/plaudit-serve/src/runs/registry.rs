//! Registry of runs: finds the run of a name, opens it where it is not live, puts idle runs away and deletes old ones.
//!
//! A run is live while it has an engine in memory, and stored when only its files are left.

use super::run::{JoinLimits, LeftoverSteps, Run};
use super::store::{self, RunSummary, RunWriter};
use super::{recount, run};
use crate::config::{Config, Keep};
use crate::error::ServeError;
use crate::http::response::{ApiError, blocking};
use crate::recipes::RecipeCatalog;
use crate::token_file::{hex, random};
use crate::unix_time;
use plaudit::abort::AbortAfter;
use plaudit::exec::lock;
use plaudit::record::Network;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long a run stays live after its last rollout.
const RETIRE_AFTER: Duration = Duration::from_secs(900);
/// How often, and at which interval, to wait for a reader to let go of an idle run that could be put away.
const RETRIES: usize = 40;
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// All runs, live and stored.
#[derive(Debug)]
pub(crate) struct RunRegistry {
    index: Mutex<RunIndex>,
    recipes: Arc<RecipeCatalog>,
    folder: PathBuf,
    writer: RunWriter,
    keep: Keep,
    abort_after: AbortAfter,
    join_limits: Arc<JoinLimits>,
    /// The most live runs.
    most: usize,
    /// Whether several owners share the places, so that none may have all.
    is_shared: bool,
}

#[derive(Debug, Default)]
struct RunIndex {
    live: BTreeMap<String, Arc<Run>>,
    stored: BTreeMap<String, RunSummary>,
    /// The ids of all.
    ids: BTreeMap<RunKey, String>,
}

/// What identifies a run: its owner, its name and its recipe.
type RunKey = (String, String, String);

impl RunRegistry {
    /// Reads the runs of a folder.
    pub(crate) fn open(
        folder: &Path,
        config: &Config,
        recipes: &Arc<RecipeCatalog>,
        is_shared: bool,
    ) -> Result<Self, ServeError> {
        store::private_folder(folder).map_err(|error| ServeError::file(folder, error))?;
        let log = |path: &Path, error: &std::io::Error| {
            tracing::error!(why = %format_args!("{}: {error}", path.display()), "a run could not be written");
        };
        let writer = RunWriter::start(log).map_err(|error| ServeError::file(folder, error))?;
        let stored = stored_runs(folder);
        Ok(Self {
            index: Mutex::new(RunIndex { live: BTreeMap::new(), ids: ids(&stored), stored }),
            recipes: Arc::clone(recipes),
            folder: folder.to_path_buf(),
            writer,
            keep: config.keep.clone(),
            abort_after: config.abort_after,
            join_limits: Arc::new(JoinLimits::new(config.limits.joining)),
            most: config.limits.runs,
            is_shared,
        })
    }

    /// The run of that name, which is made where there is none.
    pub(crate) async fn get_or_create(
        self: &Arc<Self>,
        owner: &str,
        name: Option<&str>,
        recipe: Option<&str>,
    ) -> Result<Arc<Run>, ApiError> {
        let recipe = self.recipes.resolve(recipe)?;
        let name = name.unwrap_or(recipe);
        run::check_name(name)?;
        let key = (owner.to_owned(), name.to_owned(), recipe.to_owned());
        if let Some(run) = lock(&self.index).live_run(&key) {
            return Ok(run);
        }
        // Loads a recipe and reads files, so it runs off the threads that answer requests.
        let registry = Arc::clone(self);
        blocking("the run could not be begun", move || registry.make_live(key)).await?
    }

    /// The index, with room for one more live run of that owner. Where there is none, an idle run is put away: of the owner with most
    /// live runs, the one that has been idle longest.
    fn index_with_room(&self, owner: &str) -> Result<MutexGuard<'_, RunIndex>, ApiError> {
        // One of several owners may have three quarters.
        let share = (self.most / 4 * 3).max(1);
        let mut retries = 0..RETRIES;
        loop {
            let mut index = lock(&self.index);
            let has_share = self.is_shared && index.live_of(owner) >= share;
            if index.live.len() < self.most && !has_share {
                return Ok(index);
            }
            let (idle, is_borrowed) = index.longest_idle(has_share.then_some(owner));
            if let Some(run) = idle {
                put_away(&mut index, &run);
                return Ok(index);
            }
            if !is_borrowed || retries.next().is_none() {
                let message = match has_share {
                    true => format!("{share} runs of this token have work under way, which is its share"),
                    false => format!("{} runs have work under way, which is all there may be", self.most),
                };
                return Err(ApiError::busy("run.too_many", message, 10));
            }
            drop(index);
            std::thread::sleep(RETRY_AFTER);
        }
    }

    /// Opens a new run, or a stored one again.
    fn make_live(&self, key: RunKey) -> Result<Arc<Run>, ApiError> {
        let (owner, name, recipe) = (&*key.0, &*key.1, &*key.2);
        let folder = {
            if let Some(run) = lock(&self.index).live_run(&key) {
                return Ok(run);
            }
            let index = self.index_with_room(owner)?;
            index.ids.get(&key).filter(|id| index.stored.contains_key(*id)).map(|id| self.folder.join(id))
        };
        // Its last lines may still wait to be written.
        let leftover = folder.map(|folder| {
            self.writer.flush();
            LeftoverSteps::read(&folder)
        });
        // Opened without the lock, since this loads a recipe. The first of several callers wins.
        let engine = self.recipes.engine(recipe, Network::Live, owner)?;
        let is_judged = !engine.plan().judges.is_empty();
        let replay = is_judged.then(|| self.recipes.engine(recipe, Network::Replay, owner)).transpose()?;
        // Checked before room is made: no run is put away for one that is there.
        if let Some(run) = lock(&self.index).live_run(&key) {
            return Ok(run);
        }
        let mut index = self.index_with_room(owner)?;
        if let Some(run) = index.live_run(&key) {
            return Ok(run);
        }
        let judges = self.recipes.judges(recipe).unwrap_or("").to_owned();
        let stored = index.ids.get(&key).and_then(|id| index.stored.get(id)).cloned();
        let (summary, changed) = match stored {
            Some(mut summary) => {
                let was = std::mem::replace(&mut summary.fingerprint, judges.clone());
                (summary, (was != judges).then_some(was))
            }
            None => (self.new_summary(owner, name, recipe, judges)?, None),
        };
        let folder = self.folder.join(&summary.id);
        if let Err(error) = store::private_folder(&folder) {
            return Err(ApiError::disk("the state folder cannot be written", &error));
        }
        let id = summary.id.clone();
        index.stored.remove(&id);
        let files = (folder, self.writer.clone(), self.keep.clone());
        let limits = (Arc::clone(&self.join_limits), self.abort_after);
        let run = Run::new(summary, (engine, replay), files, limits, changed);
        if let Some(leftover) = leftover {
            run.reopen(leftover);
        }
        run.tick(unix_time(), false);
        index.ids.insert(key, id.clone());
        index.live.insert(id, Arc::clone(&run));
        Ok(run)
    }

    fn new_summary(
        &self,
        owner: &str,
        name: &str,
        recipe: &str,
        judges: String,
    ) -> Result<RunSummary, ApiError> {
        let id = random::<6>().map_err(|error| ApiError::internal(error.to_string()))?;
        let (components, judge_names) = self.recipes.outline(recipe);
        Ok(RunSummary {
            id: hex(&id),
            name: name.to_owned(),
            owner: owner.to_owned(),
            recipe: recipe.to_owned(),
            started: unix_time(),
            seen: unix_time(),
            fingerprint: judges,
            components,
            judges: judge_names,
            ..RunSummary::default()
        })
    }

    /// The summaries of all runs, newest first, and whether each is live.
    pub(crate) fn list(&self) -> Vec<(RunSummary, bool)> {
        let index = lock(&self.index);
        let live: Vec<Arc<Run>> = index.live.values().cloned().collect();
        let stored: Vec<RunSummary> = index.stored.values().cloned().collect();
        drop(index);
        let live = live.iter().map(|run| (run.summary(), true));
        let mut all: Vec<(RunSummary, bool)> =
            live.chain(stored.into_iter().map(|summary| (summary, false))).collect();
        all.sort_by(|(one, _), (other, _)| other.seen.total_cmp(&one.seen));
        all
    }

    /// A run by its id: its summary, its folder, and itself where it is live.
    pub(crate) fn find(&self, id: &str) -> Result<(RunSummary, PathBuf, Option<Arc<Run>>), ApiError> {
        let index = lock(&self.index);
        let live = index.live.get(id).cloned();
        let stored = index.stored.get(id).cloned();
        drop(index);
        match (live, stored) {
            (Some(run), _) => Ok((run.summary(), run.folder().clone(), Some(run))),
            (None, Some(summary)) => Ok((summary, self.folder.join(id), None)),
            (None, None) => Err(ApiError::not_found("run.unknown", "there is no such run")),
        }
    }

    /// Waits until everything that was handed to the writer is on the disk.
    pub(crate) fn flush(&self) {
        self.writer.flush();
    }

    /// The live runs.
    pub(crate) fn live(&self) -> Vec<Arc<Run>> {
        lock(&self.index).live.values().cloned().collect()
    }

    /// How many runs are live.
    pub(crate) fn live_count(&self) -> usize {
        lock(&self.index).live.len()
    }

    /// Ends steps that are over, puts idle runs away (all of them where `all` is set) and deletes old ones.
    pub(crate) fn tick(&self, all: bool) {
        for run in self.live() {
            if !(all || run.idle() > RETIRE_AFTER) {
                run.tick(unix_time(), false);
                continue;
            }
            let mut index = lock(&self.index);
            // A request may have got it just now: besides this variable, only the index may hold it.
            if all || (Arc::strong_count(&run) <= 2 && run.idle() > RETIRE_AFTER) {
                put_away(&mut index, &run);
            }
        }
        for id in lock(&self.index).delete_old(&self.keep, unix_time()) {
            self.writer.remove(self.folder.join(id));
        }
        if all {
            self.writer.flush();
        }
    }
}

/// Ends the steps of a live run, of which only the files stay.
fn put_away(index: &mut RunIndex, run: &Run) {
    run.tick(unix_time(), true);
    let summary = run.summary();
    index.live.remove(&summary.id);
    index.stored.insert(summary.id.clone(), summary);
}

impl RunIndex {
    fn live_run(&self, key: &RunKey) -> Option<Arc<Run>> {
        self.ids.get(key).and_then(|id| self.live.get(id)).cloned()
    }

    /// How many live runs an owner has.
    fn live_of(&self, owner: &str) -> usize {
        self.ids.iter().filter(|((whose, ..), id)| whose == owner && self.live.contains_key(*id)).count()
    }

    /// Of the idle live runs, of one owner or of the owner with most, the one that has been idle longest; and whether there is an idle
    /// one that a request holds just now.
    fn longest_idle(&self, owner: Option<&str>) -> (Option<Arc<Run>>, bool) {
        let mut is_borrowed = false;
        let mut found: Option<((usize, Duration), &Arc<Run>)> = None;
        for ((whose, ..), id) in
            self.ids.iter().filter(|((whose, ..), _)| owner.is_none_or(|owner| whose == owner))
        {
            let Some(run) = self.live.get(id) else { continue };
            let idle = run.idle();
            if idle.is_zero() {
                continue;
            }
            // Whoever else holds it may be about to score for it.
            if Arc::strong_count(run) > 1 {
                is_borrowed = true;
                continue;
            }
            let rank = (self.live_of(whose), idle);
            if found.is_none_or(|(best, _)| rank > best) {
                found = Some((rank, run));
            }
        }
        (found.map(|(_, run)| Arc::clone(run)), is_borrowed)
    }

    /// Removes the stored runs that are too old or too many, and returns their ids.
    fn delete_old(&mut self, keep: &Keep, now: f64) -> Vec<String> {
        let oldest = now - keep.run_days as f64 * 86_400.0;
        let (old, stored): (Vec<&RunSummary>, Vec<&RunSummary>) =
            self.stored.values().partition(|summary| summary.seen < oldest);
        let mut live: BTreeMap<&str, usize> = BTreeMap::new();
        for ((owner, ..), _) in self.ids.iter().filter(|(_, id)| self.live.contains_key(*id)) {
            *live.entry(owner).or_default() += 1;
        }
        let many = too_many(stored, live, keep.runs);
        let gone: Vec<String> = old.into_iter().chain(many).map(|summary| summary.id.clone()).collect();
        for id in &gone {
            self.stored.remove(id);
            self.ids.retain(|_, known| known != id);
        }
        gone
    }
}

/// The stored runs that are too many beside those that are live: the oldest of the owner with most, live ones included. An owner whose
/// runs are all live loses none, and makes nobody else lose any.
fn too_many<'r>(
    mut stored: Vec<&'r RunSummary>,
    mut held: BTreeMap<&'r str, usize>,
    most: usize,
) -> Vec<&'r RunSummary> {
    let mut count = stored.len() + held.values().sum::<usize>();
    for summary in &stored {
        *held.entry(&summary.owner).or_default() += 1;
    }
    stored.sort_by(|one, other| other.seen.total_cmp(&one.seen));
    let mut gone = Vec::new();
    while count > most {
        let largest = held.values().copied().max().unwrap_or(0);
        let is_largest = |summary: &&RunSummary| held.get(summary.owner.as_str()) == Some(&largest);
        let Some(at) = stored.iter().rposition(is_largest) else { break };
        let summary = stored.remove(at);
        held.entry(&summary.owner).and_modify(|held| *held -= 1);
        count -= 1;
        gone.push(summary);
    }
    gone
}

/// The ids of runs by their keys; of several with one key, the last that was used.
fn ids(stored: &BTreeMap<String, RunSummary>) -> BTreeMap<RunKey, String> {
    let mut all: Vec<&RunSummary> = stored.values().collect();
    all.sort_by(|one, other| one.seen.total_cmp(&other.seen));
    let key = |summary: &RunSummary| (summary.owner.clone(), summary.name.clone(), summary.recipe.clone());
    all.into_iter().map(|summary| (key(summary), summary.id.clone())).collect()
}

/// The runs of a folder; one that cannot be read is logged and left out.
fn stored_runs(folder: &Path) -> BTreeMap<String, RunSummary> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let read = |path: PathBuf| {
        let summary = store::read_summary(&path);
        if summary.is_none() {
            tracing::warn!(folder = %path.display(), "a run cannot be read and is left out");
        }
        summary.map(|summary| (summary.id.clone(), recount::after_crash(summary, &path)))
    };
    entries.filter_map(|entry| read(entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_surplus_runs_are_deleted() {
        let summary = |at: u64| -> (String, RunSummary) {
            let value = serde_json::json!({
                "id": at.to_string(), "name": at.to_string(), "owner": "o", "recipe": "r", "started": 0.0,
                "seen": at as f64 * 86_400.0, "steps": 0, "rollouts": 0, "groups": 0, "total_mean": null,
                "invalid_share": null, "alarms": [], "fingerprint": "", "components": [], "judges": [],
            });
            (at.to_string(), serde_json::from_value(value).unwrap())
        };
        let stored: BTreeMap<String, RunSummary> = (0..10).map(summary).collect();
        let mut index = RunIndex { live: BTreeMap::new(), ids: ids(&stored), stored };
        let keep = Keep { run_days: 7, runs: 4, ..Keep::default() };
        assert_eq!(index.delete_old(&keep, 12.0 * 86_400.0), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(index.delete_old(&keep, 14.0 * 86_400.0), ["6"]);
        assert_eq!((index.stored.len(), index.ids.len()), (3, 3));
        assert!(index.delete_old(&keep, 14.0 * 86_400.0).is_empty());
    }

    #[test]
    fn owner_with_most_runs_loses_its_oldest() {
        let summary = |owner: &str, at: u64| -> RunSummary {
            let value = serde_json::json!({
                "id": format!("{owner}{at}"), "name": "n", "owner": owner, "recipe": "r", "started": 0.0, "seen": at,
                "steps": 0, "rollouts": 0, "groups": 0, "total_mean": null, "invalid_share": null, "alarms": [],
                "fingerprint": "", "components": [], "judges": [],
            });
            serde_json::from_value(value).unwrap()
        };
        // The runs of the first are older than all others.
        let all: Vec<RunSummary> =
            (0..3).map(|at| summary("a", at)).chain((10..16).map(|at| summary("b", at))).collect();
        let gone = |live: &[(&'static str, usize)], most: usize| -> Vec<&str> {
            let live: BTreeMap<&str, usize> = live.iter().copied().collect();
            too_many(all.iter().collect(), live, most).into_iter().map(|run| run.id.as_str()).collect()
        };
        assert_eq!(gone(&[], 9), Vec::<&str>::new());
        assert_eq!(gone(&[], 6), ["b10", "b11", "b12"]);
        assert_eq!(gone(&[], 4), ["b10", "b11", "b12", "a0", "b13"], "of two with as many, the oldest");
        assert_eq!(gone(&[("a", 4)], 10), ["a0", "a1", "b10"], "live ones count");
        assert_eq!(gone(&[("c", 20)], 5), Vec::<&str>::new(), "live runs push nobody out");
    }
}
