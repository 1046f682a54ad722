//! Which scored groups does the join remember? The ones that were used last, by number and by bytes; of those before them, only
//! that they were there.

use super::gathering::Name;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many names are known for each group that is remembered with its text.
const NAMES: usize = 10;

/// The order in which groups are forgotten. What they hold is elsewhere.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Remembered groups and what they weigh, the one that was used longest ago first.
    order: BTreeMap<u64, (Name, usize)>,
    next: u64,
    bytes: usize,
    /// Groups whose text is gone, and the order in which their names go as well.
    forgotten: BTreeSet<Name>,
    names: VecDeque<Name>,
}

impl Memory {
    /// Takes a group in as the one that was used last, and returns its place.
    pub(super) fn keep(&mut self, name: Name, weight: usize) -> u64 {
        self.next += 1;
        self.order.insert(self.next, (name, weight));
        self.bytes += weight;
        self.next
    }

    /// Takes a group out, because it is in use.
    pub(super) fn take(&mut self, place: u64) {
        if let Some((_, weight)) = self.order.remove(&place) {
            self.bytes -= weight;
        }
    }

    /// Takes out the group that is to be forgotten next, where there is more than there may be.
    pub(super) fn pop(&mut self, groups: usize, bytes: usize) -> Option<Name> {
        if self.order.len() <= groups && self.bytes <= bytes {
            return None;
        }
        let (_, (name, weight)) = self.order.pop_first()?;
        self.bytes -= weight;
        Some(name)
    }

    /// Keeps of a group nothing but its name.
    pub(super) fn forget(&mut self, name: Name, groups: usize) {
        if self.forgotten.insert(name) {
            self.names.push_back(name);
        }
        while self.names.len() > groups.max(1).saturating_mul(NAMES) {
            if let Some(oldest) = self.names.pop_front() {
                self.forgotten.remove(&oldest);
            }
        }
    }

    /// Whether a group of that name was there, of which nothing else is known.
    pub(super) fn is_forgotten(&self, name: &Name) -> bool {
        self.forgotten.contains(name)
    }

    /// How many groups are remembered with their text.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }
}
