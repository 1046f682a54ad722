//! What the endpoints of scalar reward models share: the conversation that is sent, and the one number that comes back.

use super::encode;
use crate::judge::answer::{AnswerFormat, Verdict, reply};
use crate::judge::call::JudgeCall;
use crate::judge::client::Request;
use crate::judge::rewards::judged_reward::PromptSource;
use crate::reason::{Code, Reason};
use serde_json::{Value, json};

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
    match value >= call.reward.range.min && value <= call.reward.range.max {
        true => Ok(Verdict::Score(value)),
        false => Err(Code::JudgeRange.into()),
    }
}
