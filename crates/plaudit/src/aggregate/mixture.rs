//! Mixture of Bradley-Terry posteriors over the possible spreads of a group, each weighted by its evidence.

use super::Evidence;
use super::bradley_terry::BradleyTerry;
use super::davidson::{Peak, Posterior, Verdicts};
use super::hessian::{Curvature, DENSE};
use std::sync::Arc;

/// The standard deviation of the logarithm of the tie term around the expected one.
const TIE_SPREAD: f64 = 1.0;

/// How well another reward is expected to agree with the strengths: a correlation that is usual for scalar reward models,
/// or none at all. Which one it is, the verdicts tell, so that a prior which they contradict fades.
const CORRELATIONS: [(f64, f64); 2] = [(0.7, 0.8), (0.0, 0.2)];

/// The mean and the covariance of the unknowns, over all scales: the strengths, the bias towards the response shown first,
/// and the logarithm of the tie term.
pub(super) struct Mixture {
    pub(super) n: usize,
    pub(super) mean: Vec<f64>,
    spread: Spread,
    pub(super) weights: Vec<f64>,
}

/// How sure the unknowns are.
enum Spread {
    /// The covariance of all of them, by rows.
    Whole(Vec<f64>),
    /// The variance of each strength around their mean, which is all that is kept of a large group.
    Each(Vec<f64>),
}

/// One of the priors that are mixed.
struct Expected {
    /// Which of the scales.
    scale: usize,
    /// How likely it is beside the other priors of that scale.
    share: f64,
    means: Vec<f64>,
    spread: f64,
}

/// Every scale, and with what another reward says every scale twice.
fn expected(params: &BradleyTerry, n: usize, prior: Option<&[f64]>) -> Vec<Expected> {
    let standard = prior.and_then(standardised);
    let scales = 0..params.scales.len();
    let with = |scale: usize, correlation: f64, share: f64| {
        let mut means = vec![0.0; n + 2];
        means[n + 1] = params.tie.ln();
        let width = params.scales[scale];
        for (mean, score) in means.iter_mut().zip(standard.iter().flatten()) {
            *mean = correlation * width * score;
        }
        let spread = width * (1.0 - correlation * correlation).sqrt();
        Expected { scale, share, means, spread }
    };
    match standard {
        None => scales.map(|scale| with(scale, 0.0, 1.0)).collect(),
        Some(_) => CORRELATIONS
            .iter()
            .flat_map(|(correlation, share)| scales.clone().map(move |scale| (scale, *correlation, *share)))
            .map(|(scale, correlation, share)| with(scale, correlation, share))
            .collect(),
    }
}

/// The scores with mean 0 and variance 1, or none where they do not differ.
fn standardised(scores: &[f64]) -> Option<Vec<f64>> {
    let largest = scores.iter().fold(0.0_f64, |largest, score| largest.max(score.abs()));
    // Huge scores are made small first, so that their squares stay finite.
    let small: Vec<f64> = scores.iter().map(|score| score / largest).collect();
    let mean = small.iter().sum::<f64>() / small.len() as f64;
    let deviation =
        (small.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / small.len() as f64).sqrt();
    (deviation > 1e-9).then(|| small.iter().map(|score| (score - mean) / deviation).collect())
}

/// The posteriors of a group, one for every prior that is mixed. Finding them is what takes time.
pub(super) struct Posteriors {
    n: usize,
    each: Vec<(Expected, Peak)>,
}

impl Posteriors {
    /// Of evidence that is sorted. None where a peak cannot be found.
    pub(super) fn new(params: &BradleyTerry, n: usize, sorted: &Evidence) -> Option<Self> {
        Self::kept(params, n, sorted, n > DENSE)
    }

    /// The same, with the curvature kept as a whole or by pairs.
    fn kept(params: &BradleyTerry, n: usize, sorted: &Evidence, by_pairs: bool) -> Option<Self> {
        let verdicts = Verdicts::new(sorted);
        let pattern = by_pairs.then(|| Arc::new(verdicts.pattern(n)));
        let expected = expected(params, n, sorted.prior.as_deref());
        let mut start = expected.first()?.means.clone();
        let mut each = Vec::with_capacity(expected.len());
        for expected in expected {
            let mut precisions = vec![expected.spread.powi(-2); n + 2];
            precisions[n] = params.position_scale.powi(-2);
            precisions[n + 1] = TIE_SPREAD.powi(-2);
            let means = expected.means.clone();
            let pattern = pattern.as_ref();
            let peak = Posterior { verdicts: &verdicts, means, precisions, pattern }.peak(start)?;
            start = peak.at.clone();
            each.push((expected, peak));
        }
        Some(Self { n, each })
    }

    /// Mixes them by their evidence in Laplace's approximation (Tierney and Kadane, 1986), with the scales as likely
    /// beforehand as the parameters say.
    pub(super) fn mixed(&self, params: &BradleyTerry) -> Mixture {
        let (n, size) = (self.n, self.n + 2);
        let heights = self.each.iter().map(|(Expected { scale, share, spread, .. }, peak)| {
            let before = (params.weight(*scale) * share).ln();
            before + peak.height - n as f64 * spread.ln() - peak.curvature.log_determinant() / 2.0
        });
        let heights: Vec<f64> = heights.collect();
        let most = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = heights.iter().map(|height| (height - most).exp()).sum();
        let shares: Vec<f64> = heights.iter().map(|height| (height - most).exp() / sum).collect();
        let mut mean = vec![0.0; size];
        let mut weights = vec![0.0; params.scales.len()];
        for ((Expected { scale, .. }, peak), share) in self.each.iter().zip(&shares) {
            mean.iter_mut().zip(&peak.at).for_each(|(mean, at)| *mean += share * at);
            weights[*scale] += share;
        }
        let mut spread = match self.each.first().map(|(_, peak)| &peak.curvature) {
            Some(Curvature::Pairs(_)) => Spread::Each(vec![0.0; n]),
            _ => Spread::Whole(vec![0.0; size * size]),
        };
        for ((_, peak), share) in self.each.iter().zip(&shares) {
            let off: Vec<f64> = peak.at.iter().zip(&mean).map(|(at, mean)| at - mean).collect();
            spread.add(*share, peak, &off);
        }
        Mixture { n, mean, spread, weights }
    }
}

