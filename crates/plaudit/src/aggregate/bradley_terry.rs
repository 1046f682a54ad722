//! `bradley_terry`: the strengths of a Bradley-Terry model with ties and position bias, and their standard errors.
//!
//! The prior takes the responses of a group for equal until the verdicts say otherwise, so that noise is shrunk to 0.

use super::mixture::Posteriors;
use super::{AggregateError, Aggregated, Aggregator, Evidence};
use crate::error::ParamError;
use serde::{Deserialize, Serialize};

/// The parameters of the model of Bradley and Terry, Rank analysis of incomplete block designs (1952).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BradleyTerry {
    /// The spreads that the strengths of a group may have, in logits; which one it is, the verdicts tell.
    pub scales: Vec<f64>,
    /// How likely each spread is before any verdict. Where nothing is given, the smallest one is 0.6 times as likely as
    /// all the others together, and those count by their square roots.
    pub scale_weights: Option<Vec<f64>>,
    /// How large a bias of the judge towards the response shown first is expected, in logits.
    pub position_scale: f64,
    /// How likely a tie of equal responses is expected to be, beside a win of one of them.
    pub tie: f64,
    /// A group whose signal is below this gets 0 for every response; 0 lets every group pass.
    pub signal_gate: f64,
}

impl Default for BradleyTerry {
    /// The spreads go from a group that no judge can tell apart to one that hardly any judge mistakes, in even steps.
    /// Half a logit of bias is 12 points between equal responses, which is usual for judges that are language models
    /// (Zheng et al., arXiv 2306.05685, find more with weak ones).
    fn default() -> Self {
        Self {
            scales: vec![0.05, 0.11, 0.25, 0.55, 1.2, 2.7, 6.0],
            scale_weights: None,
            position_scale: 0.5,
            tie: 0.3,
            signal_gate: 0.0,
        }
    }
}

/// How likely a group without any spread is, beside all others together.
const NO_SPREAD: f64 = 0.6;

impl BradleyTerry {
    /// How likely the scale is before any verdict, up to a factor.
    pub(super) fn weight(&self, at: usize) -> f64 {
        let smallest = self.scales.iter().copied().fold(f64::INFINITY, f64::min);
        let differs = |scale: &&f64| **scale > smallest;
        match &self.scale_weights {
            Some(weights) => weights[at],
            None if self.scales[at] > smallest => self.scales[at].sqrt(),
            // Where no scale is larger, all of them are the smallest.
            None if smallest == self.scales.iter().copied().fold(smallest, f64::max) => 1.0,
            None => NO_SPREAD * self.scales.iter().filter(differs).map(|scale| scale.sqrt()).sum::<f64>(),
        }
    }

    /// The same model for a group whose responses differ: a scale counts by its size. What is asked only matters where
    /// there is something to find, and the more so the larger it is.
    pub(super) fn hopeful(&self) -> Self {
        Self { scale_weights: Some(self.scales.clone()), ..self.clone() }
    }
}

/// What was estimated beside the scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BradleyTerryInfo {
    /// The strength of each response in logits; their mean is 0.
    pub strengths: Vec<f64>,
    /// The bias of the judge towards the response shown first, in logits.
    pub position: f64,
    /// How likely a tie of equal responses is, beside a win of one of them.
    pub tie: f64,
    /// The reliability of the strengths, from 0 to 1: their variance over itself plus the mean of their posterior
    /// variances.
    pub signal: f64,
    /// How likely each of the scales is after the verdicts. Their means over many groups are good `scale_weights`.
    pub scale_weights: Vec<f64>,
    /// Whether the signal was below the gate, so that all scores are 0.
    pub gated: bool,
}

/// The strength, in logits, that would score 1 if scores grew evenly without end.
const FULL: f64 = 10.0;

impl Aggregator for BradleyTerry {
    const NAME: &'static str = "bradley_terry";
    /// The time grows with the comparisons, of which so many responses have half a million.
    const MAX_GROUP: usize = 1024;
    type Info = BradleyTerryInfo;

    /// The bounds keep the curvature of the posterior within what doubles can decompose.
    fn check(&self) -> Result<(), ParamError> {
        let within = |value: f64, min: f64, max: f64| value >= min && value <= max;
        let scales = (1..=32).contains(&self.scales.len())
            && self.scales.iter().all(|scale| within(*scale, 1e-3, 20.0));
        ParamError::check(scales, "scales", "must be 1 to 32 numbers between 0.001 and 20")?;
        let weights = self.scale_weights.as_ref().is_none_or(|weights| {
            weights.len() == self.scales.len() && weights.iter().all(|weight| within(*weight, 1e-9, 1e9))
        });
        ParamError::check(weights, "scale_weights", "must be one positive number for each of the scales")?;
        let position = within(self.position_scale, 1e-3, 20.0);
        ParamError::check(position, "position_scale", "must be between 0.001 and 20")?;
        ParamError::check(within(self.tie, 1e-3, 1e3), "tie", "must be between 0.001 and 1000")?;
        ParamError::check(within(self.signal_gate, 0.0, 1.0), "signal_gate", "must be between 0 and 1")
    }

