//! What is sent to an endpoint, and how is its reply read? One call about one case, in any form that the endpoint takes.

use super::case::{Case, Entry};
use super::question::{Answer, AnswerPlace, Question, Wording};
use super::read::Reading;
use super::reply::{self, Reply};
use super::verdict::{Form, Place, Usage, Verdict, Wanted};
use super::{asking::Mode, overlap, template};
use crate::reason::{Code, Reason};
use minijinja::{Environment, context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// What kind of endpoint a judge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// OpenAI-compatible chat completions: vLLM, SGLang, providers.
    Chat,
    /// A scalar reward model behind vLLM's `/classify`.
    Classify,
    /// A scalar reward model behind vLLM's `/pooling`.
    Pooling,
    /// A scalar reward model behind an embeddings endpoint, as SGLang serves it.
    Embeddings,
    /// No endpoint: the overlap of words with the reference, computed here.
    Overlap,
}

impl Endpoint {
    /// Whether it gives numbers and cannot be talked to.
    pub fn is_scalar(self) -> bool {
        matches!(self, Self::Classify | Self::Pooling | Self::Embeddings)
    }

    /// The fields of a request that are set here, so that nobody else can. A reply is read as a whole, so that no
    /// `stream` can be asked for.
    pub fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &[
                "model",
                "messages",
                "temperature",
                "max_tokens",
                "seed",
                "logprobs",
                "top_logprobs",
                "response_format",
                "stream",
            ],
            Self::Classify | Self::Pooling => &["model", "messages"],
            Self::Embeddings => &["model", "input"],
            Self::Overlap => &[],
        }
    }
}

/// How a judge speaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Voice {
    /// The kind of endpoint.
    pub endpoint: Endpoint,
    /// The model.
    pub model: String,
    /// The sampling temperature; left to the endpoint where nothing is said.
    pub temperature: Option<f64>,
    /// The most tokens of a reply; left out of the request where nothing is said.
    pub max_tokens: Option<u32>,
    /// The forms that may be asked for, best first.
    pub forms: Vec<Form>,
    /// Further fields of every request.
    pub extra: Map<String, Value>,
}

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
    /// The forms that it can be asked in, best first.
    fn forms(&self) -> &[Form];
    /// What is sent, in that form, on that attempt.
    fn request(&self, form: Form, attempt: u32) -> Result<Request, Reason>;
    /// What the reply to that says.
    fn read(&self, form: Form, attempt: u32, body: &[u8]) -> Result<Verdict, Reason>;
    /// The tokens that the endpoint says it took.
    fn usage(&self, body: &[u8]) -> Option<Usage>;
    /// The answer where no endpoint is needed.
    fn local(&self) -> Option<Result<Verdict, Reason>> {
        None
    }
}

/// One call: some entries of a case, in the order in which they are shown.
#[derive(Debug)]
pub struct Call<'c> {
    question: &'c Question,
    case: &'c Case,
    voice: &'c Voice,
    /// The entries, in the order in which they are shown.
    pub shown: &'c [usize],
    wanted: Wanted,
    forms: Vec<Form>,
}

#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

/// The most alternatives of a token that OpenAI's interface gives.
const ALTERNATIVES: u32 = 20;
/// What every judge is told first.
const SYSTEM: &str = include_str!("../../prompts/system.j2");
const USER: &str = include_str!("../../prompts/user.j2");

fn prompts() -> &'static Environment<'static> {
    static PROMPTS: OnceLock<Environment<'static>> = OnceLock::new();
    PROMPTS.get_or_init(|| {
        let mut environment = template::environment();
        // A test renders every branch of the prompt, so it is a template.
        let _ = environment.add_template("user", USER);
        environment
    })
}

impl<'c> Call<'c> {
    /// The call that shows those entries to that judge.
    pub fn new(question: &'c Question, case: &'c Case, voice: &'c Voice, shown: &'c [usize]) -> Self {
        let labels = case.labels(shown);
        let wanted = match (&question.wording, question.asking.mode) {
            (Wording::Principles { scale, .. }, Mode::Pointwise) => {
                Wanted::Score { min: 0.0, max: f64::from(*scale) }
            }
            (_, Mode::Pointwise) => Wanted::Score { min: question.range.min, max: question.range.max },
            (Wording::Own { answer: Answer { labels: Some((first, second, tie)), .. }, .. }, _) => {
                Wanted::Pair { labels: [first.clone(), second.clone()], tie: tie.clone() }
            }
            (_, Mode::Pairwise) if labels.len() == 2 => Wanted::Pair {
                labels: [labels[0].clone(), labels[1].clone()],
                tie: question.asking.ties.then(|| case.fences.tie()),
            },
            _ => Wanted::Ranking { labels },
        };
        let ranking = matches!(wanted, Wanted::Ranking { .. });
        let forms = match &question.wording {
            Wording::Own { answer, .. } => vec![match answer.place {
                AnswerPlace::Label { logprobs: true, .. } => Form::Logprobs,
                _ => Form::Tag,
            }],
            Wording::Scalar { .. } => vec![Form::Tag],
            Wording::Principles { .. } => {
                voice.forms.iter().copied().filter(|form| !(ranking && *form == Form::Logprobs)).collect()
            }
        };
        Self { question, case, voice, shown, wanted, forms }
    }

