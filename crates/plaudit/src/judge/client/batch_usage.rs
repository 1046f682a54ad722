//! Usage of judges by one batch or one join: counted apart from everything else that the same judges are asked.

use super::CallOutcome;
use crate::exec::lock;
use crate::judge::answer::Usage;
use crate::judge::config::Price;
use crate::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Mutex;

/// What one judge was asked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "BatchUsageReply")]
pub struct BatchUsage {
    /// Which judge.
    pub judge: String,
    /// Questions, each once.
    pub asked: u64,
    /// Those whose answer was known before.
    pub cached: u64,
    /// HTTP calls that were sent for the others.
    pub calls: u64,
    /// Questions without an answer.
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

impl BatchUsage {
    /// Of nothing so far.
    fn none(judge: &str, price: Option<Price>) -> Self {
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

    /// Counts a call, and its question where that is new.
    fn observe(&mut self, asked: &CallOutcome, is_new: bool) {
        if is_new {
            self.asked += 1;
            self.cached += u64::from(asked.cached);
            self.failed += u64::from(asked.verdict.is_err());
        }
        self.calls += u64::from(asked.attempts);
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
}

/// Where the answer to a question came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerSource {
    /// Whether it was known before.
    pub cached: bool,
    /// How often the question was sent.
    pub attempts: u32,
}

/// How many questions a meter tells apart at least. Beyond that the oldest are forgotten, so that the meter of a join that
/// lives as long as a training stays small.
const REMEMBERED: usize = 1 << 16;

/// Counts what the calls of one batch or one join ask of the judges of a plan. A question that is asked again, as a group does
/// with what was prescored, is counted once.
#[derive(Debug)]
pub struct UsageMeter(Mutex<Metered>);

#[derive(Debug)]
struct Metered {
    usage: Vec<BatchUsage>,
    /// The answers by the beginning of their keys: the newest, and those before them.
    newest: HashMap<u64, AnswerSource>,
    older: HashMap<u64, AnswerSource>,
}

impl UsageMeter {
    /// Of these judges, each with its price.
    pub(super) fn new<'j>(judges: impl Iterator<Item = (&'j str, Option<Price>)>) -> Self {
        let usage = judges.map(|(judge, price)| BatchUsage::none(judge, price)).collect();
        Self(Mutex::new(Metered { usage, newest: HashMap::new(), older: HashMap::new() }))
    }

    /// Counts a call to the judge of that index.
    pub(super) fn observe(&self, judge: usize, outcome: &CallOutcome) {
        let mut metered = lock(&self.0);
        let is_new = outcome.key.is_none_or(|key| metered.is_new(short(&key), outcome));
        if let Some(usage) = metered.usage.get_mut(judge) {
            usage.observe(outcome, is_new);
        }
    }

    /// What has been asked, in the order of the plan.
    pub fn usage(&self) -> Vec<BatchUsage> {
        lock(&self.0).usage.clone()
    }

    /// What has been asked since this was last taken, in the order of the plan.
    pub fn take(&self) -> Vec<BatchUsage> {
        let mut metered = lock(&self.0);
        let none = metered.usage.iter().map(|usage| BatchUsage::none(&usage.judge, usage.price)).collect();
        std::mem::replace(&mut metered.usage, none)
    }

    /// Where the answer of a judgment key came from when it was first asked for; none where it was not, or too long ago.
    pub fn source(&self, key: &[u8; 32]) -> Option<AnswerSource> {
        let metered = lock(&self.0);
        let key = short(key);
        metered.newest.get(&key).or_else(|| metered.older.get(&key)).copied()
    }
}

impl Metered {
    /// Whether a question is asked for the first time, which is then no longer so.
    fn is_new(&mut self, key: u64, outcome: &CallOutcome) -> bool {
        let CallOutcome { cached, attempts, .. } = *outcome;
        if let Some(known) = self.newest.get_mut(&key).or_else(|| self.older.get_mut(&key)) {
            known.attempts += attempts;
            return false;
        }
        if self.newest.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.newest);
        }
        self.newest.insert(key, AnswerSource { cached, attempts });
        true
    }
}

/// The beginning of a judgment key, which is enough to tell the questions of a step apart.
fn short(key: &[u8; 32]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *key;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::answer::{AnswerFormat, Verdict};
    use std::time::Duration;

    fn outcome(key: u8, cached: bool, attempts: u32) -> CallOutcome {
        CallOutcome {
            verdict: Ok(Verdict::Score(0.5)),
            key: Some([key; 32]),
            format: AnswerFormat::Json,
            attempts,
            cached,
            latency: (attempts > 0).then_some(Duration::from_millis(20)),
            usage: None,
        }
    }

    #[test]
    fn a_question_is_counted_once_and_its_calls_each_time() {
        let meter = UsageMeter::new([("main", None)].into_iter());
        let count = || meter.usage().iter().map(|one| (one.asked, one.cached, one.calls)).collect::<Vec<_>>();
        // The group comes first, since it waits for the call that prescoring sent; then prescoring itself, and once more the group.
        for (cached, attempts) in [(false, 0), (false, 2), (true, 0)] {
            meter.observe(0, &outcome(1, cached, attempts));
        }
        assert_eq!(count(), [(1, 0, 2)]);
        assert_eq!(meter.source(&[1; 32]), Some(AnswerSource { cached: false, attempts: 2 }));
        meter.observe(0, &outcome(2, true, 0));
        assert_eq!((count(), meter.source(&[3; 32])), (vec![(2, 1, 2)], None));
        assert!(meter.source(&[2; 32]).is_some_and(|source| source.cached));
        assert_eq!((meter.take()[0].asked, count()), (2, vec![(0, 0, 0)]));
        assert_eq!(meter.source(&[1; 32]).map(|source| source.attempts), Some(2), "it is still known");
    }

    #[test]
    fn the_memory_of_a_meter_is_bounded() {
        let meter = UsageMeter::new([("main", None)].into_iter());
        for at in 0..3 * REMEMBERED as u64 {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&at.to_le_bytes());
            meter.observe(0, &CallOutcome { key: Some(key), ..outcome(0, false, 1) });
        }
        let metered = lock(&meter.0);
        assert!(metered.newest.len() + metered.older.len() <= 2 * REMEMBERED);
        assert_eq!(metered.usage[0].asked, 3 * REMEMBERED as u64);
    }
}
