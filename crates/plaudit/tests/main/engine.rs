//! The engine's main path: input order, parallelism, gates, routes, deadlines, limits, duplicates.

use plaudit::engine::{Engine, EngineOptions};
use plaudit::error::RunError;
use plaudit::exec::Clock;
use plaudit::outcome::{Fact, Info, Outcome, OutcomeKind};
use plaudit::plan::Plan;
use plaudit::reason::Code;
use plaudit::recipe::Recipe;
use plaudit::record::Network;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::rule::RuleInput;
use plaudit::rule::custom::{Custom, CustomCall, CustomKind};
use plaudit::statistics::breakdown::Breakdown;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn plan(yaml: &str) -> Plan {
    Recipe::from_yaml(yaml).and_then(|recipe| recipe.plan()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn score(yaml: &str, rollouts: &[Rollout<'_>]) -> Report {
    Engine::new(plan(yaml)).unwrap().score(rollouts).unwrap()
}

pub(crate) fn lines(report: &Report, rollouts: &[Rollout<'_>]) -> Vec<String> {
    let line =
        |at: usize| serde_json::to_string(&report.result(at, &format!("r{at}"), &rollouts[at])).unwrap();
    (0..rollouts.len()).map(line).collect()
}

const LENGTH: &str =
    "components:\n  length: { reward: length_penalty, weight: 0.5, min_length: 4, penalty_rate: 1.0 }\n";

#[test]
fn results_keep_input_order_at_any_parallelism() {
    let rollouts: Vec<Rollout<'_>> =
        (0..500).map(|at| Rollout::new("x".repeat(at % 7)).in_group(format!("g{}", at % 61))).collect();
    let of = |threads: usize| {
        let report = score(&format!("{LENGTH}groups: {{ parallel: {threads} }}\n"), &rollouts);
        (lines(&report, &rollouts), serde_json::to_string(&report.statistics).unwrap())
    };
    let one = of(1);
    assert!(one.0[3].contains(r#""id":"r3","group":"g3","total":-0.5"#), "{}", one.0[3]);
    assert_eq!(one, of(2));
    assert_eq!(one, of(8));
}

#[test]
fn statistics_of_many_rollouts_are_the_same_at_any_parallelism() {
    // More than are counted together at once, in groups of many sizes, some of them torn apart.
    let group = |at: usize| if at.is_multiple_of(11) { at % 97 } else { 100 + at / (1 + at % 13) };
    let rollouts: Vec<Rollout<'_>> = (0..9000)
        .map(|at| Rollout::new("word ".repeat(at * 31 % 17)).in_group(group(at).to_string()))
        .collect();
    let of = |threads: usize| {
        let report = score(&format!("{LENGTH}groups: {{ parallel: {threads} }}\n"), &rollouts);
        (report.rows, report.statistics)
    };
    let one = of(1);
    assert_eq!(one.1.rollouts, 9000);
    for threads in [2, 3, 8, 16] {
        assert!(of(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_result_has_the_shape_of_the_contract() {
    let rollouts = [Rollout::new("ab").in_group("g1")];
    let line = lines(&score(LENGTH, &rollouts), &rollouts).remove(0);
    let wanted = json!({"id": "r0", "group": "g1", "total": -1.0, "outcome": "scored", "correct": null, "components":
        {"length": {"outcome": "scored", "value": -2.0, "weight": 0.5, "info": {"length": 2}}}});
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), wanted);
}

#[test]
fn a_closed_gate_settles_the_total_and_asks_nobody_else() {
    let yaml = "components:
  long: { reward: length_penalty, weight: 1.0 }
  short: { reward: length_penalty, weight: 0, min_length: 4, penalty_rate: 1.0, gate: { min: -1.0, total: -5.0 } }
";
    let rollouts = [Rollout::new("ab"), Rollout::new("abc")];
    let report = score(yaml, &rollouts);
    let first = &report.rows[0];
    assert_eq!((first.total.kind(), first.total.value()), (OutcomeKind::Floored, Some(-5.0)));
    assert_eq!(first.total.cause().map(|cause| cause.reason.code), Some(Code::GateClosed));
    assert!(first.outcomes[0].is_none());
    assert_eq!(report.rows[1].total.kind(), OutcomeKind::Scored);
    assert!(lines(&report, &rollouts)[0].contains(r#""long":{"outcome":"skipped","value":null"#));
}

#[test]
fn rollouts_are_routed_by_a_field() {
    let yaml = "name: own
components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }
route: { by: extra.source.kind, cases: { quick: quickstart, 7: own } }
";
    let with = |extra: Value| {
        let mut rollout = Rollout::new("ab");
        rollout.extra = extra.as_object().unwrap().clone();
        rollout
    };
    let yaml = yaml.replace("7: own", "\"7\": own");
    let rollouts =
        [with(json!({"source": {"kind": "quick"}})), with(json!({"source": {"kind": 7}})), with(json!({}))];
    let report = score(&yaml, &rollouts);
    let branches: Vec<Option<usize>> = report.rows.iter().map(|row| row.branch).collect();
    assert_eq!(branches, [Some(1), Some(0), Some(0)]);
    let pure = "route: { by: extra.kind, cases: { quick: quickstart } }\n";
    let report = score(pure, &rollouts[..1]);
    let reason = &report.rows[0].total.cause().unwrap().reason;
    assert_eq!(reason.code, Code::NoRoute);
    assert!(reason.message.contains("extra.kind is not there"), "{}", reason.message);
}

#[test]
fn the_first_field_with_a_case_decides_on_the_route() {
    let yaml = "route: { by: [extra.verifier, extra.dataset], cases: { a: quickstart, b: lengths } }\n";
    let with = |extra: Value| {
        let mut rollout = Rollout::new("ab");
        rollout.extra = extra.as_object().unwrap().clone();
        rollout
    };
    for (extra, branch) in [
        (json!({"verifier": "a", "dataset": "b"}), Some(1)),
        (json!({"verifier": "other", "dataset": "b"}), Some(2)),
        (json!({"verifier": null, "dataset": ["b"]}), Some(2)),
        (json!({"dataset": ["a", "b"]}), None),
        (json!({}), None),
    ] {
        assert_eq!(score(yaml, &[with(extra.clone())]).rows[0].branch, branch, "{extra}");
    }
}

/// A clock that moves on by a second whenever it is looked at.
#[derive(Debug)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

#[test]
fn a_deadline_stops_the_work_and_loses_nothing_done() {
    let plan = plan(&format!("{LENGTH}groups: {{ timeout: 3s }}\n"));
    let rollouts: Vec<Rollout<'_>> = (0..5).map(|at| Rollout::new("x".repeat(at)).in_group("g")).collect();
    let report =
        Engine::new(plan).unwrap().with_clock(Arc::new(Ticking(AtomicU64::new(0)))).score(&rollouts).unwrap();
    let kinds: Vec<OutcomeKind> = report.rows.iter().map(|row| row.total.kind()).collect();
    assert_eq!(kinds[..2], [OutcomeKind::Scored; 2]);
    assert_eq!(kinds[2..], [OutcomeKind::Invalid; 3]);
    let reasons: Vec<_> = report.statistics.outcomes.reasons().collect();
    assert_eq!(reasons, [(OutcomeKind::Invalid, Code::GroupDeadline, 3)]);
}

#[test]
fn uneven_groups_are_refused_by_name() {
    let engine = Engine::new(plan(&format!("{LENGTH}groups: {{ same_size: true }}\n"))).unwrap();
    let rollouts: Vec<Rollout<'_>> =
        ["a", "a", "b", "b", "c"].iter().map(|group| Rollout::new("x").in_group(*group)).collect();
    let error = engine.score(&rollouts).unwrap_err();
    assert_eq!(error, RunError::UnevenGroups { usual: 2, odd: vec![("c".to_owned(), 1)] });
    assert!(error.to_string().contains(r#""c" has 1"#));
}

#[test]
fn an_empty_batch_is_an_empty_report() {
    let report = score(LENGTH, &[]);
    assert!(report.rows.is_empty() && report.statistics.rollouts == 0);
}

#[test]
fn identical_responses_are_scored_once_and_counted() {
    let rollouts: Vec<Rollout<'_>> = (0..4).map(|_| Rollout::new("same").in_group("g")).collect();
    let report = score(LENGTH, &rollouts);
    assert_eq!(report.statistics.repetition.duplicates, 3);
    assert_eq!(report.statistics.groups.zero_variance, 1);
    assert_eq!(report.statistics.outcomes.all(), 4);
}

#[test]
fn steps_are_told_apart_and_drift_is_seen() {
    let engine = Engine::new(plan(LENGTH)).unwrap();
    let mut breakdown = Breakdown::by("run.step");
    let step = |step: u64, length: usize, group: &str| {
        let mut rollout = Rollout::new("x".repeat(length)).in_group(format!("{step}{group}"));
        rollout.extra = json!({"run": {"step": step}}).as_object().unwrap().clone();
        rollout
    };
    // Step 10 comes before step 9, and both halves of it count together.
    for batch in [
        [step(10, 1, "a"), step(10, 2, "a")],
        [step(9, 8, "a"), step(9, 9, "a")],
        [step(10, 1, "b"), step(10, 2, "b")],
    ] {
        breakdown.observe(&engine.score(&batch).unwrap(), &batch);
    }
    let parts = breakdown.parts();
    let told: Vec<_> = parts
        .iter()
        .map(|part| (part.value, part.drift, part.statistics.rollouts, part.statistics.groups.count))
        .collect();
    assert_eq!(told, [("9", None, 2, 1), ("10", Some(1.0), 4, 2)]);
}

#[test]
fn who_passes_a_gate_alone_is_not_spoiled_by_who_does_not() {
    let yaml = "components:
  format: { reward: reasoning_format, gate: { min: 1.0, total: -1.0 } }
  brevity: { reward: kimi.length, correct: extra }
";
    let good = "<think>a</think><answer>b</answer>";
    let mut rollouts = vec![Rollout::new(good).in_group("g"), Rollout::new("bad").in_group("g")];
    for rollout in &mut rollouts {
        rollout.extra.insert("correct".to_owned(), json!(true));
    }
    let report = score(yaml, &rollouts);
    assert_eq!((report.rows[0].total.kind(), report.rows[0].total.value()), (OutcomeKind::Scored, Some(1.0)));
    assert_eq!(report.rows[1].total.value(), Some(-1.0));
    let alone = score(yaml, &rollouts[..1]);
    assert_eq!(alone.rows[0].total.cause().map(|cause| cause.reason.code), Some(Code::GroupTooSmall));
    assert_eq!(alone.rows[0].total.kind(), OutcomeKind::Invalid);
}

#[test]
fn response_beyond_the_length_limit_gets_the_floor() {
    let yaml = "components:
  format: { reward: reasoning_format, floor: -2.0 }
  privacy: { reward: privacy_leakage }
  length: { reward: length_penalty, penalty_rate: 1.0, max_length: 10, weight: 0 }
limits: { response_bytes: 64 }
";
    let long = format!("<think>a</think><answer>{}</answer>", "b".repeat(100));
    let report = score(yaml, &[Rollout::new(long.as_str())]);
    let outcomes: Vec<_> =
        report.rows[0].outcomes.iter().flatten().map(|outcome| (outcome.kind(), outcome.value())).collect();
    assert_eq!(outcomes[0], (OutcomeKind::Floored, Some(-2.0)));
    assert_eq!(outcomes[1], (OutcomeKind::Floored, Some(-5.0)));
    assert_eq!(outcomes[2], (OutcomeKind::Scored, Some(10.0 - long.len() as f64)));
    assert_eq!(
        (report.rows[0].total.kind(), report.rows[0].total.value()),
        (OutcomeKind::Floored, Some(-7.0))
    );
}

/// A reward of the caller's that remembers what it is shown.
struct Shown(Arc<Mutex<Vec<String>>>);

impl Custom for Shown {
    fn compares(&self) -> bool {
        false
    }

    fn score(&self, groups: &[Vec<RuleInput<'_>>], _: &CustomCall) -> Vec<Vec<Outcome>> {
        let one = |sample: &RuleInput<'_>| {
            self.0.lock().unwrap().push(sample.text.as_str().to_owned());
            Outcome::scored(1.0, Info::none())
        };
        groups.iter().map(|group| group.iter().map(one).collect()).collect()
    }
}

#[test]
fn custom_rewards_are_not_shown_what_is_too_long() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let kind = CustomKind {
        name: "shown".to_owned(),
        page: String::new(),
        schema: json!({ "type": "object", "properties": {}, "required": [] }),
        build: {
            let shown = Arc::clone(&shown);
            Box::new(move |_| Ok(Box::new(Shown(Arc::clone(&shown)))))
        },
    };
    let yaml = "components: { mine: { reward: shown, floor: -2.0 } }\nlimits: { response_bytes: 4 }\n";
    let plan = Recipe::from_yaml(yaml).unwrap().plan_with(&[kind]).unwrap();
    let report = Engine::new(plan).unwrap().score(&[Rollout::new("long"), Rollout::new("longer")]).unwrap();
    assert_eq!(*shown.lock().unwrap(), ["long"]);
    assert_eq!(report.rows[0].total.value(), Some(1.0));
    let long = report.rows[1].outcomes[0].as_ref().unwrap();
    assert_eq!((long.kind(), long.value()), (OutcomeKind::Floored, Some(-2.0)));
    assert_eq!(long.reason().unwrap().code, Code::ModelTooLong);
}

#[test]
fn a_program_too_long_to_run_closes_its_gate() {
    let yaml = "components:
  tests: { reward: code, gate: { min: 1.0, total: -1.0 } }
  length: { reward: kimi.length }
limits: { response_bytes: 4 }
";
    let options = EngineOptions { network: Network::Replay, ..EngineOptions::default() };
    let engine = Engine::open(plan(yaml), &options).unwrap();
    let report = engine.score(&[Rollout::new("longer"), Rollout::new("longer")]).unwrap();
    for row in &report.rows {
        assert_eq!((row.closed_by(), row.total.value()), (Some(0), Some(-1.0)));
        assert_eq!(row.outcomes[1], None);
    }
}

/// Every shipped recipe over the shipped example, with every judge out of reach: each rollout has exactly one outcome,
/// every number is finite, and no number comes from a judge that nobody has heard.
#[test]
fn every_shipped_recipe_scores_the_example() {
    let text = include_str!("../../../../examples/rollouts.jsonl");
    let read =
        |line: &str| plaudit::input::read_line(line.as_bytes(), &plaudit::input::Fields::own()).unwrap();
    let rollouts: Vec<Rollout<'_>> = text.lines().flat_map(read).collect();
    // Rows that bring options, schemas, instructions and rubrics.
    let mixed =
        [include_str!("../../../../examples/rlvr.jsonl"), include_str!("../../../../examples/rubrics.jsonl")];
    let mixed: Vec<Rollout<'_>> = mixed.iter().flat_map(|file| file.lines()).flat_map(read).collect();
    for (name, _) in plaudit::recipe::shipped() {
        let mut recipe = Recipe::named(name).unwrap();
        let plan = recipe.plan().unwrap();
        let remote: Vec<_> = plan.judges.iter().filter(|judge| !judge.base_urls.is_empty()).collect();
        for judge in &remote {
            recipe.set(&format!("judges.{}.base_url", judge.name), "http://127.0.0.1:1").unwrap();
            recipe.set(&format!("judges.{}.patience", judge.name), "100ms").unwrap();
        }
        let engine = Engine::new(recipe.plan().unwrap()).unwrap();
        let report = engine.score(&rollouts).unwrap();
        assert_eq!(report.rows.len(), rollouts.len());
        assert_eq!(report.statistics.outcomes.all(), rollouts.len() as u64, "{name}");
        assert!(report.rows.iter().filter_map(|row| row.total.value()).all(f64::is_finite), "{name}");
        if remote.is_empty() {
            let scores = |report: &Report| report.statistics.total.moments.count > 0;
            assert!(scores(&report) || scores(&engine.score(&mixed).unwrap()), "{name} scores nothing");
        } else {
            let invalid = |report: &Report| report.statistics.outcomes.of(OutcomeKind::Invalid);
            // The rows that a judge is asked about by their rubric are in the other file.
            assert!(invalid(&report) > 400 || invalid(&engine.score(&mixed).unwrap()) == 10, "{name}");
            if invalid(&report) == 0 {
                continue;
            }
            // Responses that all say the same are equally good, which needs no judge.
            let same = |row: &&plaudit::report::Row| {
                let info = row.outcomes[0].as_ref().and_then(|outcome| outcome.info());
                info.and_then(|info| info.get("comparisons")) == Some(&Fact::Count(0))
            };
            let scored = report.rows.iter().filter(|row| row.total.kind() == OutcomeKind::Scored);
            assert_eq!(scored.clone().filter(same).count(), scored.count(), "{name}");
        }
    }
}

#[test]
fn a_group_of_two_prompts_is_not_compared() {
    let yaml = "components: { kimi: { reward: kimi.length, correct: extra } }\n";
    let rollout = |prompt: &str| {
        let mut rollout = Rollout::new("a".repeat(prompt.len())).to_prompt(prompt.to_owned()).in_group("g");
        rollout.extra.insert("correct".to_owned(), true.into());
        rollout
    };
    let code = |prompts: [&str; 2]| {
        let report = score(yaml, &prompts.map(rollout));
        report.rows[1].total.cause().map(|cause| cause.reason.code)
    };
    assert_eq!(code(["one", "three"]), Some(Code::GroupMixed));
    assert_eq!(code(["one", "one"]), None);
}
