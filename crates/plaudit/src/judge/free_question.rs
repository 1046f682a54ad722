//! A free question as a judge call: the messages are the caller's own, and the reply is text, one of some choices, or JSON.

use super::answer::{AnswerFormat, QuestionKind, Reply, Usage, Verdict, reply, spoken};
use super::client::{Query, Request};
use super::config::ResolvedJudge;
use super::endpoint::chat_request;
use crate::input::strict;
use crate::question::{Question, QuestionMessage, ReplyForm};
use crate::reason::{Code, Reason};
use serde_json::{Value, json};

/// A question, and the judge that is asked.
#[derive(Debug)]
pub(super) struct FreeQuestion<'q> {
    question: &'q Question,
    judge: &'q ResolvedJudge,
    formats: Vec<AnswerFormat>,
}

impl<'q> FreeQuestion<'q> {
    pub(super) fn new(question: &'q Question, judge: &'q ResolvedJudge) -> Self {
        let allowed = judge.formats();
        let json = question.form != ReplyForm::Text && allowed.contains(&AnswerFormat::Json);
        let plain = !json || allowed.contains(&AnswerFormat::Tag);
        let formats = [(json, AnswerFormat::Json), (plain, AnswerFormat::Tag)];
        let formats = formats.into_iter().filter(|(fits, _)| *fits).map(|(_, format)| format).collect();
        Self { question, judge, formats }
    }

    /// The messages, and after the last one how to reply, where that is not free.
    fn messages(&self, format: AnswerFormat) -> Vec<QuestionMessage> {
        let told = match (&self.question.form, format) {
            (ReplyForm::Text, _) => None,
            (ReplyForm::Choice(choices), AnswerFormat::Json) => {
                let choices = Value::from(choices.clone());
                Some(format!("Reply with the JSON object {{\"answer\": X}}, where X is one of {choices}."))
            }
            (ReplyForm::Choice(choices), _) => {
                let choices = Value::from(choices.clone());
                Some(format!(
                    "Reply with exactly one of these texts, without quotes, and nothing else: {choices}"
                ))
            }
            (ReplyForm::Json(schema), _) => {
                Some(format!("Reply with JSON that fits this schema, and nothing else: {schema}"))
            }
        };
        let mut messages = self.question.messages.clone();
        if let (Some(told), Some(last)) = (told, messages.last_mut()) {
            last.content = format!("{}\n\n{told}", last.content);
        }
        messages
    }

    /// What the endpoint holds the reply to.
    fn response_format(&self) -> Option<Value> {
        let schema = match &self.question.form {
            ReplyForm::Text => return None,
            ReplyForm::Choice(choices) => json!({
                "type": "object", "properties": { "answer": { "type": "string", "enum": choices } },
                "required": ["answer"], "additionalProperties": false,
            }),
            ReplyForm::Json(schema) => schema.clone(),
        };
        // Endpoints refuse a schema as strict that leaves further keys open.
        let strict = schema["additionalProperties"] == Value::Bool(false);
        let schema = json!({ "name": "answer", "strict": strict, "schema": schema });
        Some(json!({ "type": "json_schema", "json_schema": schema }))
    }

    /// About how many tokens the judge reads; how many it writes, nobody knows.
    pub(super) fn estimate(&self) -> (u64, u64) {
        let format = self.formats.first().copied().unwrap_or(AnswerFormat::Tag);
        let read = self.request(format, 0).map_or(0, |request| request.body.len().div_ceil(4));
        (read as u64, (self.judge.config.kind.protocol().completion_tokens)(format))
    }
}

impl Query for FreeQuestion<'_> {
    fn kind(&self) -> QuestionKind {
        QuestionKind::Free
    }

    fn formats(&self) -> &[AnswerFormat] {
        &self.formats
    }

    fn request(&self, format: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
        let messages = self.messages(format);
        let messages =
            messages.iter().map(|message| (message.role.as_str(), message.content.as_str())).collect();
        let held = self.response_format().filter(|_| format == AnswerFormat::Json);
        Ok(chat_request(self.judge, messages, attempt, held, false))
    }

    fn read(&self, format: AnswerFormat, _: u32, body: &[u8]) -> Result<Verdict, Reason> {
        let reply = Reply::read(body)?;
        let text = spoken(&reply.content)?;
        let text = match &self.question.form {
            ReplyForm::Text => text.to_owned(),
            ReplyForm::Choice(choices) => {
                let said = match format {
                    AnswerFormat::Json => match parsed(text)?.get("answer") {
                        Some(Value::String(said)) => said.clone(),
                        _ => return Err(shape("the JSON has no text as its answer")),
                    },
                    _ => text.to_owned(),
                };
                let chosen = choices.iter().find(|choice| choice.trim() == said.trim());
                chosen.ok_or_else(|| shape("the reply is none of the choices"))?.clone()
            }
            ReplyForm::Json(schema) => {
                let value = parsed(text)?;
                fits(schema, &value)?;
                value.to_string()
            }
        };
        Ok(Verdict::Text(text))
    }

    fn usage(&self, body: &[u8]) -> Option<Usage> {
        reply::usage(body)
    }
}

