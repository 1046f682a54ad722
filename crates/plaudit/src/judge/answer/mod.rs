//! Answers of judges: what is expected, where it stands in a reply, and how it is parsed.

mod expected;
mod items;
mod parse;
pub mod reply;

pub use expected::{AnswerFormat, AnswerLocation, ExpectedAnswer, QuestionKind, Side, Usage, Verdict};
pub use items::{ItemAnswer, ItemsParser, NOT_APPLICABLE};
pub use parse::AnswerParser;
pub(super) use parse::spoken;
pub use reply::Reply;
