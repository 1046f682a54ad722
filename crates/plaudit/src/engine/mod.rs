//! How do rollouts become a report? The main path: gather groups, score them in parallel, compose, report.

mod custom;
mod judged;
mod prescore;
mod rules;
mod submit;

pub use crate::judge::runner::{EngineOptions, SharedResources};
pub use prescore::Prescored;

use crate::compose::{self, Cause, Total};
use crate::error::RunError;
use crate::exec::{CancelToken, Clock, Monotonic, Pool};
use crate::group::{self, Group, Key};
use crate::judge::client::Tally;
use crate::judge::findings::Findings;
use crate::judge::runner::{CallTranscript, CostEstimate, JudgeRunner, JudgeUsage};
use crate::outcome::{Outcome, Score};
use crate::plan::{Branch, Gate, GroupLimit, Plan};
use crate::reason::{Code, Reason};
use crate::report::{Report, Row};
use crate::rollout::Rollout;
use std::borrow::Borrow;
use std::sync::Arc;

/// What a caller may ask of one call, beside the recipe.
#[derive(Debug, Clone, Default)]
pub struct ScoreOptions {
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said here.
    pub validate: Option<bool>,
    /// What the caller lets go of the call with. Once it is raised, the call comes back within 100 ms; what had no
    /// outcome by then is invalid.
    pub cancel: Option<CancelToken>,
}

/// What is scored at once.
struct Batch<'b, R> {
    rollouts: &'b [R],
    /// What has been begun of them, side by side with them; none where nothing has.
    begun: &'b [Prescored],
    terms: &'b ScoreOptions,
}

/// A loaded recipe that scores rollouts. Starts no thread before the first batch that needs one.
#[derive(Debug)]
pub struct Engine {
    plan: Arc<Plan>,
    clock: Arc<dyn Clock>,
    pool: Arc<Pool>,
    runner: Option<Arc<JudgeRunner>>,
}

impl Engine {
    /// An engine for a plan, without a journal and without keys.
    pub fn new(plan: Plan) -> Result<Self, RunError> {
        Self::open(plan, &EngineOptions::default())
    }

    /// An engine for a plan, with what its judges need.
    pub fn open(plan: Plan, setup: &EngineOptions<'_>) -> Result<Self, RunError> {
        let own = || Arc::new(Pool::new(plan.groups.parallel));
        let pool = setup.shared.as_ref().map_or_else(own, |shared| shared.pool());
        let runner = JudgeRunner::new(&plan, setup)?.map(Arc::new);
        Ok(Self { plan: Arc::new(plan), clock: Arc::new(Monotonic::start()), pool, runner })
    }

    /// The same engine, which takes its time from a clock of the caller's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// What the engine does.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The component that takes the smallest groups, where there is a limit. A larger group is invalid with
    /// `group.too_large`, and no judge is asked about it; a trainer that knows its group size can refuse it at the start.
    pub fn group_limit(&self) -> Option<GroupLimit> {
        self.plan.group_limit()
    }

