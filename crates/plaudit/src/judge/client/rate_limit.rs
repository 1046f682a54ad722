//! Rate limiter, adaptive concurrency limit (AIMD), latency window for hedging, and the generator for jitter.

use std::time::Duration;
use tokio::time::Instant;

/// An even rate of calls or of tokens: each takes an interval, without bursts.
#[derive(Debug)]
pub(super) struct RateLimiter {
    interval: Duration,
    next: Option<Instant>,
}

impl RateLimiter {
    pub(super) fn new(per_minute: Option<u32>) -> Self {
        let interval = per_minute.map_or(Duration::ZERO, |count| Duration::from_secs(60) / count.max(1));
        Self { interval, next: None }
    }

    /// When the next may start, where that is not now.
    pub(super) fn later(&self, now: Instant) -> Option<Instant> {
        self.next.filter(|next| *next > now)
    }

    /// Takes note that so many start.
    pub(super) fn start(&mut self, now: Instant, count: u64) {
        if self.interval > Duration::ZERO {
            self.next = Some(now + self.interval.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX)));
        }
    }

    /// Takes note that a start took so many more than was thought.
    pub(super) fn add(&mut self, now: Instant, more: u64) {
        if self.interval > Duration::ZERO && more > 0 {
            let more = self.interval.saturating_mul(u32::try_from(more).unwrap_or(u32::MAX));
            self.next = Some(self.next.map_or(now, |next| next.max(now)) + more);
        }
    }
}

/// How many calls may be in flight: less after an overload, a little more after every round of good answers.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    most: f64,
    now: f64,
    /// Calls that started before the last cut say nothing about the limit after it.
    cut: Option<Instant>,
}

impl ConcurrencyLimit {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1) as f64;
        Self { most, now: most, cut: None }
    }

    pub(super) fn calls(&self) -> usize {
        self.now as usize
    }

    /// A good answer: one call more after as many as the limit.
    pub(super) fn grow(&mut self) {
        self.now = (self.now + 1.0 / self.now).min(self.most);
    }

    /// An overload that a call met which started then.
    pub(super) fn shrink(&mut self, started: Instant, now: Instant) {
        if self.cut.is_none_or(|cut| started >= cut) {
            self.now = (self.now * 0.7).max(1.0);
            self.cut = Some(now);
        }
    }
}

/// How many latencies are kept, and how many are needed to judge by.
const KEPT: usize = 200;
const NEEDED: usize = 20;

/// After how many further latencies the threshold is computed anew: it costs a sort, and one answer hardly moves it.
const REFRESH: usize = 20;

/// The latencies of late.
#[derive(Debug)]
pub(super) struct LatencyWindow {
    ring: Vec<Duration>,
    at: usize,
    /// Latencies since the threshold was computed.
    fresh: usize,
    too_slow: Option<Duration>,
}

impl LatencyWindow {
    pub(super) fn none() -> Self {
        Self { ring: Vec::new(), at: 0, fresh: 0, too_slow: None }
    }

    pub(super) fn observe(&mut self, latency: Duration) {
        if self.ring.len() < KEPT {
            self.ring.push(latency);
        } else {
            self.ring[self.at] = latency;
            self.at = (self.at + 1) % KEPT;
        }
        self.fresh += 1;
        if self.ring.len() >= NEEDED && (self.too_slow.is_none() || self.fresh >= REFRESH) {
            self.fresh = 0;
            let mut sorted = self.ring.clone();
            let usual = *sorted.select_nth_unstable(self.ring.len() / 2).1;
            let slow = *sorted.select_nth_unstable(self.ring.len() * 19 / 20).1;
            self.too_slow = Some(slow.max(usual * 2));
        }
    }

    /// After how long a call is worth a second one: when nineteen of twenty have answered, and twice the usual time
    /// has passed.
    pub(super) fn too_slow(&self) -> Option<Duration> {
        self.too_slow
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(name: &str) -> Self {
        let bytes = *blake3::hash(name.as_bytes()).as_bytes();
        let seed = bytes.iter().take(8).fold(0, |seed: u64, byte| (seed << 8) | u64::from(*byte));
        Self(seed | 1)
    }

    /// A number below 1.
    pub(super) fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.share() * count as f64) as usize
    }

    /// How long to wait before the retry of that number: anything up to 0.25 s doubled each time, at most 20 s.
    pub(super) fn backoff(&mut self, retry: u32) -> Duration {
        let most = (0.25 * f64::from(1_u32 << retry.min(10))).min(20.0);
        Duration::from_secs_f64(most * self.share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pace_is_even() {
        let mut call_rate = RateLimiter::new(Some(120));
        let now = Instant::now();
        assert_eq!(call_rate.later(now), None);
        call_rate.start(now, 1);
        assert_eq!(call_rate.later(now), Some(now + Duration::from_millis(500)));
        call_rate.add(now, 2);
        assert_eq!(call_rate.later(now), Some(now + Duration::from_millis(1500)));
        assert_eq!(call_rate.later(now + Duration::from_millis(1500)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_cut_once_a_window_and_grows_back_slowly() {
        let mut limit = ConcurrencyLimit::new(100);
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        for _ in 0..50 {
            limit.shrink(start, later);
        }
        assert_eq!(limit.calls(), 70);
        limit.shrink(later, later + Duration::from_secs(1));
        assert_eq!(limit.calls(), 49);
        for _ in 0..50 {
            limit.grow();
        }
        assert_eq!(limit.calls(), 50);
        for _ in 0..100_000 {
            limit.grow();
        }
        assert_eq!(limit.calls(), 100);
    }

    #[test]
    fn slow_is_what_few_calls_are() {
        let mut latencies = LatencyWindow::none();
        for millis in 0..19 {
            latencies.observe(Duration::from_millis(100 + millis));
        }
        assert_eq!(latencies.too_slow(), None);
        latencies.observe(Duration::from_millis(900));
        assert_eq!(latencies.too_slow(), Some(Duration::from_millis(900)));
        for _ in 0..400 {
            latencies.observe(Duration::from_millis(10));
        }
        assert_eq!(latencies.too_slow(), Some(Duration::from_millis(20)));
    }

    #[test]
    fn waits_stay_within_their_bounds() {
        let mut rng = Rng::new("judge");
        for retry in 0..100 {
            assert!(rng.backoff(retry) <= Duration::from_secs(20));
            assert!(rng.backoff(0) <= Duration::from_millis(250));
            assert!(rng.below(3) < 3);
        }
    }
}
