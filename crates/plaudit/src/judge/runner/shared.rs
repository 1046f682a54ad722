//! Resources that engines of one process share: judges with their limits, the runtime that calls them, and the thread pool.

use crate::exec::Pool;
use crate::judge::client::{JudgeLog, JudgeRegistry, MemoryRecord, Tally};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

/// What engines have in common that score side by side in one process. Every judge is known once, so that its limits hold
/// over all of them; and each engine still has a queue of its own, so that one with much to ask does not starve another.
pub struct SharedResources {
    pub(super) registry: JudgeRegistry,
    /// What was asked lately, for engines without a journal.
    pub(super) record: Arc<MemoryRecord>,
    runtime: OnceLock<Option<Runtime>>,
    pool: OnceLock<Arc<Pool>>,
}

impl Default for SharedResources {
    fn default() -> Self {
        Self {
            registry: JudgeRegistry::default(),
            record: Arc::new(MemoryRecord::default()),
            runtime: OnceLock::new(),
            pool: OnceLock::new(),
        }
    }
}

impl fmt::Debug for SharedResources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedResources").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl SharedResources {
    /// The same, with judges whose error texts go to a log alone, and not into reasons.
    pub fn redacted(log: JudgeLog) -> Self {
        let mut shared = Self::default();
        shared.registry = JudgeRegistry::redacted(log);
        shared
    }

    /// What all judges have been asked so far, by whichever engine.
    pub fn tallies(&self) -> Vec<Tally> {
        self.registry.tallies()
    }

    /// The threads that groups are scored on: one a core, whatever the recipes say.
    pub fn pool(&self) -> Arc<Pool> {
        Arc::clone(self.pool.get_or_init(|| Arc::new(Pool::new(None))))
    }

    /// What was asked lately, for engines without a journal.
    pub(crate) fn memory(&self) -> Arc<MemoryRecord> {
        Arc::clone(&self.record)
    }

    /// What judges are asked on, which starts with so many threads; none where the system gives no threads.
    pub(crate) fn runtime(&self, threads: usize) -> Option<&Runtime> {
        self.runtime.get_or_init(|| start(threads)).as_ref()
    }
}

impl Drop for SharedResources {
    fn drop(&mut self) {
        // Nothing is under way, because every task holds its runner. The last of them may drop it on a thread of the
        // runtime itself, which must not wait for its own end.
        if let Some(runtime) = self.runtime.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

fn start(threads: usize) -> Option<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("plaudit-judge")
        .enable_all()
        .build()
        .ok()
}
