//! When and where does work run? Groups side by side on threads of the engine's own, each with a deadline; and calls to
//! judges, which are the one thing here that is worth money.

mod asked;
mod budget;
mod caller;
#[cfg(test)]
mod caller_tests;
mod endpoint;
mod fault;
mod flight;
mod gate;
mod pace;
mod permit;
mod purchase;
mod record;
mod tally;
mod wire;

pub use asked::{Asked, JudgeSpec, Network, Price, Secret, Unusable};
pub use caller::Caller;
pub use record::{Allowance, Claim, Leave, NoRecord, Record};
pub use tally::Tally;

use rayon::prelude::*;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where the engine takes its time from, so that tests can stop it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time since some moment that never changes.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The moment at which a group's work stops.
#[derive(Debug)]
pub struct Deadline<'c> {
    clock: &'c dyn Clock,
    at: Duration,
}

impl<'c> Deadline<'c> {
    /// So long from now.
    pub fn after(clock: &'c dyn Clock, timeout: Duration) -> Self {
        Self { clock, at: clock.now().saturating_add(timeout) }
    }

    /// Whether it is too late to start anything.
    pub fn has_passed(&self) -> bool {
        self.clock.now() >= self.at
    }
}

/// The threads that groups are scored on. They start with the first batch that has more than one group.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    pool: OnceLock<Option<rayon::ThreadPool>>,
}

impl Pool {
    /// A pool of so many threads, or of one a core.
    pub fn new(threads: Option<usize>) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads: threads.unwrap_or_else(cores).max(1), pool: OnceLock::new() }
    }

    /// What `work` makes of each item, in the order of the items, whatever order they were worked on.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
        if self.threads == 1 || items.len() < 2 {
            return items.iter().map(work).collect();
        }
        match self.pool.get_or_init(|| self.start()) {
            Some(pool) => pool.install(|| items.par_iter().map(work).collect()),
            None => items.iter().map(work).collect(),
        }
    }

    /// Threads, or none where the system gives none; the work is then done on the caller's.
    fn start(&self) -> Option<rayon::ThreadPool> {
        let name = |at: usize| format!("plaudit-{at}");
        rayon::ThreadPoolBuilder::new().num_threads(self.threads).thread_name(name).build().ok()
    }
}
