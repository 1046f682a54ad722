//! Admission control for judge calls, at two levels. A [`Lane`] admits groups: one per engine and judge, so that an engine
//! with many groups does not starve another, and a group's time starts when it is admitted. An [`AdmissionQueue`] admits
//! calls: a FIFO queue per judge, shared by all engines, that enforces concurrency, rate limits, budgets and the circuit
//! breaker, and picks an endpoint. Dropping a future gives back whatever it held.

use super::breaker::{Availability, EndpointState};
use super::budget::{Budget, BudgetCheck, today};
use super::call_error::Health;
use super::formats::FormatTable;
use super::judge_usage::JudgeUsage;
use super::parameters::Parameter;
use super::permit::Permit;
use super::rate_limit::{ConcurrencyLimit, LatencyWindow, RateLimiter, Rng};
use crate::exec::lock;
use crate::judge::answer::{AnswerFormat, QuestionKind};
use crate::judge::config::ResolvedJudge;
use crate::reason::{Code, Reason};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest pause that a call waits for.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// A call that waits to start: what the queue decides by, and its permit accounts for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallRequest {
    pub(super) kind: QuestionKind,
    pub(super) format: AnswerFormat,
    /// Whether there is a worse format to fall back to.
    pub(super) has_next: bool,
    /// Without how many parameters that the endpoint refuses it is written.
    pub(super) left_out: usize,
    pub(super) bytes: usize,
    pub(super) deadline: Instant,
    /// Whether it repeats a slow call, and the endpoint of that one.
    pub(super) hedge: Option<usize>,
}

/// Why a call does not start.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AdmissionError {
    /// The call is not made as it is written: the judge does not take the format, or a parameter. Another way may do.
    Form,
    /// The call fails.
    Failed(Reason),
}

impl<R: Into<Reason>> From<R> for AdmissionError {
    fn from(reason: R) -> Self {
        Self::Failed(reason.into())
    }
}

/// What an admitted call holds: its endpoint, and the cost that was reserved for it. Until the call takes it, it lies in the
/// queue, where a [`Permit`] cannot, which borrows the queue.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) endpoint: usize,
    pub(super) reserved: f64,
    /// Whether this call finds out if the judge supports its format.
    pub(super) probes_format: bool,
}

enum Decision {
    Now(Result<Slot, AdmissionError>),
    /// Later: when something changes, or at that moment at the latest.
    Later(Option<Instant>),
}

/// A call in the queue. Whoever admits it leaves the answer here and wakes it.
struct QueuedCall {
    request: CallRequest,
    woken: Notify,
    answer: Mutex<Option<Result<Slot, AdmissionError>>>,
}

/// All that is known of a judge during a run.
pub(super) struct QueueState {
    pub(super) endpoints: Vec<EndpointState>,
    pub(super) limit: ConcurrencyLimit,
    pub(super) latencies: LatencyWindow,
    pub(super) budget: Budget,
    pub(super) rng: Rng,
    pub(super) judge_usage: JudgeUsage,
    pub(super) formats: FormatTable,
    /// Parameters that the endpoint refuses.
    pub(super) left_out: BTreeSet<Parameter>,
    /// Kinds of question for which a call on its way tries a format.
    pub(super) probing: BTreeSet<QuestionKind>,
    pub(super) in_flight: usize,
    /// Why nothing more is sent to the judge in this run.
    pub(super) closed: Option<Reason>,
    call_rate: RateLimiter,
    pub(super) token_rate: RateLimiter,
    queue: VecDeque<Arc<QueuedCall>>,
    down_since: Option<Instant>,
    /// Why it failed last.
    pub(super) last_error: Option<Reason>,
}

/// The admission queue of one judge.
pub(super) struct AdmissionQueue {
    pub(super) state: Mutex<QueueState>,
    patience: Duration,
}

impl QueueState {
    /// Lets calls start from the front of the queue. Returns when to look again, and whether the front has changed.
    fn admit(&mut self, now: Instant) -> (Option<Instant>, bool) {
        let mut moved = false;
        while let Some(front) = self.queue.front() {
            let request = front.request;
            match self.decide(&request, now) {
                Decision::Later(at) => return (at, moved),
                Decision::Now(answer) => {
                    if let Ok(slot) = &answer {
                        self.start(slot, &request, now);
                    }
                    moved = true;
                    if let Some(front) = self.queue.pop_front() {
                        *lock(&front.answer) = Some(answer);
                        front.woken.notify_one();
                    }
                }
            }
        }
        (None, moved)
    }

