//! Join policy (timeouts and limits), the input of a caller, and the join's status counters.

use crate::exec::TraceSpan;
use crate::group::Partial;
use crate::plan::Plan;
use crate::rollout::Rollout;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How a join waits, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// How long a group waits for its members, from the first.
    pub timeout: Duration,
    /// How long it waits for the next one once half of them are there.
    pub quiet: Option<Duration>,
    /// What becomes of it if members never arrive.
    pub partial: Partial,
    /// How long a rollout keeps its place in an open group after its caller has gone away.
    pub away: Duration,
    /// How many scored groups are remembered with their text.
    pub remember: usize,
    /// How many bytes those may take.
    pub remember_bytes: usize,
    /// How many callers may wait.
    pub most_waiting: usize,
    /// How many bytes their rollouts may take.
    pub most_bytes: usize,
}

impl Policy {
    /// What a recipe says.
    pub fn of(plan: &Plan) -> Self {
        Self {
            timeout: plan.groups.timeout,
            quiet: plan.groups.quiet,
            partial: plan.groups.partial,
            // The slowest client that asks again waits 31 s.
            away: Duration::from_secs(120),
            remember: plan.groups.remember,
            remember_bytes: 256 << 20,
            most_waiting: 1_000_000,
            most_bytes: 4 << 30,
        }
    }
}

/// One rollout that is handed in.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The group's key, which becomes the rollout's group.
    pub group: String,
    /// The rollout's name in its group, by which it is known when it is handed in twice.
    pub member: Option<String>,
    /// How many members the group has.
    pub size: usize,
    /// How long the caller waits for the group, where that is less than the policy says.
    pub timeout: Option<Duration>,
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said here.
    pub validate: Option<bool>,
    /// The rollout.
    pub rollout: Rollout<'static>,
    /// The step of the caller's that it belongs to, where steps are traced. The scoring of a group is a step of the member that came last.
    pub span: Option<Arc<dyn TraceSpan>>,
}

impl Arrival {
    /// A rollout without a name of its own, in a group of so many.
    pub fn new(group: impl Into<String>, size: usize, rollout: Rollout<'static>) -> Self {
        Self { group: group.into(), member: None, size, timeout: None, validate: None, rollout, span: None }
    }
}

/// Where a join stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Groups that wait for members.
    pub open: usize,
    /// Callers that wait for an answer.
    pub waiting: usize,
    /// About how many bytes their rollouts take.
    pub bytes: usize,
    /// Scored groups that are remembered with their text.
    pub remembered: usize,
    /// Rollouts that have been scored.
    pub scored: u64,
    /// Groups that were closed before they were complete.
    pub partial: u64,
    /// Rollouts that came after their group was closed.
    pub late: u64,
    /// Rollouts of which a member of the same name had come before.
    pub duplicates: u64,
    /// Rollouts that were answered without being scored.
    pub refused: u64,
}
