//! From verdicts about items to one number, by the formulas of the field, and the range in which it lies where verdicts are missing.

use super::Item;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the verdicts about the items become one number. `w` is the weight of an item, `e` what its answer earns, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RubricFormula {
    /// The sum of `w e` over the sum of the positive weights, as HealthBench has it. It may be below zero.
    #[default]
    Healthbench,
    /// The sum of `w e` over the sum of `w`, as verifiers, NeMo-Gym and the explicit aggregation of Rubrics as Rewards have it.
    Weighted,
    /// The sum of `w e` over the sum of the sizes of the weights, as open-instruct has it.
    Signed,
    /// The mean of `e`, whatever the weights are.
    Mean,
    /// 1 where every item is passed, else 0.
    All,
    /// 1 where some item is passed, else 0.
    Any,
    /// The smallest `e`.
    Min,
    /// The largest `e`.
    Max,
    /// No items: one call sees the whole rubric and gives 1 to 10, which is divided by 10.
    Implicit,
}

/// What is known of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemVerdict {
    /// The judge gave the answer of that place, worst to best.
    Answer(usize),
    /// The judge says that the item does not apply, so that it counts for nothing.
    NotApplicable,
    /// There is no verdict.
    Missing,
}

/// The least and the greatest number over all verdicts that could have come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Bounds {
    /// How far apart they are.
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// The number in the middle; the number itself where they are equal.
    pub fn middle(self) -> f64 {
        if self.low == self.high { self.low } else { f64::midpoint(self.low, self.high) }
    }
}

/// Why verdicts are no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreError {
    /// The weights that the sum is divided by are not above zero in sum.
    Weights,
    /// No item applies.
    NothingApplies,
}

impl std::fmt::Display for ScoreError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Weights => "the weights that the sum is divided by are not above zero in sum",
            Self::NothingApplies => "no item applies",
        })
    }
}

/// What one verdict adds above and below the line.
type Term = (f64, f64);

impl RubricFormula {
    /// The number that verdicts come to, all of which are there, or the range of all that it could be. `may_not_apply` says whether
    /// the judge may have said of a missing item that it does not apply.
    pub fn bounds(
        self,
        items: &[Item],
        verdicts: &[ItemVerdict],
        may_not_apply: bool,
    ) -> Result<Bounds, ScoreError> {
        self.check(items)?;
        if !verdicts.contains(&ItemVerdict::Missing)
            && !verdicts.iter().any(|one| matches!(one, ItemVerdict::Answer(_)))
        {
            return Err(ScoreError::NothingApplies);
        }
        match self {
            Self::Healthbench | Self::Weighted | Self::Signed | Self::Mean => {
                let low = self.ratio(items, verdicts, may_not_apply, -1.0)?;
                let high = self.ratio(items, verdicts, may_not_apply, 1.0)?;
                Ok(Bounds { low, high: high.max(low) })
            }
            Self::All | Self::Any | Self::Min | Self::Max | Self::Implicit => {
                Ok(self.extreme(items, verdicts, may_not_apply))
            }
        }
    }

    /// Whether the weights of a rubric can be made a number of at all, which is known before a judge is asked.
    pub fn check(self, items: &[Item]) -> Result<(), ScoreError> {
        let sum: f64 = items.iter().map(|item| self.share(item, 0).1).sum();
        if self == Self::Implicit || sum > 0.0 { Ok(()) } else { Err(ScoreError::Weights) }
    }

    /// What an answer adds above and below the line.
    fn share(self, item: &Item, answer: usize) -> Term {
        let (weight, earned) = (item.weight, item.earned(answer));
        match self {
            Self::Healthbench => (weight * earned, weight.max(0.0)),
            Self::Weighted => (weight * earned, weight),
            Self::Signed => (weight * earned, weight.abs()),
            _ => (earned, 1.0),
        }
    }

