//! Comparison designs: which responses a judge compares next (round robin, sparse or adaptive).

mod adaptive;
mod fixed;

use super::Evidence;
use super::bradley_terry::BradleyTerry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the comparisons of a group are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Every two responses once, all at the same time.
    #[default]
    RoundRobin,
    /// As many pairs as the budget allows, all at the same time, spread evenly over the responses.
    Sparse,
    /// A few at a time, each time those that would teach most, until enough is known. Groups of more than 64 are asked
    /// all at once.
    Adaptive,
}

/// The choice of the comparisons of one group. The same schedule with the same answers asks the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// How many responses there are.
    pub n: usize,
    /// Decides what would otherwise be decided by the numbers of the responses.
    pub seed: u64,
    /// How the comparisons are chosen.
    pub design: Design,
    /// The most calls for the group; none for as many as it takes to show every two responses together.
    pub budget: Option<usize>,
    /// How many responses a call shows: 2 for pairs, up to [`MAX_SHOWN`] for line-ups.
    pub line_up: usize,
    /// The reliability at which an adaptive design stops; 1 for never.
    pub reliability: f64,
    /// The share of calls that are asked again in the reverse order, to see how often the judge contradicts itself.
    /// They are calls like others, but do not count when the sides are balanced.
    pub audit: f64,
    /// What the answers are understood by.
    pub model: BradleyTerry,
}

/// The most responses that a call shows, because each has a letter of its own.
pub const MAX_SHOWN: usize = 20;

/// The largest group that is asked in waves. Choosing a wave takes time that grows with the cube of the group.
pub const MAX_ADAPTED: usize = 64;

impl Schedule {
    /// The next wave: each inner list is one call, the responses in the order in which they are shown. Empty: enough is
    /// known, or the budget is spent.
    ///
    /// A call that failed is among those asked, but its answer is not evidence. Only an adaptive design asks again.
    pub fn next(&self, asked: &[Vec<usize>], evidence: &Evidence) -> Vec<Vec<usize>> {
        let left = self.most().saturating_sub(asked.len());
        if self.n < 2 || left == 0 {
            return Vec::new();
        }
        let history = History::new(self.n, asked);
        let mut rng = DesignRng::new(self.seed, asked.len());
        let wave = match self.adapts() {
            true => self.sized(&history, left, self.wave(asked.is_empty())),
            false if asked.is_empty() => self.main(self.most()),
            false => return Vec::new(),
        };
        let mut calls = match asked.is_empty() {
            true => self.evenly(wave),
            false => adaptive::wave(self, wave, &history, evidence),
        };
        let due = if calls.is_empty() { 0 } else { self.audits(history.counted.len() + calls.len()) };
        let audits = due.saturating_sub(history.repeats).min(left.saturating_sub(calls.len()));
        let mut again: Vec<Vec<usize>> = history.unrepeated.iter().chain(&calls).cloned().collect();
        rng.shuffle(&mut again);
        calls.extend(again.into_iter().take(audits).map(|call| call.into_iter().rev().collect()));
        calls
    }

    /// The most calls that it will ever ask for. It is exact for the designs that ask once.
    pub fn most(&self) -> usize {
        match self.budget {
            None => {
                let all = self.all(usize::MAX);
                all + self.audits(all)
            }
            Some(budget) if self.adapts() && self.n > 1 => budget,
            Some(budget) => {
                let main = self.main(budget);
                main + self.audits(main).min(budget.saturating_sub(main))
            }
        }
    }

    /// Whether there is more than one wave. A group beyond [`MAX_ADAPTED`] is asked all at once, as by a sparse design.
    fn adapts(&self) -> bool {
        self.design == Design::Adaptive && self.n <= MAX_ADAPTED
    }

    /// How many responses a call shows.
    fn shown(&self) -> usize {
        self.line_up.clamp(2, MAX_SHOWN).min(self.n)
    }

    /// How many calls show every two responses together, counted up to so many.
    fn all(&self, most: usize) -> usize {
        match self.shown() {
            _ if self.n < 2 => 0,
            2 => most.min(self.n * (self.n - 1) / 2),
            shown => fixed::cover(self.n, shown, most, self.seed).len(),
        }
    }

    /// How many calls a wave has. The first one, which knows nothing, is a ring and a quarter.
    fn wave(&self, first: bool) -> usize {
        match self.shown() {
            2 if first => self.all(self.n + self.n / 4),
            2 => self.n,
            shown => self.n.div_ceil(shown),
        }
    }

    /// The largest number of calls that, with their audits, fit the budget; no more than show every two together.
    fn main(&self, budget: usize) -> usize {
        let most = self.all(budget);
        let fits = |main: &usize| main + self.audits(*main) <= budget;
        (0..=most).rev().find(fits).unwrap_or(0).max(most.min(1))
    }

