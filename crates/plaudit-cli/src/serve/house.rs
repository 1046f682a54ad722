//! What does the service have? Its recipes, its runs, its jobs, those who may ask, and what it may hold.

use super::admission::Admission;
use super::backlog::Jobs;
use super::body::Room;
use super::config::{Config, Keep, Limits};
use super::kept::{self, About, Keeper};
use super::log;
use super::meters::Meters;
use super::peers::Peers;
use super::recipes::Recipes;
use super::recount;
use super::reply::Refusal;
use super::run::{Left, Meetings, Run, clock};
use super::tokens::{Tokens, hex, random};
use super::watch::Watch;
use crate::error::CliError;
use plaudit::judge::client::Network;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a run stays at hand without anything coming.
const RETIRED: Duration = Duration::from_secs(900);
/// How often, and how soon again, it is looked whether somebody only looks at a run that could be put away.
const LOOKS: usize = 40;
const SOON: Duration = Duration::from_millis(5);
/// The longest name of a run.
const LONGEST_NAME: usize = 128;
/// The last step that a run may have: beyond it, a program whose numbers are all floating-point cannot tell steps apart.
pub(crate) const LAST_STEP: u64 = (1 << 53) - 1;

/// Everything.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) recipes: Recipes,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    pub(crate) admission: Arc<Admission>,
    /// The same for rollouts that wait for their groups.
    pub(crate) joining: Arc<Admission>,
    /// The same for the bytes of both.
    pub(crate) texts: Arc<Admission>,
    meetings: Arc<Meetings>,
    pub(crate) room: Arc<Room>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) meters: Meters,
    pub(crate) jobs: Jobs,
    pub(crate) watch: Watch,
    /// The names under which it may be asked; all, where there are none.
    pub(crate) hosts: Vec<String>,
    pub(crate) started: Instant,
    draining: AtomicBool,
    runs: Mutex<Runs>,
    folder: PathBuf,
    keeper: Keeper,
    keep: Keep,
    /// So that no other service has the folder.
    _lock: std::fs::File,
}

#[derive(Debug, Default)]
struct Runs {
    live: BTreeMap<String, Arc<Run>>,
    /// Those that nothing comes for.
    kept: BTreeMap<String, About>,
    /// The ids of all.
    names: BTreeMap<Name, String>,
}

/// Whose it is, what it is called, and by which recipe it is scored.
type Name = (String, String, String);

