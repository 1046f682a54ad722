//! Which names were seen before? The last many of them, by hash, in memory that does not grow with the input.

use rapidhash::RapidHashSet;

/// How many names one generation holds: as many as a table of 2^20 places takes before it grows.
pub(crate) const GENERATION: usize = 917_504;

/// Two generations of hashes: when the young one is full, it becomes the old one, and the old one is forgotten. So
/// at least the last [`GENERATION`] names are known, in at most 20 MB.
#[derive(Debug)]
pub(crate) struct Memory {
    young: RapidHashSet<u64>,
    old: RapidHashSet<u64>,
    most: usize,
}

impl Memory {
    /// An empty memory of two generations of so many names.
    pub(crate) fn new(most: usize) -> Self {
        Self { young: RapidHashSet::default(), old: RapidHashSet::default(), most }
    }

    /// Whether the name was seen lately.
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    /// Keeps a name in mind.
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
        let mut memory = Memory::new(4);
        for hash in 0..100u64 {
            assert!(!memory.contains(hash));
            memory.insert(hash);
            assert!((hash.saturating_sub(3)..=hash).all(|recent| memory.contains(recent)));
            assert!(memory.young.len() + memory.old.len() <= 8);
        }
        assert!(!memory.contains(0));
    }
}
