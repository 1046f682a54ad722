//! Reply of an endpoint: the body of a chat completion or of a reward model becomes the judge's text with its
//! probabilities, or the exact reason why not.

use super::expected::Usage;
use crate::input::{InputError, strict};
use crate::reason::{Code, Reason};
use serde_json::{Map, Value};

/// How many characters of a judge's own text a message may quote.
const QUOTED: usize = 80;
/// More tokens than any one call can have; a larger number is a mistake of the endpoint.
const MAX_TOKENS: u64 = 100_000_000;
/// The longest name of a model that is kept, in bytes.
const MAX_MODEL: usize = 256;
/// How keys of well-known services begin.
const KEYS: [&str; 14] = [
    "sk-", "sk_", "pk-", "rk-", "gsk_", "hf_", "xai-", "nvapi-", "key-", "ghp_", "AIza", "AKIA", "eyJ",
    "glpat-",
];

/// What the judge wrote, with what the endpoint says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text. A content that is a list of text parts is joined without a separator.
    pub content: String,
    /// The tokens of the content with their probabilities, where the endpoint gave them in a shape that can be read.
    pub tokens: Option<Vec<Token>>,
    /// What the call took, where the endpoint says something credible.
    pub usage: Option<Usage>,
    /// The model that answered, by its own name.
    pub model: Option<String>,
}

/// One token of the content.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// The natural logarithm of its probability.
    pub logprob: f64,
    /// The likeliest tokens at its place, with theirs.
    pub top: Vec<(String, f64)>,
}

impl Reply {
    /// Reads the body of a chat completion. Why a reply ended is looked at before its content is.
    pub fn read(body: &[u8]) -> Result<Self, Reason> {
        let envelope = envelope(body, Code::JudgeJson)?;
        let choices = envelope.get("choices").and_then(Value::as_array);
        let choice = match choices.map(Vec::as_slice) {
            Some([Value::Object(choice)]) => choice,
            Some([_, _, ..]) => return Err(shape("there is more than one choice")),
            _ => return Err(shape("there is no choice")),
        };
        if let Some(error) = field(choice, "error") {
            return Err(named_error(error));
        }
        let calls_tool = match ending(choice.get("finish_reason")) {
            Ending::Whole => false,
            Ending::Tool => true,
            Ending::Cut(reason) => return Err(reason),
        };
        let Some(Value::Object(message)) = choice.get("message") else {
            return Err(shape("the choice has no message"));
        };
        let calls = match message.get("tool_calls") {
            None | Some(Value::Null) => false,
            Some(Value::Array(calls)) => !calls.is_empty(),
            Some(_) => true,
        };
        if calls || field(message, "function_call").is_some() || calls_tool {
            return Err(shape("the judge calls a tool"));
        }
        match field(message, "refusal") {
            Some(Value::String(words)) if words.trim().is_empty() => {}
            Some(_) => return Err(Code::JudgeRefusal.into()),
            None => {}
        }
        let content = content(message)?;
        if content.trim().is_empty() {
            return Err(Code::JudgeEmpty.into());
        }
        let tokens = choice.get("logprobs").and_then(|logprobs| tokens(logprobs.get("content")?));
        let model = envelope.get("model").and_then(Value::as_str);
        let named = |name: &&str| name.len() <= MAX_MODEL && !name.chars().any(char::is_control);
        Ok(Self { content, tokens, usage: spent(&envelope), model: model.filter(named).map(str::to_owned) })
    }
}

/// How a reply ended.
enum Ending {
    /// As it should.
    Whole,
    /// With the call of a tool.
    Tool,
    /// Otherwise, for that reason.
    Cut(Reason),
}

/// What a `finish_reason` means. Only the names that servers give to a normal end are taken for one: `stop` (OpenAI, vLLM,
/// SGLang, Ollama, Fireworks, OpenRouter; Gemini in capitals), `eos` (Together), `eos_token` and `stop_sequence`
/// (Text Generation Inference), `end_turn` (Anthropic), `complete` (Cohere). Without one, nobody says that it is cut.
fn ending(finish: Option<&Value>) -> Ending {
    let finish = match finish {
        None | Some(Value::Null) => return Ending::Whole,
        Some(Value::String(finish)) => finish.to_ascii_lowercase(),
        Some(_) => return Ending::Cut(shape("the finish_reason is not text")),
    };
    match finish.as_str() {
        "" | "stop" | "eos" | "eos_token" | "stop_sequence" | "stop_token" | "end_turn" | "complete"
        | "completed" | "finished" => Ending::Whole,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Ending::Tool,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" | "abort" => {
            Ending::Cut(Code::JudgeTruncated.into())
        }
        "content_filter" | "safety" | "sensitive" | "recitation" | "blocklist" | "prohibited_content"
        | "spii" => Ending::Cut(Code::JudgeContentFilter.into()),
        "refusal" => Ending::Cut(Code::JudgeRefusal.into()),
        other => {
            let message = format!("the answer ended with finish_reason {:?}", scrub(other));
            Ending::Cut(Reason::new(Code::JudgeUnfinished, message))
        }
    }
}

