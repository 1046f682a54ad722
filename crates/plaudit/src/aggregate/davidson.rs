//! Davidson's model of wins and ties with position bias, and Newton's method to the peak of its posterior.

use super::hessian::{Curvature, HessianPattern, Matrix};
use super::plackett_luce::{RankingTerm, Sums, WeighedTerm};
use super::{Comparison, Evidence};
use std::sync::Arc;

/// How often one response shown first won, tied and lost against one shown second.
struct PairTally {
    first: usize,
    second: usize,
    won: f64,
    tied: f64,
    lost: f64,
}

/// All verdicts on a group, as terms of its likelihood.
pub(super) struct Verdicts {
    tallies: Vec<PairTally>,
    weighed: Vec<WeighedTerm>,
    rankings: Vec<RankingTerm>,
}

impl Verdicts {
    /// Of evidence that is sorted.
    pub(super) fn new(sorted: &Evidence) -> Self {
        Self {
            tallies: tallies(&sorted.comparisons),
            weighed: sorted.weighed.iter().map(WeighedTerm::new).collect(),
            rankings: sorted.rankings.iter().map(RankingTerm::new).collect(),
        }
    }

    /// Which strengths the curvature couples: every two that some verdict compares.
    pub(super) fn pattern(&self, n: usize) -> HessianPattern {
        let tallies = self.tallies.iter().map(|tally| (tally.first, tally.second));
        let weighed = self.weighed.iter().map(WeighedTerm::pair);
        let rankings = self.rankings.iter().flat_map(RankingTerm::pairs);
        HessianPattern::new(n, tallies.chain(weighed).chain(rankings))
    }
}

/// Counts verdicts that are sorted, so that equal ones stand side by side.
fn tallies(sorted: &[Comparison]) -> Vec<PairTally> {
    let count = |games: &[Comparison], winner: Option<usize>| {
        games.iter().filter(|game| game.winner == winner).count() as f64
    };
    let pairs = sorted.chunk_by(|a, b| (a.first, a.second) == (b.first, b.second));
    pairs
        .filter_map(|games| games.first().map(|game| (game, games)))
        .map(|(&Comparison { first, second, .. }, games)| PairTally {
            first,
            second,
            won: count(games, Some(first)),
            tied: count(games, None),
            lost: count(games, Some(second)),
        })
        .collect()
}

/// The negative logarithm of the posterior for one scale of the prior. The unknowns are the strengths, then the bias
/// towards the response shown first, then the logarithm of the tie term.
pub(super) struct Posterior<'v> {
    pub(super) verdicts: &'v Verdicts,
    /// What the prior expects of each unknown.
    pub(super) means: Vec<f64>,
    /// How firmly it does: one over the variance.
    pub(super) precisions: Vec<f64>,
    /// What the curvature is kept by, for a large group; without it, as a whole.
    pub(super) pattern: Option<&'v Arc<HessianPattern>>,
}

/// Where the posterior is highest, and how it falls off around.
pub(super) struct Peak {
    pub(super) at: Vec<f64>,
    pub(super) height: f64,
    pub(super) curvature: Curvature,
}

