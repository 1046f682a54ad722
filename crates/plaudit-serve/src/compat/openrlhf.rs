//! OpenRLHF's remote reward client: prompt and response come as one text with special tokens; the answer has rewards, scores for its
//! filter, and figures for its log.

use super::query::CompatSettings;
use super::{SampleResult, TrainerSample, label, read_body};
use crate::api::openapi::AnyOf;
use crate::http::response::ApiError;
use plaudit::rollout::{Prompt, Rollout};
use plaudit::text::transcript::{response_of, strip_end_of_turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The settings in its URL beside those of all clients.
pub(crate) const SETTINGS: [&str; 2] = ["eos", "score"];

/// The most samples of one request.
const MAX_SAMPLES: usize = 4096;

/// What OpenRLHF sends: lists side by side, of one sample in practice.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct OpenRlhfRequest {
    /// Prompt and response, decoded together.
    query: Vec<String>,
    /// The prompts as the data set has them.
    prompts: Vec<String>,
    /// A label for each: the reference, or an object with further fields.
    #[serde(default)]
    labels: Option<Vec<Value>>,
}

/// What OpenRLHF reads. Of one sample these are numbers, of several they are lists.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenRlhfReply {
    #[schemars(with = "AnyOf<f64, Vec<f64>>")]
    rewards: Value,
    #[schemars(with = "AnyOf<f64, Vec<f64>>")]
    scores: Value,
    extra_logs: Map<String, Value>,
}

/// The samples that a body holds.
pub(crate) fn read(body: &[u8], settings: &CompatSettings) -> Result<Vec<TrainerSample>, ApiError> {
    let OpenRlhfRequest { query, prompts, labels } = read_body("OpenRLHF", body)?;
    let labels = labels.unwrap_or_else(|| vec![Value::Null; query.len()]);
    if query.is_empty() || query.len() != prompts.len() || query.len() != labels.len() {
        let (queries, prompts, labels) = (query.len(), prompts.len(), labels.len());
        let message = format!("{queries} queries came with {prompts} prompts and {labels} labels");
        return Err(ApiError::bad_request("http.body", message));
    }
    if query.len() > MAX_SAMPLES {
        let message = format!("at most {MAX_SAMPLES} samples at once: send less");
        return Err(ApiError::new(hyper::StatusCode::PAYLOAD_TOO_LARGE, "http.too_many", message));
    }
    let samples = query.iter().zip(prompts).zip(labels);
    samples.map(|((query, prompt), label)| sample(query, prompt, label, settings)).collect()
}

fn sample(
    query: &str,
    prompt: String,
    said: Value,
    settings: &CompatSettings,
) -> Result<TrainerSample, ApiError> {
    let Some(response) = response_of(query, &prompt) else {
        let message = "the query does not begin with its prompt, so the response cannot be told from it";
        return Err(ApiError::new(hyper::StatusCode::UNPROCESSABLE_ENTITY, "input.response", message));
    };
    let response = strip_end_of_turn(response, &settings.ends).to_owned();
    let key = json!([prompt, said]).to_string();
    let (reference, extra) = label(said);
    let prompt = Some(Prompt::Text(Cow::Owned(prompt)));
    Ok(TrainerSample {
        rollout: Rollout { prompt, reference, extra, ..Rollout::new(response) },
        key,
        member: None,
    })
}

