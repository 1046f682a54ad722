//! Budgets of one judge: calls and cost that hold exactly, and the shares of retries and hedges.

use crate::judge::answer::Usage;
use crate::judge::config::{BudgetPeriod, Price, ResolvedJudge};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many bytes of a prompt are about one token, and how many tokens an answer may take.
const BYTES_A_TOKEN: u64 = 4;
const ANSWER_TOKENS: u64 = 1000;

/// More tokens in an answer than any judge writes.
const ABSURD: u64 = 10_000_000;

/// How many retries are always allowed.
const FREE_RETRIES: f64 = 3.0;

/// Whether a call may be sent within the budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BudgetCheck {
    /// Yes, and so much is reserved for it.
    Allowed(f64),
    /// It depends on what the calls in flight will have cost.
    Wait,
    /// Never again.
    Exhausted,
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
    retry_share: f64,
    hedge_share: f64,
    calls: u64,
    retries: u64,
    hedges: u64,
}

impl Budget {
    pub(super) fn new(judge: &ResolvedJudge) -> Self {
        let limits = judge.budget();
        Self {
            daily: (limits.per == BudgetPeriod::Day).then(|| (limits.calls, today())),
            calls_left: limits.calls,
            cost_limit: limits.cost,
            price: judge.config.price,
            spent: 0.0,
            reserved: 0.0,
            retry_share: judge.config.retry_share,
            hedge_share: judge.config.hedge_share,
            calls: 0,
            retries: 0,
            hedges: 0,
        }
    }

    /// Takes in what was spent before.
    pub(super) fn load(&mut self, calls: u64, cost: f64) {
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
    pub(super) fn check(&self, bytes: usize) -> BudgetCheck {
        let estimate = self.estimate(bytes);
        if self.calls_left == Some(0) {
            return BudgetCheck::Exhausted;
        }
        match self.cost_limit {
            Some(limit) if self.spent + estimate > limit => BudgetCheck::Exhausted,
            Some(limit) if self.spent + self.reserved + estimate > limit => BudgetCheck::Wait,
            _ => BudgetCheck::Allowed(estimate),
        }
    }

    /// Sets aside what a call may cost, before it is sent.
    pub(super) fn reserve(&mut self, estimate: f64, is_hedge: bool) {
        self.calls_left = self.calls_left.map(|left| left.saturating_sub(1));
        self.reserved += estimate;
        self.calls += 1;
        self.hedges += u64::from(is_hedge);
    }

    /// Puts what a call has cost in the place of what was set aside for it: nothing where there is no price, or where it was
    /// surely not paid for.
    pub(super) fn settle(&mut self, estimate: f64, cost: Option<f64>) {
        self.reserved = (self.reserved - estimate).max(0.0);
        self.spent = cost.map_or(self.spent, |cost| self.spent + cost);
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
        let may = (self.retries + 1) as f64 <= FREE_RETRIES + self.retry_share * first;
        self.retries += u64::from(may);
        may
    }

    /// Whether one more call may be hedged.
    pub(super) fn may_hedge(&self) -> bool {
        (self.hedges + 1) as f64 <= self.hedge_share * self.calls as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::config::{BudgetConfig, JudgeConfig};
    use crate::judge::endpoint::Endpoint;

    fn budget(limits: BudgetConfig, price: Option<Price>) -> Budget {
        let judge =
            JudgeConfig { kind: Endpoint::Overlap, budget: Some(limits), price, ..JudgeConfig::default() };
        Budget::new(&ResolvedJudge::new("judge", judge).expect("a judge"))
    }

    fn calls(calls: u64, per: BudgetPeriod) -> BudgetConfig {
        BudgetConfig { calls: Some(calls), cost: None, per }
    }

    #[test]
    fn calls_hold_over_restarts() {
        let mut budget = budget(calls(3, BudgetPeriod::Once), None);
        budget.load(1, 0.0);
        budget.reserve(0.0, false);
        assert_eq!(budget.check(0), BudgetCheck::Allowed(0.0));
        budget.reserve(0.0, false);
        assert_eq!(budget.check(0), BudgetCheck::Exhausted);
        budget.refund(0.0, false);
        assert_eq!(budget.check(0), BudgetCheck::Allowed(0.0));
    }

    #[test]
    fn cost_waits_for_calls_in_flight_and_then_holds() {
        let price = Price { input: 0.0, cached: None, output: 100.0 };
        let mut budget = budget(BudgetConfig { cost: Some(0.15), ..BudgetConfig::default() }, Some(price));
        let BudgetCheck::Allowed(estimate) = budget.check(0) else { panic!("it holds") };
        budget.reserve(estimate, false);
        assert_eq!(budget.check(0), BudgetCheck::Wait);
        let usage = Usage { prompt: 10, cached: 0, completion: 10 };
        budget.settle(estimate, budget.cost(0, Some(usage)));
        assert!(matches!(budget.check(0), BudgetCheck::Allowed(_)));
        let absurd = Usage { prompt: u64::MAX, ..usage };
        assert_eq!(budget.cost(0, Some(absurd)), Some(0.1));
        budget.settle(0.0, Some(0.1));
        assert_eq!(budget.check(0), BudgetCheck::Exhausted);
    }

    #[test]
    fn a_day_has_a_budget_of_its_own() {
        let mut budget = budget(calls(1, BudgetPeriod::Day), None);
        budget.reserve(0.0, false);
        budget.renew(today());
        assert_eq!(budget.check(0), BudgetCheck::Exhausted);
        budget.renew(today() + 1);
        assert_eq!(budget.check(0), BudgetCheck::Allowed(0.0));
    }

    #[test]
    fn retries_and_hedges_are_a_share_of_the_calls() {
        let mut budget = budget(BudgetConfig::default(), None);
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
