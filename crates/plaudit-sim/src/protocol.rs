//! Request and reply bodies of the simulator, in the formats of OpenAI, vLLM and SGLang.

use super::answer::{AnswerToken, TOKEN};
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// A request for a chat completion; what makes no difference to the simulation is not read.
#[derive(Debug, Deserialize)]
pub(crate) struct Chat {
    pub(crate) model: Option<String>,
    pub(crate) messages: Vec<Message>,
    pub(crate) stream: Option<bool>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) top_logprobs: Option<u64>,
    pub(crate) response_format: Option<ResponseFormat>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_completion_tokens: Option<u64>,
    pub(crate) seed: Option<i64>,
    pub(crate) n: Option<u64>,
}

/// One message.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: Content,
}

/// The form that an endpoint is asked to hold an answer to.
#[derive(Debug, Deserialize)]
pub(crate) struct ResponseFormat {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// The text of a message: a string, or the texts of its parts.
#[derive(Debug, Default)]
pub(crate) struct Content(pub(crate) String);

#[derive(Deserialize)]
struct ContentPart {
    text: Option<String>,
}

impl From<ContentPart> for String {
    fn from(part: ContentPart) -> Self {
        part.text.into_iter().collect()
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = Texts::<ContentPart>("a text or a list of parts", usize::MAX, PhantomData);
        from.deserialize_any(texts).map(|texts| Self(texts.concat()))
    }
}

/// Reads one text, or a list of at most so many; with what is expected, in words.
struct Texts<T>(&'static str, usize, PhantomData<T>);

impl<'de, T: Deserialize<'de> + Into<String>> Visitor<'de> for Texts<T> {
    type Value = Vec<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_unit<E>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Vec<String>, A::Error> {
        let mut all = Vec::new();
        while let Some(text) = texts.next_element::<T>()? {
            if all.len() == self.1 {
                while texts.next_element::<IgnoredAny>()?.is_some() {}
                return Err(A::Error::custom(format!("at most {} texts can be scored at once", self.1)));
            }
            all.push(text.into());
        }
        Ok(all)
    }
}

/// A request for one number a text.
#[derive(Debug, Deserialize)]
pub(crate) struct ScoreRequest {
    pub(crate) model: Option<String>,
    pub(crate) input: Option<Input>,
    /// A conversation in the place of texts, as vLLM takes it.
    pub(crate) messages: Option<Vec<Message>>,
    /// Whether a class gets its share or the number of the model itself; `activation` is the name in older versions of vLLM.
    pub(crate) use_activation: Option<bool>,
    pub(crate) activation: Option<bool>,
}

impl ScoreRequest {
    /// What is to be scored: the texts, or what the conversation's assistant said last.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let said = self.messages.iter().flatten().rev().find(|message| message.role == "assistant");
        let input = self.input.iter().flat_map(|input| &input.0).map(String::as_str);
        said.map(|message| message.content.0.as_str()).into_iter().chain(input).collect()
    }
}

/// The texts of a request: one or several.
#[derive(Debug)]
pub(crate) struct Input(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Texts::<String>("a text or a list of texts", MAX_TEXTS, PhantomData)).map(Self)
    }
}

/// How many texts one request may score.
const MAX_TEXTS: usize = 4096;

/// Tokens as the simulation counts them.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN) as u64
}

/// What a request used.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: Details,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Details {
    cached_tokens: u64,
}

impl Usage {
    pub(crate) fn new(prompt: u64, cached: u64, completion: u64) -> Self {
        let total_tokens = prompt + completion;
        let prompt_tokens_details = Details { cached_tokens: cached };
        Self { prompt_tokens: prompt, completion_tokens: completion, total_tokens, prompt_tokens_details }
    }

    pub(crate) fn cached(&self) -> u64 {
        self.prompt_tokens_details.cached_tokens
    }
}

/// A reply to a request for a chat completion. The time stands still, so that the same request gets the same bytes.
#[derive(Serialize)]
pub(crate) struct Completion<'r> {
    pub(crate) id: String,
    pub(crate) object: &'static str,
    pub(crate) created: u64,
    pub(crate) model: &'r str,
    pub(crate) choices: [Choice<'r>; 1],
    pub(crate) usage: Usage,
}

/// The one choice of a completion.
#[derive(Serialize)]
pub(crate) struct Choice<'r> {
    pub(crate) index: u32,
    pub(crate) message: ReplyMessage<'r>,
    pub(crate) logprobs: Option<Logprobs<'r>>,
    pub(crate) finish_reason: &'static str,
}

/// The message of the judge.
#[derive(Serialize)]
pub(crate) struct ReplyMessage<'r> {
    pub(crate) role: &'static str,
    pub(crate) content: &'r str,
    pub(crate) refusal: Option<&'r str>,
}

/// The chances of each token.
#[derive(Serialize)]
pub(crate) struct Logprobs<'r> {
    pub(crate) content: Vec<AnswerToken<'r>>,
}

/// A reply to a request for numbers.
#[derive(Serialize)]
pub(crate) struct Scores<'r> {
    pub(crate) id: String,
    pub(crate) object: &'static str,
    pub(crate) created: u64,
    pub(crate) model: &'r str,
    pub(crate) data: Vec<ScoredItem>,
    pub(crate) usage: Usage,
}

/// One number in the shape of an endpoint.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ScoredItem {
    /// vLLM's `/classify`, with one class.
    Class { index: usize, label: &'static str, probs: [f64; 1], num_classes: u32 },
    /// vLLM's `/pooling`.
    Pooled { index: usize, object: &'static str, data: [f64; 1] },
    /// SGLang's reward models, which answer as embeddings do.
    Embedded { index: usize, object: &'static str, embedding: [f64; 1] },
}

/// What went wrong, in OpenAI's shape.
#[derive(Serialize)]
pub(crate) struct ErrorBody<'r> {
    pub(crate) error: ErrorDetails<'r>,
}

/// The one field of [`ErrorBody`].
#[derive(Serialize)]
pub(crate) struct ErrorDetails<'r> {
    pub(crate) message: &'r str,
    #[serde(rename = "type")]
    pub(crate) kind: &'r str,
    pub(crate) param: Option<&'r str>,
    pub(crate) code: Option<&'r str>,
}
