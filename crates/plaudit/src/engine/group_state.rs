//! The state of a group on the path of its batch: what is known of it, and what is to be asked about it next.

use super::code::CodeTarget;
use super::eligibility::ComponentRef;
use super::judged::{TaskOutcomes, TaskTarget};
use crate::code::executor::CodeResult;
use crate::code::task::CodeTask;
use crate::group::Group;
use crate::judge::runner::{CallTranscript, JudgeTask};
use crate::judge::stats::JudgeStats;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::reason::Code;
use crate::report::Row;
use crate::rollout::AsRollout;
use crate::statistics::code_tests::TestStats;

/// What is known of a group so far, and what is to be asked about it next.
#[derive(Default)]
pub(super) struct GroupState {
    /// One a member, in their order.
    pub(super) rows: Vec<Row>,
    /// Programs that are to be run before anything else is known.
    pub(super) programs: Vec<(CodeTarget, CodeTask)>,
    /// What the judges are to be asked.
    pub(super) tasks: Vec<(TaskTarget, JudgeTask)>,
    /// Statistics of tests, each with its component.
    pub(super) tests: Vec<(String, TestStats)>,
    /// Statistics of verdicts, each with its component.
    pub(super) verdicts: Vec<(String, JudgeStats)>,
    /// The judge calls, where they were asked for.
    pub(super) transcripts: Vec<CallTranscript>,
}

impl GroupState {
    /// Of a group whose rules panicked: every row is invalid.
    pub(super) fn panicked<R: AsRollout>(rollouts: &[R], group: &Group) -> Self {
        Self::of(group.members.iter().map(|member| Row::panicked(rollouts[*member].as_rollout())).collect())
    }

    /// Rows of which nothing more is to be asked.
    pub(super) fn of(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Puts what came of a program into its row, and counts its tests.
    pub(super) fn set_program(
        &mut self,
        plan: &Plan,
        (target, task): &(CodeTarget, CodeTask),
        found: &CodeResult,
    ) {
        let row = &mut self.rows[target.member];
        let Some(one) = ComponentRef::of_row(plan, row, target.component) else { return };
        let name = &one.component.name;
        let at = self.tests.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.tests.push((name.clone(), TestStats::default()));
            self.tests.len() - 1
        });
        let outcome = match found {
            Ok(stored) => {
                self.tests[at].1.observe(stored.results().iter().flatten());
                task.outcome(stored)
            }
            Err(reason) => Outcome::invalid(reason.clone()),
        };
        one.set_outcome(row, outcome);
    }

    /// Puts what came of a judge task into the rows of its members.
    pub(super) fn set_judged(&mut self, plan: &Plan, target: &TaskTarget, finished: TaskOutcomes) {
        let failed = |code: Code| (vec![Outcome::invalid(code); target.members.len()], JudgeStats::default());
        let (outcomes, found) = finished.unwrap_or_else(failed);
        let first = target.members.first().map(|member| &self.rows[*member]);
        if let Some(one) = first.and_then(|row| ComponentRef::of_row(plan, row, target.component)) {
            self.verdicts.push((one.component.name.clone(), found));
        }
        for (member, outcome) in target.members.iter().zip(outcomes) {
            let row = &mut self.rows[*member];
            if let Some(one) = ComponentRef::of_row(plan, row, target.component) {
                one.set_outcome(row, outcome);
            }
        }
    }
}
