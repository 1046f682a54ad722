//! Statistics of verdicts over groups: position bias, ties, cycles, failures, and wins against the reference.

use super::answer::{Side, Verdict};
use super::group_view::{GroupView, MemberState};
use crate::aggregate::{Aggregated, Evidence, MethodInfo};
use crate::outcome::{Fact, Outcome};
use crate::reason::{Code, Reason};
use crate::rubric::ItemStats;
use std::collections::{BTreeMap, BTreeSet};

/// What was found about one group or many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgeStats {
    /// Calls that were answered with a verdict.
    pub verdicts: u64,
    /// Calls that were not, by reason.
    pub failed: BTreeMap<Code, u64>,
    /// Of two that were shown, how often the first was better.
    pub first: u64,
    /// How often the second was better.
    pub second: u64,
    /// How often neither was.
    pub ties: u64,
    /// Pairs that were asked with both sides.
    pub swapped: u64,
    /// Of those, how many had the same verdict both times.
    pub agreed: u64,
    /// Groups of at least three that were compared.
    pub circles: u64,
    /// Of those, how many have verdicts that go round in a circle.
    pub cyclic: u64,
    /// Groups of which it is known how much signal their verdicts hold.
    pub estimated: u64,
    /// The sum of those signals, each from 0 to 1.
    pub signal: f64,
    /// Groups whose verdicts hold no signal.
    pub gated: u64,
    /// Rollouts that were put before the judge.
    pub rollouts: u64,
    /// Of those, how many were judged in the place of another with the same words.
    pub duplicates: u64,
    /// Responses that address the judge.
    pub injections: u64,
    /// Rollouts that are better than the reference.
    pub wins: u64,
    /// Rollouts that are as good as the reference.
    pub draws: u64,
    /// Rollouts that are worse than the reference.
    pub losses: u64,
    /// The items of rubrics.
    pub items: ItemStats,
}

impl JudgeStats {
    /// What the verdicts about one group show.
    pub(super) fn of(view: &GroupView, asked: &[Vec<usize>], answers: &[Result<Verdict, Reason>]) -> Self {
        let judged: Vec<usize> = (view.states.iter())
            .filter_map(|state| match state {
                MemberState::Judged(at) => Some(*at),
                MemberState::Floored(_) => None,
            })
            .collect();
        let distinct: BTreeSet<usize> = judged.iter().copied().collect();
        let mut stats = Self {
            rollouts: judged.len() as u64,
            duplicates: (judged.len() - distinct.len()) as u64,
            injections: view.injections,
            ..Self::default()
        };
        let mut by_order: BTreeMap<(usize, usize), Option<usize>> = BTreeMap::new();
        for (shown, answer) in asked.iter().zip(answers) {
            match answer {
                Err(reason) => *stats.failed.entry(reason.code).or_insert(0) += 1,
                Ok(verdict) => {
                    stats.verdicts += 1;
                    if let (Verdict::Pair { winner, .. }, [a, b]) = (verdict, shown.as_slice()) {
                        match winner {
                            Some(Side::First) => stats.first += 1,
                            Some(Side::Second) => stats.second += 1,
                            None => stats.ties += 1,
                        }
                        by_order
                            .insert((*a, *b), winner.map(|side| if side == Side::First { *a } else { *b }));
                    }
                }
            }
        }
        for ((a, b), winner) in by_order.iter().filter(|((a, b), _)| a < b) {
            if let Some(swapped) = by_order.get(&(*b, *a)) {
                stats.swapped += 1;
                stats.agreed += u64::from(winner == swapped);
            }
        }
        stats
    }

    /// Takes in what the scores of a group were made of.
    pub(super) fn aggregated(&mut self, scores: &Aggregated, observed: &Evidence, n: usize) {
        if n > 2 {
            self.circles += 1;
            self.cyclic += u64::from(has_cycle(observed, n));
        }
        if let MethodInfo::BradleyTerry(evidence) = &scores.info {
            self.estimated += 1;
            self.signal += evidence.signal;
            self.gated += u64::from(evidence.gated);
        }
    }

