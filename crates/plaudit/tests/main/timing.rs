//! Time in tests: the processor time of the calling thread, and waiting for a condition.
//!
//! What a function costs is measured as processor time, so that other work on the machine does not count. A state of another
//! thread or process is awaited, never slept for.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a condition may take to come true. Only a test that fails waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The processor time of this thread; the time since the first call where the system does not say.
pub(crate) fn cpu_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = line.as_deref().and_then(|line| line.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
