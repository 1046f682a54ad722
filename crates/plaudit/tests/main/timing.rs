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

/// How much processor time some work takes: see [`shortest`].
pub(crate) fn shortest_of(limit: Duration, mut work: impl FnMut()) -> Duration {
    shortest(limit, || {
        let start = cpu_time();
        work();
        cpu_time() - start
    })
}

/// The shortest of at least three runs, and of up to twenty while it is above a limit: the host of a virtual machine takes
/// time from it that it counts as its own, which makes a run longer and never shorter.
pub(crate) fn shortest(limit: Duration, mut once: impl FnMut() -> Duration) -> Duration {
    let first = (0..3).fold(Duration::MAX, |best, _| best.min(once()));
    (0..17).fold(first, |best, _| if best > limit { best.min(once()) } else { best })
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
