//! Execution primitives of the engine: the thread pool, clocks, deadlines and cancellation tokens.

mod cancel;
pub(crate) mod duration;
mod pool;

pub use cancel::CancelToken;
pub use pool::Pool;

use crate::reason::Code;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// What ends the work on a group before it is done: its deadline, or the caller's cancellation.
#[derive(Debug)]
pub(crate) struct WorkLimit<'c> {
    /// The group's deadline.
    pub(crate) deadline: Deadline<'c>,
    /// The caller's token, where it has one.
    pub(crate) cancel: Option<&'c CancelToken>,
}

impl WorkLimit<'_> {
    /// Why nothing more may be started, where that is so.
    pub(crate) fn reached(&self) -> Option<Code> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            return Some(Code::Stopped);
        }
        self.deadline.has_passed().then_some(Code::GroupDeadline)
    }
}

/// Locks a mutex, also after a thread that held it has panicked: every change under these locks is complete in itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