    /// Compares every scored rollout with the reference: adds the facts, and counts wins, draws and losses. Without a score of the reference,
    /// nobody has won or lost.
    pub(super) fn compare_with_reference(&mut self, outcomes: &mut [Outcome], reference: Option<f64>) {
        let Some(reference) = reference else { return };
        for outcome in outcomes {
            let Outcome::Scored { value, info } = outcome else { continue };
            let score = value.get();
            info.push("comparison_score", Fact::Number(score));
            info.push("reference_score", Fact::Number(reference));
            info.push("win", Fact::Bool(score > reference));
            info.push("win_and", Fact::Bool(score >= reference));
            match score.total_cmp(&reference) {
                std::cmp::Ordering::Greater => self.wins += 1,
                std::cmp::Ordering::Equal => self.draws += 1,
                std::cmp::Ordering::Less => self.losses += 1,
            }
        }
    }

    /// Adds what was found elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.verdicts += other.verdicts;
        for (code, count) in &other.failed {
            *self.failed.entry(*code).or_insert(0) += count;
        }
        self.first += other.first;
        self.second += other.second;
        self.ties += other.ties;
        self.swapped += other.swapped;
        self.agreed += other.agreed;
        self.circles += other.circles;
        self.cyclic += other.cyclic;
        self.estimated += other.estimated;
        self.signal += other.signal;
        self.gated += other.gated;
        self.rollouts += other.rollouts;
        self.duplicates += other.duplicates;
        self.injections += other.injections;
        self.wins += other.wins;
        self.draws += other.draws;
        self.losses += other.losses;
        self.items.merge(&other.items);
    }
}

/// Whether the majorities of the verdicts go round in a circle.
fn has_cycle(observed: &Evidence, n: usize) -> bool {
    let mut margin: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    let mut beats = |winner: usize, loser: usize| {
        let (pair, sign) = if winner < loser { ((winner, loser), 1) } else { ((loser, winner), -1) };
        *margin.entry(pair).or_insert(0) += sign;
    };
    let weighed = observed.weighed.iter().map(|one| &one.comparison);
    for (winner, loser) in observed.comparisons.iter().chain(weighed).filter_map(|one| one.decided()) {
        beats(winner, loser);
    }
    for line_up in &observed.rankings {
        for (rank, winner) in line_up.order.iter().enumerate() {
            line_up.order[rank + 1..].iter().for_each(|loser| beats(*winner, *loser));
        }
    }
    // An order exists where those whom nobody left beats can be taken away until none is left.
    let edges: Vec<(usize, usize)> = (margin.iter())
        .filter(|(_, margin)| **margin != 0)
        .map(|((a, b), margin)| if *margin > 0 { (*a, *b) } else { (*b, *a) })
        .collect();
    let (mut losers, mut beaten) = (vec![Vec::new(); n], vec![0_usize; n]);
    for (winner, loser) in edges {
        losers[winner].push(loser);
        beaten[loser] += 1;
    }
    let mut free: Vec<usize> = (0..n).filter(|at| beaten[*at] == 0).collect();
    let mut taken = 0;
    while let Some(winner) = free.pop() {
        taken += 1;
        for loser in &losers[winner] {
            beaten[*loser] -= 1;
            if beaten[*loser] == 0 {
                free.push(*loser);
            }
        }
    }
    taken < n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Comparison;

    fn observed(pairs: &[(usize, usize)]) -> Evidence {
        let comparison = |(winner, loser): &(usize, usize)| Comparison {
            first: *winner,
            second: *loser,
            winner: Some(*winner),
        };
        Evidence {
            comparisons: pairs.iter().map(comparison).collect(),
            weighed: vec![],
            rankings: vec![],
            prior: None,
        }
    }

    #[test]
    fn a_cycle_is_found_and_an_order_has_none() {
        assert!(has_cycle(&observed(&[(0, 1), (1, 2), (2, 0)]), 3));
        assert!(!has_cycle(&observed(&[(0, 1), (1, 2), (0, 2)]), 3));
        assert!(!has_cycle(&observed(&[(0, 1), (1, 0), (1, 2)]), 3), "a split verdict is no edge");
        assert!(has_cycle(&observed(&[(3, 0), (0, 1), (1, 2), (2, 0)]), 4));
    }
}
