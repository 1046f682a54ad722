//! `math_verify_reward` through the engine: the vectors with a settled truth, the presets, the abuse list, one reading a group.

use crate::golden::lines;
use plaudit::engine::Engine;
use plaudit::outcome::Outcome;
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use serde_json::Value;

/// The outcomes of vectors under one component, scored as one batch.
fn outcomes(component: &str, vectors: &[(String, String)]) -> Vec<Outcome> {
    let recipe = format!("components:\n  right: {{ reward: math, {component} }}\n");
    let engine = Engine::new(Recipe::from_yaml(&recipe).unwrap().plan().unwrap()).unwrap();
    // The vectors with one reference are a group, so that it is read once for them.
    let rollout = |(reference, response): &(String, String)| {
        Rollout::new(response.clone()).with_reference(reference.clone()).in_group(reference.clone())
    };
    let rollouts: Vec<Rollout<'_>> = vectors.iter().map(rollout).collect();
    let report = engine.score(&rollouts).unwrap();
    report.rows.into_iter().map(|mut row| row.outcomes.remove(0).unwrap()).collect()
}

fn pairs(rows: &[Value]) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "reference"), text(row, "response"))).collect()
}

#[test]
fn the_settled_vectors_are_judged_right() {
    let rows = lines("math_verify.jsonl");
    let (mut all, mut wrong, mut credit) = (0, Vec::new(), Vec::new());
    for (row, outcome) in rows.iter().zip(outcomes("weight: 1", &pairs(&rows))) {
        let Some(truth) = row["truth"].as_i64() else { continue };
        all += 1;
        match (truth, outcome.value()) {
            (1, Some(1.0)) | (0, Some(0.0) | None) => {}
            (0, _) => credit.push(row["id"].clone()),
            _ => wrong.push(row["id"].clone()),
        }
    }
    assert_eq!(all, 1619);
    assert!(credit.len() <= 2 && wrong.len() <= 13, "credit {credit:?}, no credit {wrong:?}");
}

#[test]
fn exact_presets_give_what_their_origins_give() {
    let rows = lines("math_verify.jsonl");
    let pairs = pairs(&rows);
    for (preset, wrong) in [
        ("verl.math_reward", 0.0),
        ("verl.math_dapo", -1.0),
        ("verl.math_dapo_strict_box", -1.0),
        ("verl.gsm8k", 0.0),
        ("verl.gsm8k_flexible", 0.0),
    ] {
        for (row, outcome) in rows.iter().zip(outcomes(&format!("preset: {preset}"), &pairs)) {
            let peer = if row["peers"][preset] == 1.0 { 1.0 } else { wrong };
            assert_eq!(outcome.value(), Some(peer), "{preset} {}: {outcome:?}", row["id"]);
        }
    }
}

#[test]
fn what_breaks_a_bound_is_floored_and_data_are_invalid() {
    let rows: Vec<Value> =
        lines("abuse/latex_cases.jsonl").into_iter().filter(|row| row["gen"].is_null()).collect();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let pairs: Vec<(String, String)> =
        rows.iter().map(|row| (text(row, "gold"), text(row, "payload"))).collect();
    for (row, outcome) in rows.iter().zip(outcomes("weight: 1", &pairs)) {
        let expected = match row["expect"]["outcome"].as_str().unwrap() {
            "floor" => matches!(&outcome, Outcome::Floored { value, .. } if value.get() == 0.0),
            "invalid" => matches!(outcome, Outcome::Invalid(_)),
            _ => matches!(outcome, Outcome::Scored { .. }),
        };
        assert!(expected, "{}: {outcome:?}", row["id"]);
    }
}
