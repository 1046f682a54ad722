//! Join: collects rollouts that arrive one at a time into groups.
//!
//! Callers hand in one rollout each, with the group's key and size. A group is scored once it is complete or its deadline
//! passes, and every caller gets its own answer, exactly once.
//!
//! | Case | What happens |
//! |---|---|
//! | complete | as many members as expected: the group is scored at once |
//! | size 1 | complete with its first member |
//! | deadline | `groups.timeout` after the first member, or when a caller's own, shorter time is over: the group closes as it is |
//! | quiet | half of the members are there and for `groups.quiet` nobody came: the group closes as it is |
//! | closed as it is | `groups.partial`: `score` scores who is there (a comparison needs two), `invalid` makes all members invalid, `group.incomplete` |
//! | late | scored together with the remembered members of its group, whose own answers stand; flagged `late` |
//! | late, group forgotten | while its name is known: scored alone, or invalid where `groups.partial` is `invalid`; after that it begins a new group |
//! | duplicate | same member name, same response: gets the answer of the first and is not counted; without names, equal responses are two members |
//! | false duplicate | same member name, another response: the first stands, the second is invalid, `group.duplicate` |
//! | members disagree about the size | the largest counts, so that nobody is left out |
//! | more members than the size | the group was complete without them: they are late |
//! | members disagree about `validate` | the first counts |
//! | equal prompts, other keys | other groups: only the key counts |
//! | caller vanishes | its rollout stays a member; its answer goes nowhere. Where the join is told (`hand_in_watched`): while the group is open, the rollout gives its place up to another one that needs it, or after two minutes; until then a group that has all its members waits for it to be handed in again |
//! | member leaves | one less is expected, also before anybody has arrived; a waiting one is answered `group.left`; one that comes all the same takes its place back |
//! | nothing compares | nobody waits: each is scored and answered at once, only one without a total waits to be told of its siblings; groups are counted all the same |
//! | too many wait | refused at once, `engine.overloaded`: hand it in again later |
//! | join closed | whoever waits for its group is answered `group.closed`; what is being scored is still answered |
//! | something panics | whoever is concerned is answered `engine.panic` |
//!
//! A key must not come back for other rollouts while its group is remembered: those would be late, or duplicates.
//!
//! The core is a state machine without clock or threads (`state.rs`). Around it there is one lock, the engine's threads, on
//! which groups are scored and callers answered, and one timer thread that sleeps until the next group's deadline.

mod answer;
mod close;
mod effect;
mod group;
mod lru;
mod policy;
mod state;

pub use answer::{Deliver, Joined};
pub use policy::{Arrival, Policy, Status};