/// What a call took, also of a reply that is of no other use. Numbers that cannot be true are none.
pub fn usage(body: &[u8]) -> Option<Usage> {
    let text = std::str::from_utf8(body).ok()?;
    match strict::read(text) {
        Ok(Value::Object(envelope)) => spent(&envelope),
        _ => None,
    }
}

/// Whether a chat completion carries no probabilities, however it ended and whatever it says.
pub fn lacks_logprobs(body: &[u8]) -> bool {
    let Ok(envelope) = envelope(body, Code::JudgeJson) else { return false };
    let Some(Value::Object(choice)) = envelope.get("choices").and_then(|choices| choices.get(0)) else {
        return false;
    };
    choice.get("logprobs").and_then(|logprobs| tokens(logprobs.get("content")?)).is_none()
}

/// The numbers that a reward model gave, one an input and in their order.
///
/// Understood are vLLM's `/classify` (`data[].probs`, or `logits`), `/pooling` (`data[].data`) and `/score`
/// (`data[].score`), and SGLang's embeddings (`data[].embedding`). Each must hold exactly one number: of several, nobody
/// has said which one is the reward.
pub fn scalars(body: &[u8]) -> Result<Vec<f64>, Reason> {
    let envelope = envelope(body, Code::JudgeNotFinite)?;
    let Some(Value::Array(data)) = envelope.get("data") else {
        return Err(shape("there is no list of results"));
    };
    if data.is_empty() {
        return Err(shape("the list of results is empty"));
    }
    let mut found = vec![None; data.len()];
    for (at, item) in data.iter().enumerate() {
        let Value::Object(item) = item else { return Err(shape("a result is not an object")) };
        let index = match item.get("index") {
            None => Some(at),
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let place = index.and_then(|index| found.get_mut(index)).filter(|place| place.is_none());
        let Some(place) = place else { return Err(shape("the results are not numbered one by one")) };
        let names = ["probs", "logits", "data", "score", "embedding"];
        let value = names.iter().find_map(|name| field(item, name));
        *place =
            Some(value.and_then(only_number).ok_or_else(|| shape("a result is not exactly one number"))?);
    }
    found.into_iter().map(|value| value.ok_or_else(|| shape("a result is missing"))).collect()
}

/// A text of a judge or an endpoint, as it may stand in a message: short, on one line, visible, and without keys.
pub fn scrub(text: &str) -> String {
    let mut out = String::new();
    let mut left = QUOTED;
    let mut after_bearer = false;
    for piece in text.split_inclusive(|char: char| !is_of_key(char)) {
        let word = piece.trim_end_matches(|char: char| !is_of_key(char));
        let masked = !word.is_empty() && (after_bearer || is_key(word));
        let shown = if masked { "***" } else { word };
        for char in shown.chars().chain(piece[word.len()..].chars()) {
            if left == 0 {
                out.push('…');
                return out;
            }
            match char {
                '"' | '\'' | '\\' => out.push(char),
                _ => out.extend(char.escape_debug()),
            }
            left -= 1;
        }
        after_bearer = (after_bearer && word.is_empty())
            || ["bearer", "api-key", "apikey", "api_key", "x-api-key"]
                .iter()
                .any(|name| word.eq_ignore_ascii_case(name));
    }
    out
}

/// Whether a character can be part of a key.
fn is_of_key(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '+' | '/' | '~')
}

/// Whether a word looks like a key: by how it begins, or because nobody writes words like that.
fn is_key(word: &str) -> bool {
    let begins = KEYS.iter().any(|key| word.len() >= key.len() + 6 && word.starts_with(key));
    let is_inside = || KEYS.iter().take(2).any(|key| word.contains(key)) && word.len() >= 16;
    let digits = || word.bytes().filter(u8::is_ascii_digit).count();
    let letters = || word.bytes().filter(u8::is_ascii_alphabetic).count();
    begins || is_inside() || (word.len() >= 32 && !word.contains('/') && digits() >= 4 && letters() >= 4)
}

