//! `copeland`: wins minus losses, as a share of the largest such difference in the group.

use super::{AggregateError, Aggregated, Aggregator, Comparison, Evidence};
use serde::{Deserialize, Serialize};

/// RM-Gallery's `copeland`, after A. H. Copeland's rule for elections (1951): ties count for neither side, and the order
/// of the responses does not matter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Copeland {}

impl Aggregator for Copeland {
    const NAME: &'static str = "copeland";
    type Info = CopelandInfo;

    fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated<CopelandInfo>, AggregateError> {
        Ok(net_wins(n, &evidence.flat()))
    }
}

/// What the net wins were made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopelandInfo {
    /// How often each response won.
    pub win_counts: Vec<u64>,
    /// How often each response lost.
    pub loss_counts: Vec<u64>,
    /// How often each response tied.
    pub tie_counts: Vec<u64>,
    /// Wins less losses.
    pub net_wins: Vec<i64>,
}

fn net_wins(n: usize, comparisons: &[Comparison]) -> Aggregated<CopelandInfo> {
    let (mut wins, mut losses, mut ties) = (vec![0_u64; n], vec![0_u64; n], vec![0_u64; n]);
    for comparison in comparisons {
        match comparison.decided() {
            Some((winner, loser)) => {
                wins[winner] += 1;
                losses[loser] += 1;
            }
            None => {
                ties[comparison.first] += 1;
                ties[comparison.second] += 1;
            }
        }
    }
    let net: Vec<i64> =
        wins.iter().zip(&losses).map(|(wins, losses)| *wins as i64 - *losses as i64).collect();
    let largest = net.iter().map(|net| net.unsigned_abs()).max().unwrap_or(0).max(1) as f64;
    let scores = net.iter().map(|net| *net as f64 / largest).collect();
    let info = CopelandInfo { win_counts: wins, loss_counts: losses, tie_counts: ties, net_wins: net };
    Aggregated { scores, errors: None, info }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_has_no_best_response() {
        let comparisons = [
            Comparison { first: 0, second: 1, winner: Some(0) },
            Comparison { first: 1, second: 2, winner: Some(1) },
            Comparison { first: 0, second: 2, winner: Some(2) },
        ];
        assert_eq!(net_wins(3, &comparisons).scores, [0.0; 3]);
        assert_eq!(net_wins(3, &comparisons[..2]).scores, [1.0, 0.0, -1.0]);
    }

    #[test]
    fn a_pair_asked_twice_with_two_winners_cancels() {
        let comparisons = [
            Comparison { first: 0, second: 1, winner: Some(0) },
            Comparison { first: 1, second: 0, winner: Some(1) },
        ];
        assert_eq!(net_wins(2, &comparisons).scores, [0.0; 2]);
    }
}
