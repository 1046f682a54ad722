//! Composition: the weighted sum or mean of the components' outcomes, in which a failure is never a number.

pub mod turn_rewards;

use crate::outcome::{Outcome, OutcomeKind, Score};
use crate::reason::{Code, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How weighted values are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// The sum of weight times value.
    #[default]
    Sum,
    /// The sum of weight times value, divided by the sum of the weights of the components that apply.
    Mean,
}

/// What composition must know of a component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// How much its value counts; 0 measures without adding.
    pub weight: f64,
    /// Whether a rollout to which it does not apply is invalid rather than scored by the others.
    pub required: bool,
    /// Whether its value is normalised over the group before it counts.
    pub normalize: Option<Normalize>,
}

/// Over what a value is normalised before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Over the group: less the mean, divided by the standard deviation (of a sample) and 0.0001, as trainers do it. One
    /// alone is 0.
    Group,
}

/// What is added to a standard deviation, as TRL and others do.
const SMALL: f64 = 1e-4;

/// The values of one component in a group, normalised; none where there is no value.
pub fn normalized(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known = || values.iter().flatten();
    let count = known().count() as f64;
    let mean = known().sum::<f64>() / count;
    let squares: f64 = known().map(|value| (value - mean).powi(2)).sum();
    let std = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    values.iter().map(|value| value.map(|value| (value - mean) / (std + SMALL))).collect()
}

/// A reason, and the component that gave it, as its place in the recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Why.
    pub reason: Reason,
    /// Which component, where it was one.
    pub component: Option<usize>,
}

/// The one number a rollout gets, or why it gets none.
#[derive(Debug, Clone, PartialEq)]
pub enum Total {
    /// From evidence alone.
    Scored(Score),
    /// At least one component that counts gave its floor, or a gate was closed.
    Floored(Score, Cause),
    /// No component that counts applies.
    Skipped(Cause),
    /// A component that counts failed.
    Invalid(Cause),
}

impl Total {
    /// The number, where there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Scored(value) | Self::Floored(value, _) => Some(value.get()),
            Self::Skipped(_) | Self::Invalid(_) => None,
        }
    }

    /// Which of the four outcomes it is.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Scored(_) => OutcomeKind::Scored,
            Self::Floored(..) => OutcomeKind::Floored,
            Self::Skipped(_) => OutcomeKind::Skipped,
            Self::Invalid(_) => OutcomeKind::Invalid,
        }
    }

    /// Why it is not simply scored.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Scored(_) => None,
            Self::Floored(_, cause) | Self::Skipped(cause) | Self::Invalid(cause) => Some(cause),
        }
    }
}

