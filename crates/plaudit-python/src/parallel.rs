//! Work on many items on all cores, without the interpreter's lock. Ctrl-C ends the wait for it.

use crate::engine::interruptible;
use plaudit::exec::{CancelToken, lock};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that work on the items of one call and end with it, so that no fork can find them gone.
pub(crate) struct Workers {
    count: usize,
    cancel: CancelToken,
}

/// How many parts a thread takes on average, so that one long part does not leave the other threads idle.
const PARTS: usize = 16;

/// One thread for each core.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does work on so many threads while this one waits for it and gets the signals; on this one where the work is `quick`.
pub(crate) fn on_threads<T: Send + 'static>(
    py: Python<'_>,
    count: usize,
    quick: bool,
    work: impl FnOnce(&Workers) -> T + Send + 'static,
) -> PyResult<T> {
    let cancel = CancelToken::default();
    if quick {
        let done = py.detach(|| work(&Workers { count: 1, cancel }));
        py.check_signals()?;
        return Ok(done);
    }
    let workers = Workers { count, cancel: cancel.clone() };
    interruptible(py, &cancel, None, move || work(&workers))
}

impl Workers {
    /// What `work` makes of each item, in the order of the items. Fewer where the work was cancelled.
    pub(crate) fn map<T: Send>(&self, items: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let part = items.div_ceil(self.count * PARTS).max(1);
        let next = AtomicUsize::new(0);
        let made = Mutex::new(Vec::new());
        let run = || loop {
            let from = next.fetch_add(part, Ordering::Relaxed);
            if from >= items || self.cancel.is_cancelled() {
                return;
            }
            let places: Range<usize> = from..(from + part).min(items);
            let done: Vec<T> = places.take_while(|_| !self.cancel.is_cancelled()).map(&work).collect();
            lock(&made).push((from, done));
        };
        std::thread::scope(|scope| {
            for _ in 1..self.count.min(items.div_ceil(part)) {
                let thread = std::thread::Builder::new().name("plaudit-many".to_owned());
                // Where the system gives no thread, the others do the work.
                drop(thread.spawn_scoped(scope, run));
            }
            run();
        });
        let mut parts = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        parts.sort_unstable_by_key(|(from, _)| *from);
        parts.into_iter().flat_map(|(_, done)| done).collect()
    }
}
