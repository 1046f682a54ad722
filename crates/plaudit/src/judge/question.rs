//! What is a judged reward once it is loaded? Who is asked, with which words, and what its answers are worth.

use super::asking::{Asking, Mode};
use super::template::Template;
use crate::aggregate::Method;
use crate::aggregate::design::Draw;
use crate::reward::{ParamError, Range, Stated};

/// A judged reward, ready to ask about groups.
#[derive(Debug)]
pub struct Question {
    /// What all judged rewards share.
    pub asking: Asking,
    /// How comparisons become numbers.
    pub method: Method,
    /// The words.
    pub wording: Wording,
    /// The numbers that it can give.
    pub range: Range,
    /// What a scalar model is asked first, where one is.
    pub prior: Option<Box<Question>>,
}

/// With which words a judge is asked.
#[derive(Debug)]
pub enum Wording {
    /// By principles, with plaudit's own prompt.
    Principles {
        /// Each a sentence or a few.
        principles: Vec<String>,
        /// The best score in mode pointwise; the worst is 0.
        scale: u32,
    },
    /// With a prompt of the recipe's own.
    Own {
        /// The prompt.
        template: Box<Template>,
        /// What is said before it, as the system message.
        system: Option<String>,
        /// How the answer is read.
        answer: Answer,
    },
    /// Not with words: a model that gives a number for a prompt and a response.
    Scalar {
        /// Whether the number is put through the logistic function.
        sigmoid: bool,
    },
}

/// How the answer to a prompt of the recipe's own is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Where it stands.
    pub place: AnswerPlace,
    /// The smallest and the largest score.
    pub range: Range,
    /// The labels of the first, of the second and of a tie, in mode pairwise.
    pub labels: Option<(String, String, Option<String>)>,
    /// A field that must repeat the rollout's id.
    pub echo: Option<String>,
}

/// Where the answer to a prompt of the recipe's own stands.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPlace {
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

impl Question {
    /// A question with its prior, where the recipe names one.
    pub(super) fn new(asking: Asking, method: Method, wording: Wording, range: Range) -> Self {
        let prior = asking.prior.is_some().then(|| {
            let asking = Asking { mode: Mode::Pointwise, prior: None, ..asking.clone() };
            let range = Range::new(f64::NEG_INFINITY, f64::INFINITY);
            Box::new(Self::new(asking, Method::default(), Wording::Scalar { sigmoid: false }, range))
        });
        Self { asking, method, wording, range, prior }
    }

    /// Whether it compares the members of a group.
    pub fn compares(&self) -> bool {
        self.asking.mode != Mode::Pointwise
    }

    /// The judges that it asks, with the key that names each.
    pub fn judges(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let prior = self.asking.prior.as_deref().map(|name| ("prior", Some(name)));
        std::iter::once(("judge", self.asking.judge.as_deref())).chain(prior)
    }

    /// Whether it asks a model that gives numbers and cannot be talked to.
    pub fn is_scalar(&self) -> bool {
        matches!(self.wording, Wording::Scalar { .. })
    }

    /// What the author of the recipe should think about: the parameter, and why.
    pub fn warning(&self) -> Option<ParamError> {
        let Wording::Own { template, .. } = &self.wording else { return None };
        let message = "shows responses without {{ fence }}, so that a response can pretend to end where it does not; \
                       put it around them, as in <text {{ fence }}> ... </text {{ fence }}>";
        (!template.uses("fence")).then(|| ParamError::new("prompt", message))
    }

    /// How many responses a call shows, of so many.
    fn line_up(&self, n: usize) -> usize {
        match self.asking.mode {
            Mode::Pointwise => 1,
            Mode::Pairwise => 2,
            Mode::Listwise => self.asking.line_up.unwrap_or(n).clamp(2, n.clamp(2, super::MOST_SHOWN)),
        }
    }

    /// The draw of the comparisons of so many responses.
    pub(super) fn draw(&self, n: usize) -> Draw {
        let asking = &self.asking;
        let line_up = self.line_up(n);
        // A line-up that shows the whole group says all there is to say in one call.
        let whole = asking.mode == Mode::Listwise && line_up >= n && asking.budget.is_none();
        Draw {
            n,
            seed: asking.seed,
            design: asking.design,
            budget: if whole { Some(1) } else { asking.budget },
            line_up,
            reliability: asking.reliability,
            audit: asking.audit,
            model: match &self.method {
                Method::BradleyTerry(model) => model.clone(),
                _ => Default::default(),
            },
        }
    }

    /// The most calls that it will ever make about so many different responses.
    pub fn most_calls(&self, n: usize) -> usize {
        match self.asking.mode {
            Mode::Pointwise => n,
            _ if n < 2 => 0,
            _ => self.draw(n).most(),
        }
    }
}

impl Stated for Question {
    fn range(&self) -> Range {
        self.range
    }
}