impl House {
    /// Opens what lies in the state folder.
    pub(crate) fn open(
        config: Config,
        (recipes, tokens): (Recipes, Tokens),
        folder: &Path,
        bind: IpAddr,
        complain: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, CliError> {
        let failure = |path: &Path, error| CliError::File(path.display().to_string(), error);
        let lock = own(folder)?;
        let runs_folder = folder.join("runs");
        kept::private_folder(&runs_folder).map_err(|error| failure(&runs_folder, error))?;
        let complain = Arc::new(complain);
        let told = Arc::clone(&complain);
        let keeper = Keeper::start(move |path, error| told(&format!("{}: {error}", path.display())))
            .map_err(|error| failure(&runs_folder, error))?;
        let kept = kept_runs(&runs_folder);
        let hosts = hosts(&config.hosts, bind, tokens.are_asked_for());
        let jobs = Jobs::open(&folder.join("jobs"), &config)?;
        Ok(Arc::new(Self {
            recipes,
            tokens,
            admission: Arc::new(Admission::new(config.limits.rollouts, "rollouts")),
            joining: Arc::new(Admission::new(config.limits.joining, "rollouts that wait for their groups")),
            texts: Arc::new(Admission::new(config.limits.texts, "bytes of rollouts")),
            meetings: Arc::new(Meetings::new(config.limits.joining)),
            room: Arc::new(Room::new(config.limits.bodies)),
            peers: Arc::new(Peers::new(config.limits.connections, config.limits.share_of_peer())),
            limits: config.limits,
            meters: Meters::new(),
            jobs,
            watch: Watch::new(),
            hosts,
            started: Instant::now(),
            draining: AtomicBool::new(false),
            runs: Mutex::new(Runs { live: BTreeMap::new(), names: names(&kept), kept }),
            folder: runs_folder,
            keeper,
            keep: config.keep,
            _lock: lock,
        }))
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing new is taken in.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        // Who is missing will not be let in any more.
        self.live_runs().iter().for_each(|run| run.close_joins());
    }

    /// Whether a run may be called that.
    pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            let message =
                format!("run: a name of 1 to {LONGEST_NAME} bytes without control characters is wanted");
            return Err(Refusal::bad("run.name", message));
        }
        Ok(())
    }

    /// Whether a step may have that number: one that every client can read as it is.
    pub(crate) fn check_step(step: Option<u64>) -> Result<(), Refusal> {
        match step {
            Some(step) if step > LAST_STEP => {
                Err(Refusal::bad("run.step", format!("step: a number from 0 to {LAST_STEP} is wanted")))
            }
            _ => Ok(()),
        }
    }

    /// The run of that name, which is begun where there is none.
    pub(crate) async fn run(
        self: &Arc<Self>,
        owner: &str,
        name: Option<&str>,
        recipe: Option<&str>,
    ) -> Result<Arc<Run>, Refusal> {
        let recipe = self.recipes.chosen(recipe)?;
        let name = name.unwrap_or(recipe);
        Self::check_name(name)?;
        let full = (owner.to_owned(), name.to_owned(), recipe.to_owned());
        if let Some(run) = self.runs().named(&full) {
            return Ok(run);
        }
        // A recipe is loaded for it and files are read, which others must not wait for.
        let house = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || house.take_up(full));
        work.await.map_err(|_| Refusal::broken("the run could not be begun"))?
    }

    /// The runs, with room for one more of that holder. Where there is none, a run for which nothing is being done is put away: of
    /// whoever has most, the one that has been idle for the longest time.
    fn runs_with_room(&self, owner: &str) -> Result<MutexGuard<'_, Runs>, Refusal> {
        let most = self.limits.runs;
        // Where there are several holders, none may have all.
        let share = (most / 4 * 3).max(1);
        for look in 0.. {
            let mut runs = self.runs();
            let has_share = self.tokens.are_asked_for() && runs.live_of(owner) >= share;
            if runs.live.len() < most && !has_share {
                return Ok(runs);
            }
            let (idle, is_looked_at) = runs.longest_idle(has_share.then_some(owner));
            if let Some(run) = idle {
                self.put_away(&mut runs, &run);
                return Ok(runs);
            }
            if !is_looked_at || look >= LOOKS {
                let message = match has_share {
                    true => format!("{share} runs of this token have work under way, which is its share"),
                    false => format!("{most} runs have work under way, which is all there may be"),
                };
                return Err(Refusal::busy("run.too_many", message, 10));
            }
            drop(runs);
            std::thread::sleep(SOON);
        }
        Err(Refusal::broken("no room was looked for"))
    }

    /// Ends the steps of a live run, and keeps of it what lies in its folder.
    fn put_away(&self, runs: &mut Runs, run: &Run) {
        run.tick(clock(), true);
        let about = run.about();
        runs.live.remove(&about.id);
        runs.kept.insert(about.id.clone(), about);
    }

    /// Begins a run, or goes on with one.
    fn take_up(&self, full: Name) -> Result<Arc<Run>, Refusal> {
        let (owner, name, recipe) = (&*full.0, &*full.1, &*full.2);
        let left = {
            if let Some(run) = self.runs().named(&full) {
                return Ok(run);
            }
            let runs = self.runs_with_room(owner)?;
            runs.names.get(&full).filter(|id| runs.kept.contains_key(*id)).map(|id| self.folder.join(id))
        };
        // What was last said of it may still wait to be written.
        let left = left.map(|folder| {
            self.keeper.flush();
            Left::of(&folder)
        });
        // Made without the lock, since a recipe is loaded for it; whoever is first has it.
        let engine = self.recipes.engine(recipe, Network::Live)?;
        let judged = !engine.plan().judges.is_empty();
        let replay = judged.then(|| self.recipes.engine(recipe, Network::Replay)).transpose()?;
        // Others may have begun it meanwhile, and nobody gives way for what is there.
        if let Some(run) = self.runs().named(&full) {
            return Ok(run);
        }
        let mut runs = self.runs_with_room(owner)?;
        if let Some(run) = runs.named(&full) {
            return Ok(run);
        }
        let judges = self.recipes.judges(recipe).unwrap_or("").to_owned();
        let kept = runs.names.get(&full).and_then(|id| runs.kept.get(id)).cloned();
        let (about, changed) = match kept {
            Some(mut about) => {
                let was = std::mem::replace(&mut about.fingerprint, judges.clone());
                (about, (was != judges).then_some(was))
            }
            None => (self.begin(owner, name, recipe, judges)?, None),
        };
        let folder = self.folder.join(&about.id);
        if let Err(error) = kept::private_folder(&folder) {
            return Err(Refusal::disk("the state folder cannot be written", &error));
        }
        let id = about.id.clone();
        runs.kept.remove(&id);
        let files = (folder, self.keeper.clone(), self.keep.clone());
        let run = Run::new(about, (engine, replay), files, Arc::clone(&self.meetings), changed);
        if let Some(left) = left {
            run.reopen(left);
        }
        run.tick(clock(), false);
        runs.names.insert(full, id.clone());
        runs.live.insert(id, Arc::clone(&run));
        Ok(run)
    }

    fn begin(&self, owner: &str, name: &str, recipe: &str, judges: String) -> Result<About, Refusal> {
        let id = random::<6>().map_err(|failure| Refusal::broken(failure.to_string()))?;
        let outline = self.recipes.outline(recipe).cloned().unwrap_or(serde_json::Value::Null);
        Ok(About {
            id: hex(&id),
            name: name.to_owned(),
            owner: owner.to_owned(),
            recipe: recipe.to_owned(),
            started: clock(),
            seen: clock(),
            steps: 0,
            rollouts: 0,
            groups: 0,
            total_mean: None,
            invalid_share: None,
            alarms: Vec::new(),
            fingerprint: judges,
            components: outline["components"].clone(),
            judges: outline["judges"].clone(),
            next_group: 0,
        })
    }

    /// What every run is, newest first, and whether it is live.
    pub(crate) fn all_runs(&self) -> Vec<(About, bool)> {
        let runs = self.runs();
        let live: Vec<Arc<Run>> = runs.live.values().cloned().collect();
        let kept: Vec<About> = runs.kept.values().cloned().collect();
        drop(runs);
        let live = live.iter().map(|run| (run.about(), true));
        let mut all: Vec<(About, bool)> = live.chain(kept.into_iter().map(|about| (about, false))).collect();
        all.sort_by(|(one, _), (other, _)| other.seen.total_cmp(&one.seen));
        all
    }

    /// A run by its id: what it is, where it lies, and itself where it is live.
    pub(crate) fn find(&self, id: &str) -> Result<(About, PathBuf, Option<Arc<Run>>), Refusal> {
        let runs = self.runs();
        let live = runs.live.get(id).cloned();
        let kept = runs.kept.get(id).cloned();
        drop(runs);
        match (live, kept) {
            (Some(run), _) => Ok((run.about(), run.folder().clone(), Some(run))),
            (None, Some(about)) => Ok((about, self.folder.join(id), None)),
            (None, None) => Err(Refusal::not_found("run.unknown", "there is no such run")),
        }
    }

    /// Waits until what is kept of runs lies on the disk.
    pub(crate) fn settle(&self) {
        self.keeper.flush();
    }

    /// The runs that are being scored for.
    pub(crate) fn live_runs(&self) -> Vec<Arc<Run>> {
        self.runs().live.values().cloned().collect()
    }

    /// How many runs are live.
    pub(crate) fn live(&self) -> usize {
        self.runs().live.len()
    }

    /// Ends steps that are over, and puts runs away that nothing comes for.
    pub(crate) fn tick(&self, all: bool) {
        for run in self.live_runs() {
            if !(all || run.idle() > RETIRED) {
                run.tick(clock(), false);
                continue;
            }
            let mut runs = self.runs();
            // Somebody may have come for it just now: besides this one, only the list may have it.
            if all || (Arc::strong_count(&run) <= 2 && run.idle() > RETIRED) {
                self.put_away(&mut runs, &run);
            }
        }
        for id in self.runs().forget(&self.keep, clock()) {
            self.keeper.remove(self.folder.join(id));
        }
        if all {
            self.keeper.flush();
        }
    }
}