    /// How many calls the next wave has, so that there is room for the audits that it makes due.
    fn sized(&self, history: &History, left: usize, wave: usize) -> usize {
        let due = |calls: usize| self.audits(history.counted.len() + calls).saturating_sub(history.repeats);
        (1..=wave.min(left)).rev().find(|calls| calls + due(*calls) <= left).unwrap_or(1)
    }

    /// How many of so many calls are asked again. What remains of a whole call falls to a share of the groups.
    fn audits(&self, calls: usize) -> usize {
        let share = if self.audit > 0.0 { self.audit.min(1.0) } else { 0.0 };
        (share * calls as f64 + DesignRng::new(self.seed, usize::MAX).unit()).floor() as usize
    }

    /// So many calls that know nothing yet.
    fn evenly(&self, calls: usize) -> Vec<Vec<usize>> {
        match self.shown() {
            2 => fixed::pairs(self.n, calls, self.seed),
            shown => fixed::cover(self.n, shown, calls, self.seed),
        }
    }
}

/// What was asked before.
struct History {
    /// The calls that are no reverse of an earlier one.
    counted: Vec<Vec<usize>>,
    /// Those of them that were not asked in reverse either.
    unrepeated: Vec<Vec<usize>>,
    /// How many calls were the reverse of an earlier one.
    repeats: usize,
}

impl History {
    /// What names a response that the group does not have is left out.
    fn new(n: usize, asked: &[Vec<usize>]) -> Self {
        let (mut counted, mut unrepeated, mut repeats) = (Vec::new(), Vec::<Vec<usize>>::new(), 0);
        for call in asked.iter().filter(|call| call.len() > 1 && call.iter().all(|shown| *shown < n)) {
            match unrepeated.iter().position(|earlier| earlier.iter().rev().eq(call.iter())) {
                Some(at) => {
                    unrepeated.remove(at);
                    repeats += 1;
                }
                None => {
                    counted.push(call.clone());
                    unrepeated.push(call.clone());
                }
            }
        }
        Self { counted, unrepeated, repeats }
    }

    /// How far each response was shown before the middle, over all calls that count.
    fn sides(&self, n: usize) -> Sides {
        let mut sides = Sides(vec![0.0; n]);
        self.counted.iter().for_each(|call| sides.count(call));
        sides
    }
}

/// How far each response was shown before the middle: half for the first slot of a call, minus half for the last.
struct Sides(Vec<f64>);

impl Sides {
    fn count(&mut self, call: &[usize]) {
        let last = call.len().saturating_sub(1).max(1) as f64;
        for (slot, response) in call.iter().enumerate() {
            self.0[*response] += 0.5 - slot as f64 / last;
        }
    }

    /// Puts those first that have been shown late, and counts it. What is even stays in the order given.
    fn arrange(&mut self, call: &mut [usize]) {
        call.sort_by(|a, b| self.0[*a].total_cmp(&self.0[*b]));
        self.count(call);
    }
}

/// Numbers that only depend on a seed: the generator `splitmix64` of Steele, Lea and Flood (2014).
struct DesignRng(u64);

