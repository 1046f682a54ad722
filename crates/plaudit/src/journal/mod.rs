//! Journal: a durable, append-only log of judgments, so that no call is paid for twice.
//!
//! The journal is an append-only log in a folder that one process owns at a time. A call is written down before it is
//! sent ([`Journal::intend`]), its reply before anything that follows from it is seen ([`Journal::record`]), and after
//! any crash the journal reports what is known, what is lost and what may have been paid for nothing ([`Recovered`]).
//!
//! It is a log of our own and not SQLite because of what damage does (`python3 bench/journal.py`, raw data in
//! `bench/runs/`): of the judgments that 600 seeded damages did not hit, all survive in the log, while SQLite loses
//! nearly every one when its file is cut short and serves 189 damaged ones as good. Durable puts a second are the
//! disk's own in both where one is made at a time. Where several wait, a sync gathers more of them for 2 ms: with 64 in
//! flight that is 23,000 puts a second, at 10 us of processor time a judgment of 2 KB against SQLite's 23.
//!
//! 100,000 such judgments are opened in 0.2 to 0.4 s, and take about 25 bytes of memory each.
//!
//! Several machines share their judgments in a Redis instead; a [`Store`] is either.

mod commit;
mod disk;
mod entry;
mod error;
mod folder;
mod frame;
mod index;
mod ledger;
mod record;
mod recovery;
#[cfg(feature = "redis")]
mod redis;
mod store;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(feature = "redis")]
pub use self::redis::{LastRun, Redis};
pub use commit::CommitHandle;
pub use entry::{Judgment, JudgmentKey};
pub use error::{JournalError, RedisError};
pub use ledger::Spent;
pub use store::Store;

use crate::exec::lock;
use entry::Entry;
use folder::{Folder, HEADER};
use frame::Seal;
use ledger::{Ledger, RecordLocation};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use writer::LogWriter;

/// What an opened journal held.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Questions that are answered.
    pub judgments: u64,
    /// Records that are lost. Their questions are asked again; they are counted at every opening, since the log is
    /// never rewritten.
    pub damaged: u64,
    /// Bytes that belong to no good record.
    pub lost_bytes: u64,
    /// Whether the log ended in the middle of a record, as it does when a process is killed while it writes. The piece
    /// was cut off.
    pub torn_tail: bool,
    /// Calls that were about to be sent and of which nothing more is known: they may have been paid.
    pub open_intents: u64,
    /// How judgments could be lost, as sentences for a person.
    pub warnings: Vec<String>,
}

/// The durable record of every judgment. All of its functions may be called from any thread and from async tasks: they
/// only wait for short writes.
pub struct Journal {
    core: Arc<LogWriter>,
    secret: [u8; 32],
    /// The thread that syncs, from the first record on.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while a sum is read and written again.
    summing: Mutex<()>,
    /// Held until the journal is closed.
    lock: Mutex<Option<File>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret must not get into a log by accident.
        out.debug_struct("Journal").field("path", &self.core.path).finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the journal in a folder, which is made if it is not there, readable by its owner only. A torn tail is cut
    /// off, and damaged records are left out and counted.
    pub fn open(folder: &Path) -> Result<(Self, Recovered), JournalError> {
        let folder = Folder::open(folder)?;
        let seal = Seal::of(&folder.secret);
        let mut ledger = Ledger::default();
        // Without a header, records may begin anywhere.
        let from = if folder.headed { HEADER as u64 } else { 0 };
        let seen = recovery::scan(&folder.log, from..folder.length.max(from), &seal, |found| {
            if let Some(entry) = Entry::read(found.payload) {
                let place = RecordLocation { at: found.at, length: found.payload.len() as u32 };
                ledger.apply(&entry, place, found.sequence);
            }
        });
        let seen = seen.map_err(|error| JournalError::from_io("read", &folder.log_path, &error))?;
        ledger.leave();
        if !folder.headed {
            match seen.first {
                None if folder.length > HEADER as u64 => {
                    return Err(JournalError::Foreign { path: folder.log_path });
                }
                Some(first) if first < HEADER as u64 => {}
                _ => folder.write_header()?,
            }
        }
        let end = seen.end.max(HEADER as u64);
        if end < folder.length {
            let cut = folder.log.set_len(end);
            cut.map_err(|error| JournalError::from_io("cut the tail of", &folder.log_path, &error))?;
        }
        let recovered = Recovered {
            judgments: ledger.judgments(),
            damaged: seen.damaged,
            lost_bytes: seen.lost_bytes,
            torn_tail: seen.torn_tail,
            open_intents: ledger.left(),
            warnings: Vec::new(),
        };
        let core = LogWriter::new(Box::new(folder.log), folder.log_path, seal, (end, seen.next));
        core.lock().ledger = ledger;
        let (thread, summing) = (Mutex::new(None), Mutex::new(()));
        let (core, lock) = (Arc::new(core), Mutex::new(Some(folder.lock)));
        Ok((Self { core, secret: folder.secret, thread, summing, lock }, recovered))
    }

