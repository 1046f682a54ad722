//! Effects: what the join's state machine asks its runner to do (prescore, score, answer, count).

use super::group::{GroupId, SharedRollout, WaitingCaller};
use crate::engine::Prescored;
use crate::reason::Code;
use crate::report::Report;
use std::sync::Arc;
use std::time::Duration;

/// Something that is to be done.
#[derive(Debug)]
pub(super) enum Effect<C> {
    /// Begin with a rollout that waits for its group.
    Prescore(SharedRollout, Prescored, Option<bool>),
    /// Score rollouts together, and say so by `JoinState::scored`.
    Score(ScoreBatch<C>),
    /// Tell a caller.
    Answer(C, MemberAnswer),
    /// Count a group whose members were scored one by one: the reports with their rows.
    Count(Vec<Arc<Report>>),
}

impl<C> Effect<C> {
    /// Tells a caller that its rollout is not scored.
    pub(super) fn refuse(caller: C, rollout: SharedRollout, code: Code, info: JoinInfo) -> Self {
        let result = MemberResult::Refused(rollout, code);
        Self::Answer(caller, MemberAnswer { result, info, others: Vec::new() })
    }

    /// Scores rollouts of which nothing has been prescored.
    pub(super) fn score(
        rollouts: Vec<SharedRollout>,
        validate: Option<bool>,
        target: BatchTarget<C>,
    ) -> Self {
        Self::Score(ScoreBatch { rollouts, prescored: Vec::new(), validate, target })
    }
}

/// Rollouts that are scored together.
#[derive(Debug)]
pub(super) struct ScoreBatch<C> {
    pub(super) rollouts: Vec<SharedRollout>,
    /// What has been prescored of them, side by side with them, or nothing.
    pub(super) prescored: Vec<Prescored>,
    pub(super) validate: Option<bool>,
    pub(super) target: BatchTarget<C>,
}

/// What identifies a batch once it has been scored.
#[derive(Debug)]
pub(super) struct BatchTarget<C> {
    pub(super) name: GroupId,
    pub(super) kind: BatchKind,
    /// The callers to answer, and the index of each in its group.
    pub(super) waiters: Vec<(usize, WaitingCaller<C>)>,
    pub(super) info: JoinInfo,
}

/// Why rollouts are scored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchKind {
    /// They are a group.
    Whole,
    /// The last of them came after its group had been closed.
    Late,
    /// It is one alone, because nothing is compared.
    Alone,
    /// It is one of a group of which only the name is known.
    Stray,
}

/// The answer to one caller.
#[derive(Debug)]
pub(super) struct MemberAnswer {
    pub(super) result: MemberResult,
    pub(super) info: JoinInfo,
    /// The totals of siblings that are not in the report.
    pub(super) others: Vec<Option<f64>>,
}

/// What is result of a rollout.
#[derive(Debug)]
pub(super) enum MemberResult {
    /// The row of a report.
    Row(Arc<Report>, usize),
    /// That it is not scored.
    Refused(SharedRollout, Code),
}

/// How a rollout came to its answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JoinInfo {
    pub(super) group_size: usize,
    pub(super) partial: bool,
    pub(super) late: bool,
    pub(super) duplicate: bool,
    pub(super) waited: Duration,
}
