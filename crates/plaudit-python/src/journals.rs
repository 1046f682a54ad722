//! The journals that this process has open. Engines with the same state folder share one journal, since a folder is locked by
//! one journal at a time; closing the last engine closes it.
//!
//! Fork safety: the list is locked only while the interpreter's lock is held, and a fork holds that too, so no child starts
//! with a locked list. An entry that a child inherited is not its own; the process id tells.

use crate::error;
use plaudit::journal::{Journal, JournalError, Store};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long to wait for a journal that this process is opening or closing.
const OWN_WAIT: Duration = Duration::from_secs(30);
/// How long to wait for an owner whose process id is not written yet.
const UNNAMED_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// An engine's reference to its journal. All engines with one folder hold the same one.
pub(crate) struct JournalHandle(pub(crate) Store);

struct OpenJournal {
    process: u32,
    folder: PathBuf,
    /// Outlives the handle while calls are under way.
    journal: Weak<Journal>,
    handle: Weak<JournalHandle>,
}

static OPEN: Mutex<Vec<OpenJournal>> = Mutex::new(Vec::new());

fn open_journals() -> MutexGuard<'static, Vec<OpenJournal>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the journal at a place, or shares it. Returns warnings for the user, too.
pub(crate) fn open(py: Python<'_>, place: &str) -> PyResult<(Arc<JournalHandle>, Vec<String>)> {
    let began = Instant::now();
    loop {
        if let Some(handle) = find(Path::new(place)) {
            return Ok((handle, Vec::new()));
        }
        match py.detach(|| Store::open(place)) {
            Ok((store, recovered)) => return Ok((put(Path::new(place), store), recovered.warnings)),
            // Another thread is opening or closing it.
            Err(JournalError::InUse { pid, .. })
                if pid.is_none_or(|pid| pid == std::process::id())
                    && began.elapsed() < if pid.is_some() { OWN_WAIT } else { UNNAMED_WAIT } =>
            {
                py.check_signals()?;
                py.detach(|| std::thread::sleep(POLL));
            }
            Err(error) => return Err(error::coded(py, error.code(), error.to_string())),
        }
    }
}

/// Refuses a state that looks like a misspelt address, for adapters that make engines elsewhere.
#[pyfunction]
pub(crate) fn check_state(py: Python<'_>, place: &str) -> PyResult<()> {
    Store::check(place).map_err(|error| error::coded(py, error.code(), error.to_string()))
}

/// Gives a handle back. After the last one, everything is on disk and the folder is free when this returns.
pub(crate) fn close(py: Python<'_>, handle: Arc<JournalHandle>) {
    let Some(JournalHandle(store)) = Arc::into_inner(handle) else { return };
    if let Store::Folder(journal) = &store {
        open_journals().retain(|open| !std::ptr::eq(open.journal.as_ptr(), Arc::as_ptr(journal)));
    }
    py.detach(|| store.close());
}

fn find(place: &Path) -> Option<Arc<JournalHandle>> {
    let folder = place.canonicalize().ok()?;
    let mut all = open_journals();
    all.retain(|open| open.process == std::process::id() && open.journal.strong_count() > 0);
    let open = all.iter_mut().find(|open| open.folder == folder)?;
    let journal = open.journal.upgrade()?;
    Some(open.handle.upgrade().unwrap_or_else(|| {
        let handle = Arc::new(JournalHandle(Store::Folder(journal)));
        open.handle = Arc::downgrade(&handle);
        handle
    }))
}

fn put(place: &Path, store: Store) -> Arc<JournalHandle> {
    let journal = match &store {
        Store::Folder(journal) => Some(Arc::downgrade(journal)),
        Store::Redis(_) => None,
    };
    let handle = Arc::new(JournalHandle(store));
    if let Some((journal, folder)) = journal.zip(place.canonicalize().ok()) {
        let handle = Arc::downgrade(&handle);
        open_journals().push(OpenJournal { process: std::process::id(), folder, journal, handle });
    }
    handle
}
