//! Longest common subsequence, bit-parallel: 64 positions at a time.
//!
//! The bit-parallel recurrence V' = (V + (V & M)) | (V & !M) of Hyyrö ("Bit-parallel LCS-length computation
//! revisited", 2004), where bit j of M says that the symbol at hand stands at place j. Most words stand at few
//! places, so M is kept as the list of its blocks that are not zero; a block that is not listed changes only when
//! a carry reaches it.

use super::id_set::{place_of, places_for};

/// One sequence, prepared so that others can be compared with it.
#[derive(Debug, Clone)]
pub struct Pattern {
    len: usize,
    /// Symbol, and one more than the number of its row; an empty place has row 0.
    table: Box<[(u64, u32)]>,
    /// Where each row starts in `blocks`, and where the last one ends.
    rows: Box<[u32]>,
    /// The blocks of each symbol that are not zero, in order: number and mask.
    blocks: Box<[(u32, u64)]>,
}

impl Pattern {
    /// Prepares a sequence.
    pub fn new(ids: &[u64]) -> Self {
        let mut table = vec![(0_u64, 0_u32); places_for(ids.len())].into_boxed_slice();
        let mut sizes: Vec<u32> = Vec::new();
        let mut last_block: Vec<u32> = Vec::new();
        let mut symbols = Vec::with_capacity(ids.len());
        for (at, id) in ids.iter().enumerate() {
            let place = find(&table, *id);
            if table[place].1 == 0 {
                sizes.push(0);
                last_block.push(u32::MAX);
                table[place] = (*id, sizes.len() as u32);
            }
            let row = table[place].1 as usize - 1;
            let block = (at / 64) as u32;
            if last_block[row] != block {
                last_block[row] = block;
                sizes[row] += 1;
            }
            symbols.push(row);
        }
        let mut rows = Vec::with_capacity(sizes.len() + 1);
        let mut end = 0;
        rows.push(end);
        rows.extend(sizes.iter().map(|size| {
            end += size;
            end
        }));
        let mut blocks = vec![(u32::MAX, 0_u64); end as usize].into_boxed_slice();
        // From here on the sizes say how many blocks of each row are still to be begun.
        for (at, row) in symbols.into_iter().enumerate() {
            let block = (at / 64) as u32;
            let begun = (rows[row + 1] - sizes[row]) as usize;
            let place = match begun.checked_sub(1).map(|before| &mut blocks[before]) {
                Some(before) if begun > rows[row] as usize && before.0 == block => before,
                _ => {
                    sizes[row] -= 1;
                    &mut blocks[begun]
                }
            };
            *place = (block, place.1 | 1 << (at % 64));
        }
        Self { len: ids.len(), table, rows: rows.into_boxed_slice(), blocks }
    }

    /// The length of the longest common subsequence with `other`.
    ///
    /// At most one step for each symbol of `other` and each 64 of the pattern.
    pub fn common(&self, other: &[u64]) -> usize {
        // A zero bit says that one more symbol up to that place is matched.
        let mut state = vec![u64::MAX; self.len.div_ceil(64)];
        for id in other {
            let row = self.table[find(&self.table, *id)].1 as usize;
            if row == 0 {
                continue;
            }
            let listed = &self.blocks[self.rows[row - 1] as usize..self.rows[row] as usize];
            let mut carry = false;
            let mut next = 0;
            for (block, mask) in listed {
                let block = *block as usize;
                if carry {
                    carry = ripple(&mut state[next..block]);
                }
                let value = state[block];
                let (sum, over) = value.overflowing_add(value & mask);
                let (sum, over_again) = sum.overflowing_add(u64::from(carry));
                state[block] = sum | (value & !mask);
                carry = over | over_again;
                next = block + 1;
            }
            if carry {
                ripple(&mut state[next..]);
            }
        }
        let zeros: u32 = state.iter().map(|block| block.count_zeros()).sum();
        zeros as usize
    }
}

/// Adds a carry to blocks that the symbol does not stand in, and says whether it comes out at their end.
///
/// It stops at the first block with a zero bit, whose lowest one it sets.
#[inline]
fn ripple(blocks: &mut [u64]) -> bool {
    for block in blocks {
        if *block != u64::MAX {
            *block |= *block + 1;
            return false;
        }
    }
    true
}

/// The place of a symbol, or the empty place where it belongs.
#[inline]
fn find(table: &[(u64, u32)], id: u64) -> usize {
    let mask = table.len() - 1;
    let mut at = place_of(id, table.len());
    while table[at].1 != 0 && table[at].0 != id {
        at = (at + 1) & mask;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The textbook table.
    fn by_hand(a: &[u64], b: &[u64]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (at, y) in b.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn it_is_the_length_that_the_table_gives(
            a in prop::collection::vec(0_u64..6, 0..300), b in prop::collection::vec(0_u64..6, 0..300)
        ) {
            prop_assert_eq!(Pattern::new(&a).common(&b), by_hand(&a, &b));
        }

        #[test]
        fn it_is_so_for_sparse_symbols_as_well(
            a in prop::collection::vec(0_u64..150, 0..400), b in prop::collection::vec(0_u64..150, 0..400)
        ) {
            prop_assert_eq!(Pattern::new(&a).common(&b), by_hand(&a, &b));
        }
    }

    #[test]
    fn carries_run_over_whole_blocks() {
        let a: Vec<u64> = (0..500).collect();
        let b: Vec<u64> = (0..500).rev().collect();
        assert_eq!(Pattern::new(&a).common(&a), 500);
        assert_eq!(Pattern::new(&a).common(&b), 1);
        assert_eq!(Pattern::new(&[7; 500]).common(&[7; 130]), 130);
        assert_eq!(Pattern::new(&[]).common(&a), 0);
        assert_eq!(Pattern::new(&a).common(&[]), 0);
    }
}
