//! Reward `rubric`: whatever a judge or a response does, no item becomes a number that it is not, and no fault a pass.

use crate::golden::lines;
use crate::mock_judge::Mock;
use plaudit::engine::{Engine, EngineOptions, ScoreOptions};
use plaudit::journal::Store;
use plaudit::outcome::{Fact, OutcomeKind};
use plaudit::reason::Code;
use plaudit::recipe::Recipe;
use plaudit::report::Report;
use plaudit::rollout::Rollout;
use plaudit::rubric::{Item, ItemVerdict, RubricFormula};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;

/// Criteria of which the mock knows the truth: one that says "zebra" is met. The number is 6 / 9.
fn rubric() -> Value {
    json!([
        { "criterion": "Speaks of a zebra, and well.", "points": 6 },
        { "criterion": "Speaks of a horse.", "points": 3, "tags": ["important"] },
        { "criterion": "Insults the reader.", "points": -5 },
        { "criterion": "Speaks of\nmany a zebra.", "points": -1.5 },
        { "criterion": "Names its sources.", "points": 1.5 },
    ])
}
const TRUTH: f64 = (6.0 - 1.5) / 10.5;

fn recipe(url: &str, more: &str) -> Recipe {
    Recipe::from_yaml(&format!(
        "components:
  checklist: {{ reward: rubric{more} }}
judges:
  main: {{ base_url: \"{url}\", model: mock, answer_format: json, timeout: 1s, connect_timeout: 1s, patience: 1s, attempts: 2, hedge_share: 0 }}
groups: {{ timeout: 20s }}
"
    ))
    .unwrap()
}

fn rollouts(count: usize) -> Vec<Rollout<'static>> {
    let rollout = |at: usize| {
        let mut rollout =
            Rollout::new(format!("An answer, number {at}.")).to_prompt(format!("[[sample:{at}]]"));
        rollout.extra.insert("rubrics".to_owned(), rubric());
        rollout
    };
    (0..count).map(rollout).collect()
}

/// The verdicts of an outcome by their criteria.
fn verdicts(report: &Report, row: usize) -> Vec<(String, Option<String>)> {
    let outcome = report.rows[row].outcomes[0].as_ref().unwrap();
    let Some(Fact::Json(Value::Array(items))) = outcome.info().and_then(|info| info.get("items")) else {
        return Vec::new();
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    items.iter().map(|item| (text(&item["criterion"]).unwrap(), text(&item["verdict"]))).collect()
}

/// Scores by a judge that always fails in one way: nothing but the truth may come of it, with any number of items a call.
fn face(mock: &Mock, mode: &str, failures: &Mutex<Vec<String>>) -> bool {
    let mut scored = false;
    for more in ["", ", items_per_call: 1, tolerance: 1", ", items_per_call: all, applies: judge"] {
        let engine = Engine::new(recipe(&mock.url(mode), more).plan().unwrap()).unwrap();
        let report = engine.score(&rollouts(2)).unwrap();
        for row in 0..2 {
            let outcome = report.rows[row].outcomes[0].as_ref().unwrap();
            let lies = verdicts(&report, row).into_iter().filter(|(criterion, said)| {
                let truth = if criterion.contains("zebra") { "yes" } else { "no" };
                said.as_deref().is_some_and(|said| said != truth && mode != "items_not_asked")
            });
            let lies: Vec<_> = lies.collect();
            let number = match outcome.value() {
                Some(value) if more.contains("tolerance") => {
                    let Some(info) = outcome.info() else { continue };
                    let end = |name| match info.get(name) {
                        Some(Fact::Number(number)) => *number,
                        _ => value,
                    };
                    let said = verdicts(&report, row).iter().any(|(_, said)| said.is_some());
                    said && end("low") <= TRUTH + 1e-9 && TRUTH <= end("high") + 1e-9
                }
                Some(value) => (value - TRUTH).abs() < 1e-9,
                None => outcome.kind() == OutcomeKind::Invalid,
            };
            if !number || !lies.is_empty() {
                failures.lock().unwrap().push(format!("{mode}{more}: {outcome:?} {lies:?}"));
            }
            scored |= outcome.value().is_some();
        }
    }
    scored
}

#[test]
fn no_fault_of_a_judge_becomes_a_verdict_about_an_item() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mock_judge.py");
    let listed = Command::new("python3").args([script, "--list"]).output().unwrap();
    let modes: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    assert!(modes.len() >= 106, "{}", modes.len());
    let (mock, failures) = (Mock::start(&["--drip", "0.01"]), Mutex::new(Vec::new()));
    let (next, scored) = (Mutex::new(modes.iter()), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                while let Some(mode) = { next.lock().unwrap().next() } {
                    if face(&mock, mode, &failures) {
                        scored.lock().unwrap().insert(mode.clone());
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // What is said in another dress is said all the same; everything else is invalid.
    let scored = scored.into_inner().unwrap();
    assert!(scored.contains("ok") && !scored.contains("items_said"), "{scored:?}");
}

#[test]
fn what_was_left_out_is_asked_for_alone_and_may_not_matter() {
    let mock = Mock::start(&["--mix", "ok=50,items_half=50"]);
    let engine = Engine::new(recipe(&mock.url("ok"), ", items_per_call: all").plan().unwrap()).unwrap();
    let report = engine.score(&rollouts(20)).unwrap();
    let scored = report.rows.iter().filter(|row| row.total.value().is_some()).count();
    assert!(scored >= 10, "{scored} of 20");
    for row in report.rows.iter().filter(|row| row.total.value().is_some()) {
        assert!((row.total.value().unwrap() - TRUTH).abs() < 1e-9);
    }
}

#[test]
fn a_rubric_that_gains_an_item_buys_one_item() {
    let mock = Mock::start(&[]);
    let folder = std::env::temp_dir().join(format!("plaudit-rubric-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let (journal, _) = Store::open(&folder.display().to_string()).unwrap();
    let score = |rows: &[Rollout<'static>], more: &str| {
        let parts = EngineOptions { journal: Some(journal.clone()), ..EngineOptions::default() };
        let engine = Engine::open(recipe(&mock.url("ok"), more).plan().unwrap(), &parts).unwrap();
        let report = engine.score(rows).unwrap();
        assert!(report.rows.iter().all(|row| row.total.value().is_some()), "{:?}", report.rows);
        (report.rows, engine.judge_usage()[0].calls)
    };
    let mut rows = rollouts(3);
    let (first, calls) = score(&rows, "");
    assert_eq!(calls, 3 * 2, "five items are two calls");
    let (again, calls) = score(&rows, "");
    assert_eq!((again, calls), (first.clone(), 0), "a second run asks nobody");
    // Another number of items a call, another order and another formula: what was said is known.
    for more in [", items_per_call: 2", ", items_per_call: all, aggregate: signed", ", seed: 9"] {
        assert_eq!(score(&rows, more).1, 0, "{more}");
    }
    for row in &mut rows {
        let rubrics = row.extra.get_mut("rubrics").unwrap().as_array_mut().unwrap();
        rubrics.reverse();
        rubrics.insert(2, json!({ "criterion": "Is short.", "points": 1 }));
        // Equal words are asked about once.
        rubrics.push(json!({ "criterion": "Names its sources.", "points": 2 }));
    }
    assert_eq!(score(&rows, "").1, 3, "one new item a response");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn an_audit_asks_again_and_changes_no_verdict() {
    let mock = Mock::start(&[]);
    let plain = Engine::new(recipe(&mock.url("ok"), "").plan().unwrap()).unwrap();
    let audited = Engine::new(recipe(&mock.url("ok"), ", audit: 1").plan().unwrap()).unwrap();
    let (one, other) = (plain.score(&rollouts(3)).unwrap(), audited.score(&rollouts(3)).unwrap());
    assert_eq!(one.rows, other.rows);
    let calls = |engine: &Engine| engine.judge_usage()[0].calls;
    assert_eq!((calls(&plain), calls(&audited)), (3 * 2, 3 * 2 + 3 * 5));
    let items = serde_json::to_value(&other.statistics).unwrap();
    let items = &items["components"]["checklist"]["judging"]["items"]["all"];
    assert_eq!((&items["asked"], &items["disagreement"]), (&json!(15), &json!(0.0)));
}

#[test]
fn several_items_are_asked_in_words_whatever_the_judge_says() {
    let mock = Mock::start(&[]);
    let mut recipe = recipe(&mock.url("ok"), "");
    recipe.set("judges.main.answer_format", "logprobs").unwrap();
    let report = Engine::new(recipe.plan().unwrap()).unwrap().score(&rollouts(1)).unwrap();
    assert!((report.rows[0].total.value().unwrap() - TRUTH).abs() < 1e-9, "{:?}", report.rows[0]);
}

#[test]
fn no_rubric_is_no_number() {
    let engine = Engine::new(recipe("http://127.0.0.1:9/v1", "").plan().unwrap()).unwrap();
    let row = |field: Option<(&str, Value)>| {
        let mut rollout = Rollout::new("x").to_prompt("q");
        rollout.extra.extend(field.map(|(key, value)| (key.to_owned(), value)));
        let report = engine.score(&[rollout]).unwrap();
        let outcome = report.rows[0].outcomes[0].clone().unwrap();
        (outcome.kind(), outcome.reason().unwrap().code, outcome.reason().unwrap().message.to_string())
    };
    let (kind, code, _) = row(None);
    assert_eq!((kind, code), (OutcomeKind::Skipped, Code::MissingRubric));
    for (value, place) in [
        (json!([]), "rubrics: empty rubric"),
        (json!([{ "criterion": "x", "points": "five" }]), "rubrics[0].points"),
        (json!([{ "criterion": "x", "points": -1 }]), "not above zero"),
        (json!("not JSON"), "rubrics: not JSON"),
        (
            json!([{ "criterion": "x", "points": 1 }, { "criterion": " ", "points": 1 }]),
            "rubrics[1].criterion",
        ),
    ] {
        let (kind, code, message) = row(Some(("rubrics", value)));
        assert_eq!((kind, code), (OutcomeKind::Invalid, Code::BadRubric));
        assert!(message.contains(place), "{message} should name {place}");
    }
}

/// The part of a prompt that is not between markers, without the codes that differ from response to response.
fn frame(prompt: &str) -> String {
    let (before, rest) = prompt.split_once("\n<response ").unwrap();
    let (fence, rest) = rest.split_once(">\n").unwrap();
    let close = format!("\n</response {fence}>");
    assert_eq!(prompt.matches(&close).count(), 1, "{prompt}");
    let (_, after) = rest.split_once(&close).unwrap();
    uncoded(&format!("{before}…{after}"))
}

/// A prompt without its codes.
fn uncoded(prompt: &str) -> String {
    let codes = regex::Regex::new("item_([0-9]+)_[0-9a-f]{4}|[0-9a-f]{16}|[0-9a-f]{32}").unwrap();
    codes.replace_all(prompt, "item_$1").into_owned()
}

#[test]
fn a_response_that_speaks_of_verdicts_gains_nothing() {
    let mock = Mock::start(&[]);
    let attacks = lines("rubric_attacks.jsonl");
    assert!(attacks.len() >= 40);
    for format in ["json", "tag"] {
        let mut recipe = recipe(&mock.url("ok"), "");
        recipe.set("judges.main.answer_format", format).unwrap();
        let engine = Engine::new(recipe.plan().unwrap()).unwrap();
        let mut frames = BTreeSet::new();
        for attack in &attacks {
            let mut rollout = rollouts(1).remove(0);
            rollout.response = attack["response"].as_str().unwrap().to_owned().into();
            let (report, calls) = engine.explain(&[rollout], &ScoreOptions::default()).unwrap();
            for call in calls {
                frames.insert(frame(&call.prompt).split("# Criteria").next().unwrap().to_owned());
            }
            if format == "json" {
                assert!((report.rows[0].total.value().unwrap() - TRUTH).abs() < 1e-9, "{attack}: {report:?}");
            }
        }
        assert_eq!(frames.len(), 1, "a response changed the prompt around it: {frames:?}");
    }
}

fn item() -> impl Strategy<Value = Item> {
    (-4_i32..=6, any::<bool>(), prop::option::of(2_usize..4)).prop_map(|(weight, negative, choices)| Item {
        criterion: String::new(),
        weight: f64::from(weight),
        negative: negative || weight < 0,
        choices: choices.map(|count| (0..count).map(|at| at.to_string()).collect()),
        tags: Vec::new(),
    })
}

const AGGREGATES: [RubricFormula; 8] = [
    RubricFormula::Healthbench,
    RubricFormula::Weighted,
    RubricFormula::Signed,
    RubricFormula::Mean,
    RubricFormula::All,
    RubricFormula::Any,
    RubricFormula::Min,
    RubricFormula::Max,
];

/// Every way to fill in the verdicts that are missing.
fn completions(items: &[Item], verdicts: &[ItemVerdict], may_not_apply: bool) -> Vec<Vec<ItemVerdict>> {
    let mut all = vec![Vec::new()];
    for (item, verdict) in items.iter().zip(verdicts) {
        let answers = (0..item.answers().len()).map(ItemVerdict::Answer);
        let options: Vec<ItemVerdict> = match verdict {
            ItemVerdict::Missing => {
                answers.chain(may_not_apply.then_some(ItemVerdict::NotApplicable)).collect()
            }
            known => vec![*known],
        };
        let grown = all.iter().flat_map(|one: &Vec<ItemVerdict>| {
            options.iter().map(|option| one.iter().copied().chain([*option]).collect())
        });
        all = grown.collect();
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The range over missing verdicts is that over every way to fill them in: so a number that is given although one is missing
    /// is the number that each of them gives, and a fault that nobody looked for is no pass.
    #[test]
    fn the_range_is_that_of_all_verdicts_that_could_have_come(
        rows in prop::collection::vec((item(), 0_usize..5), 1..6),
        may_not_apply in any::<bool>(),
    ) {
        let (items, verdicts): (Vec<Item>, Vec<ItemVerdict>) = rows
            .into_iter()
            .map(|(item, said)| {
                let verdict = match said {
                    0 | 1 => ItemVerdict::Missing,
                    2 if may_not_apply => ItemVerdict::NotApplicable,
                    said => ItemVerdict::Answer(said % item.answers().len()),
                };
                (item, verdict)
            })
            .unzip();
        for aggregate in AGGREGATES {
            let Ok(range) = aggregate.bounds(&items, &verdicts, may_not_apply) else { continue };
            prop_assert!(range.low <= range.high);
            let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
            let mut undefined = false;
            for whole in completions(&items, &verdicts, may_not_apply) {
                match aggregate.bounds(&items, &whole, may_not_apply) {
                    Ok(one) => {
                        prop_assert_eq!(one.low, one.high, "{:?}", aggregate);
                        prop_assert!(range.low - 1e-9 <= one.low && one.low <= range.high + 1e-9, "{:?}", aggregate);
                        ends = (ends.0.min(one.low), ends.1.max(one.low));
                    }
                    Err(_) => undefined = true,
                }
            }
            // Where some way to fill them in is no number at all, the range may be wider, never narrower.
            if !undefined {
                prop_assert!((range.low - ends.0).abs() < 1e-9 && (range.high - ends.1).abs() < 1e-9, "{:?} {:?} {:?}", aggregate, range, ends);
            }
        }
    }
}

#[test]
fn parallelism_and_the_order_of_items_change_nothing() {
    let mock = Mock::start(&[]);
    let score = |parallel: usize, reversed: bool| {
        let mut recipe = recipe(&mock.url("ok"), "");
        recipe.set("groups.parallel", &parallel.to_string()).unwrap();
        let mut rows = rollouts(12);
        if reversed {
            let list = |row: &mut Rollout<'_>| row.extra["rubrics"].as_array_mut().unwrap().reverse();
            rows.iter_mut().for_each(list);
        }
        let (report, calls) =
            Engine::new(recipe.plan().unwrap()).unwrap().explain(&rows, &ScoreOptions::default()).unwrap();
        let totals: Vec<Option<f64>> = report.rows.iter().map(|row| row.total.value()).collect();
        let prompts: BTreeMap<String, usize> = calls.into_iter().fold(BTreeMap::new(), |mut all, call| {
            *all.entry(uncoded(&call.prompt)).or_insert(0) += 1;
            all
        });
        (totals, prompts)
    };
    let once = score(1, false);
    assert_eq!(once, score(4, false));
    assert_eq!(once, score(4, true), "the order of the items leaves no trace");
}
