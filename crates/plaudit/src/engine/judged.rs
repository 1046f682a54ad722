//! Builds judge tasks for a group, and writes their results back into the rows.

use super::batch::Batch;
use super::code::CodeTarget;
use super::eligibility::ComponentRef;
use super::rules::GroupScorer;
use crate::code::task::CodeTask;
use crate::error::RunError;
use crate::exec::CancelToken;
use crate::group::{Group, Key};
use crate::judge::JudgedReward;
use crate::judge::group_view::{GroupView, Member};
use crate::judge::rewards::params::Mode;
use crate::judge::runner::{CallTranscript, JudgeTask};
use crate::judge::session::JudgeSession;
use crate::judge::stats::JudgeStats;
use crate::outcome::Outcome;
use crate::plan::{Component, Plan, Scorer};
use crate::reason::Code;
use crate::report::Row;
use crate::rollout::AsRollout;
use crate::statistics::testing::TestStats;
use std::sync::Arc;

/// What is known of a group so far, and what is to be asked about it next.
pub(super) struct GroupState {
    /// One a member, in their order.
    pub(super) rows: Vec<Row>,
    pub(super) tasks: Vec<(TaskTarget, JudgeTask)>,
    /// Programs that are to be run before anything else is known.
    pub(super) programs: Vec<(CodeTarget, CodeTask)>,
    /// Statistics of their tests, each with its component.
    pub(super) tests: Vec<(String, TestStats)>,
}

impl GroupState {
    /// Of a group whose rules panicked: every row is invalid.
    pub(super) fn panicked<R: AsRollout>(rollouts: &[R], group: &Group) -> Self {
        Self::of(group.members.iter().map(|member| Row::panicked(rollouts[*member].as_rollout())).collect())
    }

    /// Rows of which nothing more is to be asked.
    pub(super) fn of(rows: Vec<Row>) -> Self {
        Self { rows, tasks: Vec::new(), programs: Vec::new(), tests: Vec::new() }
    }

    /// Takes in what followed once the programs of the group had been run.
    pub(super) fn completed(&mut self, other: Self) {
        (self.rows, self.tasks) = (other.rows, other.tasks);
    }
}

/// The component and the members that a task is about.
pub(super) struct TaskTarget {
    component: usize,
    members: Vec<usize>,
}

