//! Groups of every size are judged whole: each member is shown to the judge and gets a score, in every mode, design and
//! aggregate. The embedded judge answers, so that nothing depends on a network or a clock.

use crate::engine::plan;
use plaudit::engine::{Engine, EngineOptions, ScoreOptions};
use plaudit::outcome::OutcomeKind;
use plaudit::reason::Code;
use plaudit::report::Report;
use plaudit::rollout::Rollout;

/// One group of `n` responses that all differ; response `i` has `i` of the words of the reference.
pub(crate) fn group(n: usize) -> Vec<Rollout<'static>> {
    let word = |at: usize| format!("w{at}");
    let reference: Vec<String> = (0..n).map(word).collect();
    let rollout = |at: usize| {
        let text = format!("r{at} {}", reference[..at].join(" "));
        Rollout::new(text).to_prompt("q").with_reference(reference.join(" ")).in_group(format!("g{n}"))
    };
    (0..n).map(rollout).collect()
}

fn recipe(component: &str) -> String {
    format!(
        "components:\n  q: {{ reward: principle, principles: [helpfulness], {component} }}\njudges:\n  j: {{ kind: overlap }}\n"
    )
}

fn engine(component: &str) -> Engine {
    Engine::new(plan(&recipe(component))).unwrap()
}

fn kinds(report: &Report, n: usize) -> Vec<OutcomeKind> {
    (0..n).map(|at| report.rows[at].total.kind()).collect()
}

/// Scores one group of each size at once.
fn judged_whole(component: &str, sizes: impl Iterator<Item = usize>) {
    let rollouts: Vec<Rollout<'_>> = sizes.flat_map(group).collect();
    let report = engine(component).score(&rollouts).unwrap();
    let kinds = kinds(&report, rollouts.len());
    let lost = kinds.iter().zip(&rollouts).find(|(kind, _)| **kind != OutcomeKind::Scored);
    assert!(
        lost.is_none(),
        "{component}: {:?} is {:?}",
        lost.map(|lost| &lost.1.group),
        lost.map(|lost| lost.0)
    );
}

const DESIGNS: [&str; 9] = [
    "mode: pairwise",
    "mode: pairwise, design: sparse, budget: 40",
    "mode: listwise",
    "mode: listwise, line_up: 2",
    "mode: listwise, line_up: 5",
    "mode: listwise, line_up: 12",
    "mode: listwise, line_up: 20",
    "mode: listwise, line_up: 9, budget: 8",
    "mode: listwise, design: sparse, budget: 7",
];

#[test]
fn every_size_is_judged_whole_by_counting_methods() {
    judged_whole("mode: pointwise", 2..=64);
    for design in DESIGNS {
        for method in ["winrate", "copeland", "elo"] {
            judged_whole(&format!("{design}, aggregate: {method}"), 2..=64);
        }
        judged_whole(&format!("{design}, aggregate: dgr"), 2..=16);
    }
}

#[test]
fn every_size_is_judged_whole_by_bradley_terry() {
    // What is asked does not depend on the method, so that the sizes between are those of the test above.
    let sizes = || (2..=22).chain([32, 64]);
    for design in DESIGNS {
        judged_whole(design, sizes());
    }
    for design in ["mode: pairwise", "mode: listwise", "mode: listwise, line_up: 5"] {
        judged_whole(&format!("{design}, design: adaptive"), (2..=10).chain([21]));
    }
    judged_whole("mode: pairwise, design: adaptive, budget: 80", (11..=20).chain([64]));
}

#[test]
fn a_thousand_responses_are_ranked_by_a_few_comparisons() {
    let rollouts = group(1024);
    for design in ["mode: pairwise, design: sparse, budget: 4096", "mode: listwise, line_up: 20, budget: 300"]
    {
        let report = engine(design).score(&rollouts).unwrap();
        let totals = report.totals();
        assert!(totals.iter().all(|total| total.is_finite() && total.abs() <= 1.0), "{design}");
        let mean = |range: std::ops::Range<usize>| totals[range].iter().sum::<f64>() / 128.0;
        let eighths: Vec<f64> = (0..8).map(|part| mean(part * 128..(part + 1) * 128)).collect();
        assert!(eighths.is_sorted_by(|low, high| low < high), "{design}: {eighths:?}");
    }
}

#[test]
fn a_group_beyond_the_limit_is_refused_before_the_first_call() {
    for (method, limit) in [("dgr", 16), ("bradley_terry", 1024)] {
        let component = format!("mode: pairwise, design: DESIGN, aggregate: {method}, audit: 0.1");
        for design in ["round_robin", "sparse, budget: 8", "adaptive"] {
            if design == "adaptive" && method == "dgr" {
                continue;
            }
            let engine = engine(&component.replace("DESIGN", design));
            let rollouts = group(limit + 1);
            let usage = engine.usage_meter();
            let options = ScoreOptions { usage: usage.clone(), ..ScoreOptions::default() };
            let report = engine.score_with(&rollouts, &options).unwrap();
            let causes = report.rows.iter().map(|row| row.total.cause().map(|cause| cause.reason.code));
            assert!(causes.into_iter().all(|code| code == Some(Code::GroupTooLarge)), "{method} {design}");
            assert_eq!(usage.unwrap().usage()[0].asked, 0, "{method} {design}");
            let told = engine.group_limit().unwrap();
            assert_eq!((told.component.as_str(), told.method, told.limit), ("q", method, limit));
        }
    }
    assert_eq!(engine("aggregate: winrate").group_limit(), None);
    assert_eq!(engine("mode: pointwise").group_limit(), None);
}

#[test]
fn the_reference_takes_a_place_in_the_limit() {
    let yaml = format!("{}validation: {{ reference: include }}\n", recipe("aggregate: dgr"));
    let engine = Engine::new(plan(&yaml)).unwrap();
    assert_eq!(engine.group_limit().unwrap().limit, 15);
    for (n, kind) in [(15, OutcomeKind::Scored), (16, OutcomeKind::Invalid)] {
        let report = engine.score(&group(n)).unwrap();
        assert_eq!(kinds(&report, n), vec![kind; n]);
    }
}

#[test]
fn a_count_of_calls_tells_groups_that_are_too_large() {
    let setup = EngineOptions { dry: true, ..EngineOptions::default() };
    let engine = Engine::open(plan(&recipe("aggregate: dgr")), &setup).unwrap();
    let rollouts: Vec<Rollout<'_>> = [16, 17, 40].into_iter().flat_map(group).collect();
    engine.score(&rollouts).unwrap();
    let estimates = engine.estimates();
    assert_eq!((estimates.len(), estimates[0].calls, estimates[0].rollouts), (1, 120, 16));
    let large = estimates[0].too_large.as_ref().unwrap();
    assert_eq!((large.method, large.limit, large.groups), ("dgr", 16, 2));
    assert_eq!((large.group.as_str(), large.size), ("g40", 40));
}
