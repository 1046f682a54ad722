//! LRU of scored groups, bounded by count and bytes. Evicted groups leave a tombstone, so that late members are still
//! recognised.

use super::group::GroupId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many tombstones there may be for each group that is remembered with its text.
const NAMES: usize = 10;

/// The order in which groups are evicted. [`JoinState`](super::state::JoinState) holds the groups themselves.
#[derive(Debug, Default)]
pub(super) struct GroupLru {
    /// Remembered groups and what they weigh, the one that was used longest ago first.
    order: BTreeMap<u64, (GroupId, usize)>,
    next: u64,
    bytes: usize,
    /// The names of evicted groups, and the order in which they are dropped.
    tombstones: BTreeSet<GroupId>,
    names: VecDeque<GroupId>,
}

impl GroupLru {
    /// Inserts a group as the most recently used, and returns its slot.
    pub(super) fn insert(&mut self, name: GroupId, weight: usize) -> u64 {
        self.next += 1;
        self.order.insert(self.next, (name, weight));
        self.bytes += weight;
        self.next
    }

    /// Removes a group that is in use.
    pub(super) fn remove(&mut self, slot: u64) {
        if let Some((_, weight)) = self.order.remove(&slot) {
            self.bytes -= weight;
        }
    }

    /// Evicts the least recently used group, where a limit is exceeded.
    pub(super) fn pop(&mut self, groups: usize, bytes: usize) -> Option<GroupId> {
        if self.order.len() <= groups && self.bytes <= bytes {
            return None;
        }
        let (_, (name, weight)) = self.order.pop_first()?;
        self.bytes -= weight;
        Some(name)
    }

    /// Leaves a tombstone: only the name of the group is remembered.
    pub(super) fn bury(&mut self, name: GroupId, groups: usize) {
        if self.tombstones.insert(name) {
            self.names.push_back(name);
        }
        while self.names.len() > groups.max(1).saturating_mul(NAMES) {
            if let Some(oldest) = self.names.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }

    /// Whether a group of that name was there, of which nothing else is known.
    pub(super) fn is_buried(&self, name: &GroupId) -> bool {
        self.tombstones.contains(name)
    }

    /// How many groups are remembered with their text.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }
}
