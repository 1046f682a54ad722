//! Fetches one judgment: record lookup, single-flight, retries and hedging. Guarantees at most one paid call per key.

use super::admission::{AdmissionError, CallRequest, MAX_WAIT};
use super::call_error::{CallError, Objection, Retry};
use super::judge_state::JudgeState;
use super::permit::Permit;
use super::query::{Query, Request};
use super::transport::{Outgoing, TransportError};
use super::{JudgeClient, Progress, key};
use crate::exec::lock;
use crate::judge::answer::{AnswerFormat, Usage, Verdict};
use crate::reason::{Code, Reason};
use crate::record::{Allowance, CallGrant, Claim, Network, Record, RecordSource};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a call for which no retry is left waits to see whether the judge is down.
const SECOND_LOOK: Duration = Duration::from_millis(250);

/// One request to one judge, with what is needed to read its reply.
pub(super) struct PendingRequest<'q> {
    record: &'q dyn Record,
    network: Network,
    state: &'q JudgeState,
    query: &'q dyn Query,
    /// The number of the attempt to get a readable reply.
    attempt: u32,
    request: &'q Request,
    key: [u8; 32],
    admission: CallRequest,
    /// The name under which its cost is recorded.
    budget_key: String,
    /// A number that no other request of this process has.
    id: u64,
    /// Whether a call was announced to the record, so that others may be waiting for its answer.
    claimed: AtomicBool,
    /// The trace that it belongs to, as a header.
    traceparent: Option<String>,
}

/// A judgment as it came in.
struct Fetched {
    body: Vec<u8>,
    latency: Duration,
    usage: Option<Usage>,
}

