//! Rules against the golden vectors of their origins in `golden/`, read by reward name.
//!
//! A vector that plaudit answers otherwise on purpose stands in `golden/differences.jsonl` with our answer and the
//! key of the reason in `golden/README.md`.

use plaudit::outcome::{Outcome, OutcomeKind};
use plaudit::reason::Reason;
use plaudit::rule::{RULES, Registration, Rule, Sample};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

pub(crate) fn lines(name: &str) -> Vec<Value> {
    let path = golden().join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// What plaudit says of one vector: numbers, or words such as `skipped input.missing_reference` and `refused`.
fn answer(kind: &Registration<Rule>, vector: &Value) -> Vec<Value> {
    let mut parameters = vector["params"].clone();
    if let Some(map) = parameters.as_object_mut() {
        // RM-Gallery's own name of the instance; ours is the component's key in the recipe.
        map.remove("name");
    }
    let scorer = match (kind.build)(parameters, &mut ResourceCache::default()) {
        Ok(scorer) => scorer,
        Err(refusals) => return vec![Value::String(format!("refused {}", refusals[0].key))],
    };
    let reference = vector["reference"].as_str().map(Text::new);
    let correct = |at: usize| match &vector["correct"] {
        Value::Array(all) => all[at].clone(),
        other => other.clone(),
    };
    let responses: Vec<&str> = match &vector["responses"] {
        Value::Array(all) => all.iter().map(|response| response.as_str().expect("text")).collect(),
        _ => vec![vector["response"].as_str().expect("text")],
    };
    let texts: Vec<Text<'_>> = responses.iter().map(|response| Text::new(*response)).collect();
    let extras: Vec<Map<String, Value>> = (0..texts.len())
        .map(|at| {
            Map::from_iter([("correct".to_owned(), correct(at))].into_iter().filter(|(_, v)| !v.is_null()))
        })
        .collect();
    let samples: Vec<Sample<'_>> = texts
        .iter()
        .zip(&extras)
        .map(|(text, extra)| Sample {
            text,
            reference: reference.as_ref(),
            prompt: None,
            tokens: vector["tokens"].as_u64(),
            finish_reason: None,
            tools: None,
            extra,
        })
        .collect();
    let outcomes: Vec<Outcome> = match &scorer {
        Rule::Each(rule) => samples.iter().map(|sample| rule.score(sample)).collect(),
        Rule::Group(rule) => rule.score(&samples),
    };
    outcomes.iter().map(|outcome| said(outcome.value(), outcome.kind(), outcome.reason())).collect()
}

/// A number, or words such as `skipped input.missing_reference`.
pub(crate) fn said(value: Option<f64>, kind: OutcomeKind, reason: Option<&Reason>) -> Value {
    match (value, reason) {
        (Some(value), None) => Value::from(value),
        (_, Some(reason)) => Value::String(format!("{} {}", kind.as_str(), reason.code)),
        (None, None) => unreachable!("an outcome has a value or a reason"),
    }
}

/// Our answers where they differ on purpose, by the id of the vector.
pub(crate) fn differences() -> BTreeMap<String, Value> {
    let by_id = |line: Value| (line["id"].as_str().expect("an id").to_owned(), line);
    lines("differences.jsonl").into_iter().map(by_id).collect()
}

pub(crate) fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_f64(), theirs.as_f64()) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0),
        _ => ours == theirs,
    }
}

#[test]
fn every_reward_agrees_with_its_vectors_or_differs_on_purpose() {
    let differences = differences();
    let readme = std::fs::read_to_string(golden().join("README.md")).expect("golden/README.md");
    let mut used = Vec::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for kind in RULES {
        // Vectors of conversations have tests of their own.
        if golden().join("conversations").join(format!("{}.jsonl", kind.name)).exists() {
            continue;
        }
        let vectors = lines(&format!("{}.jsonl", kind.name));
        assert!(vectors.len() >= 10, "{} has only {} vectors", kind.name, vectors.len());
        for vector in vectors {
            count += 1;
            let id = vector["id"].as_str().expect("an id");
            let ours = answer(kind, &vector);
            let theirs = match &vector["expected"]["scores"] {
                Value::Array(all) => all.clone(),
                _ => vec![vector["expected"]["score"].clone()],
            };
            let agrees = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| same(a, b));
            match differences.get(id) {
                None if agrees => {}
                None => {
                    wrong.push(format!("{id}: ours {ours:?}, theirs {theirs:?}, params {}", vector["params"]))
                }
                Some(difference) => {
                    used.push(id.to_owned());
                    let why = difference["why"].as_str().expect("a reason");
                    assert!(
                        readme.contains(&format!("| {why} |")),
                        "{id}: {why} is not explained in golden/README.md"
                    );
                    if agrees {
                        wrong.push(format!("{id}: listed as a difference, but agrees"));
                    } else if !same(&ours[0], &difference["ours"]) {
                        wrong.push(format!("{id}: ours {ours:?}, listed {}", difference["ours"]));
                    }
                }
            }
        }
    }
    // What is no reward has tests of its own.
    let elsewhere = |id: &str| id.starts_with("simple_composition") || id.starts_with("pairwise_");
    let stale: Vec<&String> = differences.keys().filter(|id| !used.contains(id) && !elsewhere(id)).collect();
    assert!(stale.is_empty(), "differences that no vector has: {stale:?}");
    assert!(wrong.is_empty(), "{} of {count} vectors differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn autojunk_gives_the_answers_of_difflib() {
    let kind = plaudit::rule::find("code_patch_similarity").expect("the rule");
    let mut count = 0;
    for mut vector in lines("code_patch_similarity.jsonl") {
        vector["params"] = serde_json::json!({"autojunk": true});
        if vector["reference"].as_str().is_some_and(|reference| !reference.is_empty()) {
            // To the last bit.
            assert_eq!(answer(kind, &vector), [vector["expected"]["score"].clone()], "{}", vector["id"]);
            count += 1;
        }
    }
    assert!(count >= 50);
}