    /// The same, for whoever holds on to it.
    pub(crate) fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// Where it takes its time from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The threads that groups are scored on, for a front that has work of the same kind.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// What the judges have been asked so far, in the order of the plan.
    pub fn tallies(&self) -> Vec<Tally> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.tallies())
    }

    /// What this engine has asked since the last time that this was asked, in the order of the plan.
    pub fn take_usage(&self) -> Vec<JudgeUsage> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.take_usage())
    }

    /// How many of its questions judges have answered so far, so that who waits can tell whether it goes on.
    pub fn answered(&self) -> u64 {
        self.runner.as_ref().map_or(0, |runner| runner.answered())
    }

    /// What would be asked, where the engine was set up to count only.
    pub fn estimates(&self) -> Vec<CostEstimate> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.estimates())
    }

    /// Lets no further call to a judge begin; what is in flight is still answered and kept.
    pub fn stop(&self) {
        if let Some(runner) = &self.runner {
            runner.stop();
        }
    }

    /// Lets no further call to a judge begin and waits for none: what is in flight may have been paid for, and is not
    /// kept.
    pub fn abandon(&self) {
        if let Some(runner) = &self.runner {
            runner.abandon();
        }
    }

    /// Scores a batch. The rows of the report stand in the order of the rollouts, and are the same at any
    /// parallelism.
    pub fn score(&self, rollouts: &[Rollout<'_>]) -> Result<Report, RunError> {
        self.score_with(rollouts, &ScoreOptions::default())
    }

    /// Scores a batch on terms of the caller's own.
    pub fn score_with(&self, rollouts: &[Rollout<'_>], terms: &ScoreOptions) -> Result<Report, RunError> {
        self.score_inner(rollouts, terms, None)
    }

    /// Scores a batch and tells every call to a judge that was made for it.
    pub fn explain(
        &self,
        rollouts: &[Rollout<'_>],
        terms: &ScoreOptions,
    ) -> Result<(Report, Vec<CallTranscript>), RunError> {
        let mut exchanges = Vec::new();
        let report = self.score_inner(rollouts, terms, Some(&mut exchanges))?;
        Ok((report, exchanges))
    }

    fn score_inner(
        &self,
        rollouts: &[Rollout<'_>],
        terms: &ScoreOptions,
        told: Option<&mut Vec<CallTranscript>>,
    ) -> Result<Report, RunError> {
        let groups = self.gather(rollouts)?;
        let batch = Batch { rollouts, begun: &[], terms };
        let mut rule_results = self.pool.map(&groups, |group| self.score_group(&batch, group));
        self.score_custom(rollouts, &groups, &mut rule_results);
        let (scored, findings) = self.judge(rule_results, terms, told);
        self.report(rollouts, groups, scored, &findings)
    }

    /// The groups of a batch, where the recipe takes them as they are.
    fn gather<'r, R: Borrow<Rollout<'r>>>(&self, rollouts: &[R]) -> Result<Vec<Group>, RunError> {
        let groups = group::gather(rollouts);
        if self.plan.groups.same_size {
            refuse_uneven(rollouts, &groups)?;
        }
        Ok(groups)
    }

    /// The report of groups of which everything has been said.
    fn report<'r, R: Borrow<Rollout<'r>>>(
        &self,
        rollouts: &[R],
        groups: Vec<Group>,
        mut scored: Vec<Vec<Row>>,
        findings: &[(String, Findings)],
    ) -> Result<Report, RunError> {
        scored.iter_mut().flatten().for_each(|row| self.set_total(row));
        Report::new(Arc::clone(&self.plan), rollouts, groups, scored, findings)
    }

    /// The report of rollouts that cannot be scored, such as those that come after their group has been.
    pub fn refuse<'r, R: Borrow<Rollout<'r>>>(&self, rollouts: &[R], code: Code) -> Report {
        Report::refused(Arc::clone(&self.plan), rollouts, code)
    }

    /// Makes the total of a row out of its outcomes.
    fn set_total(&self, row: &mut Row) {
        let Some(branch) = row.branch.map(|index| &self.plan.branches[index]) else { return };
        let gate = row.closed_by.and_then(|at| Some((at, branch.components[at].gate?)));
        row.total = match gate {
            Some((at, gate)) => closed_total(branch, &row.outcomes, at, gate),
            None => compose::total(branch.combine, &branch.parts, row.outcomes.iter().map(Option::as_ref)),
        };
    }
}

/// The total of a rollout whose gate is closed: what the recipe says, or what the gates that were asked give.
fn closed_total(branch: &Branch, outcomes: &[Option<Outcome>], at: usize, gate: Gate) -> Total {
    let cause = |reason: Reason| Cause { reason, component: Some(at) };
    if let Some(Outcome::Invalid(reason)) = &outcomes[at] {
        return Total::Invalid(cause(reason.clone()));
    }
    let closed = cause(Reason::new(Code::GateClosed, "The component is below its gate."));
    let own = || compose::total(branch.combine, &branch.parts, outcomes.iter().map(Option::as_ref)).value();
    match gate.total.or_else(own).and_then(Score::new) {
        Some(value) => Total::Floored(value, closed),
        None => Total::Skipped(closed),
    }
}

fn refuse_uneven<'r, R: Borrow<Rollout<'r>>>(rollouts: &[R], groups: &[Group]) -> Result<(), RunError> {
    let Some((usual, odd)) = group::uneven(groups) else { return Ok(()) };
    let name = |at: usize| {
        let first = groups[at].members[0];
        let key = Key::of(rollouts[first].borrow()).map(|key| key.label().into_owned());
        key.unwrap_or_else(|| format!("rollout {}", first + 1))
    };
    Err(RunError::UnevenGroups { usual, odd: odd.into_iter().map(|(at, size)| (name(at), size)).collect() })
}
