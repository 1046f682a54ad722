//! What does the service know of a training? A run: its engine, the groups that are coming together, and its steps.

use super::admission::Load;
use super::config::Keep;
use super::dialect::cohort::Cohorts;
use super::group::Sample;
use super::kept::{self, About, Keeper};
use super::reply::Refusal;
use super::steps::{Newest, Open, Steps, identity};
use plaudit::engine::Engine;
use plaudit::join::{Join, Observer, Policy};
use plaudit::outcome::OutcomeKind;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many groups of a step are kept besides, because something in them is invalid.
const BAD: usize = 8;
/// What scored groups may take that the first meeting place remembers for latecomers, and what they may take at any.
const REMEMBERED: usize = 64 << 20;
const REMEMBERED_AT_LEAST: usize = 256 << 10;
/// How many bytes of the steps that a run has left behind are read when it is taken up.
const REOPENED: u64 = 4 << 20;

/// A training that is being scored for.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: Arc<str>,
    pub(crate) engine: Arc<Engine>,
    /// What tells questions from the journal, where there are judges.
    replay: Option<Arc<Engine>>,
    pub(crate) load: Arc<Load>,
    /// Its rollouts that wait for their groups.
    pub(crate) joining: Arc<Load>,
    /// The bytes of both.
    pub(crate) texts: Arc<Load>,
    /// The groups that are being gathered for clients that name none.
    cohorts: Mutex<Cohorts>,
    folder: PathBuf,
    keeper: Keeper,
    keep: Keep,
    meetings: Arc<Meetings>,
    steps: Mutex<Steps>,
    /// Where rollouts without a step meet, and how often what was scored there has been counted.
    loose: Mutex<(Option<Arc<Join>>, u64)>,
    /// Itself, for those who tell it what was scored.
    me: Weak<Self>,
}

/// All places where rollouts meet, over all runs.
#[derive(Debug)]
pub(crate) struct Meetings {
    /// How many rollouts may wait at one of them.
    most_waiting: usize,
    /// Every place holds one of these, so that they can be counted.
    open: Arc<()>,
}

impl Meetings {
    pub(crate) fn new(most_waiting: usize) -> Self {
        Self { most_waiting, open: Arc::new(()) }
    }

    /// What a place that is just made may remember: the more there are, the less, so that all of them together stay small.
    fn remembered(&self) -> usize {
        (REMEMBERED / (Arc::strong_count(&self.open) - 1).max(1)).max(REMEMBERED_AT_LEAST)
    }
}

/// The seconds since 1970.
pub(crate) fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The steps that a run has left behind.
#[derive(Debug)]
pub(crate) struct Left {
    ended: Vec<String>,
    /// Those that had not ended when the service was killed.
    cut: Vec<String>,
    /// The number of the next group that is kept: the last ones may have been written when the run was not any more.
    next_group: u64,
}

impl Left {
    /// What lies in a folder: the newest of it, as far as it can be read.
    pub(crate) fn of(folder: &Path) -> Self {
        let lines = |name: &str| {
            let lines = kept::newest(&folder.join(name), REOPENED).unwrap_or_else(|_| Vec::new());
            lines.into_iter().filter(|line| kept::number(line).is_some()).collect::<Vec<_>>()
        };
        let (ended, mut cut) = (lines("steps.jsonl"), lines("open.json"));
        // It may have been killed after a step was written and before it was no longer among the open ones.
        cut.retain(|line| !ended.iter().any(|known| identity(known) == identity(line)));
        let groups = kept::newest(&folder.join("groups.jsonl"), REOPENED).unwrap_or_else(|_| Vec::new());
        let next_group = groups.iter().filter_map(|line| kept::group_number(line)).max();
        Self { ended, cut, next_group: next_group.map_or(0, |last| last.saturating_add(1)) }
    }
}

