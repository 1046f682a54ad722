//! `winrate`: the share of comparisons won, stretched over [-1, 1].

use super::{AggregateError, Aggregated, Aggregator, Comparison, Evidence, stretched};
use serde::{Deserialize, Serialize};

/// RM-Gallery's `winrate`: a tie counts as won by neither, so that a response with many ties stands low.
///
/// The stretch gives the best response 1 and the worst -1 however small the difference is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Winrate {}

impl Aggregator for Winrate {
    const NAME: &'static str = "winrate";
    type Info = WinrateInfo;

    fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated<WinrateInfo>, AggregateError> {
        Ok(winrates(n, &evidence.flat()))
    }
}

/// What the win rates were made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WinrateInfo {
    /// How often each response won.
    pub win_counts: Vec<u64>,
    /// How often each response was compared.
    pub total_counts: Vec<u64>,
    /// The share of comparisons won; none for a response that is alone.
    pub winrates: Vec<Option<f64>>,
}

fn winrates(n: usize, comparisons: &[Comparison]) -> Aggregated<WinrateInfo> {
    let (mut wins, mut totals) = (vec![0_u64; n], vec![0_u64; n]);
    for comparison in comparisons {
        totals[comparison.first] += 1;
        totals[comparison.second] += 1;
        if let Some(winner) = comparison.winner {
            wins[winner] += 1;
        }
    }
    let rates: Vec<Option<f64>> = wins
        .iter()
        .zip(&totals)
        .map(|(wins, total)| (*total > 0).then(|| *wins as f64 / *total as f64))
        .collect();
    // Only a response that is alone has no rate, and then there is nothing to stretch.
    let known: Vec<f64> = rates.iter().flatten().copied().collect();
    let scores = if known.len() == n { stretched(&known) } else { vec![0.0; n] };
    let info = WinrateInfo { win_counts: wins, total_counts: totals, winrates: rates };
    Aggregated { scores, errors: None, info }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_won_by_neither() {
        let comparisons = [
            Comparison { first: 0, second: 1, winner: Some(0) },
            Comparison { first: 0, second: 2, winner: None },
            Comparison { first: 1, second: 2, winner: None },
        ];
        assert_eq!(winrates(3, &comparisons).scores, [1.0, -1.0, -1.0]);
    }
}