    fn entry(&self, at: usize) -> &'c Entry {
        &self.case.entries[self.shown[at]]
    }

    fn nonce(&self, attempt: u32) -> String {
        let shown: Vec<u8> = self.shown.iter().flat_map(|at| self.case.entries[*at].hash).collect();
        self.case.fences.nonce(&shown, attempt + 1)
    }

    /// The reference as the judge sees it; not where it is one of the responses.
    fn reference(&self) -> Option<String> {
        let reference = self.case.reference.as_deref()?;
        let shown = self.question.asking.show_reference && self.case.rival.is_none();
        shown.then(|| {
            let longest = self.question.asking.longest;
            super::fence::neutral(reference, self.case.fences.fence(), longest).into_owned()
        })
    }

    /// The text of the user's message.
    pub fn text(&self, form: Form, attempt: u32) -> Result<String, Reason> {
        let labels = self.case.labels(self.shown);
        let marks = match &self.question.wording {
            Wording::Own { template, .. } => Some(&template.marks),
            _ => None,
        };
        let marked = |text: &Arc<str>| match marks.map(|marks| marks.broken(text)) {
            Some(Cow::Owned(broken)) => Arc::from(broken),
            _ => Arc::clone(text),
        };
        let responses: Vec<minijinja::Value> = (labels.iter().enumerate())
            .map(|(at, label)| context! { label, text => marked(&self.entry(at).shown) })
            .collect();
        let fence = self.case.fences.fence();
        let rendered = match &self.question.wording {
            Wording::Principles { principles, scale } => {
                let (shape, tie) = match &self.wanted {
                    Wanted::Score { .. } => ("score", None),
                    Wanted::Pair { tie, .. } => ("pair", tie.clone()),
                    Wanted::Ranking { .. } => ("ranking", None),
                };
                let nonce = self.nonce(attempt);
                let form = form.as_str();
                let values = context! {
                    principles, scale, fence, responses, shape, tie, nonce, form,
                    query => Arc::clone(&self.case.query), reference => self.reference(),
                };
                template::render(prompts(), "user", &values)
            }
            Wording::Own { template, .. } => {
                let member = self.shown.first().and_then(|at| self.case.entries[*at].member);
                let values = member.and_then(|member| self.case.values.get(member));
                let marks = &template.marks;
                let reference = self.reference().filter(|_| template.uses("reference"));
                let named = context! {
                    fence, prompt => marked(&self.case.query),
                    reference => reference.map(|reference| marks.broken(&reference).into_owned()),
                };
                let named = match values {
                    None => named,
                    Some(values) => context! {
                        id => marks.broken(&super::fence::neutral(&values.id, fence, 256)),
                        group => marks.broken(&super::fence::neutral(&values.group, fence, 256)),
                        messages => template::value(&values.messages, marks),
                        extra => template::value(&values.extra, marks),
                        ..named
                    },
                };
                template.render(&match self.question.asking.mode {
                    Mode::Pointwise => context! { response => marked(&self.entry(0).shown), ..named },
                    _ => context! { responses, ..named },
                })
            }
            Wording::Scalar { .. } => Ok(String::new()),
        };
        rendered.map_err(|error| {
            Reason::new(Code::TemplateFailed, format!("The prompt cannot be filled in: {error}."))
        })
    }

    fn chat(&self, form: Form, attempt: u32) -> Result<Request, Reason> {
        let system = match &self.question.wording {
            Wording::Own { system, .. } => system.as_deref(),
            _ => Some(SYSTEM.trim_end()),
        };
        let text = self.text(form, attempt)?;
        let mut messages: Vec<Message<'_>> =
            system.into_iter().map(|content| Message { role: "system", content }).collect();
        messages.push(Message { role: "user", content: &text });
        let probabilities = form == Form::Logprobs;
        let body = Chat {
            model: &self.voice.model,
            messages,
            temperature: self.voice.temperature,
            max_tokens: self.voice.max_tokens,
            // The same question a second time must not get the same answer from a cache.
            seed: (attempt > 0).then_some(attempt),
            logprobs: probabilities.then_some(true),
            top_logprobs: probabilities.then_some(ALTERNATIVES),
            response_format: (form == Form::Json).then(|| self.schema()),
            extra: &self.voice.extra,
        };
        Ok(Request { path: "/chat/completions", body: encode(&body) })
    }

    /// What the endpoint shall hold the answer to.
    fn schema(&self) -> Value {
        let verdict = match &self.wanted {
            Wanted::Score { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Wanted::Pair { labels, tie } => {
                json!({ "type": "string", "enum": labels.iter().chain(tie).collect::<Vec<_>>() })
            }
            Wanted::Ranking { labels } => json!({
                "type": "array", "items": { "type": "string", "enum": labels },
                "minItems": labels.len(), "maxItems": labels.len(),
            }),
        };
        json!({ "type": "json_schema", "json_schema": { "name": "verdict", "strict": true, "schema": {
            "type": "object", "properties": { "reason": { "type": "string" }, "verdict": verdict },
            "required": ["reason", "verdict"], "additionalProperties": false,
        } } })
    }

    /// What a scalar model is sent at a path.
    fn scalar(&self, path: &'static str) -> Request {
        let response = &self.entry(0).spoken;
        let (key, content) = match self.voice.endpoint {
            Endpoint::Embeddings => ("input", json!(format!("{}\n\n{response}", self.case.query))),
            _ => (
                "messages",
                json!([
                    { "role": "user", "content": &*self.case.query },
                    { "role": "assistant", "content": response },
                ]),
            ),
        };
        let mut body = self.voice.extra.clone();
        body.insert("model".to_owned(), json!(self.voice.model));
        body.insert(key.to_owned(), content);
        Request { path, body: encode(&body) }
    }

    /// About how many tokens the judge reads, and how many it writes.
    pub fn estimate(&self) -> (u64, u64) {
        let form = self.forms.first().copied().unwrap_or(Form::Tag);
        let read = self.request(form, 0).map_or(0, |request| request.body.len().div_ceil(4));
        // What judges write in each form: a letter, a sentence or two, a few sentences.
        let written = match (self.voice.endpoint, form) {
            (Endpoint::Chat, Form::Logprobs) => 2,
            (Endpoint::Chat, Form::Json) => 60,
            (Endpoint::Chat, Form::Tag) => 200,
            _ => 0,
        };
        (read as u64, written)
    }

    fn place(&self, form: Form, attempt: u32) -> Place {
        if let Wording::Own { answer, .. } = &self.question.wording {
            let id = || {
                let member = self.entry(0).member.and_then(|member| self.case.values.get(member));
                member.map_or_else(String::new, |values| values.id.clone())
            };
            return match &answer.place {
                AnswerPlace::Json(field) => {
                    Place::Json { field: field.clone(), echo: answer.echo.clone().map(|field| (field, id())) }
                }
                AnswerPlace::Tag(tag) => {
                    Place::Between { open: format!("<{tag}>"), close: format!("</{tag}>") }
                }
                AnswerPlace::Label { brackets: true, .. } => Place::Brackets,
                AnswerPlace::Label { logprobs, .. } => Place::Whole { logprobs: *logprobs },
            };
        }
        match form {
            Form::Logprobs => Place::Whole { logprobs: true },
            Form::Json => Place::Json { field: "verdict".to_owned(), echo: None },
            Form::Tag => {
                let nonce = self.nonce(attempt);
                Place::Between { open: format!("<verdict {nonce}>"), close: format!("</verdict {nonce}>") }
            }
        }
    }

    fn read_scalar(&self, sigmoid: bool, body: &[u8]) -> Result<Verdict, Reason> {
        let scalars = reply::scalars(body)?;
        let [value] = scalars.as_slice() else { return Err(Code::JudgeArity.into()) };
        let value = if sigmoid { 1.0 / (1.0 + (-value).exp()) } else { *value };
        match value >= self.question.range.min && value <= self.question.range.max {
            true => Ok(Verdict::Score(value)),
            false => Err(Code::JudgeRange.into()),
        }
    }
}

