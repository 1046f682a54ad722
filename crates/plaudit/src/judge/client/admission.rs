//! When may a call to a judge start, and at which endpoint? One queue a judge, in the order of asking.

use super::breaker::{Endpoint, When};
use super::budget::{Budget, Purse, today};
use super::call_error::Health;
use super::config::JudgeSpec;
use super::permit::Permit;
use super::rate_limit::{Dice, Latencies, Limit, Pace};
use super::record::held;
use super::tally::Tally;
use crate::judge::Form;
use crate::reason::{Code, Reason};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest pause that a call waits for.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A call that wants to start.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) form: Form,
    /// Whether the question has a worse form to fall back to.
    pub(super) has_next: bool,
    pub(super) bytes: usize,
    pub(super) deadline: Instant,
    /// Whether it repeats a slow call, and the endpoint of that one.
    pub(super) hedge: Option<usize>,
}

/// Why a call does not start.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Barred {
    /// The judge does not take the form; another one may do.
    Form,
    /// The question fails.
    Failed(Reason),
}

impl From<Code> for Barred {
    fn from(code: Code) -> Self {
        Self::Failed(code.into())
    }
}

/// A place at an endpoint, with what was set aside for the call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) endpoint: usize,
    pub(super) reserved: f64,
    /// Whether this call finds out if the judge takes its form.
    pub(super) tries_form: bool,
}

enum Turn {
    Now(Result<Place, Barred>),
    /// Later: when something changes, or at that moment at the latest.
    Later(Option<Instant>),
}

struct Waiter {
    wish: Wish,
    woken: Notify,
    answer: Mutex<Option<Result<Place, Barred>>>,
}

/// All that is known of a judge during a run.
pub(super) struct State {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) limit: Limit,
    pub(super) latencies: Latencies,
    pub(super) budget: Budget,
    pub(super) dice: Dice,
    pub(super) tally: Tally,
    pub(super) works: BTreeSet<Form>,
    pub(super) refused: BTreeSet<Form>,
    pub(super) trying_form: bool,
    pub(super) in_flight: usize,
    /// Why nothing more is sent to the judge in this run.
    pub(super) dead: Option<Reason>,
    pace: Pace,
    pub(super) tokens: Pace,
    queue: VecDeque<Arc<Waiter>>,
    down_since: Option<Instant>,
    /// Why it failed last.
    pub(super) last_fault: Option<Reason>,
}

/// The way to one judge.
pub(super) struct Gate {
    pub(super) state: Mutex<State>,
    patience: Duration,
}

impl State {
    /// Lets calls start from the front of the queue. Returns when to look again, and whether the front has changed.
    fn admit(&mut self, now: Instant) -> (Option<Instant>, bool) {
        let mut moved = false;
        while let Some(front) = self.queue.front() {
            let wish = front.wish.clone();
            match self.turn(&wish, now) {
                Turn::Later(at) => return (at, moved),
                Turn::Now(answer) => {
                    if let Ok(place) = &answer {
                        self.start(place, &wish, now);
                    }
                    moved = true;
                    if let Some(front) = self.queue.pop_front() {
                        *held(&front.answer) = Some(answer);
                        front.woken.notify_one();
                    }
                }
            }
        }
        (None, moved)
    }

    fn turn(&mut self, wish: &Wish, now: Instant) -> Turn {
        let fail = |barred: Barred| Turn::Now(Err(barred));
        if let Some(reason) = &self.dead {
            return fail(Barred::Failed(reason.clone()));
        }
        if wish.deadline <= now {
            return fail(Code::JudgeDeadline.into());
        }
        if self.refused.contains(&wish.form) && wish.has_next {
            return fail(Barred::Form);
        }
        let tries_form = wish.has_next && !self.works.contains(&wish.form);
        if self.in_flight >= self.limit.calls() || (tries_form && self.trying_form) {
            return Turn::Later(None);
        }
        if wish.hedge.is_some() && !self.budget.may_hedge() {
            return fail(Code::JudgeBudget.into());
        }
        if self.budget.is_daily() {
            self.budget.renew(today());
        }
        let reserved = match self.budget.looks(wish.bytes) {
            Purse::Spent => return fail(Code::JudgeBudget.into()),
            Purse::Depends => return Turn::Later(None),
            Purse::Holds(reserved) => reserved,
        };
        if let Some(next) = self.pace.later(now).max(self.tokens.later(now)) {
            return Turn::Later(Some(next));
        }
        match self.choose(wish, now) {
            Ok(endpoint) => Turn::Now(Ok(Place { endpoint, reserved, tries_form })),
            Err(turn) => turn,
        }
    }

