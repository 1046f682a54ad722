//! Report: one row per rollout in input order, with every component's outcome, and the statistics.

use crate::compose::{Cause, Total};
use crate::error::RunError;
use crate::exec::Pool;
use crate::group::{Group, Key};
use crate::judge::stats::JudgeStats;
use crate::outcome::{Info, Outcome, OutcomeKind};
use crate::plan::Plan;
use crate::reason::{Code, Reason};
use crate::rollout::{AsRollout, Rollout};
use crate::statistics::Statistics;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What the engine says of one rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The recipe that scored it, as its place in the plan; none where no route fits.
    pub branch: Option<usize>,
    /// One outcome a component of that recipe; none for a component that a closed gate kept from being asked.
    pub outcomes: Vec<Option<Outcome>>,
    /// The one number, or why there is none.
    pub total: Total,
    /// Whether the answer is right; none where nothing says so.
    pub correct: Option<bool>,
    /// What only some recipes ask for.
    pub details: Option<Box<RowDetails>>,
    /// The length of the response in characters.
    pub characters: usize,
    /// Whether an identical rollout of the group was scored in its place.
    pub duplicate: bool,
}

/// What a row holds where a gate is closed, components are normalised, or turns have rewards. Few do, and a row is moved often.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowDetails {
    /// The component whose gate is closed.
    pub closed_by: Option<usize>,
    /// By component, the values that count in the place of its own.
    pub normalized: Vec<(usize, f64)>,
    /// The total spread over the model's turns.
    pub turn_rewards: Option<Vec<Option<f64>>>,
    /// By component, the scores after each turn.
    pub(crate) states: Vec<(usize, Vec<Option<f64>>)>,
    /// How many turns the model has.
    pub(crate) turns: usize,
}

impl Row {
    /// The component whose gate is closed.
    pub fn closed_by(&self) -> Option<usize> {
        self.details.as_ref()?.closed_by
    }

    /// The total spread over the model's turns, where the recipe asks for it.
    pub fn turn_rewards(&self) -> Option<&[Option<f64>]> {
        self.details.as_ref()?.turn_rewards.as_deref()
    }

    pub(crate) fn details_mut(&mut self) -> &mut RowDetails {
        self.details.get_or_insert_with(Box::default)
    }

    /// A row without outcomes.
    pub(crate) fn empty(branch: usize, components: usize, characters: usize) -> Self {
        let unasked = Cause { reason: Code::ZeroWeight.into(), component: None };
        Self {
            branch: Some(branch),
            outcomes: vec![None; components],
            total: Total::Invalid(unasked),
            correct: None,
            details: None,
            characters,
            duplicate: false,
        }
    }

    /// The row of a rollout that no component was asked about.
    pub(crate) fn refused(characters: usize, reason: impl Into<Reason>) -> Self {
        let total = Total::Invalid(Cause { reason: reason.into(), component: None });
        Self {
            branch: None,
            outcomes: Vec::new(),
            total,
            correct: None,
            details: None,
            characters,
            duplicate: false,
        }
    }

    /// The row of a rollout over which something panicked.
    pub(crate) fn panicked(rollout: &Rollout<'_>) -> Self {
        Self::refused(rollout.response.chars().count(), Code::Panic)
    }
}

/// About what one piece of evidence takes.
const FACT: usize = 64;

/// What the engine says of a batch.
#[derive(Debug)]
pub struct Report {
    /// What was done.
    pub plan: Arc<Plan>,
    /// One a rollout, in input order.
    pub rows: Vec<Row>,
    /// The groups that were scored together.
    pub groups: Vec<Group>,
    /// Over all rows and groups.
    pub statistics: Statistics,
}

impl Report {
    /// Counts the rows of the groups and puts them back into input order.
    pub(crate) fn new<R: AsRollout>(
        plan: Arc<Plan>,
        pool: &Pool,
        rollouts: &[R],
        groups: Vec<Group>,
        scored: Vec<Vec<Row>>,
        findings: &[(String, JudgeStats)],
    ) -> Result<Self, RunError> {
        let count = |part: &Range<usize>| {
            let mut statistics = Statistics::of(&plan);
            let needs_reference = plan.needs_reference();
            for (group, members) in groups[part.clone()].iter().zip(&scored[part.clone()]) {
                statistics.observe_group(members.iter());
                for (place, row) in group.members.iter().zip(members) {
                    let rollout = rollouts[*place].as_rollout();
                    statistics.observe(&plan, row, rollout.tokens);
                    if needs_reference {
                        statistics.observe_reference(rollout);
                    }
                }
            }
            statistics
        };
        let mut counted = pool.map(&parts(&groups), count).into_iter();
        let mut statistics = counted.next().unwrap_or_else(|| Statistics::of(&plan));
        counted.for_each(|part| statistics.merge(&part));
        findings.iter().for_each(|(component, found)| statistics.observe_judging(component, found));
        statistics.reconcile(rollouts.len() as u64)?;
        let rows = in_input_order(&groups, scored);
        Ok(Self { plan, rows, groups, statistics })
    }