impl Run {
    pub(crate) fn new(
        about: About,
        (engine, replay): (Engine, Option<Engine>),
        (folder, keeper, keep): (PathBuf, Keeper, Keep),
        meetings: Arc<Meetings>,
        changed: Option<String>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            id: Arc::from(about.id.as_str()),
            engine: Arc::new(engine),
            replay: replay.map(Arc::new),
            load: Arc::new(Load::default()),
            joining: Arc::new(Load::default()),
            texts: Arc::new(Load::default()),
            cohorts: Mutex::new(Cohorts::default()),
            folder,
            keeper,
            keep,
            meetings,
            steps: Mutex::new(Steps::new(about, changed)),
            loose: Mutex::new((None, 0)),
            me: Weak::clone(me),
        })
    }

    fn state(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cohorts(&self) -> MutexGuard<'_, Cohorts> {
        self.cohorts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loose(&self) -> MutexGuard<'_, (Option<Arc<Join>>, u64)> {
        self.loose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is, as of now.
    pub(crate) fn about(&self) -> About {
        self.count_loose();
        self.state().about()
    }

    /// What it is, and its newest step that is complete.
    pub(crate) fn newest(&self) -> (About, Option<Newest>) {
        self.count_loose();
        let state = self.state();
        (state.about.clone(), state.newest())
    }

    /// Takes up the steps that it left behind: those that had ended are at hand, and those that had not end now. All of them are
    /// counted in what the run is.
    pub(crate) fn reopen(&self, left: Left) {
        let mut state = self.state();
        for line in left.ended.iter().chain(&left.cut) {
            state.recall(line);
        }
        state.about.next_group = state.about.next_group.max(left.next_group);
        drop(state);
        for line in left.cut {
            self.keeper.line(self.folder.join("steps.jsonl"), line);
        }
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// How long nothing has come.
    pub(crate) fn idle(&self) -> Duration {
        let waits = self.loose().0.as_ref().is_some_and(|join| join.status().waiting > 0);
        let state = self.state();
        if waits || self.load.rollouts() > 0 || state.open.values().any(Open::waits) {
            return Duration::ZERO;
        }
        state.touched.elapsed()
    }

    /// Begins with something that belongs to a step: its own, or that of the time.
    pub(crate) fn begin(&self, given: Option<u64>) -> Result<u64, Refusal> {
        let mut state = self.state();
        let now = clock();
        let step = given.unwrap_or_else(|| state.window(now));
        if !state.has_room(step) {
            let message = "too many steps of this run are open, and rollouts of each wait for their groups";
            return Err(Refusal::busy("run.too_many_steps", message, 5));
        }
        state.timed = given.is_none();
        // Opened now, so that what judges are asked for it is counted there.
        state.touch(step, now, &self.engine);
        Ok(step)
    }

    /// Takes in what was scored.
    pub(crate) fn observe<R: Borrow<Rollout<'static>>>(
        &self,
        step: u64,
        rollouts: &[R],
        report: &Report,
        validate: Option<bool>,
    ) {
        self.state().touch(step, clock(), &self.engine).statistics.merge(&report.statistics);
        self.sample(step, rollouts, report, validate);
    }

    /// Keeps some of the groups.
    fn sample<R: Borrow<Rollout<'static>>>(
        &self,
        step: u64,
        rollouts: &[R],
        report: &Report,
        validate: Option<bool>,
    ) {
        let mut chosen = Vec::new();
        let mut state = self.state();
        let mut next = state.about.next_group;
        let open = state.touch(step, clock(), &self.engine);
        for group in &report.groups {
            let is_bad = |at: &usize| report.rows[*at].total.kind() == OutcomeKind::Invalid;
            if open.kept < self.keep.groups {
                open.kept += 1;
            } else if open.bad < BAD.min(self.keep.groups) && group.members.iter().any(is_bad) {
                open.bad += 1;
            } else {
                continue;
            }
            chosen.push((next, group));
            next = next.saturating_add(1);
        }
        state.about.next_group = next;
        drop(state);
        for (id, group) in chosen {
            let replay = self.replay.clone();
            let sample = Sample::of((id, step), &group.members, (rollouts, report), validate, replay);
            self.keeper.group(self.folder.clone(), sample, self.keep.bytes);
        }
    }

    /// Where rollouts meet: those of a step with each other, and those without one with each other, so that a group is not cut
    /// where one step by time becomes the next.
    pub(crate) fn join(&self, step: Option<u64>) -> Arc<Join> {
        let Some(step) = step else {
            let mut loose = self.loose();
            return Arc::clone(loose.0.get_or_insert_with(|| self.meeting(None)));
        };
        let mut state = self.state();
        let open = state.touch(step, clock(), &self.engine);
        Arc::clone(open.join.get_or_insert_with(|| self.meeting(Some(step))))
    }

    /// Answers whoever waits for its group: nobody else comes any more.
    pub(crate) fn close_joins(&self) {
        let loose = self.loose().0.clone();
        let joins: Vec<Arc<Join>> = self.state().open.values().filter_map(|open| open.join.clone()).collect();
        // Those who are told may ask the run.
        for join in loose.into_iter().chain(joins) {
            join.close();
        }
    }

    fn meeting(&self, step: Option<u64>) -> Arc<Join> {
        let (me, open) = (Weak::clone(&self.me), Arc::clone(&self.meetings.open));
        let observer: Observer = Box::new(move |rollouts, report| {
            let _open = &open;
            if let Some(run) = me.upgrade() {
                let step = step.unwrap_or_else(|| run.state().window(clock()));
                run.sample(step, rollouts, report, None);
            }
        });
        let (remember_bytes, most_waiting) = (self.meetings.remembered(), self.meetings.most_waiting);
        let policy = Policy { remember_bytes, most_waiting, ..Policy::of(self.engine.plan()) };
        Arc::new(Join::observed(&self.engine, policy, Some(observer)))
    }

    /// Counts what was scored since the last time among rollouts without a step.
    fn count_loose(&self) {
        let mut loose = self.loose();
        loose.1 += 1;
        let Some(since) = loose.0.as_ref().map(|join| join.take_step(loose.1)) else { return };
        drop(loose);
        if since.statistics.rollouts > 0 {
            let now = clock();
            let mut state = self.state();
            let step = state.window(now);
            state.touch(step, now, &self.engine).statistics.merge(&since.statistics);
        }
    }

    /// The steps after a number, at most so many of the newest, as they are written; and whether older ones are wanted than are
    /// at hand.
    pub(crate) fn steps(&self, after: Option<u64>, most: usize) -> (Vec<String>, bool) {
        self.count_loose();
        let accounts = self.engine.take_usage();
        let mut state = self.state();
        state.absorb(&accounts);
        let (mut steps, older) = state.after(after);
        steps.drain(..steps.len().saturating_sub(most));
        (steps, older)
    }

    /// Ends the steps that are over, and writes down where the others stand.
    pub(crate) fn tick(&self, now: f64, all: bool) {
        self.count_loose();
        let accounts = self.engine.take_usage();
        let mut state = self.state();
        state.absorb(&accounts);
        let ended = state.end_those_over(now, all);
        // Where the disk is slow, where it stands is written when there is time, and all of it at the end. What could not be
        // written is written again.
        let failures = self.keeper.failures();
        let is_lost = std::mem::replace(&mut state.failures, failures) != failures;
        state.fresh |= is_lost;
        let writes = state.fresh && (all || !self.keeper.is_behind());
        let about = writes.then(|| (serde_json::to_string(&state.about), state.still_open(false)));
        state.fresh &= !writes;
        drop(state);
        for line in ended {
            self.keeper.line(self.folder.join("steps.jsonl"), line);
        }
        if let Some((Ok(about), open)) = about {
            let open = open.into_iter().map(|line| line + "\n").collect();
            self.keeper.whole(self.folder.join("open.json"), open);
            self.keeper.whole(self.folder.join("run.json"), about);
        }
    }
}
