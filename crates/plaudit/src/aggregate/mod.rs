//! How do comparisons of two responses at a time become one number a response? By one of five methods, each a pure
//! function of the comparisons, whatever their order.

pub mod bradley_terry;
mod cholesky;
pub mod copeland;
mod davidson;
pub mod dgr;
pub mod elo;
pub mod winrate;

use crate::error::Refusal;
use bradley_terry::BradleyTerry;
use elo::Elo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// One verdict on two responses of a group. A verdict that failed is no comparison, and must not be handed in as a tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Comparison {
    /// The response that was shown first.
    pub first: usize,
    /// The response that was shown second.
    pub second: usize,
    /// The better one of the two, or none of them where they tie.
    pub winner: Option<usize>,
}

impl Comparison {
    /// The winner and the loser, unless it is a tie.
    pub fn decided(&self) -> Option<(usize, usize)> {
        let winner = self.winner?;
        Some((winner, if winner == self.first { self.second } else { self.first }))
    }
}

/// How comparisons become scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Method {
    /// The share of comparisons won, stretched over [-1, 1].
    Winrate,
    /// Wins less losses, as a share of the largest such difference.
    Copeland,
    /// Ratings as of chess players, stretched over [-1, 1].
    Elo(Elo),
    /// Wins less losses once the fewest verdicts that contradict an order are left out. At most 16 responses.
    Dgr,
    /// Strengths that explain the verdicts best, shrunk where the verdicts look like noise. At most 64 responses.
    BradleyTerry(BradleyTerry),
}

impl Default for Method {
    fn default() -> Self {
        Self::BradleyTerry(BradleyTerry::default())
    }
}

impl Method {
    /// Every method, by its name in recipes.
    pub const NAMES: [&'static str; 5] = ["winrate", "copeland", "elo", "dgr", "bradley_terry"];

    /// The method of that name, with its defaults for every parameter that is not given.
    pub fn named(name: &str, mut parameters: Map<String, Value>) -> Result<Self, AggregateError> {
        if !Self::NAMES.contains(&name) {
            let message = format!("{name:?} is no method; there are {}", Self::NAMES.join(", "));
            return Err(Refusal::new("method", message).into());
        }
        let given = parameters.keys().next().cloned();
        parameters.insert("method".to_owned(), name.into());
        let method: Self = serde_json::from_value(Value::Object(parameters))
            .map_err(|error| Refusal::new("", error.to_string()))?;
        match (&method, given) {
            (Self::Winrate | Self::Copeland | Self::Dgr, Some(key)) => {
                Err(Refusal::new("", format!("{name} has no parameters, but {key:?} is given")).into())
            }
            _ => method.check().map(|()| method),
        }
    }

    /// Whether every parameter has a value that makes sense.
    pub fn check(&self) -> Result<(), AggregateError> {
        match self {
            Self::Winrate | Self::Copeland | Self::Dgr => Ok(()),
            Self::Elo(params) => params.check().map_err(Into::into),
            Self::BradleyTerry(params) => params.check().map_err(Into::into),
        }
    }

    /// The largest group that the method can take.
    pub fn largest(&self) -> usize {
        match self {
            Self::Winrate | Self::Copeland | Self::Elo(_) => usize::MAX,
            Self::Dgr => dgr::LARGEST,
            Self::BradleyTerry(_) => bradley_terry::LARGEST,
        }
    }
}

/// One score a response, and what they were made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Aggregated {
    /// The scores, in [-1, 1], in the order of the responses.
    pub scores: Vec<f64>,
    /// The standard errors of the scores, where the method knows them.
    pub errors: Option<Vec<f64>>,
    /// What the method counted or estimated.
    pub info: Evidence,
}

/// What a method counted or estimated on the way to its scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Evidence {
    /// Of [`Method::Winrate`].
    Winrate(winrate::Evidence),
    /// Of [`Method::Copeland`].
    Copeland(copeland::Evidence),
    /// Of [`Method::Elo`].
    Elo(elo::Evidence),
    /// Of [`Method::Dgr`].
    Dgr(dgr::Evidence),
    /// Of [`Method::BradleyTerry`].
    BradleyTerry(bradley_terry::Evidence),
}

