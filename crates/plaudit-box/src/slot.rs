//! The slots of a sandbox: each has two places for boxes, so that a pair of programs never waits for a second slot.

use crate::namespaces::Namespaces;
use crate::scratch::empty;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

/// A place for one box at a time.
pub(crate) struct BoxSlot {
    /// Its entry in the guard's table.
    pub(crate) index: usize,
    /// The user of its boxes, where the engine is root.
    pub(crate) user: Option<u32>,
    /// The folder of its boxes, where they have no namespaces.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) landlock: Option<OwnedFd>,
    /// The namespaces that its boxes start from, where they have them.
    pub(crate) namespaces: Option<Namespaces>,
}

impl BoxSlot {
    /// Removes the files of the last box.
    pub(crate) fn empty(&self) {
        if let Some(folder) = &self.folder {
            empty(folder);
        }
    }
}

/// A place for one program, or for a pair.
pub(crate) struct Slot {
    pub(crate) first: BoxSlot,
    pub(crate) second: BoxSlot,
}

/// The slots that are free.
pub(crate) struct Slots {
    pub(crate) count: usize,
    free: Mutex<Vec<Slot>>,
    freed: Condvar,
}

impl Slots {
    pub(crate) fn new(mut slots: Vec<Slot>) -> Self {
        // The first slot is taken first.
        slots.reverse();
        Self { count: slots.len(), free: Mutex::new(slots), freed: Condvar::new() }
    }

    /// Takes a slot, and waits for one where none is free.
    pub(crate) fn take(&self) -> Slot {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match free.pop() {
                Some(slot) => return slot,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(crate) fn give_back(&self, slot: Slot) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        self.freed.notify_one();
    }
}
