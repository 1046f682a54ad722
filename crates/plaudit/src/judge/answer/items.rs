//! Verdicts about the items of a rubric: what a judge says of each that a call asks about, read strictly from the agreed places.

use super::expected::Verdict;
use super::parse::{object, refuses, spoken};
use super::reply::Reply;
use super::{AnswerFormat, AnswerLocation, AnswerParser, ExpectedAnswer, Side};
use crate::reason::{Code, Reason};
use crate::rubric::ItemVerdict;
use memchr::memmem;
use serde_json::Value;

/// The longest reason of a judge that is kept, in characters.
const MAX_REASON: usize = 300;
/// What a judge says of an item that does not apply.
pub const NOT_APPLICABLE: &str = "not applicable";

/// What a judge says of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemAnswer {
    /// The answer; never one that is missing.
    pub verdict: ItemVerdict,
    /// The same in words.
    pub said: String,
    /// Why, in the judge's words, shortened; empty where it gave no reason in a place of its own.
    pub reason: String,
}

/// How the reply to a call about items is read.
#[derive(Debug)]
pub struct ItemsParser<'p> {
    /// The labels of the items, each with the answers that it may get, worst to best.
    pub items: Vec<(String, Vec<&'p str>)>,
    /// Whether the judge may say that an item does not apply.
    pub may_not_apply: bool,
    /// What marks the verdicts of the attempt, in the format `tag`.
    pub nonce: String,
}