    /// The decision on a call that nobody waits before, where it can be made now.
    fn admit_at_once(&mut self, request: &CallRequest, now: Instant) -> Option<Result<Slot, AdmissionError>> {
        if !self.queue.is_empty() {
            return None;
        }
        let Decision::Now(answer) = self.decide(request, now) else { return None };
        if let Ok(slot) = &answer {
            self.start(slot, request, now);
        }
        Some(answer)
    }

    fn decide(&mut self, request: &CallRequest, now: Instant) -> Decision {
        let fail = |rejected: AdmissionError| Decision::Now(Err(rejected));
        if let Some(reason) = &self.closed {
            return fail(reason.clone().into());
        }
        if request.deadline <= now {
            return fail(Code::JudgeDeadline.into());
        }
        let is_left = request.has_next && self.formats.is_left(request.kind, request.format);
        // Refused in the meantime: it is written anew, instead of being refused as well.
        if is_left || request.left_out < self.left_out.len() {
            return fail(AdmissionError::Form);
        }
        let probes_format = request.has_next && self.formats.is_on_trial(request.kind, request.format);
        if self.in_flight >= self.limit.calls() || (probes_format && self.probing.contains(&request.kind)) {
            return Decision::Later(None);
        }
        if request.hedge.is_some() && !self.budget.may_hedge() {
            return fail(Code::JudgeBudget.into());
        }
        if self.budget.is_daily() {
            self.budget.renew(today());
        }
        let reserved = match self.budget.check(request.bytes) {
            BudgetCheck::Exhausted => return fail(Code::JudgeBudget.into()),
            BudgetCheck::Wait => return Decision::Later(None),
            BudgetCheck::Allowed(reserved) => reserved,
        };
        if let Some(next) = self.call_rate.later(now).max(self.token_rate.later(now)) {
            return Decision::Later(Some(next));
        }
        match self.choose_endpoint(request, now) {
            Ok(endpoint) => Decision::Now(Ok(Slot { endpoint, reserved, probes_format })),
            Err(decision) => decision,
        }
    }

    /// The endpoint with fewer calls in flight of two that are drawn among those that can be asked.
    fn choose_endpoint(&mut self, request: &CallRequest, now: Instant) -> Result<usize, Decision> {
        let whens: Vec<Availability> = self.endpoints.iter().map(|endpoint| endpoint.when(now)).collect();
        let mut free: Vec<usize> = (0..whens.len()).filter(|at| whens[*at] == Availability::Now).collect();
        if free.len() > 1 {
            free.retain(|at| Some(*at) != request.hedge);
        }
        if !free.is_empty() {
            let (one, other) = (free[self.rng.below(free.len())], free[self.rng.below(free.len())]);
            let fewer = self.endpoints[other].in_flight < self.endpoints[one].in_flight;
            return Ok(if fewer { other } else { one });
        }
        if whens.contains(&Availability::AfterProbe) {
            return Err(Decision::Later(None));
        }
        let pauses = whens.iter().filter_map(|when| match when {
            Availability::Paused(until) => Some(*until),
            _ => None,
        });
        let rests = whens.iter().filter_map(|when| match when {
            Availability::Open(until) => Some(*until),
            _ => None,
        });
        let (pause, rest) = (pauses.min(), rests.min());
        if let (Some(pause), None) = (pause, rest)
            && (pause > request.deadline || pause > now + MAX_WAIT)
        {
            return Err(Decision::Now(Err(Code::JudgeRateLimited.into())));
        }
        Err(Decision::Later(pause.into_iter().chain(rest).min()))
    }

