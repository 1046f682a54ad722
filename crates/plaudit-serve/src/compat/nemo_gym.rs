//! NeMo-Gym's resources server: verifies a rollout. The answer is the request with a reward in it, and with parts that add up to it.

pub(crate) mod aggregate;

use super::query::{CompatSettings, FailureMode};
use super::{SampleResult, TrainerSample, invalid_body, read_body, reference};
use crate::http::response::ApiError;
use hyper::StatusCode;
use plaudit::input::{InputError, read_response, read_tools};
use plaudit::rollout::{Prompt, Reference, Rollout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The settings in its URL beside those of all clients.
pub(crate) const SETTINGS: [&str; 2] = ["failure", "reference"];

/// The fields of NeMo-Gym itself, which are no affair of a reward's.
const OWN: [&str; 4] = ["responses_create_params", "response", "agent_ref", "prompt_id"];

/// How far the parts may be from the reward, which NeMo-RL checks at ten times that.
const CLOSE: f64 = 1e-7;

/// What NeMo-Gym sends: a request of the Responses API, its response, and every field of the data set.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct VerifyRequest {
    /// What the model was asked.
    responses_create_params: Map<String, Value>,
    /// What it answered.
    response: Map<String, Value>,
    /// Everything else.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// What NeMo-Gym reads: everything that it sent, and the reward.
// The schema of what [`answer`] adds to the request.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "the reply is the request with fields added")]
pub(crate) struct VerifyReply {
    reward: f64,
    /// What each component adds, where the reward is a sum.
    reward_components: Option<BTreeMap<String, f64>>,
    /// Where the reward is none, and `failure=class` was asked for.
    _ng_failure_class: Option<String>,
    _ng_failure_judge_error: Option<String>,
    mask_sample: Option<bool>,
    plaudit: VerifiedReply,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// What is known of the reward besides.
#[derive(Debug, Serialize, JsonSchema)]
struct VerifiedReply {
    outcome: String,
    reason: Option<String>,
    components: BTreeMap<String, Option<f64>>,
    /// Whether the answer is right; null where no component says so.
    correct: Option<bool>,
    /// The reward spread over the model's turns, where the recipe asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_rewards: Option<Vec<Option<f64>>>,
    group_size: usize,
    partial: bool,
}

/// The request as it came, and the sample that it holds.
pub(crate) fn read(
    body: &[u8],
    settings: &CompatSettings,
) -> Result<(Map<String, Value>, TrainerSample), ApiError> {
    let whole: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| invalid_body("NeMo-Gym", &error))?;
    let ask: VerifyRequest = read_body("NeMo-Gym", body)?;
    let prompt = messages(&ask.responses_create_params);
    let index = |name: &str| ask.others.get(name).filter(|value| !value.is_null()).map(index_text);
    let (task, member) = (index("_ng_task_index"), index("_ng_rollout_index"));
    let said = match &settings.reference {
        Some(path) => path.split('.').try_fold(&Value::Null, |at, name| match at {
            Value::Null => ask.others.get(name),
            at => at.get(name),
        }),
        None => ask.others.get("reference"),
    };
    let said = said.and_then(reference).or_else(|| {
        let others = Some(&ask.others).filter(|_| settings.reference.is_none())?;
        let found = Reference::in_fields(others).map(|(_, found)| found.into_owned());
        // Data sets of NeMo-Gym call it a label, too.
        found.or_else(|| reference(others.get("label")?))
    });
    let mut rollout = Rollout {
        id: task.as_deref().zip(member.as_deref()).map(|(task, member)| format!("{task}-{member}").into()),
        reference: said,
        tokens: ask
            .response
            .get("usage")
            .and_then(|usage| usage.get("output_tokens"))
            .and_then(Value::as_u64),
        prompt: Some(Prompt::Messages(prompt.clone())),
        extra: extra(&ask.others),
        tools: ask
            .responses_create_params
            .get("tools")
            .map(|tools| read_tools(tools, "tools"))
            .transpose()
            .map_err(unreadable)?
            .flatten(),
        ..Rollout::new(response(&ask.response)?)
    };
    if uses_tools(&ask.response) {
        let output = Value::Object(ask.response.clone());
        let parsed = read_response(output, "response", false).map_err(unreadable)?;
        parsed.fill(&mut rollout);
    }
    let prompt = Value::Array(prompt);
    // As NeMo-Gym's own comparing server has it: the task's number, else its name, and the prompt in any case.
    let key = match (task, index("prompt_id")) {
        (Some(task), _) => json!(["task", task, prompt]),
        (None, Some(name)) => json!(["prompt", name, prompt]),
        (None, None) => json!(["text", rollout.reference.as_deref(), prompt]),
    };
    Ok((whole, TrainerSample { rollout, key: key.to_string(), member }))
}

/// A number or a name as a text.
fn index_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether the model called a tool, so that its answer is a conversation.
fn uses_tools(response: &Map<String, Value>) -> bool {
    let items = response.get("output").and_then(Value::as_array);
    items.into_iter().flatten().any(|item| item.get("type").is_some_and(|kind| kind == "function_call"))
}

fn unreadable(error: InputError) -> ApiError {
    ApiError::unreadable(StatusCode::UNPROCESSABLE_ENTITY, error)
}

fn unprocessable(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "input.response", message.into())
}

