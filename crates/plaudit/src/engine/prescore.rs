//! Prescoring: scores what looks at one rollout alone when it arrives, before its group is complete.
//!
//! Rule outcomes are kept in the row. Pointwise judges are asked too, and programs are run; the later request of the group has
//! an identical prompt or program, so it is a cache hit or joins the call in flight. Prescoring does not change results.

use super::judged::build_judge_tasks;
use super::rules::GroupScorer;
use crate::code::task::CodeTask;
use crate::judge::group_view::Member;
use crate::judge::runner::JudgeTask;
use crate::plan::{Component, Plan, Scorer};
use crate::report::Row;
use crate::rollout::Rollout;
use crate::rule::RuleInput;
use crate::rule::reference_view::ReferenceView;
use crate::text::Text;
use std::sync::{Arc, OnceLock};

/// The early result of a rollout that still waits for its group. It is empty at first.
#[derive(Debug, Clone, Default)]
pub struct Prescored(Arc<OnceLock<Row>>);

impl Prescored {
    /// The row, where the work is done.
    pub(super) fn row(&self) -> Option<&Row> {
        self.0.get()
    }

    /// Whether the rules have been applied.
    pub fn is_done(&self) -> bool {
        self.0.get().is_some()
    }

    /// Whether somebody still holds it to read it: if not, the group has been scored in the meantime.
    pub(super) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Scores a rollout alone, and returns the judge tasks and the programs, which need no group.
    pub(super) fn fill(
        &self,
        scorer: &GroupScorer<'_>,
        rollout: &Rollout<'_>,
    ) -> (Vec<JudgeTask>, Vec<CodeTask>) {
        let text = Text::of(rollout);
        let reference = ReferenceView::of(rollout);
        let sample = RuleInput::of(rollout, &text, reference.as_ref());
        let limit = scorer.limit();
        let row = scorer.score_alone(rollout, &sample, &limit);
        let none = || (Vec::new(), Vec::new());
        if limit.reached().is_some() {
            return none();
        }
        let mut rows = [row.clone()];
        // It cannot have been set before, because only this job holds it to be filled.
        let _ = self.0.set(row);
        let Some(index) = rows[0].branch else { return none() };
        let programs = scorer.programs(&[sample], &mut rows).into_iter().map(|(_, task)| task).collect();
        let members = [Member { rollout, text: &text }];
        let alone = |component: &Component| asks_alone(scorer.plan, component);
        let tasks = build_judge_tasks(scorer, index, &members, &mut rows, alone);
        (tasks.into_iter().map(|(_, task)| task).collect(), programs)
    }
}

/// Whether a component asks a remote judge about one response at a time.
fn asks_alone(plan: &Plan, component: &Component) -> bool {
    let Scorer::Judged(reward) = &component.scorer else { return false };
    let remote = |(judge, _): (usize, Option<usize>)| !plan.judges[judge].config.kind.is_local();
    !reward.compares() && component.asks.is_some_and(remote)
}
