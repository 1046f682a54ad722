//! Free questions to a judge: what a custom reward may ask of the judges of its recipe, in its own words, and what it gets.

use crate::reason::Reason;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// One message of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuestionMessage {
    /// Who speaks, such as `system` or `user`.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// What a reply must be to count.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyForm {
    /// Any text.
    Text,
    /// One of these texts.
    Choice(Vec<String>),
    /// JSON that fits this schema.
    Json(Value),
}

/// A question in the caller's own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked: the last message is the user's.
    pub messages: Vec<QuestionMessage>,
    /// What the reply must be.
    pub form: ReplyForm,
}

/// One reply a question, in their order: the text, one of the choices, or JSON; or why there is none.
pub type Replies = Vec<Result<String, Reason>>;

/// Asks the judges of a recipe. The calls are journaled, counted and limited as those of judged rewards are.
pub trait AskJudge: Send + Sync {
    /// The judges that take questions, by name.
    fn judges(&self) -> Vec<&str>;

    /// Asks one of them all questions at once. `then` is called once, on another thread, at the latest when the time is
    /// over; it is dropped without a call where the engine goes away. Returns whether there is such a judge.
    fn ask(
        &self,
        judge: &str,
        questions: Vec<Question>,
        timeout: Duration,
        then: Box<dyn FnOnce(Replies) + Send>,
    ) -> bool;
}