impl Runs {
    /// The live run of that name.
    fn named(&self, name: &Name) -> Option<Arc<Run>> {
        self.names.get(name).and_then(|id| self.live.get(id)).cloned()
    }

    /// How many live runs a holder has.
    fn live_of(&self, owner: &str) -> usize {
        self.names.iter().filter(|((whose, ..), id)| whose == owner && self.live.contains_key(*id)).count()
    }

    /// Of the live runs for which nothing is being done, of one holder or of whoever has most, the one that has been idle for the
    /// longest time; and whether there is one that somebody has in hand just now.
    fn longest_idle(&self, owner: Option<&str>) -> (Option<Arc<Run>>, bool) {
        let mut is_looked_at = false;
        let mut found: Option<((usize, Duration), &Arc<Run>)> = None;
        for ((whose, ..), id) in
            self.names.iter().filter(|((whose, ..), _)| owner.is_none_or(|owner| whose == owner))
        {
            let Some(run) = self.live.get(id) else { continue };
            let idle = run.idle();
            if idle.is_zero() {
                continue;
            }
            // Only the list has it: nobody is about to have something scored for it.
            if Arc::strong_count(run) > 1 {
                is_looked_at = true;
                continue;
            }
            let rank = (self.live_of(whose), idle);
            if found.is_none_or(|(best, _)| rank > best) {
                found = Some((rank, run));
            }
        }
        (found.map(|(_, run)| Arc::clone(run)), is_looked_at)
    }

