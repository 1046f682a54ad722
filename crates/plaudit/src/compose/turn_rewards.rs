//! Rewards per turn: the total of a rollout spread over the model's turns, so that they add up to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the total is spread over the model's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// The last turn gets the total, and the others nothing.
    OutcomeLast,
    /// Every turn gets a share, each by `discount` less than the next one's.
    Discounted,
    /// Every turn gets what it has changed: components with `per_turn` score the state after each turn, and a turn gets the
    /// difference. What the other components give goes to the last turn.
    StateDelta,
}

/// How a recipe asks for rewards per turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TurnRewards {
    /// How the total is spread.
    pub mode: TurnMode,
    /// With `discounted`: how much less a turn gets than the next one.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: f64,
}

impl Default for TurnRewards {
    fn default() -> Self {
        Self { mode: TurnMode::OutcomeLast, discount: 0.9 }
    }
}

impl TurnRewards {
    /// One number a turn, or none for a turn that gets nothing of its own; they add up to the total. `states` are the
    /// scores after each turn, already weighed, of the components that score turns.
    pub fn spread(&self, total: f64, turns: usize, states: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
        let mut rewards: Vec<Option<f64>> = vec![None; turns];
        let Some(last) = turns.checked_sub(1) else { return rewards };
        match self.mode {
            TurnMode::OutcomeLast => {}
            TurnMode::Discounted => {
                let power = |at: usize| self.discount.powi(i32::try_from(last - at).unwrap_or(i32::MAX));
                let whole: f64 = (0..turns).map(power).sum();
                (0..last).for_each(|at| rewards[at] = Some(total * power(at) / whole));
            }
            TurnMode::StateDelta => {
                for scores in states {
                    let mut before = 0.0;
                    for (reward, score) in rewards[..last].iter_mut().zip(scores) {
                        // A turn without a score passes its progress on to the next one that has one.
                        let Some(score) = score else { continue };
                        let change = score - before;
                        *reward = Some(reward.map_or(change, |sum| sum + change));
                        before = *score;
                    }
                }
            }
        }
        let given: f64 = rewards.iter().flatten().sum();
        rewards[last] = Some(total - given);
        rewards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(mode: TurnMode) -> TurnRewards {
        TurnRewards { mode, discount: 0.5 }
    }

    #[test]
    fn every_mode_spreads_in_its_way() {
        assert_eq!(of(TurnMode::OutcomeLast).spread(2.0, 3, &[]), [None, None, Some(2.0)]);
        assert_eq!(of(TurnMode::Discounted).spread(7.0, 3, &[]), [Some(1.0), Some(2.0), Some(4.0)]);
        let states = [vec![Some(0.25), None, Some(0.75), Some(1.0)]];
        let spread = of(TurnMode::StateDelta).spread(1.5, 4, &states);
        assert_eq!(spread, [Some(0.25), None, Some(0.5), Some(0.75)]);
        assert_eq!(of(TurnMode::StateDelta).spread(1.0, 0, &[]), []);
    }

    proptest! {
        #[test]
        fn rewards_of_turns_add_up_to_the_total(
            total in -10.0..10.0f64,
            states in prop::collection::vec(prop::collection::vec(prop::option::of(-2.0..2.0f64), 1..30), 0..3),
            turns in 1..30usize,
            discount in 0.0..=1.0f64,
        ) {
            for mode in [TurnMode::OutcomeLast, TurnMode::Discounted, TurnMode::StateDelta] {
                let rewards = TurnRewards { mode, discount }.spread(total, turns, &states);
                prop_assert_eq!(rewards.len(), turns);
                let sum: f64 = rewards.iter().flatten().sum();
                prop_assert!((sum - total).abs() < 1e-9, "{sum} {total}");
            }
        }
    }
}