/// The JSON that a reply is, a code fence around it aside.
fn parsed(text: &str) -> Result<Value, Reason> {
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let text = fenced.map_or(text, |text| text.strip_prefix("json").unwrap_or(text)).trim();
    strict::read(text).map_err(|error| match error.code {
        "input.duplicate_key" => Code::JudgeDuplicateKey.into(),
        "input.number" => Code::JudgeNotFinite.into(),
        _ => shape("the reply is not JSON and nothing else"),
    })
}

/// Checks the outermost level of a schema; the endpoint, which is told the whole of it, holds the reply to the rest.
fn fits(schema: &Value, value: &Value) -> Result<(), Reason> {
    let typed = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        _ => true,
    };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match typed && required.into_iter().all(|key| value.get(key).is_some()) {
        true => Ok(()),
        false => Err(shape("the JSON does not fit the schema")),
    }
}

fn shape(message: &'static str) -> Reason {
    Reason::new(Code::JudgeSchema, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::config::{AddressConfig, FormatConfig, JudgeConfig};

    fn judge(answer_format: FormatConfig) -> ResolvedJudge {
        let base_url = Some(AddressConfig::One("http://127.0.0.1:8000/v1".to_owned()));
        let config =
            JudgeConfig { base_url, model: Some("m".to_owned()), answer_format, ..JudgeConfig::default() };
        ResolvedJudge::new("main", config).expect("a judge")
    }

    fn question(form: ReplyForm) -> Question {
        let message = QuestionMessage { role: "user".to_owned(), content: "Is it polite?".to_owned() };
        Question { messages: vec![message], form }
    }

    fn choices() -> ReplyForm {
        ReplyForm::Choice(vec!["yes".to_owned(), "no".to_owned()])
    }

    fn read(form: ReplyForm, format: AnswerFormat, content: &str) -> Result<String, Code> {
        let body = json!({ "choices": [{ "message": { "content": content }, "finish_reason": "stop" }] });
        let (judge, question) = (judge(FormatConfig::Auto), question(form));
        match FreeQuestion::new(&question, &judge).read(format, 0, body.to_string().as_bytes()) {
            Ok(Verdict::Text(text)) => Ok(text),
            Ok(other) => panic!("{other:?}"),
            Err(reason) => Err(reason.code),
        }
    }

    #[test]
    fn a_free_question_is_asked_as_the_judge_allows() {
        use AnswerFormat::{Json, Tag};
        let formats = |verdict, form| {
            let (judge, question) = (judge(verdict), question(form));
            FreeQuestion::new(&question, &judge).formats
        };
        assert_eq!(formats(FormatConfig::Auto, ReplyForm::Text), [Tag]);
        assert_eq!(formats(FormatConfig::Auto, choices()), [Json, Tag]);
        assert_eq!(formats(FormatConfig::Json, choices()), [Json]);
        assert_eq!(formats(FormatConfig::Json, ReplyForm::Text), [Tag]);
        assert_eq!(formats(FormatConfig::Tag, choices()), [Tag]);
        assert_eq!(formats(FormatConfig::Logprobs, choices()), [Tag]);
    }

    #[test]
    fn a_free_question_says_how_to_reply() {
        let (judge, question) = (judge(FormatConfig::Auto), question(choices()));
        let call = FreeQuestion::new(&question, &judge);
        let body = |format, attempt| -> Value {
            serde_json::from_slice(&call.request(format, attempt).expect("a request").body).expect("JSON")
        };
        let json = body(AnswerFormat::Json, 0);
        let asked = json["messages"][0]["content"].as_str().expect("text");
        assert!(asked.starts_with("Is it polite?\n\nReply with the JSON object"), "{asked}");
        let answer = &json["response_format"]["json_schema"]["schema"]["properties"]["answer"];
        assert_eq!(answer["enum"], json!(["yes", "no"]));
        assert_eq!((&json["seed"], &json["model"]), (&Value::Null, &json!("m")));
        let plain = body(AnswerFormat::Tag, 1);
        assert_eq!((&plain["response_format"], &plain["seed"]), (&Value::Null, &json!(1)));
    }

    #[test]
    fn only_what_was_asked_for_counts() {
        use AnswerFormat::{Json, Tag};
        let schema = || ReplyForm::Json(json!({ "type": "object", "required": ["score"] }));
        for (form, format, content, expected) in [
            (ReplyForm::Text, Tag, "<think>Hm.</think>\nRather.", Ok("Rather.")),
            (choices(), Tag, " yes\n", Ok("yes")),
            (choices(), Tag, "Yes, it is", Err(Code::JudgeSchema)),
            (choices(), Json, r#"{"answer": "no"}"#, Ok("no")),
            (choices(), Json, "```json\n{\"answer\": \"no\"}\n```", Ok("no")),
            (choices(), Json, r#"{"answer": "maybe"}"#, Err(Code::JudgeSchema)),
            (choices(), Json, r#"{"answer": "no", "answer": "yes"}"#, Err(Code::JudgeDuplicateKey)),
            (schema(), Json, r#"{"score": 0.5}"#, Ok(r#"{"score":0.5}"#)),
            (schema(), Json, r#"{"points": 1}"#, Err(Code::JudgeSchema)),
            (schema(), Json, "[1]", Err(Code::JudgeSchema)),
            (schema(), Tag, "a lot", Err(Code::JudgeSchema)),
            (ReplyForm::Text, Tag, "  ", Err(Code::JudgeEmpty)),
        ] {
            assert_eq!(read(form, format, content), expected.map(str::to_owned), "{content}");
        }
    }
}
