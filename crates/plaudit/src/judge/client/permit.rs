//! Permit of one admitted call: releases its slot, reservation and concurrency however the call ends, and feeds its result
//! back into limits, breaker, counts and the record.

use super::admission::{AdmissionQueue, CallRequest, QueueState, Slot};
use super::budget::Budget;
use super::call_error::{CallError, Health, Objection};
use crate::exec::lock;
use crate::judge::answer::Usage;
use crate::reason::Code;
use crate::record::{Claim, Record};
use std::time::Duration;
use tokio::time::Instant;

/// The right to one call. Dropped unsent, it gives back what it holds. Dropped on its way, because the deadline has passed or
/// another call was faster, the call is recorded as one that may have been paid for.
pub(super) struct Permit<'g> {
    queue: &'g AdmissionQueue,
    request: CallRequest,
    slot: Slot,
    started: Instant,
    /// Where the call is recorded, once it is sent.
    sent: Option<(&'g dyn Record, Claim<'g>)>,
    ended: bool,
}

impl<'g> Permit<'g> {
    pub(super) fn new(queue: &'g AdmissionQueue, request: CallRequest, slot: Slot) -> Self {
        Self { queue, request, slot, started: Instant::now(), sent: None, ended: false }
    }

    pub(super) fn endpoint(&self) -> usize {
        self.slot.endpoint
    }

    /// What was set aside for the call.
    pub(super) fn reserved(&self) -> f64 {
        self.slot.reserved
    }

    /// Whether the call finds out if the judge supports its format.
    pub(super) fn probes_format(&self) -> bool {
        self.slot.probes_format
    }

    /// Takes note that the call is sent now, and where it is recorded.
    pub(super) fn send(&mut self, record: &'g dyn Record, claim: Claim<'g>) {
        self.sent = Some((record, claim));
        self.started = Instant::now();
        let mut state = lock(&self.queue.state);
        state.judge_usage.calls += 1;
        state.judge_usage.hedges += u64::from(self.request.hedge.is_some());
    }

    /// The call was answered; with a verdict or without, where it tries a format.
    pub(super) fn answered(
        mut self,
        latency: Duration,
        usage: Option<Usage>,
        read: Option<Result<(), Code>>,
    ) {
        let CallRequest { kind, format, has_next, bytes, .. } = self.request;
        let mut state = lock(&self.queue.state);
        let cost = state.budget.cost(bytes, usage);
        self.pay(&mut state, cost);
        state.judge_usage.answer(latency, usage);
        state.latencies.observe(latency);
        let (used, thought) = (Budget::tokens(bytes, usage), Budget::tokens(bytes, None));
        state.token_rate.add(Instant::now(), used.saturating_sub(thought));
        if let Some(read) = read {
            state.formats.observe(kind, format, read, has_next);
        }
        AdmissionQueue::observe(&mut state, self.slot.endpoint, Health::Healthy, self.started);
        self.release(&mut state);
        drop(state);
        self.record_cost(cost);
    }

    /// The call failed.
    pub(super) fn failed(mut self, error: &CallError) {
        let CallRequest { kind, format, has_next, bytes, .. } = self.request;
        let mut state = lock(&self.queue.state);
        let cost = state.budget.cost(bytes, None).filter(|_| error.maybe_paid());
        self.pay(&mut state, cost);
        state.judge_usage.fail(error.reason.code);
        state.judge_usage.maybe_paid += u64::from(error.maybe_paid());
        match error.objection {
            Some(Objection::Request) => state.formats.refuse(kind, format, false, has_next),
            Some(Objection::Format(_)) => state.formats.refuse(kind, format, true, has_next),
            Some(Objection::Parameter(_)) | None => {}
        }
        if error.health != Health::Healthy {
            state.last_error = Some(error.reason.clone());
        }
        AdmissionQueue::observe(&mut state, self.slot.endpoint, error.health, self.started);
        if error.health == Health::Dead {
            state.closed.get_or_insert(error.reason.clone());
        }
        self.release(&mut state);
        drop(state);
        self.record_cost(cost);
        if let Some((record, claim)) = self.sent {
            record.fail_call(claim, error.reason.code, error.maybe_paid());
        }
    }

    /// Puts what the call has cost, where that is known, in the place of what was set aside for it.
    fn pay(&self, state: &mut QueueState, cost: Option<f64>) {
        state.budget.settle(self.slot.reserved, cost);
        state.judge_usage.pay(cost);
    }

    /// Records what the call has cost. Without a price there is no cost, and nothing was reserved.
    fn record_cost(&self, cost: Option<f64>) {
        let (reserved, cost) = (self.slot.reserved, cost.unwrap_or(0.0));
        if let Some((record, claim)) = self.sent
            && (reserved > 0.0 || cost > 0.0)
        {
            record.spend(claim.judge, reserved, cost);
        }
    }

    fn release(&mut self, state: &mut QueueState) {
        self.ended = true;
        state.in_flight = state.in_flight.saturating_sub(1);
        let endpoint = &mut state.endpoints[self.slot.endpoint];
        endpoint.in_flight = endpoint.in_flight.saturating_sub(1);
        if self.slot.probes_format {
            state.probing.remove(&self.request.kind);
        }
        state.wake(Instant::now());
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let Some((record, claim)) = self.sent else {
            let mut state = lock(&self.queue.state);
            state.budget.refund(self.slot.reserved, self.request.hedge.is_some());
            return self.release(&mut state);
        };
        let cost = lock(&self.queue.state).budget.cost(self.request.bytes, None);
        self.record_cost(cost);
        let mut state = lock(&self.queue.state);
        self.pay(&mut state, cost);
        state.judge_usage.maybe_paid += 1;
        self.release(&mut state);
        drop(state);
        record.fail_call(claim, Code::JudgeDeadline, true);
    }
}
