//! What the client needs of a judge call: its request in every format and attempt, and how a reply to it is read.

use crate::judge::answer::{AnswerFormat, QuestionKind, Usage, Verdict};
use crate::reason::Reason;

/// A body for a path below an endpoint's base address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The path.
    pub path: &'static str,
    /// The body, JSON.
    pub body: Vec<u8>,
}

/// Something that can be asked of a judge.
pub trait Query: Send + Sync {
    /// The kind of question that it is.
    fn kind(&self) -> QuestionKind;
    /// The formats that it can be asked in, best first.
    fn formats(&self) -> &[AnswerFormat];
    /// What is sent, in that format, on that attempt.
    fn request(&self, format: AnswerFormat, attempt: u32) -> Result<Request, Reason>;
    /// The verdict in the reply to that.
    fn read(&self, format: AnswerFormat, attempt: u32, body: &[u8]) -> Result<Verdict, Reason>;
    /// What an earlier version sent for it, so that a replay finds what that bought.
    fn earlier_request(&self) -> Option<Request> {
        None
    }
    /// Whether the endpoint did what that format asks of it, whatever the judge wrote.
    fn is_in_format(&self, _: AnswerFormat, _: &[u8]) -> bool {
        true
    }
    /// The tokens that the endpoint reports.
    fn usage(&self, body: &[u8]) -> Option<Usage>;
    /// The verdict, where it is computed here and nothing is sent.
    fn local(&self) -> Option<Result<Verdict, Reason>> {
        None
    }
}
