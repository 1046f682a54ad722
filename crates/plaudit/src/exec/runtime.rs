//! The tokio runtime of the engine, which judges are asked on and programs are waited for; started with the first work that needs it.

use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// A runtime that starts when it is needed.
#[derive(Debug, Default)]
pub(crate) struct SharedRuntime(OnceLock<Option<Runtime>>);

impl SharedRuntime {
    /// The runtime, which starts with so many threads; none where the system gives no threads.
    pub(crate) fn get(&self, threads: usize) -> Option<&Runtime> {
        let start = || {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name("plaudit-judge")
                .enable_all()
                .build()
                .ok()
        };
        self.0.get_or_init(start).as_ref()
    }
}

impl Drop for SharedRuntime {
    fn drop(&mut self) {
        // Nothing is under way, because every task holds its runner. The last of them may drop it on a thread of the
        // runtime itself, which must not wait for its own end.
        if let Some(runtime) = self.0.take().flatten() {
            runtime.shutdown_background();
        }
    }
}
