//! The plan: what a recipe means. Loaded rewards, resolved judges, weights, gates and routes; nothing about the
//! configuration can fail after this.

pub mod first_of;
mod judges;
mod resolve;
mod resolve_first_of;

use crate::code::CodeReward;
use crate::compose::turn_rewards::TurnRewards;
use crate::compose::{Combine, Part};
use crate::group::Partial;
use crate::judge::config::ResolvedJudge;
use crate::reason::{Code, Reason};
use crate::recipe::RecipeError;
pub use crate::recipe::file::GateConfig as Gate;
use crate::registry::RewardEntry;
pub use crate::registry::Scorer;
use crate::rollout::Rollout;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A resolved recipe.
#[derive(Debug)]
pub struct Plan {
    /// The recipe's name.
    pub name: String,
    /// The recipe's own components first, then those of the recipes that it routes to.
    pub branches: Vec<Branch>,
    /// Which branch a rollout takes; without it, the first.
    pub route: Option<Route>,
    /// What stands for an invalid total where a front must hand out a number.
    pub invalid_value: Option<f64>,
    /// The judges that components ask.
    pub judges: Vec<ResolvedJudge>,
    /// Whether the reference takes part in comparisons.
    pub validates: bool,
    /// How groups are handled.
    pub groups: GroupPolicy,
    /// The longest response, in bytes; what is longer is floored.
    pub longest_response: usize,
    /// What the author of the recipe should think about, though it can be done.
    pub warnings: Vec<RecipeError>,
}

/// How groups are handled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupPolicy {
    /// How many groups are scored at once; all cores where nothing is said.
    pub parallel: Option<usize>,
    /// How long one group may take to be scored, and, in a join, to be complete.
    pub timeout: Duration,
    /// Whether groups of different sizes are refused.
    pub same_size: bool,
    /// What becomes of a group of which members never arrive.
    pub partial: Partial,
    /// How long a group waits for its next member once half of them are there.
    pub quiet: Option<Duration>,
    /// How many scored groups a join remembers.
    pub remember: usize,
}

/// The components of one recipe.
#[derive(Debug)]
pub struct Branch {
    /// The recipe's name.
    pub name: String,
    /// Its components, in the order in which they were written.
    pub components: Vec<Component>,
    /// What composition must know of them, side by side with `components`.
    pub parts: Vec<Part>,
    /// How their values are put together.
    pub combine: Combine,
    /// The component that says whether an answer is right, and from which value on.
    pub right_from: Option<(usize, f64)>,
    /// How the total is spread over the turns of a conversation.
    pub turn_rewards: Option<TurnRewards>,
}

/// A reward under a name of its own, ready to score.
#[derive(Debug)]
pub struct Component {
    /// The name in the recipe, and of the column.
    pub name: String,
    /// The name of the reward in the registry.
    pub reward: String,
    /// What it does to the total when it is low.
    pub gate: Option<Gate>,
    /// What a response that breaks a limit gets.
    pub floor: f64,
    /// Which part of a response it reads, where it has a choice.
    pub reads: Option<String>,
    /// Whether it scores the state after each turn as well.
    pub per_turn: bool,
    /// From which value on it says that an answer is right, where it does.
    pub right_from: Option<f64>,
    /// The loaded reward.
    pub scorer: Scorer,
    /// The judge that it asks, as its place in the plan, and the one that gives it a prior.
    pub asks: Option<(usize, Option<usize>)>,
}

/// Which branch a rollout takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The keys that lead from `extra` to each field that may decide, in the order in which they are asked.
    pub by: Vec<Vec<String>>,
    /// Values of such a field and the branches that they lead to.
    pub cases: Vec<(String, usize)>,
    /// The branch of every other value; `None` where such a rollout is invalid.
    pub default: Option<usize>,
}

/// How many responses a component can compare at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLimit {
    /// The component.
    pub component: String,
    /// Its aggregate.
    pub method: &'static str,
    /// The most responses of a group. Where the reference takes part, its place is taken off already.
    pub limit: usize,
}

impl Plan {
    /// Whether some component compares with references.
    pub fn needs_reference(&self) -> bool {
        let needs = |component: &Component| {
            RewardEntry::find(&component.reward).is_some_and(RewardEntry::needs_reference)
        };
        self.branches.iter().flat_map(|branch| &branch.components).any(needs)
    }

    /// The branch that a rollout takes.
    pub fn branch(&self, rollout: &Rollout<'_>) -> Option<usize> {
        let Some(route) = &self.route else { return Some(0) };
        let case = |path: &Vec<String>| {
            let value = rollout.field(path)?;
            route.cases.iter().find(|(name, _)| *name == value)
        };
        route.by.iter().find_map(case).map(|(_, branch)| *branch).or(route.default)
    }

    /// Why no branch takes a rollout: the fields that were asked, with what stands there.
    pub(crate) fn no_route(&self, rollout: &Rollout<'_>) -> Reason {
        /// The most characters of a value that are told.
        const TOLD: usize = 60;
        let by = self.route.iter().flat_map(|route| &route.by);
        let fields = by.map(|path| match rollout.field(path) {
            Some(value) => {
                let told: String = value.chars().take(TOLD).collect();
                format!("extra.{} is {told:?}", path.join("."))
            }
            None => format!("extra.{} is not there", path.join(".")),
        });
        let fields: Vec<String> = fields.collect();
        Reason::new(Code::NoRoute, format!("No case of the route fits: {}.", fields.join(", ")))
    }

    /// Whether some component looks at the group as a whole.
    pub fn compares_groups(&self) -> bool {
        let normalizes = |branch: &Branch| branch.parts.iter().any(|part| part.normalize.is_some());
        let components = self.branches.iter().flat_map(|branch| &branch.components);
        components.into_iter().any(|component| component.scorer.compares())
            || self.branches.iter().any(normalizes)
    }

    /// The rewards that run programs.
    pub fn code_rewards(&self) -> impl Iterator<Item = &Arc<CodeReward>> {
        let components = self.branches.iter().flat_map(|branch| &branch.components);
        components.filter_map(|component| match &component.scorer {
            Scorer::Code(reward) => Some(reward),
            _ => None,
        })
    }

    /// The component that takes the smallest groups, where there is a limit.
    pub fn group_limit(&self) -> Option<GroupLimit> {
        let components = self.branches.iter().flat_map(|branch| &branch.components);
        let limits = components.filter_map(|component| {
            let Scorer::Judged(reward) = &component.scorer else { return None };
            let largest = reward.method.largest();
            (reward.compares() && largest < usize::MAX).then(|| GroupLimit {
                component: component.name.clone(),
                method: reward.method.name(),
                limit: largest - usize::from(self.validates),
            })
        });
        limits.min_by_key(|limit| limit.limit)
    }

    /// Which part of a response each component reads, where it has a choice.
    pub fn scopes(&self) -> BTreeMap<String, String> {
        let components = self.branches.iter().flat_map(|branch| &branch.components);
        components.filter_map(|one| Some((one.name.clone(), one.reads.clone()?))).collect()
    }

    /// The names of all columns, each once, in the order in which they first appear.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for component in self.branches.iter().flat_map(|branch| &branch.components) {
            if !names.contains(&component.name.as_str()) {
                names.push(component.name.as_str());
            }
        }
        names
    }
}
