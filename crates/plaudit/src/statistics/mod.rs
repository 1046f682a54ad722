//! Statistics of a run or a step: streaming, mergeable, in bounded memory.

/// Gives a type the JSON schema of the struct that it is written as.
macro_rules! json_schema_of {
    ($type:ty, $json:ty) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$json>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$json>::json_schema(generator)
            }
        }
    };
}
pub mod breakdown;
pub mod code_tests;
pub mod distribution;
pub mod judging;
pub mod steps;

use crate::error::RunError;
use crate::judge::stats::JudgeStats;
use crate::outcome::{Fact, OutcomeKind};
use crate::plan::Plan;
use crate::reason::Code;
use crate::report::Row;
use crate::rollout::{Reference, Rollout};
use code_tests::TestStats;
use distribution::{Correlation, Distribution, Moments};
use judging::Judging;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// How many outcomes of each kind, and why they were not simply scored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    kinds: [u64; 4],
    reasons: BTreeMap<(OutcomeKind, Code), u64>,
}

impl Counts {
    /// Counts one outcome.
    pub fn observe(&mut self, kind: OutcomeKind, code: Option<Code>) {
        self.kinds[kind as usize] += 1;
        if let Some(code) = code {
            *self.reasons.entry((kind, code)).or_insert(0) += 1;
        }
    }

    /// Adds the outcomes of another part.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            *ours += theirs;
        }
        for (key, count) in &other.reasons {
            *self.reasons.entry(*key).or_insert(0) += count;
        }
    }

    /// How many of one kind.
    pub fn of(&self, kind: OutcomeKind) -> u64 {
        self.kinds[kind as usize]
    }

    /// Whether anything was scored. What is floored shows nothing of the kind: it needs no judge and no reference.
    pub fn has_scored(&self) -> bool {
        self.of(OutcomeKind::Scored) > 0
    }

    /// How many in all.
    pub fn all(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// How often each reason was given, by kind.
    pub fn reasons(&self) -> impl Iterator<Item = (OutcomeKind, Code, u64)> {
        self.reasons.iter().map(|((kind, code), count)| (*kind, *code, *count))
    }
}

/// Outcomes by kind, and their reasons by kind and code, as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CountsReply")]
struct CountsJson {
    scored: u64,
    floored: u64,
    skipped: u64,
    invalid: u64,
    reasons: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

json_schema_of!(Counts, CountsJson);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut reasons: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for (kind, code, count) in self.reasons() {
            reasons.entry(kind.as_str()).or_default().insert(code.as_str(), count);
        }
        let json = CountsJson {
            scored: self.of(OutcomeKind::Scored),
            floored: self.of(OutcomeKind::Floored),
            skipped: self.of(OutcomeKind::Skipped),
            invalid: self.of(OutcomeKind::Invalid),
            reasons,
        };
        json.serialize(to)
    }
}

/// One component over all rollouts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComponentReply")]
pub struct ComponentStatistics {
    /// Outcomes by kind and reason.
    pub outcomes: Counts,
    /// The values, floors included.
    pub values: Distribution,
    /// How the values move with the length of the responses.
    #[serde(serialize_with = "r")]
    #[schemars(with = "Option<f64>")]
    pub length_correlation: Correlation,
    /// Why the values are what they are, where the reward says so in a word: of `math_verify_reward`, how many answers are equal,
    /// different, not parsed or not there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub why: BTreeMap<&'static str, u64>,
    /// How often each constraint of `instructions` was checked and followed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub constraints: BTreeMap<&'static str, ConstraintCounts>,
    /// What the judge's verdicts look like, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judging: Option<Judging>,
    /// The tests of programs, where some were run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestStats>,
}

/// One kind of constraint over all rollouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ConstraintReply")]
pub struct ConstraintCounts {
    /// How many responses had to follow it.
    pub checked: u64,
    /// How many did.
    pub followed: u64,
}

impl ConstraintCounts {
    /// The share of responses that follow it.
    pub fn share(self) -> f64 {
        self.followed as f64 / self.checked.max(1) as f64
    }
}

