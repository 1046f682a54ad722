//! How is one judgment bought, and only once? The record, the flight, the attempts and the hedge.

use super::admission::{Barred, LONGEST_WAIT, Wish};
use super::call_error::{Again, Fault};
use super::config::Network;
use super::permit::{Answer, Permit, Taken};
use super::record::{Allowance, Claim, Leave, Record, held};
use super::single_flight::{Ticket, follow};
use super::transport::{Broken, Parcel};
use super::{Judge, JudgeClient, Progress};
use crate::judge::Usage;
use crate::judge::{Query, Request};
use crate::reason::{Code, Reason};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a call for which no retry is left waits to see whether the judge is down.
const SECOND_LOOK: Duration = Duration::from_millis(250);

/// One request, with what is needed to read its answer.
pub(super) struct Question<'q> {
    pub(super) query: &'q dyn Query,
    pub(super) turn: u32,
    pub(super) request: &'q Request,
    pub(super) key: [u8; 32],
    pub(super) wish: Wish,
    /// The name under which what it costs is written down.
    purse: String,
    asker: u64,
    /// Whether a call was intended, so that others may be waiting for its answer.
    claimed: AtomicBool,
}

impl<'q> Question<'q> {
    pub(super) fn new(
        (query, turn): (&'q dyn Query, u32),
        request: &'q Request,
        key: [u8; 32],
        wish: Wish,
        purse: String,
    ) -> Self {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        let asker = ASKED.fetch_add(1, Ordering::Relaxed);
        Self { query, turn, request, key, wish, purse, asker, claimed: AtomicBool::new(false) }
    }

    fn claim(&self) -> Claim<'_> {
        Claim { key: &self.key, judge: &self.purse, asker: self.asker }
    }
}

/// A question that is being asked. Dropped without a judgment, it is left to whoever waits for it.
struct Asking<'c> {
    record: &'c dyn Record,
    question: &'c Question<'c>,
    kept: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.kept && self.question.claimed.load(Ordering::Relaxed) {
            self.record.release(self.question.claim());
        }
    }
}

/// A judgment as it came in.
struct Bought {
    body: Vec<u8>,
    latency: Duration,
    usage: Option<Usage>,
}

/// What is left of a question after a failed call.
struct Patience {
    /// Whether a call has failed that may have been paid for.
    doubtful: bool,
    retries: u32,
}

impl JudgeClient {
    /// The judgment of a question: from an equal one in flight, from the record, or from the judge.
    pub(super) async fn buy(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        progress: &mut Progress,
    ) -> Result<Arc<[u8]>, Barred> {
        loop {
            let leader = match judge.flights.join(&question.key) {
                Ticket::Lead(leader) => leader,
                Ticket::Follow(flight) => match follow(flight).await {
                    Some(landing) => {
                        held(&judge.gate.state).tally.shared += 1;
                        return landing.map_err(Barred::Failed);
                    }
                    None => continue,
                },
            };
            let bought = self.purchase(judge, question, progress).await.map(Arc::from);
            match &bought {
                Ok(body) => leader.land(Ok(Arc::clone(body))),
                Err(Barred::Failed(reason)) => leader.land(Err(reason.clone())),
                Err(Barred::Form) => drop(leader),
            }
            return bought;
        }
    }

