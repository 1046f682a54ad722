//! Chat completions (OpenAI, vLLM, SGLang, providers): `POST /chat/completions`.

use super::{Protocol, encode};
use crate::judge::answer::{AnswerFormat, AnswerParser, ExpectedAnswer, Reply, Verdict};
use crate::judge::call::JudgeCall;
use crate::judge::client::Request;
use crate::judge::config::ResolvedJudge;
use crate::reason::Reason;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most alternatives of a token that OpenAI's interface gives.
const ALTERNATIVES: u32 = 20;

pub(super) const PROTOCOL: Protocol = Protocol {
    scalar: false,
    reserved: &[
        "model",
        "messages",
        "temperature",
        "max_tokens",
        "seed",
        "logprobs",
        "top_logprobs",
        "response_format",
        "stream",
    ],
    request,
    read,
    // What judges write in each format: a letter, a sentence or two, a few sentences.
    completion_tokens: |format| match format {
        AnswerFormat::Logprobs => 2,
        AnswerFormat::Json => 60,
        AnswerFormat::Tag => 200,
    },
    local: None,
};

#[derive(Serialize)]
struct ChatBody<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'a str,
    content: &'a str,
}

fn request(call: &JudgeCall<'_>, format: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
    let text = call.user_message(format, attempt)?;
    let system = call.system_message();
    let messages = system.into_iter().map(|content| ("system", content)).chain([("user", text.as_str())]);
    let held = (format == AnswerFormat::Json).then(|| schema(&call.expected));
    let probabilities = format == AnswerFormat::Logprobs;
    Ok(chat_request(call.judge, messages.collect(), attempt, held, probabilities))
}

/// The request that puts messages, each with its role, before a judge.
pub(in crate::judge) fn chat_request(
    judge: &ResolvedJudge,
    messages: Vec<(&str, &str)>,
    attempt: u32,
    response_format: Option<Value>,
    probabilities: bool,
) -> Request {
    let messages = messages.into_iter().map(|(role, content)| ChatMessage { role, content }).collect();
    let body = ChatBody {
        model: judge.model(),
        messages,
        temperature: judge.config.temperature,
        max_tokens: judge.config.max_tokens,
        // The same prompt a second time must not get the same answer from a cache.
        seed: (attempt > 0).then_some(attempt),
        logprobs: probabilities.then_some(true),
        top_logprobs: probabilities.then_some(ALTERNATIVES),
        response_format,
        extra: &judge.config.extra,
    };
    Request { path: "/chat/completions", body: encode(&body) }
}

/// The JSON schema that the endpoint holds the answer to.
fn schema(expected: &ExpectedAnswer) -> Value {
    let verdict = match expected {
        ExpectedAnswer::Score { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ExpectedAnswer::Pair { labels, tie } => {
            json!({ "type": "string", "enum": labels.iter().chain(tie).collect::<Vec<_>>() })
        }
        ExpectedAnswer::Ranking { labels } => json!({
            "type": "array", "items": { "type": "string", "enum": labels },
            "minItems": labels.len(), "maxItems": labels.len(),
        }),
    };
    json!({ "type": "json_schema", "json_schema": { "name": "verdict", "strict": true, "schema": {
        "type": "object", "properties": { "reason": { "type": "string" }, "verdict": verdict },
        "required": ["reason", "verdict"], "additionalProperties": false,
    } } })
}

fn read(call: &JudgeCall<'_>, format: AnswerFormat, attempt: u32, body: &[u8]) -> Result<Verdict, Reason> {
    let reply = Reply::read(body)?;
    AnswerParser { expected: call.expected.clone(), location: call.location(format, attempt) }.read(&reply)
}
