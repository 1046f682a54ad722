//! What does the service know of a training? A run: its engine, the groups that are coming together, and its steps.

use super::admission::Load;
use super::alarms::{self, Alarm, Before};
use super::config::Keep;
use super::group::Sample;
use super::kept::{self, About, Keeper};
use plaudit::court::Account;
use plaudit::engine::Engine;
use plaudit::join::{Join, Observer, Policy};
use plaudit::outcome::OutcomeKind;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::statistics::Statistics;
use plaudit::statistics::distribution::Distribution;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long what comes without a number of a step is counted together, in seconds.
const WINDOW: f64 = 10.0;
/// How long a step stays open after a newer one has come, for those who are late.
const LATE: Duration = Duration::from_secs(3);
/// How long the newest step stays open without anything coming.
const QUIET: Duration = Duration::from_secs(600);
/// How many steps that have ended are at hand.
const AT_HAND: usize = 1000;
/// Of how many steps the totals are what the next one's are compared with.
const COMPARED: usize = 5;
/// How many groups of a step are kept besides, because something in them is invalid.
const BAD: usize = 8;
/// What the groups of one step that remember for latecomers may take.
const REMEMBERED: usize = 64 << 20;

/// A training that is being scored for.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: Arc<str>,
    pub(crate) engine: Arc<Engine>,
    /// What tells questions from the journal, where there are judges.
    replay: Option<Arc<Engine>>,
    pub(crate) load: Arc<Load>,
    folder: PathBuf,
    keeper: Keeper,
    keep: Keep,
    joining: usize,
    state: Mutex<State>,
    /// Itself, for those who tell it what was scored.
    me: Weak<Self>,
}

#[derive(Debug)]
struct State {
    about: About,
    open: BTreeMap<u64, Open>,
    ended: VecDeque<(u64, Arc<str>)>,
    /// The totals of the last steps.
    totals: VecDeque<Distribution>,
    /// What was asked before any step was open.
    accounts: Vec<Account>,
    touched: Instant,
    /// Whether something has come since it was last written down.
    fresh: bool,
    /// Whether its steps have no numbers of their own, and are cut by time.
    timed: bool,
    /// What the judges were before, where they are others now.
    changed: Option<String>,
}

/// A step that has not ended.
#[derive(Debug)]
struct Open {
    from: f64,
    to: f64,
    touched: Instant,
    statistics: Statistics,
    join: Option<Arc<Join>>,
    accounts: Vec<Account>,
    kept: usize,
    bad: usize,
}

/// A step as it is written and shown.
#[derive(Serialize)]
struct Shown<'s> {
    step: u64,
    from: f64,
    to: f64,
    open: bool,
    statistics: &'s Statistics,
    judges: &'s [Account],
    alarms: Vec<Alarm>,
}

/// The seconds since 1970.
pub(crate) fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Open {
    /// Everything that was scored in it.
    fn all(&self) -> Statistics {
        let mut all = self.statistics.clone();
        if let Some(join) = &self.join {
            all.merge(&join.statistics());
        }
        all
    }

    fn waits(&self) -> bool {
        self.join.as_ref().is_some_and(|join| join.status().waiting > 0)
    }
}

