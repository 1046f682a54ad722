//! The evidence on a group that aggregators read: comparisons, weighed comparisons, rankings and a prior.

use super::{AggregateError, Comparison};
use serde::{Deserialize, Serialize};

/// A comparison with the judge's own probability that the first shown is better (a tie counts half).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Weighed {
    /// The verdict.
    pub comparison: Comparison,
    /// How likely it takes the first one to be the better one.
    pub first: f64,
}

/// Several responses shown at once and ranked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ranking {
    /// The responses in the order in which they were shown.
    pub shown: Vec<usize>,
    /// The same responses, best first.
    pub order: Vec<usize>,
}

impl Ranking {
    /// One comparison for every two of the ranking, with the sides as they were shown.
    fn pairs(&self) -> impl Iterator<Item = Comparison> + '_ {
        let place = |response: usize| self.order.iter().position(|other| *other == response);
        self.shown.iter().enumerate().flat_map(move |(at, &first)| {
            self.shown[at + 1..].iter().map(move |&second| {
                let winner = if place(first) < place(second) { first } else { second };
                Comparison { first, second, winner: Some(winner) }
            })
        })
    }

    fn error(&self, n: usize) -> Option<&'static str> {
        let (mut shown, mut order) = (self.shown.clone(), self.order.clone());
        shown.sort_unstable();
        order.sort_unstable();
        if shown.len() < 2 {
            Some("must show two responses or more")
        } else if shown.last().is_some_and(|last| *last >= n) {
            Some("names a response that the group does not have")
        } else if shown.windows(2).any(|two| two[0] == two[1]) {
            Some("shows a response twice")
        } else if shown != order {
            Some("must rank the responses that it shows, each of them once")
        } else {
            None
        }
    }
}

/// All that is known of a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Verdicts on two responses.
    pub comparisons: Vec<Comparison>,
    /// Verdicts on two responses of which the judge's probability is known. They do not stand among the comparisons.
    pub weighed: Vec<Weighed>,
    /// Rankings of several responses.
    pub rankings: Vec<Ranking>,
    /// What a scalar reward says of each response, in any unit: higher is better. It is no verdict, so that a response
    /// still has to be compared.
    pub prior: Option<Vec<f64>>,
}

impl Evidence {
    /// Whether everything makes sense, and every response is named by some verdict.
    pub(super) fn check(&self, n: usize) -> Result<(), AggregateError> {
        for (at, comparison) in self.comparisons.iter().enumerate() {
            well_formed(n, at, *comparison)?;
        }
        for (at, weighed) in self.weighed.iter().enumerate() {
            well_formed(n, at, weighed.comparison)?;
            if !(0.0..=1.0).contains(&weighed.first) {
                return Err(AggregateError::StrangeProbability { at });
            }
        }
        for (at, ranking) in self.rankings.iter().enumerate() {
            if let Some(why) = ranking.error(n) {
                return Err(AggregateError::StrangeLineUp { at, why });
            }
        }
        if let Some(prior) = &self.prior {
            if prior.len() != n {
                return Err(AggregateError::StrangePrior { why: "must have one number a response" });
            }
            if !prior.iter().all(|score| score.is_finite()) {
                return Err(AggregateError::StrangePrior { why: "must be finite" });
            }
        }
        match self.named(n).iter().position(|named| !named) {
            Some(index) if n > 1 => Err(AggregateError::NeverCompared { index }),
            _ => Ok(()),
        }
    }

    /// Which responses some verdict names. Indices outside the group are ignored.
    pub(super) fn named(&self, n: usize) -> Vec<bool> {
        let mut named = vec![false; n];
        let weighed = self.weighed.iter().map(|weighed| &weighed.comparison);
        let pairs = self.comparisons.iter().chain(weighed).flat_map(|pair| [pair.first, pair.second]);
        let rankings = self.rankings.iter().flat_map(|ranking| ranking.shown.iter().copied());
        for response in pairs.chain(rankings).filter(|response| *response < n) {
            named[response] = true;
        }
        named
    }

    /// Everything as comparisons, sorted.
    pub(super) fn flat(&self) -> Vec<Comparison> {
        let weighed = self.weighed.iter().map(|weighed| weighed.comparison);
        let implied = self.rankings.iter().flat_map(Ranking::pairs);
        let mut flat: Vec<Comparison> =
            self.comparisons.iter().copied().chain(weighed).chain(implied).collect();
        flat.sort_unstable();
        flat
    }

    /// The same evidence in one order. Judges answer in any order, and sums of floats must not depend on it.
    pub(super) fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.comparisons.sort_unstable();
        let by_both = |a: &Weighed, b: &Weighed| {
            a.comparison.cmp(&b.comparison).then_with(|| a.first.total_cmp(&b.first))
        };
        sorted.weighed.sort_unstable_by(by_both);
        sorted.rankings.sort_unstable();
        sorted
    }
}

/// Whether the comparison at a place of its list is one of two responses of the group.
fn well_formed(n: usize, at: usize, comparison: Comparison) -> Result<(), AggregateError> {
    let Comparison { first, second, winner } = comparison;
    let index = first.max(second);
    if index >= n {
        return Err(AggregateError::NoSuchResponse { at, index, n });
    }
    if first == second {
        return Err(AggregateError::WithItself { at });
    }
    match winner.filter(|winner| *winner != first && *winner != second) {
        Some(winner) => Err(AggregateError::StrangeWinner { at, winner }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_of_three_is_three_comparisons() {
        let ranking = Ranking { shown: vec![4, 1, 2], order: vec![2, 4, 1] };
        let pair = |first, second, winner| Comparison { first, second, winner: Some(winner) };
        assert_eq!(ranking.pairs().collect::<Vec<_>>(), [pair(4, 1, 4), pair(4, 2, 2), pair(1, 2, 2)]);
    }

    #[test]
    fn malformed_rankings_are_rejected() {
        let wrong = |shown: &[usize], order: &[usize]| {
            Ranking { shown: shown.to_vec(), order: order.to_vec() }.error(4).is_some()
        };
        assert!(!wrong(&[3, 0, 1], &[0, 1, 3]));
        assert!(wrong(&[3], &[3]) && wrong(&[], &[]));
        assert!(wrong(&[3, 4], &[3, 4]));
        assert!(wrong(&[1, 1], &[1, 1]));
        assert!(wrong(&[0, 1, 2], &[0, 1]) && wrong(&[0, 1, 2], &[0, 1, 3]));
    }
}