    /// The least ratio (`sign` -1) or the greatest (`sign` 1) over the verdicts that are missing.
    ///
    /// Dinkelbach, On nonlinear fractional programming (1967): the best choice for a guess of the ratio gives a better guess, until
    /// it gives the same one. Each item chooses alone, because the sums take them apart.
    fn ratio(
        self,
        items: &[Item],
        verdicts: &[ItemVerdict],
        may_not_apply: bool,
        sign: f64,
    ) -> Result<f64, ScoreError> {
        let options = |item: &Item| {
            let answers = (0..item.answers().len()).map(|answer| self.share(item, answer));
            answers.chain(may_not_apply.then_some((0.0, 0.0))).collect::<Vec<Term>>()
        };
        let missing: Vec<Option<Vec<Term>>> = items
            .iter()
            .zip(verdicts)
            .map(|(item, verdict)| (*verdict == ItemVerdict::Missing).then(|| options(item)))
            .collect();
        // The sum below the line at its smallest must be above zero; where it is not, the number could be anything.
        let least: f64 = (items.iter().zip(verdicts).zip(&missing))
            .map(|((item, verdict), options)| match (verdict, options) {
                (ItemVerdict::Answer(answer), _) => self.share(item, *answer).1,
                (_, Some(options)) => options.iter().map(|(_, below)| *below).fold(f64::INFINITY, f64::min),
                _ => 0.0,
            })
            .sum();
        let all_there = missing.iter().all(Option::is_none);
        if least <= 0.0 {
            if all_there {
                return Err(ScoreError::Weights);
            }
            return Ok(sign * f64::INFINITY);
        }
        let sums = |guess: f64| -> Term {
            let chosen =
                (items.iter().zip(verdicts).zip(&missing)).map(|((item, verdict), options)| {
                    match (verdict, options) {
                        (ItemVerdict::Answer(answer), _) => self.share(item, *answer),
                        (_, Some(options)) => {
                            let gain = |(above, below): &Term| sign * (above - guess * below);
                            let best = options.iter().copied().max_by(|a, b| gain(a).total_cmp(&gain(b)));
                            best.unwrap_or((0.0, 0.0))
                        }
                        _ => (0.0, 0.0),
                    }
                });
            chosen.fold((0.0, 0.0), |(above, below), (more, under)| (above + more, below + under))
        };
        let mut ratio = {
            let (above, below) = sums(0.0);
            above / below
        };
        if all_there {
            return Ok(ratio);
        }
        // Each step but the last one changes some item's choice for good, so that few are ever taken.
        for _ in 0..=4 * items.len() {
            let (above, below) = sums(ratio);
            let next = above / below;
            if sign * (next - ratio) <= 0.0 {
                break;
            }
            ratio = next;
        }
        Ok(ratio)
    }

    /// The range of a number that is the smallest or the largest of what the items earn.
    fn extreme(self, items: &[Item], verdicts: &[ItemVerdict], may_not_apply: bool) -> Bounds {
        let passed = |earned: f64| match self {
            Self::All | Self::Any => f64::from(u8::from(earned >= 1.0)),
            _ => earned,
        };
        let fold: fn(f64, f64) -> f64 =
            if matches!(self, Self::All | Self::Min) { f64::min } else { f64::max };
        let of = |missing: Option<f64>| {
            let earned = items.iter().zip(verdicts).filter_map(|(item, verdict)| match verdict {
                ItemVerdict::Answer(answer) => Some(item.earned(*answer)),
                ItemVerdict::NotApplicable => None,
                ItemVerdict::Missing => missing,
            });
            earned.map(passed).reduce(fold)
        };
        // Where an item may not apply, leaving it out is one more that could have come.
        let left_out = may_not_apply.then(|| of(None)).flatten();
        let ends = [of(Some(0.0)), of(Some(1.0)), left_out].into_iter().flatten();
        Bounds {
            low: ends.clone().reduce(f64::min).unwrap_or(f64::NEG_INFINITY),
            high: ends.reduce(f64::max).unwrap_or(f64::INFINITY),
        }
    }
}
