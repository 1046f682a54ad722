//! Which rule rewards are there, and what must one be? One file a rule, one line in [`KINDS`].

#[cfg(test)]
mod trial;

pub mod accuracy;
pub mod correct;
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

pub use crate::error::Refusal;
use crate::outcome::Outcome;
use crate::rollout::Prompt;
use crate::text::Text;
use crate::tokenizer::Shelf;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
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

/// The numbers that a component can give. Either end may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Range {
    /// From `min` to `max`.
    pub const fn new(min: f64, max: f64) -> Self {
        Self { min, max }
    }
}

/// What every loaded rule states of itself.
pub trait Stated: Send + Sync {
    /// The numbers that it can give.
    fn range(&self) -> Range;

    /// What a rollout gets whose response breaks a limit: finite, and no better than an honest bad response.
    fn floor(&self) -> f64 {
        self.range().min
    }

    /// Whether a response of any length is scored in time that does not matter, so that the limit on the length of
    /// responses need not floor it.
    fn any_length(&self) -> bool {
        false
    }
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
///
/// The doc comment of the type is the reward's page; those of its fields describe the parameters.
pub trait Reward: DeserializeOwned + JsonSchema + Default {
    /// The name in recipes.
    const NAME: &'static str;
    /// Other names under which it is found.
    const ALIASES: &'static [&'static str] = &[];
    /// Whether it compares with the rollout's reference.
    const NEEDS_REFERENCE: bool = false;

    /// The loaded rule, or everything that is wrong with the parameters.
    fn build(self, shelf: &mut Shelf) -> Result<Scorer, Vec<Refusal>>;
}

/// One entry of the registry.
pub struct Kind {
    /// The name in recipes.
    pub name: &'static str,
    /// Other names under which it is found.
    pub aliases: &'static [&'static str],
    /// Whether it compares with the rollout's reference.
    pub needs_reference: bool,
    /// The JSON schema of its parameters, with their documentation.
    pub schema: fn() -> Value,
    /// Loads the rule from parameters that the schema allows.
    pub build: fn(Value, &mut Shelf) -> Result<Scorer, Vec<Refusal>>,
}

impl Kind {
    /// The entry of one reward.
    pub const fn of<R: Reward>() -> Self {
        Self {
            name: R::NAME,
            aliases: R::ALIASES,
            needs_reference: R::NEEDS_REFERENCE,
            schema: || inline_schema::<R>(),
            build: |parameters, shelf| match serde_json::from_value::<R>(parameters) {
                Ok(reward) => reward.build(shelf),
                Err(error) => Err(vec![Refusal::new("", error.to_string())]),
            },
        }
    }

    /// The summary and the page of the reward, from the doc comment of its parameters.
    pub fn page(&self) -> (String, String) {
        let schema = (self.schema)();
        let page = schema["description"].as_str().unwrap_or("").trim().to_owned();
        (page.lines().next().unwrap_or("").to_owned(), page)
    }

    /// The reward of that name or alias.
    pub fn find(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name || kind.aliases.contains(&name))
    }
}

/// The JSON schema of a type with everything that it is made of in place, so that schemas can be put together.
pub(crate) fn inline_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// What the tests of the rules share.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a reward says of one response.
    pub(crate) fn score(reward: impl Reward, response: &str, reference: Option<&str>) -> Outcome {
        let Ok(Scorer::Each(rule)) = reward.build(&mut Shelf::default()) else {
            panic!("not a rule for one rollout, or refused");
        };
        let text = Text::new(response);
        let reference = reference.map(Text::new);
        rule.score(&Sample {
            text: &text,
            reference: reference.as_ref(),
            prompt: None,
            tokens: None,
            extra: &Map::new(),
        })
    }
}
