//! One judge call: the candidates of a group that it shows, the answer that is expected, and the formats to ask in.

use super::answer::{AnswerFormat, AnswerLocation, ExpectedAnswer, QuestionKind, Usage, Verdict, reply};
use super::client::{Query, Request};
use super::config::{FormatConfig, ResolvedJudge};
use super::group_view::{Candidate, GroupView};
use super::rewards::judged_reward::{CustomAnswer, CustomAnswerLocation, JudgedReward, PromptSource};
use super::rewards::params::Mode;
use crate::reason::Reason;

/// One call: some candidates of a group, in the order in which they are shown.
#[derive(Debug)]
pub struct JudgeCall<'c> {
    pub(super) reward: &'c JudgedReward,
    pub(super) view: &'c GroupView,
    pub(super) judge: &'c ResolvedJudge,
    /// The candidates, in the order in which they are shown.
    pub shown: &'c [usize],
    pub(super) expected: ExpectedAnswer,
    formats: Vec<AnswerFormat>,
}

impl<'c> JudgeCall<'c> {
    /// The call that shows those candidates to that judge.
    pub fn new(
        reward: &'c JudgedReward,
        view: &'c GroupView,
        judge: &'c ResolvedJudge,
        shown: &'c [usize],
    ) -> Self {
        let labels = view.labels(shown);
        let expected = match (&reward.prompt, reward.params.mode) {
            (PromptSource::Principles { scale, .. }, Mode::Pointwise) => {
                ExpectedAnswer::Score { min: 0.0, max: f64::from(*scale) }
            }
            (_, Mode::Pointwise) => ExpectedAnswer::Score { min: reward.range.min, max: reward.range.max },
            (PromptSource::Custom { answer: CustomAnswer { pair: Some(pair), .. }, .. }, _) => pair.clone(),
            (_, Mode::Pairwise) if labels.len() == 2 => ExpectedAnswer::Pair {
                labels: [labels[0].clone(), labels[1].clone()],
                tie: reward.params.ties.then(|| view.delimiters.tie()),
            },
            _ => ExpectedAnswer::Ranking { labels },
        };
        let ranks = matches!(expected, ExpectedAnswer::Ranking { .. });
        let formats = match &reward.prompt {
            PromptSource::Custom { answer, .. } => match (&answer.location, judge.config.answer_format) {
                (CustomAnswerLocation::Label { logprobs: true, .. }, _) => vec![AnswerFormat::Logprobs],
                // The same prompt with a schema where the endpoint takes one, and without.
                (CustomAnswerLocation::Json(_), FormatConfig::Auto) => {
                    vec![AnswerFormat::Json, AnswerFormat::Tag]
                }
                (CustomAnswerLocation::Json(_), FormatConfig::Json) => vec![AnswerFormat::Json],
                _ => vec![AnswerFormat::Tag],
            },
            PromptSource::Rubric(_) | PromptSource::Scalar { .. } => vec![AnswerFormat::Tag],
            PromptSource::Principles { .. } => {
                let fits = |format: &AnswerFormat| !(ranks && *format == AnswerFormat::Logprobs);
                judge.formats().iter().copied().filter(fits).collect()
            }
        };
        Self { reward, view, judge, shown, expected, formats }
    }

    /// The candidate that is shown at a place.
    pub(super) fn candidate(&self, at: usize) -> &'c Candidate {
        &self.view.candidates[self.shown[at]]
    }

    /// What marks the verdict of an attempt.
    pub(super) fn nonce(&self, attempt: u32) -> String {
        let shown: Vec<u8> = self.shown.iter().flat_map(|at| self.view.candidates[*at].hash).collect();
        self.view.delimiters.nonce(&shown, attempt + 1)
    }

    /// Where the verdict stands in the reply to an attempt.
    pub(super) fn location(&self, format: AnswerFormat, attempt: u32) -> AnswerLocation {
        if let PromptSource::Custom { answer, .. } = &self.reward.prompt {
            let id = || {
                let member = self.candidate(0).member.and_then(|member| self.view.values.get(member));
                member.map_or_else(String::new, |values| values.id.clone())
            };
            return match &answer.location {
                CustomAnswerLocation::Json(field) => AnswerLocation::Json {
                    field: field.clone(),
                    echo: answer.echo.clone().map(|field| (field, id())),
                },
                CustomAnswerLocation::Tag(tag) => {
                    AnswerLocation::Between { open: format!("<{tag}>"), close: format!("</{tag}>") }
                }
                CustomAnswerLocation::Label { brackets: true, .. } => AnswerLocation::Brackets,
                CustomAnswerLocation::Label { logprobs, .. } => AnswerLocation::Whole { logprobs: *logprobs },
            };
        }
        match format {
            AnswerFormat::Logprobs => AnswerLocation::Whole { logprobs: true },
            AnswerFormat::Json => AnswerLocation::Json { field: "verdict".to_owned(), echo: None },
            AnswerFormat::Tag => {
                let nonce = self.nonce(attempt);
                let (open, close) = (format!("<verdict {nonce}>"), format!("</verdict {nonce}>"));
                AnswerLocation::Between { open, close }
            }
        }
    }

    /// The names of the fields in the JSON object that the endpoint holds the answer to, in the order in which the judge
    /// writes them: reasons come before the verdict, which is the last.
    pub(super) fn json_fields(&self) -> Vec<&str> {
        let PromptSource::Custom { answer, .. } = &self.reward.prompt else {
            return vec!["reason", "verdict"];
        };
        let CustomAnswerLocation::Json(field) = &answer.location else { return Vec::new() };
        let mut fields: Vec<&str> =
            answer.reason.as_deref().into_iter().chain(answer.echo.as_deref()).collect();
        fields.push(field);
        fields
    }

    /// Whether a score may have a fraction.
    pub(super) fn takes_fractions(&self) -> bool {
        matches!(self.reward.prompt, PromptSource::Custom { .. })
    }

    /// About how many tokens the judge reads, and how many it writes.
    pub fn estimate(&self) -> (u64, u64) {
        let format = self.formats.first().copied().unwrap_or(AnswerFormat::Tag);
        let read = self.request(format, 0).map_or(0, |request| request.body.len().div_ceil(4));
        (read as u64, (self.judge.config.kind.protocol().completion_tokens)(format))
    }
}

impl Query for JudgeCall<'_> {
    fn kind(&self) -> QuestionKind {
        match self.reward.prompt {
            PromptSource::Custom { .. } => QuestionKind::Free,
            _ => self.expected.kind(),
        }
    }

    fn formats(&self) -> &[AnswerFormat] {
        &self.formats
    }

    fn request(&self, format: AnswerFormat, attempt: u32) -> Result<Request, Reason> {
        (self.judge.config.kind.protocol().request)(self, format, attempt)
    }

    fn read(&self, format: AnswerFormat, attempt: u32, body: &[u8]) -> Result<Verdict, Reason> {
        (self.judge.config.kind.protocol().read)(self, format, attempt, body)
    }

    fn earlier_request(&self) -> Option<Request> {
        self.judge.config.kind.protocol().earlier_request.map(|request| request(self))
    }

    fn is_in_format(&self, format: AnswerFormat, body: &[u8]) -> bool {
        format != AnswerFormat::Logprobs || !reply::lacks_logprobs(body)
    }

    fn usage(&self, body: &[u8]) -> Option<Usage> {
        reply::usage(body)
    }

    fn local(&self) -> Option<Result<Verdict, Reason>> {
        self.judge.config.kind.protocol().local.map(|verdict| verdict(self))
    }
}
