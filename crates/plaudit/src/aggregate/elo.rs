//! `elo`: Elo ratings, updated over the games until they settle, stretched over [-1, 1].

use super::{AggregateError, Aggregated, Aggregator, Comparison, Evidence, stretched};
use crate::error::ParamError;
use serde::{Deserialize, Serialize};

/// The parameters of Elo ratings, under RM-Gallery's names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Elo {
    /// The rating that every response starts with.
    pub elo_initial_rating: f64,
    /// How many points one surprising game can move.
    pub elo_k_factor: f64,
    /// How many times the games are replayed at most.
    pub elo_max_iterations: u64,
    /// The replays end when none of them moves a rating by this much.
    pub elo_convergence_threshold: f64,
}

impl Default for Elo {
    fn default() -> Self {
        Self {
            elo_initial_rating: 1500.0,
            elo_k_factor: 32.0,
            elo_max_iterations: 100,
            elo_convergence_threshold: 0.01,
        }
    }
}

/// Replays beyond this change nothing that matters, and would take a noticeable time.
const MAX_ITERATIONS: u64 = 10_000;

impl Aggregator for Elo {
    const NAME: &'static str = "elo";
    type Info = EloInfo;

    /// The bounds keep every rating far from the numbers where adding a point to it is lost.
    fn check(&self) -> Result<(), ParamError> {
        let within = |value: f64, min: f64, max: f64| value >= min && value <= max;
        let rating = within(self.elo_initial_rating, -1e6, 1e6);
        ParamError::check(rating, "elo_initial_rating", "must be between -1e6 and 1e6")?;
        let factor = within(self.elo_k_factor, 1e-3, 1e4);
        ParamError::check(factor, "elo_k_factor", "must be between 0.001 and 10000")?;
        let iterations = (1..=MAX_ITERATIONS).contains(&self.elo_max_iterations);
        ParamError::check(iterations, "elo_max_iterations", "must be between 1 and 10000")?;
        let threshold = within(self.elo_convergence_threshold, 0.0, f64::MAX);
        ParamError::check(threshold, "elo_convergence_threshold", "must be a number that is not negative")
    }

    fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated<EloInfo>, AggregateError> {
        in_order(self, n, &evidence.flat())
    }
}

/// What the ratings came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EloInfo {
    /// The rating of each response.
    pub elo_ratings: Vec<f64>,
    /// How often the games were replayed.
    pub elo_iterations: u64,
    /// Whether the ratings had settled then.
    pub elo_converged: bool,
}

/// The ratings after the games in the order given; [`Elo`] sorts them first.
///
/// The expected score is that of A. E. Elo, The Rating of Chessplayers (1978), and a tie is half a win. Every game moves
/// the ratings that the next one sees, so that the order of the games, and with it the numbering of the responses,
/// matters: a cycle of three does not come out even. It is here for comparison with RM-Gallery. Where fairness
/// matters, `bradley_terry` fits the same curve to all games at once.
pub fn in_order(
    params: &Elo,
    n: usize,
    comparisons: &[Comparison],
) -> Result<Aggregated<EloInfo>, AggregateError> {
    params.check()?;
    Evidence { comparisons: comparisons.to_vec(), ..Evidence::default() }.check(n)?;
    let mut ratings = vec![params.elo_initial_rating; n];
    let (mut iterations, mut converged) = (0, false);
    while iterations < params.elo_max_iterations && !converged {
        iterations += 1;
        let before = ratings.clone();
        for &Comparison { first, second, winner } in comparisons {
            let score = winner.map_or(0.5, |winner| if winner == first { 1.0 } else { 0.0 });
            let expected = |own: f64, other: f64| 1.0 / (1.0 + 10_f64.powf((other - own) / 400.0));
            let (one, two) = (ratings[first], ratings[second]);
            ratings[first] = one + params.elo_k_factor * (score - expected(one, two));
            ratings[second] = two + params.elo_k_factor * ((1.0 - score) - expected(two, one));
        }
        let moved = ratings.iter().zip(&before).map(|(now, then)| (now - then).abs()).fold(0.0, f64::max);
        converged = moved < params.elo_convergence_threshold;
    }
    let scores = stretched(&ratings);
    let info = EloInfo { elo_ratings: ratings, elo_iterations: iterations, elo_converged: converged };
    Ok(Aggregated { scores, errors: None, info })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_without_sense_are_refused() {
        let key = |params: Elo| params.check().err().map(|error| error.key);
        assert_eq!(key(Elo::default()), None);
        assert_eq!(key(Elo { elo_k_factor: f64::NAN, ..Elo::default() }), Some("elo_k_factor"));
        assert_eq!(key(Elo { elo_max_iterations: 0, ..Elo::default() }), Some("elo_max_iterations"));
        assert_eq!(
            key(Elo { elo_initial_rating: f64::INFINITY, ..Elo::default() }),
            Some("elo_initial_rating")
        );
    }
}