    /// The report of rollouts that a front could not hand in for scoring, all for the same cause.
    pub(crate) fn refused<R: AsRollout>(plan: Arc<Plan>, rollouts: &[R], code: Code) -> Self {
        let mut statistics = Statistics::of(&plan);
        let row = |rollout: &R| Row::refused(rollout.as_rollout().response.chars().count(), code);
        let rows: Vec<Row> = rollouts.iter().map(row).collect();
        for (rollout, row) in rollouts.iter().zip(&rows) {
            statistics.observe(&plan, row, rollout.as_rollout().tokens);
        }
        Self { plan, rows, groups: Vec::new(), statistics }
    }

    /// About how many bytes it takes, for limits on memory.
    pub(crate) fn bytes(&self) -> usize {
        let facts = |outcome: &Outcome| {
            outcome.info().map_or(0, |info| info.iter().map(|(_, fact)| FACT + fact.bytes()).sum::<usize>())
        };
        let row = |row: &Row| {
            let outcomes = row.outcomes.len() * size_of::<Option<Outcome>>();
            size_of::<Row>() + outcomes + row.outcomes.iter().flatten().map(facts).sum::<usize>()
        };
        size_of::<Self>() + self.rows.iter().map(row).sum::<usize>() + self.statistics.bytes()
    }

    /// The totals, in the order of the rollouts; not a number where a rollout has none.
    pub fn totals(&self) -> Vec<f64> {
        self.totals_or(f64::NAN)
    }

    /// The totals for a trainer that must have numbers: the recipe's `invalid_value` where a rollout has none, or not a number where
    /// the recipe has none either.
    pub fn totals_or_invalid_value(&self) -> Vec<f64> {
        self.totals_or(self.plan.invalid_value.unwrap_or(f64::NAN))
    }

    fn totals_or(&self, missing: f64) -> Vec<f64> {
        self.rows.iter().map(|row| row.total.value().unwrap_or(missing)).collect()
    }

    /// One result, ready to be written as JSON.
    pub fn result<'r>(&'r self, at: usize, id: &'r str, rollout: &'r Rollout<'r>) -> RowResult<'r> {
        RowResult { plan: &self.plan, row: &self.rows[at], id, rollout }
    }
}

/// How many rollouts are counted together at least. The number of threads has no part in it, so that the statistics are the
/// same to the last bit wherever they are made.
const PART: usize = 1024;

/// Consecutive groups that are counted together.
fn parts(groups: &[Group]) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut rollouts) = (Vec::new(), 0, 0);
    for (at, group) in groups.iter().enumerate() {
        rollouts += group.members.len();
        if rollouts >= PART || at + 1 == groups.len() {
            parts.push(start..at + 1);
            (start, rollouts) = (at + 1, 0);
        }
    }
    parts
}

/// The rows of the groups, each at the place of its rollout.
fn in_input_order(groups: &[Group], scored: Vec<Vec<Row>>) -> Vec<Row> {
    let places = groups.iter().flat_map(|group| group.members.iter().copied());
    if places.clone().enumerate().all(|(at, place)| at == place) {
        let mut rows = Vec::with_capacity(scored.iter().map(Vec::len).sum());
        scored.into_iter().for_each(|members| rows.extend(members));
        return rows;
    }
    let mut rows: Vec<Option<Row>> = scored.iter().flatten().map(|_| None).collect();
    places.zip(scored.into_iter().flatten()).for_each(|(place, row)| rows[place] = Some(row));
    rows.into_iter().flatten().collect()
}