/// What OpenRLHF reads: the same keys for every sample, finite numbers alone, and plain ones where there is one sample.
pub(crate) fn answer(results: &[SampleResult<'_>], settings: &CompatSettings) -> Result<Value, ApiError> {
    let (mut rewards, mut scores) = (Vec::new(), Vec::new());
    let mut logs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for result in results {
        let total = result.total()?;
        let parts = result.parts();
        rewards.push(total);
        scores.push(score(total, result, settings)?);
        let mut log = |name: String, value: f64| logs.entry(name).or_default().push(value);
        log("plaudit/partial".to_owned(), f64::from(u8::from(result.partial)));
        log("plaudit/group_size".to_owned(), result.group_size as f64);
        let correct = result.row().correct;
        log("plaudit/correct".to_owned(), f64::from(u8::from(correct == Some(true))));
        log("plaudit/correct_missing".to_owned(), f64::from(u8::from(correct.is_none())));
        for name in result.columns() {
            let value = parts.iter().find(|part| part.name == name).and_then(|part| part.value);
            log(format!("plaudit/{name}"), value.unwrap_or(0.0));
            log(format!("plaudit/{name}_missing"), f64::from(u8::from(value.is_none())));
        }
    }
    let shown = |values: Vec<f64>| match values[..] {
        [one] => json!(one),
        _ => json!(values),
    };
    let logs: Map<String, Value> = logs.into_iter().map(|(name, values)| (name, shown(values))).collect();
    Ok(json!(OpenRlhfReply { rewards: shown(rewards), scores: shown(scores), extra_logs: logs }))
}

/// What the dynamic filter looks at.
fn score(total: f64, result: &SampleResult<'_>, settings: &CompatSettings) -> Result<f64, ApiError> {
    let Some(name) = settings.score.as_deref() else { return Ok(total) };
    if !result.columns().contains(&name) {
        let known = result.columns().join(", ");
        return Err(ApiError::bad_request(
            "http.query",
            format!("`score` names `{name}`, but the recipe has {known}"),
        ));
    }
    let value = result.parts().iter().find(|part| part.name == name).and_then(|part| part.value);
    Ok(value.unwrap_or(total))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NUMBER, score};
    use super::*;

    #[test]
    fn body_becomes_samples() {
        let body =
            json!({"query": ["q a</s>", "q b"], "prompts": ["q ", "q "], "labels": ["a", "a"]}).to_string();
        let samples = read(body.as_bytes(), &CompatSettings::default()).unwrap();
        assert_eq!(samples[0].rollout, Rollout::new("a").to_prompt("q ").with_reference("a"));
        assert_eq!(samples[0].key, samples[1].key);
        let code =
            |body: Value| read(body.to_string().as_bytes(), &CompatSettings::default()).map_err(|no| no.code);
        assert_eq!(code(json!({"query": ["x"], "prompts": ["q"], "labels": []})), Err("http.body"));
        assert_eq!(code(json!({"query": [], "prompts": [], "labels": []})), Err("http.body"));
        assert_eq!(code(json!({"queries": ["x"], "prompts": ["q"]})), Err("http.body"));
        assert_eq!(code(json!({"query": ["x"], "prompts": ["q"], "labels": [null]})), Err("input.response"));
        assert!(code(json!({"query": ["q x"], "prompts": ["q"], "labels": null})).is_ok());
        let many = vec![""; MAX_SAMPLES + 1];
        assert_eq!(code(json!({"query": many, "prompts": many})), Err("http.too_many"));
    }

    #[test]
    fn one_sample_has_numbers_and_several_have_lists() {
        let report = score(NUMBER, Rollout::new("42").with_reference("42"));
        let result = SampleResult::alone(&report, 0);
        let one = answer(&[result], &CompatSettings::default()).unwrap();
        assert_eq!(one["rewards"], json!(1.0));
        assert_eq!(one["extra_logs"]["plaudit/shape"], json!(0.0));
        assert_eq!(one["extra_logs"]["plaudit/right_missing"], json!(0.0));
        let two = answer(&[result, result], &CompatSettings::default()).unwrap();
        assert_eq!((&two["rewards"], &two["scores"]), (&json!([1.0, 1.0]), &json!([1.0, 1.0])));
        assert_eq!(two["extra_logs"]["plaudit/group_size"], json!([1.0, 1.0]));
        let filter =
            |name: &str| CompatSettings { score: Some(name.to_owned()), ..CompatSettings::default() };
        assert_eq!(answer(&[result], &filter("shape")).unwrap()["scores"], json!(0.0));
        assert_eq!(answer(&[result], &filter("taste")).unwrap_err().code, "http.query");
    }

    #[test]
    fn sample_without_number_fails_the_request() {
        let (good, bad) =
            (score(NUMBER, Rollout::new("42").with_reference("42")), score(NUMBER, Rollout::new("42")));
        let result = [SampleResult::alone(&good, 0), SampleResult::alone(&bad, 0)];
        assert_eq!(answer(&result, &CompatSettings::default()).unwrap_err().code, "input.missing_reference");
    }
}