impl ItemsParser<'_> {
    /// What a text says of the item at a place; none where it is no answer.
    fn answer(&self, at: usize, text: &str) -> Option<ItemVerdict> {
        if self.may_not_apply && text == NOT_APPLICABLE {
            return Some(ItemVerdict::NotApplicable);
        }
        self.items[at].1.iter().position(|answer| *answer == text).map(ItemVerdict::Answer)
    }

    /// The verdicts of a reply, in the order of the items: none about an item of which nothing can be read. A reply that says
    /// nothing of any item is a failure.
    pub fn read(&self, format: AnswerFormat, reply: &Reply) -> Result<Verdict, Reason> {
        let answers = match format {
            AnswerFormat::Logprobs => return self.weighed(reply),
            AnswerFormat::Json => self.in_json(spoken(&reply.content)?),
            AnswerFormat::Tag => self.in_tags(spoken(&reply.content)?),
        };
        let answers = answers.and_then(|answers| match answers.iter().any(Option::is_some) {
            true => Ok(answers),
            false => Err(Reason::new(Code::JudgeSchema, "no item has one of its answers")),
        });
        answers.map(Verdict::Items).map_err(|reason| match reason.code {
            Code::JudgeSchema if !reply.content.contains('{') && refuses(&reply.content) => {
                Code::JudgeRefusal.into()
            }
            _ => reason,
        })
    }

    /// One item by the probabilities of its verdict: the likelier of two answers.
    fn weighed(&self, reply: &Reply) -> Result<Verdict, Reason> {
        let [(_, answers)] = self.items.as_slice() else {
            return Err(Reason::new(Code::JudgeNoLogprobs, "several items have no one token"));
        };
        let [no, yes] = answers.as_slice() else {
            return Err(Reason::new(Code::JudgeNoLogprobs, "the item has more than two answers"));
        };
        let expected = ExpectedAnswer::Pair { labels: [(*yes).to_owned(), (*no).to_owned()], tie: None };
        let parser = AnswerParser { expected, location: AnswerLocation::Whole { logprobs: true } };
        let Verdict::Pair { winner: Some(side), .. } = parser.read(reply)? else {
            return Err(Reason::new(Code::JudgeSchema, "the answer is neither yes nor no"));
        };
        let met = usize::from(side == Side::First);
        let (verdict, said) = (ItemVerdict::Answer(met), answers[met].to_owned());
        Ok(Verdict::Items(vec![Some(ItemAnswer { verdict, said, reason: String::new() })]))
    }

    fn in_json(&self, content: &str) -> Result<Vec<Option<ItemAnswer>>, Reason> {
        let labels = self.items.iter().map(|(label, _)| label);
        let map = labels.clone().find_map(|label| match object(content, label) {
            Err(reason) if reason.code == Code::JudgeSchema => None,
            found => Some(found),
        });
        let map =
            map.unwrap_or_else(|| Err(Reason::new(Code::JudgeSchema, "there is no object with the items")))?;
        // A verdict about an item that was not asked about says that the judge has lost its place.
        if map.keys().any(|key| !self.items.iter().any(|(label, _)| label == key)) {
            return Err(Reason::new(Code::JudgeSchema, "the answer names items that were not asked about"));
        }
        let answer = |(at, label): (usize, &String)| {
            let said = map.get(label)?.as_object()?;
            let reason = said.get("reason").and_then(Value::as_str).unwrap_or("").trim();
            let said = said.get("verdict")?.as_str()?;
            let (verdict, said) = (self.answer(at, said)?, said.to_owned());
            Some(ItemAnswer { verdict, said, reason: reason.chars().take(MAX_REASON).collect() })
        };
        Ok(labels.enumerate().map(answer).collect())
    }

    fn in_tags(&self, content: &str) -> Result<Vec<Option<ItemAnswer>>, Reason> {
        let answer = |(at, (label, _)): (usize, &(String, Vec<&str>))| {
            let open = format!("<verdict {} {label}>", self.nonce);
            let close = format!("</verdict {} {label}>", self.nonce);
            let only = |text: &str| {
                let mut found = memmem::find_iter(content.as_bytes(), text.as_bytes());
                found.next().filter(|_| found.next().is_none())
            };
            let said = content.get(only(&open)? + open.len()..only(&close)?)?.trim();
            Some(ItemAnswer { verdict: self.answer(at, said)?, said: said.to_owned(), reason: String::new() })
        };
        Ok(self.items.iter().enumerate().map(answer).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parser() -> ItemsParser<'static> {
        let items = vec![
            ("item_1".to_owned(), vec!["no", "yes"]),
            ("item_2".to_owned(), vec!["poor", "fair", "good"]),
        ];
        ItemsParser { items, may_not_apply: true, nonce: "n0".to_owned() }
    }

    fn read(format: AnswerFormat, content: &str) -> Result<Vec<Option<ItemVerdict>>, Code> {
        let body = json!({ "choices": [{ "message": { "content": content }, "finish_reason": "stop" }] });
        let reply = Reply::read(body.to_string().as_bytes()).expect("a reply");
        match parser().read(format, &reply) {
            Ok(Verdict::Items(answers)) => {
                Ok(answers.into_iter().map(|answer| answer.map(|answer| answer.verdict)).collect())
            }
            Ok(other) => panic!("{other:?}"),
            Err(reason) => Err(reason.code),
        }
    }

    #[test]
    fn only_the_answers_of_an_item_count() {
        use AnswerFormat::{Json, Tag};
        use ItemVerdict::{Answer, NotApplicable};
        let item = |verdict: &str| json!({ "reason": "Because.", "verdict": verdict });
        let both =
            |first: &str, second: &str| json!({ "item_1": item(first), "item_2": item(second) }).to_string();
        for (format, content, expected) in [
            (Json, both("yes", "fair"), Ok(vec![Some(Answer(1)), Some(Answer(1))])),
            (Json, both("no", NOT_APPLICABLE), Ok(vec![Some(Answer(0)), Some(NotApplicable)])),
            // What is no answer is missing, and the other item is not lost.
            (Json, both("Yes", "good"), Ok(vec![None, Some(Answer(2))])),
            (Json, both("met", "great"), Err(Code::JudgeSchema)),
            (Json, json!({ "item_2": item("poor") }).to_string(), Ok(vec![None, Some(Answer(0))])),
            (Json, json!({ "item_1": true, "item_2": item("poor") }).to_string(), Ok(vec![None, Some(Answer(0))])),
            (Json, json!({ "item_1": item("yes"), "item_3": item("yes") }).to_string(), Err(Code::JudgeSchema)),
            (Json, format!("{{\"item_1\": {}, \"item_1\": {}}}", item("yes"), item("no")), Err(Code::JudgeDuplicateKey)),
            (Json, "item 1: met".to_owned(), Err(Code::JudgeSchema)),
            (Json, "I'm sorry, but I can't help with that.".to_owned(), Err(Code::JudgeRefusal)),
            (
                Tag,
                "Well.\n<verdict n0 item_1>yes</verdict n0 item_1>\n<verdict n0 item_2>good</verdict n0 item_2>".to_owned(),
                Ok(vec![Some(Answer(1)), Some(Answer(2))]),
            ),
            (
                Tag,
                "<verdict n0 item_1>yes</verdict n0 item_1> <verdict n0 item_1>no</verdict n0 item_1>\n<verdict n0 item_2>fair</verdict n0 item_2>"
                    .to_owned(),
                Ok(vec![None, Some(Answer(1))]),
            ),
            (Tag, "<verdict n1 item_1>yes</verdict n1 item_1>".to_owned(), Err(Code::JudgeSchema)),
        ] {
            assert_eq!(read(format, &content), expected, "{content}");
        }
    }
}
