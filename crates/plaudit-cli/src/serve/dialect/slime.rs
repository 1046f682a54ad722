//! How does slime's `remote_rm` ask, and what does it read? One sample a request, and the whole body is the reward.

use super::options::Options;
use super::{Sample, Told, label, unread};
use crate::serve::reply::Refusal;
use plaudit::rollout::{Prompt, Rollout};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The settings of its address beside those of all.
pub(crate) const SETTINGS: [&str; 1] = ["key"];

/// What slime sends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "SlimeRequest")]
pub(crate) struct Ask {
    /// The prompt as the data set has it: a text, or messages.
    prompt: Value,
    /// What the model answered.
    response: String,
    /// The label of the sample: the reference, or an object with further fields.
    #[serde(default)]
    label: Value,
}

/// The sample that a body holds.
pub(crate) fn read(body: &[u8]) -> Result<Sample, Refusal> {
    let Ask { prompt, response, label: said } =
        serde_json::from_slice(body).map_err(|error| unread("slime", &error))?;
    let key = Value::from(vec![prompt.clone(), said.clone()]).to_string();
    let prompt = match prompt {
        Value::String(text) => Some(Prompt::Text(Cow::Owned(text))),
        Value::Array(messages) => Some(Prompt::Messages(messages)),
        Value::Null => None,
        _ => return Err(Refusal::bad("http.body", "`prompt` is a text or a list of messages")),
    };
    let (reference, extra) = label(said);
    let rollout = Rollout { prompt, reference, extra, ..Rollout::new(response) };
    Ok(Sample { rollout, key, member: None })
}

/// What slime reads: a number, or an object for its `--reward-key`.
pub(crate) fn answer(told: &Told<'_>, options: &Options) -> Result<Value, Refusal> {
    let total = told.total()?;
    let Some(key) = &options.key else { return Ok(Value::from(total)) };
    let mut fields = Map::new();
    for part in told.parts() {
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
    fn a_body_becomes_a_sample() {
        let sample = read(br#"{"prompt": "6 * 7?", "response": "42", "label": "42"}"#).unwrap();
        assert_eq!(sample.rollout, Rollout::new("42").to_prompt("6 * 7?").with_reference("42"));
        assert_eq!(sample.member, None);
        let messages = br#"{"prompt": [{"role": "user", "content": "q"}], "response": "", "label": {"reference": "a", "k": 1}}"#;
        let sample = read(messages).unwrap();
        assert_eq!(sample.rollout.extra.get("k"), Some(&json!(1)));
        assert!(matches!(sample.rollout.prompt, Some(Prompt::Messages(_))));
    }

    #[test]
    fn prompts_with_other_labels_are_other_groups() {
        let key = |label: &str| {
            read(format!(r#"{{"prompt": "q", "response": "x", "label": {label}}}"#).as_bytes()).unwrap().key
        };
        assert_eq!(key("null"), read(br#"{"prompt": "q", "response": "y"}"#).unwrap().key);
        assert_ne!(key("\"a\""), key("\"b\""));
    }

    #[test]
    fn the_body_is_the_reward() {
        let report = score(NUMBER, Rollout::new("42").with_reference("42"));
        let told = Told::alone(&report, 0);
        assert_eq!(answer(&told, &Options::default()).unwrap(), json!(1.0));
        let options = Options { key: Some("score".to_owned()), ..Options::default() };
        assert_eq!(answer(&told, &options).unwrap(), json!({"score": 1.0, "right": 1.0, "shape": 0.0}));
        let report = score(NUMBER, Rollout::new("42"));
        assert_eq!(answer(&Told::alone(&report, 0), &options).unwrap_err().code, "input.missing_reference");
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        for body in [&b"{"[..], b"[]", br#"{"prompt": "q"}"#, br#"{"prompt": 1, "response": "x"}"#] {
            assert_eq!(read(body).unwrap_err().status.as_u16(), 400);
        }
    }
}