/// The groups of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupStatistics {
    /// How many.
    pub count: u64,
    /// The number of rollouts in each.
    pub size: Distribution,
    /// The standard deviation of the totals in each group of at least two with a number.
    pub std: Distribution,
    /// How many of those have exactly equal totals, and so teach a policy nothing.
    pub zero_variance: u64,
    /// How many have at least two rollouts but fewer than two totals.
    pub without_signal: u64,
    /// How many rollouts came after their group had been scored.
    pub split: u64,
    /// How many have only right answers.
    pub all_right: u64,
    /// How many have only wrong answers.
    pub all_wrong: u64,
    /// How many have right and wrong ones: what a policy learns most from.
    pub mixed: u64,
}

impl GroupStatistics {
    /// The share of groups with equal totals among those that could differ.
    pub fn zero_variance_share(&self) -> Option<f64> {
        let could = self.std.moments.count;
        (could > 0).then(|| self.zero_variance as f64 / could as f64)
    }
}

/// The groups of a step, as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GroupsReply")]
struct GroupsJson<'g> {
    count: u64,
    size: &'g Distribution,
    /// The standard deviation of the totals in each.
    std: &'g Distribution,
    /// How many have equal totals, and their share of those that could differ.
    zero_variance: u64,
    zero_variance_share: Option<f64>,
    /// How many have fewer than two totals.
    without_signal: u64,
    /// How many rollouts came after their group had been scored.
    split: u64,
    /// How many have only right answers, only wrong ones, and both.
    all_right: u64,
    all_wrong: u64,
    mixed: u64,
}

json_schema_of!(GroupStatistics, GroupsJson<'static>);

impl Serialize for GroupStatistics {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let json = GroupsJson {
            count: self.count,
            size: &self.size,
            std: &self.std,
            zero_variance: self.zero_variance,
            zero_variance_share: self.zero_variance_share(),
            without_signal: self.without_signal,
            split: self.split,
            all_right: self.all_right,
            all_wrong: self.all_wrong,
            mixed: self.mixed,
        };
        json.serialize(to)
    }
}

/// How much the responses repeat one another, and themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RepetitionReply")]
pub struct RepetitionStatistics {
    /// How many rollouts are identical to an earlier one of their group, and were scored with it.
    pub duplicates: u64,
    /// The share of repeated n-grams, where a component measures it.
    pub rate: Distribution,
}

/// How many answers are right, as far as a component says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CorrectnessReply")]
pub struct CorrectnessStatistics {
    /// How many are right.
    pub right: u64,
    /// How many are wrong.
    pub wrong: u64,
}

/// About what the cells of one distribution of a few values take.
const CELLS: usize = 512;

/// A run or a step as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "StatisticsReply")]
pub struct Statistics {
    /// How many rollouts.
    pub rollouts: u64,
    /// Where the references stood that were compared with, in rows without one of their own: how many rollouts by the name of the field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub references_from: BTreeMap<&'static str, u64>,
    /// Totals by kind and reason.
    pub outcomes: Counts,
    /// Right and wrong answers, where a component tells them apart.
    pub correctness: CorrectnessStatistics,
    /// The totals, floors included.
    pub total: Distribution,
    /// Each component, in the order of the recipe.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "BTreeMap<String, ComponentStatistics>")]
    pub components: Vec<(String, ComponentStatistics)>,
    /// The groups.
    pub groups: GroupStatistics,
    /// The lengths of the responses in characters.
    pub characters: Distribution,
    /// The lengths of the responses in the model's tokens, where they were given.
    pub tokens: Distribution,
    /// How the totals move with the length of the responses, over all rollouts: length hacking shows here.
    #[serde(serialize_with = "r")]
    #[schemars(with = "Option<f64>")]
    pub length_correlation: Correlation,
    /// The same inside the groups, which is what a group-relative policy sees.
    #[serde(serialize_with = "r")]
    #[schemars(with = "Option<f64>")]
    pub length_correlation_in_groups: Correlation,
    /// Repetition.
    pub repetition: RepetitionStatistics,
}

