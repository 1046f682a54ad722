//! Rollout: one response to one prompt, with its reference, token count and extra fields.

mod field;
mod reference;

pub(crate) use field::place;
pub use field::{FIELDS, Field, Generation, Misfit, RolloutLine, field_names};
pub use reference::{MAX_ACCEPTED, REFERENCE_FIELDS, Reference, ReferenceForm, is_whole, whole};

use crate::conversation::{Conversation, ENTRY, FinishReason, Tool, weight};
use plaudit_text::exact;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// What the model was asked: plain text or chat messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Chat messages, as they were given.
    Messages(Vec<Value>),
}

impl Prompt<'_> {
    /// A text that is equal for equal prompts, whatever the order of keys was.
    ///
    /// Messages become their JSON text, which starts with `[{`; a plain prompt is itself.
    pub fn key(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Messages(messages) => Cow::Owned(Value::Array(messages.clone()).to_string()),
        }
    }

    /// The text of the task: the prompt itself, or the first message of a user.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Messages(messages) => {
                messages.iter().find(|message| message["role"] == "user")?.get("content")?.as_str()
            }
        }
    }

    /// The prompt as JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.to_string()),
            Self::Messages(messages) => Value::Array(messages.clone()),
        }
    }
}

/// What is a rollout or holds one, such as an `Arc` of it.
pub trait AsRollout: Sync {
    /// The rollout.
    fn as_rollout(&self) -> &Rollout<'_>;
}

impl AsRollout for Rollout<'_> {
    fn as_rollout(&self) -> &Rollout<'_> {
        self
    }
}

impl<R: AsRollout + ?Sized> AsRollout for &R {
    fn as_rollout(&self) -> &Rollout<'_> {
        (**self).as_rollout()
    }
}

impl<R: AsRollout + Send + ?Sized> AsRollout for Arc<R> {
    fn as_rollout(&self) -> &Rollout<'_> {
        (**self).as_rollout()
    }
}

/// One response to one prompt.
///
/// This is what the engine works on; [`RolloutLine`] is what callers write. Text is borrowed where it can be, so that a caller in
/// another language hands over its strings without a copy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rollout<'a> {
    /// The caller's name for it. The engine never makes a path or a label of it.
    pub id: Option<Cow<'a, str>>,
    /// The group's name; where none is given, equal prompts make a group.
    pub group: Option<Cow<'a, str>>,
    /// What the model was asked, where it is known.
    pub prompt: Option<Prompt<'a>>,
    /// What the model answered; of a conversation, its final words.
    pub response: Cow<'a, str>,
    /// The turns of a response that is a conversation.
    pub conversation: Option<Arc<Conversation>>,
    /// How the response was generated.
    pub generation: Generation,
    /// The tools that the model was given, where they are declared.
    pub tools: Option<Arc<[Tool]>>,
    /// The answer to compare with.
    pub reference: Option<Reference<'a>>,
    /// The length of the response in the model's own tokens.
    pub tokens: Option<u64>,
    /// Everything else that the caller gave. A number that 64 bits do not hold is a text of [`plaudit_text::exact`].
    pub extra: Map<String, Value>,
}

impl<'a> Rollout<'a> {
    /// A rollout with only a response.
    pub fn new(response: impl Into<Cow<'a, str>>) -> Self {
        Self { response: response.into(), ..Self::default() }
    }