impl Run {
    pub(crate) fn new(
        about: About,
        (engine, replay): (Engine, Option<Engine>),
        (folder, keeper, keep): (PathBuf, Keeper, Keep),
        joining: usize,
        changed: Option<String>,
    ) -> Arc<Self> {
        let id = Arc::from(about.id.as_str());
        let state = State {
            about,
            open: BTreeMap::new(),
            ended: VecDeque::new(),
            totals: VecDeque::new(),
            accounts: Vec::new(),
            touched: Instant::now(),
            fresh: true,
            timed: false,
            changed,
        };
        Arc::new_cyclic(|me| Self {
            id,
            engine: Arc::new(engine),
            replay: replay.map(Arc::new),
            load: Arc::new(Load::default()),
            folder,
            keeper,
            keep,
            joining,
            state: Mutex::new(state),
            me: Weak::clone(me),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is, as of now.
    pub(crate) fn about(&self) -> About {
        let state = self.state();
        let mut about = state.about.clone();
        about.steps += state.open.len() as u64;
        for open in state.open.values() {
            let all = open.all();
            about.rollouts += all.rollouts;
            about.groups += all.groups.count;
            if all.rollouts > 0 {
                about.total_mean = (all.total.moments.count > 0).then_some(all.total.moments.mean);
                about.invalid_share =
                    Some(all.outcomes.of(OutcomeKind::Invalid) as f64 / all.rollouts as f64);
            }
        }
        about
    }

    /// Takes up the steps that it left behind: those that had ended are at hand, and those that had not end now.
    pub(crate) fn reopen(&self) {
        let (steps, open) = (self.folder.join("steps.jsonl"), self.folder.join("open.json"));
        let lines = |path: &PathBuf| kept::lines(path).unwrap_or_else(|_| Vec::new());
        let cut = lines(&open);
        let mut state = self.state();
        for line in lines(&steps).into_iter().chain(cut.iter().cloned()) {
            if let Some(step) = kept::number(&line) {
                state.ended.push_back((step, Arc::from(line)));
            }
        }
        while state.ended.len() > AT_HAND {
            state.ended.pop_front();
        }
        state.about.steps += cut.len() as u64;
        drop(state);
        for line in cut {
            self.keeper.line(steps.clone(), line);
        }
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// How long nothing has come.
    pub(crate) fn idle(&self) -> Duration {
        let state = self.state();
        if self.load.rollouts() > 0 || state.open.values().any(Open::waits) {
            return Duration::ZERO;
        }
        state.touched.elapsed()
    }

    /// The number of the step that something belongs to: its own, or that of the time.
    pub(crate) fn step(&self, given: Option<u64>) -> u64 {
        let mut state = self.state();
        state.timed = given.is_none();
        given.unwrap_or_else(|| state.window(clock()))
    }

    /// Takes in what was scored.
    pub(crate) fn observe<R: Borrow<Rollout<'static>>>(
        &self,
        step: u64,
        rollouts: &[R],
        report: &Report,
        validate: Option<bool>,
    ) {
        let mut state = self.state();
        let open = state.touch(step, &self.engine);
        open.statistics.merge(&report.statistics);
        drop(state);
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
        let open = state.touch(step, &self.engine);
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
            next += 1;
        }
        state.about.next_group = next;
        drop(state);
        for (id, group) in chosen {
            let replay = self.replay.clone();
            let sample = Sample::of((id, step), &group.members, (rollouts, report), validate, replay);
            self.keeper.group(self.folder.clone(), sample, self.keep.bytes);
        }
    }

    /// Where the rollouts of a step meet.
    pub(crate) fn join(&self, step: u64) -> Arc<Join> {
        let mut state = self.state();
        let open = state.touch(step, &self.engine);
        let make = || {
            let me = Weak::clone(&self.me);
            let observer: Observer = Box::new(move |rollouts, report| {
                if let Some(run) = me.upgrade() {
                    run.sample(step, rollouts, report, None);
                }
            });
            let policy = Policy::of(self.engine.plan());
            let policy = Policy { remember_bytes: REMEMBERED, most_waiting: self.joining, ..policy };
            Arc::new(Join::observed(&self.engine, policy, Some(observer)))
        };
        Arc::clone(open.join.get_or_insert_with(make))
    }

    /// The steps after a number, at most so many of the newest, as they are written. `None`: older ones are wanted than are at
    /// hand.
    pub(crate) fn steps(&self, after: Option<u64>, most: usize) -> (Vec<String>, bool) {
        self.absorb();
        let state = self.state();
        let wanted = |step: u64| after.is_none_or(|after| step > after);
        let ended = state.ended.iter().filter(|(step, _)| wanted(*step)).map(|(_, text)| text.to_string());
        let open = state.open.iter().filter(|(step, _)| wanted(**step));
        let open = open.filter_map(|(step, open)| state.shown(*step, open, true));
        let mut steps: Vec<String> = ended.chain(open).collect();
        let begun = state.about.steps as usize > state.ended.len();
        let older =
            begun && after.is_none_or(|after| state.ended.front().is_none_or(|(first, _)| *first > after));
        steps.drain(..steps.len().saturating_sub(most));
        (steps, older)
    }

    /// Takes in what judges were asked since the last time.
    fn absorb(&self) {
        let accounts = self.engine.take_accounts();
        let mut state = self.state();
        let State { open, accounts: spare, .. } = &mut *state;
        let into = open.values_mut().next_back().map_or(spare, |open| &mut open.accounts);
        add(into, &accounts);
    }

    /// Ends the steps that are over, and writes down where the others stand.
    pub(crate) fn tick(&self, now: f64, all: bool) {
        self.absorb();
        let mut state = self.state();
        let newest = state.open.keys().next_back().copied();
        let window = state.timed.then(|| state.window(now));
        let is_over = |step: u64, open: &Open| {
            let quiet = open.touched.elapsed();
            let passed = Some(step) != newest || window.is_some_and(|window| step < window) || quiet > QUIET;
            all || (passed && quiet > LATE && !open.waits())
        };
        let over = state.open.iter().filter(|(step, open)| is_over(**step, open)).map(|(step, _)| *step);
        let over: Vec<u64> = over.collect();
        for step in over {
            let Some(open) = state.open.remove(&step) else { continue };
            let Some(text) = state.end(step, &open) else { continue };
            self.keeper.line(self.folder.join("steps.jsonl"), text);
            state.fresh = true;
        }
        if !std::mem::take(&mut state.fresh) {
            return;
        }
        let open: Vec<String> =
            state.open.iter().filter_map(|(step, open)| state.shown(*step, open, false)).collect();
        let about = serde_json::to_string(&state.about);
        drop(state);
        let open = open.into_iter().map(|line| line + "\n").collect();
        self.keeper.whole(self.folder.join("open.json"), open);
        if let Ok(about) = about {
            self.keeper.whole(self.folder.join("run.json"), about);
        }
    }
}

impl State {
    /// The number of the time that something came at.
    fn window(&self, now: f64) -> u64 {
        ((now - self.about.started).max(0.0) / WINDOW) as u64
    }

    /// The step of that number, which is opened where it is not.
    fn touch(&mut self, step: u64, engine: &Engine) -> &mut Open {
        let now = clock();
        (self.about.seen, self.touched, self.fresh) = (now, Instant::now(), true);
        let spare = &mut self.accounts;
        let open = self.open.entry(step).or_insert_with(|| Open {
            from: now,
            to: now,
            touched: Instant::now(),
            statistics: Statistics::of(engine.plan()),
            join: None,
            accounts: std::mem::take(spare),
            kept: 0,
            bad: 0,
        });
        (open.to, open.touched) = (now, Instant::now());
        open
    }

    fn alarms(&self, step: u64, statistics: &Statistics) -> Vec<Alarm> {
        let mut before: Option<Distribution> = None;
        for totals in &self.totals {
            match &mut before {
                Some(before) => before.merge(totals),
                None => before = Some(totals.clone()),
            }
        }
        let judges = self.changed.as_deref().map(|was| (was, self.about.fingerprint.as_str()));
        alarms::of(step, statistics, &Before { totals: before.as_ref(), judges })
    }

    fn shown(&self, step: u64, open: &Open, is_open: bool) -> Option<String> {
        let statistics = open.all();
        let alarms = self.alarms(step, &statistics);
        let (from, to, judges) = (open.from, open.to, open.accounts.as_slice());
        let shown = Shown { step, from, to, open: is_open, statistics: &statistics, judges, alarms };
        serde_json::to_string(&shown).ok().filter(|_| statistics.rollouts > 0)
    }

    /// Counts a step that is over; what it is written as, where there is anything in it.
    fn end(&mut self, step: u64, open: &Open) -> Option<String> {
        let statistics = open.all();
        let text = self.shown(step, open, false)?;
        self.about.alarms = self.alarms(step, &statistics);
        self.changed = None;
        self.about.steps += 1;
        self.about.rollouts += statistics.rollouts;
        self.about.groups += statistics.groups.count;
        self.about.total_mean = (statistics.total.moments.count > 0).then_some(statistics.total.moments.mean);
        let invalid = statistics.outcomes.of(OutcomeKind::Invalid) as f64;
        self.about.invalid_share = Some(invalid / statistics.rollouts.max(1) as f64);
        self.totals.push_back(statistics.total);
        if self.totals.len() > COMPARED {
            self.totals.pop_front();
        }
        self.ended.push_back((step, Arc::from(text.as_str())));
        if self.ended.len() > AT_HAND {
            self.ended.pop_front();
        }
        Some(text)
    }
}

fn add(into: &mut Vec<Account>, accounts: &[Account]) {
    if into.is_empty() {
        into.extend_from_slice(accounts);
        return;
    }
    into.iter_mut().zip(accounts).for_each(|(ours, theirs)| ours.merge(theirs));
}
