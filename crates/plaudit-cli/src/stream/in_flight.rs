//! The batches that are being scored: several at once where judges are asked, finished in the order in which they were
//! submitted.

use super::Batch;
use crate::interrupt::Interrupt;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::error::RunError;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How many judged batches are under way at once: the last calls of one batch never leave a judge idle.
const MOST_AT_ONCE: u64 = 4;

/// How often the progress bar moves while a batch is waited for.
const TICK: Duration = Duration::from_millis(200);

/// A batch and its report.
pub(super) struct ScoredBatch {
    pub(super) places: Vec<u64>,
    pub(super) rollouts: Arc<Vec<Rollout<'static>>>,
    pub(super) report: Result<Report, RunError>,
}

/// Batches under way, with those that came back before an older one.
pub(super) struct InFlight {
    done: Sender<(u64, ScoredBatch)>,
    results: Receiver<(u64, ScoredBatch)>,
    early: BTreeMap<u64, ScoredBatch>,
    submitted: u64,
    finished: u64,
}

impl InFlight {
    /// Nothing under way.
    pub(super) fn new() -> Self {
        let (done, results) = channel();
        Self { done, results, early: BTreeMap::new(), submitted: 0, finished: 0 }
    }

    /// Submits a batch. Rules keep all cores busy with one batch, so without judges it is scored before this returns.
    pub(super) fn submit(&mut self, engine: &Arc<Engine>, interrupt: &Arc<Interrupt>, batch: Batch) {
        let Batch { places, rollouts, .. } = batch;
        let (number, done) = (self.submitted, self.done.clone());
        self.submitted += 1;
        if engine.plan().judges.is_empty() {
            let report = engine.score(&rollouts);
            self.early.insert(number, ScoredBatch { places, rollouts: Arc::new(rollouts), report });
            return;
        }
        let waiting = interrupt.begin_batch();
        engine.submit(rollouts, ScoreOptions::default(), move |rollouts, report| {
            drop(waiting);
            // The receiver is gone where the run has failed meanwhile; nobody needs the batch then.
            let _ = done.send((number, ScoredBatch { places, rollouts, report }));
        });
    }

    /// Whether the oldest batch must be taken out before another one is submitted.
    pub(super) fn is_full(&self) -> bool {
        self.early.contains_key(&self.finished) || self.submitted - self.finished >= MOST_AT_ONCE
    }

    /// The oldest batch, once it is done; none where none is under way. `waiting` is called while it takes long.
    pub(super) fn oldest(&mut self, waiting: impl Fn()) -> Option<ScoredBatch> {
        if self.finished == self.submitted {
            return None;
        }
        while !self.early.contains_key(&self.finished) {
            match self.results.recv_timeout(TICK) {
                Ok((number, scored)) => drop(self.early.insert(number, scored)),
                Err(RecvTimeoutError::Timeout) => waiting(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.finished += 1;
        self.early.remove(&(self.finished - 1))
    }
}
