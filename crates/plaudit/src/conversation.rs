//! Conversation: a response made of turns (text, thought, tool calls), and what tools and users said in between.

use plaudit_text::exact;
use serde_json::{Map, Value, json};

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// A person, or what simulates one.
    User,
    /// The model: the only one whose words earn anything.
    Assistant,
    /// What a tool gave back.
    Tool,
}

impl Role {
    /// The word in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Why the generation of a response ended, as trainers and servers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// The limit on its length did: the response is truncated.
    Length,
    /// The model called a tool.
    ToolCalls,
    /// Anything else, such as a filter or an abort.
    Other,
}

impl FinishReason {
    /// The word in input and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Other => "other",
        }
    }

    /// The reason of a word, as OpenAI's API, vLLM, SGLang and trainers write it.
    pub fn from_word(word: &str) -> Self {
        match word {
            "stop" | "eos" | "end_turn" | "stop_sequence" | "completed" => Self::Stop,
            "length" | "max_tokens" | "max_output_tokens" | "incomplete" => Self::Length,
            "tool_calls" | "tool_use" | "function_call" => Self::ToolCalls,
            _ => Self::Other,
        }
    }
}

/// What the model says it calls a tool with.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// An object of JSON.
    Object(Map<String, Value>),
    /// Text that is none.
    Broken(String),
}

/// A tool call as the model wrote it. Ids are left out: they pair calls with results and say nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Arguments,
}

impl ToolCall {
    /// A call whose arguments are a text of JSON, which may be empty where there are none.
    pub fn from_text(name: String, arguments: &str) -> Self {
        let arguments = match arguments.trim() {
            "" => Arguments::Object(Map::new()),
            text => match exact::read(text) {
                Ok(Value::Object(map)) => Arguments::Object(map),
                Ok(Value::Null) => Arguments::Object(Map::new()),
                _ => Arguments::Broken(text.to_owned()),
            },
        };
        Self { name, arguments }
    }

    /// The arguments as JSON: an object, or the text that is none.
    pub fn arguments_value(&self) -> Value {
        match &self.arguments {
            Arguments::Object(map) => Value::Object(map.clone()),
            Arguments::Broken(text) => Value::from(text.as_str()),
        }
    }

    /// The call in one line: its name, and its arguments as JSON or as the text that is none.
    pub fn line(&self) -> String {
        match &self.arguments {
            Arguments::Object(map) => {
                format!("{}({})", self.name, exact::write(&Value::Object(map.clone())))
            }
            Arguments::Broken(text) => format!("{}({text})", self.name),
        }
    }
}

/// One turn, without white space at the ends of its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said, without the thought.
    pub text: String,
    /// What the model thought before it spoke.
    pub thought: Option<String>,
    /// What the model calls.
    pub calls: Vec<ToolCall>,
}

impl Turn {
    /// The turn as a chat message.
    pub fn to_value(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), self.role.as_str().into());
        message.insert("content".to_owned(), self.text.as_str().into());
        if let Some(thought) = &self.thought {
            message.insert("reasoning_content".to_owned(), thought.as_str().into());
        }
        if !self.calls.is_empty() {
            let call = |call: &ToolCall| json!({ "name": call.name, "arguments": call.arguments_value() });
            let call = |one: &ToolCall| json!({ "type": "function", "function": call(one) });
            message.insert("tool_calls".to_owned(), self.calls.iter().map(call).collect());
        }
        Value::Object(message)
    }

    fn bytes(&self) -> usize {
        let call = |call: &ToolCall| {
            let arguments = match &call.arguments {
                Arguments::Object(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum(),
                Arguments::Broken(text) => text.len(),
            };
            size_of::<ToolCall>() + call.name.len() + arguments
        };
        let thought = self.thought.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.text.len() + thought + self.calls.iter().map(call).sum::<usize>()
    }
}

/// About how many bytes a value takes.
pub(crate) fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + ENTRY + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

/// What one key of an object takes beside its text.
pub(crate) const ENTRY: usize = 32;

/// A tool that the model was given.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The JSON schema of its arguments, where it is declared.
    pub parameters: Option<Value>,
}

impl Tool {
    /// The declaration as OpenAI's API has it.
    pub fn to_value(&self) -> Value {
        json!({ "type": "function", "function": { "name": self.name, "parameters": self.parameters } })
    }
}

/// A response made of turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// In the order in which they were spoken.
    pub turns: Vec<Turn>,
}

impl Conversation {
    /// The turns of the model.
    pub fn assistant_turns(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.role == Role::Assistant)
    }

    /// All tool calls of the model, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.assistant_turns().flat_map(|turn| &turn.calls)
    }

    /// The model's final words: the text of its last turn. Where another turn follows, such as a tool's, it had no last word.
    pub fn final_words(&self) -> &str {
        match self.turns.last() {
            Some(turn) if turn.role == Role::Assistant => &turn.text,
            _ => "",
        }
    }

    /// The turns as chat messages.
    pub fn to_value(&self) -> Value {
        Value::Array(self.turns.iter().map(Turn::to_value).collect())
    }

    /// About how many bytes it takes, for limits on memory.
    pub fn bytes(&self) -> usize {
        self.turns.iter().map(Turn::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_broken() {
        let call = |text: &str| ToolCall::from_text("f".to_owned(), text).arguments;
        for empty in ["", " ", "{}", "null"] {
            assert_eq!(call(empty), Arguments::Object(Map::new()));
        }
        for broken in ["[1]", "{", "\"a\"", &"[".repeat(10_000)] {
            assert_eq!(call(broken), Arguments::Broken(broken.to_owned()));
        }
    }

    #[test]
    fn who_does_not_speak_last_has_no_final_words() {
        let turn =
            |role: Role, text: &str| Turn { role, text: text.to_owned(), thought: None, calls: Vec::new() };
        let mut turns = vec![turn(Role::Assistant, "42")];
        assert_eq!(Conversation { turns: turns.clone() }.final_words(), "42");
        turns.push(turn(Role::Tool, "41"));
        assert_eq!(Conversation { turns }.final_words(), "");
    }
}
