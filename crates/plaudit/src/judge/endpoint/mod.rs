//! Judge endpoints: path, request body and how the reply is read, one file each. A new endpoint is a file, a variant of
//! [`Endpoint`] and the line of `Endpoint::protocol` that the compiler then asks for.

mod chat;
mod classify;
mod embeddings;
mod overlap;
mod pooling;
mod scalar;

pub(super) use chat::chat_request;

use super::answer::{AnswerFormat, Verdict};
use super::call::JudgeCall;
use super::client::Request;
use crate::reason::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of endpoint a judge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// OpenAI-compatible chat completions: vLLM, SGLang, providers.
    Chat,
    /// A scalar reward model behind vLLM's `/classify`.
    Classify,
    /// A scalar reward model behind vLLM's `/pooling`.
    Pooling,
    /// A scalar reward model behind an embeddings endpoint, as SGLang serves it.
    Embeddings,
    /// No endpoint: the overlap of words with the reference, computed here.
    Overlap,
}

/// Computes a verdict here.
type LocalVerdict = fn(&JudgeCall<'_>) -> Result<Verdict, Reason>;

/// How one kind of endpoint is called.
pub(super) struct Protocol {
    /// Whether it gives numbers and takes no prompt.
    scalar: bool,
    /// The fields of a request that the engine sets, so that a recipe's `extra` cannot. A reply is read as a whole, so
    /// that no `stream` can be asked for.
    reserved: &'static [&'static str],
    /// The request of an attempt.
    pub(super) request: fn(&JudgeCall<'_>, AnswerFormat, u32) -> Result<Request, Reason>,
    /// The request as earlier versions wrote it, where that was another one.
    pub(super) earlier_request: Option<fn(&JudgeCall<'_>) -> Request>,
    /// The verdict in the reply to it.
    pub(super) read: fn(&JudgeCall<'_>, AnswerFormat, u32, &[u8]) -> Result<Verdict, Reason>,
    /// About how many tokens a reply in a format has.
    pub(super) completion_tokens: fn(AnswerFormat) -> u64,
    /// The verdict, where it is computed here and nothing is sent.
    pub(super) local: Option<LocalVerdict>,
}

impl Endpoint {
    pub(super) fn protocol(self) -> &'static Protocol {
        match self {
            Self::Chat => &chat::PROTOCOL,
            Self::Classify => &classify::PROTOCOL,
            Self::Pooling => &pooling::PROTOCOL,
            Self::Embeddings => &embeddings::PROTOCOL,
            Self::Overlap => &overlap::PROTOCOL,
        }
    }

    /// Whether it gives numbers and takes no prompt.
    pub fn is_scalar(self) -> bool {
        self.protocol().scalar
    }

    /// Whether the engine computes its verdicts itself, so that there is nothing to send.
    pub fn is_local(self) -> bool {
        self.protocol().local.is_some()
    }

    /// The path of its requests below `base_url`; empty where there is nothing to send.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Classify => "/classify",
            Self::Pooling => "/pooling",
            Self::Embeddings => "/embeddings",
            Self::Overlap => "",
        }
    }

    /// Whether servers have that path below `/v1`. vLLM has those of its own beside it.
    pub fn is_below_v1(self) -> bool {
        matches!(self, Self::Chat | Self::Embeddings)
    }

    /// The fields of a request that the engine sets, so that a recipe's `extra` cannot.
    pub fn reserved(self) -> &'static [&'static str] {
        self.protocol().reserved
    }
}

/// Numbers, texts and maps of them always have a JSON form.
fn encode(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_else(|_| Vec::new())
}
