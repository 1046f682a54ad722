//! `dgr`: deconflicted graph rewards, net wins without a minimum feedback arc set.

use super::{AggregateError, Aggregated, Aggregator, Comparison, Evidence};
use serde::{Deserialize, Serialize};

/// The largest group: the tables have an entry for every subset of it. A caller with more responses splits the group.
const MAX_GROUP: usize = 16;

/// Deconflicted graph rewards (arXiv 2510.15514): net wins without a minimum feedback arc set, found exactly by dynamic
/// programming over the subsets that stand first (Held and Karp, 1962; for orders Lawler, 1964), in O(2^n n) steps.
///
/// Often several orders contradict the same number of verdicts, as in every cycle of three. Choosing one of them would
/// favour responses by their numbers, so that every verdict counts by the share of the best orders that keep it. All
/// counts are whole numbers, at most 16! times the number of comparisons, and therefore exact. A tie has no direction,
/// and no order contradicts it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Dgr {}

impl Aggregator for Dgr {
    const NAME: &'static str = "dgr";
    const MAX_GROUP: usize = MAX_GROUP;
    type Info = DgrInfo;

    fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated<DgrInfo>, AggregateError> {
        Ok(deconflicted(n, &evidence.flat()))
    }
}

/// What the contradictions came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DgrInfo {
    /// Wins less losses over the verdicts that are kept, as a mean over all best orders.
    pub net_wins: Vec<f64>,
    /// The fewest verdicts that must be left out so that the others agree with an order: 0 without cycles.
    pub removed_edges_count: u64,
    /// How many verdicts are kept.
    pub graph_edges_count: u64,
    /// How many orders contradict no more verdicts than that.
    pub optimal_orders: u64,
    /// Whether all of them keep the same verdicts.
    pub settled: bool,
}

/// The number of orders behind a subset, and the fewest contradictions among them.
#[derive(Clone, Copy)]
struct Best {
    cost: u64,
    orders: u64,
}

impl Best {
    const START: Self = Self { cost: 0, orders: 1 };
    const NONE: Self = Self { cost: u64::MAX, orders: 0 };

    fn offer(&mut self, cost: u64, orders: u64) {
        match cost.cmp(&self.cost) {
            std::cmp::Ordering::Less => *self = Self { cost, orders },
            std::cmp::Ordering::Equal => self.orders += orders,
            std::cmp::Ordering::Greater => {}
        }
    }
}

/// How often each response won against each other, with the sums over subsets that the search asks for.
struct Wins {
    n: usize,
    counts: Vec<[u64; MAX_GROUP]>,
    /// For each response, the wins against every subset of the first eight responses and of the others.
    sums: Vec<[Vec<u64>; 2]>,
}

impl Wins {
    fn new(n: usize, comparisons: &[Comparison]) -> Self {
        let mut counts = vec![[0_u64; MAX_GROUP]; n];
        for (winner, loser) in comparisons.iter().filter_map(Comparison::decided) {
            counts[winner][loser] += 1;
        }
        let half = |row: &[u64]| {
            let mut sums = vec![0_u64; 1 << row.len()];
            for set in 1..sums.len() {
                sums[set] = sums[set & (set - 1)] + row[set.trailing_zeros() as usize];
            }
            sums
        };
        let sums = counts.iter().map(|row| [half(&row[..8]), half(&row[8..])]).collect();
        Self { n, counts, sums }
    }

    /// The verdicts that placing `next` behind all of `set` contradicts.
    fn contradicted(&self, next: usize, set: usize) -> u64 {
        self.sums[next][0][set & 0xff] + self.sums[next][1][set >> 8]
    }
}

fn members(set: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(set), |rest| Some(rest & rest.wrapping_sub(1)))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}

