//! Counts of one judge over all engines: calls, cache hits, retries, hedges, failures, latency, tokens and cost.

use super::formats::FormatChoice;
use crate::judge::answer::Usage;
use crate::reason::Code;
use crate::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The counts of one judge.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "JudgeUsageReply")]
pub struct JudgeUsage {
    /// Which judge.
    pub judge: String,
    /// Calls that were sent, retries and hedges among them.
    pub calls: u64,
    /// Calls that the record answered.
    pub cached: u64,
    /// Calls that an equal one in flight answered.
    pub shared: u64,
    /// Calls that were sent because an earlier one failed or could not be read.
    pub retries: u64,
    /// Calls that were sent because an earlier one was slow.
    pub hedges: u64,
    /// Those of them that answered first.
    pub hedges_won: u64,
    /// Calls without an answer that may have been paid for.
    pub maybe_paid: u64,
    /// Calls that failed, by cause.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub failures: BTreeMap<Code, u64>,
    /// Answers without a verdict, by cause.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub unread: BTreeMap<Code, u64>,
    /// How long answers took, in seconds.
    pub latency: Distribution,
    /// How many seconds all answers together waited until they were durable in the journal.
    pub journal_wait: f64,
    /// The tokens that answers say they took.
    pub tokens: Usage,
    /// Answers that did not say.
    pub tokens_unknown: u64,
    /// What the calls of this run have cost, where prices are known.
    pub cost: Option<f64>,
    /// How many calls may be in flight now.
    pub limit: usize,
    /// How many were in flight at most.
    pub peak: usize,
    /// How often an endpoint failed so often that it was left alone.
    pub openings: u64,
    /// In which format each kind of question is asked, and why.
    pub formats: Vec<FormatChoice>,
    /// Parameters that the endpoint refused, and that are left out of requests since.
    pub left_out: Vec<&'static str>,
}

impl JudgeUsage {
    /// Of a judge that has not been called.
    pub(super) fn none(judge: &str, priced: bool) -> Self {
        Self {
            judge: judge.to_owned(),
            calls: 0,
            cached: 0,
            shared: 0,
            retries: 0,
            hedges: 0,
            hedges_won: 0,
            maybe_paid: 0,
            failures: BTreeMap::new(),
            unread: BTreeMap::new(),
            latency: Distribution::none(),
            journal_wait: 0.0,
            tokens: Usage { prompt: 0, cached: 0, completion: 0 },
            tokens_unknown: 0,
            cost: priced.then_some(0.0),
            limit: 0,
            peak: 0,
            openings: 0,
            formats: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// The mean seconds of an answer and of its wait for the journal, where the journal takes the longer part.
    pub fn journal_limit(&self) -> Option<(f64, f64)> {
        let answers = &self.latency.moments;
        let wait = self.journal_wait / answers.count.max(1) as f64;
        (answers.count > 0 && wait > answers.mean).then_some((answers.mean, wait))
    }

    pub(super) fn fail(&mut self, code: Code) {
        *self.failures.entry(code).or_insert(0) += 1;
    }

    pub(super) fn misread(&mut self, code: Code) {
        *self.unread.entry(code).or_insert(0) += 1;
    }

    pub(super) fn answer(&mut self, latency: Duration, usage: Option<Usage>) {
        self.latency.observe(latency.as_secs_f64());
        let Some(usage) = usage else {
            self.tokens_unknown += 1;
            return;
        };
        self.tokens.prompt = self.tokens.prompt.saturating_add(usage.prompt);
        self.tokens.cached = self.tokens.cached.saturating_add(usage.cached);
        self.tokens.completion = self.tokens.completion.saturating_add(usage.completion);
    }

    /// Adds the cost of a call, where it is known. Without a price, the sum stays unknown.
    pub(super) fn pay(&mut self, cost: Option<f64>) {
        self.cost = self.cost.map(|sum| cost.map_or(sum, |cost| sum + cost));
    }
}
