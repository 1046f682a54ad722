//! One call about items of a rubric: the response, the items that are asked about, and how the reply is read.

use super::answer::{
    AnswerFormat, AnswerLocation, AnswerParser, ExpectedAnswer, ItemAnswer, ItemsParser, NOT_APPLICABLE,
    QuestionKind, Reply, Usage, Verdict, reply,
};
use super::client::{Query, Request};
use super::config::ResolvedJudge;
use super::endpoint::chat_request;
use super::prompt::sanitize::sanitize;
use super::prompt::template;
use super::rubric_session::{ItemsCall, RubricSession};
use crate::input::strict;
use crate::reason::{Code, Reason};
use crate::rubric::{Item, ItemVerdict, RubricFormula};
use minijinja::{Environment, context};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// The system message.
const SYSTEM: &str = include_str!("../../prompts/rubric_system.j2");
const USER: &str = include_str!("../../prompts/rubric_user.j2");
/// The longest criterion or choice that a judge is shown whole, in characters.
const MAX_CRITERION: usize = 4000;
/// How many letters of the code the labels of items carry.
const LABEL_CODE: usize = 4;
/// About how many tokens a verdict about an item takes with its reason.
const TOKENS_AN_ITEM: u64 = 40;
/// What the keys of verdicts about items begin with.
const ITEM_KEY: &[u8] = b"plaudit rubric item 1";

/// The prompts as a hash: what was said when they were other ones is no verdict by these.
fn prompts_hash() -> &'static [u8; 32] {
    static HASH: OnceLock<[u8; 32]> = OnceLock::new();
    HASH.get_or_init(|| {
        *blake3::Hasher::new().update(SYSTEM.as_bytes()).update(USER.as_bytes()).finalize().as_bytes()
    })
}

/// How many bytes a prompt about items has beside the query, the response and the items.
pub fn rubric_frame_bytes() -> usize {
    SYSTEM.len() + USER.len() / 2
}

fn prompts() -> &'static Environment<'static> {
    static PROMPTS: OnceLock<Environment<'static>> = OnceLock::new();
    PROMPTS.get_or_init(|| {
        let mut environment = template::environment();
        // A test renders every branch of the prompt, so it is a template.
        let _ = environment.add_template("rubric", USER);
        environment
    })
}

/// A call about items, and the judge that is asked.
#[derive(Debug)]
pub(super) struct RubricCall<'c> {
    session: &'c RubricSession,
    judge: &'c ResolvedJudge,
    call: &'c ItemsCall,
    formats: Vec<AnswerFormat>,
    labels: Vec<String>,
}

impl<'c> RubricCall<'c> {
    pub(super) fn new(session: &'c RubricSession, judge: &'c ResolvedJudge, call: &'c ItemsCall) -> Self {
        let grader = session.grader();
        // One token has no reason, which who asks about several at once wants to see.
        let single = match call.items.as_slice() {
            [] => true,
            [one] => {
                session.item(*one).answers().len() == 2
                    && grader.is_some_and(|grader| grader.items_per_call == 1 && !grader.may_not_apply)
            }
            _ => false,
        };
        let fits = |format: &AnswerFormat| *format != AnswerFormat::Logprobs || single;
        let mut formats: Vec<AnswerFormat> = judge.formats().iter().copied().filter(fits).collect();
        if formats.is_empty() {
            formats = vec![AnswerFormat::Json, AnswerFormat::Tag];
        }
        let mut made = Self { session, judge, call, formats, labels: Vec::new() };
        made.labels = made.labelled();
        made
    }

    /// The candidate that is shown.
    pub(super) fn candidate(&self) -> usize {
        self.call.candidate
    }

    fn is_implicit(&self) -> bool {
        self.session.grader().is_some_and(|grader| grader.aggregate == RubricFormula::Implicit)
    }

    fn may_not_apply(&self) -> bool {
        self.session.grader().is_some_and(|grader| grader.may_not_apply)
    }

