//! May one more call be made? Calls and cost that hold exactly, and the shares for retries and hedges.

use super::config::{JudgeSpec, Price};
use crate::judge::Usage;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many bytes of a prompt are about one token, and how many tokens an answer may take.
const BYTES_A_TOKEN: u64 = 4;
const ANSWER_TOKENS: u64 = 1000;

/// More tokens in an answer than any judge writes.
const ABSURD: u64 = 10_000_000;

/// How many retries are always allowed.
const FREE_RETRIES: f64 = 3.0;

/// Whether a call may be paid for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Purse {
    /// So much is set aside for it.
    Holds(f64),
    /// It depends on what the calls in flight will have cost.
    Depends,
    /// Never again.
    Spent,
}

/// The day, in UTC, since 1970. Only what a day may cost depends on it.
pub(super) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

/// What a judge may still be asked, and what it has cost.
#[derive(Debug)]
pub(super) struct Budget {
    /// The calls of a day and the day that is counted, where the budget is a day's.
    daily: Option<(Option<u64>, u64)>,
    calls_left: Option<u64>,
    cost_limit: Option<f64>,
    price: Option<Price>,
    spent: f64,
    reserved: f64,
    share_of_retries: f64,
    share_of_hedges: f64,
    calls: u64,
    retries: u64,
    hedges: u64,
}

impl Budget {
    pub(super) fn new(spec: &JudgeSpec) -> Self {
        Self {
            daily: spec.budget_daily.then(|| (spec.budget_calls, today())),
            calls_left: spec.budget_calls,
            cost_limit: spec.budget_cost,
            price: spec.price,
            spent: 0.0,
            reserved: 0.0,
            share_of_retries: spec.retries,
            share_of_hedges: spec.hedge,
            calls: 0,
            retries: 0,
            hedges: 0,
        }
    }

    /// Takes in what was spent before.
    pub(super) fn begin(&mut self, calls: u64, cost: f64) {
        self.calls_left = self.calls_left.map(|left| left.saturating_sub(calls));
        self.spent += cost;
    }

    /// Begins a new day, where the budget is a day's and it is another one.
    pub(super) fn renew(&mut self, today: u64) {
        if let Some((calls, day)) = &mut self.daily
            && *day != today
        {
            (self.calls_left, self.spent, *day) = (*calls, 0.0, today);
        }
    }

    /// Whether it is a day's.
    pub(super) fn is_daily(&self) -> bool {
        self.daily.is_some()
    }

    /// About how many tokens a call takes.
    pub(super) fn tokens(bytes: usize, usage: Option<Usage>) -> u64 {
        let estimate = bytes as u64 / BYTES_A_TOKEN;
        usage.map_or(estimate, |usage| usage.prompt.min(ABSURD) + usage.completion.min(ABSURD))
    }

    /// What a call with a prompt of so many bytes is taken to cost until it is known.
    fn estimate(&self, bytes: usize) -> f64 {
        let usage = Usage { prompt: bytes as u64 / BYTES_A_TOKEN, cached: 0, completion: ANSWER_TOKENS };
        self.price.map_or(0.0, |price| price.of(&usage))
    }

    /// What a call has cost: by its usage where that is credible, else as estimated. None without a price.
    pub(super) fn cost(&self, bytes: usize, usage: Option<Usage>) -> Option<f64> {
        let credible =
            |usage: &Usage| usage.prompt <= bytes as u64 + ANSWER_TOKENS && usage.completion <= ABSURD;
        let price = self.price?;
        Some(usage.filter(credible).map_or_else(|| self.estimate(bytes), |usage| price.of(&usage)))
    }

    /// Whether a call with a prompt of so many bytes may be sent.
    pub(super) fn looks(&self, bytes: usize) -> Purse {
        let estimate = self.estimate(bytes);
        if self.calls_left == Some(0) {
            return Purse::Spent;
        }
        match self.cost_limit {
            Some(limit) if self.spent + estimate > limit => Purse::Spent,
            Some(limit) if self.spent + self.reserved + estimate > limit => Purse::Depends,
            _ => Purse::Holds(estimate),
        }
    }

