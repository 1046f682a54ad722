//! slime's `remote_rm`: one sample a request, and the whole body of the answer is the reward.

use super::query::CompatSettings;
use super::{SampleResult, TrainerSample, label, read_body};
use crate::api::openapi::AnyOf;
use crate::http::response::ApiError;
use plaudit::rollout::{Prompt, Rollout};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The settings in its URL beside those of all clients.
pub(crate) const SETTINGS: [&str; 1] = ["key"];

/// What slime sends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct SlimeRequest {
    /// The prompt as the data set has it: a text, or messages.
    prompt: Value,
    /// What the model answered.
    response: String,
    /// The label of the sample: the reference, or an object with further fields.
    #[serde(default)]
    label: Value,
}

/// What slime reads: the total, or with `key` an object of it and of every component.
pub(crate) type SlimeReply = AnyOf<f64, BTreeMap<String, f64>>;

/// The sample that a body holds.
pub(crate) fn read(body: &[u8]) -> Result<TrainerSample, ApiError> {
    let SlimeRequest { prompt, response, label: said } = read_body("slime", body)?;
    let key = Value::from(vec![prompt.clone(), said.clone()]).to_string();
    let prompt = match prompt {
        Value::String(text) => Some(Prompt::Text(Cow::Owned(text))),
        Value::Array(messages) => Some(Prompt::Messages(messages)),
        Value::Null => None,
        _ => return Err(ApiError::bad_request("http.body", "`prompt` is a text or a list of messages")),
    };
    let (reference, extra) = label(said);
    let rollout = Rollout { prompt, reference, extra, ..Rollout::new(response) };
    Ok(TrainerSample { rollout, key, member: None })
}

/// What slime reads: a number, or an object for its `--reward-key`.
pub(crate) fn answer(result: &SampleResult<'_>, settings: &CompatSettings) -> Result<Value, ApiError> {
    let total = result.total()?;
    let Some(key) = &settings.key else { return Ok(Value::from(total)) };
    let mut fields = Map::new();
    for part in result.parts() {
        if let Some(value) = part.value {
            fields.insert(part.name.to_owned(), Value::from(value));
        }
    }
    fields.insert(key.clone(), Value::from(total));
    Ok(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NUMBER, score};
    use super::*;
    use serde_json::json;

    #[test]
    fn body_becomes_a_sample() {
        let sample = read(br#"{"prompt": "6 * 7?", "response": "42", "label": "42"}"#).unwrap();
        assert_eq!(sample.rollout, Rollout::new("42").to_prompt("6 * 7?").with_reference("42"));
        assert_eq!(sample.member, None);
        let messages = br#"{"prompt": [{"role": "user", "content": "q"}], "response": "", "label": {"reference": "a", "k": 1}}"#;
        let sample = read(messages).unwrap();
        assert_eq!(sample.rollout.extra.get("k"), Some(&json!(1)));
        assert!(matches!(sample.rollout.prompt, Some(Prompt::Messages(_))));
    }

    #[test]
    fn labels_separate_groups() {
        let key = |label: &str| {
            read(format!(r#"{{"prompt": "q", "response": "x", "label": {label}}}"#).as_bytes()).unwrap().key
        };
        assert_eq!(key("null"), read(br#"{"prompt": "q", "response": "y"}"#).unwrap().key);
        assert_ne!(key("\"a\""), key("\"b\""));
    }

    #[test]
    fn body_is_the_reward() {
        let report = score(NUMBER, Rollout::new("42").with_reference("42"));
        let result = SampleResult::alone(&report, 0);
        assert_eq!(answer(&result, &CompatSettings::default()).unwrap(), json!(1.0));
        let settings = CompatSettings { key: Some("score".to_owned()), ..CompatSettings::default() };
        assert_eq!(answer(&result, &settings).unwrap(), json!({"score": 1.0, "right": 1.0, "shape": 0.0}));
        let report = score(NUMBER, Rollout::new("42"));
        assert_eq!(
            answer(&SampleResult::alone(&report, 0), &settings).unwrap_err().code,
            "input.missing_reference"
        );
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        for body in [&b"{"[..], b"[]", br#"{"prompt": "q"}"#, br#"{"prompt": 1, "response": "x"}"#] {
            assert_eq!(read(body).unwrap_err().status.as_u16(), 400);
        }
    }
}
