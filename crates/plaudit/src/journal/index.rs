//! In-memory index from judgment keys to log offsets, at about 25 bytes per judgment.

use super::entry::JudgmentKey;
use super::ledger::RecordLocation;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Up to where in the log, and for how long a record, an entry is packed into one word.
const FAR: u64 = 1 << 40;
const LONG: u32 = 1 << 24;

/// Keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |word, byte| (word << 8) | u64::from(*byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// The locations of judgments, by the first eight bytes of their keys. A record holds its whole key, which is checked when it
/// is read: of two keys with the same eight bytes, which will not happen among fewer than a billion, the second is asked
/// again.
#[derive(Debug, Default)]
pub(super) struct JudgmentIndex {
    near: HashMap<u64, u64, BuildHasherDefault<IdentityHasher>>,
    /// Those that cannot be packed.
    far: BTreeMap<JudgmentKey, RecordLocation>,
}

fn word(key: &JudgmentKey) -> u64 {
    key.as_bytes().iter().take(8).fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

fn packed(place: RecordLocation) -> Option<u64> {
    (place.at < FAR && place.length < LONG).then(|| (place.at << 24) | u64::from(place.length))
}

fn unpacked(packed: u64) -> RecordLocation {
    // The mask leaves 24 bits, which fit.
    RecordLocation { at: packed >> 24, length: (packed & u64::from(LONG - 1)) as u32 }
}

impl JudgmentIndex {
    pub(super) fn get(&self, key: &JudgmentKey) -> Option<RecordLocation> {
        let near = self.near.get(&word(key)).copied().map(unpacked);
        near.or_else(|| self.far.get(key).copied())
    }

    pub(super) fn contains(&self, key: &JudgmentKey) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn insert(&mut self, key: JudgmentKey, place: RecordLocation) {
        match packed(place) {
            Some(packed) => drop(self.near.insert(word(&key), packed)),
            None => drop(self.far.insert(key, place)),
        }
    }

    pub(super) fn remove(&mut self, key: &JudgmentKey) {
        self.near.remove(&word(key));
        self.far.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_found_near_and_far() {
        let mut places = JudgmentIndex::default();
        let key = |at: u64| JudgmentKey::of(&[&at.to_le_bytes()]);
        let place = |at: u64| match at % 10 {
            0 => RecordLocation { at: FAR + at, length: 7 },
            1 => RecordLocation { at, length: LONG },
            2 => RecordLocation { at: FAR - 1 - at, length: LONG - 1 },
            _ => RecordLocation { at: at * 1000, length: at as u32 },
        };
        for at in 0..1000 {
            assert!(!places.contains(&key(at)));
            places.insert(key(at), place(at));
        }
        assert_eq!((places.len(), places.far.len()), (1000, 200));
        assert!((0..1000).all(|at| places.get(&key(at)) == Some(place(at))));
        (0..500).for_each(|at| places.remove(&key(at)));
        assert_eq!((places.len(), places.get(&key(3)), places.get(&key(503))), (500, None, Some(place(503))));
    }
}