    /// Sets aside what a call may cost, before it is sent.
    pub(super) fn reserve(&mut self, estimate: f64, is_hedge: bool) {
        self.calls_left = self.calls_left.map(|left| left.saturating_sub(1));
        self.reserved += estimate;
        self.calls += 1;
        self.hedges += u64::from(is_hedge);
    }

    /// Puts what a call has cost in the place of what was set aside for it.
    pub(super) fn settle(&mut self, estimate: f64, cost: f64) {
        self.reserved = (self.reserved - estimate).max(0.0);
        self.spent += cost;
    }

    /// A call that was not sent after all.
    pub(super) fn refund(&mut self, estimate: f64, is_hedge: bool) {
        self.calls_left = self.calls_left.map(|left| left + 1);
        self.reserved = (self.reserved - estimate).max(0.0);
        self.calls = self.calls.saturating_sub(1);
        self.hedges = self.hedges.saturating_sub(u64::from(is_hedge));
    }

    /// Whether one more call may be retried; if so, it is counted.
    pub(super) fn retry(&mut self) -> bool {
        let first = self.calls.saturating_sub(self.retries + self.hedges) as f64;
        let may = (self.retries + 1) as f64 <= FREE_RETRIES + self.share_of_retries * first;
        self.retries += u64::from(may);
        may
    }

    /// Whether one more call may be hedged.
    pub(super) fn may_hedge(&self) -> bool {
        (self.hedges + 1) as f64 <= self.share_of_hedges * self.calls as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> JudgeSpec {
        JudgeSpec::at("judge", "http://127.0.0.1:1")
    }

    #[test]
    fn calls_hold_over_restarts() {
        let spec = JudgeSpec { budget_calls: Some(3), ..spec() };
        let mut budget = Budget::new(&spec);
        budget.begin(1, 0.0);
        budget.reserve(0.0, false);
        assert_eq!(budget.looks(0), Purse::Holds(0.0));
        budget.reserve(0.0, false);
        assert_eq!(budget.looks(0), Purse::Spent);
        budget.refund(0.0, false);
        assert_eq!(budget.looks(0), Purse::Holds(0.0));
    }

    #[test]
    fn cost_waits_for_what_is_in_flight_and_then_holds() {
        let price = Some(Price { input: 0.0, cached: 0.0, output: 100.0 });
        let spec = JudgeSpec { budget_cost: Some(0.15), price, ..spec() };
        let mut budget = Budget::new(&spec);
        let Purse::Holds(estimate) = budget.looks(0) else { panic!("it holds") };
        budget.reserve(estimate, false);
        assert_eq!(budget.looks(0), Purse::Depends);
        let usage = Usage { prompt: 10, cached: 0, completion: 10 };
        budget.settle(estimate, budget.cost(0, Some(usage)).unwrap());
        assert!(matches!(budget.looks(0), Purse::Holds(_)));
        let absurd = Usage { prompt: u64::MAX, ..usage };
        assert_eq!(budget.cost(0, Some(absurd)), Some(0.1));
        budget.settle(0.0, 0.1);
        assert_eq!(budget.looks(0), Purse::Spent);
    }

    #[test]
    fn a_day_has_a_budget_of_its_own() {
        let mut budget = Budget::new(&JudgeSpec { budget_calls: Some(1), budget_daily: true, ..spec() });
        budget.reserve(0.0, false);
        budget.renew(today());
        assert_eq!(budget.looks(0), Purse::Spent);
        budget.renew(today() + 1);
        assert_eq!(budget.looks(0), Purse::Holds(0.0));
    }

    #[test]
    fn retries_and_hedges_are_a_share_of_the_calls() {
        let mut budget = Budget::new(&spec());
        for _ in 0..100 {
            budget.reserve(0.0, false);
        }
        assert_eq!((0..100).filter(|_| budget.retry()).count(), 19, "what is retried is no first call");
        assert_eq!((0..100).filter(|_| budget.may_hedge()).count(), 100);
        for _ in 0..5 {
            budget.reserve(0.0, true);
        }
        assert!(!budget.may_hedge());
    }
}
