//! Rules about conversations against the vectors in `golden/conversations/`, and `tool_calls` against the answers of its peers.
//!
//! The vectors of `tool_calls` hold what a peer says (`expected`) and what is right (`truth`, null where that is open). Where
//! plaudit answers otherwise than `truth`, `differences.jsonl` has our answer and the key of the reason in `golden/README.md`.

use crate::golden::{golden, lines, said, same};
use plaudit::conversation::FinishReason;
use plaudit::engine::Engine;
use plaudit::input::{Fields, read_line};
use plaudit::outcome::Outcome;
use plaudit::recipe::Recipe;
use plaudit::rollout::Rollout;
use plaudit::rule::reference_view::ReferenceView;
use plaudit::rule::{Registration, Rule, RuleInput, find};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The one rollout of a line.
fn rollout(line: &Value) -> Rollout<'static> {
    read_line(line.to_string().as_bytes(), &Fields::own()).unwrap().next().unwrap()
}

/// What a rule says of a rollout: a number, or words such as `skipped input.missing_reference`.
fn answer(kind: &Registration<Rule>, parameters: &Value, rollout: &Rollout<'_>) -> Value {
    let rule = match (kind.build)(parameters.clone(), &mut ResourceCache::default()) {
        Ok(Rule::Each(rule)) => rule,
        Ok(Rule::Group(_)) => unreachable!("no rule about conversations compares a group"),
        Err(refusals) => return Value::from(format!("refused {}", refusals[0].key)),
    };
    let reference = ReferenceView::of(rollout);
    let outcome: Outcome = rule.score(&RuleInput::of(rollout, &Text::of(rollout), reference.as_ref()));
    said(outcome.value(), outcome.kind(), outcome.reason())
}

#[test]
fn rules_about_conversations_agree_with_their_vectors() {
    for name in ["action_loop", "tool_call_validity", "truncated", "turn_count"] {
        let vectors = lines(&format!("conversations/{name}.jsonl"));
        assert!(vectors.len() >= 10, "{name} has only {} vectors", vectors.len());
        for vector in vectors {
            let mut line = vector.clone();
            line.as_object_mut().unwrap().retain(|key, _| {
                ["response", "reference", "tools", "finish_reason", "truncated", "extra"]
                    .contains(&key.as_str())
            });
            let ours = answer(find(name).unwrap(), &vector["params"], &rollout(&line));
            assert!(same(&ours, &vector["expected"]["score"]), "{}: {ours}", vector["id"]);
        }
    }
}

#[test]
fn calls_and_references_are_read_as_people_publish_them() {
    for file in ["conversations/published_calls.jsonl", "published_references.jsonl"] {
        for vector in lines(file) {
            let mut line = vector.clone();
            let own = ["id", "reward", "params", "tag", "expected"];
            line.as_object_mut().unwrap().retain(|key, _| !own.contains(&key.as_str()));
            let kind = find(vector["reward"].as_str().unwrap()).unwrap();
            let ours = answer(kind, &vector["params"], &rollout(&line));
            assert!(same(&ours, &vector["expected"]), "{} {}: {ours}", vector["id"], vector["tag"]);
        }
    }
}

#[test]
fn a_truncated_rollout_closes_its_gate() {
    let engine = Engine::new(Recipe::named("agent").unwrap().plan().unwrap()).unwrap();
    let call = json!({"name": "f", "arguments": {}});
    let turn = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    let ended = |reason: Value| {
        let fields = json!({"response": [turn], "expected_calls": [call], "tools": [{"name": "f"}]});
        let mut rollout = rollout(&fields);
        rollout.generation.finish_reason = reason.as_str().map(FinishReason::from_word);
        rollout
    };
    let rollouts = [json!("stop"), json!("length"), json!(null)].map(ended);
    assert_eq!(engine.score(&rollouts).unwrap().totals(), [1.2, -1.0, 1.2]);
}

