//! The judge client: sends requests to LLM judges, at most once per key, within concurrency, rate, retry and cost limits.
//!
//! A call goes `ask_all` > `ask` > `ask_until_readable` (attempts until a reply has a verdict) > `get_or_fetch`
//! (single-flight) > `fetch` (record, then retries) > `admit` (queue) > `attempt` (hedge) > `call` (one HTTP exchange).

mod admission;
mod batch_usage;
mod breaker;
mod budget;
mod call_error;
mod call_span;
mod formats;
mod judge_state;
mod judge_usage;
mod parameters;
mod permit;
mod query;
mod rate_limit;
mod registry;
mod request;
#[cfg(test)]
mod tests;
mod transport;

pub use batch_usage::{AnswerSource, BatchUsage, UsageMeter};
pub use formats::FormatChoice;
pub use judge_usage::JudgeUsage;
pub use query::{Query, Request};
pub use registry::{JudgeEvent, JudgeLog, JudgeRegistry};
pub use transport::JudgeSetupError;

use crate::exec::{TraceSpan, lock};
use crate::judge::answer::{AnswerFormat, Usage, Verdict};
use crate::judge::config::ResolvedJudge;
use crate::reason::{Code, Reason};
use crate::record::{Network, Record};
use admission::{AdmissionError, CallRequest, Lane, with_last};
use call_span::CallSpan;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use judge_state::JudgeState;
use request::{PendingRequest, has_verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What the keys of judgments begin with. It changes when the meaning of a judgment does.
const PROTOCOL: &[u8] = b"plaudit judgment 1";

/// What came of a call.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// The verdict, or why there is none.
    pub verdict: Result<Verdict, Reason>,
    /// The key of the last judgment that was looked for.
    pub key: Option<[u8; 32]>,
    /// The format in which it was asked last.
    pub format: AnswerFormat,
    /// How often it was sent.
    pub attempts: u32,
    /// Whether the record answered.
    pub cached: bool,
    /// How long the judge took over the answer.
    pub latency: Option<Duration>,
    /// The tokens that the answer took.
    pub usage: Option<Usage>,
}

impl CallOutcome {
    /// Of a call that was not made: stopped, until something else is known.
    fn unanswered(format: AnswerFormat) -> Self {
        let verdict = Err(Code::Stopped.into());
        Self { verdict, key: None, format, attempts: 0, cached: false, latency: None, usage: None }
    }
}

/// How far a call has come. It outlives the call's future, so that a deadline still tells what happened before.
struct Progress {
    outcome: CallOutcome,
    /// How often it was sent, waits that the judge asked for aside.
    tries: u32,
    /// Whether the formats have learned from the reply. One that comes from the record teaches nothing.
    is_observed: bool,
    /// How it failed the last time.
    last_error: Option<Reason>,
    /// Its span, where steps are traced.
    span: Option<CallSpan>,
}

/// One judge as this client asks it: its own configuration and lane, and the state that all clients share.
struct ClientJudge {
    judge: Arc<ResolvedJudge>,
    state: Arc<JudgeState>,
    lane: Lane,
}

/// Asks judges. It starts nothing of its own: all work is done by the futures of [`JudgeClient::ask`], so that dropping
/// one closes its socket and frees what it held.
pub struct JudgeClient {
    judges: Vec<ClientJudge>,
    record: Arc<dyn Record>,
    network: Network,
    /// How many calls have got a verdict.
    answered: AtomicU64,
    /// Set when calls in flight are waited for no longer.
    abandoned: watch::Sender<bool>,
}

/// The key of a judgment: what was asked of whom, and nothing about when or where.
fn key(identity: &str, request: &Request) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [PROTOCOL, identity.as_bytes(), request.path.as_bytes(), &request.body] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

impl JudgeClient {
    /// A client of these judges, which are then known by their indices. A judge that another client of the registry asks
    /// already is that one, with all its limits.
    pub fn new(
        judges: Vec<ResolvedJudge>,
        record: Arc<dyn Record>,
        network: Network,
        registry: &JudgeRegistry,
    ) -> Result<Self, JudgeSetupError> {
        let judges = judges.into_iter().map(|judge| {
            let judge = Arc::new(judge);
            Ok(ClientJudge::new(Arc::clone(&judge), registry.judge(judge)?))
        });
        Ok(Self::over(judges.collect::<Result<_, _>>()?, record, network))
    }

    fn over(judges: Vec<ClientJudge>, record: Arc<dyn Record>, network: Network) -> Self {
        let (answered, abandoned) = (AtomicU64::new(0), watch::Sender::new(false));
        Self { judges, record, network, answered, abandoned }
    }

