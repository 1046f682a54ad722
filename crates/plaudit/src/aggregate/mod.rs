//! How do comparisons of the responses of a group become one number a response? By one of five methods, each a pure
//! function of the evidence, whatever its order.

pub mod bradley_terry;
mod cholesky;
pub mod copeland;
mod davidson;
pub mod design;
pub mod dgr;
pub mod elo;
mod mixture;
mod observed;
mod plackett_luce;
mod refused;
mod sparse;
pub mod winrate;

pub use observed::{LineUp, Observed, Weighed};
pub use refused::AggregateError;

use crate::error::ParamError;
use bradley_terry::BradleyTerry;
use elo::Elo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// Strengths that explain the verdicts best, shrunk where the verdicts look like noise. At most 1024 responses.
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
            return Err(ParamError::new("method", message).into());
        }
        let given = parameters.keys().next().cloned();
        parameters.insert("method".to_owned(), name.into());
        let method: Self = serde_json::from_value(Value::Object(parameters))
            .map_err(|error| ParamError::new("", error.to_string()))?;
        match (&method, given) {
            (Self::Winrate | Self::Copeland | Self::Dgr, Some(key)) => {
                Err(ParamError::new("", format!("{name} has no parameters, but {key:?} is given")).into())
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

    /// The name of the method in recipes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Winrate => "winrate",
            Self::Copeland => "copeland",
            Self::Elo(_) => "elo",
            Self::Dgr => "dgr",
            Self::BradleyTerry(_) => "bradley_terry",
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

/// One score a response, of `n`, from comparisons in any order. Not every pair must have been compared, and a pair may
/// have been compared more than once; but every response must have been compared with some other. A response that is
/// alone has nobody to be better than, and scores 0.
pub fn aggregate(
    method: &Method,
    n: usize,
    comparisons: &[Comparison],
) -> Result<Aggregated, AggregateError> {
    estimate(method, n, &Observed { comparisons: comparisons.to_vec(), ..Observed::default() })
}

/// One score a response, of `n`, from all that is known of the group, as [`aggregate`] does from comparisons alone.
///
/// Only [`Method::BradleyTerry`] knows how sure a judge was and what another reward says. For the others a weighed
/// comparison is a comparison, a line-up is all the pairs that it implies, and the prior is nothing.
pub fn estimate(method: &Method, n: usize, observed: &Observed) -> Result<Aggregated, AggregateError> {
    method.check()?;
    if n > method.largest() {
        return Err(AggregateError::TooMany { n, largest: method.largest() });
    }
    observed.check(n)?;
    let flat = || observed.flat();
    Ok(match method {
        Method::Winrate => winrate::aggregate(n, &flat()),
        Method::Copeland => copeland::aggregate(n, &flat()),
        Method::Elo(params) => elo::in_order(params, n, &flat())?,
        Method::Dgr => dgr::aggregate(n, &flat()),
        Method::BradleyTerry(params) => bradley_terry::aggregate(params, n, &observed.sorted())?,
    })
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
