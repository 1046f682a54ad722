//! N-gram counting by hash: repeated and most frequent n-grams.

use super::id_set::{IdSet, place_of, places_for};

/// The longest n-gram that can be asked for. Beyond that only copies of whole paragraphs repeat.
pub const MAX_NGRAM_LENGTH: usize = 64;

/// How many of the n-grams of a sequence are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// The number of different n-grams.
    pub unique: usize,
    /// The number of n-grams.
    pub total: usize,
}

impl Repetition {
    /// The share of n-grams that were there before: 0 where none repeats, close to 1 where one repeats for ever.
    pub fn rate(self) -> f64 {
        1.0 - self.unique as f64 / self.total as f64
    }
}

/// Counts the different n-grams, or nothing where there are fewer than `n` tokens.
pub fn repetition(ids: &[u64], n: usize) -> Option<Repetition> {
    let total = (ids.len() + 1).checked_sub(n).filter(|total| n > 0 && *total > 0)?;
    let mut seen = IdSet::with_capacity(total);
    Hashes::new(ids, n).for_each(|hash| {
        seen.insert(hash);
    });
    Some(Repetition { unique: seen.len(), total })
}

/// The n-gram that occurs most often, the first of them at a tie: where it first starts, and how often it occurs.
///
/// A pass of its own, because only the few texts that are penalised need to be shown it.
pub fn most_repeated(ids: &[u64], n: usize) -> Option<(usize, usize)> {
    let total = (ids.len() + 1).checked_sub(n).filter(|total| n > 0 && *total > 0)?;
    // Hash, index of the first one, count. A count of zero is an empty place.
    let mut places = vec![(0_u64, 0_u32, 0_u32); places_for(total)];
    let mask = places.len() - 1;
    let mut best = (0, 0);
    for (index, hash) in Hashes::new(ids, n).enumerate() {
        let mut at = place_of(hash, places.len());
        while places[at].2 != 0 && places[at].0 != hash {
            at = (at + 1) & mask;
        }
        let (known, first, count) = &mut places[at];
        if *count == 0 {
            (*known, *first) = (hash, index as u32);
        }
        *count += 1;
        if *count > best.1 || (*count == best.1 && *first < best.0) {
            best = (*first, *count);
        }
    }
    Some((best.0 as usize, best.1 as usize))
}

/// The hash of every n-gram, each from the one before it: a polynomial in an odd base, modulo 2^64.
///
/// The numbers of tokens are spread over 64 bits already. Such a hash is known to be weak for sequences of more than
/// 2^10 symbols, far beyond [`MAX_NGRAM_LENGTH`].
struct Hashes<'i> {
    ids: &'i [u64],
    n: usize,
    next: usize,
    hash: u64,
    /// The base to the power of `n - 1`: the weight of the token that leaves.
    weight: u64,
}

/// Odd, with bits all over; the multiplier of L'Ecuyer's 64-bit generator.
const BASE: u64 = 0x27bb_2ee6_87b0_b0fd;

impl<'i> Hashes<'i> {
    fn new(ids: &'i [u64], n: usize) -> Self {
        let mut hash = 0_u64;
        let mut weight = 1_u64;
        for (at, id) in ids[..n - 1].iter().enumerate() {
            hash = hash.wrapping_mul(BASE).wrapping_add(*id);
            weight = if at == 0 { BASE } else { weight.wrapping_mul(BASE) };
        }
        Self { ids, n, next: n - 1, hash, weight }
    }
}

impl Iterator for Hashes<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let id = self.ids.get(self.next)?;
        let whole = self.hash.wrapping_mul(BASE).wrapping_add(*id);
        let leaves = self.ids[self.next + 1 - self.n];
        self.hash = whole.wrapping_sub(leaves.wrapping_mul(self.weight));
        self.next += 1;
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::Tokens;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn by_hand(ids: &[u64], n: usize) -> Option<(Repetition, (usize, usize))> {
        if ids.len() < n {
            return None;
        }
        let mut counts: BTreeMap<&[u64], (usize, usize)> = BTreeMap::new();
        for (index, gram) in ids.windows(n).enumerate() {
            counts.entry(gram).or_insert((index, 0)).1 += 1;
        }
        let best =
            counts.values().copied().max_by_key(|(first, count)| (*count, std::cmp::Reverse(*first)))?;
        Some((Repetition { unique: counts.len(), total: ids.len() + 1 - n }, best))
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_plain_map(numbers in prop::collection::vec(0_u64..4, 0..80), n in 1_usize..9) {
            let ids: Vec<u64> = numbers.into_iter().map(Tokens::number_id).collect();
            prop_assert_eq!(repetition(&ids, n), by_hand(&ids, n).map(|(counted, _)| counted));
            prop_assert_eq!(most_repeated(&ids, n), by_hand(&ids, n).map(|(_, best)| best));
        }
    }

    #[test]
    fn every_size_from_nothing_to_the_longest() {
        let ids: Vec<u64> = (0..200).map(|at| Tokens::number_id(at * at % 7)).collect();
        for n in 1..=MAX_NGRAM_LENGTH {
            assert_eq!(repetition(&ids, n), by_hand(&ids, n).map(|(counted, _)| counted), "n {n}");
        }
        assert_eq!(repetition(&ids, 0), None);
        assert_eq!(repetition(&[], 1), None);
        assert_eq!(repetition(&[5; 4], 5), None);
        assert_eq!(repetition(&[5; 4], 4).map(Repetition::rate), Some(0.0));
    }
}