    /// The endpoint with fewer calls in flight of two that are drawn among those that can be asked.
    fn choose(&mut self, wish: &Wish, now: Instant) -> Result<usize, Turn> {
        let whens: Vec<When> = self.endpoints.iter().map(|endpoint| endpoint.when(now)).collect();
        let mut free: Vec<usize> = (0..whens.len()).filter(|at| whens[*at] == When::Now).collect();
        if free.len() > 1 {
            free.retain(|at| Some(*at) != wish.hedge);
        }
        if !free.is_empty() {
            let (one, other) = (free[self.dice.below(free.len())], free[self.dice.below(free.len())]);
            let fewer = self.endpoints[other].in_flight < self.endpoints[one].in_flight;
            return Ok(if fewer { other } else { one });
        }
        if whens.contains(&When::AfterProbe) {
            return Err(Turn::Later(None));
        }
        let pauses = whens.iter().filter_map(|when| match when {
            When::Paused(until) => Some(*until),
            _ => None,
        });
        let rests = whens.iter().filter_map(|when| match when {
            When::Resting(until) => Some(*until),
            _ => None,
        });
        let (pause, rest) = (pauses.min(), rests.min());
        if let (Some(pause), None) = (pause, rest)
            && (pause > wish.deadline || pause > now + LONGEST_WAIT)
        {
            return Err(Turn::Now(Err(Code::JudgeRateLimited.into())));
        }
        Err(Turn::Later(pause.into_iter().chain(rest).min()))
    }

    fn start(&mut self, place: &Place, wish: &Wish, now: Instant) {
        self.in_flight += 1;
        self.tally.peak = self.tally.peak.max(self.in_flight);
        self.endpoints[place.endpoint].in_flight += 1;
        self.trying_form |= place.tries_form;
        self.budget.reserve(place.reserved, wish.hedge.is_some());
        self.pace.start(now, 1);
        self.tokens.start(now, Budget::tokens(wish.bytes, None));
    }

    /// That it has failed too often to be asked again, and how it failed last.
    fn too_often(&self) -> Reason {
        with_last(Code::JudgeBreakerOpen.into(), self.last_fault.as_ref())
    }

    /// Takes note of what has just changed, and wakes whoever has to know.
    pub(super) fn settle(&mut self, now: Instant) {
        let down = self.endpoints.iter().all(Endpoint::is_down);
        if down != self.down_since.is_some() {
            self.down_since = down.then_some(now);
            self.queue.iter().for_each(|waiter| waiter.woken.notify_one());
        }
        self.admit(now);
        if let Some(front) = self.queue.front() {
            front.woken.notify_one();
        }
    }
}

/// A reason with how it went the last time, where that is known.
pub(super) fn with_last(reason: Reason, last: Option<&Reason>) -> Reason {
    let Some(last) = last else { return reason };
    let message =
        format!("{} The last time: {} ({})", reason.message.trim(), last.message.trim(), last.code.as_str());
    Reason::new(reason.code, message)
}

impl Gate {
    /// Why calls fail, where the judge is down.
    pub(super) fn trouble(&self) -> Option<Reason> {
        let state = held(&self.state);
        state.last_fault.clone().filter(|_| !state.endpoints.iter().any(Endpoint::is_up))
    }

    pub(super) fn new(spec: &JudgeSpec) -> Self {
        // A call that waits for a judge to come back sees at least three probes of it, so that it is not lost to a judge
        // that has been back for a while.
        let longest = (spec.rest * 12).min(spec.rest.max(spec.patience / 3));
        let endpoint =
            |url: &String| Endpoint::new(spec.rest, longest, Dice::new(&format!("{} {url}", spec.name)));
        let state = State {
            endpoints: spec.base_urls.iter().map(endpoint).collect(),
            limit: Limit::new(spec.concurrency),
            latencies: Latencies::none(),
            budget: Budget::new(spec),
            dice: Dice::new(&spec.name),
            tally: Tally::none(&spec.name, spec.price.is_some()),
            works: BTreeSet::new(),
            refused: BTreeSet::new(),
            trying_form: false,
            in_flight: 0,
            dead: None,
            pace: Pace::new(spec.per_minute),
            tokens: Pace::new(spec.tokens_per_minute),
            queue: VecDeque::new(),
            down_since: None,
            last_fault: None,
        };
        Self { state: Mutex::new(state), patience: spec.patience }
    }