impl<'q> PendingRequest<'q> {
    pub(super) fn new(
        client: &'q JudgeClient,
        state: &'q JudgeState,
        (query, attempt): (&'q dyn Query, u32),
        (request, key): (&'q Request, [u8; 32]),
        admission: CallRequest,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            record: client.record.as_ref(),
            network: client.network,
            state,
            query,
            attempt,
            request,
            key,
            admission,
            budget_key: state.budget_key(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            claimed: AtomicBool::new(false),
            traceparent: None,
        }
    }

    /// The same, which tells the judge the trace that it belongs to.
    pub(super) fn traced(self, traceparent: Option<String>) -> Self {
        Self { traceparent, ..self }
    }

    fn claim(&self) -> Claim<'_> {
        Claim { key: &self.key, judge: &self.budget_key, request_id: self.id }
    }

    /// The judgment: from an equal request in flight, from the record, or from the judge.
    pub(super) async fn get_or_fetch(&self, progress: &mut Progress) -> Result<Arc<[u8]>, AdmissionError> {
        let leader = match self.state.single_flight.lead(&self.key).await {
            Ok(leader) => leader,
            Err(shared) => {
                lock(&self.state.queue.state).judge_usage.shared += 1;
                return Ok(shared?);
            }
        };
        let fetched: Result<Arc<[u8]>, _> = self.fetch(progress).await.map(Arc::from);
        match &fetched {
            Ok(body) => leader.publish(Ok(Arc::clone(body))),
            Err(AdmissionError::Failed(reason)) => leader.publish(Err(reason.clone())),
            Err(AdmissionError::Form) => drop(leader),
        }
        fetched
    }

    async fn fetch(&self, progress: &mut Progress) -> Result<Vec<u8>, AdmissionError> {
        let cached = |body: Vec<u8>, progress: &mut Progress| {
            lock(&self.state.queue.state).judge_usage.cached += 1;
            (progress.outcome.cached, progress.outcome.usage) = (true, self.query.usage(&body));
            Ok(body)
        };
        if let Some(body) = self.record.get(&self.key).await? {
            return cached(body, progress);
        }
        if self.network == Network::Replay {
            if let Some(earlier) = self.query.earlier_request() {
                let earlier = key(&self.state.judge.identity, &earlier);
                if let Some(body) = self.record.get(&earlier).await? {
                    return cached(body, progress);
                }
            }
            return Err(Code::JudgeNotRecorded.into());
        }
        progress.outcome.cached = false;
        let mut in_flight = InFlight { pending: self, stored: false, maybe_paid: false, retries: 0 };
        loop {
            let permit = self.state.queue.admit(self.admission).await?;
            let (sends, tries_format) = (AtomicU32::new(0), permit.probes_format());
            let result = self.attempt(permit, &sends).await;
            progress.outcome.attempts += sends.into_inner();
            let error = match result {
                Ok(fetched) => {
                    let answered = Instant::now();
                    let source = RecordSource::Judge(self.claim());
                    let stored = self.record.store(source, &fetched.body, fetched.latency).await;
                    self.state.waited_for_journal(answered.elapsed());
                    stored?;
                    in_flight.stored = true;
                    progress.tries += 1;
                    progress.is_observed = tries_format;
                    let outcome = &mut progress.outcome;
                    (outcome.latency, outcome.usage) = (Some(fetched.latency), fetched.usage);
                    return Ok(fetched.body);
                }
                Err(error) => error,
            };
            progress.last_error = Some(error.reason.clone()).filter(|_| error.retry != Retry::Elsewhere);
            if error.retry == Retry::Elsewhere {
                match self.record.follow(&self.key).await? {
                    Some(body) => return cached(body, progress),
                    None => continue,
                }
            }
            let changes = match error.objection {
                Some(Objection::Parameter(parameter)) => parameter.is_in(&self.request.body),
                Some(_) => {
                    self.admission.has_next && self.state.is_left(self.query.kind(), self.admission.format)
                }
                None => false,
            };
            if changes {
                return Err(AdmissionError::Form);
            }
            let delay = in_flight.retry_delay(&error, progress)?;
            tokio::time::sleep(delay).await;
            if !self.may_retry(&error).await {
                return Err(error.reason.into());
            }
        }
    }

    /// Whether a failed call may be sent again, once it has waited. When a judge dies, all calls in flight fail at one
    /// moment, more than the share of retries; a second look finds it down, and then they wait for it like all others.
    async fn may_retry(&self, error: &CallError) -> bool {
        if error.retry == Retry::Later || self.state.queue.may_retry(error.reached) {
            return true;
        }
        tokio::time::sleep(SECOND_LOOK).await;
        self.state.queue.may_retry(error.reached)
    }

    /// Whether another attempt follows a reply without a verdict. That none followed is recorded, because the next run,
    /// which has retries to spare, would otherwise fetch one.
    pub(super) async fn may_ask_again(&self, progress: &Progress) -> Result<bool, Reason> {
        let judge = &self.state.judge;
        if self.attempt + 1 >= judge.config.attempts {
            return Ok(false);
        }
        let next = self.state.request(self.query, self.admission.format, self.attempt + 1)?;
        if self.record.get(&key(&judge.identity, &next)).await?.is_some() {
            return Ok(true);
        }
        let mark = format!("end:{}", blake3::Hash::from_bytes(self.key).to_hex());
        if self.network == Network::Replay || self.record.get_fact(&mark).await?.is_some() {
            return Ok(false);
        }
        if progress.tries >= judge.config.attempts || !self.state.queue.may_retry(true) {
            self.record.set_fact(&mark, "1");
            return Ok(false);
        }
        Ok(true)
    }

    /// One call, and a second one (a hedge) where the first is slow; the first good answer counts.
    async fn attempt(&self, permit: Permit<'_>, sends: &AtomicU32) -> Result<Fetched, CallError> {
        let delay = self.state.queue.hedge_after().filter(|_| !permit.probes_format());
        let hedge = Some(permit.endpoint());
        let mut first = pin!(self.call(permit, sends));
        let Some(delay) = delay else { return first.await };
        tokio::select! {
            biased;
            done = &mut first => return done,
            () = tokio::time::sleep(delay) => {}
        }
        let is_sent = AtomicBool::new(false);
        let second = async {
            let request = CallRequest { hedge, ..self.admission };
            let permit = self.state.queue.admit(request).await.ok()?;
            is_sent.store(true, Ordering::Relaxed);
            self.call(permit, sends).await.ok()
        };
        let mut second = pin!(second);
        let won = |fetched| {
            lock(&self.state.queue.state).judge_usage.hedges_won += 1;
            Ok(fetched)
        };
        tokio::select! {
            biased;
            done = &mut first => match done {
                Err(error) if is_sent.load(Ordering::Relaxed) => second.await.map_or(Err(error), won),
                done => done,
            },
            done = &mut second => match done {
                Some(fetched) => won(fetched),
                None => first.await,
            },
        }
    }

    /// One call to one endpoint.
    async fn call<'c>(&'c self, mut permit: Permit<'c>, sends: &AtomicU32) -> Result<Fetched, CallError> {
        let judge = &self.state.judge;
        let (timeout, budget) = (judge.timeout, judge.budget());
        let allowance =
            Allowance { timeout, calls: budget.calls, cost: budget.cost, reserved: permit.reserved() };
        self.claimed.store(true, Ordering::Relaxed);
        match self.record.begin_call(self.claim(), allowance).await {
            Ok(CallGrant::Granted) => {}
            Ok(CallGrant::Elsewhere) => return Err(CallError::elsewhere()),
            Err(reason) => return Err(CallError::local(reason)),
        }
        permit.send(self.record, self.claim());
        let endpoint = permit.endpoint();
        sends.fetch_add(1, Ordering::Relaxed);
        let (head_received, started) = (AtomicBool::new(false), Instant::now());
        let (key, request, traceparent) = (&self.key, self.request, self.traceparent.as_deref());
        let outgoing = Outgoing { endpoint, key, request, traceparent, head_received: &head_received };
        let reply = tokio::time::timeout(timeout, self.state.transport.send(outgoing)).await;
        let latency = started.elapsed();
        let answer = match reply {
            Ok(Ok(reply)) => {
                self.state.check_reply(reply).map_err(|error| error.of_format(self.admission.format))
            }
            Ok(Err(error)) => Err(self.state.transport_error(endpoint, error)),
            Err(_) => {
                let code = if head_received.into_inner() { Code::JudgeSlowBody } else { Code::JudgeTimeout };
                Err(self.state.transport_error(endpoint, TransportError::new(code, true)))
            }
        };
        self.end(permit, answer, latency)
    }