    fn start(&mut self, slot: &Slot, request: &CallRequest, now: Instant) {
        self.in_flight += 1;
        self.judge_usage.peak = self.judge_usage.peak.max(self.in_flight);
        self.endpoints[slot.endpoint].in_flight += 1;
        if slot.probes_format {
            self.probing.insert(request.kind);
        }
        self.budget.reserve(slot.reserved, request.hedge.is_some());
        self.call_rate.start(now, 1);
        self.token_rate.start(now, Budget::tokens(request.bytes, None));
    }

    /// That the breaker is open, and how the judge failed last.
    fn breaker_reason(&self) -> Reason {
        with_last(Code::JudgeBreakerOpen.into(), self.last_error.as_ref())
    }

    /// Admits what may start after a change, and wakes whoever has to know.
    pub(super) fn wake(&mut self, now: Instant) {
        let down = self.endpoints.iter().all(EndpointState::is_down);
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

impl AdmissionQueue {
    /// How the judge failed last, where it is down.
    pub(super) fn down_reason(&self) -> Option<Reason> {
        let state = lock(&self.state);
        state.last_error.clone().filter(|_| !state.endpoints.iter().any(EndpointState::is_up))
    }

    pub(super) fn new(judge: &ResolvedJudge) -> Self {
        // A call that waits for a judge to come back sees at least three probes of it, so that it is not lost to a judge
        // that has been back for a while.
        let longest = (judge.rest * 12).min(judge.rest.max(judge.patience / 3));
        let rng = |url: &String| Rng::new(&format!("{} {url}", judge.name));
        let endpoint = |url: &String| EndpointState::new(judge.rest, longest, rng(url));
        let state = QueueState {
            endpoints: judge.base_urls.iter().map(endpoint).collect(),
            limit: ConcurrencyLimit::new(judge.config.concurrency),
            latencies: LatencyWindow::none(),
            budget: Budget::new(judge),
            rng: Rng::new(&judge.name),
            judge_usage: JudgeUsage::none(&judge.name, judge.config.price.is_some()),
            formats: FormatTable::default(),
            left_out: BTreeSet::new(),
            probing: BTreeSet::new(),
            in_flight: 0,
            closed: None,
            call_rate: RateLimiter::new(judge.config.calls_per_minute),
            token_rate: RateLimiter::new(judge.config.tokens_per_minute),
            queue: VecDeque::new(),
            down_since: None,
            last_error: None,
        };
        Self { state: Mutex::new(state), patience: judge.patience }
    }

    /// Waits until the call may start. Dropping the future leaves the queue.
    pub(super) async fn admit(&self, request: CallRequest) -> Result<Permit<'_>, AdmissionError> {
        if let Some(answer) = lock(&self.state).admit_at_once(&request, Instant::now()) {
            return answer.map(|slot| Permit::new(self, request, slot));
        }
        let waiter = Arc::new(QueuedCall { request, woken: Notify::new(), answer: Mutex::new(None) });
        let mut queued = QueueEntry { queue: self, waiter: &waiter, is_in: true };
        lock(&self.state).queue.push_back(Arc::clone(&waiter));
        loop {
            let wake = match self.poll(&waiter) {
                Decision::Later(wake) => wake,
                Decision::Now(answer) => {
                    let waits = |rejected: &AdmissionError| matches!(rejected, AdmissionError::Failed(reason) if reason.code == Code::JudgeBreakerOpen);
                    queued.is_in = answer.as_ref().is_err_and(waits);
                    drop(queued);
                    return answer.map(|slot| Permit::new(self, request, slot));
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

    /// The decision on a waiting call, else when to look again.
    fn poll(&self, waiter: &Arc<QueuedCall>) -> Decision {
        let now = Instant::now();
        let mut state = lock(&self.state);
        let (next, moved) = state.admit(now);
        let is_front = state.queue.front().is_some_and(|front| Arc::ptr_eq(front, waiter));
        if let Some(front) = state.queue.front()
            && moved
            && !is_front
        {
            front.woken.notify_one();
        }
        if let Some(answer) = lock(&waiter.answer).take() {
            return Decision::Now(answer);
        }
        // Patience counts from when the judge went down: whoever comes later waits for what is left of it, so that a run
        // over many groups does not wait for a dead judge again and again. Its probes go on.
        let end = state.down_since.map(|since| since + self.patience);
        if end.is_some_and(|end| end <= now) {
            return Decision::Now(Err(state.breaker_reason().into()));
        }
        Decision::Later(next.filter(|_| is_front).into_iter().chain(end).min())
    }

    /// Whether a failed call may be sent again. While the judge is not known to work, its breaker and its probes
    /// keep the calls few; when it does, retries of what has reached it are a share of all calls.
    pub(super) fn may_retry(&self, reached: bool) -> bool {
        let mut state = lock(&self.state);
        let is_up = state.endpoints.iter().any(EndpointState::is_up);
        let may = !reached || !is_up || state.budget.retry();
        state.judge_usage.retries += u64::from(may);
        may
    }

    /// After how long a call is worth a second one.
    pub(super) fn hedge_after(&self) -> Option<Duration> {
        let state = lock(&self.state);
        state.latencies.too_slow().filter(|_| state.budget.may_hedge())
    }

    /// Sends nothing more, and fails what waits.
    pub(super) fn close(&self, reason: Reason) {
        let mut state = lock(&self.state);
        state.closed.get_or_insert(reason);
        state.wake(Instant::now());
    }

    /// Takes in how a call went that started then.
    pub(super) fn observe(state: &mut QueueState, endpoint: usize, health: Health, started: Instant) {
        let now = Instant::now();
        state.endpoints[endpoint].observe(health, now);
        match health {
            Health::Healthy => state.limit.grow(),
            Health::Overloaded | Health::Pause(_) => state.limit.shrink(started, now),
            Health::Failing | Health::Dead => {}
        }
    }
}

/// A place in the queue. Dropped, it leaves the queue and gives back a slot that was granted but not taken.
struct QueueEntry<'g> {
    queue: &'g AdmissionQueue,
    waiter: &'g Arc<QueuedCall>,
    is_in: bool,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if !self.is_in {
            return;
        }
        let mut state = lock(&self.queue.state);
        let given = lock(&self.waiter.answer).take();
        state.queue.retain(|other| !Arc::ptr_eq(other, self.waiter));
        state.wake(Instant::now());
        drop(state);
        if let Some(Ok(slot)) = given {
            drop(Permit::new(self.queue, self.waiter.request, slot));
        }
    }
}

/// One engine's lane to one judge: it counts the calls that are queued or in flight, and admits a new group while there are
/// fewer than twice the judge's concurrency. So the judge never idles, and an admitted group does not wait long behind
/// others.
#[derive(Debug)]
pub(super) struct Lane {
    limit: usize,
    calls: AtomicUsize,
    freed: Notify,
}

impl Lane {
    pub(super) fn new(concurrency: usize) -> Self {
        Self { limit: 2 * concurrency, calls: AtomicUsize::new(0), freed: Notify::new() }
    }

    /// Waits until a group may start, first come, first served.
    pub(super) async fn admit_group(&self) {
        loop {
            let freed = self.freed.notified();
            if self.calls.load(Ordering::Acquire) < self.limit {
                // Where there is room for one group, there may be for the next.
                self.freed.notify_one();
                return;
            }
            freed.await;
        }
    }

    /// Counts a call until the slot is dropped.
    pub(super) fn enter(&self) -> LaneSlot<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        LaneSlot(self)
    }
}

/// A call that is queued or in flight.
pub(super) struct LaneSlot<'l>(&'l Lane);

impl Drop for LaneSlot<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::AcqRel) <= self.0.limit {
            self.0.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn groups_wait_for_room_and_all_are_admitted() {
        let lane = Arc::new(Lane::new(1));
        let group = |lane: Arc<Lane>| async move {
            lane.admit_group().await;
            let slots: Vec<LaneSlot<'_>> = (0..3).map(|_| lane.enter()).collect();
            let before = lane.calls.load(Ordering::Acquire);
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(slots);
            before
        };
        let groups: Vec<_> = (0..20).map(|_| tokio::spawn(group(Arc::clone(&lane)))).collect();
        for group in groups {
            let before = tokio::time::timeout(Duration::from_secs(100), group).await.expect("admitted");
            assert!(before.expect("no panic") <= 4, "a group is admitted while fewer than two calls wait");
        }
        assert_eq!(lane.calls.load(Ordering::Acquire), 0);
    }
}
