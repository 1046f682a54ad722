//! Outcome of one component for one rollout: a finite value, or a reason why there is none.
//!
//! There is no `Default`, no `From<f64>` and no way to read a value without saying what to do when there is none,
//! so that a failure cannot become a number by accident.

use crate::reason::{Code, Reason};
use serde_json::Value;
use std::borrow::Cow;

/// A finite number. `-0.0` is kept as `0.0`, so that equal scores print the same.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Score(f64);

impl Score {
    /// The score, or nothing where `value` is not finite.
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero turns -0.0 into 0.0 and leaves every other number alone.
        value.is_finite().then_some(Self(value + 0.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// One value of the evidence that a reward reports beside its score.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Fact {
    Bool(bool),
    Count(u64),
    Number(f64),
    Word(&'static str),
    Text(String),
    Numbers(Vec<f64>),
    Texts(Vec<String>),
    Constraints(Vec<ConstraintVerdict>),
    /// What a reward of the caller's gave, in whatever shape.
    Json(Value),
}

impl Fact {
    /// How many bytes of text it holds beside itself, for limits on memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Texts(texts) => texts.iter().map(String::len).sum(),
            Self::Json(value) => value.to_string().len(),
            _ => 0,
        }
    }
}

/// Whether a response follows one constraint of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ConstraintVerdict {
    /// The public name of the constraint.
    pub id: &'static str,
    /// Whether it is followed.
    pub followed: bool,
}

/// The evidence beside a score, by name, in the order in which the reward gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Info(Vec<(Cow<'static, str>, Fact)>);

impl Info {
    /// No evidence beyond the score itself. Costs no allocation.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Evidence from a list of names and facts.
    pub fn of<const N: usize>(facts: [(&'static str, Fact); N]) -> Self {
        Self(facts.into_iter().map(|(name, fact)| (Cow::Borrowed(name), fact)).collect())
    }

    /// Adds one fact.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, fact: Fact) {
        self.0.push((name.into(), fact));
    }

    /// The fact of that name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, fact)| fact)
    }

    /// All facts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(name, fact)| (name.as_ref(), fact))
    }
}

impl serde::Serialize for Info {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

/// What one component says of one rollout.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A number, from evidence.
    Scored {
        /// The number.
        value: Score,
        /// The evidence.
        info: Info,
    },
    /// The model's own output broke a stated limit: the component's floor, with the cause.
    Floored {
        /// The floor that the component declares.
        value: Score,
        /// Which limit was broken.
        reason: Reason,
    },
    /// The component does not apply to this rollout.
    Skipped(Reason),
    /// Something failed that is not the model's fault.
    Invalid(Reason),
}

impl Outcome {
    /// A score with its evidence. A value that is not finite is the rule's mistake and becomes `invalid`.
    pub fn scored(value: f64, info: Info) -> Self {
        match Score::new(value) {
            Some(value) => Self::Scored { value, info },
            None => Self::Invalid(Code::NotFinite.into()),
        }
    }

    /// The floor, because the model's output broke a limit.
    pub fn floored(floor: f64, reason: impl Into<Reason>) -> Self {
        match Score::new(floor) {
            Some(value) => Self::Floored { value, reason: reason.into() },
            None => Self::Invalid(Code::NotFinite.into()),
        }
    }

    /// Does not apply.
    pub fn skipped(reason: impl Into<Reason>) -> Self {
        Self::Skipped(reason.into())
    }

    /// Failed, and not by the model's fault.
    pub fn invalid(reason: impl Into<Reason>) -> Self {
        Self::Invalid(reason.into())
    }

    /// The number, where there is one: of a score or of a floor.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Scored { value, .. } | Self::Floored { value, .. } => Some(value.get()),
            Self::Skipped(_) | Self::Invalid(_) => None,
        }
    }

    /// The reason, where there is one.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Scored { .. } => None,
            Self::Floored { reason, .. } | Self::Skipped(reason) | Self::Invalid(reason) => Some(reason),
        }
    }

    /// The evidence, where there is any.
    pub fn info(&self) -> Option<&Info> {
        match self {
            Self::Scored { info, .. } => Some(info),
            _ => None,
        }
    }

    /// Which of the four it is.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Scored { .. } => OutcomeKind::Scored,
            Self::Floored { .. } => OutcomeKind::Floored,
            Self::Skipped(_) => OutcomeKind::Skipped,
            Self::Invalid(_) => OutcomeKind::Invalid,
        }
    }
}

impl From<Result<Outcome, Outcome>> for Outcome {
    /// For a rule that ends early with `?`: the outcome, whichever way it came.
    fn from(result: Result<Outcome, Outcome>) -> Self {
        result.unwrap_or_else(|early| early)
    }
}

/// The four outcomes, without what they carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// A number from evidence.
    Scored,
    /// The component's floor.
    Floored,
    /// Does not apply.
    Skipped,
    /// Failed.
    Invalid,
}

impl OutcomeKind {
    /// All four, in the order of reports.
    pub const ALL: [OutcomeKind; 4] = [Self::Scored, Self::Floored, Self::Skipped, Self::Invalid];

    /// The word that stands in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scored => "scored",
            Self::Floored => "floored",
            Self::Skipped => "skipped",
            Self::Invalid => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_are_scores() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Score::new(value).is_none());
            assert_eq!(Outcome::scored(value, Info::none()).kind(), OutcomeKind::Invalid);
            assert_eq!(Outcome::floored(value, Code::ModelTooLong).kind(), OutcomeKind::Invalid);
        }
        assert!(Score::new(-0.0).expect("finite").get().is_sign_positive());
    }

    #[test]
    fn a_failure_has_no_value() {
        assert_eq!(Outcome::invalid(Code::Panic).value(), None);
        assert_eq!(Outcome::skipped(Code::MissingReference).value(), None);
        assert_eq!(Outcome::floored(-1.0, Code::ModelTooLong).value(), Some(-1.0));
    }
}
