//! Which rule rewards are there, and what must one be? One file a rule, one line in [`KINDS`].

// The example of CONTRIBUTING.md, compiled so that it stays right.
#[cfg(test)]
pub mod ends_with_question;
#[cfg(test)]
mod trial;

pub mod accuracy;
pub mod correct;
pub mod custom;
pub mod dapo_overlong;
pub mod f1_score;
pub mod kimi_length;
pub mod length;
pub mod length_penalty;
pub mod ngram_repetition_penalty;
pub mod number_accuracy;
pub mod open_r1_cosine_length;
pub mod open_r1_format;
pub mod open_r1_reasoning_steps;
pub mod open_r1_repetition;
pub mod open_r1_tag_count;
pub mod privacy_leakage;
pub mod reasoning_format;
pub mod reasoning_tool_call_format;
pub mod regex;
pub mod rouge;
pub mod thought_length;
pub mod total_length;
pub mod trl_think_format;

use crate::outcome::Outcome;
pub use crate::reward::{ParamError, Range, Registered, Stated};
use crate::reward::{inline_schema, parameters};
use crate::rollout::Prompt;
use crate::text::Text;
use crate::tokenizer::ResourceCache;
use serde_json::{Map, Value};
use std::fmt;

/// Every rule reward, by name. A new one is a file beside this and a line here.
pub const KINDS: &[Kind] = &[
    Kind::of::<accuracy::Accuracy>(),
    Kind::of::<dapo_overlong::DapoOverlong>(),
    Kind::of::<f1_score::F1Score>(),
    Kind::of::<kimi_length::KimiLength>(),
    Kind::of::<length_penalty::LengthPenalty>(),
    Kind::of::<ngram_repetition_penalty::NgramRepetitionPenalty>(),
    Kind::of::<number_accuracy::NumberAccuracy>(),
    Kind::of::<open_r1_cosine_length::OpenR1CosineLength>(),
    Kind::of::<open_r1_format::OpenR1Format>(),
    Kind::of::<open_r1_reasoning_steps::OpenR1ReasoningSteps>(),
    Kind::of::<open_r1_repetition::OpenR1Repetition>(),
    Kind::of::<open_r1_tag_count::OpenR1TagCount>(),
    Kind::of::<privacy_leakage::PrivacyLeakage>(),
    Kind::of::<reasoning_format::ReasoningFormat>(),
    Kind::of::<reasoning_tool_call_format::ReasoningToolCallFormat>(),
    Kind::of::<regex::Regex>(),
    Kind::of::<rouge::Rouge>(),
    Kind::of::<thought_length::ThoughtLength>(),
    Kind::of::<total_length::TotalLength>(),
    Kind::of::<trl_think_format::TrlThinkFormat>(),
];

/// What a rule sees of one rollout.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'s> {
    /// The response, with its views.
    pub text: &'s Text<'s>,
    /// The reference, with its views, shared by the whole group.
    pub reference: Option<&'s Text<'s>>,
    /// What the model was asked.
    pub prompt: Option<&'s Prompt<'s>>,
    /// The length of the response in the model's own tokens.
    pub tokens: Option<u64>,
    /// Everything else that the caller gave.
    pub extra: &'s Map<String, Value>,
}

/// A rule that looks at one rollout.
pub trait Rule: Stated {
    /// What it says of one rollout. At most 50 ms for a response of 1 MB, whatever that holds.
    fn score(&self, sample: &Sample<'_>) -> Outcome;
}

/// A rule that looks at all rollouts of a group together.
pub trait GroupRule: Stated {
    /// One outcome a rollout, in their order. Groups smaller than [`GroupRule::smallest`] never reach it.
    fn score(&self, samples: &[Sample<'_>]) -> Vec<Outcome>;

    /// The smallest group that it can say something of.
    fn smallest(&self) -> usize {
        2
    }
}

/// A loaded rule, ready to score.
pub enum Scorer {
    /// Looks at one rollout at a time.
    Each(Box<dyn Rule>),
    /// Looks at a group at a time.
    Group(Box<dyn GroupRule>),
}

impl fmt::Debug for Scorer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Each(_) => "Each",
            Self::Group(_) => "Group",
        })
    }
}

impl Scorer {
    /// What the rule states of itself.
    pub fn stated(&self) -> &dyn Stated {
        match self {
            Self::Each(rule) => rule.as_ref(),
            Self::Group(rule) => rule.as_ref(),
        }
    }
}

/// The parameters of a rule reward, which are also its place in the registry.
pub trait Reward: Registered + Default {
    /// The loaded rule, or everything that is wrong with the parameters.
    fn build(self, cache: &mut ResourceCache) -> Result<Scorer, Vec<ParamError>>;
}

/// One rule of the registry.
pub type Kind = crate::reward::Kind<Scorer>;

impl Kind {
    /// The entry of one reward.
    pub const fn of<R: Reward>() -> Self {
        Self {
            name: R::NAME,
            aliases: R::ALIASES,
            needs_reference: R::NEEDS_REFERENCE,
            schema: || inline_schema::<R>(),
            build: |given, cache| parameters::<R>(given)?.build(cache),
        }
    }

    /// The rule of that name or alias.
    pub fn find(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.is_called(name))
    }
}