use crate::engine::{Engine, ScoreOptions};
use crate::error::RunError;
use crate::exec::{CancelToken, TraceSpan, lock};
use crate::judge::client::UsageMeter;
use crate::plan::Plan;
use crate::reason::Code;
use crate::report::Report;
use crate::rollout::Rollout;
use crate::statistics::Statistics;
use crate::statistics::steps::{Step, Steps};
use answer::Caller;
use effect::{BatchKind, BatchTarget, Effect, JoinInfo, MemberAnswer, MemberResult, ScoreBatch};
use group::{GroupId, JoinRequest, SharedRollout};
use state::JoinState;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Callback that sees everything that was scored together, before the waiting callers get their answers. It runs on a thread of
/// the engine's, which it must not block for long.
pub type Observer = Box<dyn Fn(&[Arc<Rollout<'static>>], &Report) + Send + Sync>;

/// Brings rollouts that come one at a time together. It starts nothing before the first one comes; dropping it closes it and
/// lets go of what is being scored.
#[derive(Debug)]
pub struct Join(Arc<Inner>);

struct Inner {
    engine: Arc<Engine>,
    observer: Option<Observer>,
    /// Counts what judges are asked, where somebody wants to know.
    usage: Option<Arc<UsageMeter>>,
    plan: Arc<Plan>,
    state: Mutex<JoinState<Caller>>,
    /// Wakes the timer thread.
    wake: Condvar,
    /// Whether the timer thread could be started.
    timer: OnceLock<bool>,
    /// How many callers there have been.
    callers: AtomicU64,
    steps: Mutex<Steps>,
    cancel: CancelToken,
}

impl fmt::Debug for Inner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inner").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Join {
    /// A join in front of an engine, as its recipe says.
    pub fn new(engine: &Arc<Engine>) -> Self {
        Self::with(engine, Policy::of(engine.plan()))
    }

    /// A join with a policy of its own.
    pub fn with(engine: &Arc<Engine>, policy: Policy) -> Self {
        Self::observed(engine, policy, None, None)
    }

    /// The same, with an observer that sees every group, or every rollout where nothing is compared. A late member is not
    /// shown again with its group. `usage` counts all judge calls, those of prescoring among them.
    pub fn observed(
        engine: &Arc<Engine>,
        policy: Policy,
        observer: Option<Observer>,
        usage: Option<Arc<UsageMeter>>,
    ) -> Self {
        let plan = engine.shared_plan();
        Self(Arc::new(Inner {
            engine: Arc::clone(engine),
            observer,
            usage,
            state: Mutex::new(JoinState::new(policy, !plan.compares_groups())),
            wake: Condvar::new(),
            timer: OnceLock::new(),
            callers: AtomicU64::new(0),
            steps: Mutex::new(Steps::of(&plan)),
            cancel: CancelToken::new(),
            plan,
        }))
    }

    /// Hands one rollout in. `deliver` is called exactly once, with the answer: at once where there is one, else on a thread
    /// of the engine's or the join's, which it must not hold up for long.
    pub fn hand_in(&self, arrival: Arrival, deliver: impl FnOnce(Joined) + Send + 'static) {
        self.enter(arrival, deliver);
    }

    /// The same for a caller that may disconnect before it is answered. It counts as connected until the returned value is
    /// dropped.
    pub fn hand_in_watched(
        &self,
        arrival: Arrival,
        deliver: impl FnOnce(Joined) + Send + 'static,
    ) -> Presence {
        let (group, caller) = self.enter(arrival, deliver);
        Presence { inner: Arc::downgrade(&self.0), group, caller }
    }

    fn enter(&self, arrival: Arrival, deliver: impl FnOnce(Joined) + Send + 'static) -> (GroupId, u64) {
        let Arrival { group, member, size, timeout, validate, mut rollout, span } = arrival;
        let caller = Caller::new(&self.0.plan, span.clone(), Box::new(deliver));
        let (name, number) = (GroupId::of(&group), self.0.callers.fetch_add(1, Ordering::Relaxed));
        let member = member.map(Into::into);
        let request = JoinRequest { group: name, member, size, timeout, validate, caller: number };
        rollout.group = Some(Cow::Owned(group));
        rollout.shrink();
        let rollout = Arc::new(rollout);
        if !self.start_timer() {
            self.0.run(vec![Effect::refuse(caller, rollout, Code::Overloaded, JoinInfo::default())], None);
            return (name, number);
        }
        self.0.change_in(span, |state, now| state.arrive(now, request, rollout, caller));
        (name, number)
    }

    /// Says that a member of a group will not come, or goes: one less is expected.
    pub fn leave(&self, group: &str, member: Option<&str>) {
        self.0.change(|state, now| state.leave(now, GroupId::of(group), member));
    }

    /// Closes every open group now, as if its time were over.
    pub fn flush(&self) {
        self.0.change(|state, now| state.flush(now));
    }

    /// Rejects all arrivals from now on, and answers the members of open groups. What is being scored is still answered.
    pub fn close(&self) {
        self.0.change(|state, now| state.shut_down(now));
        self.0.wake.notify_all();
    }

    /// Makes the timer thread read the clock again, for a clock that does not run by itself.
    pub fn wake_clock(&self) {
        // The lock is taken, so that a timer thread that is about to sleep has read the clock before and is woken now.
        drop(self.0.state());
        self.0.wake.notify_all();
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.0.state().status()
    }

    /// Everything that has been scored so far.
    pub fn statistics(&self) -> Statistics {
        self.0.steps().statistics()
    }

    /// What counts its judge calls, where it was given.
    pub fn usage_meter(&self) -> Option<&UsageMeter> {
        self.0.usage.as_deref()
    }

    /// Ends a step of the training: what was scored since the one before.
    pub fn take_step(&self, step: u64) -> Step {
        self.0.steps().take(step)
    }

    /// The step that ended last.
    pub fn last_step(&self) -> Option<Step> {
        self.0.steps().last().cloned()
    }

    /// Starts the timer thread, once.
    fn start_timer(&self) -> bool {
        *self.0.timer.get_or_init(|| {
            let inner = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("plaudit-join".to_owned());
            thread.spawn(move || inner.run_timer()).is_ok()
        })
    }
}

/// The connection of a caller. Dropping it before the answer has come marks the caller as disconnected.
#[derive(Debug)]
#[must_use = "a caller is gone when this is dropped"]
pub struct Presence {
    inner: Weak<Inner>,
    group: GroupId,
    caller: u64,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            let now = inner.engine.clock().now();
            inner.state().disconnect(now, self.group, self.caller);
        }
    }
}