impl Query for Call<'_> {
    fn forms(&self) -> &[Form] {
        &self.forms
    }

    fn request(&self, form: Form, attempt: u32) -> Result<Request, Reason> {
        match self.voice.endpoint {
            Endpoint::Chat => self.chat(form, attempt),
            Endpoint::Classify => Ok(self.scalar("/classify")),
            Endpoint::Pooling => Ok(self.scalar("/pooling")),
            Endpoint::Embeddings => Ok(self.scalar("/embeddings")),
            Endpoint::Overlap => {
                Err(Reason::new(Code::JudgeClientError, "The embedded judge has no endpoint to be asked at."))
            }
        }
    }

    fn read(&self, form: Form, attempt: u32, body: &[u8]) -> Result<Verdict, Reason> {
        if let Wording::Scalar { sigmoid } = self.question.wording {
            return self.read_scalar(sigmoid, body);
        }
        let reply = Reply::read(body)?;
        Reading { wanted: self.wanted.clone(), place: self.place(form, attempt) }.read(&reply)
    }

    fn usage(&self, body: &[u8]) -> Option<Usage> {
        reply::usage(body)
    }

    fn local(&self) -> Option<Result<Verdict, Reason>> {
        if self.voice.endpoint != Endpoint::Overlap {
            return None;
        }
        let shown: Vec<&str> = (0..self.shown.len()).map(|at| self.entry(at).spoken.as_str()).collect();
        Some(overlap::judge(&self.wanted, &shown, self.case.reference.as_deref()))
    }
}

/// Numbers, texts and maps of them always have a JSON form.
fn encode(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_else(|_| Vec::new())
}
