//! Which strengths follow from the verdicts when nobody says how far the responses of the group differ? A mixture over
//! scales, each as likely as its share of the evidence.

use super::Observed;
use super::bradley_terry::BradleyTerry;
use super::davidson::{Peak, Posterior, Verdicts};

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
    pub(super) covariance: Vec<f64>,
    pub(super) weights: Vec<f64>,
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
    pub(super) fn new(params: &BradleyTerry, n: usize, sorted: &Observed) -> Option<Self> {
        let verdicts = Verdicts::new(sorted);
        let expected = expected(params, n, sorted.prior.as_deref());
        let mut start = expected.first()?.means.clone();
        let mut each = Vec::with_capacity(expected.len());
        for expected in expected {
            let mut precisions = vec![expected.spread.powi(-2); n + 2];
            precisions[n] = params.position_scale.powi(-2);
            precisions[n + 1] = TIE_SPREAD.powi(-2);
            let means = expected.means.clone();
            let peak = Posterior { verdicts: &verdicts, means, precisions }.peak(start)?;
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
        let mut covariance = vec![0.0; size * size];
        for ((_, peak), share) in self.each.iter().zip(&shares) {
            let inverse = peak.curvature.inverse();
            let off: Vec<f64> = peak.at.iter().zip(&mean).map(|(at, mean)| at - mean).collect();
            for row in 0..size {
                for column in 0..size {
                    let at = row * size + column;
                    covariance[at] += share * (inverse[at] + off[row] * off[column]);
                }
            }
        }
        Mixture { n, mean, covariance, weights }
    }
}

impl Mixture {
    /// The strengths, with mean 0.
    pub(super) fn strengths(&self) -> Vec<f64> {
        let centre = self.mean[..self.n].iter().sum::<f64>() / self.n.max(1) as f64;
        self.mean[..self.n].iter().map(|strength| strength - centre).collect()
    }

    /// The sum of the variances of the strengths around their mean.
    pub(super) fn noise(&self) -> f64 {
        let (n, size) = (self.n, self.n + 2);
        let own: f64 = (0..n).map(|i| self.covariance[i * size + i]).sum();
        let all: f64 = (0..n).map(|i| self.covariance[i * size..i * size + n].iter().sum::<f64>()).sum();
        (own - all / n.max(1) as f64).max(0.0)
    }

    /// The reliability of the strengths: their variance over itself plus the mean of their posterior variances.
    pub(super) fn signal(&self) -> f64 {
        let spread = self.strengths().iter().map(|strength| strength * strength).sum::<f64>();
        if spread > 0.0 { spread / (spread + self.noise()) } else { 0.0 }
    }
}
