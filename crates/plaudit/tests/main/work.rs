//! How long has this thread worked? What a parser costs is looked at, and not what else the machine has to do meanwhile.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time that this thread has been on a processor; where the system does not tell, the time that has gone by.
pub(crate) fn worked() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.as_deref().and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

#[test]
fn only_work_counts() {
    let start = worked();
    std::thread::sleep(Duration::from_millis(100));
    let slept = worked() - start;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(200) && worked() - start < slept + Duration::from_millis(50)
    {
        std::hint::black_box(began.elapsed());
    }
    assert!(worked() > start, "work counts");
    if std::path::Path::new("/proc/thread-self/schedstat").exists() {
        assert!(slept < Duration::from_millis(100), "sleep does not: {slept:?}");
    }
}