/// The parameters that stand for those of a peer, and the rollout.
fn translated(vector: &Value) -> (Value, Rollout<'static>) {
    let text = |field: &str| vector[field].as_str().unwrap();
    let mut parameters = Map::new();
    let mut put = |key: &str, value: Value| parameters.insert(key.to_owned(), value);
    if text("matcher") == "trajectory" {
        put("mode", vector["mode"].clone());
        put("arguments", vector["args_mode"].clone());
        if !vector["overrides"].is_null() {
            put("overrides", vector["overrides"].clone());
        }
        let mut line = json!({"response": vector["output"], "reference": vector["reference"].to_string()});
        if vector["output"] == json!([]) {
            line["response"] = json!("");
        }
        return (Value::Object(parameters), rollout(&line));
    }
    let config = &vector["config"];
    let allows = |key: &str| config[key].as_bool() == Some(true);
    put(
        "mode",
        match (allows("parallel_tool_call_rewarding"), allows("allow_subset"), allows("allow_superset")) {
            _ if text("matcher") == "xlam_fc" || vector["expected_calls"].is_null() => "unordered",
            // Without it surplus calls are free.
            (false, ..) => "superset",
            (true, false, false) => "unordered",
            (true, true, false) => "subset",
            (true, false, true) => "superset",
            (true, true, true) => "overlap",
        }
        .into(),
    );
    put(
        "score",
        match text("mode") {
            "all" | "binary_strict" => "all",
            "fractional" => "fraction",
            other => other,
        }
        .into(),
    );
    put("count_gate", true.into());
    let expected = match &vector["expected_calls"] {
        Value::Null => json!({"type": "message"}),
        calls => calls.clone(),
    };
    let message = json!({"role": "assistant", "content": "", "tool_calls": vector["output_calls"]});
    (Value::Object(parameters), rollout(&json!({"response": [message], "expected_calls": expected})))
}

/// What a peer says as a number, where it says one.
fn number(said: &Value) -> Option<f64> {
    let said = said.get("reward").unwrap_or(said);
    said.as_bool().map(|right| f64::from(u8::from(right))).or_else(|| said.as_f64())
}

#[test]
fn tool_calls_are_matched_as_is_right() {
    let differences: BTreeMap<String, Value> = lines("conversations/differences.jsonl")
        .into_iter()
        .map(|line| (line["id"].as_str().unwrap().to_owned(), line))
        .collect();
    let readme = std::fs::read_to_string(golden().join("README.md")).unwrap();
    let vectors = lines("conversations/tool_calls.jsonl");
    let (mut wrong, mut listed, mut settled, mut unlike_peer) = (Vec::new(), 0, 0, 0);
    for vector in &vectors {
        let id = vector["id"].as_str().unwrap();
        let (parameters, rollout) = translated(vector);
        let ours = answer(find("tool_calls").unwrap(), &parameters, &rollout);
        let Some(truth) = number(&vector["truth"]) else {
            // What is right is open; no answer that cannot be read is a number, however.
            let unread = vector["tag"] == "the reference is no JSON";
            assert!(!unread || ours == "invalid input.reference_unparsable", "{id}: {ours}");
            continue;
        };
        settled += 1;
        unlike_peer += usize::from(number(&vector["expected"]) != Some(truth));
        match differences.get(id) {
            None if same(&ours, &json!(truth)) => {}
            None => wrong.push(format!("{id}: ours {ours}, right {truth}, {parameters}")),
            Some(difference) => {
                listed += 1;
                let why = difference["why"].as_str().unwrap();
                assert!(readme.contains(&format!("| {why} |")), "{id}: {why} is not explained");
                let holds = same(&ours, &difference["ours"]) && !same(&ours, &json!(truth));
                assert!(holds, "{id}: ours {ours}, listed {difference}");
            }
        }
    }
    println!("{settled} of {} are settled; peers answer {unlike_peer} of them otherwise", vectors.len());
    assert!(wrong.is_empty(), "{} of {settled} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((vectors.len(), settled, listed), (790, 728, differences.len()));
}
