//! `Record` on top of the journal: what the judge client and the runner of programs read and write.

use super::{Journal, JournalError, Judgment, JudgmentKey};
use crate::exec::lock;
use crate::reason::{Code, Reason};
use crate::record::{Allowance, CallGrant, Claim, Record, RecordSource};
use futures_util::future::BoxFuture;
use std::future::ready;
use std::time::Duration;

/// A journal that cannot be written stops all spending, whatever the cause.
fn full(error: &JournalError) -> Reason {
    Reason::new(Code::JournalFull, error.to_string())
}

/// The name under which the cost of a judge is remembered.
fn cost_of(judge: &str) -> String {
    format!("cost:{judge}")
}

impl Journal {
    /// What a judge has cost, by this process and all before it.
    fn cost(&self, judge: &str) -> f64 {
        match Journal::recall(self, &cost_of(judge)) {
            None => 0.0,
            // A sum that cannot be read must not open the purse again.
            Some(cost) => cost.parse().unwrap_or(f64::INFINITY),
        }
    }
}

impl Record for Journal {
    fn get<'a>(&'a self, key: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        let judgment = Journal::get(self, &JudgmentKey::from(*key)).map_err(|error| full(&error));
        Box::pin(ready(judgment.map(|judgment| judgment.map(|judgment| judgment.body))))
    }

    fn begin_call<'a>(&'a self, claim: Claim<'a>, _: Allowance) -> BoxFuture<'a, Result<CallGrant, Reason>> {
        let intended = Journal::intend(self, &JudgmentKey::from(*claim.key), claim.judge);
        Box::pin(ready(intended.map(|()| CallGrant::Granted).map_err(|error| full(&error))))
    }

    fn store<'a>(
        &'a self,
        source: RecordSource<'a>,
        body: &[u8],
        latency: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        let judgment = Judgment { body: body.to_vec(), latency, judge: source.name().to_owned() };
        let ticket = self.record(&JudgmentKey::from(*source.key()), &judgment);
        Box::pin(async move {
            let ticket = ticket.map_err(|error| full(&error))?;
            ticket.durable().await.map_err(|error| full(&error))
        })
    }

    fn fail_call(&self, claim: Claim<'_>, code: Code, maybe_paid: bool) {
        // What cannot be written here shows when the next call is intended.
        let _ = Journal::give_up(self, &JudgmentKey::from(*claim.key), code.as_str(), maybe_paid);
    }

    fn get_fact<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>, Reason>> {
        Box::pin(ready(Ok(Journal::recall(self, name))))
    }

    fn set_fact(&self, name: &str, value: &str) {
        let _ = Journal::remember(self, name, value);
    }

    fn spent<'a>(&'a self, judge: &'a str) -> BoxFuture<'a, Result<(u64, f64), Reason>> {
        Box::pin(ready(Ok((Journal::spent(self, judge).calls, self.cost(judge)))))
    }

    fn spend(&self, judge: &str, _: f64, cost: f64) {
        if cost > 0.0 {
            let _held = lock(&self.summing);
            let sum = self.cost(judge) + cost;
            let _ = Journal::remember(self, &cost_of(judge), &sum.to_string());
        }
    }
}