impl Spread {
    /// Adds the share of one posterior, of which the peak is so far off the mean.
    fn add(&mut self, share: f64, peak: &Peak, off: &[f64]) {
        match (self, &peak.curvature) {
            (Self::Whole(covariance), Curvature::Whole(cholesky)) => {
                let (size, inverse) = (off.len(), cholesky.inverse());
                for row in 0..size {
                    for column in 0..size {
                        let at = row * size + column;
                        covariance[at] += share * (inverse[at] + off[row] * off[column]);
                    }
                }
            }
            (Self::Each(variances), Curvature::Pairs(pairs)) => {
                let centre = off[..variances.len()].iter().sum::<f64>() / variances.len() as f64;
                for ((sum, own), off) in variances.iter_mut().zip(pairs.variances()).zip(off) {
                    *sum += share * (own + (off - centre).powi(2));
                }
            }
            // All posteriors of a group are kept in the same way.
            _ => {}
        }
    }
}

impl Mixture {
    /// The strengths, with mean 0.
    pub(super) fn strengths(&self) -> Vec<f64> {
        let centre = self.mean[..self.n].iter().sum::<f64>() / self.n.max(1) as f64;
        self.mean[..self.n].iter().map(|strength| strength - centre).collect()
    }

    /// The covariance of all unknowns, by rows; empty for a large group.
    pub(super) fn covariance(&self) -> &[f64] {
        match &self.spread {
            Spread::Whole(covariance) => covariance,
            Spread::Each(_) => &[],
        }
    }

    /// The variance of one strength around the mean of all.
    pub(super) fn variance(&self, own: usize) -> f64 {
        let covariance = match &self.spread {
            Spread::Whole(covariance) => covariance,
            Spread::Each(variances) => return variances[own],
        };
        let mut weights = vec![-1.0 / self.n as f64; self.n];
        weights[own] += 1.0;
        let rows = covariance.chunks_exact(self.n + 2).zip(&weights);
        let sum =
            rows.map(|(row, weight)| weight * row.iter().zip(&weights).map(|(c, w)| c * w).sum::<f64>());
        sum.sum::<f64>().max(0.0)
    }

    /// The sum of the variances of the strengths around their mean.
    pub(super) fn noise(&self) -> f64 {
        let (n, size) = (self.n, self.n + 2);
        let covariance = match &self.spread {
            Spread::Whole(covariance) => covariance,
            Spread::Each(variances) => return variances.iter().sum(),
        };
        let own: f64 = (0..n).map(|i| covariance[i * size + i]).sum();
        let all: f64 = (0..n).map(|i| covariance[i * size..i * size + n].iter().sum::<f64>()).sum();
        (own - all / n.max(1) as f64).max(0.0)
    }

    /// The reliability of the strengths: their variance over itself plus the mean of their posterior variances.
    pub(super) fn signal(&self) -> f64 {
        let spread = self.strengths().iter().map(|strength| strength * strength).sum::<f64>();
        if spread > 0.0 { spread / (spread + self.noise()) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, Ranking};
    use super::*;

    /// Responses on rings of comparisons, in which the lower number mostly wins.
    fn rings(n: usize, distances: &[usize]) -> Evidence {
        let game = |first: usize, distance: usize| {
            let second = (first + distance) % n;
            let (low, high) = (first.min(second), first.max(second));
            let winner = if (first * 7 + distance).is_multiple_of(5) { high } else { low };
            Comparison { first, second, winner: (!first.is_multiple_of(11)).then_some(winner) }
        };
        let games = distances.iter().flat_map(|distance| (0..n).map(move |first| game(first, *distance)));
        let line_up = |at: usize| {
            let shown: Vec<usize> = (0..4).map(|step| (at + step * 13) % n).collect();
            let mut order = shown.clone();
            order.sort_unstable();
            Ranking { shown, order }
        };
        let mut evidence = Evidence { comparisons: games.collect(), ..Evidence::default() };
        evidence.rankings = (0..n).step_by(9).map(line_up).collect();
        evidence.sorted()
    }

    #[test]
    fn a_large_group_is_estimated_as_a_small_one_is() {
        let params = BradleyTerry::default();
        for (n, distances) in [(60, vec![1, 7]), (60, (1..30).collect()), (90, vec![1, 11, 25])] {
            let evidence = rings(n, &distances);
            let of = |by_pairs| {
                let found = Posteriors::kept(&params, n, &evidence, by_pairs).expect("posteriors");
                found.mixed(&params)
            };
            let (whole, pairs) = (of(false), of(true));
            let strengths = whole.strengths();
            let spread = strengths.iter().fold(0.0_f64, |most, strength| most.max(strength.abs()));
            for (at, (one, two)) in strengths.iter().zip(pairs.strengths()).enumerate() {
                assert!((one - two).abs() < 0.05 * spread, "{n}: {one} {two}");
                let (one, two) = (whole.variance(at), pairs.variance(at));
                assert!((one / two - 1.0).abs() < 0.2, "{n}: {one} {two}");
            }
            assert!(
                (whole.signal() - pairs.signal()).abs() < 0.03,
                "{n}: {} {}",
                whole.signal(),
                pairs.signal()
            );
        }
    }
}