    /// Forgets the runs that are too old or too many; those that are live stay.
    fn forget(&mut self, keep: &Keep, now: f64) -> Vec<String> {
        let oldest = now - keep.days as f64 * 86_400.0;
        let (old, kept): (Vec<&About>, Vec<&About>) =
            self.kept.values().partition(|about| about.seen < oldest);
        let mut live: BTreeMap<&str, usize> = BTreeMap::new();
        for ((owner, ..), _) in self.names.iter().filter(|(_, id)| self.live.contains_key(*id)) {
            *live.entry(owner).or_default() += 1;
        }
        let many = too_many(kept, live, keep.runs);
        let gone: Vec<String> = old.into_iter().chain(many).map(|about| about.id.clone()).collect();
        for id in &gone {
            self.kept.remove(id);
            self.names.retain(|_, named| named != id);
        }
        gone
    }
}

/// The kept runs that are too many beside those that are live: the oldest of whoever has most, live ones included. A holder whose
/// runs are all live loses none, and makes nobody else lose any.
fn too_many<'r>(mut kept: Vec<&'r About>, mut held: BTreeMap<&'r str, usize>, most: usize) -> Vec<&'r About> {
    let mut count = kept.len() + held.values().sum::<usize>();
    for about in &kept {
        *held.entry(&about.owner).or_default() += 1;
    }
    kept.sort_by(|one, other| other.seen.total_cmp(&one.seen));
    let mut gone = Vec::new();
    while count > most {
        let largest = held.values().copied().max().unwrap_or(0);
        let is_largest = |about: &&About| held.get(about.owner.as_str()) == Some(&largest);
        let Some(at) = kept.iter().rposition(is_largest) else { break };
        let about = kept.remove(at);
        held.entry(&about.owner).and_modify(|held| *held -= 1);
        count -= 1;
        gone.push(about);
    }
    gone
}

/// The ids of runs by their names; of several of one name, the last.
fn names(kept: &BTreeMap<String, About>) -> BTreeMap<Name, String> {
    let mut all: Vec<&About> = kept.values().collect();
    all.sort_by(|one, other| one.seen.total_cmp(&other.seen));
    let name = |about: &About| (about.owner.clone(), about.name.clone(), about.recipe.clone());
    all.into_iter().map(|about| (name(about), about.id.clone())).collect()
}

/// The runs of the folder; one that cannot be read is named.
fn kept_runs(folder: &Path) -> BTreeMap<String, About> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let about = |path: PathBuf| {
        let about = kept::about(&path);
        if about.is_none() {
            let facts = [("folder", path.display().to_string().into())];
            log::say("warning", "a run cannot be read and is left out", &facts);
        }
        about.map(|about| (about.id.clone(), recount::after_a_crash(about, &path)))
    };
    entries.filter_map(|entry| about(entry.path())).collect()
}

