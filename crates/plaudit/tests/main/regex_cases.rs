//! Hostile patterns are refused when the recipe is loaded, and hostile texts are matched in time.
//! The cases stand in `golden/abuse/regex_cases.jsonl`.

use crate::golden::lines;
use crate::timing::cpu_time;
use plaudit::rollout::Generation;
use plaudit::rule::{self, Rule, RuleInput};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A hostile text or pattern, by the name that the cases give it.
fn generate(name: &str) -> String {
    match name {
        "think_spam" => "<think>\n\n</think>\n<answer>\n".repeat(148_000 / 27),
        "text_spam" => "\\text{".repeat(32_000),
        "a_tags" => "<a>".repeat(20_000),
        "regex_nest" => format!("{}a{}", "(".repeat(500), ")".repeat(500)),
        "regex_alt" => (0..10_000).map(|at| format!("word{at}")).collect::<Vec<_>>().join("|"),
        other => panic!("no generator {other}"),
    }
}

/// The word with which our refusal begins, where the case wants one.
fn wanted(case: &Value) -> Option<&'static str> {
    let expect = &case["expect"];
    if expect["outcome"] != "reject_file" {
        return None;
    }
    let reason = expect["reason"].as_str().expect("a reason");
    let causes = ["regex_size", "regex_depth", "regex_feature", "regex_empty", "regex_group"];
    let named = causes.into_iter().find(|cause| reason.contains(*cause));
    Some(named.unwrap_or_else(|| {
        assert!(reason.contains("matches the empty string"), "{reason}");
        "regex_always"
    }))
}

#[test]
fn every_case_ends_as_written_and_in_time() {
    let kind = rule::find("regex").expect("a regex reward");
    let cases = lines("abuse/regex_cases.jsonl");
    assert!(cases.len() >= 12);
    for case in cases {
        let id = case["id"].as_str().expect("an id");
        let limit =
            case["expect"]["max_ms"].as_u64().expect("a limit") * if cfg!(debug_assertions) { 5 } else { 1 };
        let pattern = match case["gen"].as_str() {
            Some(name) => generate(name),
            None => case["payload"].as_str().expect("a pattern").to_owned(),
        };
        let text = match (case["text_gen"].as_str(), case["text"].as_str()) {
            (Some(name), _) => generate(name),
            (None, given) => given.unwrap_or("none").to_owned(),
        };
        let wanted = wanted(&case);
        let compare = wanted == Some("regex_group");
        let start = cpu_time();
        let built =
            (kind.build)(json!({ "pattern": pattern, "compare": compare }), &mut ResourceCache::default());
        match (built, wanted) {
            (Err(refusals), Some(cause)) => {
                assert_eq!(refusals[0].key, "pattern", "{id}");
                assert!(refusals[0].message.starts_with(cause), "{id}: {}", refusals[0].message);
            }
            (Ok(Rule::Each(rule)), None) => {
                let text = Text::new(text.as_str());
                let extra = Map::new();
                let outcome = rule.score(&RuleInput {
                    text: &text,
                    reference: None,
                    prompt: None,
                    tokens: None,
                    generation: &Generation::default(),
                    tools: None,
                    extra: &extra,
                });
                assert_eq!(outcome.value(), Some(0.0), "{id}");
            }
            (Err(refusals), None) => panic!("{id}: refused, {}", refusals[0].message),
            (Ok(_), _) => panic!("{id}: not refused"),
        }
        let took = cpu_time() - start;
        assert!(took <= Duration::from_millis(limit), "{id}: {took:?}");
    }
}
