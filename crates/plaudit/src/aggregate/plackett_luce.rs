//! Plackett-Luce likelihood terms of rankings, and the terms of weighed comparisons, for the Bradley-Terry posterior.

use super::hessian::Matrix;
use super::{Ranking, Weighed};

/// What the terms add up to: the slope and the curvature of the negative logarithm of the likelihood.
pub(super) struct Sums<'s> {
    pub(super) slope: &'s mut [f64],
    pub(super) curvature: &'s mut Matrix,
}

impl Sums<'_> {
    /// Adds a term that depends on the unknowns by a weighted sum of three of them.
    fn add(&mut self, along: [(usize, f64); 3], slope: f64, bend: f64) {
        for (row, weight) in along {
            self.slope[row] += weight * slope;
            for (column, other) in along {
                self.curvature.add(row, column, weight * other * bend);
            }
        }
    }
}

/// A ranking as Luce (1959) and Plackett (1975) model it: the best is chosen among all, the next among the rest, and so
/// on, each by the exponential of its strength. Two of them alone are a comparison without ties.
pub(super) struct RankingTerm {
    /// The responses from the best to the worst, each with its share of the bias towards what is shown early: half for
    /// the first slot, minus half for the last, so that two slots differ by as much as the sides of a comparison.
    places: Vec<(usize, f64)>,
}

impl RankingTerm {
    pub(super) fn new(ranking: &Ranking) -> Self {
        let last = ranking.shown.len().saturating_sub(1).max(1) as f64;
        let slot = |response: usize| ranking.shown.iter().position(|shown| *shown == response);
        let share = |response: usize| slot(response).map_or(0.0, |slot| 0.5 - slot as f64 / last);
        Self { places: ranking.order.iter().map(|response| (*response, share(*response))).collect() }
    }

    /// Every two responses of the ranking.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let places = self.places.iter().enumerate();
        places.flat_map(|(at, (one, _))| self.places[at + 1..].iter().map(|(two, _)| (*one, *two)))
    }

    /// The strength of each with its share of the bias, which is the last unknown but one.
    fn strengths(&self, at: &[f64]) -> Vec<f64> {
        let bias = at[at.len() - 2];
        self.places.iter().map(|(response, share)| at[*response] + share * bias).collect()
    }

    /// The negative logarithm of the likelihood.
    pub(super) fn value(&self, at: &[f64]) -> f64 {
        let strengths = self.strengths(at);
        let rounds = strengths.iter().enumerate().map(|(round, chosen)| {
            let others = &strengths[round + 1..];
            let most = others.iter().copied().fold(*chosen, f64::max);
            let sum: f64 = others.iter().map(|other| (other - most).exp()).sum();
            // What is almost certain must keep the digits of its small distance from it.
            if most == *chosen { sum.ln_1p() } else { most - chosen + (sum + (chosen - most).exp()).ln() }
        });
        rounds.sum()
    }

    /// Adds slope and curvature at a point. The curvature of a round is the covariance of its choice, which is a sum
    /// over all two that it might have chosen.
    pub(super) fn add_to(&self, sums: &mut Sums<'_>, at: &[f64]) {
        let strengths = self.strengths(at);
        let count = strengths.len();
        let position = at.len() - 2;
        let (mut slopes, mut bends) = (vec![0.0; count * count], vec![0.0; count * count]);
        for round in 0..count.saturating_sub(1) {
            let most = strengths[round..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> =
                strengths[round..].iter().map(|strength| (strength - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for one in round..count {
                let chance = weights[one - round] / sum;
                // The chosen one pulls against each of the others by the chance that those had.
                slopes[round * count + one] -= if one > round { chance } else { 0.0 };
                for two in one + 1..count {
                    bends[one * count + two] += chance * weights[two - round] / sum;
                }
            }
        }
        for one in 0..count {
            for two in one + 1..count {
                let ((a, share), (b, other)) = (self.places[one], self.places[two]);
                let along = [(a, 1.0), (b, -1.0), (position, share - other)];
                sums.add(along, slopes[one * count + two], bends[one * count + two]);
            }
        }
    }
}

/// Beyond this many logits a judge's own probability is taken for "at least": what a model says of its last digits is
/// no evidence.
const MAX_LOGITS: f64 = 4.0;

/// A judge's own probability. Its logit is the difference of strengths plus the bias plus noise of the logistic
/// distribution, which makes the more likely side win as often as in a comparison without ties; its long tails keep one
/// odd probability from outvoting many verdicts, which a normal distribution of the same variance of 3.3 does not.
pub(super) struct WeighedTerm {
    first: usize,
    second: usize,
    logit: f64,
}

impl WeighedTerm {
    pub(super) fn new(weighed: &Weighed) -> Self {
        let logit = (weighed.first / (1.0 - weighed.first)).ln().clamp(-MAX_LOGITS, MAX_LOGITS);
        Self { first: weighed.comparison.first, second: weighed.comparison.second, logit }
    }

    /// The two responses.
    pub(super) fn pair(&self) -> (usize, usize) {
        (self.first, self.second)
    }

    /// How far the unknowns are above what is stated.
    fn above(&self, at: &[f64]) -> f64 {
        at[self.first] - at[self.second] + at[at.len() - 2] - self.logit
    }

    /// The negative logarithm of the likelihood.
    pub(super) fn value(&self, at: &[f64]) -> f64 {
        let above = self.above(at);
        // The logarithm of 1 + exp(-x), which does not overflow.
        let softplus = |x: f64| (-x.abs()).exp().ln_1p() + (-x).max(0.0);
        if self.logit >= MAX_LOGITS {
            softplus(above)
        } else if self.logit <= -MAX_LOGITS {
            softplus(-above)
        } else {
            softplus(above) + softplus(-above)
        }
    }

    /// Adds slope and curvature at a point.
    pub(super) fn add_to(&self, sums: &mut Sums<'_>, at: &[f64]) {
        let above = self.above(at);
        let (low, high) = (1.0 / (1.0 + above.exp()), 1.0 / (1.0 + (-above).exp()));
        let (slope, bend) = if self.logit >= MAX_LOGITS {
            (-low, low * high)
        } else if self.logit <= -MAX_LOGITS {
            (high, low * high)
        } else {
            (high - low, 2.0 * low * high)
        };
        sums.add([(self.first, 1.0), (self.second, -1.0), (at.len() - 2, 1.0)], slope, bend);
    }
}