/// The object that a body is. `number` is the cause where a number cannot be held.
fn envelope(body: &[u8], number: Code) -> Result<Map<String, Value>, Reason> {
    let text =
        std::str::from_utf8(body).map_err(|_| Reason::new(Code::JudgeJson, "the answer is not UTF-8"))?;
    let unread = |error: InputError| {
        let code = match error.code {
            "input.duplicate_key" => Code::JudgeDuplicateKey,
            "input.number" => number,
            _ => Code::JudgeJson,
        };
        Reason::new(code, scrub(&error.message))
    };
    let Value::Object(envelope) = strict::read(text).map_err(unread)? else {
        return Err(shape("the answer is not an object"));
    };
    field(&envelope, "error").map_or(Ok(()), |error| Err(named_error(error)))?;
    Ok(envelope)
}

/// What an error that stands in place of an answer says.
fn named_error(error: &Value) -> Reason {
    let message = error.get("message").unwrap_or(error);
    let message = message.as_str().map_or_else(|| scrub(&message.to_string()), scrub);
    Reason::new(Code::JudgeSchema, format!("the endpoint answers with an error: {message}"))
}

fn shape(message: &'static str) -> Reason {
    Reason::new(Code::JudgeSchema, message)
}

/// A field that is there and is not null.
fn field<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

fn content(message: &Map<String, Value>) -> Result<String, Reason> {
    let parts = match message.get("content") {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err(shape("the content is not text")),
    };
    let mut joined = String::new();
    for part in parts {
        match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
            (Some("text" | "output_text"), Some(text)) => joined.push_str(text),
            (Some("refusal"), _) => return Err(Code::JudgeRefusal.into()),
            _ => return Err(shape("a part of the content is not text")),
        }
    }
    Ok(joined)
}

/// The tokens, or none where one of them cannot be read: half of the probabilities is worse than none.
fn tokens(list: &Value) -> Option<Vec<Token>> {
    let pair =
        |value: &Value| Some((value.get("token")?.as_str()?.to_owned(), value.get("logprob")?.as_f64()?));
    let token = |value: &Value| {
        let (text, logprob) = pair(value)?;
        let top = match value.get("top_logprobs") {
            None | Some(Value::Null) => Vec::new(),
            Some(top) => top.as_array()?.iter().map(pair).collect::<Option<_>>()?,
        };
        Some(Token { text, logprob, top })
    };
    list.as_array()?.iter().map(token).collect()
}

fn spent(envelope: &Map<String, Value>) -> Option<Usage> {
    let usage = envelope.get("usage")?;
    let count = |value: &Value| value.as_u64().filter(|count| *count <= MAX_TOKENS);
    let prompt = count(usage.get("prompt_tokens")?)?;
    let completion = match usage.get("completion_tokens") {
        // A reward model writes nothing.
        None | Some(Value::Null) => 0,
        Some(value) => count(value)?,
    };
    let cached = match usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens")) {
        None | Some(Value::Null) => 0,
        Some(value) => count(value).filter(|cached| *cached <= prompt)?,
    };
    Some(Usage { prompt, cached, completion })
}

