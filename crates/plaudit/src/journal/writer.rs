//! Log writer: appends records, reserves disk space for calls in flight, and stops new calls once a write fails.

use super::commit::{Synced, closed};
use super::disk::Disk;
use super::entry::{Entry, JudgmentKey};
use super::error::JournalError;
use super::frame::{Draft, HEAD, Seal};
use super::ledger::{Ledger, RecordLocation};
use crate::exec::lock;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

/// Space is set aside in pieces of this size.
const PIECE: u64 = 4 << 20;
/// The space that a call in flight is given for its judgment, unless a larger one was seen.
const ROOM: u64 = 64 << 10;
/// The least that is kept free for what is in flight.
const LEAST: u64 = 1 << 20;

/// What the journal and its thread share.
pub(super) struct LogWriter {
    pub(super) disk: Box<dyn Disk>,
    pub(super) path: PathBuf,
    pub(super) seal: Seal,
    pub(super) work: Condvar,
    pub(super) synced: watch::Sender<Synced>,
    /// Records that were good when the journal was opened and bad when they were read.
    pub(super) unreadable: AtomicU64,
    state: Mutex<WriterState>,
}

/// What changes with every record.
pub(super) struct WriterState {
    pub(super) ledger: Ledger,
    /// Where the next record goes.
    pub(super) end: u64,
    /// Up to where a sync is waited for.
    pub(super) wanted: u64,
    pub(super) stopping: bool,
    /// Whether the folder was let go: nothing may be written any more.
    pub(super) closed: bool,
    pub(super) stuck: Option<JournalError>,
    /// Whether the file system can set space aside.
    pub(super) reserves: bool,
    next: u64,
    started: bool,
    /// Up to where space is set aside.
    reserved: u64,
    largest: u64,
}

impl LogWriter {
    /// A core whose log ends at a place, with the number of its next record.
    pub(super) fn new(disk: Box<dyn Disk>, path: PathBuf, seal: Seal, (end, next): (u64, u64)) -> Self {
        let state = WriterState {
            ledger: Ledger::default(),
            end,
            wanted: end,
            stopping: false,
            closed: false,
            stuck: None,
            reserves: true,
            next,
            started: false,
            reserved: end,
            largest: ROOM,
        };
        let (synced, _) = watch::channel(Synced { upto: end, failed: None });
        Self {
            disk,
            path,
            seal,
            work: Condvar::new(),
            synced,
            unreadable: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WriterState> {
        lock(&self.state)
    }

    /// Writes a record, and says where it ends. An intent is refused where its judgment might not fit; everything else
    /// is tried even when the disk has failed before, because it is paid for.
    pub(super) fn append(&self, entry: &Entry<'_>) -> Result<u64, JournalError> {
        let draft = self.seal.draft(|out| entry.write(out))?;
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        if matches!(entry, Entry::Intent { .. }) {
            if let Some(error) = &state.stuck {
                return Err(error.clone());
            }
            self.reserve(&mut state, draft.len() as u64)?;
        }
        if !state.started {
            let start = self.seal.draft(|out| Entry::Start.write(out))?;
            self.write(&mut state, &Entry::Start, start)?;
            state.started = true;
        }
        self.write(&mut state, entry, draft)?;
        Ok(state.end)
    }

    fn write(&self, state: &mut WriterState, entry: &Entry<'_>, draft: Draft) -> Result<(), JournalError> {
        let sequence = state.next;
        let bytes = self.seal.finish(draft, sequence);
        if let Err(error) = self.disk.write(&bytes, state.end) {
            let error = JournalError::from_io("write", &self.path, &error);
            state.stuck.get_or_insert_with(|| error.clone());
            // What was written of it is overwritten by the next record, or cut when the journal is opened again.
            return Err(error);
        }
        // A record is at most 8 MiB, so the cast keeps every bit.
        let place = RecordLocation { at: state.end, length: (bytes.len() - HEAD) as u32 };
        state.end += bytes.len() as u64;
        state.next += 1;
        state.largest = state.largest.max(bytes.len() as u64);
        state.ledger.apply(entry, place, sequence);
        Ok(())
    }

    /// Makes sure that the judgments of all calls in flight would fit, and of one more.
    fn reserve(&self, state: &mut WriterState, intent: u64) -> Result<(), JournalError> {
        let room = (state.ledger.in_flight() + 1).saturating_mul(state.largest).max(LEAST);
        // The intent itself, the mark of a process that begins, and what says that a call was given up.
        let needed = state.end.saturating_add(room).saturating_add(intent + ROOM);
        if !state.reserves || needed <= state.reserved {
            return Ok(());
        }
        let whole = needed.next_multiple_of(PIECE);
        // Where a whole piece does not fit, what is needed might.
        let reserved = match self.disk.reserve(state.end, whole) {
            Err(_) => self.disk.reserve(state.end, needed).map(|done| (done, needed)),
            Ok(done) => Ok((done, whole)),
        };
        match reserved {
            Ok((done, upto)) => {
                state.reserves = done;
                state.reserved = upto;
                Ok(())
            }
            Err(error) => Err(JournalError::from_io("set space aside for", &self.path, &error)),
        }
    }

    /// Whether one more call would be let in.
    pub(super) fn has_room(&self) -> Result<(), JournalError> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        match &state.stuck {
            Some(error) => Err(error.clone()),
            None => self.reserve(&mut state, 0),
        }
    }

    /// Brings all that is written to the disk; up to where it is there.
    pub(super) fn sync(&self) -> u64 {
        let upto = self.lock().end;
        if self.synced.borrow().failed.is_none() {
            match self.disk.sync() {
                Ok(()) => self.synced.send_modify(|synced| synced.upto = synced.upto.max(upto)),
                Err(error) => {
                    let error = JournalError::from_io("sync", &self.path, &error);
                    self.lock().stuck.get_or_insert_with(|| error.clone());
                    self.synced.send_modify(|synced| synced.failed = Some(error));
                }
            }
        }
        upto
    }

    /// The payload at a place, unless it is not good any more.
    pub(super) fn payload(&self, key: &JudgmentKey, place: RecordLocation) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEAD + place.length as usize];
        let read = self.disk.read(&mut bytes, place.at).is_ok();
        let good = read && self.seal.head(&bytes).is_some_and(|head| self.seal.holds(&head, &bytes[HEAD..]));
        if !good {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            self.lock().ledger.lose(key, place);
            return None;
        }
        bytes.drain(..HEAD);
        Some(bytes)
    }
}