/// Puts the outcomes of one rollout together. `parts` and `outcomes` go side by side; a component that was not asked
/// has no outcome. `instead` are the values, by component, that count in the place of their own.
pub fn total<'o>(
    combine: Combine,
    parts: &[Part],
    outcomes: impl IntoIterator<Item = Option<&'o Outcome>>,
    instead: &[(usize, f64)],
) -> Total {
    let cause = |at: usize, reason: &Reason| Cause { reason: reason.clone(), component: Some(at) };
    let (mut sum, mut weights, mut floored, mut skipped) = (0.0, 0.0, None, None);
    let mut counted = false;
    for (at, (part, outcome)) in parts.iter().zip(outcomes).enumerate() {
        let Some(outcome) = outcome else { continue };
        match outcome {
            Outcome::Skipped(reason) if part.required => return Total::Invalid(cause(at, reason)),
            // What only measures cannot spoil the total.
            _ if part.weight == 0.0 => continue,
            Outcome::Invalid(reason) => return Total::Invalid(cause(at, reason)),
            Outcome::Skipped(reason) => {
                skipped.get_or_insert_with(|| cause(at, reason));
                continue;
            }
            Outcome::Floored { reason, .. } => {
                floored.get_or_insert_with(|| cause(at, reason));
            }
            Outcome::Scored { .. } => {}
        }
        if let Some(value) = outcome.value() {
            let value = instead.iter().find(|(place, _)| *place == at).map_or(value, |(_, value)| *value);
            counted = true;
            sum += part.weight * value;
            weights += part.weight;
        }
    }
    let value = match combine {
        _ if !counted => {
            return Total::Skipped(
                skipped.unwrap_or(Cause { reason: Code::ZeroWeight.into(), component: None }),
            );
        }
        Combine::Sum => sum,
        Combine::Mean if weights == 0.0 => {
            return Total::Invalid(Cause { reason: Code::ZeroWeight.into(), component: None });
        }
        Combine::Mean => sum / weights,
    };
    match (Score::new(value), floored) {
        (Some(value), None) => Total::Scored(value),
        (Some(value), Some(cause)) => Total::Floored(value, cause),
        (None, _) => Total::Invalid(Cause { reason: Code::NotFinite.into(), component: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Info;

    fn total(combine: Combine, parts: &[Part], outcomes: &[Outcome]) -> Total {
        super::total(combine, parts, outcomes.iter().map(Some), &[])
    }

    fn parts(weights: &[f64]) -> Vec<Part> {
        weights.iter().map(|weight| Part { weight: *weight, required: false, normalize: None }).collect()
    }

    fn scored(value: f64) -> Outcome {
        Outcome::scored(value, Info::none())
    }

    #[test]
    fn sum_and_mean_leave_skipped_components_out() {
        let outcomes = [scored(1.0), Outcome::skipped(Code::MissingReference), scored(0.5)];
        let parts = parts(&[1.0, 5.0, 3.0]);
        assert_eq!(total(Combine::Sum, &parts, &outcomes).value(), Some(2.5));
        assert_eq!(total(Combine::Mean, &parts, &outcomes).value(), Some(2.5 / 4.0));
    }

    #[test]
    fn an_invalid_component_with_weight_makes_the_total_invalid() {
        let outcomes = [scored(1.0), Outcome::invalid(Code::Panic)];
        let bad = total(Combine::Sum, &parts(&[1.0, 1.0]), &outcomes);
        assert_eq!(bad.kind(), OutcomeKind::Invalid);
        assert_eq!(bad.cause().and_then(|cause| cause.component), Some(1));
        assert_eq!(total(Combine::Sum, &parts(&[1.0, 0.0]), &outcomes).value(), Some(1.0));
    }

    #[test]
    fn nothing_that_counts_is_no_number() {
        let skipped = [Outcome::skipped(Code::MissingReference)];
        assert_eq!(total(Combine::Sum, &parts(&[1.0]), &skipped).kind(), OutcomeKind::Skipped);
        let required = [Part { weight: 1.0, required: true, normalize: None }];
        assert_eq!(total(Combine::Sum, &required, &skipped).kind(), OutcomeKind::Invalid);
        let cancel = [scored(1.0), scored(1.0)];
        let cancelled = total(Combine::Mean, &parts(&[1.0, -1.0]), &cancel);
        assert_eq!(cancelled.kind(), OutcomeKind::Invalid);
        assert_eq!(cancelled.cause().map(|cause| cause.reason.code), Some(Code::ZeroWeight));
        let huge = [scored(f64::MAX), scored(f64::MAX)];
        assert_eq!(total(Combine::Sum, &parts(&[2.0, 2.0]), &huge).kind(), OutcomeKind::Invalid);
    }

    #[test]
    fn a_floor_counts_and_is_named() {
        let outcomes = [scored(1.0), Outcome::floored(-1.0, Code::ModelTooLong)];
        let low = total(Combine::Sum, &parts(&[1.0, 2.0]), &outcomes);
        assert_eq!((low.kind(), low.value()), (OutcomeKind::Floored, Some(-1.0)));
    }

    #[test]
    fn a_component_is_normalised_over_its_group() {
        // (r - mean) / (std + 1e-4), with the standard deviation of a sample.
        let found = normalized(&[Some(1.0), None, Some(2.0), Some(4.0)]);
        let (mean, std) = (7.0 / 3.0, (14.0_f64 / 6.0).sqrt());
        for (found, value) in found.iter().flatten().zip([1.0, 2.0, 4.0]) {
            assert!((found - (value - mean) / (std + 1e-4)).abs() < 1e-12);
        }
        assert_eq!(found[1], None);
        assert_eq!(normalized(&[Some(3.0)]), [Some(0.0)]);
        assert_eq!(normalized(&[Some(3.0), Some(3.0)]), [Some(0.0), Some(0.0)]);
    }
}