impl Posterior<'_> {
    /// With z the difference of strengths plus the bias, a win of the first, a tie and a win of the second have
    /// the weights exp(z / 2), ν and exp(-z / 2): Davidson, On extending the Bradley-Terry model to accommodate ties
    /// (1970), with the order effect of Davidson and Beaver (1977). An exponential family, so that the posterior is
    /// concave in all unknowns together.
    ///
    /// Gives the logarithms of the three probabilities: of a win of the first, a tie, and a win of the second.
    fn outcomes(&self, tally: &PairTally, at: &[f64]) -> [f64; 3] {
        let n = at.len() - 2;
        let half = (at[tally.first] - at[tally.second] + at[n]) / 2.0;
        let (sure, weights) = (half.abs().max(at[n + 1]), [half, at[n + 1], -half]);
        let likeliest = weights.iter().position(|weight| *weight == sure);
        let others = weights.iter().enumerate().filter(|(which, _)| Some(*which) != likeliest);
        // What is almost certain must keep the digits of its small distance from it.
        let rest = others.map(|(_, weight)| (weight - sure).exp()).sum::<f64>().ln_1p();
        weights.map(|weight| weight - sure - rest)
    }

    fn value(&self, at: &[f64]) -> f64 {
        let prior: f64 =
            (0..at.len()).map(|i| self.precisions[i] * (at[i] - self.means[i]).powi(2) / 2.0).sum();
        let games = self.verdicts.tallies.iter().map(|tally| {
            let [win, tie, loss] = self.outcomes(tally, at);
            tally.won * win + tally.tied * tie + tally.lost * loss
        });
        let weighed = self.verdicts.weighed.iter().map(|term| term.value(at));
        let rankings = self.verdicts.rankings.iter().map(|ranking| ranking.value(at));
        prior - games.sum::<f64>() + weighed.sum::<f64>() + rankings.sum::<f64>()
    }

    fn slope_and_curvature(&self, at: &[f64]) -> (Vec<f64>, Matrix) {
        let size = at.len();
        let mut slope: Vec<f64> = (0..size).map(|i| self.precisions[i] * (at[i] - self.means[i])).collect();
        let mut curvature = Matrix::diagonal(&self.precisions, self.pattern);
        let mut sums = Sums { slope: &mut slope, curvature: &mut curvature };
        self.verdicts.weighed.iter().for_each(|term| term.add_to(&mut sums, at));
        self.verdicts.rankings.iter().for_each(|ranking| ranking.add_to(&mut sums, at));
        for tally in &self.verdicts.tallies {
            let [win, tie, loss] = self.outcomes(tally, at).map(f64::exp);
            let PairTally { first, second, won, tied, lost } = *tally;
            let games = won + tied + lost;
            let lead = (win - loss) / 2.0;
            // Sums of small terms instead of differences of large ones, for the same reason.
            let along = tied * lead + lost * (win + tie / 2.0) - won * (loss + tie / 2.0);
            let bend = games * (win * loss + tie * (win + loss) / 4.0);
            let mixed = -games * tie * lead;
            let (position, ties) = (size - 2, size - 1);
            let z = [(first, 1.0), (second, -1.0), (position, 1.0)];
            for (row, sign) in z {
                slope[row] += sign * along;
                curvature.add(ties, row, sign * mixed);
                for (column, other) in z {
                    curvature.add(row, column, sign * other * bend);
                }
            }
            slope[ties] += (won + lost) * tie - tied * (win + loss);
            curvature.add(ties, ties, games * tie * (win + loss));
        }
        (slope, curvature)
    }

    /// Newton's method with step halving, which a concave posterior cannot lead astray. Four to eight steps are usual.
    pub(super) fn peak(&self, mut at: Vec<f64>) -> Option<Peak> {
        for _ in 0..100 {
            let (slope, curvature) = self.slope_and_curvature(&at);
            let curvature = Curvature::new(curvature)?;
            let mut step = slope.clone();
            curvature.solve(&mut step)?;
            let ahead =
                |share: f64| -> Vec<f64> { at.iter().zip(&step).map(|(x, d)| x - share * d).collect() };
            let gain: f64 = slope.iter().zip(&step).map(|(slope, step)| slope * step).sum();
            let here = self.value(&at);
            // The error shrinks by its square in every step, so that after one more of this size it is rounding.
            if gain <= 1e-18 * (1.0 + here.abs()) {
                let at = ahead(1.0);
                return Some(Peak { height: -self.value(&at), at, curvature });
            }
            // Close to the peak the gain drowns in rounding, which must not stop the last steps.
            let enough = |share: &f64| {
                self.value(&ahead(*share)) <= here - 1e-4 * share * gain + 1e-12 * (1.0 + here.abs())
            };
            let share = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(50).find(enough)?;
            at = ahead(share);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ranking, Weighed};
    use super::*;

    fn of(games: &[Comparison]) -> Verdicts {
        Verdicts::new(&Evidence { comparisons: games.to_vec(), ..Evidence::default() })
    }

    #[test]
    fn slope_and_curvature_are_those_of_the_value() {
        let game = |first, second, winner| Comparison { first, second, winner };
        let games = [game(0, 1, Some(0)), game(0, 2, None), game(1, 2, Some(2)), game(1, 2, Some(2))];
        let weighed = |first, second, probability| Weighed {
            comparison: game(first, second, None),
            first: probability,
        };
        let rankings = vec![
            Ranking { shown: vec![0, 1, 2], order: vec![2, 0, 1] },
            Ranking { shown: vec![2, 1], order: vec![1, 2] },
        ];
        let weighed = vec![weighed(0, 1, 0.3), weighed(1, 2, 1.0), weighed(2, 0, 0.0)];
        let evidence = Evidence { comparisons: games.to_vec(), weighed, rankings, prior: None };
        let verdicts = Verdicts::new(&evidence);
        assert_eq!(verdicts.tallies.len(), 3);
        let posterior =
            Posterior { verdicts: &verdicts, means: vec![0.1; 5], precisions: vec![0.7; 5], pattern: None };
        let at = [0.3, -0.4, 0.9, 0.2, -0.6];
        let (slope, curvature) = posterior.slope_and_curvature(&at);
        let Matrix::Whole { entries: curvature, .. } = curvature else { panic!("kept by pairs") };
        let moved = |axis: usize, by: f64| {
            let mut at = at;
            at[axis] += by;
            at
        };
        let step = 1e-5;
        for row in 0..5 {
            let (up, down) = (moved(row, step), moved(row, -step));
            let rise = (posterior.value(&up) - posterior.value(&down)) / (2.0 * step);
            assert!((rise - slope[row]).abs() < 1e-8, "{row}: {rise} {}", slope[row]);
            let (up, down) = (posterior.slope_and_curvature(&up).0, posterior.slope_and_curvature(&down).0);
            for column in 0..=row {
                let bend = (up[column] - down[column]) / (2.0 * step);
                let ours = curvature[row * 5 + column];
                assert!((bend - ours).abs() < 1e-8, "{row} {column}: {bend} {ours}");
            }
        }
    }

    #[test]
    fn the_peak_is_found_from_far_away() {
        let games = [Comparison { first: 0, second: 1, winner: Some(0) }; 50];
        let verdicts = of(&games);
        let posterior = Posterior {
            verdicts: &verdicts,
            means: vec![0.0; 4],
            precisions: vec![0.03, 0.03, 4.0, 1.0],
            pattern: None,
        };
        let near = posterior.peak(vec![0.0; 4]).expect("a peak").at;
        let far = posterior.peak(vec![-30.0, 30.0, 5.0, 9.0]).expect("a peak").at;
        assert!(near.iter().zip(&far).all(|(near, far)| (near - far).abs() < 1e-8), "{near:?} {far:?}");
    }

    #[test]
    fn a_hundred_thousand_verdicts_for_one_side_still_have_a_peak() {
        let games = vec![Comparison { first: 0, second: 1, winner: Some(0) }; 100_000];
        let verdicts = of(&games);
        let posterior = Posterior {
            verdicts: &verdicts,
            means: vec![0.0; 4],
            precisions: vec![0.0025, 0.0025, 100.0, 1.0],
            pattern: None,
        };
        let peak = posterior.peak(vec![0.0; 4]).expect("a peak");
        assert!(peak.at[0] > 5.0 && (peak.at[0] + peak.at[1]).abs() < 1e-9, "{:?}", peak.at);
    }
}