/// The number that a value is, or that lists of one hold.
fn only_number(mut value: &Value) -> Option<f64> {
    while let Value::Array(list) = value {
        let [inner] = list.as_slice() else { return None };
        value = inner;
    }
    value.as_f64().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_controls_do_not_reach_a_message() {
        assert_eq!(scrub("Incorrect API key provided: sk-THISISASECRET."), "Incorrect API key provided: ***");
        assert_eq!(scrub("Authorization: Bearer abc.def"), "Authorization: Bearer ***");
        assert_eq!(scrub("a\u{1b}[31m\u{202e}\n"), "a\\u{1b}[31m\\u{202e}\\n");
        assert_eq!(scrub(&"x y".repeat(1000)).chars().count(), QUOTED + 1);
        assert!(!scrub(&format!("{} sk-THISISASECRET", "a ".repeat(38))).contains("THIS"));
    }

    #[test]
    fn only_a_normal_end_is_read() {
        let read = |finish: &str| {
            let body = format!(r#"{{"choices":[{{"message":{{"content":"A"}},"finish_reason":{finish}}}]}}"#);
            Reply::read(body.as_bytes()).map(|reply| reply.content).map_err(|reason| reason.code)
        };
        for whole in
            ["null", r#""stop""#, r#""STOP""#, r#""eos_token""#, r#""end_turn""#, r#""stop_sequence""#]
        {
            assert_eq!(read(whole), Ok("A".to_owned()), "{whole}");
        }
        for (cut, code) in [
            (r#""error""#, Code::JudgeUnfinished),
            (r#""insufficient_system_resource""#, Code::JudgeUnfinished),
            (r#""repetition""#, Code::JudgeUnfinished),
            (r#""length""#, Code::JudgeTruncated),
            (r#""content_filter""#, Code::JudgeContentFilter),
            (r#""SAFETY""#, Code::JudgeContentFilter),
            (r#""tool_calls""#, Code::JudgeSchema),
            ("7", Code::JudgeSchema),
        ] {
            assert_eq!(read(cut), Err(code), "{cut}");
        }
    }

    #[test]
    fn probabilities_are_looked_for_whatever_the_judge_wrote() {
        let lacks = |choice: &str| lacks_logprobs(format!(r#"{{"choices":[{choice}]}}"#).as_bytes());
        assert!(lacks(r#"{"message":{"content":"I think"},"finish_reason":"length"}"#));
        assert!(lacks(r#"{"message":{"content":"A"},"logprobs":null}"#));
        assert!(!lacks(
            r#"{"logprobs":{"content":[{"token":"A","logprob":-0.1}]},"finish_reason":"length"}"#
        ));
        assert!(!lacks(r#"{"logprobs":{"content":[]}}"#));
        assert!(!lacks_logprobs(b"no JSON") && !lacks_logprobs(br#"{"choices":[]}"#));
    }

    #[test]
    fn an_error_of_a_choice_is_told() {
        let body = r#"{"choices":[{"message":{"content":"A"},"finish_reason":"error","error":{"code":502,"message":"Upstream gone"}}]}"#;
        let reason = Reply::read(body.as_bytes()).expect_err("no verdict");
        assert_eq!(reason.message, "the endpoint answers with an error: Upstream gone");
        let none =
            r#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop","error":null}],"error":null}"#;
        assert_eq!(Reply::read(none.as_bytes()).expect("a reply").content, "A");
    }

    #[test]
    fn numbers_of_reward_models_stand_in_the_order_of_their_index() {
        let read = |body: &str| scalars(body.as_bytes()).map_err(|reason| reason.code);
        assert_eq!(
            read(r#"{"data":[{"index":1,"probs":[0.2]},{"index":0,"probs":[0.9]}]}"#),
            Ok(vec![0.9, 0.2])
        );
        assert_eq!(read(r#"{"data":[{"data":[-1.5]},{"data":2}]}"#), Ok(vec![-1.5, 2.0]));
        assert_eq!(read(r#"{"data":[{"embedding":[3.25]}]}"#), Ok(vec![3.25]));
        assert_eq!(read(r#"{"data":[{"embedding":[3.25,1]}]}"#), Err(Code::JudgeSchema));
        assert_eq!(read(r#"{"data":[{"index":0,"data":1},{"index":0,"data":1}]}"#), Err(Code::JudgeSchema));
        assert_eq!(read(r#"{"data":[{"index":9,"data":1}]}"#), Err(Code::JudgeSchema));
        assert_eq!(read(r#"{"data":[{"data":1e999}]}"#), Err(Code::JudgeNotFinite));
        assert_eq!(read(r#"{"data":[]}"#), Err(Code::JudgeSchema));
    }

    #[test]
    fn absurd_usage_is_no_usage() {
        let read = |usage: &str| usage_of(usage);
        assert_eq!(read(r#"{"prompt_tokens":10,"completion_tokens":5}"#), Some((10, 0, 5)));
        let details =
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}"#;
        assert_eq!(read(details), Some((10, 8, 5)));
        assert_eq!(read(&details.replace('8', "80")), None);
        assert_eq!(read(r#"{"prompt_tokens":1000000000000000000000000000000,"completion_tokens":-5}"#), None);
        assert_eq!(read("null"), None);
    }

    fn usage_of(usage: &str) -> Option<(u64, u64, u64)> {
        let found = super::usage(format!(r#"{{"usage":{usage}}}"#).as_bytes())?;
        Some((found.prompt, found.cached, found.completion))
    }
}