    /// The judge at an index.
    pub(in crate::judge) fn judge(&self, judge: usize) -> &ResolvedJudge {
        &self.judges[judge].judge
    }

    /// The record of judgments.
    pub(in crate::judge) fn record(&self) -> &dyn Record {
        self.record.as_ref()
    }

    /// Waits until a new group may be put before a judge.
    pub(in crate::judge) async fn admit_group(&self, judge: usize) {
        self.judges[judge].lane.admit_group().await;
    }

    /// Makes all calls of a wave, and comes back by the deadline or when the client is abandoned.
    pub(in crate::judge) async fn ask_all<Q: Query>(
        &self,
        judge: usize,
        calls: &[Q],
        deadline: Instant,
        (span, usage): (Option<&dyn TraceSpan>, Option<&UsageMeter>),
    ) -> Vec<CallOutcome> {
        // All are counted before the first is sent, so that the next group sees them.
        let slots: Vec<_> = calls.iter().map(|_| self.judges[judge].lane.enter()).collect();
        let asks = calls.iter().zip(slots).map(|(call, slot)| async {
            let outcome = self.ask_in(judge, call, deadline, span).await;
            if let Some(usage) = usage {
                usage.observe(judge, &outcome);
            }
            drop(slot);
            outcome
        });
        // Each is woken alone: `join_all` polls all calls of a small group whenever something happens to one of them.
        let outcomes = asks.collect::<FuturesOrdered<_>>().collect();
        let mut abandoned = self.abandoned.subscribe();
        tokio::select! {
            biased;
            outcomes = outcomes => outcomes,
            _ = abandoned.wait_for(|abandoned| *abandoned) => {
                calls.iter().map(|_| CallOutcome::unanswered(AnswerFormat::Tag)).collect()
            }
        }
    }

    /// Asks a judge, and comes back by the deadline, whatever the judge does.
    pub async fn ask(&self, judge: usize, query: &dyn Query, deadline: Instant) -> CallOutcome {
        self.ask_in(judge, query, deadline, None).await
    }

    /// The same in a step that is traced.
    async fn ask_in(
        &self,
        judge: usize,
        query: &dyn Query,
        deadline: Instant,
        span: Option<&dyn TraceSpan>,
    ) -> CallOutcome {
        let format = query.formats().first().copied().unwrap_or(AnswerFormat::Tag);
        let mut progress = Progress {
            outcome: CallOutcome::unanswered(format),
            tries: 0,
            is_observed: true,
            last_error: None,
            span: None,
        };
        let Some(asked) = self.judges.get(judge) else {
            progress.outcome.verdict = Err(Reason::new(Code::JudgeClientError, "There is no such judge."));
            return progress.outcome;
        };
        let verdict = match query.local() {
            Some(local) => local,
            None => {
                let state = asked.state.as_ref();
                progress.span = span.map(|span| CallSpan::begin(span, &asked.judge));
                let ask = self.ask_until_readable(state, query, deadline, &mut progress);
                let verdict = tokio::time::timeout_at(deadline, ask).await;
                verdict.unwrap_or_else(|_| Err(Code::JudgeDeadline.into())).map_err(|reason| {
                    let last = progress.last_error.take().or_else(|| state.queue.down_reason());
                    let last = last.filter(|_| reason.code == Code::JudgeDeadline);
                    state.public(with_last(reason, last.as_ref()))
                })
            }
        };
        let outcome = CallOutcome { verdict, ..progress.outcome };
        if let Some(span) = progress.span {
            span.end(&outcome);
        }
        self.answered.fetch_add(u64::from(outcome.verdict.is_ok()), Ordering::Relaxed);
        outcome
    }