    async fn purchase(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        progress: &mut Progress,
    ) -> Result<Vec<u8>, Barred> {
        let record = self.record.as_ref();
        let found = |body: Vec<u8>, progress: &mut Progress| {
            held(&judge.gate.state).tally.cached += 1;
            (progress.cached, progress.usage) = (true, question.query.usage(&body));
            Ok(body)
        };
        if let Some(body) = record.get(&question.key).await.map_err(Barred::Failed)? {
            return found(body, progress);
        }
        if self.network == Network::Replay {
            return Err(Code::JudgeNotRecorded.into());
        }
        progress.cached = false;
        let mut patience = Patience { doubtful: false, retries: 0 };
        let mut asking = Asking { record, question, kept: false };
        loop {
            let permit = judge.gate.admit(question.wish.clone()).await?;
            let sends = AtomicU32::new(0);
            let attempt = self.attempt(judge, question, permit, &sends).await;
            progress.sends += sends.into_inner();
            let fault = match attempt {
                Ok(bought) => {
                    let kept = record.keep(question.claim(), &bought.body, bought.latency).await;
                    kept.map_err(Barred::Failed)?;
                    asking.kept = true;
                    progress.tries += 1;
                    (progress.latency, progress.usage) = (Some(bought.latency), bought.usage);
                    return Ok(bought.body);
                }
                Err(fault) => fault,
            };
            progress.last = Some(fault.reason.clone()).filter(|_| fault.again != Again::Elsewhere);
            if fault.again == Again::Elsewhere {
                match record.follow(&question.key).await.map_err(Barred::Failed)? {
                    Some(body) => return found(body, progress),
                    None => continue,
                }
            }
            if fault.refused && question.wish.has_next && judge.refuses(question.wish.form) {
                return Err(Barred::Form);
            }
            let wait = self.wait_after(judge, question, &fault, (&mut patience, progress));
            tokio::time::sleep(wait.map_err(Barred::Failed)?).await;
            if !self.may_retry(judge, &fault).await {
                return Err(Barred::Failed(fault.reason));
            }
        }
    }

    /// How long to wait before the call is sent again, or why it is not.
    fn wait_after(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        fault: &Fault,
        (patience, progress): (&mut Patience, &mut Progress),
    ) -> Result<Duration, Reason> {
        let fail = || Err(fault.reason.clone());
        match fault.again {
            Again::Never | Again::Elsewhere => return fail(),
            // The gate holds everybody back until the pause is over, and fails those who cannot wait for it.
            Again::Later => {
                held(&judge.gate.state).tally.retries += 1;
                return Ok(Duration::ZERO);
            }
            Again::Once if patience.doubtful => return fail(),
            Again::Once => patience.doubtful = true,
            Again::Freely => {}
        }
        progress.tries += 1;
        if progress.tries >= judge.spec.attempts {
            return fail();
        }
        let backoff = held(&judge.gate.state).dice.backoff(patience.retries);
        patience.retries += 1;
        let wait = fault.wait.unwrap_or(backoff);
        let left = question.wish.deadline.saturating_duration_since(Instant::now());
        if wait > left.min(LONGEST_WAIT) {
            return fail();
        }
        Ok(wait)
    }

    /// Whether a failed call may be sent again, once it has waited. When a judge dies, all calls in flight fail at one
    /// moment, more than the share of retries; a second look finds it down, and then they wait for it like all others.
    async fn may_retry(&self, judge: &Judge, fault: &Fault) -> bool {
        if fault.again == Again::Later || judge.gate.may_retry(fault.reached) {
            return true;
        }
        tokio::time::sleep(SECOND_LOOK).await;
        judge.gate.may_retry(fault.reached)
    }

    /// One call, and a second one where the first is slow; the first good answer counts.
    async fn attempt(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        permit: Permit<'_>,
        sends: &AtomicU32,
    ) -> Result<Bought, Fault> {
        let delay = judge.gate.hedge_after().filter(|_| !permit.tries_form());
        let hedge = Some(permit.endpoint());
        let mut first = pin!(self.call(judge, question, permit, sends));
        let Some(delay) = delay else { return first.await };
        tokio::select! {
            biased;
            done = &mut first => return done,
            () = tokio::time::sleep(delay) => {}
        }
        let is_sent = AtomicBool::new(false);
        let second = async {
            let permit = judge.gate.admit(Wish { hedge, ..question.wish.clone() }).await.ok()?;
            is_sent.store(true, Ordering::Relaxed);
            self.call(judge, question, permit, sends).await.ok()
        };
        let mut second = pin!(second);
        let won = |bought| {
            held(&judge.gate.state).tally.hedges_won += 1;
            Ok(bought)
        };
        tokio::select! {
            biased;
            done = &mut first => match done {
                Err(fault) if is_sent.load(Ordering::Relaxed) => second.await.map_or(Err(fault), won),
                done => done,
            },
            done = &mut second => match done {
                Some(bought) => won(bought),
                None => first.await,
            },
        }
    }

