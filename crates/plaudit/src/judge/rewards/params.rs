//! Parameters that all judged rewards share: judge, mode, aggregation, comparison design and what the judge sees.

use crate::aggregate::design::{Design, MAX_SHOWN};
use crate::aggregate::{AggregateError, Method};
use crate::reward::ParamError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the judge is shown at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One response, which it scores.
    Pointwise,
    /// Two responses, which it compares.
    Pairwise,
    /// Several responses, which it ranks.
    Listwise,
}

/// The name of a method, or its name with parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Aggregate {
    /// A method with its defaults.
    Name(String),
    /// A method and its parameters, such as `{ method: bradley_terry, signal_gate: 0.2 }`.
    Full(Map<String, Value>),
}

/// The description of the parameter `aggregate`, which names every method and its largest group, the default first.
fn aggregate_description() -> String {
    let default = Method::default();
    let others = Method::NAMES.iter().filter_map(|name| Method::named(name, Map::new()).ok());
    let methods: Vec<Method> =
        std::iter::once(default.clone()).chain(others.filter(|method| *method != default)).collect();
    let names: Vec<String> = methods.iter().map(|method| format!("`{}`", method.name())).collect();
    let limited = methods.iter().filter(|method| method.largest() < usize::MAX).enumerate();
    let limits: Vec<String> = limited
        .map(|(at, method)| match at {
            0 => format!(
                "`{}` takes groups of at most {} different responses",
                method.name(),
                method.largest()
            ),
            _ => format!("`{}` of at most {}", method.name(), method.largest()),
        })
        .collect();
    format!(
        "How comparisons become one number a response: {}, or a map with `method` and its parameters. {}; a larger group \
         is invalid with `group.too_large`, and no judge is asked about it.",
        names.join(", "),
        limits.join(" and ")
    )
}

/// The parameters that all judged rewards share.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JudgeParams {
    /// The judge, by its name in the recipe's `judges`; needed where there are several.
    pub judge: Option<String>,
    /// What the judge is shown at a time: `pointwise`, `pairwise` or `listwise`.
    pub mode: Mode,
    /// How comparisons become one number a response. The schema lists the methods.
    #[schemars(extend("description" = aggregate_description()))]
    pub aggregate: Aggregate,
    /// Which comparisons are asked: `round_robin` (all pairs), `sparse` (as many as `budget` says, at once) or `adaptive`
    /// (in waves, where the order is least certain).
    pub design: Design,
    /// The most calls a group. Without it, as many as there are pairs.
    #[schemars(range(min = 1, max = 100_000))]
    pub budget: Option<usize>,
    /// How many responses are shown at once in mode listwise; without it, all of a group, or 20 of a larger one.
    #[schemars(range(min = 2, max = MAX_SHOWN))]
    pub line_up: Option<usize>,
    /// An adaptive design stops when the scores of the group are this reliable; 1 never stops early.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub reliability: f64,
    /// The share of pairs that is asked again with the sides swapped, to see whether the judge holds to its verdicts.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub audit: f64,
    /// The share of a response's comparisons that must succeed; with fewer, it is invalid.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub quorum: f64,
    /// Whether the judge may call two responses equally good.
    pub ties: bool,
    /// Decides sides and draws.
    pub seed: u64,
    /// A scalar reward model from `judges` whose scores are what is expected before any comparison; with
    /// `bradley_terry` only.
    pub prior: Option<String>,
    /// Whether the judge sees the thought of a response, or only what comes after it.
    pub show_thought: bool,
    /// Whether the judge sees the reference, where there is one.
    pub show_reference: bool,
    /// The longest response that the judge sees whole, in characters; of a longer one it sees head and tail.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub longest: usize,
}

impl Default for JudgeParams {
    fn default() -> Self {
        Self {
            judge: None,
            mode: Mode::Pairwise,
            aggregate: Aggregate::Name("bradley_terry".to_owned()),
            design: Design::RoundRobin,
            budget: None,
            line_up: None,
            reliability: 1.0,
            audit: 0.0,
            quorum: 0.5,
            ties: true,
            seed: 0,
            prior: None,
            show_thought: false,
            show_reference: true,
            longest: 32_000,
        }
    }
}

impl JudgeParams {
    /// The method, and everything about the shared parameters that makes no sense together.
    pub(super) fn check(&self) -> Result<Method, Vec<ParamError>> {
        let mut found = Vec::new();
        let method = match &self.aggregate {
            Aggregate::Name(name) => Method::named(name, Map::new()),
            Aggregate::Full(map) => {
                let mut rest = map.clone();
                match rest.remove("method") {
                    Some(Value::String(name)) => Method::named(&name, rest),
                    _ => Err(ParamError::new("method", "is missing from the map").into()),
                }
            }
        };
        let method = method.map_err(|error| match error {
            AggregateError::Parameter(ParamError { key: "" | "method", message }) => {
                ParamError::new("aggregate", message)
            }
            AggregateError::Parameter(ParamError { key, message }) => {
                ParamError::new("aggregate", format!("{key} {message}"))
            }
            other => ParamError::new("aggregate", other.to_string()),
        });
        let estimates = matches!(method, Ok(Method::BradleyTerry(_)));
        if self.mode != Mode::Listwise && self.line_up.is_some() {
            found.push(ParamError::new("line_up", "only mode listwise shows line-ups"));
        }
        if self.mode == Mode::Pointwise {
            if self.design != Design::RoundRobin || self.budget.is_some() {
                found.push(ParamError::new(
                    "design",
                    "mode pointwise compares nothing, so there is nothing to design",
                ));
            }
            if self.audit > 0.0 {
                found.push(ParamError::new("audit", "mode pointwise has no sides to swap"));
            }
        }
        if self.design == Design::Sparse && self.budget.is_none() {
            found.push(ParamError::new("budget", "a sparse design needs one: how many calls a group?"));
        }
        if (self.design == Design::Adaptive || self.prior.is_some()) && !estimates {
            found.push(ParamError::new("aggregate", "an adaptive design or a prior needs bradley_terry"));
        }
        ParamError::gather(found.into_iter().map(Err), method)
    }
}