impl Statistics {
    /// Of no rollouts, with the columns of a plan.
    pub fn of(plan: &Plan) -> Self {
        let component = |name: &str| (name.to_owned(), ComponentStatistics::default());
        Self { components: plan.columns().into_iter().map(component).collect(), ..Self::default() }
    }

    /// Takes one rollout in.
    pub(crate) fn observe(&mut self, plan: &Plan, row: &Row, tokens: Option<u64>) {
        let length = row.characters as f64;
        self.rollouts += 1;
        self.characters.observe(length);
        self.repetition.duplicates += u64::from(row.duplicate);
        if let Some(tokens) = tokens {
            self.tokens.observe(tokens as f64);
        }
        self.outcomes.observe(row.total.kind(), row.total.cause().map(|cause| cause.reason.code));
        match row.correct {
            Some(true) => self.correctness.right += 1,
            Some(false) => self.correctness.wrong += 1,
            None => {}
        }
        if let Some(value) = row.total.value() {
            self.total.observe(value);
            self.length_correlation.observe(length, value);
        }
        let Some(branch) = row.branch.map(|index| &plan.branches[index]) else { return };
        for (component, outcome) in branch.components.iter().zip(&row.outcomes) {
            // A lone recipe has its columns in its own order, so the first look hits.
            let found = self.components.iter_mut().find(|(name, _)| *name == component.name);
            let Some((_, column)) = found else { continue };
            match outcome {
                None => column.outcomes.observe(OutcomeKind::Skipped, Some(Code::GateClosed)),
                Some(outcome) => {
                    column.outcomes.observe(outcome.kind(), outcome.reason().map(|reason| reason.code));
                    if let Some(value) = outcome.value() {
                        column.values.observe(value);
                        column.length_correlation.observe(length, value);
                    }
                    let Some(info) = outcome.info() else { continue };
                    for fact in info.iter() {
                        match fact {
                            ("repetition_rate", Fact::Number(rate)) => self.repetition.rate.observe(*rate),
                            ("why", Fact::Word(why)) => *column.why.entry(why).or_insert(0) += 1,
                            ("constraints", Fact::Constraints(verdicts)) => {
                                for verdict in verdicts {
                                    let counts = column.constraints.entry(verdict.id).or_default();
                                    counts.checked += 1;
                                    counts.followed += u64::from(verdict.followed);
                                }
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    }

    /// Takes in where the reference of a rollout stands that has none of its own.
    pub(crate) fn observe_reference(&mut self, rollout: &Rollout<'_>) {
        if rollout.reference.is_none()
            && let Some((field, _)) = Reference::in_fields(&rollout.extra)
        {
            *self.references_from.entry(field).or_insert(0) += 1;
        }
    }

    /// Which fields the references were read from, for a person; nothing where all stood under their own name.
    pub fn reference_remark(&self) -> Option<String> {
        let fields: Vec<String> =
            self.references_from.iter().map(|(field, count)| format!("`{field}` of {count}")).collect();
        (!fields.is_empty()).then(|| {
            format!("the rollouts have no `reference`; read from {} of {}", fields.join(", "), self.rollouts)
        })
    }

    /// Takes in what the judge of a component found about one group.
    pub(crate) fn observe_judging(&mut self, component: &str, found: &JudgeStats) {
        if let Some((_, column)) = self.components.iter_mut().find(|(name, _)| name == component) {
            column.judging.get_or_insert_default().0.merge(found);
        }
    }

    /// Takes in the tests of a component's programs in one group.
    pub(crate) fn observe_tests(&mut self, component: &str, found: &TestStats) {
        if let Some((_, column)) = self.components.iter_mut().find(|(name, _)| name == component) {
            column.tests.get_or_insert_default().merge(found);
        }
    }

    /// Takes one group in, given all its rows.
    pub(crate) fn observe_group<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r Row> + Clone) {
        self.groups.count += 1;
        self.groups.size.observe(rows.len() as f64);
        let (mut right, mut wrong) = (0, 0);
        for row in rows.clone() {
            right += usize::from(row.correct == Some(true));
            wrong += usize::from(row.correct == Some(false));
        }
        self.groups.all_right += u64::from(right > 0 && right == rows.len());
        self.groups.all_wrong += u64::from(wrong > 0 && wrong == rows.len());
        self.groups.mixed += u64::from(right > 0 && wrong > 0);
        let valued = rows.clone().filter_map(|row| Some((row.total.value()?, row.characters as f64)));
        let (mut totals, mut lengths) = (Moments::default(), Moments::default());
        for (value, length) in valued.clone() {
            totals.observe(value);
            lengths.observe(length);
        }
        match totals.std() {
            Some(std) if totals.count >= 2 => {
                self.groups.std.observe(std);
                self.groups.zero_variance += u64::from(totals.min == totals.max);
                for (value, length) in valued {
                    self.length_correlation_in_groups.observe(length - lengths.mean, value - totals.mean);
                }
            }
            _ => self.groups.without_signal += u64::from(rows.len() >= 2),
        }
    }

    /// Takes all rollouts of another run of the same plan in.
    pub fn merge(&mut self, other: &Self) {
        self.rollouts += other.rollouts;
        for (field, count) in &other.references_from {
            *self.references_from.entry(field).or_insert(0) += count;
        }
        self.outcomes.merge(&other.outcomes);
        self.total.merge(&other.total);
        for ((_, ours), (_, theirs)) in self.components.iter_mut().zip(&other.components) {
            ours.outcomes.merge(&theirs.outcomes);
            ours.values.merge(&theirs.values);
            ours.length_correlation.merge(&theirs.length_correlation);
            for (why, count) in &theirs.why {
                *ours.why.entry(why).or_insert(0) += count;
            }
            for (id, counts) in &theirs.constraints {
                let own = ours.constraints.entry(id).or_default();
                own.checked += counts.checked;
                own.followed += counts.followed;
            }
            if let Some(judging) = &theirs.judging {
                ours.judging.get_or_insert_default().0.merge(&judging.0);
            }
            if let Some(tests) = &theirs.tests {
                ours.tests.get_or_insert_default().merge(tests);
            }
        }
        self.groups.count += other.groups.count;
        self.groups.size.merge(&other.groups.size);
        self.groups.std.merge(&other.groups.std);
        self.groups.zero_variance += other.groups.zero_variance;
        self.groups.without_signal += other.groups.without_signal;
        self.groups.split += other.groups.split;
        self.groups.all_right += other.groups.all_right;
        self.groups.all_wrong += other.groups.all_wrong;
        self.groups.mixed += other.groups.mixed;
        self.correctness.right += other.correctness.right;
        self.correctness.wrong += other.correctness.wrong;
        self.characters.merge(&other.characters);
        self.tokens.merge(&other.tokens);
        self.length_correlation.merge(&other.length_correlation);
        self.length_correlation_in_groups.merge(&other.length_correlation_in_groups);
        self.repetition.duplicates += other.repetition.duplicates;
        self.repetition.rate.merge(&other.repetition.rate);
    }

    /// About how many bytes it takes while it is of a few rollouts.
    pub(crate) fn bytes(&self) -> usize {
        let column = size_of::<(String, ComponentStatistics)>() + CELLS;
        let items = |(_, one): &(String, ComponentStatistics)| {
            one.judging.as_ref().map_or(0, |judging| judging.0.items.bytes())
        };
        let items: usize = self.components.iter().map(items).sum();
        size_of::<Self>() + 5 * CELLS + self.components.len() * column + items
    }

    /// Checks that every rollout that came in went out as exactly one outcome.
    pub fn reconcile(&self, rollouts: u64) -> Result<(), RunError> {
        let outcomes = self.outcomes.all();
        if outcomes == rollouts && self.rollouts == rollouts {
            return Ok(());
        }
        Err(RunError::Unbalanced { rollouts, outcomes })
    }
}

fn r<S: Serializer>(correlation: &Correlation, to: S) -> Result<S::Ok, S::Error> {
    correlation.r().serialize(to)
}

fn by_name<S: Serializer>(columns: &[(String, ComponentStatistics)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(columns.iter().map(|(name, column)| (name, column)))
}