    /// The score of a response is its strength over `FULL`, bent so that no score passes 1: it grows evenly where nearly all
    /// strengths are, because trainers use distances, and the margin by which a response is expected to win tells but ranks
    /// once a judge is sure of most pairs. The error follows from the covariance by the delta method.
    fn aggregate(
        &self,
        n: usize,
        evidence: &Evidence,
    ) -> Result<Aggregated<BradleyTerryInfo>, AggregateError> {
        let mixture =
            Posteriors::new(self, n, &evidence.sorted()).ok_or(AggregateError::NoEstimate)?.mixed(self);
        let strengths = mixture.strengths();
        let score = |strength: &f64| {
            let even = strength / FULL;
            (even / (1.0 + even.powi(4)).powf(0.25)).clamp(-1.0, 1.0)
        };
        let mut scores: Vec<f64> = strengths.iter().map(score).collect();
        let errors: Vec<f64> = (0..n)
            .map(|own| {
                let bend = (1.0 + (strengths[own] / FULL).powi(4)).powf(-1.25);
                mixture.variance(own).sqrt() * bend / FULL
            })
            .collect();
        let signal = mixture.signal();
        let gated = signal < self.signal_gate;
        if gated {
            scores.fill(0.0);
        }
        let (position, tie) = (mixture.mean[n], mixture.mean[n + 1].exp());
        let info =
            BradleyTerryInfo { strengths, position, tie, signal, scale_weights: mixture.weights, gated };
        Ok(Aggregated { scores, errors: Some(errors), info })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Comparison;
    use super::*;

    fn estimate(
        params: &BradleyTerry,
        n: usize,
        games: &[(usize, usize, usize)],
    ) -> Aggregated<BradleyTerryInfo> {
        let comparison = |&(first, second, winner): &_| Comparison { first, second, winner: Some(winner) };
        let comparisons = games.iter().map(comparison).collect();
        params.aggregate(n, &Evidence { comparisons, ..Evidence::default() }).expect("an estimate")
    }

    /// Every pair once; the lower number wins where `wins` says so, and sides are balanced.
    fn round_robin(n: usize, wins: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize, usize)> {
        let pairs = (0..n).flat_map(|low| (low + 1..n).map(move |high| (low, high)));
        let game = |(low, high): (usize, usize)| {
            let (first, second) = if (low + high) % 2 == 1 { (low, high) } else { (high, low) };
            (first, second, if wins(low, high) { low } else { high })
        };
        pairs.map(game).collect()
    }

    #[test]
    fn a_clear_order_is_rewarded_and_what_cycles_is_not() {
        let params = BradleyTerry::default();
        let clear = estimate(&params, 8, &round_robin(8, |_, _| true));
        assert!(clear.scores.is_sorted_by(|a, b| a > b) && clear.scores[0] > 0.4, "{clear:?}");
        assert!(clear.info.signal > 0.7);
        // Of seven responses in a circle, each beats the three that follow it.
        let circle = estimate(&params, 7, &round_robin(7, |low, high| high - low <= 3));
        assert!(circle.scores.iter().all(|score| score.abs() < 0.01), "{circle:?}");
        assert!(circle.info.signal < 0.01 && circle.info.scale_weights[0] > 0.5);
    }

    #[test]
    fn few_verdicts_move_little_and_more_of_them_more() {
        let params = BradleyTerry::default();
        let once = estimate(&params, 2, &[(0, 1, 0)]);
        let often = estimate(&params, 2, &[(0, 1, 0), (1, 0, 0)].repeat(10));
        assert!(0.0 < once.scores[0] && once.scores[0] < 0.1 && often.scores[0] > 0.2);
        let unsure =
            |of: &Aggregated<BradleyTerryInfo>| of.errors.as_ref().map(|errors| errors[0] / of.scores[0]);
        assert!(unsure(&often) < unsure(&once));
    }

    #[test]
    fn a_judge_that_prefers_the_first_is_seen_through() {
        let first_wins: Vec<_> =
            round_robin(8, |_, _| true).iter().map(|game| (game.0, game.1, game.0)).collect();
        let fair = estimate(&BradleyTerry::default(), 8, &first_wins);
        assert!(fair.info.position > 0.8);
        assert!(fair.scores.iter().all(|score| score.abs() < 0.05), "{fair:?}");
    }

    #[test]
    fn below_the_gate_all_are_equal() {
        let games = [(0, 1, 0), (1, 2, 1)];
        let open = estimate(&BradleyTerry::default(), 3, &games);
        assert!(!open.info.gated && open.scores[0] > 0.0);
        let gate = BradleyTerry { signal_gate: 0.9, ..BradleyTerry::default() };
        let closed = estimate(&gate, 3, &games);
        assert!(closed.info.gated && closed.scores == [0.0; 3]);
        assert_eq!(closed.errors, open.errors);
    }

    #[test]
    fn parameters_without_sense_are_refused() {
        let key = |params: BradleyTerry| params.check().err().map(|error| error.key);
        let default = BradleyTerry::default;
        assert_eq!(key(default()), None);
        assert_eq!(key(BradleyTerry { scales: vec![], ..default() }), Some("scales"));
        assert_eq!(key(BradleyTerry { scales: vec![0.0], ..default() }), Some("scales"));
        assert_eq!(key(BradleyTerry { scale_weights: Some(vec![1.0]), ..default() }), Some("scale_weights"));
        assert_eq!(key(BradleyTerry { position_scale: f64::NAN, ..default() }), Some("position_scale"));
        assert_eq!(key(BradleyTerry { tie: 0.0, ..default() }), Some("tie"));
        assert_eq!(key(BradleyTerry { signal_gate: 1.5, ..default() }), Some("signal_gate"));
    }
}
