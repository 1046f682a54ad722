//! Rules against the golden vectors of their origins in `golden/`, read by reward name.
//!
//! A vector that plaudit answers otherwise on purpose stands in `golden/differences.jsonl` with our answer and the
//! key of the reason in `golden/README.md`.

use plaudit::input::{Fields, read_line};
use plaudit::outcome::{Outcome, OutcomeKind};
use plaudit::reason::Reason;
use plaudit::rollout::Rollout;
use plaudit::rule::reference_view::ReferenceView;
use plaudit::rule::{RULES, Registration, Rule, RuleInput};
use plaudit::text::Text;
use plaudit::tokenizer::ResourceCache;
use serde_json::{Value, json};
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
    let rollouts = rollouts(vector);
    let reference = vector["reference"].as_str().map(ReferenceView::from);
    let texts: Vec<Text<'_>> = rollouts.iter().map(Text::of).collect();
    let samples: Vec<RuleInput<'_>> = (rollouts.iter().zip(&texts))
        .map(|(rollout, text)| RuleInput::of(rollout, text, reference.as_ref()))
        .collect();
    let outcomes: Vec<Outcome> = match &scorer {
        Rule::Each(rule) => samples.iter().map(|sample| rule.score(sample)).collect(),
        Rule::Group(rule) => rule.score(&samples),
    };
    outcomes.iter().map(|outcome| said(outcome.value(), outcome.kind(), outcome.reason())).collect()
}

/// The rollouts of a vector, each as a line of its own.
fn rollouts(vector: &Value) -> Vec<Rollout<'static>> {
    let responses = match &vector["responses"] {
        Value::Array(all) => all.clone(),
        _ => vec![vector["response"].clone()],
    };
    let mut rollouts = Vec::new();
    for (at, response) in responses.into_iter().enumerate() {
        let mut line = json!({"prompt": "p", "response": response, "extra": vector["extra"]});
        if line["extra"].is_null() {
            line["extra"] = json!({});
        }
        for key in ["reference", "tokens"].into_iter().filter(|key| !vector[*key].is_null()) {
            line[key] = vector[key].clone();
        }
        let correct = match &vector["correct"] {
            Value::Array(all) => &all[at],
            other => other,
        };
        if !correct.is_null() {
            line["extra"]["correct"] = correct.clone();
        }
        let read = read_line(line.to_string().as_bytes(), &Fields::own()).expect("a rollout").next();
        rollouts.push(Rollout { prompt: None, ..read.expect("one rollout") });
    }
    rollouts
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
        // Vectors of conversations and of instructions have tests of their own.
        let elsewhere = golden().join("conversations").join(format!("{}.jsonl", kind.name)).exists();
        if elsewhere || kind.name == "instructions" {
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

/// Vectors that also say what is right: without the origin's semantics plaudit says that. `settled` is how many have a truth.
fn agrees_with_truth(name: &str, settled: usize) {
    let kind = plaudit::rule::find(name).expect("the rule");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for mut vector in lines(&format!("{name}.jsonl")) {
        let Some(truth) = vector["truth"].as_bool() else { continue };
        count += 1;
        vector["params"].as_object_mut().expect("parameters").remove("semantics");
        let ours = answer(kind, &vector);
        // What is wrong may be told as a limit that was broken.
        let floored = !truth && ours[0].as_str().is_some_and(|words| words.starts_with("floored"));
        if !floored && !same(&ours[0], &Value::from(f64::from(u8::from(truth)))) {
            wrong.push(format!("{} {}: ours {ours:?}, right {truth}", vector["id"], vector["response"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, settled);
}

#[test]
fn choices_are_read_as_is_right() {
    agrees_with_truth("choice", 354);
}

#[test]
fn documents_are_checked_as_is_right() {
    agrees_with_truth("structured_output", 415);
}

/// The rows of instructions, with the credit that IFEval, NeMo-Gym and IF-RLVR give.
#[test]
fn instructions_give_the_credit_of_their_origins() {
    let kind = plaudit::rule::find("instructions").expect("the rule");
    let (mut count, mut rewards) = (0, 0);
    for row in lines("instructions_rows.jsonl") {
        let (lists, response) =
            (json!([row["instruction_id_list"], row["kwargs"]]), row["response"].as_str().expect("text"));
        let fields = json!({"instruction_id_list": lists[0], "kwargs": lists[1]});
        let truth = json!([{"instruction_id": lists[0], "kwargs": lists[1]}]).to_string();
        // The thought and the tags of an answer are taken off, which the credit of IFEval does not know.
        let framed = response.contains("</think>")
            || response.contains("answer>")
            || response.contains("<|assistant|>");
        let mut check = |params: Value, extra: &Value, reference: Value, wanted: &Value| {
            let ours = answer(
                kind,
                &json!({"params": params, "response": response, "extra": extra, "reference": reference}),
            );
            let wanted = match wanted.as_str() {
                Some("error") => json!("invalid input.instructions"),
                _ => wanted.as_bool().map_or_else(|| wanted.clone(), |all| json!(f64::from(u8::from(all)))),
            };
            let unclosed = ours[0] == "floored format.unclosed_think";
            assert!(
                unclosed || same(&ours[0], &wanted),
                "{}: ours {ours:?}, theirs {wanted}, {params}",
                row["id"]
            );
            count += 1;
        };
        for mode in ["strict", "loose"].into_iter().filter(|_| !framed) {
            for credit in ["all", "share"] {
                let params = json!({"semantics": "published", "mode": mode, "credit": credit});
                check(params, &fields, Value::Null, &row["credit"][mode][credit]);
            }
        }
        for grading in ["binary", "fraction"]
            .into_iter()
            .filter(|_| !framed && row["credit"]["strict"]["all"] != "error")
        {
            let mut metadata = fields.clone();
            metadata["grading_mode"] = json!(grading);
            check(
                json!({"semantics": "published"}),
                &json!({"verifier_metadata": metadata}),
                Value::Null,
                &row["nemo_gym"][grading],
            );
        }
        if row["ifrlvr_reward"].is_number() && row["credit"]["strict"]["all"] != "error" {
            rewards += 1;
            check(
                json!({"semantics": "published", "credit": "share"}),
                &json!({}),
                json!(truth),
                &row["ifrlvr_reward"],
            );
        }
    }
    assert!(count > 3000 && rewards > 350, "{count}, {rewards}");
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
