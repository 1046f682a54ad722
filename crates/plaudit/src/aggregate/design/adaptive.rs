//! Adaptive design: greedily chooses the comparisons that reduce the variance of the strengths most.

use super::super::mixture::{Mixture, Posteriors};
use super::super::{AggregateError, Aggregator as _, Evidence};
use super::{History, Schedule, Sides};

/// Where a whole wave is expected to lessen the variance of a strength by less than this, in squared logits, the group is
/// taken for one that the judge cannot tell apart any better.
const LEAST_GAIN: f64 = 0.005;

/// How much less a pair that was asked before teaches: a judge tends to repeat its mistakes.
const STALE: f64 = 0.75;

/// So many calls at most, or none where enough is known.
pub(super) fn wave(
    schedule: &Schedule,
    calls: usize,
    history: &History,
    evidence: &Evidence,
) -> Vec<Vec<usize>> {
    let complete = match evidence.check(schedule.n) {
        Ok(()) => true,
        Err(AggregateError::NeverCompared { .. }) => false,
        Err(_) => return Vec::new(),
    };
    let sorted = evidence.sorted();
    let found =
        schedule.model.check().ok().and_then(|()| Posteriors::new(&schedule.model, schedule.n, &sorted));
    let Some(found) = found else { return Vec::new() };
    let known = found.mixed(&schedule.model);
    if complete && known.signal() >= schedule.reliability {
        return Vec::new();
    }
    let mut outlook =
        Outlook::new(&found.mixed(&schedule.model.hopeful()), &sorted, history.sides(schedule.n));
    let shown = schedule.shown();
    let wave: Vec<Vec<usize>> = (0..calls).map(|_| outlook.choose(shown)).collect();
    // What is worth asking is settled for a group that differs; whether to ask at all, for the group as it looks.
    let mut outlook = Outlook::new(&known, &sorted, history.sides(schedule.n));
    wave.iter().for_each(|call| outlook.foresee(call));
    if complete && outlook.gained < LEAST_GAIN * schedule.n as f64 { Vec::new() } else { wave }
}

/// What is expected to be known after the calls that were chosen so far.
struct Outlook {
    n: usize,
    means: Vec<f64>,
    /// Of the strengths, and last of the bias towards what is shown first; by rows.
    covariance: Vec<f64>,
    /// How often every two were shown together.
    met: Vec<u32>,
    sides: Sides,
    /// By how much the variances of the strengths are expected to shrink in sum.
    gained: f64,
}

impl Outlook {
    fn new(known: &Mixture, evidence: &Evidence, sides: Sides) -> Self {
        let n = known.n;
        let rows = known.covariance().chunks_exact(n + 2).take(n + 1);
        let covariance = rows.flat_map(|row| row[..=n].iter().copied()).collect();
        let mut outlook =
            Self { n, means: known.mean[..=n].to_vec(), covariance, met: vec![0; n * n], sides, gained: 0.0 };
        for pair in evidence.flat() {
            outlook.meet(pair.first, pair.second);
        }
        outlook
    }

    fn meet(&mut self, one: usize, two: usize) {
        self.met[one * self.n + two] += 1;
        self.met[two * self.n + one] += 1;
    }

    /// The variance of the difference of two strengths.
    fn variance(&self, one: usize, two: usize) -> f64 {
        let entry = |row: usize, column: usize| self.covariance[row * (self.n + 1) + column];
        (entry(one, one) + entry(two, two) - 2.0 * entry(one, two)).max(0.0)
    }

    /// The Fisher information of a verdict about the difference, as a mean over what the difference may be, times the
    /// variance of it.
    fn worth(&self, one: usize, two: usize) -> f64 {
        let variance = self.variance(one, two);
        let stale = STALE.powi(self.met[one * self.n + two].min(30) as i32);
        information(self.means[one] - self.means[two], variance) * variance * stale
    }

    /// Chooses one call, and learns from it what can be estimates.
    fn choose(&mut self, shown: usize) -> Vec<usize> {
        let n = self.n;
        let pairs = (0..n).flat_map(|one| (0..one).map(move |two| (one, two)));
        let best =
            pairs.map(|(one, two)| (self.worth(one, two), one, two)).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, one, two)) = best else { return Vec::new() };
        let mut call = vec![one, two];
        while call.len() < shown {
            let worth = |next: usize| call.iter().map(|other| self.worth(next, *other)).sum::<f64>();
            let others = (0..n).filter(|next| !call.contains(next)).map(|next| (worth(next), next));
            let Some((_, next)) = others.max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            call.push(next);
        }
        self.sides.arrange(&mut call);
        self.foresee(&call);
        call
    }

    /// Shrinks the covariance by the information of a call, which for a ranking is a share of that of all its pairs.
    fn foresee(&mut self, call: &[usize]) {
        let mut order = call.to_vec();
        order.sort_by(|a, b| self.means[*b].total_cmp(&self.means[*a]));
        let last = call.len().saturating_sub(1).max(1) as f64;
        let share =
            |one: usize| call.iter().position(|shown| *shown == one).map_or(0.0, |at| 0.5 - at as f64 / last);
        for (at, &one) in order.iter().enumerate() {
            for &two in &order[at + 1..] {
                let variance = self.variance(one, two);
                let open = information(self.means[one] - self.means[two], variance);
                let weight = if call.len() == 2 { open } else { open * RANKED };
                self.learn(one, two, share(one) - share(two), weight);
                self.meet(one, two);
            }
        }
    }

    /// The rank-one update of the covariance by so much information about a difference.
    fn learn(&mut self, one: usize, two: usize, bias: f64, information: f64) {
        let (n, size) = (self.n, self.n + 1);
        let along: Vec<f64> =
            self.covariance.chunks_exact(size).map(|row| row[one] - row[two] + bias * row[n]).collect();
        let variance = along[one] - along[two] + bias * along[n];
        let factor = information / (1.0 + information * variance.max(0.0));
        for (row, slope) in self.covariance.chunks_exact_mut(size).zip(&along) {
            row.iter_mut().zip(&along).for_each(|(entry, other)| *entry -= factor * slope * other);
        }
        let mean = along[..n].iter().sum::<f64>() / n as f64;
        self.gained += factor * along[..n].iter().map(|slope| (slope - mean).powi(2)).sum::<f64>();
    }
}

/// The share of the information of all pairs on their own that a ranking has, whose pairs depend on each other.
const RANKED: f64 = 0.6;

/// The mean of p (1 - p) over a normal distribution of the logit of p, by MacKay's approximation (1992).
fn information(mean: f64, variance: f64) -> f64 {
    let narrowed = 1.0 / (1.0 + std::f64::consts::PI * variance / 8.0).sqrt();
    let half = (narrowed * mean / 2.0).tanh();
    narrowed * (1.0 - half * half) / 4.0
}