    /// The items that are shown, in their order.
    fn items(&self) -> Vec<&'c Item> {
        match self.call.items.as_slice() {
            [] => self.session.items.iter().collect(),
            items => items.iter().map(|place| self.session.item(*place)).collect(),
        }
    }

    /// The labels of the items.
    pub(super) fn labels(&self) -> Vec<String> {
        self.labels.clone()
    }

    /// Labels for the items. They carry a code of the response, so that a reply about another one is not taken for this one's,
    /// and no response knows its own.
    fn labelled(&self) -> Vec<String> {
        let nonce = self.nonce(0);
        let code = nonce.get(..LABEL_CODE).unwrap_or(&nonce);
        (1..=self.items().len()).map(|at| format!("item_{at}_{code}")).collect()
    }

    /// What marks the verdicts of an attempt.
    fn nonce(&self, attempt: u32) -> String {
        let mut shown = self.session.view.candidates[self.call.candidate].hash.to_vec();
        self.items()
            .iter()
            .for_each(|item| shown.extend(*blake3::hash(item.criterion.as_bytes()).as_bytes()));
        self.session.view.delimiters.nonce(&shown, attempt + 1)
    }

    /// The text of the user's message.
    pub(super) fn user_message(&self, format: AnswerFormat, attempt: u32) -> Result<String, Reason> {
        let (view, params) = (&self.session.view, &self.session.reward.params);
        let fence = view.delimiters.fence();
        // A criterion of several lines is indented, so that none of them looks like another item.
        let shown = |text: &str| sanitize(text.trim(), fence, MAX_CRITERION).replace('\n', "\n  ");
        let items: Vec<minijinja::Value> = (self.items().iter().zip(self.labels()))
            .map(|(item, label)| {
                let weighted = match self.is_implicit() {
                    true => format!(" (weight {})", item.weight),
                    false => String::new(),
                };
                let choices = item
                    .choices
                    .as_ref()
                    .filter(|_| !self.is_implicit() && !item.answers().eq(crate::rubric::YES_NO));
                let choices: Option<Vec<String>> =
                    choices.map(|all| all.iter().map(|choice| shown(choice)).collect());
                context! { label, criterion => shown(&item.criterion) + &weighted, choices }
            })
            .collect();
        let reference =
            view.reference.as_deref().filter(|_| params.show_reference && view.reference_index.is_none());
        let values = context! {
            items, fence, query => Arc::clone(&view.query),
            reference => reference.map(|reference| sanitize(reference, fence, params.longest).into_owned()),
            response => Arc::clone(&view.candidates[self.call.candidate].shown),
            implicit => self.is_implicit(), applies => self.may_not_apply(),
            graded => self.items().iter().any(|item| !item.answers().eq(crate::rubric::YES_NO)),
            form => format.as_str(), nonce => self.nonce(attempt),
        };
        template::render(prompts(), "rubric", &values).map_err(|error| {
            Reason::new(Code::TemplateFailed, format!("The prompt cannot be filled in: {error}."))
        })
    }

    /// The JSON schema that the endpoint holds the reply to: of every item a reason, and then its verdict.
    fn schema(&self) -> Value {
        let object = |properties: Map<String, Value>| {
            let required: Vec<&String> = properties.keys().collect();
            json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
        };
        let graded = |verdict: Value| {
            let reason = ("reason".to_owned(), json!({ "type": "string" }));
            object([reason, ("verdict".to_owned(), verdict)].into_iter().collect())
        };
        let schema = if self.is_implicit() {
            graded(json!({ "type": "integer", "minimum": 1, "maximum": 10 }))
        } else {
            let item = |(item, label): (&&Item, String)| {
                let answers: Vec<&str> =
                    item.answers().chain(self.may_not_apply().then_some(NOT_APPLICABLE)).collect();
                (label, graded(json!({ "type": "string", "enum": answers })))
            };
            object(self.items().iter().zip(self.labels()).map(item).collect())
        };
        json!({ "type": "json_schema", "json_schema": { "name": "verdicts", "schema": schema, "strict": true } })
    }

    /// About how many tokens the judge reads, and how many it writes.
    pub(super) fn estimate(&self) -> (u64, u64) {
        let format = self.formats.first().copied().unwrap_or(AnswerFormat::Tag);
        let read = self.request(format, 0).map_or(0, |request| request.body.len().div_ceil(4));
        let written = (self.judge.config.kind.protocol().completion_tokens)(format);
        let more = self.call.items.len().saturating_sub(1) as u64 * TOKENS_AN_ITEM;
        (read as u64, written + more)
    }
}

