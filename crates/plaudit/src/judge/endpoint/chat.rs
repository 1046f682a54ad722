//! Chat completions (OpenAI, vLLM, SGLang, providers): `POST /chat/completions`.

use super::{Protocol, encode};
use crate::judge::answer::{AnswerFormat, AnswerParser, ExpectedAnswer, Reply, Verdict};
use crate::judge::call::JudgeCall;
use crate::judge::client::Request;
use crate::judge::config::ResolvedJudge;
use crate::reason::Reason;
use serde::{Serialize, Serializer};
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
    earlier_request: None,
    local: None,
};

#[derive(Serialize)]
struct ChatBody<'a, F> {
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
    response_format: Option<F>,
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
    let held = (format == AnswerFormat::Json).then(|| schema(call));
    let probabilities = format == AnswerFormat::Logprobs;
    Ok(chat_request(call.judge, messages.collect(), attempt, held, probabilities))
}

/// The request that puts messages, each with its role, before a judge.
pub(in crate::judge) fn chat_request<F: Serialize>(
    judge: &ResolvedJudge,
    messages: Vec<(&str, &str)>,
    attempt: u32,
    response_format: Option<F>,
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

#[derive(Serialize)]
struct ResponseFormat<'a> {
    json_schema: NamedSchema<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    schema: ObjectSchema<'a>,
    strict: bool,
}

/// An object with exactly these fields. Endpoints have them written in the order of `properties`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectSchema<'a> {
    additional_properties: bool,
    properties: SchemaFields<'a>,
    required: Vec<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
}

struct SchemaFields<'a>(Vec<(&'a str, Value)>);

impl Serialize for SchemaFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, schema)| (name, schema)))
    }
}

/// The JSON schema that the endpoint holds the answer to: texts, and then the verdict.
fn schema<'a>(call: &'a JudgeCall<'_>) -> ResponseFormat<'a> {
    let number = if call.takes_fractions() { "number" } else { "integer" };
    let verdict = match &call.expected {
        ExpectedAnswer::Score { min, max } => json!({ "type": number, "minimum": min, "maximum": max }),
        ExpectedAnswer::Pair { labels, tie } => {
            json!({ "type": "string", "enum": labels.iter().chain(tie).collect::<Vec<_>>() })
        }
        ExpectedAnswer::Graded { labels } => {
            json!({ "type": "string", "enum": labels.keys().collect::<Vec<_>>() })
        }
        ExpectedAnswer::Ranking { labels } => json!({
            "type": "array", "items": { "type": "string", "enum": labels },
            "minItems": labels.len(), "maxItems": labels.len(),
        }),
    };
    let required = call.json_fields();
    let mut properties: Vec<_> = required.iter().map(|name| (*name, json!({ "type": "string" }))).collect();
    if let Some((_, last)) = properties.last_mut() {
        *last = verdict;
    }
    let properties = SchemaFields(properties);
    let schema = ObjectSchema { additional_properties: false, properties, required, kind: "object" };
    ResponseFormat { json_schema: NamedSchema { name: "verdict", schema, strict: true }, kind: "json_schema" }
}

fn read(call: &JudgeCall<'_>, format: AnswerFormat, attempt: u32, body: &[u8]) -> Result<Verdict, Reason> {
    let reply = Reply::read(body)?;
    AnswerParser { expected: call.expected.clone(), location: call.location(format, attempt) }.read(&reply)
}