fn extra(others: &Map<String, Value>) -> Map<String, Value> {
    let kept = others.iter().filter(|(name, _)| !OWN.contains(&name.as_str()) && !name.starts_with("_ng_"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What the model was asked, as chat messages of plain text.
fn messages(params: &Map<String, Value>) -> Vec<Value> {
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let system = params.get("instructions").and_then(Value::as_str).map(|text| message("system", text));
    let asked = match params.get("input") {
        Some(Value::String(text)) => vec![message("user", text)],
        Some(Value::Array(items)) => {
            let spoken =
                items.iter().filter_map(|item| Some((item.get("role")?.as_str()?, item.get("content")?)));
            spoken.map(|(role, content)| message(role, &text(content))).collect()
        }
        _ => Vec::new(),
    };
    system.into_iter().chain(asked).collect()
}

/// What the model wrote without calling a tool, thoughts included, with a blank line between its pieces.
fn response(response: &Map<String, Value>) -> Result<String, ApiError> {
    let mut said = Vec::new();
    for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
        let written =
            |name: &str| item.get(name).map_or_else(|| Ok(String::new()), |content| written(name, content));
        said.push(match item.get("type").and_then(Value::as_str) {
            Some("message") => written("content")?,
            Some("reasoning") => {
                let thought = Some(written("content")?).filter(|text| !text.is_empty());
                let thought = thought.map_or_else(|| written("summary"), Ok)?;
                if thought.is_empty() { thought } else { format!("<think>\n{thought}\n</think>") }
            }
            _ => String::new(),
        });
    }
    said.retain(|text| !text.is_empty());
    Ok(said.join("\n\n"))
}

/// A content of the response as text. One that is not text is no empty answer: nothing is known of what the model wrote.
fn written(name: &str, content: &Value) -> Result<String, ApiError> {
    let is_text = match content {
        Value::Null | Value::String(_) => true,
        // A part of another kind, such as a refusal, has no text.
        Value::Array(parts) => parts.iter().all(|part| match (part.get("text"), part.get("type")) {
            (Some(text), _) => text.is_string(),
            (None, kind) => part.is_object() && kind.is_none_or(|kind| kind != "output_text"),
        }),
        _ => false,
    };
    if !is_text {
        let message = format!(
            "response.output: `{name}` is a text or a list of parts, each with a `text` that is a text"
        );
        return Err(unprocessable(message));
    }
    Ok(text(content))
}

/// A content as text: itself, or the texts of its parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            // A thought among the parts of a message is none of its words.
            let is_thought = |part: &&Value| part["type"] == "thinking" || part["type"] == "reasoning";
            let said = parts.iter().filter(|part| !is_thought(part));
            said.filter_map(|part| part.get("text")?.as_str()).collect()
        }
        _ => String::new(),
    }
}

/// What NeMo-Gym reads: its request, and the reward. Without a number it is an error, or the class of the failure where the
/// address asks for that.
pub(crate) fn answer(
    mut request: Map<String, Value>,
    result: &SampleResult<'_>,
    settings: &CompatSettings,
) -> Result<Value, ApiError> {
    let verified = VerifiedReply {
        outcome: result.outcome().to_owned(),
        reason: result.code().map(|code| code.as_str().to_owned()),
        components: result.parts().iter().map(|part| (part.name.to_owned(), part.value)).collect(),
        correct: result.row().correct,
        turn_rewards: result.row().turn_rewards().map(<[_]>::to_vec),
        group_size: result.group_size,
        partial: result.partial,
    };
    match result.total() {
        Ok(total) => {
            request.insert("reward".to_owned(), Value::from(total));
            if let Some(parts) = parts(total, result) {
                request.insert("reward_components".to_owned(), Value::Object(parts));
            }
        }
        Err(error) if settings.failure == FailureMode::Class && error.status.as_u16() != 429 => {
            // The 0 is no reward: a client that sets `failure=class` leaves these rows out.
            request.insert("reward".to_owned(), Value::from(0.0));
            let judged = error.code.starts_with("judge.");
            let class = if judged { "judge_failed" } else { "verify_failed" };
            request.insert("_ng_failure_class".to_owned(), Value::from(class));
            let message = format!("{}: {}", error.code, error.message);
            request.insert("_ng_failure_judge_error".to_owned(), Value::from(message));
            request.insert("mask_sample".to_owned(), Value::from(true));
        }
        Err(error) => return Err(error),
    }
    request.insert("plaudit".to_owned(), json!(verified));
    Ok(Value::Object(request))
}

/// What each component adds to the reward; none where the reward is no sum, as behind a closed gate.
fn parts(total: f64, result: &SampleResult<'_>) -> Option<Map<String, Value>> {
    let counting: Vec<_> = result.parts().into_iter().filter(|part| part.weight != 0.0).collect();
    let valued = || counting.iter().filter_map(|part| Some((part.name, part.weight, part.value?)));
    let weights: f64 = valued().map(|(_, weight, _)| weight).sum();
    for scale in [1.0, weights] {
        let sum: f64 = valued().map(|(_, weight, value)| weight * value / scale).sum();
        if (sum - total).abs() <= CLOSE * total.abs().max(1.0) {
            return Some(
                valued()
                    .map(|(name, weight, value)| (name.to_owned(), json!(weight * value / scale)))
                    .collect(),
            );
        }
    }
    None
}

#[cfg(test)]
mod tests;
