//! Recent ids: a bounded set of the hashes seen last, in memory that does not grow with the input.

use rapidhash::RapidHashSet;

/// How many hashes one generation holds: as many as a table of 2^20 places takes before it grows.
pub(crate) const GENERATION: usize = 917_504;

/// Two generations of hashes: when the young one is full, it becomes the old one, and the old one is forgotten. So
/// at least the last [`GENERATION`] hashes are known, in at most 20 MB.
#[derive(Debug)]
pub(crate) struct RecentIds {
    young: RapidHashSet<u64>,
    old: RapidHashSet<u64>,
    most: usize,
}

impl RecentIds {
    /// An empty set of two generations of so many hashes.
    pub(crate) fn new(most: usize) -> Self {
        Self { young: RapidHashSet::default(), old: RapidHashSet::default(), most }
    }

    /// Whether the hash was seen recently.
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    /// Adds a hash.
    pub(crate) fn insert(&mut self, hash: u64) {
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_generation_is_always_known() {
        let mut ids = RecentIds::new(4);
        for hash in 0..100u64 {
            assert!(!ids.contains(hash));
            ids.insert(hash);
            assert!((hash.saturating_sub(3)..=hash).all(|recent| ids.contains(recent)));
            assert!(ids.young.len() + ids.old.len() <= 8);
        }
        assert!(!ids.contains(0));
    }
}
