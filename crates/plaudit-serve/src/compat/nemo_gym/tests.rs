//! Tests of the NeMo-Gym client: what it sends, and what it gets back.

use super::super::tests::{NUMBER, score};
use super::*;

fn request() -> Value {
    json!({
        "responses_create_params": {
            "instructions": "Be brief.",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "6 * 7?"}]}],
        },
        "response": {
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "six sevens"}]},
                {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "42"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "42", "annotations": []}]},
            ],
            "usage": {"output_tokens": 7},
        },
        "expected_answer": 42,
        "verifier_metadata": {"gold": "43", "level": 2},
        "agent_ref": {"name": "simple_agent"},
        "_ng_task_index": 7,
        "_ng_rollout_index": 2,
    })
}

fn sample(request: &Value, settings: &CompatSettings) -> TrainerSample {
    read(request.to_string().as_bytes(), settings).unwrap().1
}

#[test]
fn a_request_becomes_a_sample() {
    let TrainerSample { rollout, key, member } = sample(&request(), &CompatSettings::default());
    assert_eq!(rollout.response, "42");
    let conversation = rollout.conversation.expect("a conversation");
    assert_eq!(conversation.turns[0].thought.as_deref(), Some("six sevens"));
    assert_eq!(conversation.calls().map(|call| call.line()).collect::<Vec<_>>(), ["f({})"]);
    let asked =
        vec![json!({"role": "system", "content": "Be brief."}), json!({"role": "user", "content": "6 * 7?"})];
    assert_eq!(rollout.prompt, Some(Prompt::Messages(asked)));
    assert_eq!((rollout.reference.as_deref(), rollout.tokens), (Some("42"), Some(7)));
    assert_eq!((rollout.id.as_deref(), member.as_deref()), (Some("7-2"), Some("2")));
    let kept: Vec<&String> = rollout.extra.keys().collect();
    assert_eq!(kept, ["expected_answer", "verifier_metadata"]);
    assert!(key.starts_with(r#"["task","7""#), "{key}");
}

#[test]
fn the_address_may_name_the_reference() {
    let settings =
        CompatSettings { reference: Some("verifier_metadata.gold".to_owned()), ..CompatSettings::default() };
    assert_eq!(sample(&request(), &settings).rollout.reference.as_deref(), Some("43"));
    let settings =
        CompatSettings { reference: Some("nowhere.at.all".to_owned()), ..CompatSettings::default() };
    assert_eq!(sample(&request(), &settings).rollout.reference, None);
}

#[test]
fn groups_are_known_by_task_by_name_or_by_prompt() {
    let mut other = request();
    other["_ng_task_index"] = json!(8);
    assert_ne!(
        sample(&request(), &CompatSettings::default()).key,
        sample(&other, &CompatSettings::default()).key
    );
    other["_ng_task_index"] = Value::Null;
    other["prompt_id"] = json!("p1");
    assert!(sample(&other, &CompatSettings::default()).key.starts_with(r#"["prompt","p1""#));
    other["prompt_id"] = Value::Null;
    assert!(sample(&other, &CompatSettings::default()).key.starts_with(r#"["text","42""#));
}

#[test]
fn the_request_comes_back_with_a_reward_and_parts_that_add_up() {
    let (whole, sample) = read(request().to_string().as_bytes(), &CompatSettings::default()).unwrap();
    let report = score(NUMBER, Rollout::new("42").with_reference("42"));
    let result = answer(whole, &SampleResult::alone(&report, 0), &CompatSettings::default()).unwrap();
    assert_eq!(result["responses_create_params"], request()["responses_create_params"]);
    assert_eq!(result["response"], request()["response"]);
    assert_eq!((&result["reward"], &result["reward_components"]), (&json!(1.0), &json!({"right": 1.0})));
    assert_eq!(result["plaudit"]["components"]["shape"], json!(0.0));
    assert_eq!(sample.member.as_deref(), Some("2"));
}

#[test]
fn a_mean_is_taken_apart_and_a_closed_gate_is_not() {
    let yaml = "combine: mean
components:
  right: { reward: number_accuracy, weight: 3.0 }
  shape: { reward: reasoning_format, weight: 1.0 }
";
    let report = score(yaml, Rollout::new("42").with_reference("42"));
    let parts = parts(0.75, &SampleResult::alone(&report, 0)).unwrap();
    assert_eq!(Value::Object(parts), json!({"right": 0.75, "shape": 0.0}));
    assert_eq!(super::parts(0.3, &SampleResult::alone(&report, 0)), None);
}

#[test]
fn a_failure_is_a_status_or_a_class_and_never_a_reward_alone() {
    let report = score(NUMBER, Rollout::new("42"));
    let result = SampleResult::alone(&report, 0);
    let whole = || request().as_object().unwrap().clone();
    assert_eq!(answer(whole(), &result, &CompatSettings::default()).unwrap_err().status.as_u16(), 422);
    let settings = CompatSettings { failure: FailureMode::Class, ..CompatSettings::default() };
    let said = answer(whole(), &result, &settings).unwrap();
    assert_eq!((&said["reward"], &said["_ng_failure_class"]), (&json!(0.0), &json!("verify_failed")));
    assert_eq!(said["mask_sample"], json!(true));
    assert_eq!(said["plaudit"]["reason"], json!("input.missing_reference"));
    assert!(said.get("reward_components").is_none());
}

#[test]
fn what_is_no_request_is_refused() {
    for body in [
        &b"{"[..],
        b"[]",
        b"{}",
        br#"{"responses_create_params": {}}"#,
        br#"{"responses_create_params": {}, "response": 1}"#,
    ] {
        assert_eq!(read(body, &CompatSettings::default()).unwrap_err().status.as_u16(), 400);
    }
}

#[test]
fn what_is_not_text_is_no_empty_answer() {
    let code = |output: Value| {
        let mut request = request();
        request["response"]["output"] = output;
        read(request.to_string().as_bytes(), &CompatSettings::default())
            .map(|(_, sample)| sample.rollout.response.into_owned())
    };
    for bad in [
        json!([{"type": "message", "content": [{"type": "output_text", "text": 5}]}]),
        json!([{"type": "message", "content": [{"type": "output_text", "text": null}]}]),
        json!([{"type": "message", "content": [{"type": "output_text"}]}]),
        json!([{"type": "message", "content": ["42"]}]),
        json!([{"type": "message", "content": 42}]),
        json!([{"type": "reasoning", "summary": [{"type": "summary_text", "text": ["x"]}]}]),
    ] {
        let error = code(bad.clone()).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (422, "input.response"), "{bad}");
    }
    // What the model left empty is empty.
    let refused = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]);
    for empty in [json!([]), json!([{"type": "message", "content": null}]), refused] {
        assert_eq!(code(empty).unwrap(), "");
    }
    assert_eq!(code(json!([{"type": "message", "content": "42"}])).unwrap(), "42");
}
