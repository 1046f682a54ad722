//! A judged reward once it is loaded: parameters, prompt, aggregation method and range.

use super::params::{JudgeParams, Mode};
use super::rubric::RubricGrader;
use crate::aggregate::Method;
use crate::aggregate::design::Schedule;
use crate::judge::MAX_SHOWN;
use crate::judge::answer::ExpectedAnswer;
use crate::judge::prompt::template::Template;
use crate::reward::{ParamError, Range};

/// A judged reward, ready to ask about groups.
#[derive(Debug)]
pub struct JudgedReward {
    /// What all judged rewards share.
    pub params: JudgeParams,
    /// How comparisons become numbers.
    pub method: Method,
    /// The prompt.
    pub prompt: PromptSource,
    /// The numbers that it can give.
    pub range: Range,
    /// What a scalar model is asked first, where one is.
    pub prior: Option<Box<JudgedReward>>,
}

/// Where the prompt of a judge comes from.
#[derive(Debug)]
pub enum PromptSource {
    /// By principles, with plaudit's own prompt.
    Principles {
        /// Each a sentence or a few.
        principles: Vec<String>,
        /// The best score in mode pointwise; the worst is 0.
        scale: u32,
    },
    /// With a prompt of the recipe's own.
    Custom {
        /// The prompt.
        template: Box<Template>,
        /// The system message.
        system: Option<String>,
        /// How the answer is read.
        answer: CustomAnswer,
    },
    /// By the items of a rubric, with plaudit's own prompt.
    Rubric(Box<RubricGrader>),
    /// No prompt: a model that gives a number for a prompt and a response.
    Scalar {
        /// Whether the number is put through the logistic function.
        sigmoid: bool,
    },
}

/// How the answer to a prompt of the recipe's own is read.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomAnswer {
    /// Where it stands.
    pub location: CustomAnswerLocation,
    /// The smallest and the largest score.
    pub range: Range,
    /// The labels of a pair, where the recipe has some.
    pub pair: Option<ExpectedAnswer>,
    /// A field that must repeat the rollout's id.
    pub echo: Option<String>,
    /// The JSON field for the judge's reasons, where the endpoint holds it to a schema.
    pub reason: Option<String>,
}

/// Where the answer to a prompt of the recipe's own stands.
#[derive(Debug, Clone, PartialEq)]
pub enum CustomAnswerLocation {
    /// In a field of a JSON object.
    Json(String),
    /// In a tag.
    Tag(String),
    /// The reply is the label, or has it in double brackets.
    Label {
        /// Whether it stands in double brackets.
        brackets: bool,
        /// Whether the probabilities of the label are used.
        logprobs: bool,
    },
}

impl JudgedReward {
    /// A reward with its prior, where the recipe names one.
    pub(super) fn new(params: JudgeParams, method: Method, prompt: PromptSource, range: Range) -> Self {
        let prior = params.prior.is_some().then(|| {
            let params = JudgeParams { mode: Mode::Pointwise, prior: None, ..params.clone() };
            let range = Range::new(f64::NEG_INFINITY, f64::INFINITY);
            Box::new(Self::new(params, Method::default(), PromptSource::Scalar { sigmoid: false }, range))
        });
        Self { params, method, prompt, range, prior }
    }

    /// Whether it compares the members of a group.
    pub fn compares(&self) -> bool {
        self.params.mode != Mode::Pointwise
    }

    /// The judges that it asks, with the key that names each.
    pub fn judges(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let prior = self.params.prior.as_deref().map(|name| ("prior", Some(name)));
        std::iter::once(("judge", self.params.judge.as_deref())).chain(prior)
    }

    /// Whether it asks a model that gives numbers and takes no prompt.
    pub fn is_scalar(&self) -> bool {
        matches!(self.prompt, PromptSource::Scalar { .. })
    }

    /// The grader, where it goes by rubrics.
    pub(crate) fn grader(&self) -> Option<&RubricGrader> {
        match &self.prompt {
            PromptSource::Rubric(grader) => Some(grader),
            _ => None,
        }
    }

    /// What the author of the recipe should think about: the parameter, and why.
    pub fn warning(&self) -> Option<ParamError> {
        let PromptSource::Custom { template, .. } = &self.prompt else { return None };
        let message = "shows responses without {{ fence }}, so that a response can pretend to end where it does not; \
                       put it around them, as in <text {{ fence }}> ... </text {{ fence }}>";
        (!template.uses("fence")).then(|| ParamError::new("prompt", message))
    }

    /// How many responses a call shows, of so many.
    fn line_up(&self, n: usize) -> usize {
        match self.params.mode {
            Mode::Pointwise => 1,
            Mode::Pairwise => 2,
            Mode::Listwise => self.params.line_up.unwrap_or(n).clamp(2, n.clamp(2, MAX_SHOWN)),
        }
    }

    /// The schedule of the comparisons of so many responses.
    pub(in crate::judge) fn schedule(&self, n: usize) -> Schedule {
        let params = &self.params;
        let line_up = self.line_up(n);
        // A line-up that shows the whole group says all there is to say in one call.
        let whole = params.mode == Mode::Listwise && line_up >= n && params.budget.is_none();
        Schedule {
            n,
            seed: params.seed,
            design: params.design,
            budget: if whole { Some(1) } else { params.budget },
            line_up,
            reliability: params.reliability,
            audit: params.audit,
            model: match &self.method {
                Method::BradleyTerry(model) => model.clone(),
                _ => Default::default(),
            },
        }
    }

    /// The most calls that it will ever make about so many different responses.
    pub fn most_calls(&self, n: usize) -> usize {
        match self.params.mode {
            Mode::Pointwise => n,
            _ if n < 2 => 0,
            _ => self.schedule(n).most(),
        }
    }
}
