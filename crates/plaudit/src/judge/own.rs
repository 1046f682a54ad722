//! What does a judge say to a prompt of one's own? The reward that asks with a template and reads the answer strictly.

use super::Asks;
use super::asking::{Asking, Mode};
use super::question::{Answer, AnswerPlace, Question, Wording};
use super::template::Template;
use crate::reward::{ParamError, Range, Registered};
use crate::tokenizer::ResourceCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A judge answers a prompt of your own, and the answer is read from a JSON field, a tag or a label.
///
/// ## What it scores
/// In mode `pointwise`, the number that the judge gives, which must lie in the range that `answer` declares. In mode
/// `pairwise`, the label of the better one of two, and in mode `listwise` a ranking; the verdicts of a group become numbers
/// by `aggregate`. Anything but exactly one answer in the agreed place is asked for again, and in the end is missing.
///
/// ## When to use it
/// When you have a prompt that works with your judge, or need fields of `extra` in it. The template is Jinja; its
/// variables are `id`, `group`, `prompt`, `messages`, `response` (pointwise), `responses` (a list of `label` and `text`),
/// `reference`, `extra` and `fence`, an unguessable word to put around untrusted text. A misspelt one is found when the
/// recipe is loaded.
///
/// ## How it can be gamed
/// By text that speaks to the judge: put `fence` around responses, and ask for the answer in JSON or a label. Responses
/// are made harmless before they are put in, and where they repeat tags, words in square brackets or headings of the
/// template, those are broken; but what the judge believes is up to your prompt.
///
/// ## Example
/// ```yaml
/// style: { reward: judge, mode: pointwise, prompt: "Rate the style of this text from 0 to 1.\n<text {{ fence }}>\n{{ response }}\n</text {{ fence }}>\nAnswer with JSON like {\"score\": 0.5}.", answer: { json: score, min: 0, max: 1 } }
/// ```
///
/// ## References
/// Zheng et al., Judging LLM-as-a-judge (arXiv 2306.05685).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Judge {
    /// The prompt: a file below the folder of the recipe or at an absolute path, or, where it has braces, the template itself.
    pub prompt: String,
    /// The system message.
    pub system: Option<String>,
    /// How the answer is read.
    pub answer: Option<WrittenAnswer>,
    /// What all judged rewards share.
    #[serde(flatten)]
    pub asking: Asking,
}

/// How the answer is read: exactly one of `json`, `tag` and `label` says where it stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WrittenAnswer {
    /// The field of a JSON object that holds it.
    pub json: Option<String>,
    /// The tag that holds it, such as `score` for `<score>7</score>`.
    pub tag: Option<String>,
    /// Whether the whole reply is the label or the number; `bracketed` for `[[A]]`.
    pub label: Option<Label>,
    /// The smallest score.
    pub min: Option<f64>,
    /// The largest score.
    pub max: Option<f64>,
    /// The label that says that the first is better, in mode pairwise; by default the first response's own.
    pub first: Option<String>,
    /// The label that says that the second is better.
    pub second: Option<String>,
    /// The label of a tie; without it, there are none.
    pub tie: Option<String>,
    /// A JSON field in which the judge must repeat the rollout's id.
    pub echo: Option<String>,
}

/// How a label is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// The reply is the label and nothing else.
    Whole,
    /// The reply is the label, and its probabilities count.
    Logprobs,
    /// The reply holds the label once, in double brackets.
    Bracketed,
}

impl Registered for Judge {
    const NAME: &'static str = "judge";
}

impl Asks for Judge {
    fn build(self, cache: &mut ResourceCache) -> Result<Question, Vec<ParamError>> {
        let mut found = Vec::new();
        let mut take = |refusals: Vec<ParamError>| found.extend(refusals);
        let method = self.asking.check().map_err(&mut take).ok();
        let answer = read_answer(self.answer.as_ref(), self.asking.mode).map_err(&mut take).ok();
        let template = Template::load(&self.prompt, self.asking.mode == Mode::Pointwise, cache);
        let template = template.map_err(|refusal| take(vec![refusal])).ok();
        let (Some(method), Some(answer), Some(template)) = (method, answer, template) else {
            return Err(found);
        };
        let range = if self.asking.mode == Mode::Pointwise { answer.range } else { Range::new(-1.0, 1.0) };
        let wording = Wording::Own { template: Box::new(template), system: self.system, answer };
        Ok(Question::new(self.asking, method, wording, range))
    }
}

fn read_answer(written: Option<&WrittenAnswer>, mode: Mode) -> Result<Answer, Vec<ParamError>> {
    let refuse = |message: &str| Err(vec![ParamError::new("answer", message)]);
    let Some(written) = written else {
        return refuse("is missing: write it like { json: score, min: 0, max: 1 }");
    };
    let place = match (&written.json, &written.tag, written.label) {
        (Some(field), None, None) if !field.is_empty() => AnswerPlace::Json(field.clone()),
        (None, Some(tag), None) if crate::text::tags::is_tag_name(tag) => AnswerPlace::Tag(tag.clone()),
        (None, None, Some(label)) => {
            AnswerPlace::Label { brackets: label == Label::Bracketed, logprobs: label == Label::Logprobs }
        }
        _ => return refuse("must name exactly one of json, tag and label"),
    };
    let range = match (mode, written.min, written.max) {
        (Mode::Pointwise, Some(min), Some(max)) if min < max => Range::new(min, max),
        (Mode::Pointwise, _, _) => return refuse("must declare min and max, with min below max"),
        (_, None, None) => Range::new(-1.0, 1.0),
        _ => return refuse("has a range only in mode pointwise: is mode: pointwise missing?"),
    };
    if written.echo.is_some() && !matches!(place, AnswerPlace::Json(_)) {
        return refuse("can be checked by echo only in JSON");
    }
    let labels = match (&written.first, &written.second) {
        (None, None) if written.tie.is_none() => None,
        (Some(first), Some(second)) if mode == Mode::Pairwise && first != second => {
            Some((first.clone(), second.clone(), written.tie.clone()))
        }
        _ => return refuse("has the labels first and second, and tie where wanted, only in mode pairwise"),
    };
    Ok(Answer { place, range, labels, echo: written.echo.clone() })
}
