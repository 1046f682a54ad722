//! Prompt templates of recipes: every case of golden/abuse/template_cases.jsonl, through a recipe.

use crate::timing::cpu_time;
use plaudit::recipe::Recipe;
use serde_json::{Value, json};

fn load(prompt: &str) -> Result<(), String> {
    let recipe = json!({
        "components": { "own": {
            "reward": "judge", "mode": "pointwise", "prompt": prompt, "answer": { "json": "score", "min": 0, "max": 1 },
        } },
        "judges": { "main": { "base_url": "http://127.0.0.1:1", "model": "m" } },
    });
    let plan = Recipe::from_value(&recipe).and_then(|recipe| recipe.plan());
    plan.map(drop).map_err(|errors| errors.to_string())
}

#[test]
fn every_template_is_taken_or_refused_as_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/abuse/template_cases.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let payload = match case["gen"].as_str() {
            Some("jinja_parens") => format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000)),
            None => case["payload"].as_str().unwrap().to_owned(),
            Some(other) => panic!("{id}: {other}"),
        };
        // Every prompt shows the response, so that it is not refused for that alone.
        let prompt = if payload.contains("{{ response }}") { payload } else { payload + "{{ response }}" };
        let started = cpu_time();
        let loaded = load(&prompt);
        assert!((cpu_time() - started).as_millis() < 2000, "{id} takes too long");
        match case["expect"]["outcome"].as_str().unwrap() {
            "ok" => assert_eq!(loaded, Ok(()), "{id}"),
            "reject_file" => assert!(loaded.unwrap_err().contains("components.own.prompt"), "{id}"),
            other => panic!("{id}: {other}"),
        }
        count += 1;
    }
    assert_eq!(count, 7);
}
