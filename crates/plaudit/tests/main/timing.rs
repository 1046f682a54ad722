//! Time in tests: the processor time of the calling thread, and waiting for a condition.
//!
//! What a function costs is measured as processor time, so that other work on the machine does not count. A state of another
//! thread or process is awaited, never slept for.

use std::collections::BTreeMap;
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

/// A limit for an optimised build on a machine of 2024, on this machine and for this build: ten times as long without
/// optimisation, and up to three times as long on a slower machine.
pub(crate) fn scaled(limit: Duration) -> Duration {
    static SLOWNESS: OnceLock<f64> = OnceLock::new();
    let slowness = SLOWNESS.get_or_init(|| {
        if cfg!(debug_assertions) {
            return 10.0;
        }
        let text = (0..150_000_u32).map(|at| format!("Word{} ", at.wrapping_mul(2_654_435_761) % 5003));
        let text: String = text.collect();
        let took = shortest_of(Duration::ZERO, || {
            let mut counts = BTreeMap::new();
            for word in text.to_lowercase().split_whitespace() {
                *counts.entry(word.to_owned()).or_insert(0) += 1;
            }
            assert_eq!(counts.values().sum::<u32>(), 150_000);
        });
        let slowness = took.as_secs_f64() / USUAL.as_secs_f64();
        slowness.clamp(1.0, 3.0)
    });
    limit.mul_f64(*slowness)
}

/// What the work of [`scaled`] takes where the limits were set: the shortest of twenty runs.
const USUAL: Duration = Duration::from_millis(12);

/// How much processor time some work takes; see [`shortest`].
pub(crate) fn shortest_of(limit: Duration, mut work: impl FnMut()) -> Duration {
    shortest(limit, || {
        let start = cpu_time();
        work();
        cpu_time() - start
    })
}

/// The time of the first run that is within a limit, else the shortest of twenty: the host of a virtual machine takes time
/// from it that it counts as its own, which makes a run longer and never shorter.
pub(crate) fn shortest(limit: Duration, mut once: impl FnMut() -> Duration) -> Duration {
    let first = once();
    (0..19).fold(first, |best, _| if best > limit { best.min(once()) } else { best })
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