fn deconflicted(n: usize, comparisons: &[Comparison]) -> Aggregated<DgrInfo> {
    let wins = Wins::new(n, comparisons);
    let all = (1_usize << n) - 1;
    let mut front = vec![Best::NONE; all + 1];
    front[0] = Best::START;
    for set in 0..=all {
        let Best { cost, orders } = front[set];
        for next in members(all & !set) {
            front[set | 1 << next].offer(cost + wins.contradicted(next, set), orders);
        }
    }
    let mut back = vec![Best::NONE; all + 1];
    back[all] = Best::START;
    for set in (0..all).rev() {
        for next in members(all & !set) {
            let Best { cost, orders } = back[set | 1 << next];
            back[set].offer(cost + wins.contradicted(next, set), orders);
        }
    }
    let (Best { cost: removed, orders }, before) = (front[all], before(&wins, &front, &back));
    let net: Vec<i128> = (0..n)
        .map(|own| {
            let kept =
                |one: usize, two: usize| i128::from(before[one][two]) * i128::from(wins.counts[one][two]);
            (0..n).map(|other| kept(own, other) - kept(other, own)).sum()
        })
        .collect();
    let largest = net.iter().map(|net| net.unsigned_abs()).max().unwrap_or(0).max(1) as f64;
    let sure = |one: usize, two: usize| [0, orders].contains(&before[one][two]) || wins.counts[one][two] == 0;
    let info = DgrInfo {
        net_wins: net.iter().map(|net| *net as f64 / orders as f64).collect(),
        removed_edges_count: removed,
        graph_edges_count: wins.counts.iter().flatten().sum::<u64>() - removed,
        optimal_orders: orders,
        settled: (0..n).all(|one| (0..n).all(|two| sure(one, two))),
    };
    let scores = net.iter().map(|net| *net as f64 / largest).collect();
    Aggregated { scores, errors: None, info }
}

/// In how many of the best orders each response stands before each other, for pairs with a verdict to keep or leave.
fn before(wins: &Wins, front: &[Best], back: &[Best]) -> Vec<[u64; MAX_GROUP]> {
    let all = front.len() - 1;
    let mut counts = vec![[0_u64; MAX_GROUP]; wins.n];
    let decided: Vec<usize> = (0..wins.n)
        .map(|own| {
            let met = |other: &usize| wins.counts[own][*other] + wins.counts[*other][own] > 0;
            (0..wins.n).filter(met).map(|other| 1 << other).sum()
        })
        .collect();
    for set in 0..all {
        for next in members(all & !set) {
            let (here, rest) = (front[set], back[set | 1 << next]);
            if here.cost + wins.contradicted(next, set) + rest.cost == front[all].cost {
                let orders = here.orders * rest.orders;
                members(set & decided[next]).for_each(|earlier| counts[earlier][next] += orders);
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(n: usize, beats: &[(usize, usize)]) -> (Vec<f64>, DgrInfo) {
        let comparison =
            |&(first, second): &(usize, usize)| Comparison { first, second, winner: Some(first) };
        let aggregated = deconflicted(n, &beats.iter().map(comparison).collect::<Vec<_>>());
        (aggregated.scores, aggregated.info)
    }

    #[test]
    fn a_cycle_favours_nobody() {
        let (scores, info) = scores(3, &[(0, 1), (1, 2), (2, 0)]);
        assert_eq!(scores, [0.0; 3]);
        assert_eq!((info.removed_edges_count, info.optimal_orders, info.settled), (1, 3, false));
    }

    #[test]
    fn the_one_verdict_against_the_order_is_left_out() {
        // Asked twice, 0 beats 1 and 1 beats 2, so that only the single verdict for 2 over 0 can go.
        let (scores, info) = scores(3, &[(0, 1), (0, 1), (1, 2), (1, 2), (2, 0)]);
        assert_eq!(scores, [1.0, 0.0, -1.0]);
        assert_eq!((info.removed_edges_count, info.graph_edges_count, info.settled), (1, 4, true));
    }

    #[test]
    fn counts_of_the_largest_group_do_not_overflow() {
        let (scores, info) = scores(MAX_GROUP, &[]);
        assert_eq!(scores, [0.0; MAX_GROUP]);
        assert_eq!(info.optimal_orders, (1..=16).product::<u64>());
    }
}