/// Comparisons that cannot be aggregated.
#[derive(Debug, Clone, PartialEq)]
pub enum AggregateError {
    /// A comparison names a response that the group does not have.
    NoSuchResponse {
        /// The comparison, as its place in the list.
        at: usize,
        /// The response that it names.
        index: usize,
        /// How many responses there are.
        n: usize,
    },
    /// A comparison of a response with itself.
    WithItself {
        /// The comparison, as its place in the list.
        at: usize,
    },
    /// The winner is neither of the two.
    StrangeWinner {
        /// The comparison, as its place in the list.
        at: usize,
        /// The winner that it names.
        winner: usize,
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
    Parameter(Refusal),
}

impl AggregateError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchResponse { .. } => "aggregate.no_such_response",
            Self::WithItself { .. } => "aggregate.with_itself",
            Self::StrangeWinner { .. } => "aggregate.strange_winner",
            Self::NeverCompared { .. } => "aggregate.never_compared",
            Self::TooMany { .. } => "aggregate.too_many",
            Self::NoEstimate => "aggregate.no_estimate",
            Self::Parameter(_) => "aggregate.parameter",
        }
    }
}

impl From<Refusal> for AggregateError {
    fn from(refusal: Refusal) -> Self {
        Self::Parameter(refusal)
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
            Self::Parameter(Refusal { key: "", message }) => write!(out, "{message}")?,
            Self::Parameter(Refusal { key, message }) => write!(out, "{key}: {message}")?,
        }
        write!(out, " ({})", self.code())
    }
}

impl std::error::Error for AggregateError {}

/// One score a response, of `n`, from comparisons in any order. Not every pair must have been compared, and a pair may
/// have been compared more than once; but every response must have been compared with some other. A response that is
/// alone has nobody to be better than, and scores 0.
pub fn aggregate(
    method: &Method,
    n: usize,
    comparisons: &[Comparison],
) -> Result<Aggregated, AggregateError> {
    method.check()?;
    if n > method.largest() {
        return Err(AggregateError::TooMany { n, largest: method.largest() });
    }
    check(n, comparisons)?;
    // Judges answer in any order. Sums of floats, and ratings even more so, must not depend on it.
    let mut sorted = comparisons.to_vec();
    sorted.sort_unstable();
    Ok(match method {
        Method::Winrate => winrate::aggregate(n, &sorted),
        Method::Copeland => copeland::aggregate(n, &sorted),
        Method::Elo(params) => elo::in_order(params, n, &sorted)?,
        Method::Dgr => dgr::aggregate(n, &sorted),
        Method::BradleyTerry(params) => bradley_terry::aggregate(params, n, &sorted)?,
    })
}

fn check(n: usize, comparisons: &[Comparison]) -> Result<(), AggregateError> {
    for (at, comparison) in comparisons.iter().enumerate() {
        let &Comparison { first, second, winner } = comparison;
        let index = first.max(second);
        if index >= n {
            return Err(AggregateError::NoSuchResponse { at, index, n });
        }
        if first == second {
            return Err(AggregateError::WithItself { at });
        }
        if let Some(winner) = winner.filter(|winner| *winner != first && *winner != second) {
            return Err(AggregateError::StrangeWinner { at, winner });
        }
    }
    let mut named = vec![n == 1; n];
    for comparison in comparisons {
        named[comparison.first] = true;
        named[comparison.second] = true;
    }
    match named.iter().position(|named| !named) {
        Some(index) => Err(AggregateError::NeverCompared { index }),
        None => Ok(()),
    }
}

/// Stretches values over [-1, 1]: the smallest becomes -1 and the largest 1. Values that hardly differ become 0.
fn stretched(values: &[f64]) -> Vec<f64> {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = max - min;
    // The bound is RM-Gallery's; below it, the stretch would enlarge nothing but rounding.
    if values.is_empty() || spread < 1e-6 {
        return vec![0.0; values.len()];
    }
    values.iter().map(|value| (2.0 * (value - min) / spread - 1.0).clamp(-1.0, 1.0)).collect()
}
