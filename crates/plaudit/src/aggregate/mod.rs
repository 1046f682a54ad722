//! Aggregators: methods that turn the comparisons of a group into one score per response.
//!
//! One file for each method, one line in [`Method`]. Each is a pure function of the evidence, whatever its order.

pub mod bradley_terry;
mod cholesky;
pub mod copeland;
mod davidson;
pub mod design;
pub mod dgr;
pub mod elo;
mod error;
mod evidence;
mod hessian;
mod mixture;
mod plackett_luce;
pub mod winrate;

pub use error::AggregateError;
pub use evidence::{Evidence, Ranking, Weighed};

use crate::error::ParamError;
use serde::de::DeserializeOwned;
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

/// One aggregation method: a struct of its parameters, with their defaults.
pub trait Aggregator: Default + Serialize + DeserializeOwned {
    /// The name in recipes.
    const NAME: &'static str;
    /// The largest group that it takes.
    const MAX_GROUP: usize = usize::MAX;
    /// What it counts or estimates on the way to the scores.
    type Info: Serialize;

    /// The first parameter whose value makes no sense.
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }

    /// The scores of `n` responses, of at most [`Aggregator::MAX_GROUP`], from evidence that has been checked.
    fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated<Self::Info>, AggregateError>;
}

/// One score per response, and what the scores were made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Aggregated<I = MethodInfo> {
    /// The scores, in [-1, 1], in the order of the responses.
    pub scores: Vec<f64>,
    /// The standard errors of the scores, where the method knows them.
    pub errors: Option<Vec<f64>>,
    /// What the method counted or estimated.
    pub info: I,
}

/// Makes [`Method`] and [`MethodInfo`] from the list of aggregators: an enum and not a trait object, because the judge
/// session treats `bradley_terry` in its own way.
macro_rules! methods {
    ($($module:ident::$Aggregator:ident),+ $(,)?) => {
        /// How comparisons become scores.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Method {
            $(#[doc = concat!("[`", stringify!($module), "::", stringify!($Aggregator), "`].")]
            $Aggregator($module::$Aggregator),)+
        }

        /// What a method counted or estimated on the way to its scores.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum MethodInfo {
            $(#[doc = concat!("Of [`", stringify!($module), "::", stringify!($Aggregator), "`].")]
            $Aggregator(<$module::$Aggregator as Aggregator>::Info),)+
        }

        impl Method {
            /// Every method, by its name in recipes.
            pub const NAMES: &'static [&'static str] = &[$($module::$Aggregator::NAME),+];

            /// The method of that name, with its defaults for every parameter that is not given.
            pub fn named(name: &str, parameters: Map<String, Value>) -> Result<Self, AggregateError> {
                match name {
                    $($module::$Aggregator::NAME => Ok(Self::$Aggregator(load(parameters)?)),)+
                    _ => {
                        let message = format!("{name:?} is no method; there are {}", Self::NAMES.join(", "));
                        Err(ParamError::new("method", message).into())
                    }
                }
            }

            /// The name of the method in recipes.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Aggregator(_) => $module::$Aggregator::NAME,)+
                }
            }

            /// The largest group that the method takes.
            pub fn largest(&self) -> usize {
                match self {
                    $(Self::$Aggregator(_) => $module::$Aggregator::MAX_GROUP,)+
                }
            }

            /// Whether every parameter has a value that makes sense.
            pub fn check(&self) -> Result<(), AggregateError> {
                match self {
                    $(Self::$Aggregator(method) => Ok(method.check()?),)+
                }
            }

            fn aggregate(&self, n: usize, evidence: &Evidence) -> Result<Aggregated, AggregateError> {
                match self {
                    $(Self::$Aggregator(method) => {
                        let Aggregated { scores, errors, info } = method.aggregate(n, evidence)?;
                        Ok(Aggregated { scores, errors, info: MethodInfo::$Aggregator(info) })
                    })+
                }
            }
        }
    };
}

// Every aggregator, by name. A new one is a file beside this and a line here.
methods! {
    winrate::Winrate,
    copeland::Copeland,
    elo::Elo,
    dgr::Dgr,
    bradley_terry::BradleyTerry,
}

impl Default for Method {
    fn default() -> Self {
        Self::BradleyTerry(bradley_terry::BradleyTerry::default())
    }
}

/// An aggregator with these parameters, and its defaults for the others.
fn load<A: Aggregator>(parameters: Map<String, Value>) -> Result<A, AggregateError> {
    let has_none = serde_json::to_value(A::default()).is_ok_and(|all| all == Value::Object(Map::new()));
    if let (true, Some(key)) = (has_none, parameters.keys().next()) {
        let message = format!("{} has no parameters, but {key:?} is given", A::NAME);
        return Err(ParamError::new("", message).into());
    }
    let aggregator: A = serde_json::from_value(Value::Object(parameters))
        .map_err(|error| ParamError::new("", error.to_string()))?;
    aggregator.check()?;
    Ok(aggregator)
}

/// One score per response, of `n`, from comparisons in any order. Not every pair must have been compared, and a pair may
/// have been compared more than once; but every response must have been compared with some other. A response that is
/// alone scores 0.
pub fn aggregate(
    method: &Method,
    n: usize,
    comparisons: &[Comparison],
) -> Result<Aggregated, AggregateError> {
    estimate(method, n, &Evidence { comparisons: comparisons.to_vec(), ..Evidence::default() })
}

/// One score per response, of `n`, from all that is known of the group, as [`aggregate`] does from comparisons alone.
///
/// Only [`Method::BradleyTerry`] uses how sure a judge was and the prior. For the others a weighed comparison is a
/// comparison, a ranking is all the pairs that it implies, and the prior counts for nothing.
pub fn estimate(method: &Method, n: usize, evidence: &Evidence) -> Result<Aggregated, AggregateError> {
    method.check()?;
    if n > method.largest() {
        return Err(AggregateError::TooMany { n, largest: method.largest() });
    }
    evidence.check(n)?;
    method.aggregate(n, evidence)
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