    /// Waits for its turn. Dropping the future gives the place up.
    pub(super) async fn admit(&self, wish: Wish) -> Result<Permit<'_>, Barred> {
        let waiter = Arc::new(Waiter { wish, woken: Notify::new(), answer: Mutex::new(None) });
        let mut queued = Queued { gate: self, waiter: &waiter, is_in: true };
        held(&self.state).queue.push_back(Arc::clone(&waiter));
        loop {
            let wake = match self.look(&waiter) {
                Ok(wake) => wake,
                Err(answer) => {
                    let waits = |barred: &Barred| matches!(barred, Barred::Failed(reason) if reason.code == Code::JudgeBreakerOpen);
                    queued.is_in = answer.as_ref().is_err_and(waits);
                    drop(queued);
                    return answer.map(|place| Permit::new(self, place, &waiter.wish));
                }
            };
            let timer = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = waiter.woken.notified() => {}
                () = timer => {}
            }
        }
    }

    /// The answer to a waiting call, else when to look again.
    fn look(&self, waiter: &Arc<Waiter>) -> Result<Option<Instant>, Result<Place, Barred>> {
        let now = Instant::now();
        let mut state = held(&self.state);
        let (next, moved) = state.admit(now);
        let is_front = state.queue.front().is_some_and(|front| Arc::ptr_eq(front, waiter));
        if let Some(front) = state.queue.front()
            && moved
            && !is_front
        {
            front.woken.notify_one();
        }
        if let Some(answer) = held(&waiter.answer).take() {
            return Err(answer);
        }
        // Patience counts from when the judge went down: whoever comes later waits for what is left of it, so that a run
        // over many groups does not wait for a dead judge again and again. Its probes go on.
        let end = state.down_since.map(|since| since + self.patience);
        if end.is_some_and(|end| end <= now) {
            return Err(Err(Barred::Failed(state.too_often())));
        }
        Ok(next.filter(|_| is_front).into_iter().chain(end).min())
    }

    /// Whether a failed call may be sent again. While the judge is not known to work, its breaker and its probes
    /// keep the calls few; when it does, retries of what has reached it are a share of all calls.
    pub(super) fn may_retry(&self, reached: bool) -> bool {
        let mut state = held(&self.state);
        let is_up = state.endpoints.iter().any(Endpoint::is_up);
        let may = !reached || !is_up || state.budget.retry();
        state.tally.retries += u64::from(may);
        may
    }

    /// After how long a call is worth a second one.
    pub(super) fn hedge_after(&self) -> Option<Duration> {
        let state = held(&self.state);
        state.latencies.too_slow().filter(|_| state.budget.may_hedge())
    }

    /// Sends nothing more, and fails what waits.
    pub(super) fn close(&self, reason: Reason) {
        let mut state = held(&self.state);
        state.dead.get_or_insert(reason);
        state.settle(Instant::now());
    }

    /// Takes in how a call went that started then.
    pub(super) fn observe(state: &mut State, endpoint: usize, health: Health, started: Instant) {
        let now = Instant::now();
        state.endpoints[endpoint].observe(health, now);
        match health {
            Health::Well => state.limit.grow(),
            Health::Overloaded | Health::Pause(_) => state.limit.shrink(started, now),
            Health::Ill | Health::Dead => {}
        }
    }
}

/// Leaves the queue when dropped, and gives back a place that was given but not taken.
struct Queued<'g> {
    gate: &'g Gate,
    waiter: &'g Arc<Waiter>,
    is_in: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if !self.is_in {
            return;
        }
        let mut state = held(&self.gate.state);
        let given = held(&self.waiter.answer).take();
        state.queue.retain(|other| !Arc::ptr_eq(other, self.waiter));
        state.settle(Instant::now());
        drop(state);
        if let Some(Ok(place)) = given {
            drop(Permit::new(self.gate, place, &self.waiter.wish));
        }
    }
}