    /// One call to one endpoint.
    async fn call(
        &self,
        judge: &Judge,
        question: &Question<'_>,
        permit: Permit<'_>,
        sends: &AtomicU32,
    ) -> Result<Bought, Fault> {
        let record = self.record.as_ref();
        let spec = &judge.spec;
        let (timeout, reserved) = (spec.timeout, permit.reserved());
        let allowance = Allowance { timeout, calls: spec.budget_calls, cost: spec.budget_cost, reserved };
        question.claimed.store(true, Ordering::Relaxed);
        match record.intend(question.claim(), allowance).await {
            Ok(Leave::Granted) => {}
            Ok(Leave::Elsewhere) => return Err(Fault::elsewhere()),
            Err(reason) => return Err(Fault::ours(reason)),
        }
        let mut sent = Sent { record, judge, question, permit: Some(permit) };
        let endpoint = sent.send();
        sends.fetch_add(1, Ordering::Relaxed);
        let (begun, started) = (AtomicBool::new(false), Instant::now());
        let parcel = Parcel { endpoint, key: &question.key, request: question.request, begun: &begun };
        let reply = tokio::time::timeout(timeout, judge.wire.send(parcel)).await;
        let latency = started.elapsed();
        let answer = match reply {
            Ok(Ok(reply)) => {
                let status = reply.status;
                Fault::judge(judge.without_key(reply)).map_err(|fault| judge.discreet(status, fault))
            }
            Ok(Err(broken)) => Err(judge.broken(endpoint, broken)),
            Err(_) => {
                let code = if begun.into_inner() { Code::JudgeSlowBody } else { Code::JudgeTimeout };
                Err(judge.broken(endpoint, Broken::new(code, true)))
            }
        };
        sent.end(answer, latency)
    }
}

/// A call on its way. Dropped there, because the deadline has passed or another one was faster, it is written down
/// as one that may have been paid for.
struct Sent<'c> {
    record: &'c dyn Record,
    judge: &'c Judge,
    question: &'c Question<'c>,
    permit: Option<Permit<'c>>,
}

impl Sent<'_> {
    /// Takes note that it leaves, and returns where it goes.
    fn send(&mut self) -> usize {
        self.permit.as_mut().map_or(0, |permit| {
            permit.send();
            permit.endpoint()
        })
    }

    fn spend(&self, reserved: f64, cost: Option<f64>) {
        let cost = cost.unwrap_or(0.0);
        if reserved > 0.0 || cost > 0.0 {
            self.record.spend(&self.question.purse, reserved, cost);
        }
    }

    fn end(mut self, answer: Result<Vec<u8>, Fault>, latency: Duration) -> Result<Bought, Fault> {
        let Question { query, turn, wish, .. } = self.question;
        let Some(permit) = self.permit.take() else {
            return Err(Fault::ours(Code::Stopped.into()));
        };
        let (tries_form, reserved) = (permit.tries_form(), permit.reserved());
        let ended = match answer {
            Ok(body) => {
                let usage = query.usage(&body);
                // Whether the judge takes the form is asked of the one call that finds out; the others are read later.
                let read = tries_form.then(|| query.read(wish.form, *turn, &body));
                let taken = match read {
                    Some(Err(reason)) if reason.code == Code::JudgeNoLogprobs => Taken::No,
                    Some(_) => Taken::Yes,
                    None => Taken::Unknown,
                };
                self.spend(reserved, permit.answered(&Answer { latency, usage, taken }));
                Ok(Bought { body, latency, usage })
            }
            Err(fault) => {
                self.spend(reserved, permit.failed(&fault, fault.refused && tries_form));
                self.record.give_up(self.question.claim(), fault.reason.code, fault.maybe_paid());
                Err(fault)
            }
        };
        if tries_form {
            self.judge.remember_forms(self.record);
        }
        ended
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.spend(permit.reserved(), permit.estimate());
            drop(permit);
            self.record.give_up(self.question.claim(), Code::JudgeDeadline, true);
        }
    }
}
