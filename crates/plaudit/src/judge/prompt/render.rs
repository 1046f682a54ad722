//! Renders the prompt of a judge call (minijinja): plaudit's own by principles, or the recipe's template.

use super::sanitize::sanitize;
use super::template;
use crate::judge::answer::{AnswerFormat, ExpectedAnswer};
use crate::judge::call::JudgeCall;
use crate::judge::rewards::judged_reward::PromptSource;
use crate::judge::rewards::params::Mode;
use crate::reason::{Code, Reason};
use minijinja::{Environment, context};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The system message of every call without a custom prompt.
const SYSTEM: &str = include_str!("../../../prompts/system.j2");
const USER: &str = include_str!("../../../prompts/user.j2");

fn prompts() -> &'static Environment<'static> {
    static PROMPTS: OnceLock<Environment<'static>> = OnceLock::new();
    PROMPTS.get_or_init(|| {
        let mut environment = template::environment();
        // A test renders every branch of the prompt, so it is a template.
        let _ = environment.add_template("user", USER);
        environment
    })
}

impl JudgeCall<'_> {
    /// The text of the system message, where there is one.
    pub(in crate::judge) fn system_message(&self) -> Option<&str> {
        match &self.reward.prompt {
            PromptSource::Custom { system, .. } => system.as_deref(),
            PromptSource::Principles { .. } | PromptSource::Rubric(_) | PromptSource::Scalar { .. } => {
                Some(SYSTEM.trim_end())
            }
        }
    }

    /// The text of the user's message.
    pub fn user_message(&self, format: AnswerFormat, attempt: u32) -> Result<String, Reason> {
        let labels = self.view.labels(self.shown);
        let delimiters = match &self.reward.prompt {
            PromptSource::Custom { template, .. } => Some(&template.delimiters),
            _ => None,
        };
        let escaped = |text: &Arc<str>| match delimiters.map(|delimiters| delimiters.escape(text)) {
            Some(Cow::Owned(escaped)) => Arc::from(escaped),
            _ => Arc::clone(text),
        };
        let responses: Vec<minijinja::Value> = (labels.iter().enumerate())
            .map(|(at, label)| context! { label, text => escaped(&self.candidate(at).shown) })
            .collect();
        let fence = self.view.delimiters.fence();
        let rendered = match &self.reward.prompt {
            PromptSource::Principles { principles, scale } => {
                let (shape, tie) = match &self.expected {
                    ExpectedAnswer::Score { .. } => ("score", None),
                    ExpectedAnswer::Pair { tie, .. } => ("pair", tie.clone()),
                    ExpectedAnswer::Graded { .. } => ("pair", None),
                    ExpectedAnswer::Ranking { .. } => ("ranking", None),
                };
                let nonce = self.nonce(attempt);
                let values = context! {
                    principles, scale, fence, responses, shape, tie, nonce, form => format.as_str(),
                    query => Arc::clone(&self.view.query), reference => self.reference(),
                };
                template::render(prompts(), "user", &values)
            }
            PromptSource::Custom { template, .. } => {
                let member = self.shown.first().and_then(|at| self.view.candidates[*at].member);
                let values = member.and_then(|member| self.view.values.get(member));
                let delimiters = &template.delimiters;
                let reference = self.reference().filter(|_| template.uses("reference"));
                let named = context! {
                    fence, prompt => escaped(&self.view.query),
                    reference => reference.map(|reference| delimiters.escape(&reference).into_owned()),
                };
                let named = match values {
                    None => named,
                    Some(values) => context! {
                        id => delimiters.escape(&sanitize(&values.id, fence, 256)),
                        group => delimiters.escape(&sanitize(&values.group, fence, 256)),
                        messages => template::value(&values.messages, delimiters),
                        extra => template::value(&values.extra, delimiters),
                        ..named
                    },
                };
                template.render(&match self.reward.params.mode {
                    Mode::Pointwise => context! { response => escaped(&self.candidate(0).shown), ..named },
                    _ => context! { responses, ..named },
                })
            }
            // A call about items has a prompt of its own.
            PromptSource::Rubric(_) | PromptSource::Scalar { .. } => Ok(String::new()),
        };
        rendered.map_err(|error| {
            Reason::new(Code::TemplateFailed, format!("The prompt cannot be filled in: {error}."))
        })
    }

    /// The reference as the judge sees it; not where it is one of the responses.
    fn reference(&self) -> Option<String> {
        let reference = self.view.reference.as_deref()?;
        let shown = self.reward.params.show_reference && self.view.reference_index.is_none();
        shown.then(|| {
            sanitize(reference, self.view.delimiters.fence(), self.reward.params.longest).into_owned()
        })
    }
}