/// The mean of the values that are finite; none where none is.
pub fn mean_of_known(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let known = values.into_iter().flatten().filter(|value| value.is_finite());
    let (count, sum) = known.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// The values, with the mean of the group where one is missing. A trainer that compares within the group then sees an
/// advantage of 0 for that rollout, and for its siblings what they would have without it. None is left where no member of
/// the group has a value. Places beyond the values are ignored.
pub fn fill_with_group_means<'g>(
    values: &[Option<f64>],
    groups: impl IntoIterator<Item = &'g [usize]>,
) -> Vec<Option<f64>> {
    let known = |at: &usize| values.get(*at).copied().flatten().filter(|value| value.is_finite());
    let mut filled: Vec<Option<f64>> = (0..values.len()).map(|at| known(&at)).collect();
    for group in groups {
        let mean = mean_of_known(group.iter().map(known));
        for at in group.iter().filter(|at| **at < values.len()) {
            filled[*at] = filled[*at].or(mean);
        }
    }
    filled
}

/// One row as results show it.
#[derive(Debug)]
pub struct RowResult<'r> {
    plan: &'r Plan,
    row: &'r Row,
    id: &'r str,
    rollout: &'r Rollout<'r>,
}

/// What is said of one rollout. An invalid one has no total.
// The schema of what `RowResult::entries` writes.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "results are written without a copy of their parts")]
struct ResultLine {
    id: String,
    group: Option<String>,
    total: Option<f64>,
    /// `scored`, `floored`, `skipped` or `invalid`.
    outcome: String,
    /// Whether the answer is right; null where no component says so.
    correct: Option<bool>,
    /// Why it was not simply scored: a code, a component and a message.
    reason: Option<Value>,
    /// The total spread over the model's turns, null for a turn that gets nothing of its own; where the recipe asks for it.
    turn_rewards: Option<Vec<Option<f64>>>,
    /// What each component says: its outcome, its value, its weight, and its facts or its reason.
    components: Map<String, Value>,
}

impl JsonSchema for RowResult<'_> {
    fn schema_name() -> Cow<'static, str> {
        ResultLine::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ResultLine::json_schema(generator)
    }
}

impl Serialize for RowResult<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

impl RowResult<'_> {
    /// Writes the entries of the result into a map that may hold others.
    pub fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("group", &Key::of(self.rollout).as_ref().map(Key::label))?;
        map.serialize_entry("total", &self.row.total.value())?;
        map.serialize_entry("outcome", &self.row.total.kind())?;
        map.serialize_entry("correct", &self.row.correct)?;
        if let Some(cause) = self.row.total.cause() {
            let component = self.row.branch.zip(cause.component);
            let component = component.map(|(branch, at)| &*self.plan.branches[branch].components[at].name);
            let Reason { code, message } = &cause.reason;
            map.serialize_entry("reason", &CauseResult { code: *code, component, message })?;
        }
        if let Some(turn_rewards) = self.row.turn_rewards() {
            map.serialize_entry("turn_rewards", turn_rewards)?;
        }
        map.serialize_entry("components", &Components { plan: self.plan, row: self.row })
    }
}

#[derive(Serialize)]
struct CauseResult<'r> {
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<&'r str>,
    message: &'r str,
}

struct Components<'r> {
    plan: &'r Plan,
    row: &'r Row,
}

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let branches = self.row.branch.iter().map(|index| &self.plan.branches[*index]);
        let components = branches.flat_map(|branch| branch.components.iter().zip(&branch.parts));
        to.collect_map(components.zip(&self.row.outcomes).map(|((component, part), outcome)| {
            (&component.name, ComponentResult::new(outcome.as_ref(), part.weight))
        }))
    }
}

#[derive(Serialize)]
struct ComponentResult<'r> {
    outcome: OutcomeKind,
    value: Option<f64>,
    weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<&'r Info>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'r, Reason>>,
}

impl<'r> ComponentResult<'r> {
    /// What an outcome says; none where a closed gate kept the component from being asked.
    fn new(outcome: Option<&'r Outcome>, weight: f64) -> Self {
        let Some(outcome) = outcome else {
            let reason = Some(Cow::Owned(Code::GateClosed.into()));
            return Self { outcome: OutcomeKind::Skipped, value: None, weight, info: None, reason };
        };
        let reason = outcome.reason().map(Cow::Borrowed);
        Self { outcome: outcome.kind(), value: outcome.value(), weight, info: outcome.info(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_get_the_mean_of_their_group() {
        let values = [Some(1.0), None, Some(3.0), None, Some(f64::NAN), Some(5.0), None];
        let groups: [&[usize]; 3] = [&[0, 1, 2], &[3, 4], &[5, 9]];
        let filled = fill_with_group_means(&values, groups);
        assert_eq!(filled, [Some(1.0), Some(2.0), Some(3.0), None, None, Some(5.0), None]);
        assert_eq!(fill_with_group_means(&[], []), []);
    }
}
