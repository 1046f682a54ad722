//! What has been bought before? What the caller needs of a journal, and a record that lasts as long as the process.

use crate::reason::{Code, Reason};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is written down about calls. Where it cannot be written, nothing is sent.
pub trait Record: Send + Sync {
    /// The body of a judgment that was bought before.
    fn get(&self, key: &[u8; 32]) -> Result<Option<Vec<u8>>, Reason>;

    /// Writes down that a call is about to be sent. It is called before every one.
    fn intend(&self, key: &[u8; 32], judge: &str) -> Result<(), Reason>;

    /// Keeps a judgment; resolves when it would survive a crash.
    fn keep<'a>(
        &'a self,
        key: &[u8; 32],
        judge: &str,
        body: &[u8],
        latency: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>>;

    /// Writes down that a call ended without a judgment, and whether it may have been paid for all the same.
    fn give_up(&self, key: &[u8; 32], code: Code, maybe_paid: bool);

    /// A small settled fact, such as the form that a judge takes.
    fn recall(&self, name: &str) -> Option<String>;

    /// Keeps a small settled fact.
    fn remember(&self, name: &str, value: &str);

    /// How many calls of a judge were intended, over all restarts.
    fn calls(&self, judge: &str) -> u64;

    /// What a judge has cost, over all restarts.
    fn cost(&self, judge: &str) -> f64;

    /// Adds to what a judge has cost.
    fn spend(&self, judge: &str, cost: f64);
}

/// The most bytes of replies that [`NoRecord`] holds in each of its two generations.
const HELD: usize = 32 << 20;
/// The most facts of each generation, such as that no further attempt followed a reply.
const FACTS: usize = 100_000;

/// A record that lasts as long as the process and holds what was asked lately, so that its memory does not grow with the
/// run: equal questions are bought once as long as they are not far apart, and nothing is written to disk.
#[derive(Debug, Default)]
pub struct NoRecord {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    judgments: Generations<[u8; 32], Vec<u8>>,
    facts: Generations<String, String>,
    calls: BTreeMap<String, u64>,
    costs: BTreeMap<String, f64>,
}

/// What was put in lately. When the young ones weigh too much they become the old ones, and the old ones are forgotten.
#[derive(Debug)]
struct Generations<K, V> {
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
    weight: usize,
}

impl<K: Ord, V> Default for Generations<K, V> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new(), weight: 0 }
    }
}

impl<K: Ord, V> Generations<K, V> {
    fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn put(&mut self, key: K, value: V, weight: usize, most: usize) {
        self.weight += weight;
        self.young.insert(key, value);
        if self.weight > most {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
    }
}

impl NoRecord {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        held(&self.memory)
    }
}

/// The lock, also after a thread that held it has panicked: every change under these locks is complete in itself.
pub(super) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record for NoRecord {
    fn get(&self, key: &[u8; 32]) -> Result<Option<Vec<u8>>, Reason> {
        Ok(self.memory().judgments.get(key).cloned())
    }

    fn intend(&self, _: &[u8; 32], judge: &str) -> Result<(), Reason> {
        *self.memory().calls.entry(judge.to_owned()).or_insert(0) += 1;
        Ok(())
    }

    fn keep<'a>(
        &'a self,
        key: &[u8; 32],
        _: &str,
        body: &[u8],
        _: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        self.memory().judgments.put(*key, body.to_vec(), body.len() + 64, HELD);
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_up(&self, _: &[u8; 32], _: Code, _: bool) {}

    fn recall(&self, name: &str) -> Option<String> {
        self.memory().facts.get(name).cloned()
    }

    fn remember(&self, name: &str, value: &str) {
        self.memory().facts.put(name.to_owned(), value.to_owned(), 1, FACTS);
    }

    fn calls(&self, judge: &str) -> u64 {
        self.memory().calls.get(judge).copied().unwrap_or(0)
    }

    fn cost(&self, judge: &str) -> f64 {
        self.memory().costs.get(judge).copied().unwrap_or(0.0)
    }

    fn spend(&self, judge: &str, cost: f64) {
        *self.memory().costs.entry(judge.to_owned()).or_insert(0.0) += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_lately_is_known_and_memory_is_bounded() {
        let mut kept: Generations<u32, u32> = Generations::default();
        (0..1000).for_each(|at| kept.put(at, at, 1, 100));
        assert_eq!((kept.get(&999), kept.get(&900), kept.get(&0)), (Some(&999), Some(&900), None));
        assert!(kept.young.len() + kept.old.len() <= 202);
    }
}