impl DesignRng {
    fn new(seed: u64, stream: usize) -> Self {
        let mut rng = Self(seed ^ (stream as u64).wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, (self.next() % (at as u64 + 1)) as usize);
        }
    }

    /// The numbers below `n`, in any order.
    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, Ranking};
    use super::*;
    use crate::timing::cpu_time;
    use std::time::Duration;

    fn schedule(n: usize, design: Design) -> Schedule {
        let model = BradleyTerry::default();
        Schedule { n, seed: 11, design, budget: None, line_up: 2, reliability: 1.0, audit: 0.0, model }
    }

    /// Asks until the schedule has enough. The judge prefers lower numbers, or throws a coin, and may fail.
    fn played(schedule: &Schedule, coin: bool, fails: bool) -> (Vec<Vec<usize>>, Evidence) {
        let (mut asked, mut evidence, mut rng) =
            (Vec::new(), Evidence::default(), DesignRng::new(schedule.seed, 5));
        loop {
            let wave = schedule.next(&asked, &evidence);
            assert_eq!(wave, schedule.next(&asked, &evidence));
            if wave.is_empty() {
                return (asked, evidence);
            }
            for call in wave {
                let mut order = call.clone();
                order.sort_unstable();
                if coin {
                    rng.shuffle(&mut order);
                }
                match call[..] {
                    _ if fails && rng.unit() < 0.3 => {}
                    [first, second] => {
                        evidence.comparisons.push(Comparison { first, second, winner: Some(order[0]) });
                    }
                    _ => evidence.rankings.push(Ranking { shown: call.clone(), order }),
                }
                asked.push(call);
            }
        }
    }

    fn connected(n: usize, calls: &[Vec<usize>]) -> bool {
        let mut part: Vec<usize> = (0..n).collect();
        for call in calls {
            for other in &call[1..] {
                let (from, to) = (part[*other], part[call[0]]);
                part.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
            }
        }
        part.iter().all(|other| *other == part[0])
    }

    #[test]
    fn every_budget_is_held_and_well_used() {
        for design in [Design::RoundRobin, Design::Sparse, Design::Adaptive] {
            for n in [2, 3, 8, 11] {
                for line_up in [2, 3, 40] {
                    for budget in [1, n - 1, 2 * n + 1, 40] {
                        for audit in [0.0, 0.3] {
                            let schedule =
                                Schedule { budget: Some(budget), line_up, audit, ..schedule(n, design) };
                            let (asked, _) = played(&schedule, false, false);
                            assert!(asked.len() <= budget && asked.len() <= schedule.most(), "{schedule:?}");
                            assert!(!asked.is_empty());
                            if design != Design::Adaptive {
                                assert_eq!(asked.len(), schedule.most(), "{schedule:?}");
                            }
                            let whole = budget >= n - 1 && audit == 0.0 && line_up == 2;
                            assert!(!whole || connected(n, &asked), "{schedule:?}: {asked:?}");
                            for call in &asked {
                                let mut once = call.clone();
                                once.sort_unstable();
                                once.dedup();
                                assert!(
                                    once.len() == call.len() && call.len() == line_up.min(n).min(MAX_SHOWN)
                                );
                                assert!(once.iter().all(|shown| *shown < n));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn groups_of_none_and_one_ask_nothing() {
        for n in [0, 1] {
            let schedule = schedule(n, Design::Adaptive);
            assert_eq!((schedule.next(&[], &Evidence::default()).len(), schedule.most()), (0, 0));
        }
    }

    #[test]
    fn sides_stay_balanced_and_audits_are_reversed_calls() {
        for line_up in [2, 4] {
            let schedule =
                Schedule { audit: 0.1, line_up, budget: Some(60), ..schedule(16, Design::Adaptive) };
            let (asked, _) = played(&schedule, false, false);
            let history = History::new(16, &asked);
            let expected = 0.1 * history.counted.len() as f64;
            assert!((history.repeats as f64 - expected).abs() <= 2.0, "{} of {expected}", history.repeats);
            let sides = history.sides(16).0;
            assert!(sides.iter().all(|side| side.abs() <= 1.5), "{sides:?}");
        }
    }

    #[test]
    fn a_group_without_differences_and_one_that_is_clear_stop_early() {
        let calls = |schedule: &Schedule, coin| {
            let of = |seed| played(&Schedule { seed, ..schedule.clone() }, coin, false).0.len();
            (0..8).map(of).sum::<usize>() as f64 / 8.0
        };
        let never = schedule(16, Design::Adaptive);
        assert!(calls(&never, true) < 90.0, "{}", calls(&never, true));
        let sure = Schedule { reliability: 0.8, ..never };
        assert!(calls(&sure, false) < 90.0, "{}", calls(&sure, false));
    }

    #[test]
    fn what_failed_is_asked_again_by_adaptive_designs_only() {
        let adaptive = Schedule { budget: Some(60), ..schedule(8, Design::Adaptive) };
        let (asked, evidence) = played(&adaptive, false, true);
        assert!(evidence.named(8).iter().all(|named| *named) && asked.len() > evidence.comparisons.len());
        let lost = vec![vec![0, 1]; 8];
        assert!(!adaptive.next(&lost, &Evidence::default()).is_empty());
        assert!(schedule(8, Design::RoundRobin).next(&lost, &Evidence::default()).is_empty());
    }

    #[test]
    fn what_makes_no_sense_asks_nothing() {
        let schedule = schedule(4, Design::Adaptive);
        let strange = Comparison { first: 0, second: 9, winner: None };
        let evidence = Evidence { comparisons: vec![strange], ..Evidence::default() };
        assert!(schedule.next(&[vec![0, 9]], &evidence).is_empty());
        let model = BradleyTerry { scales: Vec::new(), ..BradleyTerry::default() };
        assert!(Schedule { model, ..schedule }.next(&[vec![0, 1]], &Evidence::default()).is_empty());
    }

    #[test]
    fn a_wave_is_chosen_in_milliseconds() {
        for (n, limit) in [(16, 2), (64, 50)] {
            for line_up in [2, 4] {
                let schedule =
                    Schedule { line_up, budget: Some(8 * n / line_up), ..schedule(n, Design::Adaptive) };
                let (asked, evidence) = played(&schedule, false, false);
                let schedule = Schedule { budget: Some(9 * n), ..schedule };
                let start = cpu_time();
                assert!(!schedule.next(&asked, &evidence).is_empty());
                let factor = if cfg!(debug_assertions) { 20 } else { 1 };
                let took = cpu_time() - start;
                assert!(took < factor * Duration::from_millis(limit), "{n} {line_up}: {took:?}");
            }
        }
    }
}
