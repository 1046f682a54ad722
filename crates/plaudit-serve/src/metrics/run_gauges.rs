//! Gauges of the newest complete step of each live run, so that alerts can be set on rewards.
//!
//! A run is labelled with the name that its client gives it; the number of series is bounded, since live runs and components are.

use super::{Snapshot, gauge};
use crate::runs::alarms::CODES;
use crate::runs::run::Run;
use crate::runs::steps::NewestStep;
use crate::runs::store::RunSummary;
use plaudit::outcome::OutcomeKind;
use plaudit::statistics::{ComponentStatistics, Statistics};
use prometheus::proto::MetricType;
use std::sync::Arc;

type StepValue = fn(&NewestStep) -> Option<f64>;
type ComponentValueOf = fn(&ComponentStatistics) -> Option<f64>;

const RUN: [(&str, &str, StepValue); 10] = [
    (
        "plaudit_run_step",
        "The newest step of a run that is complete, which the other figures are of.",
        |newest| Some(newest.step as f64),
    ),
    ("plaudit_run_rollouts", "Rollouts of the step.", |newest| Some(newest.statistics.rollouts as f64)),
    ("plaudit_run_total_mean", "The mean total.", |newest| {
        let moments = &newest.statistics.total.moments;
        (moments.count > 0).then_some(moments.mean)
    }),
    ("plaudit_run_total_std", "The standard deviation of the totals.", |newest| {
        newest.statistics.total.moments.std()
    }),
    (
        "plaudit_run_group_std_mean",
        "The standard deviation of the totals inside groups, in the mean.",
        |newest| {
            let moments = &newest.statistics.groups.std.moments;
            (moments.count > 0).then_some(moments.mean)
        },
    ),
    ("plaudit_run_zero_variance_ratio", "The share of groups whose totals are all equal.", |newest| {
        newest.statistics.groups.zero_variance_share()
    }),
    ("plaudit_run_invalid_ratio", "The share of invalid rollouts.", |newest| {
        share(&newest.statistics, OutcomeKind::Invalid)
    }),
    ("plaudit_run_floored_ratio", "The share of floored rollouts.", |newest| {
        share(&newest.statistics, OutcomeKind::Floored)
    }),
    (
        "plaudit_run_length_correlation",
        "How totals move with length inside groups, from -1 to 1.",
        |newest| newest.statistics.length_correlation_in_groups.r(),
    ),
    ("plaudit_run_duplicate_ratio", "The share of rollouts that repeat one of their group.", |newest| {
        let rollouts = newest.statistics.rollouts;
        (rollouts > 0).then(|| newest.statistics.repetition.duplicates as f64 / rollouts as f64)
    }),
];

const COMPONENT: [(&str, &str, ComponentValueOf); 7] = [
    ("plaudit_run_component_mean", "The mean of a component.", |component| {
        let moments = &component.values.moments;
        (moments.count > 0).then_some(moments.mean)
    }),
    ("plaudit_run_component_std", "The standard deviation of a component.", |component| {
        component.values.moments.std()
    }),
    (
        "plaudit_run_win_ratio",
        "How often responses win against the reference; a draw counts half.",
        |component| Some(component.judging.as_ref()?.win_rate()?.share),
    ),
    ("plaudit_run_first_position_ratio", "How often the response wins that is shown first.", |component| {
        Some(component.judging.as_ref()?.first()?.share)
    }),
    (
        "plaudit_run_swap_agreement_ratio",
        "How often a verdict stays when the two are swapped.",
        |component| Some(component.judging.as_ref()?.swap_agreement()?.share),
    ),
    ("plaudit_run_tie_ratio", "How often a verdict is a tie.", |component| {
        Some(component.judging.as_ref()?.ties()?.share)
    }),
    ("plaudit_run_item_missing_ratio", "The share of a rubric's items without a verdict.", |component| {
        component.judging.as_ref()?.0.items.all.missing_share()
    }),
];

fn share(statistics: &Statistics, kind: OutcomeKind) -> Option<f64> {
    let all = statistics.rollouts;
    (all > 0).then(|| statistics.outcomes.of(kind) as f64 / all as f64)
}

/// Adds all of them.
pub(super) fn add(snapshot: &mut Snapshot, runs: &[Arc<Run>]) {
    let newest = |run: &Arc<Run>| {
        let (summary, newest) = run.newest_step();
        Some((summary, newest?))
    };
    let runs: Vec<(RunSummary, NewestStep)> = runs.iter().filter_map(newest).collect();
    for (name, help, value) in RUN {
        let sample = |(run, newest): &(RunSummary, NewestStep)| Some(gauge(&labels(run), value(newest)?));
        snapshot.add(name, MetricType::GAUGE, help, runs.iter().filter_map(sample).collect());
    }
    for (name, help, value) in COMPONENT {
        let mut samples = Vec::new();
        for (run, newest) in &runs {
            for (component, statistics) in &newest.statistics.components {
                if let Some(value) = value(statistics) {
                    let [owner, run, recipe] = labels(run);
                    samples.push(gauge(&[owner, run, recipe, ("component", component)], value));
                }
            }
        }
        snapshot.add(name, MetricType::GAUGE, help, samples);
    }
    let constraints = |component: &ComponentStatistics| {
        component.constraints.iter().map(|(id, counts)| ((*id).to_owned(), counts.share())).collect()
    };
    let help = "The share of responses that follow a constraint, of those that must.";
    add_parts(snapshot, &runs, ("plaudit_run_constraint_ratio", help, "constraint"), constraints);
    let tags = |component: &ComponentStatistics| {
        let tags = component.judging.iter().flat_map(|judging| &judging.0.items.tags);
        tags.filter_map(|(tag, found)| Some((tag.clone(), found.met_share()?))).collect()
    };
    let help = "The share of answers about a rubric's items with a tag that say the item is met.";
    add_parts(snapshot, &runs, ("plaudit_run_item_met_ratio", help, "tag"), tags);
    let alarms = runs.iter().flat_map(|(run, newest)| {
        CODES.map(|code| {
            let [owner, run, recipe] = labels(run);
            let is_on = newest.alarms.iter().any(|alarm| alarm.code == code);
            gauge(&[owner, run, recipe, ("code", code)], f64::from(u8::from(is_on)))
        })
    });
    let help = "Whether something is wrong with the step, by what it is.";
    snapshot.add("plaudit_run_alarm", MetricType::GAUGE, help, alarms.collect());
}

/// Adds a gauge of which each component has several, by the value of a label.
fn add_parts(
    snapshot: &mut Snapshot,
    runs: &[(RunSummary, NewestStep)],
    (name, help, label): (&str, &str, &str),
    parts: impl Fn(&ComponentStatistics) -> Vec<(String, f64)>,
) {
    let mut samples = Vec::new();
    for (run, newest) in runs {
        for (component, statistics) in &newest.statistics.components {
            for (part, value) in parts(statistics) {
                let [owner, run, recipe] = labels(run);
                samples.push(gauge(&[owner, run, recipe, ("component", component), (label, &part)], value));
            }
        }
    }
    snapshot.add(name, MetricType::GAUGE, help, samples);
}

/// What identifies a run.
fn labels(run: &RunSummary) -> [(&str, &str); 3] {
    [("owner", &run.owner), ("run", &run.name), ("recipe", &run.recipe)]
}
