//! Totals: one number a row, made of the outcomes of its components, with normalisation, gates and turn rewards.

use crate::compose::turn_rewards::TurnRewards;
use crate::compose::{self, Cause, Combine, Total};
use crate::outcome::{Outcome, Score};
use crate::plan::{Branch, Gate, Plan};
use crate::reason::{Code, Reason};
use crate::report::Row;

/// Makes the totals of a group.
pub(super) fn set_totals(plan: &Plan, rows: &mut [Row]) {
    for (index, branch) in plan.branches.iter().enumerate() {
        for (at, _) in branch.parts.iter().enumerate().filter(|(_, part)| part.normalize.is_some()) {
            let value = |row: &Row| match row.branch == Some(index) {
                true => row.outcomes[at].as_ref().and_then(Outcome::value),
                false => None,
            };
            let values: Vec<Option<f64>> = rows.iter().map(value).collect();
            for (row, value) in rows.iter_mut().zip(compose::normalized(&values)) {
                if let Some(value) = value {
                    row.details_mut().normalized.push((at, value));
                }
            }
        }
    }
    rows.iter_mut().for_each(|row| set_total(plan, row));
}

/// Makes the total of a row out of its outcomes, and says whether the answer is right.
fn set_total(plan: &Plan, row: &mut Row) {
    let Some(branch) = row.branch.map(|index| &plan.branches[index]) else { return };
    if row.closed_by().is_none() {
        branch.set_first_of(&mut row.outcomes);
    }
    let gate = row.closed_by().and_then(|at| Some((at, branch.components[at].gate?)));
    row.total = match gate {
        Some((at, gate)) => closed_total(branch, &row.outcomes, at, gate),
        None => {
            let normalized = row.details.as_ref().map_or(&[][..], |details| &details.normalized);
            let outcomes = row.outcomes.iter().map(Option::as_ref);
            compose::total(branch.combine, &branch.parts, outcomes, normalized)
        }
    };
    row.correct = branch.right_from.and_then(|(at, right)| match row.outcomes[at].as_ref()? {
        Outcome::Scored { value, .. } => Some(value.get() >= right),
        // The model's own output broke a limit.
        Outcome::Floored { .. } => Some(false),
        Outcome::Skipped(_) | Outcome::Invalid(_) => None,
    });
    if let Some(turn_rewards) = branch.turn_rewards {
        set_turn_rewards(branch, turn_rewards, row);
    }
}

/// Spreads the total of a row over the model's turns.
fn set_turn_rewards(branch: &Branch, turn_rewards: TurnRewards, row: &mut Row) {
    let Some(total) = row.total.value() else { return };
    let whole = match branch.combine {
        Combine::Sum => 1.0,
        Combine::Mean => branch.parts.iter().map(|part| part.weight).sum(),
    };
    let details = row.details_mut();
    if details.turns == 0 {
        // The model has no turn that could get anything.
        return;
    }
    let weighed = |(at, states): &(usize, Vec<Option<f64>>)| {
        let weight = branch.parts[*at].weight / whole;
        states.iter().map(|state| state.map(|state| state * weight)).collect()
    };
    let states: Vec<Vec<Option<f64>>> = details.states.iter().map(weighed).collect();
    details.turn_rewards = Some(turn_rewards.spread(total, details.turns, &states));
}

/// The total of a rollout whose gate is closed: what the recipe says, or what the gates that were asked give.
fn closed_total(branch: &Branch, outcomes: &[Option<Outcome>], at: usize, gate: Gate) -> Total {
    let cause = |reason: Reason| Cause { reason, component: Some(at) };
    if let Some(Outcome::Invalid(reason)) = &outcomes[at] {
        return Total::Invalid(cause(reason.clone()));
    }
    let closed = cause(Reason::new(Code::GateClosed, "The component is below its gate."));
    let own =
        || compose::total(branch.combine, &branch.parts, outcomes.iter().map(Option::as_ref), &[]).value();
    match gate.total.or_else(own).and_then(Score::new) {
        Some(value) => Total::Floored(value, closed),
        None => Total::Skipped(closed),
    }
}
