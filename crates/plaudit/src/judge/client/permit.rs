//! What does a call hold, and what does its end teach? The permit, which frees everything however the call ends.

use super::admission::{Gate, Place, Wish};
use super::budget::Budget;
use super::call_error::{Fault, Health};
use super::record::held;
use crate::judge::{Form, Usage};
use std::time::Duration;
use tokio::time::Instant;

/// What an answer says of the form that was asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The judge takes it.
    Yes,
    /// The judge does not, and a worse one is left.
    No,
    /// Nothing.
    Unknown,
}

/// An answer, as far as the gate is concerned.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) latency: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) taken: Taken,
}

/// The right to one call. Dropped after the call was sent, the call counts as one that may have been paid for.
pub(super) struct Permit<'g> {
    gate: &'g Gate,
    place: Place,
    form: Form,
    bytes: usize,
    is_hedge: bool,
    started: Instant,
    sent: bool,
    ended: bool,
}

impl<'g> Permit<'g> {
    pub(super) fn new(gate: &'g Gate, place: Place, wish: &Wish) -> Self {
        Self {
            gate,
            place,
            form: wish.form,
            bytes: wish.bytes,
            is_hedge: wish.hedge.is_some(),
            started: Instant::now(),
            sent: false,
            ended: false,
        }
    }

    pub(super) fn endpoint(&self) -> usize {
        self.place.endpoint
    }

    /// What was set aside for the call.
    pub(super) fn reserved(&self) -> f64 {
        self.place.reserved
    }

    /// Whether the call finds out if the judge takes its form.
    pub(super) fn tries_form(&self) -> bool {
        self.place.tries_form
    }

    /// Takes note that the call is sent now.
    pub(super) fn send(&mut self) {
        self.sent = true;
        self.started = Instant::now();
        let mut state = held(&self.gate.state);
        state.tally.calls += 1;
        state.tally.hedges += u64::from(self.is_hedge);
    }

    /// The call was answered. Returns what it has cost, where that is known.
    pub(super) fn answered(mut self, answer: &Answer) -> Option<f64> {
        let mut state = held(&self.gate.state);
        let cost = state.budget.cost(self.bytes, answer.usage);
        state.budget.settle(self.place.reserved, cost.unwrap_or(0.0));
        state.tally.pay(cost.unwrap_or(0.0));
        state.tally.answer(answer.latency, answer.usage);
        state.latencies.observe(answer.latency);
        let (used, thought) = (Budget::tokens(self.bytes, answer.usage), Budget::tokens(self.bytes, None));
        state.tokens.add(Instant::now(), used.saturating_sub(thought));
        match answer.taken {
            Taken::Yes => drop(state.works.insert(self.form)),
            Taken::No => drop(state.refused.insert(self.form)),
            Taken::Unknown => {}
        }
        Gate::observe(&mut state, self.place.endpoint, Health::Well, self.started);
        drop(state);
        self.release();
        cost
    }

    /// The call failed. Returns what it may have cost, where that is known.
    pub(super) fn failed(mut self, fault: &Fault, refuses_form: bool) -> Option<f64> {
        let mut state = held(&self.gate.state);
        let cost = state.budget.cost(self.bytes, None).filter(|_| fault.maybe_paid());
        state.budget.settle(self.place.reserved, cost.unwrap_or(0.0));
        state.tally.pay(cost.unwrap_or(0.0));
        state.tally.fail(fault.reason.code);
        state.tally.maybe_paid += u64::from(fault.maybe_paid());
        if refuses_form {
            state.refused.insert(self.form);
        }
        if fault.health != Health::Well {
            state.last_fault = Some(fault.reason.clone());
        }
        Gate::observe(&mut state, self.place.endpoint, fault.health, self.started);
        if fault.health == Health::Dead {
            state.dead.get_or_insert(fault.reason.clone());
        }
        drop(state);
        self.release();
        cost
    }

    /// What a call that is dropped now may have cost.
    pub(super) fn estimate(&self) -> Option<f64> {
        held(&self.gate.state).budget.cost(self.bytes, None)
    }

    fn release(&mut self) {
        self.ended = true;
        let mut state = held(&self.gate.state);
        state.in_flight = state.in_flight.saturating_sub(1);
        let endpoint = &mut state.endpoints[self.place.endpoint];
        endpoint.in_flight = endpoint.in_flight.saturating_sub(1);
        if self.place.tries_form {
            state.trying_form = false;
        }
        state.settle(Instant::now());
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = held(&self.gate.state);
        if self.sent {
            let cost = state.budget.cost(self.bytes, None).unwrap_or(0.0);
            state.budget.settle(self.place.reserved, cost);
            state.tally.pay(cost);
            state.tally.maybe_paid += 1;
        } else {
            state.budget.refund(self.place.reserved, self.is_hedge);
        }
        drop(state);
        self.release();
    }
}
