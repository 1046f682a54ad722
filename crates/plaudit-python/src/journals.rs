//! The state folders that this process has open. Engines on one folder share one journal, because the folder's lock is held by
//! one journal at a time; the last engine that is closed closes it.
//!
//! The list is only touched with the interpreter's lock, which a fork holds too: so no child begins with a list that another
//! thread had locked. What a child inherited is not its own, and is told by the process id.

use crate::error;
use plaudit::journal::{Journal, JournalError, Store};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long a journal that this process is opening or closing is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an owner is waited for that has not said yet which process it is.
const NAMELESS: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(5);

/// What an engine holds of its journal. All engines on one folder hold the same one.
pub(crate) struct JournalHandle(pub(crate) Store);

struct OpenJournal {
    process: u32,
    folder: PathBuf,
    /// Outlives the lease where calls are still under way.
    journal: Weak<Journal>,
    lease: Weak<JournalHandle>,
}

static OPEN: Mutex<Vec<OpenJournal>> = Mutex::new(Vec::new());

fn open_ones() -> MutexGuard<'static, Vec<OpenJournal>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The journal at a place, and what a person should know of it.
pub(crate) fn open(py: Python<'_>, place: &str) -> PyResult<(Arc<JournalHandle>, Vec<String>)> {
    let began = Instant::now();
    loop {
        if let Some(lease) = find(Path::new(place)) {
            return Ok((lease, Vec::new()));
        }
        match py.detach(|| Store::open(place)) {
            Ok((store, recovered)) => return Ok((put(Path::new(place), store), recovered.doubts)),
            // Another thread is opening or closing it.
            Err(JournalError::InUse { pid, .. })
                if pid.is_none_or(|pid| pid == std::process::id())
                    && began.elapsed() < if pid.is_some() { PATIENCE } else { NAMELESS } =>
            {
                py.check_signals()?;
                py.detach(|| std::thread::sleep(TICK));
            }
            Err(error) => return Err(error::coded(py, error.code(), error.to_string())),
        }
    }
}

/// Refuses a state that is meant as an address and is none, for adapters that make engines elsewhere.
#[pyfunction]
pub(crate) fn check_state(py: Python<'_>, place: &str) -> PyResult<()> {
    Store::check(place).map_err(|error| error::coded(py, error.code(), error.to_string()))
}

/// Gives a lease back. Where it was the last, all is on disk and the folder is free when this returns.
pub(crate) fn close(py: Python<'_>, lease: Arc<JournalHandle>) {
    let Some(JournalHandle(store)) = Arc::into_inner(lease) else { return };
    if let Store::Folder(journal) = &store {
        open_ones().retain(|open| !std::ptr::eq(open.journal.as_ptr(), Arc::as_ptr(journal)));
    }
    py.detach(|| store.close());
}

fn find(place: &Path) -> Option<Arc<JournalHandle>> {
    let folder = place.canonicalize().ok()?;
    let mut all = open_ones();
    all.retain(|open| open.process == std::process::id() && open.journal.strong_count() > 0);
    let open = all.iter_mut().find(|open| open.folder == folder)?;
    let journal = open.journal.upgrade()?;
    Some(open.lease.upgrade().unwrap_or_else(|| {
        let lease = Arc::new(JournalHandle(Store::Folder(journal)));
        open.lease = Arc::downgrade(&lease);
        lease
    }))
}

fn put(place: &Path, store: Store) -> Arc<JournalHandle> {
    let journal = match &store {
        Store::Folder(journal) => Some(Arc::downgrade(journal)),
        Store::Redis(_) => None,
    };
    let lease = Arc::new(JournalHandle(store));
    if let Some((journal, folder)) = journal.zip(place.canonicalize().ok()) {
        let lease = Arc::downgrade(&lease);
        open_ones().push(OpenJournal { process: std::process::id(), folder, journal, lease });
    }
    lease
}