impl Drop for Join {
    fn drop(&mut self) {
        self.close();
        self.0.cancel.cancel();
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, JoinState<Caller>> {
        lock(&self.state)
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        lock(&self.steps)
    }

    /// Applies an event to the state machine and runs the effects.
    fn change(
        self: &Arc<Self>,
        change: impl FnOnce(&mut JoinState<Caller>, Duration) -> Vec<Effect<Caller>>,
    ) {
        self.change_in(None, change);
    }

    /// The same in a step of a caller.
    fn change_in(
        self: &Arc<Self>,
        span: Option<Arc<dyn TraceSpan>>,
        change: impl FnOnce(&mut JoinState<Caller>, Duration) -> Vec<Effect<Caller>>,
    ) {
        let mut state = self.state();
        let before = state.next_due();
        let effects = change(&mut state, self.engine.clock().now());
        let earlier = state.next_due().is_some_and(|due| before.is_none_or(|before| due < before));
        drop(state);
        if earlier {
            self.wake.notify_all();
        }
        self.run(effects, span);
    }

    /// Closes groups whose time is over, until the join is closed.
    fn run_timer(self: Arc<Self>) {
        let mut state = self.state();
        while !state.is_shut() {
            let now = self.engine.clock().now();
            let effects = state.tick(now);
            if !effects.is_empty() {
                drop(state);
                self.run(effects, None);
                state = self.state();
                continue;
            }
            state = match state.next_due() {
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_sub(now);
                    self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Runs effects without holding the lock. Statistics are counted before callers are answered. `span` is the step of the caller
    /// that has just arrived.
    fn run(self: &Arc<Self>, effects: Vec<Effect<Caller>>, span: Option<Arc<dyn TraceSpan>>) {
        for effect in &effects {
            if let Effect::Count(reports) = effect {
                self.steps().observe_group(reports.iter().map(|report| &report.rows[0]));
            }
        }
        for effect in effects {
            match effect {
                Effect::Prescore(rollout, prescored, validate) => {
                    self.engine.prescore(rollout, &self.options(validate, span.clone()), &prescored);
                }
                Effect::Score(batch) => self.score(batch),
                Effect::Answer(caller, answer) => caller.answer(self.joined(answer)),
                Effect::Count(_) => {}
            }
        }
    }

    fn options(&self, validate: Option<bool>, span: Option<Arc<dyn TraceSpan>>) -> ScoreOptions {
        ScoreOptions { validate, cancel: Some(self.cancel.clone()), span, usage: self.usage.clone() }
    }

    fn score(self: &Arc<Self>, batch: ScoreBatch<Caller>) {
        let ScoreBatch { rollouts, prescored, validate, target } = batch;
        let inner = Arc::clone(self);
        let late = target.kind == BatchKind::Late;
        let span = target.waiters.last().and_then(|(_, waiter)| waiter.caller.span.clone());
        let done = move |rollouts: Arc<Vec<SharedRollout>>, report: Result<Report, RunError>| {
            let report = report.unwrap_or_else(|_| inner.engine.refuse(&rollouts, Code::Panic));
            let report = Arc::new(report);
            inner.count(&target, &rollouts, &report);
            if let Some(observer) = inner.observer.as_ref().filter(|_| target.kind != BatchKind::Late) {
                observer(&rollouts, &report);
            }
            let effects = inner.state().scored(target, &report);
            inner.run(effects, None);
        };
        let options = self.options(validate, span);
        match late {
            true => self.engine.submit_rescore(rollouts, options, done),
            false => self.engine.submit_prescored(rollouts, prescored, options, done),
        }
    }

    /// Adds what was scored to the statistics, each rollout once.
    fn count(&self, target: &BatchTarget<Caller>, rollouts: &[SharedRollout], report: &Report) {
        let mut steps = self.steps();
        let known = if target.kind == BatchKind::Late { rollouts.len() - 1 } else { 0 };
        for (row, rollout) in report.rows.iter().zip(rollouts).skip(known) {
            steps.observe_row(row, rollout.tokens);
        }
        if target.info.late {
            steps.observe_late();
        }
        if target.kind != BatchKind::Late {
            steps.observe_judging(report);
        }
        if target.kind == BatchKind::Whole {
            steps.observe_group(report.rows.iter());
        }
    }

    fn joined(&self, answer: MemberAnswer) -> Joined {
        let MemberAnswer { result, info, others } = answer;
        let JoinInfo { group_size, partial, late, duplicate, waited } = info;
        let (report, at) = match result {
            MemberResult::Row(report, at) => (report, at),
            MemberResult::Refused(rollout, code) => {
                let report = self.engine.refuse(&[&*rollout], code);
                // What is to be handed in again, and what only repeats another, does not count.
                let counts = match code {
                    Code::GroupIncomplete | Code::GroupLeft => !duplicate,
                    code => code == Code::GroupDuplicate,
                };
                if counts {
                    self.steps().observe_row(&report.rows[0], rollout.tokens);
                }
                (Arc::new(report), 0)
            }
        };
        Joined { report, at, group_size, partial, late, duplicate, waited, others }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod test_harness;
#[cfg(test)]
mod tests;
