//! Eligibility: whether a component is asked about a row. It is the one check of rules, programs, custom rewards and judges.

use crate::outcome::Outcome;
use crate::plan::{Branch, Component, Plan, Scorer};
use crate::reason::{Code, Reason};
use crate::report::Row;

/// A component of a plan, and where it stands in it.
#[derive(Clone, Copy)]
pub(super) struct ComponentRef<'p> {
    plan: &'p Plan,
    /// The place of its branch in the plan.
    index: usize,
    branch: &'p Branch,
    /// Its place in the branch.
    pub(super) at: usize,
    pub(super) component: &'p Component,
}

impl<'p> ComponentRef<'p> {
    /// The components of a branch.
    pub(super) fn of_branch(plan: &'p Plan, index: usize) -> impl Iterator<Item = Self> {
        let branch = &plan.branches[index];
        let place = move |(at, component)| Self { plan, index, branch, at, component };
        branch.components.iter().enumerate().map(place)
    }

    /// The components of all branches.
    pub(super) fn all(plan: &'p Plan) -> impl Iterator<Item = Self> {
        (0..plan.branches.len()).flat_map(|index| Self::of_branch(plan, index))
    }

    /// A component by its place in the branch of a row; none where the row has no branch.
    pub(super) fn of_row(plan: &'p Plan, row: &Row, at: usize) -> Option<Self> {
        let index = row.branch?;
        let branch = &plan.branches[index];
        Some(Self { plan, index, branch, at, component: &branch.components[at] })
    }

    /// Whether the component is asked about a row. It is not where the row takes another branch or none, as one that panicked
    /// does, nor where a gate is closed. Where the response is too long, or a cheaper component of a `first_of` says right, the
    /// row gets the outcome of that. `size` is that of the response in bytes.
    pub(super) fn is_asked(&self, row: &mut Row, size: impl FnOnce() -> usize) -> bool {
        if row.branch != Some(self.index) || row.closed_by().is_some() {
            return false;
        }
        let settled = self.is_costly() && self.branch.is_settled(self.at, &row.outcomes);
        let refused = match settled {
            true => Some(Outcome::skipped(Code::Settled)),
            false => self.too_long(size()),
        };
        let asked = refused.is_none();
        if let Some(outcome) = refused {
            self.set_outcome(row, outcome);
        }
        asked
    }

    /// The members of a group that the component is asked about, as places in `rows`.
    pub(super) fn asked(&self, rows: &mut [Row], size: impl Fn(usize) -> usize) -> Vec<usize> {
        let rows = rows.iter_mut().enumerate();
        rows.filter_map(|(at, row)| self.is_asked(row, || size(at)).then_some(at)).collect()
    }

    /// What a response of so many bytes gets that is too long for the component; none where it is not.
    pub(super) fn too_long(&self, size: usize) -> Option<Outcome> {
        let limit = self.plan.longest_response;
        if size <= limit || self.component.scorer.properties().any_length {
            return None;
        }
        let message = format!("The response is longer than the limit of {limit} bytes.");
        Some(Outcome::floored(self.component.floor, Reason::new(Code::ModelTooLong, message)))
    }

    /// The same outcome with the floor of the component: the recipe may have set another than the reward's own.
    pub(super) fn with_floor(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Floored { reason, .. } => Outcome::floored(self.component.floor, reason),
            other => other,
        }
    }

    /// Puts an outcome into a row, with the floor of the component, and closes its gate where the value is low.
    pub(super) fn set_outcome(&self, row: &mut Row, outcome: Outcome) {
        let outcome = self.with_floor(outcome);
        let closes = self.component.gate.is_some_and(|gate| match outcome.value() {
            Some(value) => value < gate.min,
            None => matches!(outcome, Outcome::Invalid(_)),
        });
        row.outcomes[self.at] = Some(outcome);
        if closes && row.closed_by().is_none() {
            row.details_mut().closed_by = Some(self.at);
        }
    }

    /// Whether it is not asked where a cheaper component has settled a `first_of`. A rule costs nothing, and its value is of use.
    const fn is_costly(&self) -> bool {
        matches!(self.component.scorer, Scorer::Code(_) | Scorer::Judged(_) | Scorer::Custom(_))
    }
}
