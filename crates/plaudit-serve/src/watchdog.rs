//! Watchdog: logs what has been under way for a minute without progress, with what it waits for.

use plaudit::exec::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// After how long something is logged, and again after as long.
const LONG: Duration = Duration::from_secs(60);

/// Everything that is under way.
#[derive(Debug)]
pub(crate) struct Watchdog {
    items: Mutex<BTreeMap<u64, WatchedItem>>,
    next: AtomicU64,
    stalled: AtomicUsize,
}

#[derive(Debug)]
struct WatchedItem {
    /// What is awaited.
    what: &'static str,
    /// For whom.
    run: Arc<str>,
    /// Which group or job, where there is one.
    which: String,
    since: Instant,
    logged: Instant,
}

/// What has been under way for long, of one kind and one run.
#[derive(Debug)]
struct LongWait {
    what: &'static str,
    run: Arc<str>,
    which: String,
    seconds: u64,
    alike: usize,
    /// Whether some of it was not logged in the last minute.
    news: bool,
}

/// Something that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct WatchGuard<'w> {
    watch: &'w Watchdog,
    number: u64,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self { items: Mutex::new(BTreeMap::new()), next: AtomicU64::new(0), stalled: AtomicUsize::new(0) }
    }

    /// Watches something until the guard is dropped.
    pub(crate) fn begin(&self, what: &'static str, run: &Arc<str>, which: String) -> WatchGuard<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let item = WatchedItem { what, run: Arc::clone(run), which, since: now, logged: now };
        lock(&self.items).insert(number, item);
        WatchGuard { watch: self, number }
    }

    /// How many have been under way for over a minute without progress.
    pub(crate) fn stalled(&self) -> usize {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Logs what has been under way for long: one line for each kind and run, with the oldest item.
    pub(crate) fn check(&self, now: Instant) {
        for LongWait { what, run, which, seconds, alike, .. } in self.long(now) {
            tracing::warn!(awaited = what, run = &*run, oldest = which, seconds, alike, "no progress");
        }
    }

    fn long(&self, now: Instant) -> Vec<LongWait> {
        let mut items = lock(&self.items);
        let mut found: Vec<LongWait> = Vec::new();
        let mut stalled = 0;
        for item in items.values_mut() {
            let waited = now.saturating_duration_since(item.since);
            if waited < LONG {
                continue;
            }
            stalled += 1;
            let news = now.saturating_duration_since(item.logged) >= LONG;
            if news {
                item.logged = now;
            }
            match found.iter_mut().find(|long| long.what == item.what && long.run == item.run) {
                Some(long) => {
                    long.alike += 1;
                    long.news |= news;
                    if waited.as_secs() > long.seconds {
                        (long.seconds, long.which) = (waited.as_secs(), item.which.clone());
                    }
                }
                None => found.push(LongWait {
                    what: item.what,
                    run: Arc::clone(&item.run),
                    which: item.which.clone(),
                    seconds: waited.as_secs(),
                    alike: 1,
                    news,
                }),
            }
        }
        self.stalled.store(stalled, Ordering::Relaxed);
        found.retain(|long| long.news);
        found
    }
}

impl WatchGuard<'_> {
    /// Records progress.
    pub(crate) fn renew(&self) {
        if let Some(item) = lock(&self.watch.items).get_mut(&self.number) {
            let now = Instant::now();
            (item.since, item.logged) = (now, now);
        }
    }

    /// Changes what is awaited.
    pub(crate) fn awaits(&self, what: &'static str) {
        if let Some(item) = lock(&self.watch.items).get_mut(&self.number) {
            item.what = what;
        }
    }
}

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        lock(&self.watch.items).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_are_logged_once_a_minute() {
        let watch = Watchdog::new();
        let run: Arc<str> = Arc::from("training");
        let first = watch.begin("its group", &run, "g1".to_owned());
        let second = watch.begin("its group", &run, "g2".to_owned());
        let now = Instant::now();
        assert!(watch.long(now + Duration::from_secs(59)).is_empty());
        let waits = watch.long(now + Duration::from_secs(61));
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].what, &*waits[0].which, waits[0].alike), ("its group", "g1", 2));
        assert!(watch.long(now + Duration::from_secs(90)).is_empty(), "just logged");
        assert_eq!(watch.stalled(), 2);
        drop((first, second));
        assert!(watch.long(now + Duration::from_secs(200)).is_empty());
        assert_eq!(watch.stalled(), 0);
    }

    #[test]
    fn progress_resets_the_wait() {
        let watch = Watchdog::new();
        let run: Arc<str> = Arc::from("training");
        let first = watch.begin("its judges", &run, "a".to_owned());
        let still = watch.begin("its judges", &run, "b".to_owned());
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        first.renew();
        let waits = watch.long(began + LONG);
        assert_eq!((waits.len(), &*waits[0].which, watch.stalled()), (1, "b", 1));
        still.awaits("room");
        let waits = watch.long(began + LONG * 3);
        assert_eq!(waits.iter().map(|long| long.what).collect::<Vec<_>>(), ["its judges", "room"]);
    }
}
