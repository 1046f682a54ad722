//! The validator of `structured_output` against `golden/json_schema.jsonl`: every keyword in every draft that has it.

use crate::golden::lines;
use plaudit::input::{Fields, read_line};
use plaudit::rule::{Rule, RuleInput, find};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Value, json};

#[test]
fn values_are_valid_as_the_vectors_say() {
    let vectors = lines("json_schema.jsonl");
    assert!(vectors.len() >= 600, "{}", vectors.len());
    for vector in vectors {
        let mut parameters = json!({"fences": "none"});
        if !vector["formats"].is_null() {
            parameters["formats"] = vector["formats"].clone();
        }
        let kind = find("structured_output").unwrap();
        let Ok(Rule::Each(rule)) = (kind.build)(parameters, &mut ResourceCache::default()) else {
            unreachable!("it compares no group")
        };
        let extra = json!({"schema": vector["schema"], "schemas": vector["schemas"]});
        let line = json!({"prompt": "p", "response": vector["value"].to_string(), "extra": extra});
        let rollout = read_line(line.to_string().as_bytes(), &Fields::own()).unwrap().next().unwrap();
        let outcome = rule.score(&RuleInput::of(&rollout, &Text::of(&rollout), None));
        let reason = outcome.reason().map_or("", |reason| reason.code.as_str());
        match &vector["valid"] {
            Value::Bool(valid) => {
                assert_eq!(outcome.value(), Some(f64::from(u8::from(*valid))), "{vector}: {reason}")
            }
            _ => assert_eq!((outcome.value(), reason), (None, "input.schema_unsupported"), "{vector}"),
        }
    }
}
