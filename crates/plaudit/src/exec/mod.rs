//! Execution primitives of the engine: the thread pool, the runtime, clocks, durations, deadlines and cancellation tokens.

mod pool;
mod runtime;
pub(crate) mod single_flight;
mod span;

pub use pool::Pool;
pub(crate) use runtime::SharedRuntime;
pub use span::{SpanKind, SpanValue, TraceSpan};

use crate::reason::Code;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

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

/// Cancels one scoring call: its judge calls are dropped, no further one starts, and rollouts without an outcome become
/// invalid. Clones share the state; a cancelled token stays cancelled.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the call. Any thread may do so, any number of times.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when the call is cancelled.
    async fn cancelled(&self) {
        // It cannot fail, because the sender lives as long as this token.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

/// What some work comes to, unless the call that it is for is cancelled first.
pub(crate) async fn unless_cancelled<T>(
    cancel: Option<&CancelToken>,
    work: impl Future<Output = T>,
) -> Result<T, Code> {
    let Some(cancel) = cancel else { return Ok(work.await) };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Code::Stopped),
        done = work => Ok(done),
    }
}

/// How a duration is written, for the fix of an error.
pub(crate) const DURATION_SYNTAX: &str = "write it like 300s, 500ms or 5m";

/// The duration that a text says, above 0 and of at most a day.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * unit;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

/// Locks a mutex, also after a thread that held it has panicked: every change under these locks is complete in itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
