//! Composed totals against RM-Gallery's `SimpleComposition`, on the same rewards and weights.

use crate::golden::{differences, lines, said, same};
use plaudit::engine::Engine;
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use serde_json::{Map, Value, json};

/// What plaudit says of one vector: the total, or why there is none.
fn answer(vector: &Value) -> Value {
    let (weights, rewards) = (&vector["params"]["weights"], &vector["params"]["rewards"]);
    let component = |(name, reward): (&String, &Value)| {
        let mut component = reward["params"].as_object().cloned().unwrap();
        component.insert("reward".to_owned(), reward["cls"].clone());
        if let Some(weight) = weights.get(name) {
            component.insert("weight".to_owned(), weight.clone());
        }
        (name.clone(), Value::Object(component))
    };
    let components: Map<String, Value> = rewards.as_object().unwrap().iter().map(component).collect();
    let recipe = Recipe::from_value(&json!({ "components": components, "combine": "mean" })).unwrap();
    let plan = match recipe.plan() {
        Ok(plan) => plan,
        Err(errors) => return json!(format!("refused {}", errors.as_slice()[0].code)),
    };
    let mut rollout = Rollout::new(vector["response"].as_str().unwrap());
    rollout.reference = vector["reference"].as_str().map(Into::into);
    let report = Engine::new(plan).unwrap().score(&[rollout]).unwrap();
    let total = &report.rows[0].total;
    said(total.value(), total.kind(), total.cause().map(|cause| &cause.reason))
}

#[test]
fn totals_agree_with_the_vectors_or_differ_on_purpose() {
    let differences = differences();
    let mut wrong = Vec::new();
    for vector in lines("simple_composition.jsonl") {
        let id = vector["id"].as_str().unwrap();
        let (ours, theirs) = (answer(&vector), &vector["expected"]["score"]);
        let wanted = differences.get(id).map_or(theirs, |difference| &difference["ours"]);
        if !same(&ours, wanted) {
            wrong.push(format!("{id}: ours {ours}, theirs {theirs}, reference {}", vector["reference"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
