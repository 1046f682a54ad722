//! Bounded caches of the simulator: how often a prompt was sent, and the prefix cache.

use super::answer::TOKEN;
use super::random::SeededRandom;
use rapidhash::RapidHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many questions and how many blocks are remembered at most.
const LIMIT: usize = 1 << 20;
/// Tokens in a block of the prefix cache, and its bytes.
const BLOCK: usize = 16;
const BLOCK_BYTES: usize = BLOCK * TOKEN;

/// Counts in two generations: when the younger is full, the older is forgotten as a whole, which costs next to nothing
/// a key and needs no list of who was used last.
#[derive(Debug)]
pub(crate) struct AskCounts {
    young: RapidHashMap<u64, u32>,
    old: RapidHashMap<u64, u32>,
    limit: usize,
}

impl AskCounts {
    pub(crate) fn new() -> Self {
        Self::of(LIMIT)
    }

    fn of(limit: usize) -> Self {
        Self { young: RapidHashMap::default(), old: RapidHashMap::default(), limit }
    }

    /// How often the key has been seen before; from now on once more.
    pub(crate) fn add(&mut self, key: u64) -> u32 {
        if let Some(count) = self.young.get_mut(&key) {
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        if self.young.len() >= self.limit / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.get(&key).copied().unwrap_or(0);
        self.young.insert(key, before.saturating_add(1));
        before
    }
}

/// A prefix cache. Every block has one place in a table, where it takes the place of whichever was there: a prompt has
/// many blocks, and this is one look at memory a block, without a lock that all requests would wait for.
#[derive(Debug)]
pub(crate) struct Prefixes(Vec<AtomicU64>);

impl Prefixes {
    pub(crate) fn new() -> Self {
        Self((0..LIMIT).map(|_| AtomicU64::new(0)).collect())
    }

    /// How many tokens of the prompt are in the cache; from now on all of its whole blocks are. The last token is never
    /// read from the cache, because a model has to look at one to go on.
    pub(crate) fn cached(&self, prompt: &[u8]) -> usize {
        let (mut chance, mut hits, mut unbroken) = (SeededRandom::new(2), 0, true);
        for block in prompt[..prompt.len().saturating_sub(1)].chunks_exact(BLOCK_BYTES) {
            chance = chance.about_text(block);
            let place = &self.0[chance.key() as usize % LIMIT];
            unbroken &= place.swap(chance.key(), Ordering::Relaxed) == chance.key();
            hits += usize::from(unbroken);
        }
        hits * BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_cached_up_to_where_it_differs() {
        let prefixes = Prefixes::new();
        let prompt = "x".repeat(640);
        assert_eq!(prefixes.cached(prompt.as_bytes()), 0);
        assert_eq!(prefixes.cached(prompt.as_bytes()), 144);
        let other = format!("{}y{}", &prompt[..320], &prompt[321..]);
        assert_eq!(prefixes.cached(other.as_bytes()), 80);
        assert_eq!(prefixes.cached(b""), 0);
    }

    #[test]
    fn no_more_is_held_than_the_limit() {
        let mut recent = AskCounts::of(100);
        for key in 0..10_000 {
            assert_eq!(recent.add(key), 0);
            assert!(recent.young.len() + recent.old.len() <= 100);
        }
        assert_eq!((recent.add(9_999), recent.add(9_999), recent.add(1)), (1, 2, 0));
    }
}