/// Takes the folder, or says who has it.
fn own(folder: &Path) -> Result<std::fs::File, CliError> {
    let failure = |error| CliError::File(folder.display().to_string(), error);
    let path = folder.join("lock");
    let open = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut lock = open.map_err(failure)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::Error(error)) => return Err(failure(error)),
        Err(std::fs::TryLockError::WouldBlock) => {
            let pid = std::fs::read_to_string(&path).unwrap_or_else(|_| String::new());
            return Err(CliError::Arguments(format!(
                "{} is in use by another service, process {}: give --state another folder",
                folder.display(),
                pid.trim()
            )));
        }
    }
    // The number is only for a person.
    let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
    Ok(lock)
}

/// The names that a request may carry in its Host header. Under a loopback address these are the names of this machine and those
/// that the operator says, so that no page of somebody else's whose name is resolved to this machine is answered. Elsewhere tokens
/// are asked for, which such a page has none of, and any name does unless the operator says which.
fn hosts(said: &[String], bind: IpAddr, tokens: bool) -> Vec<String> {
    if said.is_empty() && tokens && !bind.is_loopback() {
        return Vec::new();
    }
    let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let bound = match bind {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let said = said.iter().map(|host| host.to_ascii_lowercase());
    own.into_iter().chain([bound]).chain(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_are_too_old_or_too_many_are_forgotten() {
        let about = |at: u64| -> (String, About) {
            let value = serde_json::json!({
                "id": at.to_string(), "name": at.to_string(), "owner": "o", "recipe": "r", "started": 0.0,
                "seen": at as f64 * 86_400.0, "steps": 0, "rollouts": 0, "groups": 0, "total_mean": null,
                "invalid_share": null, "alarms": [], "fingerprint": "", "components": [], "judges": [],
            });
            (at.to_string(), serde_json::from_value(value).unwrap())
        };
        let kept: BTreeMap<String, About> = (0..10).map(about).collect();
        let mut runs = Runs { live: BTreeMap::new(), names: names(&kept), kept };
        let keep = Keep { days: 7, runs: 4, ..Keep::default() };
        assert_eq!(runs.forget(&keep, 12.0 * 86_400.0), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(runs.forget(&keep, 14.0 * 86_400.0), ["6"]);
        assert_eq!((runs.kept.len(), runs.names.len()), (3, 3));
        assert!(runs.forget(&keep, 14.0 * 86_400.0).is_empty());
    }

    #[test]
    fn whoever_has_most_runs_loses_its_oldest_first() {
        let about = |owner: &str, at: u64| -> About {
            let value = serde_json::json!({
                "id": format!("{owner}{at}"), "name": "n", "owner": owner, "recipe": "r", "started": 0.0, "seen": at,
                "steps": 0, "rollouts": 0, "groups": 0, "total_mean": null, "invalid_share": null, "alarms": [],
                "fingerprint": "", "components": [], "judges": [],
            });
            serde_json::from_value(value).unwrap()
        };
        // The runs of the first are older than all others.
        let all: Vec<About> =
            (0..3).map(|at| about("a", at)).chain((10..16).map(|at| about("b", at))).collect();
        let gone = |live: &[(&'static str, usize)], most: usize| -> Vec<&str> {
            let live: BTreeMap<&str, usize> = live.iter().copied().collect();
            too_many(all.iter().collect(), live, most).into_iter().map(|about| about.id.as_str()).collect()
        };
        assert_eq!(gone(&[], 9), Vec::<&str>::new());
        assert_eq!(gone(&[], 6), ["b10", "b11", "b12"]);
        assert_eq!(gone(&[], 4), ["b10", "b11", "b12", "a0", "b13"], "of two that have as many, the oldest");
        assert_eq!(gone(&[("a", 4)], 10), ["a0", "a1", "b10"], "live ones count");
        assert_eq!(gone(&[("c", 20)], 5), Vec::<&str>::new(), "who has only live ones pushes nobody out");
    }
}
