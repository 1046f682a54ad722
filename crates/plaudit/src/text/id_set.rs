//! Open-addressing hash set of 64-bit ids, for tokens and n-grams.
//!
//! The numbers are hashes or places in a vocabulary, so one multiplication spreads them well enough, and a general
//! hash set would spend most of a rule's time on hashing them again.

/// A set of 64-bit numbers that is as large as it was made for.
#[derive(Debug, Clone)]
pub struct IdSet {
    /// A power of two of places, at most a quarter of them taken. Zero is an empty place.
    places: Box<[u64]>,
    /// Whether the number zero, which no place can hold, is in the set.
    zero: bool,
    len: usize,
}

/// 2^64 divided by the golden ratio: neighbours land far apart (Knuth, The Art of Computer Programming, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many places a table for `capacity` numbers has: a power of two, at most a quarter full, because a second look
/// costs more than the room.
pub fn places_for(capacity: usize) -> usize {
    (capacity * 4).next_power_of_two().max(8)
}

/// Where the search for a number starts in a table of a power of two of places.
#[inline]
pub fn place_of(id: u64, places: usize) -> usize {
    (id.wrapping_mul(GOLDEN) >> (64 - places.trailing_zeros())) as usize
}

impl IdSet {
    /// An empty set with room for `capacity` numbers.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { places: vec![0; places_for(capacity)].into_boxed_slice(), zero: false, len: 0 }
    }

    /// The set of these numbers.
    pub fn of(ids: &[u64]) -> Self {
        let mut set = Self::with_capacity(ids.len());
        for id in ids {
            set.insert(*id);
        }
        set
    }

    /// Adds a number, and says whether it was new. The caller keeps to the capacity.
    #[inline]
    pub fn insert(&mut self, id: u64) -> bool {
        let new = if id == 0 { !std::mem::replace(&mut self.zero, true) } else { self.place(id) };
        self.len += usize::from(new);
        new
    }

    #[inline]
    fn place(&mut self, id: u64) -> bool {
        let mask = self.places.len() - 1;
        let mut at = place_of(id, self.places.len());
        loop {
            match self.places[at & mask] {
                0 => {
                    self.places[at & mask] = id;
                    return true;
                }
                known if known == id => return false,
                _ => at += 1,
            }
        }
    }

    /// Whether a number is in the set.
    pub fn contains(&self, id: u64) -> bool {
        self.position(id).is_some()
    }

    /// A place of its own for every number of the set, and none for any other.
    #[inline]
    fn position(&self, id: u64) -> Option<usize> {
        if id == 0 {
            return self.zero.then_some(self.places.len());
        }
        let mask = self.places.len() - 1;
        let mut at = place_of(id, self.places.len());
        loop {
            match self.places[at & mask] {
                0 => return None,
                known if known == id => return Some(at & mask),
                _ => at += 1,
            }
        }
    }

    /// How many different numbers there are among `ids`, and how many of those are in the set.
    pub fn overlap(&self, ids: &[u64]) -> (usize, usize) {
        let mut seen = vec![false; self.places.len() + 1];
        let mut others = Self::with_capacity(ids.len());
        let mut shared = 0;
        for id in ids {
            match self.position(*id) {
                Some(at) => shared += usize::from(!std::mem::replace(&mut seen[at], true)),
                None => {
                    others.insert(*id);
                }
            }
        }
        (shared + others.len, shared)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set() {
        // Small numbers, huge ones, zero, and many that differ only in their low bits.
        let ids: Vec<u64> =
            (0..500).flat_map(|n| [n % 97, n << 40, u64::MAX - n % 13, n.wrapping_mul(GOLDEN)]).collect();
        let set = IdSet::of(&ids);
        let known: BTreeSet<u64> = ids.iter().copied().collect();
        let (different, shared) = IdSet::of(&ids[..700]).overlap(&ids[500..]);
        let of = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
        assert_eq!(different, of(&ids[500..]).len());
        assert_eq!(shared, of(&ids[..700]).intersection(&of(&ids[500..])).count());
        assert_eq!(set.len(), known.len());
        assert!(ids.iter().all(|id| set.contains(*id)));
        assert!((1000..2000).all(|id| set.contains(id) == known.contains(&id)));
        assert!(IdSet::of(&[]).is_empty());
        assert!(!IdSet::of(&[1]).contains(0));
        assert!(IdSet::of(&[0]).contains(0));
    }
}
