//! Record: what was paid or waited for, namely the replies of judges and the results of programs. The journal implements the trait;
//! a bounded record in memory lasts as long as the process.

use crate::exec::lock;
use crate::reason::{Code, Reason};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Whether what is not recorded may be got: whether judges are asked and programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// What is not recorded is asked, and run.
    Live,
    /// Only what is recorded is answered.
    Replay,
}

/// One request to one judge.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The key of the judgment.
    pub key: &'a [u8; 32],
    /// Which judge, by its name.
    pub judge: &'a str,
    /// A number that no other request of this process has.
    pub request_id: u64,
}

/// Whose result is stored.
#[derive(Debug, Clone, Copy)]
pub enum RecordSource<'a> {
    /// That of a judge, which replied to this request.
    Judge(Claim<'a>),
    /// That of the program with this key. Nobody claims a program: equal ones have equal results.
    Program(&'a [u8; 32]),
    /// The verdict about an item of a rubric, which the reply to some call held.
    Item(&'a [u8; 32]),
}

impl<'a> RecordSource<'a> {
    /// The key under which the result is found.
    pub const fn key(&self) -> &'a [u8; 32] {
        match self {
            Self::Judge(claim) => claim.key,
            Self::Program(key) | Self::Item(key) => key,
        }
    }

    /// The name that stands beside the result in a journal.
    pub const fn name(&self) -> &'a str {
        match self {
            Self::Judge(claim) => claim.judge,
            Self::Program(_) => "sandbox",
            Self::Item(_) => "rubric",
        }
    }
}

/// What a call may take, for a record that several processes write.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// After how long the call has ended, whatever the judge does.
    pub timeout: Duration,
    /// How many calls may be made of the judge in all.
    pub calls: Option<u64>,
    /// What all calls of the judge may cost.
    pub cost: Option<f64>,
    /// What this one is taken to cost until it is known.
    pub reserved: f64,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGrant {
    /// It is written down, and may be sent.
    Granted,
    /// Another process is asking the same, or has been answered just now.
    Elsewhere,
}

/// Stores calls with their replies, and the results of programs. Where it cannot be written, nothing is sent.
///
/// What returns no future is handed over and written soon.
pub trait Record: Send + Sync {
    /// The body of a stored judgment or result.
    fn get<'a>(&'a self, key: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>>;

    /// Records that a call is about to be sent. It is called before every one.
    fn begin_call<'a>(
        &'a self,
        claim: Claim<'a>,
        allowance: Allowance,
    ) -> BoxFuture<'a, Result<CallGrant, Reason>>;

    /// The body of a judgment that another process is fetching, once it is stored; none where that process has failed,
    /// so that the call may be made here.
    fn follow<'a>(&'a self, key: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        self.get(key)
    }

    /// Stores a judgment or a result; resolves when it would survive a crash.
    fn store<'a>(
        &'a self,
        source: RecordSource<'a>,
        body: &[u8],
        latency: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>>;

    /// Records that a call ended without a judgment, and whether it may have been paid for all the same.
    fn fail_call(&self, claim: Claim<'_>, code: Code, maybe_paid: bool);

    /// Leaves a request that was not answered to others.
    fn release(&self, _: Claim<'_>) {}

    /// A small settled fact, such as the format that a judge takes.
    fn get_fact<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>, Reason>>;

    /// Keeps a small settled fact.
    fn set_fact(&self, name: &str, value: &str);

    /// How many calls of a judge were intended, and what they have cost, over all restarts.
    fn spent<'a>(&'a self, judge: &'a str) -> BoxFuture<'a, Result<(u64, f64), Reason>>;

    /// Adds to what a judge has cost, in the place of what was reserved for the call.
    fn spend(&self, judge: &str, reserved: f64, cost: f64);
}

/// The most bytes of replies that [`MemoryRecord`] holds in each of its two generations.
const HELD: usize = 32 << 20;
/// The most facts of each generation, such as that no further attempt followed a reply.
const FACTS: usize = 100_000;

/// A record that lasts as long as the process and holds what was asked lately, so that its memory does not grow with the
/// run: equal calls are made once as long as they are not far apart, and nothing is written to disk.
#[derive(Debug, Default)]
pub struct MemoryRecord {
    memory: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    judgments: GenerationCache<[u8; 32], Vec<u8>>,
    facts: GenerationCache<String, String>,
    calls: BTreeMap<String, u64>,
    costs: BTreeMap<String, f64>,
}

/// What was put in lately. When the young ones weigh too much they become the old ones, and the old ones are forgotten.
#[derive(Debug)]
struct GenerationCache<K, V> {
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
    weight: usize,
}

impl<K: Ord, V> Default for GenerationCache<K, V> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new(), weight: 0 }
    }
}

impl<K: Ord, V> GenerationCache<K, V> {
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

impl MemoryRecord {
    fn memory(&self) -> MutexGuard<'_, MemoryState> {
        lock(&self.memory)
    }
}

impl Record for MemoryRecord {
    fn get<'a>(&'a self, key: &'a [u8; 32]) -> BoxFuture<'a, Result<Option<Vec<u8>>, Reason>> {
        Box::pin(ready(Ok(self.memory().judgments.get(key).cloned())))
    }

    fn begin_call<'a>(&'a self, claim: Claim<'a>, _: Allowance) -> BoxFuture<'a, Result<CallGrant, Reason>> {
        *self.memory().calls.entry(claim.judge.to_owned()).or_insert(0) += 1;
        Box::pin(ready(Ok(CallGrant::Granted)))
    }

    fn store<'a>(
        &'a self,
        source: RecordSource<'a>,
        body: &[u8],
        _: Duration,
    ) -> BoxFuture<'a, Result<(), Reason>> {
        self.memory().judgments.put(*source.key(), body.to_vec(), body.len() + 64, HELD);
        Box::pin(ready(Ok(())))
    }

    fn fail_call(&self, _: Claim<'_>, _: Code, _: bool) {}

    fn get_fact<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<String>, Reason>> {
        Box::pin(ready(Ok(self.memory().facts.get(name).cloned())))
    }

    fn set_fact(&self, name: &str, value: &str) {
        self.memory().facts.put(name.to_owned(), value.to_owned(), 1, FACTS);
    }

    fn spent<'a>(&'a self, judge: &'a str) -> BoxFuture<'a, Result<(u64, f64), Reason>> {
        let memory = self.memory();
        let calls = memory.calls.get(judge).copied().unwrap_or(0);
        let cost = memory.costs.get(judge).copied().unwrap_or(0.0);
        Box::pin(ready(Ok((calls, cost))))
    }

    fn spend(&self, judge: &str, _: f64, cost: f64) {
        *self.memory().costs.entry(judge.to_owned()).or_insert(0.0) += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_entries_are_known_and_memory_is_bounded() {
        let mut kept: GenerationCache<u32, u32> = GenerationCache::default();
        (0..1000).for_each(|at| kept.put(at, at, 1, 100));
        assert_eq!((kept.get(&999), kept.get(&900), kept.get(&0)), (Some(&999), Some(&900), None));
        assert!(kept.young.len() + kept.old.len() <= 202);
    }
}