    /// Takes in how a call went that was sent.
    fn end(
        &self,
        permit: Permit<'_>,
        answer: Result<Vec<u8>, CallError>,
        latency: Duration,
    ) -> Result<Fetched, CallError> {
        let (format, probes_format) = (self.admission.format, permit.probes_format());
        let ended = match answer {
            Ok(body) => {
                let usage = self.query.usage(&body);
                // Only the call that tries the format reads the reply here; the others are read later.
                let read = probes_format.then(|| {
                    let read = self.query.read(format, self.attempt, &body);
                    has_verdict(self.query, format, &body, &read)
                });
                permit.answered(latency, usage, read);
                Ok(Fetched { body, latency, usage })
            }
            Err(error) => {
                // Before the permit is given back, so that the next call is not refused as well.
                if let Some(Objection::Parameter(parameter)) = error.objection {
                    self.state.leave_out(self.record, &self.request.body, parameter);
                }
                permit.failed(&error);
                Err(error)
            }
        };
        if probes_format || ended.is_err() {
            self.state.store_formats(self.record);
        }
        ended
    }
}

/// Whether a reply has a verdict, or the code that says why not. That the endpoint did not do what the format asks for comes
/// before whatever the judge wrote.
pub(super) fn has_verdict(
    query: &dyn Query,
    format: AnswerFormat,
    body: &[u8],
    read: &Result<Verdict, Reason>,
) -> Result<(), Code> {
    match read {
        Ok(_) => Ok(()),
        Err(_) if !query.is_in_format(format, body) => Err(Code::JudgeNoLogprobs),
        Err(reason) => Err(reason.code),
    }
}

/// A request that is being fetched. Dropped without a judgment, it is left to whoever waits for it, before the single-flight
/// lets an equal request make the call.
struct InFlight<'c> {
    pending: &'c PendingRequest<'c>,
    stored: bool,
    /// Whether a call has failed that may have been paid for.
    maybe_paid: bool,
    retries: u32,
}

impl InFlight<'_> {
    /// How long to wait before the call is sent again, or why it is not.
    fn retry_delay(&mut self, error: &CallError, progress: &mut Progress) -> Result<Duration, Reason> {
        let PendingRequest { state, admission, .. } = self.pending;
        let fail = || Err(error.reason.clone());
        match error.retry {
            Retry::Never | Retry::Elsewhere => return fail(),
            // The queue holds everybody back until the pause is over, and fails those who cannot wait for it.
            Retry::Later => {
                lock(&state.queue.state).judge_usage.retries += 1;
                return Ok(Duration::ZERO);
            }
            Retry::Once if self.maybe_paid => return fail(),
            Retry::Once => self.maybe_paid = true,
            Retry::Freely => {}
        }
        progress.tries += 1;
        if progress.tries >= state.judge.config.attempts {
            return fail();
        }
        let backoff = lock(&state.queue.state).rng.backoff(self.retries);
        self.retries += 1;
        let delay = error.wait.unwrap_or(backoff);
        let left = admission.deadline.saturating_duration_since(Instant::now());
        if delay > left.min(MAX_WAIT) {
            return fail();
        }
        Ok(delay)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.stored && self.pending.claimed.load(Ordering::Relaxed) {
            self.pending.record.release(self.pending.claim());
        }
    }
}
