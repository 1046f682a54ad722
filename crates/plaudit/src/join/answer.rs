//! The answer to one caller of a join, and the guarantee that it is delivered exactly once.

use crate::exec::TraceSpan;
use crate::plan::Plan;
use crate::reason::Code;
use crate::report::{Report, Row, mean_of_known};
use crate::rollout::Rollout;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What one caller gets.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The report of those who were scored together; of this rollout alone where it was not scored with others.
    pub report: Arc<Report>,
    /// The place of this rollout's row in the report.
    pub at: usize,
    /// How many members of the group had arrived when it was scored.
    pub group_size: usize,
    /// Whether members of the group had not arrived by then.
    pub partial: bool,
    /// Whether this rollout came after its group had been closed.
    pub late: bool,
    /// Whether a member of the same name had come before it.
    pub duplicate: bool,
    /// How long it waited for its group.
    pub waited: Duration,
    /// The totals of siblings that are not in the report.
    pub(super) others: Vec<Option<f64>>,
}

impl Joined {
    /// What the engine says of the rollout.
    pub fn row(&self) -> &Row {
        &self.report.rows[self.at]
    }

    /// The totals of the siblings that are known, none for one that has no number.
    pub fn siblings(&self) -> impl Iterator<Item = Option<f64>> {
        let rows = self.report.rows.iter().enumerate().filter(|(at, _)| *at != self.at);
        rows.map(|(_, row)| row.total.value()).chain(self.others.iter().copied())
    }

    /// The mean of the siblings that have a total; none where no sibling has one.
    pub fn siblings_mean(&self) -> Option<f64> {
        mean_of_known(self.siblings())
    }

    /// Whether the same rollout may be handed in again with better luck.
    pub fn may_retry(&self) -> bool {
        self.row().total.cause().is_some_and(|cause| cause.reason.code == Code::Overloaded)
    }
}

/// What is done with an answer.
pub type Deliver = Box<dyn FnOnce(Joined) + Send>;

/// A caller that is answered exactly once: if all else fails, when it is dropped.
pub(super) struct Caller {
    deliver: Option<Deliver>,
    plan: Arc<Plan>,
    /// The step of the caller's, where steps are traced.
    pub(super) span: Option<Arc<dyn TraceSpan>>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Caller")
    }
}

impl Caller {
    pub(super) fn new(plan: &Arc<Plan>, span: Option<Arc<dyn TraceSpan>>, deliver: Deliver) -> Self {
        Self { deliver: Some(deliver), plan: Arc::clone(plan), span }
    }

    /// Delivers the answer. A panic of the caller's callback is caught.
    pub(super) fn answer(mut self, joined: Joined) {
        self.deliver(joined);
    }

    fn deliver(&mut self, joined: Joined) {
        if let Some(deliver) = self.deliver.take() {
            drop(catch_unwind(AssertUnwindSafe(|| deliver(joined))));
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.deliver.is_some() {
            let report = Report::refused(Arc::clone(&self.plan), &[Rollout::new("")], Code::Panic);
            self.deliver(Joined {
                report: Arc::new(report),
                at: 0,
                group_size: 0,
                partial: false,
                late: false,
                duplicate: false,
                waited: Duration::ZERO,
                others: Vec::new(),
            });
        }
    }
}