impl Query for RubricCall<'_> {
    fn kind(&self) -> QuestionKind {
        // One number is asked for as everywhere; how several verdicts are best had is another question than one.
        if self.is_implicit() { QuestionKind::Score } else { QuestionKind::Items }
    }

    fn formats(&self) -> &[AnswerFormat] {
        &self.formats
    }

    fn request(&self, format: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
        let text = self.user_message(format, attempt)?;
        let messages = vec![("system", SYSTEM.trim_end()), ("user", text.as_str())];
        let held = (format == AnswerFormat::Json).then(|| self.schema());
        Ok(chat_request(self.judge, messages, attempt, held, format == AnswerFormat::Logprobs))
    }

    fn read(&self, format: AnswerFormat, attempt: u32, body: &[u8]) -> Result<Verdict, Reason> {
        let reply = Reply::read(body)?;
        if self.is_implicit() {
            let location = match format {
                AnswerFormat::Logprobs => AnswerLocation::Whole { logprobs: true },
                AnswerFormat::Json => AnswerLocation::Json { field: "verdict".to_owned(), echo: None },
                AnswerFormat::Tag => {
                    let nonce = self.nonce(attempt);
                    AnswerLocation::Between {
                        open: format!("<verdict {nonce}>"),
                        close: format!("</verdict {nonce}>"),
                    }
                }
            };
            return AnswerParser { expected: ExpectedAnswer::Score { min: 1.0, max: 10.0 }, location }
                .read(&reply);
        }
        let items = self
            .labels()
            .into_iter()
            .zip(self.items())
            .map(|(label, item)| (label, item.answers().collect()));
        let (items, may_not_apply) = (items.collect(), self.may_not_apply());
        ItemsParser { items, may_not_apply, nonce: self.nonce(attempt) }.read(format, &reply)
    }

    fn is_in_format(&self, format: AnswerFormat, body: &[u8]) -> bool {
        format != AnswerFormat::Logprobs || !reply::lacks_logprobs(body)
    }

    fn usage(&self, body: &[u8]) -> Option<Usage> {
        reply::usage(body)
    }
}

impl RubricSession {
    /// The key of the verdict about an item and a response, whatever call it comes from.
    pub(super) fn item_key(&self, judge: &ResolvedJudge, candidate: usize, place: usize) -> [u8; 32] {
        let (view, params, item) = (&self.view, &self.reward.params, self.item(place));
        let reference =
            view.reference.as_deref().filter(|_| params.show_reference && view.reference_index.is_none());
        let applies = u8::from(self.grader().is_some_and(|grader| grader.may_not_apply));
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        part(ITEM_KEY);
        part(prompts_hash());
        part(judge.identity.as_bytes());
        part(view.query.as_bytes());
        part(&[u8::from(reference.is_some()), applies]);
        part(reference.unwrap_or("").as_bytes());
        part(&view.candidates[candidate].hash);
        part(&params.longest.to_le_bytes());
        part(item.criterion.as_bytes());
        item.answers().for_each(|answer| part(answer.as_bytes()));
        *hasher.finalize().as_bytes()
    }

    /// What is stored of a verdict about an item.
    pub(super) fn stored(answer: &ItemAnswer, call: Option<[u8; 32]>) -> Vec<u8> {
        let verdict = match answer.verdict {
            ItemVerdict::Answer(_) => Some(&answer.said),
            ItemVerdict::NotApplicable | ItemVerdict::Missing => None,
        };
        let call = call.map(|key| blake3::Hash::from_bytes(key).to_hex().to_string());
        json!({ "verdict": verdict, "reason": answer.reason, "call": call }).to_string().into_bytes()
    }

    /// The verdict about an item that was stored.
    pub(super) fn restored(&self, place: usize, body: &[u8]) -> Option<ItemAnswer> {
        let stored = strict::read(std::str::from_utf8(body).ok()?).ok()?;
        let (verdict, said) = match &stored["verdict"] {
            Value::Null => (ItemVerdict::NotApplicable, NOT_APPLICABLE),
            Value::String(text) => (
                ItemVerdict::Answer(self.item(place).answers().position(|answer| answer == text)?),
                text.as_str(),
            ),
            _ => return None,
        };
        Some(ItemAnswer { verdict, said: said.to_owned(), reason: stored["reason"].as_str()?.to_owned() })
    }
}
