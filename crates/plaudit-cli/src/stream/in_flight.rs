//! The batches that are being scored and rendered: several at once, finished in the order in which they were submitted.

use super::{Batch, JUDGED_BATCH, Renderer, TICK};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::error::RunError;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::statistics::Statistics;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// The fewest batches under way at once, so that the last groups of one leave nobody idle.
const FEWEST: usize = 4;
/// The most, so that memory does not grow with the number of cores or of calls.
const MAX_BATCHES: usize = 64;

/// A batch that has been scored.
pub(super) struct ScoredBatch<P> {
    pub(super) places: Vec<u64>,
    pub(super) rendered: Result<Rendered<P>, CliError>,
}

/// What is left of a batch once it is rendered.
pub(super) struct Rendered<P> {
    pub(super) pieces: Vec<P>,
    pub(super) statistics: Statistics,
    /// The rollouts and their report, where somebody needs more of them.
    pub(super) detail: Option<(Arc<Vec<Rollout<'static>>>, Report)>,
}

/// A batch that is being scored and rendered.
struct PendingBatch<P> {
    places: Vec<u64>,
    result: Receiver<Result<Rendered<P>, CliError>>,
}

/// Batches under way, the oldest first.
pub(super) struct InFlight<P> {
    engine: Arc<Engine>,
    renderer: Renderer<P>,
    batches: VecDeque<PendingBatch<P>>,
    most: usize,
}

impl<P: Send + 'static> InFlight<P> {
    /// Nothing under way.
    pub(super) fn new(engine: &Arc<Engine>, renderer: Renderer<P>) -> Self {
        // One more for each core; or so many that the judges' calls in flight are there twice, at one call a rollout.
        let judges = &engine.plan().judges;
        let calls: usize = judges.iter().map(|judge| judge.config.concurrency).sum();
        let more = if judges.is_empty() { engine.pool().threads() } else { 2 * calls / JUDGED_BATCH.0 };
        let most = (FEWEST + more).min(MAX_BATCHES);
        Self { engine: Arc::clone(engine), renderer, batches: VecDeque::new(), most }
    }

    /// The pieces of rollouts that were not scored.
    pub(super) fn render(&self, rollouts: &[Rollout<'static>], report: &Report) -> Result<Vec<P>, CliError> {
        (self.renderer)(rollouts, report)
    }

    /// Has a batch scored and rendered. Unless its detail is kept, it is freed where it was scored.
    pub(super) fn submit(&mut self, interrupt: &Arc<Interrupt>, batch: Batch, keep: bool) {
        let (done, result) = sync_channel(1);
        let (renderer, waiting) = (Arc::clone(&self.renderer), interrupt.begin_batch());
        self.engine.submit(batch.rollouts, ScoreOptions::default(), move |rollouts, report| {
            drop(waiting);
            let rendered = report.map_err(CliError::from).and_then(|report| {
                let pieces = renderer(&rollouts, &report)?;
                let statistics = report.statistics.clone();
                Ok(Rendered { pieces, statistics, detail: keep.then_some((rollouts, report)) })
            });
            // The receiver is gone where the run has failed meanwhile; nobody needs the batch then.
            let _ = done.send(rendered);
        });
        self.batches.push_back(PendingBatch { places: batch.places, result });
    }

    /// Whether the oldest batch must be taken out before another one is submitted.
    pub(super) fn is_full(&self) -> bool {
        self.batches.len() >= self.most
    }

    /// The oldest batch, once it is done; none where none is under way. `waiting` is called while it takes long.
    pub(super) fn oldest(&mut self, waiting: impl Fn()) -> Option<ScoredBatch<P>> {
        let PendingBatch { places, result } = self.batches.pop_front()?;
        let rendered = loop {
            match result.recv_timeout(TICK) {
                Ok(rendered) => break rendered,
                Err(RecvTimeoutError::Timeout) => waiting(),
                Err(RecvTimeoutError::Disconnected) => break Err(RunError::Panicked.into()),
            }
        };
        Some(ScoredBatch { places, rendered })
    }
}
