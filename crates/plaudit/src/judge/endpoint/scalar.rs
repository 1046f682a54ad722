//! What the endpoints of scalar reward models share: the conversation that is sent, and the one number that comes back.

use super::encode;
use crate::judge::answer::{AnswerFormat, Verdict, reply};
use crate::judge::call::JudgeCall;
use crate::judge::client::Request;
use crate::judge::rewards::judged_reward::PromptSource;
use crate::reason::{Code, Reason};
use crate::reward::Range;
use serde_json::{Value, json};

/// What asks vLLM for the number that the model itself gives. Without it, the server puts the number of a model with one
/// label through the logistic function. Older versions know the second name; each ignores the other.
const RAW: [&str; 2] = ["use_activation", "activation"];

/// A request to vLLM with the conversation, for the model's own number unless `extra` says otherwise.
pub(super) fn vllm(call: &JudgeCall<'_>, path: &'static str) -> Request {
    let mut body = call.judge.config.extra.clone();
    if !RAW.iter().any(|name| body.contains_key(*name)) {
        body.extend(RAW.map(|name| (name.to_owned(), json!(false))));
    }
    body.insert("model".to_owned(), json!(call.judge.model()));
    body.insert("messages".to_owned(), conversation(call));
    Request { path, body: encode(&body) }
}

/// A request with the model and one field of content.
pub(super) fn request(call: &JudgeCall<'_>, path: &'static str, key: &str, content: Value) -> Request {
    let mut body = call.judge.config.extra.clone();
    body.insert("model".to_owned(), json!(call.judge.model()));
    body.insert(key.to_owned(), content);
    Request { path, body: encode(&body) }
}

/// The prompt and the response as the turns of a conversation.
pub(super) fn conversation(call: &JudgeCall<'_>) -> Value {
    json!([
        { "role": "user", "content": &*call.view.query },
        { "role": "assistant", "content": call.candidate(0).text },
    ])
}

/// The number of the one result, in the reward's range.
pub(super) fn read(call: &JudgeCall<'_>, _: AnswerFormat, _: u32, body: &[u8]) -> Result<Verdict, Reason> {
    let scalars = reply::scalars(body)?;
    let [value] = scalars.as_slice() else { return Err(Code::JudgeArity.into()) };
    let sigmoid = matches!(call.reward.prompt, PromptSource::Scalar { sigmoid: true });
    let value = if sigmoid { 1.0 / (1.0 + (-value).exp()) } else { *value };
    let Range { min, max, .. } = call.reward.range;
    match value >= min && value <= max {
        true => Ok(Verdict::Score(value)),
        false => {
            let message = format!("The model gave {value}, which is not between {min} and {max}.");
            Err(Reason::new(Code::JudgeRange, message))
        }
    }
}
