//! Circuit breaker of one endpoint: opens after failures, probes with one call at a time, and keeps the pauses that an
//! endpoint asks for.

use super::call_error::Health;
use super::rate_limit::Rng;
use std::time::Duration;
use tokio::time::Instant;

/// How many results the breaker looks at, and how many it needs.
const LAST: u32 = 20;
const LEAST: u32 = 5;

/// The first and the longest pause of an endpoint that asks for one without saying how long.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Whether calls flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaker {
    Closed,
    /// Nothing is sent until then; then one probe.
    Open {
        until: Instant,
        rest: Duration,
    },
}

/// When an endpoint can take one more call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Availability {
    /// At once.
    Now,
    /// Availability its probe has ended.
    AfterProbe,
    /// Not before then: it asked for a pause.
    Paused(Instant),
    /// Not before then: it has failed too often.
    Open(Instant),
}

/// One endpoint of a judge.
#[derive(Debug)]
pub(super) struct EndpointState {
    breaker: Breaker,
    /// The first rest of the breaker.
    rest: Duration,
    /// The longest one.
    longest: Duration,
    /// Spreads the probes, so that they do not keep step with a judge that comes and goes.
    rng: Rng,
    /// The last results, the newest in the lowest bit, a failure being 1.
    results: u32,
    seen: u32,
    paused: Option<Instant>,
    /// How many times in a row it has asked for a pause.
    pauses: u32,
    /// Whether it has answered well since it last asked for a pause, or at all.
    proven: bool,
    pub(super) in_flight: usize,
    pub(super) openings: u64,
}

impl EndpointState {
    /// An endpoint that is left alone for `rest` when it fails, and for twice as long each time, up to `longest`; each
    /// time for up to a quarter less, as the rng fall.
    pub(super) fn new(rest: Duration, longest: Duration, rng: Rng) -> Self {
        Self {
            breaker: Breaker::Closed,
            rest,
            longest,
            rng,
            results: 0,
            seen: 0,
            paused: None,
            pauses: 0,
            proven: false,
            in_flight: 0,
            openings: 0,
        }
    }

    pub(super) fn when(&self, now: Instant) -> Availability {
        if let Breaker::Open { until, .. } = self.breaker {
            return match (until > now, self.in_flight) {
                (true, _) => Availability::Open(until),
                (false, 0) => Availability::Now,
                (false, _) => Availability::AfterProbe,
            };
        }
        match self.paused {
            Some(until) if until > now => Availability::Paused(until),
            _ if self.proven || self.in_flight == 0 => Availability::Now,
            _ => Availability::AfterProbe,
        }
    }

    /// Whether its breaker is open or being probed.
    pub(super) fn is_down(&self) -> bool {
        self.breaker != Breaker::Closed
    }

    /// Whether it works as far as we know, so that its failures are retried within the retry budget.
    pub(super) fn is_up(&self) -> bool {
        self.proven && !self.is_down()
    }

    /// Takes in how a call went.
    pub(super) fn observe(&mut self, health: Health, now: Instant) {
        match health {
            Health::Healthy => {
                self.proven = true;
                self.pauses = 0;
                if self.is_down() {
                    self.breaker = Breaker::Closed;
                    (self.results, self.seen) = (0, 0);
                }
                self.count(0);
            }
            Health::Failing | Health::Overloaded => self.fail(now),
            Health::Pause(wait) => {
                let own = PAUSE.saturating_mul(1 << self.pauses.min(5)).min(MAX_PAUSE);
                self.pauses += 1;
                self.proven = false;
                let until = now + wait.unwrap_or(own);
                self.paused = self.paused.max(Some(until));
                if self.is_down() {
                    self.breaker = Breaker::Closed;
                    (self.results, self.seen) = (0, 0);
                }
            }
            Health::Dead => {}
        }
    }

    fn fail(&mut self, now: Instant) {
        match self.breaker {
            // A call that was sent before the breaker opened says nothing new.
            Breaker::Open { until, .. } if until > now => {}
            Breaker::Open { rest, .. } => {
                self.open((rest * 2).min(self.longest), now);
            }
            Breaker::Closed => {
                self.count(1);
                let failed = self.results.count_ones();
                if self.seen >= LEAST && failed * 10 >= self.seen * 9 {
                    self.openings += 1;
                    self.open(self.rest, now);
                }
            }
        }
    }

    /// Lets nothing through for a rest, or up to a quarter less.
    fn open(&mut self, rest: Duration, now: Instant) {
        let until = now + rest.mul_f64(1.0 - self.rng.share() / 4.0);
        self.breaker = Breaker::Open { until, rest };
    }

    fn count(&mut self, failed: u32) {
        self.results = ((self.results << 1) | failed) & ((1 << LAST) - 1);
        self.seen = (self.seen + 1).min(LAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> (EndpointState, Instant) {
        (
            EndpointState::new(Duration::from_secs(5), Duration::from_secs(60), Rng::new("judge")),
            Instant::now(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn five_failures_open_it_and_probes_back_off() {
        let (mut endpoint, start) = endpoint();
        for _ in 0..4 {
            endpoint.observe(Health::Failing, start);
            assert_eq!(endpoint.when(start), Availability::Now);
        }
        endpoint.observe(Health::Failing, start);
        let mut now = start;
        let mut shares = Vec::new();
        for rest in [5, 10, 20, 40, 60, 60] {
            let Availability::Open(until) = endpoint.when(now) else { panic!("{:?}", endpoint.when(now)) };
            shares.push((until - now).as_secs_f64() / f64::from(rest));
            now = until;
            assert_eq!(endpoint.when(now), Availability::Now);
            endpoint.in_flight = 1;
            assert_eq!(endpoint.when(now), Availability::AfterProbe);
            endpoint.in_flight = 0;
            endpoint.observe(Health::Failing, now);
        }
        assert!(shares.iter().all(|share| (0.75..=1.0).contains(share)), "{shares:?}");
        assert!(shares.windows(2).all(|two| (two[0] - two[1]).abs() > 1e-3), "{shares:?}");
        now += Duration::from_secs(60);
        endpoint.observe(Health::Healthy, now);
        assert!(endpoint.is_up());
        assert_eq!(endpoint.openings, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_the_calls_failing_does_not_open_it() {
        let (mut endpoint, now) = endpoint();
        for _ in 0..200 {
            endpoint.observe(Health::Healthy, now);
            endpoint.observe(Health::Failing, now);
        }
        assert!(!endpoint.is_down());
        for failures in 0..15 {
            assert!(!endpoint.is_down(), "{failures}");
            endpoint.observe(Health::Failing, now);
        }
        assert!(endpoint.is_down());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_kept_and_ends_with_one_probe() {
        let (mut endpoint, now) = endpoint();
        endpoint.observe(Health::Healthy, now);
        endpoint.in_flight = 3;
        assert_eq!(endpoint.when(now), Availability::Now);
        endpoint.observe(Health::Pause(Some(Duration::from_secs(7))), now);
        endpoint.observe(Health::Pause(None), now);
        let end = now + Duration::from_secs(7);
        assert_eq!(endpoint.when(now), Availability::Paused(end));
        assert_eq!(endpoint.when(end), Availability::AfterProbe);
        endpoint.in_flight = 0;
        assert_eq!(endpoint.when(end), Availability::Now);
    }
}
