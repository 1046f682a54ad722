//! Reward `judge`: asks with a prompt template of the recipe and reads the answer strictly.

use super::judged_reward::{CustomAnswer, CustomAnswerLocation, JudgedReward, PromptSource};
use super::params::{JudgeParams, Mode};
use crate::judge::answer::ExpectedAnswer;
use crate::judge::prompt::template::Template;
use crate::reward::{ParamError, Range, ResourceCache, Reward};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A judge answers a prompt of your own, and the answer is read from a JSON field, a tag or a label.
///
/// ## What it scores
/// In mode `pointwise`, the number that the judge gives, which must lie in the range that `answer` declares. In mode
/// `pairwise`, the label of the better one of two, or one of `labels` that say by how much it is better, and in mode `listwise` a ranking; the verdicts of a group become numbers
/// by `aggregate`. Anything but exactly one answer in the agreed place is asked for again, and in the end is missing.
/// An answer in JSON is held to a schema where the endpoint can do that: `reason`, a text, and then the answer in its
/// range or with its labels.
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
pub struct CustomPrompt {
    /// The prompt: a file below the folder of the recipe or at an absolute path, or, where it has braces, the template itself.
    pub prompt: String,
    /// The system message.
    pub system: Option<String>,
    /// How the answer is read.
    pub answer: Option<AnswerConfig>,
    /// What all judged rewards share.
    #[serde(flatten)]
    pub params: JudgeParams,
}

/// How the answer is read: exactly one of `json`, `tag` and `label` says where it stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerConfig {
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
    /// More than two labels, in mode pairwise and in place of `first`, `second` and `tie`. Each has a number from -1 to 1: by how much it
    /// says that the first is better; 0 is a tie, and below 0 the second is better.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, f64>,
    /// A JSON field in which the judge must repeat the rollout's id.
    pub echo: Option<String>,
    /// The JSON field in which the judge writes its reasons before the answer, where the endpoint holds it to a schema;
    /// `reason` where nothing is said.
    pub reason: Option<String>,
}

/// How a label is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// The reply is the label and nothing else.
    Whole,
    /// The reply is the label, and its probabilities count.
    Logprobs,
    /// The reply holds the label in double brackets, and no other one.
    Bracketed,
}

impl Reward<JudgedReward> for CustomPrompt {
    const NAME: &'static str = "judge";

    fn build(self, cache: &mut ResourceCache) -> Result<JudgedReward, Vec<ParamError>> {
        let mut found = Vec::new();
        let mut take = |refusals: Vec<ParamError>| found.extend(refusals);
        let method = self.params.check().map_err(&mut take).ok();
        let answer = read_answer(self.answer.as_ref(), self.params.mode).map_err(&mut take).ok();
        let template = Template::load(&self.prompt, self.params.mode == Mode::Pointwise, cache);
        let template = template.map_err(|refusal| take(vec![refusal])).ok();
        let (Some(method), Some(answer), Some(template)) = (method, answer, template) else {
            return Err(found);
        };
        let range = if self.params.mode == Mode::Pointwise { answer.range } else { Range::new(-1.0, 1.0) };
        let prompt = PromptSource::Custom { template: Box::new(template), system: self.system, answer };
        Ok(JudgedReward::new(self.params, method, prompt, range))
    }
}

fn read_answer(written: Option<&AnswerConfig>, mode: Mode) -> Result<CustomAnswer, Vec<ParamError>> {
    let refuse = |message: &str| Err(vec![ParamError::new("answer", message)]);
    let Some(written) = written else {
        return refuse("is missing: write it like { json: score, min: 0, max: 1 }");
    };
    let location = match (&written.json, &written.tag, written.label) {
        (Some(field), None, None) if !field.is_empty() => CustomAnswerLocation::Json(field.clone()),
        (None, Some(tag), None) if plaudit_text::is_tag_name(tag) => CustomAnswerLocation::Tag(tag.clone()),
        (None, None, Some(label)) => CustomAnswerLocation::Label {
            brackets: label == Label::Bracketed,
            logprobs: label == Label::Logprobs,
        },
        _ => return refuse("must name exactly one of json, tag and label"),
    };
    if mode == Mode::Listwise && written.label == Some(Label::Logprobs) {
        return refuse(
            "has label: logprobs for one label, and mode listwise asks for a ranking: write label: whole or json",
        );
    }
    let range = match (mode, written.min, written.max) {
        (Mode::Pointwise, Some(min), Some(max)) if min < max => Range::new(min, max),
        (Mode::Pointwise, _, _) => return refuse("must declare min and max, with min below max"),
        (_, None, None) => Range::new(-1.0, 1.0),
        _ => return refuse("has a range only in mode pointwise: is mode: pointwise missing?"),
    };
    if written.echo.is_some() && !matches!(location, CustomAnswerLocation::Json(_)) {
        return refuse("can be checked by echo only in JSON");
    }
    if written.reason.is_some() && !matches!(location, CustomAnswerLocation::Json(_)) {
        return refuse("has a field for reasons only in JSON");
    }
    let mut reason = written.reason.clone().or_else(|| Some("reason".to_owned()));
    if reason == written.json || reason == written.echo {
        if written.reason.is_some() {
            return refuse("must have its reasons in a field of their own");
        }
        reason = None;
    }
    let pair = match (&written.first, &written.second) {
        (None, None) if written.tie.is_none() && written.labels.is_empty() => None,
        (None, None) if written.tie.is_none() => {
            let (labels, has) =
                (&written.labels, |holds: fn(f64) -> bool| written.labels.values().any(|by| holds(*by)));
            if mode != Mode::Pairwise || written.label == Some(Label::Logprobs) {
                return refuse("has labels with numbers only in mode pairwise, and not with label: logprobs");
            }
            if !labels.values().all(|by| (-1.0..=1.0).contains(by))
                || !has(|by| by > 0.0)
                || !has(|by| by < 0.0)
            {
                return refuse(
                    "must give every one of its labels a number from -1 to 1, and one above and one below 0",
                );
            }
            Some(ExpectedAnswer::Graded { labels: labels.clone() })
        }
        (Some(first), Some(second))
            if mode == Mode::Pairwise && first != second && written.labels.is_empty() =>
        {
            let labels = [first.clone(), second.clone()];
            Some(ExpectedAnswer::Pair { labels, tie: written.tie.clone() })
        }
        _ => {
            return refuse(
                "has the labels first and second, and tie where wanted, only in mode pairwise and not beside labels",
            );
        }
    };
    Ok(CustomAnswer { location, range, pair, echo: written.echo.clone(), reason })
}
