//! OpenRLHF's remote reward client: prompt and response come as one text with special tokens; the answer has rewards, scores for its
//! filter, and figures for its log.

use super::query::CompatSettings;
use super::{SampleResult, TrainerSample, invalid_body, label};
use crate::api::openapi::AnyOf;
use crate::http::response::ApiError;
use plaudit::rollout::{Prompt, Rollout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The settings in its URL beside those of all clients.
pub(crate) const SETTINGS: [&str; 2] = ["eos", "score"];

/// What ends a turn in the chat formats of the usual models; OpenRLHF decodes with these in place.
const ENDS: [&str; 10] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
];

/// The most samples of one request.
const MOST: usize = 4096;
/// How far into a query its prompt may begin: a tokenizer may put a token before it.
const BEFORE: usize = 64;
/// How much of a prompt must be left for it to be told from the response, where its beginning was cut off.
const KEPT: usize = 16;

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
    let OpenRlhfRequest { query, prompts, labels } =
        serde_json::from_slice(body).map_err(|error| invalid_body("OpenRLHF", &error))?;
    let labels = labels.unwrap_or_else(|| vec![Value::Null; query.len()]);
    if query.is_empty() || query.len() != prompts.len() || query.len() != labels.len() {
        let (queries, prompts, labels) = (query.len(), prompts.len(), labels.len());
        let message = format!("{queries} queries came with {prompts} prompts and {labels} labels");
        return Err(ApiError::bad_request("http.body", message));
    }
    if query.len() > MOST {
        let message = format!("at most {MOST} samples at once: send less");
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
    let response = clean(response, &settings.ends).to_owned();
    let key = json!([prompt, said]).to_string();
    let (reference, extra) = label(said);
    let prompt = Some(Prompt::Text(Cow::Owned(prompt)));
    Ok(TrainerSample {
        rollout: Rollout { prompt, reference, extra, ..Rollout::new(response) },
        key,
        member: None,
    })
}

/// What the model wrote: the query without the prompt. A tokenizer may put a token before the prompt, and OpenRLHF cuts the
/// beginning off a prompt that is too long.
fn response_of<'q>(query: &'q str, prompt: &str) -> Option<&'q str> {
    if let Some(response) = query.strip_prefix(prompt) {
        return Some(response);
    }
    if let Some(at) = query.find(prompt).filter(|at| !prompt.is_empty() && *at <= BEFORE) {
        return query.get(at + prompt.len()..);
    }
    match overlap(prompt.as_bytes(), query.as_bytes()) {
        kept if kept >= KEPT => query.get(kept..),
        _ => None,
    }
}

/// The length of the longest end of the prompt that the query begins with, in linear time (Knuth, Morris and Pratt, 1977).
fn overlap(prompt: &[u8], query: &[u8]) -> usize {
    let pattern = &query[..query.len().min(prompt.len())];
    let mut fallback = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = fallback[length - 1];
        }
        length += usize::from(pattern[at] == pattern[length]);
        fallback[at] = length;
    }
    length = 0;
    for byte in prompt {
        while length > 0 && pattern.get(length) != Some(byte) {
            length = fallback[length - 1];
        }
        length += usize::from(pattern.get(length) == Some(byte));
    }
    length
}

/// The response without the tokens that end it.
fn clean<'t>(mut text: &'t str, more: &[String]) -> &'t str {
    loop {
        text = text.trim_end();
        let ends = ENDS.into_iter().chain(more.iter().map(String::as_str));
        let Some(rest) = ends.filter(|end| !end.is_empty()).find_map(|end| text.strip_suffix(end)) else {
            return text;
        };
        text = rest;
    }
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
    fn the_response_is_what_follows_the_prompt() {
        assert_eq!(response_of("ab", "a"), Some("b"));
        assert_eq!(response_of("<s>abc", "ab"), Some("c"));
        assert_eq!(response_of("x", ""), Some("x"));
        let prompt = "a long story about a fox and a dog: ";
        assert_eq!(response_of(&format!("{}yes", &prompt[10..]), prompt), Some("yes"));
        assert_eq!(response_of("ory: yes", prompt), None);
        assert_eq!(response_of("", prompt), None);
        // What repeats itself is cut once.
        let prompt = "aaaaaaaaaaaaaaaaaaaaaaab";
        assert_eq!(response_of(&format!("{}aab", &prompt[4..]), prompt), Some("aab"));
    }

    #[test]
    fn the_tokens_that_end_a_response_are_cut_off() {
        assert_eq!(clean("yes<|im_end|>\n<|endoftext|>", &[]), "yes");
        assert_eq!(clean("yes<|stop|>", &[]), "yes<|stop|>");
        assert_eq!(clean("yes<|stop|></s>", &["<|stop|>".to_owned(), String::new()]), "yes");
        assert_eq!(clean("</s> no", &[]), "</s> no");
    }

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
        let many = vec![""; MOST + 1];
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
