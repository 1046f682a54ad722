//! How are the rewards of the live runs? Gauges of each run's newest step that is complete, so that somebody can be woken.
//!
//! A run is named as its client names it; the number of series is bounded, since so are the live runs and their components.

use super::alarms::CODES;
use super::house::House;
use super::kept::About;
use super::meters::Page;
use super::steps::Newest;
use plaudit::outcome::OutcomeKind;
use plaudit::statistics::{ComponentStatistics, Statistics};

type Of = fn(&Newest) -> Option<f64>;
type OfComponent = fn(&ComponentStatistics) -> Option<f64>;

const RUN: [(&str, &str, Of); 10] = [
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

const COMPONENT: [(&str, &str, OfComponent); 6] = [
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
];

fn share(statistics: &Statistics, kind: OutcomeKind) -> Option<f64> {
    let all = statistics.rollouts;
    (all > 0).then(|| statistics.outcomes.of(kind) as f64 / all as f64)
}

/// All of them.
pub(super) fn put(page: &mut Page, house: &House) {
    let runs = house.live_runs();
    let runs: Vec<(About, Newest)> = runs
        .iter()
        .filter_map(|run| {
            let (about, newest) = run.newest();
            Some((about, newest?))
        })
        .collect();
    for (name, help, of) in RUN {
        page.head(name, "gauge", help);
        for (about, newest) in &runs {
            if let Some(value) = of(newest) {
                page.line(name, &labels(about), value);
            }
        }
    }
    for (name, help, of) in COMPONENT {
        page.head(name, "gauge", help);
        for (about, newest) in &runs {
            for (component, statistics) in &newest.statistics.components {
                if let Some(value) = of(statistics) {
                    let [owner, run, recipe] = labels(about);
                    page.line(name, &[owner, run, recipe, ("component", component)], value);
                }
            }
        }
    }
    page.head("plaudit_run_alarm", "gauge", "Whether something is wrong with the step, by what it is.");
    for (about, newest) in &runs {
        for code in CODES {
            let [owner, run, recipe] = labels(about);
            let is_on = newest.alarms.iter().any(|alarm| alarm.code == code);
            page.line("plaudit_run_alarm", &[owner, run, recipe, ("code", code)], f64::from(u8::from(is_on)));
        }
    }
}

/// What tells a run from all others.
fn labels(about: &About) -> [(&str, &str); 3] {
    [("owner", &about.owner), ("run", &about.name), ("recipe", &about.recipe)]
}
