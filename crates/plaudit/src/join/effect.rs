//! What is to be done? What the roster asks of whoever runs it: begin, score, tell, count.

use super::gathering::{Held, Name, Waiter};
use crate::engine::Prescored;
use crate::reason::Code;
use crate::report::Report;
use std::sync::Arc;
use std::time::Duration;

/// Something that is to be done.
#[derive(Debug)]
pub(super) enum Effect<C> {
    /// Begin with a rollout that waits for its group.
    Begin(Held, Prescored, Option<bool>),
    /// Score rollouts together, and say so by `Roster::scored`.
    Score(Batch<C>),
    /// Tell a caller.
    Answer(C, Answer),
    /// Count a group whose members were scored one by one: the reports with their rows.
    Count(Vec<Arc<Report>>),
}

/// Rollouts that are scored together.
#[derive(Debug)]
pub(super) struct Batch<C> {
    pub(super) rollouts: Vec<Held>,
    /// What has been begun of them, side by side with them, or nothing.
    pub(super) begun: Vec<Prescored>,
    pub(super) validate: Option<bool>,
    pub(super) ticket: Ticket<C>,
}

/// What the roster is told with when a batch has been scored.
#[derive(Debug)]
pub(super) struct Ticket<C> {
    pub(super) name: Name,
    pub(super) kind: Kind,
    /// Who is told, and the place of each in its group.
    pub(super) waiters: Vec<(usize, Waiter<C>)>,
    pub(super) facts: Facts,
}

/// Why rollouts are scored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They are a group.
    Whole,
    /// The last of them came after its group had been closed.
    Late,
    /// It is one alone, because nothing is compared.
    Alone,
    /// It is one of a group of which only the name is known.
    Stray,
}

/// What a caller is told.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) said: Said,
    pub(super) facts: Facts,
    /// The totals of siblings that are not in the report.
    pub(super) others: Vec<Option<f64>>,
}

/// What is said of a rollout.
#[derive(Debug)]
pub(super) enum Said {
    /// The row of a report.
    Row(Arc<Report>, usize),
    /// That it is not scored.
    Refused(Held, Code),
}

/// How a rollout came to its answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub(super) group_size: usize,
    pub(super) partial: bool,
    pub(super) late: bool,
    pub(super) duplicate: bool,
    pub(super) waited: Duration,
}
