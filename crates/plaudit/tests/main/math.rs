//! `math_verify_reward` through the engine: the vectors with a settled truth, the presets, the abuse list; and `first_of`, which asks
//! a judge where the rule says wrong.

use crate::golden::lines;
use crate::mock_judge::Mock;
use crate::submit::pointwise;
use plaudit::engine::Engine;
use plaudit::outcome::{Fact, Outcome};
use plaudit::reason::Code;
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

#[test]
fn a_judge_is_asked_only_where_the_rule_says_wrong() {
    let mock = Mock::start(&[]);
    let first =
        "components:\n  right: { reward: math, weight: 0 }\n  correct: { first_of: [right, judged] }\n";
    let recipe = pointwise(&mock.url("ok")).replace("components:\n", first);
    let recipe = recipe.replace("    reward: judge\n", "    reward: judge\n    weight: 0\n");
    let engine = Engine::new(Recipe::from_yaml(&recipe).unwrap().plan().unwrap()).unwrap();
    let rollout = |(at, response): (usize, &&'static str)| {
        let mut rollout = Rollout::new(*response).with_reference("\\frac12").to_prompt("q").in_group("g");
        rollout.id = Some(format!("r{at}").into());
        rollout
    };
    let responses = ["\\boxed{0.5}", "\\boxed{5}", "no idea", "\\boxed{\\frac{2}{4}}"];
    let report = engine.score(&responses.iter().enumerate().map(rollout).collect::<Vec<_>>()).unwrap();
    assert_eq!(engine.judge_usage()[0].calls, 2);
    for (at, row) in report.rows.iter().enumerate() {
        // In the order of the recipe: right, correct, judged, length.
        let [Some(right), Some(correct), Some(judged), _] = &row.outcomes[..] else { panic!("{row:?}") };
        let settled = at % 3 == 0;
        assert_eq!(right.value() == Some(1.0), settled);
        let (decided, by) = if settled { (right, "right") } else { (judged, "judged") };
        assert!(correct.value().is_some() && correct.value() == decided.value());
        assert_eq!(correct.info().unwrap().get("by"), Some(&Fact::Text(by.to_owned())));
        assert_eq!(judged.reason().map(|reason| reason.code), settled.then_some(Code::Settled));
    }
    let (_, correct) = report.statistics.components.iter().find(|(name, _)| name == "correct").unwrap();
    assert_eq!(correct.why.get("settled"), Some(&2));
    assert_eq!(correct.why.values().sum::<u64>(), 4);
}

#[test]
fn first_of_is_checked_when_the_recipe_is_loaded() {
    let judged = "j: { reward: judge, weight: 0, mode: pointwise, prompt: \"{{ response }}\", answer: { json: s, min: 0, max: 1 } }";
    let check = |components: &str| {
        let judges = "judges: { main: { base_url: http://h, model: m } }";
        let recipe = format!("components: {{ {components}, {judged} }}\n{judges}\n");
        Recipe::from_yaml(&recipe).and_then(|recipe| recipe.plan()).map_err(|errors| errors.to_string())
    };
    let plan = check("m: { reward: math, weight: 0 }, c: { first_of: [m, j], weight: 2 }").unwrap();
    assert_eq!(plan.branches[0].components[1].reward, "first_of");
    for (components, message) in [
        ("m: { reward: math, weight: 0 }, c: { first_of: [m, k] }", "there is no component \"k\""),
        ("m: { reward: math }, c: { first_of: [m, j] }", "\"m\" would count twice"),
        ("m: { reward: math, weight: 0 }, c: { first_of: [j, m] }", "only the last may ask"),
        ("m: { reward: math, weight: 0, right: 2 }, c: { first_of: [m, j] }", "all must have the same range"),
        ("m: { reward: kimi.length, weight: 0 }, c: { first_of: [m, j] }", "compares a group"),
        ("m: { reward: math, weight: 0 }, c: { first_of: [m] }", "first_of"),
        ("m: { reward: math, weight: 0 }, c: { first_of: [m, j], gate: { min: 1 } }", "gate"),
        (
            "m: { reward: math, weight: 0 }, c: { first_of: [m, j] }, d: { first_of: [c, j] }",
            "made of others",
        ),
    ] {
        let said = check(components).unwrap_err();
        assert!(said.contains(message), "{components}: {said}");
    }
}
