//! Is anything stuck? Whatever has been under way for a minute without progress is named, with what it waits for.

use super::log;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After how long something is named, and again after as long.
const LONG: Duration = Duration::from_secs(60);

/// What is under way.
#[derive(Debug)]
pub(crate) struct Watch {
    items: Mutex<BTreeMap<u64, Item>>,
    next: AtomicU64,
    stuck: AtomicUsize,
}

#[derive(Debug)]
struct Item {
    /// What is awaited.
    what: &'static str,
    /// For whom.
    run: Arc<str>,
    /// Which group or job, where there is one.
    which: String,
    since: Instant,
    told: Instant,
}

/// What has been under way for long, of one kind and one run.
#[derive(Debug)]
struct Long {
    what: &'static str,
    run: Arc<str>,
    which: String,
    seconds: u64,
    alike: usize,
    /// Whether something of it has not been said in the last minute.
    news: bool,
}

/// Something that is under way until it is dropped.
#[derive(Debug)]
pub(crate) struct Watched<'w> {
    watch: &'w Watch,
    number: u64,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { items: Mutex::new(BTreeMap::new()), next: AtomicU64::new(0), stuck: AtomicUsize::new(0) }
    }

    fn items(&self) -> MutexGuard<'_, BTreeMap<u64, Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that something is awaited.
    pub(crate) fn begin(&self, what: &'static str, run: &Arc<str>, which: String) -> Watched<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let item = Item { what, run: Arc::clone(run), which, since: now, told: now };
        self.items().insert(number, item);
        Watched { watch: self, number }
    }

    /// How many have been under way for over a minute without progress.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Names what has been under way for long without progress: a line for all of a kind and a run, with the oldest of them.
    pub(crate) fn look(&self, now: Instant) {
        for Long { what, run, which, seconds, alike, .. } in self.long(now) {
            let facts = [
                ("awaited", Value::from(what)),
                ("run", Value::from(&*run)),
                ("oldest", Value::from(which)),
                ("seconds", Value::from(seconds)),
                ("alike", Value::from(alike)),
            ];
            log::say("warning", "no progress", &facts);
        }
    }

    fn long(&self, now: Instant) -> Vec<Long> {
        let mut items = self.items();
        let mut found: Vec<Long> = Vec::new();
        let mut stuck = 0;
        for item in items.values_mut() {
            let waited = now.saturating_duration_since(item.since);
            if waited < LONG {
                continue;
            }
            stuck += 1;
            let news = now.saturating_duration_since(item.told) >= LONG;
            if news {
                item.told = now;
            }
            match found.iter_mut().find(|long| long.what == item.what && long.run == item.run) {
                Some(long) => {
                    long.alike += 1;
                    long.news |= news;
                    if waited.as_secs() > long.seconds {
                        (long.seconds, long.which) = (waited.as_secs(), item.which.clone());
                    }
                }
                None => found.push(Long {
                    what: item.what,
                    run: Arc::clone(&item.run),
                    which: item.which.clone(),
                    seconds: waited.as_secs(),
                    alike: 1,
                    news,
                }),
            }
        }
        self.stuck.store(stuck, Ordering::Relaxed);
        found.retain(|long| long.news);
        found
    }
}

impl Watched<'_> {
    /// Takes note that it has come further.
    pub(crate) fn renew(&self) {
        if let Some(item) = self.watch.items().get_mut(&self.number) {
            let now = Instant::now();
            (item.since, item.told) = (now, now);
        }
    }

    /// Takes note that something else is awaited now.
    pub(crate) fn awaits(&self, what: &'static str) {
        if let Some(item) = self.watch.items().get_mut(&self.number) {
            item.what = what;
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.watch.items().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_named_once_a_minute_with_the_oldest_of_its_kind() {
        let watch = Watch::new();
        let run: Arc<str> = Arc::from("training");
        let first = watch.begin("its group", &run, "g1".to_owned());
        let second = watch.begin("its group", &run, "g2".to_owned());
        let now = Instant::now();
        assert!(watch.long(now + Duration::from_secs(59)).is_empty());
        let told = watch.long(now + Duration::from_secs(61));
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].what, &*told[0].which, told[0].alike), ("its group", "g1", 2));
        assert!(watch.long(now + Duration::from_secs(90)).is_empty(), "it has just been said");
        assert_eq!(watch.stuck(), 2);
        drop((first, second));
        assert!(watch.long(now + Duration::from_secs(200)).is_empty());
        assert_eq!(watch.stuck(), 0);
    }

    #[test]
    fn what_comes_further_is_not_stuck_and_what_it_waits_for_may_change() {
        let watch = Watch::new();
        let run: Arc<str> = Arc::from("training");
        let first = watch.begin("its judges", &run, "a".to_owned());
        let still = watch.begin("its judges", &run, "b".to_owned());
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        first.renew();
        let told = watch.long(began + LONG);
        assert_eq!((told.len(), &*told[0].which, watch.stuck()), (1, "b", 1));
        still.awaits("room");
        let told = watch.long(began + LONG * 3);
        assert_eq!(told.iter().map(|long| long.what).collect::<Vec<_>>(), ["its judges", "room"]);
    }
}