    /// Random bytes that were drawn when the journal was made. What must be unpredictable to a judge and the same in a
    /// resumed run is derived from them.
    pub fn secret(&self) -> [u8; 32] {
        self.secret
    }

    /// The judgment of a key. It is read from the disk and checked again; where it is damaged there is none, and the
    /// loss is counted ([`unreadable`](Self::unreadable)).
    pub fn get(&self, key: &JudgmentKey) -> Result<Option<Judgment>, JournalError> {
        let place = self.core.lock().ledger.place(key);
        let Some(place) = place else { return Ok(None) };
        let Some(payload) = self.core.payload(key, place) else { return Ok(None) };
        Ok(match Entry::read(&payload) {
            Some(Entry::Judgment { key: found, latency, judge, body }) if found == *key => {
                Some(Judgment { body: body.to_vec(), latency, judge: judge.to_owned() })
            }
            _ => None,
        })
    }

    /// Writes down that a judge is about to be asked. Once this has returned, the death of the process cannot hide the
    /// call, and there is space for its judgment. Where this fails, nothing may be sent.
    pub fn intend(&self, key: &JudgmentKey, judge: &str) -> Result<(), JournalError> {
        self.core.append(&Entry::Intent { key: *key, judge }).map(|_| ())
    }

    /// Writes a judgment. The first one of a key is the one that counts. Nothing that follows from it may be seen
    /// before the handle reports that it is durable.
    pub fn record(&self, key: &JudgmentKey, judgment: &Judgment) -> Result<CommitHandle, JournalError> {
        let Judgment { body, latency, judge } = judgment;
        let upto = self.core.append(&Entry::Judgment { key: *key, latency: *latency, judge, body })?;
        Ok(self.commit_handle(upto))
    }

    /// Writes down that a call has ended without a judgment, why, and whether the judge may have charged for it.
    pub fn give_up(&self, key: &JudgmentKey, code: &str, maybe_paid: bool) -> Result<(), JournalError> {
        self.core.append(&Entry::GaveUp { key: *key, code, maybe_paid }).map(|_| ())
    }

    /// Writes a small settled fact, such as the form of answer that a judge takes. The newest value holds.
    pub fn remember(&self, name: &str, value: &str) -> Result<CommitHandle, JournalError> {
        let upto = self.core.append(&Entry::Fact { name, value })?;
        Ok(self.commit_handle(upto))
    }

    /// The newest value of a fact.
    pub fn recall(&self, name: &str) -> Option<String> {
        self.core.lock().ledger.fact(name)
    }

    /// How many judgments it holds.
    pub fn judgments(&self) -> u64 {
        self.core.lock().ledger.judgments()
    }

    /// What was spent on a judge, by this process and all before it.
    pub fn spent(&self, judge: &str) -> Spent {
        self.core.lock().ledger.spent(judge)
    }

    /// The first write or sync that failed. From then on every [`intend`](Self::intend) fails with it, so that nothing
    /// more is paid for.
    pub fn is_stuck(&self) -> Option<JournalError> {
        self.core.lock().stuck.clone()
    }

    /// Why the next [`intend`](Self::intend) would fail, if it would: a write that failed, or a disk without space for one more
    /// judgment.
    pub fn has_room(&self) -> Result<(), JournalError> {
        self.core.has_room()
    }

    /// Whether the file system can set space aside for what is in flight. Where it cannot, a full disk is seen only
    /// when a judgment does not fit any more. True until the first call has shown otherwise.
    pub fn reserves(&self) -> bool {
        self.core.lock().reserves
    }

    /// How many judgments were good when the journal was opened and damaged when they were asked for.
    pub fn unreadable(&self) -> u64 {
        self.core.unreadable.load(Ordering::Relaxed)
    }

    /// Brings all that is written to the disk and leaves nothing behind: no thread, no space set aside, no lock. Whoever still
    /// holds the journal can read it, but nothing is written any more, so that another process may have the folder.
    pub fn close(&self) {
        let mut owned = lock(&self.lock);
        let mut state = self.core.lock();
        if state.closed {
            return;
        }
        (state.stopping, state.closed) = (true, true);
        drop(state);
        self.core.work.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // The thread has no panic of its own; if it had one, the sync below would still be done.
            let _ = thread.join();
        }
        let end = self.core.lock().end;
        if self.core.synced.borrow().upto < end {
            self.core.sync();
        }
        // What is set aside behind the end is given back; failing that, the next opening does it.
        let _ = self.core.disk.cut(end);
        if let Some(file) = owned.take() {
            // Closing lets the lock go too, but not while a forked child holds the file.
            let _ = file.unlock();
        }
    }

    /// A handle for all that is written so far; starts the thread that syncs.
    fn commit_handle(&self, upto: u64) -> CommitHandle {
        let synced = self.core.synced.subscribe();
        let mut thread = lock(&self.thread);
        if thread.is_none() && !self.core.lock().closed {
            *thread = commit::start(&self.core);
        }
        if thread.is_none() {
            self.core.sync();
        } else {
            let mut state = self.core.lock();
            state.wanted = state.wanted.max(upto);
            self.core.work.notify_one();
        }
        CommitHandle { upto, synced }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}
