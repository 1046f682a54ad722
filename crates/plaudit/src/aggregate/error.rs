//! Aggregation errors: evidence or parameters that cannot be aggregated, each with a stable code.

use crate::error::ParamError;
use std::fmt;

/// Evidence that cannot be aggregated.
#[derive(Debug, Clone, PartialEq)]
pub enum AggregateError {
    /// A comparison names a response that the group does not have.
    NoSuchResponse {
        /// The comparison, by its index in the list.
        at: usize,
        /// The response that it names.
        index: usize,
        /// How many responses there are.
        n: usize,
    },
    /// A comparison of a response with itself.
    WithItself {
        /// The comparison, by its index in the list.
        at: usize,
    },
    /// The winner is neither of the two.
    StrangeWinner {
        /// The comparison, by its index in the list.
        at: usize,
        /// The winner that it names.
        winner: usize,
    },
    /// A probability that is none.
    StrangeProbability {
        /// The weighed comparison, by its index in the list.
        at: usize,
    },
    /// A ranking that does not rank what was shown.
    StrangeLineUp {
        /// The ranking, by its index in the list.
        at: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Scores of another reward that do not fit the group.
    StrangePrior {
        /// What is wrong with them.
        why: &'static str,
    },
    /// No comparison names a response, though there are others: nothing is known of it, so it has no score. The caller
    /// leaves it out of the group and says why.
    NeverCompared {
        /// The response.
        index: usize,
    },
    /// The group is larger than the method can take.
    TooMany {
        /// How many responses there are.
        n: usize,
        /// How many the method takes.
        largest: usize,
    },
    /// The estimate did not settle: more verdicts than doubles can add up.
    NoEstimate,
    /// A parameter of the method is wrong.
    Parameter(ParamError),
}

impl AggregateError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchResponse { .. } => "aggregate.no_such_response",
            Self::WithItself { .. } => "aggregate.with_itself",
            Self::StrangeWinner { .. } => "aggregate.strange_winner",
            Self::StrangeProbability { .. } => "aggregate.strange_probability",
            Self::StrangeLineUp { .. } => "aggregate.strange_line_up",
            Self::StrangePrior { .. } => "aggregate.strange_prior",
            Self::NeverCompared { .. } => "aggregate.never_compared",
            Self::TooMany { .. } => "aggregate.too_many",
            Self::NoEstimate => "aggregate.no_estimate",
            Self::Parameter(_) => "aggregate.parameter",
        }
    }
}

impl From<ParamError> for AggregateError {
    fn from(error: ParamError) -> Self {
        Self::Parameter(error)
    }
}

impl fmt::Display for AggregateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchResponse { at, index, n } => write!(
                out,
                "comparison {at} names response {index}, but they are numbered from 0 and there are {n}"
            )?,
            Self::WithItself { at } => write!(out, "comparison {at} compares a response with itself")?,
            Self::StrangeWinner { at, winner } => write!(
                out,
                "the winner of comparison {at} is {winner}, which is neither of the two; a tie has no winner"
            )?,
            Self::StrangeProbability { at } => {
                write!(out, "the probability of weighed comparison {at} must be between 0 and 1")?;
            }
            Self::StrangeLineUp { at, why } => write!(out, "line-up {at} {why}")?,
            Self::StrangePrior { why } => write!(out, "the prior {why}")?,
            Self::NeverCompared { index } => write!(
                out,
                "response {index} was compared with no other, so nothing is known of it: leave it out of the group"
            )?,
            Self::TooMany { n, largest } => write!(
                out,
                "the group has {n} responses and the method takes at most {largest}: split the group or choose \
                 another method"
            )?,
            Self::NoEstimate => write!(out, "the strengths did not settle; choose another method")?,
            Self::Parameter(ParamError { key: "", message }) => write!(out, "{message}")?,
            Self::Parameter(ParamError { key, message }) => write!(out, "{key}: {message}")?,
        }
        write!(out, " ({})", self.code())
    }
}

impl std::error::Error for AggregateError {}
