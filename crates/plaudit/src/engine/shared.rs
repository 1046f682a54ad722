//! Resources that engines of one process share: judges with their limits, the runtime that calls them, and the thread pool.

use crate::exec::{Pool, SharedRuntime};
use crate::judge::client::{JudgeLog, JudgeRegistry, JudgeUsage};
use crate::record::MemoryRecord;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What engines have in common that score side by side in one process. Every judge is known once, so that its limits hold
/// over all of them; and each engine still has a queue of its own, so that one with much to ask does not starve another.
#[derive(Default)]
pub struct SharedResources {
    pub(super) registry: JudgeRegistry,
    /// What was asked and run lately, for engines without a journal.
    pub(super) record: Arc<MemoryRecord>,
    /// What judges are asked on, and programs are waited for.
    pub(super) runtime: Arc<SharedRuntime>,
    pool: OnceLock<Arc<Pool>>,
}

impl fmt::Debug for SharedResources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedResources").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl SharedResources {
    /// The same, with judges whose error texts go to a log alone, and not into reasons.
    pub fn redacted(log: JudgeLog) -> Self {
        Self { registry: JudgeRegistry::redacted(log), ..Self::default() }
    }

    /// What all judges have been asked so far, by whichever engine.
    pub fn judge_usage(&self) -> Vec<JudgeUsage> {
        self.registry.judge_usage()
    }

    /// The threads that groups are scored on: one a core, whatever the recipes say.
    pub fn pool(&self) -> Arc<Pool> {
        Arc::clone(self.pool.get_or_init(|| Arc::new(Pool::new(None))))
    }
}
