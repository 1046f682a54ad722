//! Permit of one admitted call: releases its slot, reservation and concurrency however the call ends, and feeds its result
//! back into limits, breaker and counts.

use super::admission::{AdmissionQueue, CallRequest, QueueState, Slot};
use super::budget::Budget;
use super::call_error::{CallError, Health, Objection};
use crate::exec::lock;
use crate::judge::answer::{AnswerFormat, QuestionKind, Usage};
use crate::reason::Code;
use std::time::Duration;
use tokio::time::Instant;

/// How an answered call went.
#[derive(Debug)]
pub(super) struct CallReport {
    pub(super) latency: Duration,
    pub(super) usage: Option<Usage>,
    /// Whether the reply has a verdict, where the call tries a format.
    pub(super) read: Option<Result<(), Code>>,
}

/// The right to one call. Dropped after the call was sent, the call counts as one that may have been paid for.
pub(super) struct Permit<'g> {
    queue: &'g AdmissionQueue,
    slot: Slot,
    kind: QuestionKind,
    format: AnswerFormat,
    has_next: bool,
    bytes: usize,
    is_hedge: bool,
    started: Instant,
    sent: bool,
    ended: bool,
}

impl<'g> Permit<'g> {
    pub(super) fn new(queue: &'g AdmissionQueue, slot: Slot, request: &CallRequest) -> Self {
        Self {
            queue,
            slot,
            kind: request.kind,
            format: request.format,
            has_next: request.has_next,
            bytes: request.bytes,
            is_hedge: request.hedge.is_some(),
            started: Instant::now(),
            sent: false,
            ended: false,
        }
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

    /// Takes note that the call is sent now.
    pub(super) fn send(&mut self) {
        self.sent = true;
        self.started = Instant::now();
        let mut state = lock(&self.queue.state);
        state.judge_usage.calls += 1;
        state.judge_usage.hedges += u64::from(self.is_hedge);
    }

    /// The call was answered. Returns what it has cost, where that is known.
    pub(super) fn answered(mut self, report: &CallReport) -> Option<f64> {
        let mut state = lock(&self.queue.state);
        let cost = state.budget.cost(self.bytes, report.usage);
        state.budget.settle(self.slot.reserved, cost);
        state.judge_usage.pay(cost);
        state.judge_usage.answer(report.latency, report.usage);
        state.latencies.observe(report.latency);
        let (used, thought) = (Budget::tokens(self.bytes, report.usage), Budget::tokens(self.bytes, None));
        state.token_rate.add(Instant::now(), used.saturating_sub(thought));
        if let Some(read) = report.read {
            state.formats.observe(self.kind, self.format, read, self.has_next);
        }
        AdmissionQueue::observe(&mut state, self.slot.endpoint, Health::Healthy, self.started);
        self.release(&mut state);
        cost
    }

    /// The call failed. Returns what it may have cost, where that is known.
    pub(super) fn failed(mut self, error: &CallError) -> Option<f64> {
        let mut state = lock(&self.queue.state);
        let cost = state.budget.cost(self.bytes, None).filter(|_| error.maybe_paid());
        state.budget.settle(self.slot.reserved, cost);
        state.judge_usage.pay(cost);
        state.judge_usage.fail(error.reason.code);
        state.judge_usage.maybe_paid += u64::from(error.maybe_paid());
        match error.objection {
            Some(Objection::Request) => state.formats.refuse(self.kind, self.format, false, self.has_next),
            Some(Objection::Format(_)) => state.formats.refuse(self.kind, self.format, true, self.has_next),
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
        cost
    }

    /// What a call that is dropped now may have cost.
    pub(super) fn estimate(&self) -> Option<f64> {
        lock(&self.queue.state).budget.cost(self.bytes, None)
    }

    fn release(&mut self, state: &mut QueueState) {
        self.ended = true;
        state.in_flight = state.in_flight.saturating_sub(1);
        let endpoint = &mut state.endpoints[self.slot.endpoint];
        endpoint.in_flight = endpoint.in_flight.saturating_sub(1);
        if self.slot.probes_format {
            state.probing.remove(&self.kind);
        }
        state.wake(Instant::now());
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = lock(&self.queue.state);
        if self.sent {
            let cost = state.budget.cost(self.bytes, None);
            state.budget.settle(self.slot.reserved, cost);
            state.judge_usage.pay(cost);
            state.judge_usage.maybe_paid += 1;
        } else {
            state.budget.refund(self.slot.reserved, self.is_hedge);
        }
        self.release(&mut state);
    }
}
