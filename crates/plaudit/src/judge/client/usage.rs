//! Usage of one judge by one engine, which shares the judge with others.

use super::CallOutcome;
use crate::judge::answer::Usage;
use crate::judge::config::Price;
use crate::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;

/// What one engine has asked of one judge.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "AccountReply")]
pub struct JudgeUsage {
    /// Which judge.
    pub judge: String,
    /// Calls that were wanted.
    pub asked: u64,
    /// Those that the record answered.
    pub cached: u64,
    /// HTTP calls that were sent for the others.
    pub calls: u64,
    /// Those without an answer.
    pub failed: u64,
    /// How long answers took, in seconds.
    pub latency: Distribution,
    /// The tokens that answers say they took.
    pub tokens: Usage,
    /// What the answers have cost, where prices are known.
    pub cost: Option<f64>,
    #[serde(skip)]
    price: Option<Price>,
}

impl JudgeUsage {
    /// Of nothing so far.
    pub(super) fn none(judge: &str, price: Option<Price>) -> Self {
        Self {
            judge: judge.to_owned(),
            asked: 0,
            cached: 0,
            calls: 0,
            failed: 0,
            latency: Distribution::none(),
            tokens: Usage { prompt: 0, cached: 0, completion: 0 },
            cost: price.map(|_| 0.0),
            price,
        }
    }

    pub(super) fn observe(&mut self, asked: &CallOutcome) {
        self.asked += 1;
        self.cached += u64::from(asked.cached);
        self.calls += u64::from(asked.attempts);
        self.failed += u64::from(asked.verdict.is_err());
        let Some(latency) = asked.latency.filter(|_| !asked.cached) else { return };
        self.latency.observe(latency.as_secs_f64());
        if let Some(usage) = &asked.usage {
            self.tokens.prompt = self.tokens.prompt.saturating_add(usage.prompt);
            self.tokens.cached = self.tokens.cached.saturating_add(usage.cached);
            self.tokens.completion = self.tokens.completion.saturating_add(usage.completion);
            self.cost = self.cost.zip(self.price).map(|(cost, price)| cost + price.of(usage));
        }
    }

    /// Takes all of another in.
    pub fn merge(&mut self, other: &Self) {
        self.asked += other.asked;
        self.cached += other.cached;
        self.calls += other.calls;
        self.failed += other.failed;
        self.latency.merge(&other.latency);
        self.tokens.prompt = self.tokens.prompt.saturating_add(other.tokens.prompt);
        self.tokens.cached = self.tokens.cached.saturating_add(other.tokens.cached);
        self.tokens.completion = self.tokens.completion.saturating_add(other.tokens.completion);
        self.cost = self.cost.zip(other.cost).map(|(ours, theirs)| ours + theirs);
    }

    /// Gives out what there is and begins anew.
    pub(super) fn take(&mut self) -> Self {
        let none = Self::none(&self.judge, self.price);
        std::mem::replace(self, none)
    }
}