/// The tasks of a branch for a group, of those components that `which` chooses. An outcome that needs no judge goes into
/// its row at once.
pub(super) fn build_judge_tasks(
    scorer: &GroupScorer<'_>,
    index: usize,
    members: &[Member<'_>],
    rows: &mut [Row],
    which: impl Fn(&Component) -> bool,
) -> Vec<(TaskTarget, JudgeTask)> {
    let mut tasks = Vec::new();
    for one in ComponentRef::of_branch(scorer.plan, index).filter(|one| which(one.component)) {
        let settings = one.component;
        let (Scorer::Judged(reward), Some(asks), Some(secret)) =
            (&settings.scorer, settings.asks, scorer.secret)
        else {
            continue;
        };
        let asked = one.asked(rows, |member| members[member].text.size());
        let with_reference = scorer.options.validate.unwrap_or(scorer.plan.validates) && !reward.is_scalar();
        for part in split_by_prompt(reward, members, asked) {
            let chosen: Vec<Member<'_>> = part.iter().map(|member| members[*member]).collect();
            if let Some(outcome) = refuse_part(reward, &chosen, with_reference, members.len()) {
                part.iter().for_each(|member| one.set_outcome(&mut rows[*member], outcome.clone()));
                continue;
            }
            let view = GroupView::new(reward, &chosen, secret, with_reference);
            let session = JudgeSession::new(Arc::clone(reward), view);
            let group_name = || Key::of(chosen[0].rollout).map(|key| key.label().into_owned());
            let group = session.too_large().and_then(|_| group_name());
            let task = JudgeTask { component: settings.name.clone(), group, session, asks };
            tasks.push((TaskTarget { component: one.at, members: part }, task));
        }
    }
    tasks
}

/// The members that share a session: all of them where they are compared, else those with one prompt and reference.
fn split_by_prompt(reward: &JudgedReward, members: &[Member<'_>], asked: Vec<usize>) -> Vec<Vec<usize>> {
    if asked.is_empty() {
        return Vec::new();
    }
    if reward.params.mode != Mode::Pointwise {
        return vec![asked];
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for member in asked {
        let same = |part: &Vec<usize>| {
            let (ours, theirs) = (members[member].rollout, members[part[0]].rollout);
            ours.prompt == theirs.prompt && ours.reference == theirs.reference
        };
        // A group mostly has one prompt and one reference; a few are looked through, so that the work stays linear.
        let recent = parts.len().saturating_sub(4);
        match parts[recent..].iter_mut().find(|part| same(part)) {
            Some(part) => part.push(member),
            None => parts.push(vec![member]),
        }
    }
    parts
}

/// Why members cannot be put before a judge together, where that is so.
fn refuse_part(
    reward: &JudgedReward,
    members: &[Member<'_>],
    validates: bool,
    all: usize,
) -> Option<Outcome> {
    if !reward.compares() {
        return None;
    }
    let first = members.first()?.rollout;
    if members.iter().any(|member| member.rollout.prompt != first.prompt) {
        return Some(Outcome::invalid(Code::GroupMixed));
    }
    let with_reference = validates && first.reference.is_some();
    if members.len() + usize::from(with_reference) >= 2 {
        return None;
    }
    Some(if all < 2 { Outcome::invalid(Code::GroupTooSmall) } else { Outcome::skipped(Code::GroupTooSmall) })
}

/// Runs the judge tasks of all groups at once and writes their outcomes into the rows.
pub(super) async fn ask_judges<B: Batch>(batch: &B, states: Vec<GroupState>) -> Result<JudgedRows, RunError> {
    let engine = batch.engine();
    let (pending, tasks) = PendingJudgments::split(states);
    let (Some(runner), false) = (&engine.runner, tasks.is_empty()) else {
        return Ok(pending.apply(&engine.plan, Vec::new()));
    };
    let results = batch.receive(|reply| runner.spawn(tasks, batch.calls(), reply)).await;
    let mut results = results.ok_or(RunError::Panicked)?;
    let outputs = results.iter_mut().filter_map(|result| result.as_mut().ok());
    let transcripts = outputs.flat_map(|output| std::mem::take(&mut output.transcripts)).collect();
    // On the pool, because aggregation takes longer than the calls of other groups may wait for a thread of the runtime.
    let count = results.len();
    let finish = move |batch: &B, at: usize| -> TaskOutcomes {
        let cancel = batch.options().cancel.as_ref();
        match &results[at] {
            Ok(_) if cancel.is_some_and(CancelToken::is_cancelled) => Err(Code::Stopped),
            Ok(output) => Ok(output.session.finish()),
            Err(code) => Err(*code),
        }
    };
    let finished = batch.map(count, finish).await;
    Ok(JudgedRows { transcripts, ..pending.apply(&engine.plan, finished) })
}

/// What a task comes to: one outcome a member, or why there is none.
type TaskOutcomes = Result<(Vec<Outcome>, JudgeStats), Code>;

/// Groups whose tasks are with the judges.
struct PendingJudgments {
    /// The rows so far, group by group.
    rows: Vec<Vec<Row>>,
    /// The group and the target of each task.
    targets: Vec<(usize, TaskTarget)>,
    tests: Vec<(String, TestStats)>,
}

/// Rows with every outcome, group by group.
#[derive(Default)]
pub(super) struct JudgedRows {
    pub(super) rows: Vec<Vec<Row>>,
    /// Statistics of verdicts, each with its component.
    pub(super) stats: Vec<(String, JudgeStats)>,
    /// Statistics of tests, each with its component.
    pub(super) tests: Vec<(String, TestStats)>,
    /// The calls, where they were asked for.
    pub(super) transcripts: Vec<CallTranscript>,
}

impl PendingJudgments {
    /// Takes the tasks out of the groups, so that all run at once.
    fn split(states: Vec<GroupState>) -> (Self, Vec<JudgeTask>) {
        let rows = Vec::with_capacity(states.len());
        let mut pending = Self { rows, targets: Vec::new(), tests: Vec::new() };
        let mut tasks = Vec::new();
        for (group, state) in states.into_iter().enumerate() {
            pending.rows.push(state.rows);
            pending.tests.extend(state.tests);
            for (target, task) in state.tasks {
                pending.targets.push((group, target));
                tasks.push(task);
            }
        }
        (pending, tasks)
    }

    /// Writes what came of the tasks into the rows. A task of which nothing is known has panicked.
    fn apply(self, plan: &Plan, finished: Vec<Option<TaskOutcomes>>) -> JudgedRows {
        let Self { mut rows, targets, tests } = self;
        let mut stats = Vec::with_capacity(targets.len());
        for ((group, target), finished) in targets.into_iter().zip(finished) {
            let failed =
                |code: Code| (vec![Outcome::invalid(code); target.members.len()], JudgeStats::default());
            let (outcomes, found) = finished.unwrap_or(Err(Code::Panic)).unwrap_or_else(failed);
            let rows = &mut rows[group];
            for (member, outcome) in target.members.iter().zip(outcomes) {
                let row = &mut rows[*member];
                if let Some(one) = ComponentRef::of_row(plan, row, target.component) {
                    one.set_outcome(row, outcome);
                }
            }
            if let Some(branch) = target.members.first().and_then(|member| rows[*member].branch) {
                stats.push((plan.branches[branch].components[target.component].name.clone(), found));
            }
        }
        JudgedRows { rows, stats, tests, transcripts: Vec::new() }
    }
}