    /// Fetches judgments until one can be read. A reply without a verdict is stored as well and followed by another
    /// attempt, so that a second run finds the same replies in the same order and fetches none.
    async fn ask_until_readable(
        &self,
        state: &JudgeState,
        query: &dyn Query,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<Verdict, Reason> {
        let record = self.record.as_ref();
        if let Some(verdict) = self.find_in_left_formats(state, query, progress).await? {
            return Ok(verdict);
        }
        let mut attempt = 0;
        loop {
            let (mut format, has_next) = state.format(record, query).await?;
            if self.network == Network::Replay {
                format = self.recorded_format(state, query, format).await?;
            }
            let left_out = lock(&state.queue.state).left_out.len();
            let request = state.request(query, format, attempt)?;
            let key = key(&state.judge.identity, &request);
            let bytes = request.body.len();
            let kind = query.kind();
            let admission = CallRequest { kind, format, has_next, left_out, bytes, deadline, hedge: None };
            let traceparent = progress.span.as_ref().map(CallSpan::traceparent);
            let pending = PendingRequest::new(self, state, (query, attempt), (&request, key), admission)
                .traced(traceparent);
            (progress.outcome.format, progress.outcome.key) = (format, Some(key));
            progress.is_observed = true;
            let body = match pending.get_or_fetch(progress).await {
                Ok(body) => body,
                Err(AdmissionError::Failed(reason)) => return Err(reason),
                Err(AdmissionError::Form) => {
                    attempt = 0;
                    continue;
                }
            };
            let read = query.read(format, attempt, &body);
            if !progress.is_observed {
                let verdict = has_verdict(query, format, &body, &read);
                state.observe(record, (kind, format, has_next), verdict);
            }
            let reason = match read {
                Ok(verdict) => return Ok(verdict),
                Err(reason) => reason,
            };
            if has_next && state.is_left(kind, format) {
                attempt = 0;
                continue;
            }
            lock(&state.queue.state).judge_usage.misread(reason.code);
            if !pending.may_ask_again(progress).await? {
                return Err(reason);
            }
            attempt += 1;
        }
    }

    /// A verdict that the record holds in a format which was left since. It was paid for, and stays.
    async fn find_in_left_formats(
        &self,
        state: &JudgeState,
        query: &dyn Query,
        progress: &mut Progress,
    ) -> Result<Option<Verdict>, Reason> {
        let record = self.record.as_ref();
        for format in state.left_with_verdicts(record, query).await? {
            for attempt in 0..state.judge.config.attempts {
                let key = key(&state.judge.identity, &state.request(query, format, attempt)?);
                let Some(body) = record.get(&key).await? else { break };
                if let Ok(verdict) = query.read(format, attempt, &body) {
                    lock(&state.queue.state).judge_usage.cached += 1;
                    let outcome = &mut progress.outcome;
                    (outcome.format, outcome.key, outcome.cached) = (format, Some(key), true);
                    outcome.usage = query.usage(&body);
                    return Ok(Some(verdict));
                }
            }
        }
        Ok(None)
    }

    /// The format in which the record answers a call: that in which it would be asked now, or another one, so that what was
    /// asked otherwise can still be replayed.
    async fn recorded_format(
        &self,
        state: &JudgeState,
        query: &dyn Query,
        first: AnswerFormat,
    ) -> Result<AnswerFormat, Reason> {
        let others = query.formats().iter().copied().filter(|format| !state.is_left(query.kind(), *format));
        for format in std::iter::once(first).chain(others) {
            let request = state.request(query, format, 0)?;
            if self.record.get(&key(&state.judge.identity, &request)).await?.is_some() {
                return Ok(format);
            }
        }
        Ok(first)
    }

    /// Whether the record answers a call as it would be asked first.
    pub async fn is_cached(&self, judge: usize, query: &dyn Query) -> bool {
        let Some(ClientJudge { state, .. }) = self.judges.get(judge) else { return false };
        let cached = async {
            let record = self.record.as_ref();
            let request = state.request(query, state.format(record, query).await?.0, 0)?;
            record.get(&key(&state.judge.identity, &request)).await
        };
        query.local().is_some() || cached.await.is_ok_and(|judgment| judgment.is_some())
    }

    /// The counts so far, judge by judge, over all clients of the registry.
    pub fn judge_usage(&self) -> Vec<JudgeUsage> {
        self.judges.iter().map(|judge| judge.state.judge_usage()).collect()
    }

    /// A meter for some of the calls, judge by judge.
    pub(in crate::judge) fn usage_meter(&self) -> UsageMeter {
        UsageMeter::new(self.judges.iter().map(|one| (one.judge.name.as_str(), one.judge.config.price)))
    }

    /// How many calls have got a verdict so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Sends nothing more. What waits fails as stopped; what is in flight may still be answered.
    pub fn stop(&self) {
        for judge in &self.judges {
            judge.state.queue.close(Code::Stopped.into());
        }
    }

    /// Sends nothing more, and drops what is in flight.
    pub fn abandon(&self) {
        self.stop();
        self.abandoned.send_replace(true);
    }
}

impl ClientJudge {
    fn new(judge: Arc<ResolvedJudge>, state: Arc<JudgeState>) -> Self {
        let lane = Lane::new(judge.config.concurrency);
        Self { judge, state, lane }
    }
}