    /// Whether a component sees the same in both: everything but their names.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self {
            id: _,
            group: _,
            prompt,
            response,
            conversation,
            generation,
            tools,
            reference,
            tokens,
            extra,
        } = self;
        // Almost all differ in their responses, and are not looked at further.
        *response == other.response
            && *conversation == other.conversation
            && *generation == other.generation
            && *tools == other.tools
            && *tokens == other.tokens
            && *reference == other.reference
            && *prompt == other.prompt
            && *extra == other.extra
    }

    /// The same, with texts of its own.
    pub fn into_owned(self) -> Rollout<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Rollout {
            id: owned(self.id),
            group: owned(self.group),
            prompt: self.prompt.map(|prompt| match prompt {
                Prompt::Text(text) => Prompt::Text(Cow::Owned(text.into_owned())),
                Prompt::Messages(messages) => Prompt::Messages(messages),
            }),
            response: Cow::Owned(self.response.into_owned()),
            conversation: self.conversation,
            generation: self.generation,
            tools: self.tools,
            reference: self.reference.map(Reference::into_owned),
            tokens: self.tokens,
            extra: self.extra,
        }
    }

    /// About how many bytes its text takes, for limits on memory.
    pub fn bytes(&self) -> usize {
        let prompt = match &self.prompt {
            None => 0,
            Some(Prompt::Text(text)) => text.len(),
            Some(Prompt::Messages(messages)) => messages.iter().map(weight).sum(),
        };
        let name = |name: &Option<Cow<'_, str>>| name.as_ref().map_or(0, |text| text.len());
        let extra: usize = self.extra.iter().map(|(key, value)| key.len() + ENTRY + weight(value)).sum();
        let reference = self.reference.as_deref().map_or(0, str::len);
        let names = name(&self.id) + name(&self.group) + reference;
        let turns = self.conversation.as_ref().map_or(0, |conversation| conversation.bytes());
        size_of::<Self>() + prompt + names + self.response.len() + turns + extra
    }

    /// Gives back what its texts have room for and do not use, before it is held for long.
    pub(crate) fn shrink(&mut self) {
        let prompt = match &mut self.prompt {
            Some(Prompt::Text(text)) => Some(text),
            _ => None,
        };
        if let Some(reference) = &mut self.reference {
            reference.shrink();
        }
        let texts = [Some(&mut self.response), self.id.as_mut(), prompt];
        for text in texts.into_iter().flatten() {
            if let Cow::Owned(text) = text {
                text.shrink_to_fit();
            }
        }
    }

    /// The rollout as a flat line of JSON would have it.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(Value::from);
        put("id", text(&self.id));
        put("group", text(&self.group));
        put("prompt", self.prompt.as_ref().map(Prompt::to_value));
        put("response", Some(self.response_value()));
        put("reference", self.reference.as_ref().map(Reference::to_value));
        put("tokens", self.tokens.map(Value::from));
        let tools = self.tools.as_deref().map(|tools| tools.iter().map(Tool::to_value).collect());
        put("tools", tools.map(Value::Array));
        put("extra", (!self.extra.is_empty()).then(|| Value::Object(self.extra.clone())));
        self.generation.write(&mut map);
        Value::Object(map)
    }

    /// The response as JSON: text, or the messages of a conversation.
    pub fn response_value(&self) -> Value {
        match &self.conversation {
            None => Value::from(&*self.response),
            Some(conversation) => conversation.to_value(),
        }
    }

    /// Whether the generation was cut off, where that is known.
    pub fn truncated(&self) -> Option<bool> {
        self.generation.finish_reason.map(|reason| reason == FinishReason::Length)
    }

    /// The same rollout, whose response is a conversation.
    #[must_use]
    pub fn with_conversation(mut self, conversation: Arc<Conversation>) -> Self {
        self.response = Cow::Owned(conversation.final_words().to_owned());
        self.conversation = Some(conversation);
        self
    }

    /// What stands in `extra` at a path of keys, where it is text, a number, true or false, or a list of one of these.
    pub fn field(&self, path: &[String]) -> Option<Cow<'_, str>> {
        let (first, rest) = path.split_first()?;
        let value = rest.iter().try_fold(self.extra.get(first)?, |value, key| value.get(key))?;
        let value = match value.as_array().map(Vec::as_slice) {
            Some([one]) => one,
            _ => value,
        };
        match value {
            Value::String(text) => Some(Cow::Borrowed(exact::plain(text))),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(Cow::Owned(value.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// What the response is compared with: the rollout's reference, else that of another field of the row, with its name.
    pub fn compared_with(&self) -> Option<(Option<&'static str>, Reference<'_>)> {
        match &self.reference {
            Some(reference) => Some((None, reference.borrowed())),
            None => Reference::in_fields(&self.extra).map(|(field, reference)| (Some(field), reference)),
        }
    }

    /// The same rollout, with a reference.
    #[must_use]
    pub fn with_reference(mut self, reference: impl Into<Reference<'a>>) -> Self {
        self.reference = Some(reference.into());
        self
    }

    /// The same rollout, in a named group.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<Cow<'a, str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The same rollout, answering a plain prompt.
    #[must_use]
    pub fn to_prompt(mut self, prompt: impl Into<Cow<'a, str>>) -> Self {
        self.prompt = Some(Prompt::Text(prompt.into()));
        self
    }
}
