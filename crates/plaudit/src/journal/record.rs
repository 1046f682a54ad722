//! How does the caller write into the journal? What it needs of a record, said in the journal's words.

use super::{Journal, JournalError, Judgment, Key};
use crate::reason::{Code, Reason};
use crate::schedule::Record;
use futures_util::future::BoxFuture;
use std::sync::PoisonError;
use std::time::Duration;

/// A journal that cannot be written stops all spending, whatever the cause.
fn full(error: &JournalError) -> Reason {
    Reason::new(Code::JournalFull, error.to_string())
}

/// The name under which the cost of a judge is remembered.
fn cost_of(judge: &str) -> String {
    format!("cost:{judge}")
}

impl Record for Journal {
    fn get(&self, key: &[u8; 32]) -> Result<Option<Vec<u8>>, Reason> {
        let judgment = Journal::get(self, &Key::from(*key)).map_err(|error| full(&error))?;
        Ok(judgment.map(|judgment| judgment.body))
    }

    fn intend(&self, key: &[u8; 32], judge: &str) -> Result<(), Reason> {
        Journal::intend(self, &Key::from(*key), judge).map_err(|error| full(&error))
    }

    fn keep<'a>(
        &'a self,
        key: &[u8; 32],
        judge: &str,
        body: &[u8],
        latency: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        let judgment = Judgment { body: body.to_vec(), latency, judge: judge.to_owned() };
        let ticket = self.record(&Key::from(*key), &judgment);
        Box::pin(async move {
            let ticket = ticket.map_err(|error| full(&error))?;
            ticket.durable().await.map_err(|error| full(&error))
        })
    }

    fn give_up(&self, key: &[u8; 32], code: Code, maybe_paid: bool) {
        // What cannot be written here shows when the next call is intended.
        let _ = Journal::give_up(self, &Key::from(*key), code.as_str(), maybe_paid);
    }

    fn recall(&self, name: &str) -> Option<String> {
        Journal::recall(self, name)
    }

    fn remember(&self, name: &str, value: &str) {
        let _ = Journal::remember(self, name, value);
    }

    fn calls(&self, judge: &str) -> u64 {
        self.spent(judge).calls
    }

    fn cost(&self, judge: &str) -> f64 {
        match Journal::recall(self, &cost_of(judge)) {
            None => 0.0,
            // A sum that cannot be read must not open the purse again.
            Some(cost) => cost.parse().unwrap_or(f64::INFINITY),
        }
    }

    fn spend(&self, judge: &str, cost: f64) {
        let _held = self.summing.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = Record::cost(self, judge) + cost;
        let _ = Journal::remember(self, &cost_of(judge), &sum.to_string());
    }
}
