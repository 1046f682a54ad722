//! The rule rewards: one file for each rule, one line in [`RULES`].

// The example of CONTRIBUTING.md, compiled and tested with the others.
#[cfg(test)]
pub mod ends_with_question;
#[cfg(test)]
mod test_util;

pub mod accuracy;
pub mod action_loop;
pub mod arguments;
mod assignment;
#[cfg(feature = "math")]
pub mod choice;
#[cfg(feature = "math")]
mod choice_answer;
#[cfg(feature = "math")]
mod choice_denial;
#[cfg(feature = "math")]
mod choice_mention;
#[cfg(feature = "math")]
mod choice_options;
#[cfg(feature = "math")]
mod choice_place;
#[cfg(feature = "math")]
mod choice_published;
#[cfg(feature = "code")]
mod code_blocks;
pub mod code_patch_similarity;
#[cfg(feature = "code")]
pub mod code_style;
#[cfg(feature = "code")]
pub mod code_syntax_check;
pub mod contains;
pub mod correct;
pub mod custom;
pub mod dapo_overlong;
pub mod exact_set;
mod expected_calls;
pub mod f1_score;
#[cfg(feature = "instructions")]
pub mod instructions;
mod json_schema;
pub mod kimi_length;
#[cfg(feature = "instructions")]
pub mod language;
pub mod length;
pub mod length_penalty;
#[cfg(feature = "math")]
mod math_references;
#[cfg(feature = "math")]
pub mod math_verify_reward;
pub mod ngram_repetition_penalty;
pub mod number_accuracy;
pub mod open_r1_cosine_length;
pub mod open_r1_format;
pub mod open_r1_reasoning_steps;
pub mod open_r1_repetition;
pub mod open_r1_tag_count;
mod pattern;
pub mod privacy_leakage;
pub mod reasoning_format;
pub mod reasoning_tool_call_format;
pub mod reference_check;
mod reference_list;
pub mod reference_view;
pub mod regex;
pub mod rouge;
mod row_cache;
pub mod structured_output;
pub mod thought_length;
pub mod tool_call_validity;
pub mod tool_calls;
mod tool_names;
mod tool_schema;
pub mod total_length;
pub mod trl_think_format;
pub mod truncated;
pub mod turn_count;

use crate::conversation::Tool;
use crate::input::likely_reference;
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
pub use crate::reward::{ParamError, Properties, Range, Registration, ResourceCache, Reward};
use crate::rollout::{Generation, Prompt, Rollout};
use crate::text::scope::Scope;
use crate::text::tokens::Tokens;
use crate::text::{Case, Text};
use crate::tokenizer::{Tokenizer, Uncut};
use reference_check::ReferenceCheck;
use reference_view::{ReferenceView, best};
use serde_json::{Map, Value};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Every rule reward, by name. A new one is a file beside this and a line here.
pub const RULES: &[Registration<Rule>] = &[
    Registration::of::<accuracy::Accuracy>(),
    Registration::of::<action_loop::ActionLoop>(),
    #[cfg(feature = "math")]
    Registration::of::<choice::Choice>(),
    Registration::of::<code_patch_similarity::CodePatchSimilarity>(),
    #[cfg(feature = "code")]
    Registration::of::<code_style::CodeStyle>(),
    #[cfg(feature = "code")]
    Registration::of::<code_syntax_check::CodeSyntaxCheck>(),
    Registration::of::<contains::Contains>(),
    Registration::of::<dapo_overlong::DapoOverlong>(),
    Registration::of::<exact_set::ExactSet>(),
    Registration::of::<f1_score::F1Score>(),
    #[cfg(feature = "instructions")]
    Registration::of::<instructions::Instructions>(),
    Registration::of::<kimi_length::KimiLength>(),
    #[cfg(feature = "instructions")]
    Registration::of::<language::ResponseLanguage>(),
    Registration::of::<length_penalty::LengthPenalty>(),
    #[cfg(feature = "math")]
    Registration::of::<math_verify_reward::MathVerifyReward>(),
    Registration::of::<ngram_repetition_penalty::NgramRepetitionPenalty>(),
    Registration::of::<number_accuracy::NumberAccuracy>(),
    Registration::of::<open_r1_cosine_length::OpenR1CosineLength>(),
    Registration::of::<open_r1_format::OpenR1Format>(),
    Registration::of::<open_r1_reasoning_steps::OpenR1ReasoningSteps>(),
    Registration::of::<open_r1_repetition::OpenR1Repetition>(),
    Registration::of::<open_r1_tag_count::OpenR1TagCount>(),
    Registration::of::<privacy_leakage::PrivacyLeakage>(),
    Registration::of::<reasoning_format::ReasoningFormat>(),
    Registration::of::<reasoning_tool_call_format::ReasoningToolCallFormat>(),
    Registration::of::<regex::Regex>(),
    Registration::of::<rouge::Rouge>(),
    Registration::of::<structured_output::StructuredOutput>(),
    Registration::of::<thought_length::ThoughtLength>(),
    Registration::of::<tool_call_validity::ToolCallValidity>(),
    Registration::of::<tool_calls::ToolCalls>(),
    Registration::of::<total_length::TotalLength>(),
    Registration::of::<trl_think_format::TrlThinkFormat>(),
    Registration::of::<truncated::Truncated>(),
    Registration::of::<turn_count::TurnCount>(),
];

/// The rule of that name or alias.
pub fn find(name: &str) -> Option<&'static Registration<Rule>> {
    RULES.iter().find(|rule| rule.name == name || rule.aliases.contains(&name))
}

/// What a rule sees of one rollout.
#[derive(Debug, Clone, Copy)]
pub struct RuleInput<'s> {
    /// The response, with its views.
    pub text: &'s Text<'s>,
    /// The reference, with its views, shared by the whole group.
    pub reference: Option<&'s ReferenceView<'s>>,
    /// What the model was asked.
    pub prompt: Option<&'s Prompt<'s>>,
    /// The length of the response in the model's own tokens.
    pub tokens: Option<u64>,
    /// How the response was generated.
    pub generation: &'s Generation,
    /// The tools that the model was given, where they are declared.
    pub tools: Option<&'s [Tool]>,
    /// Everything else that the caller gave.
    pub extra: &'s Map<String, Value>,
}

impl<'s> RuleInput<'s> {
    /// What a rule sees of a rollout, whose texts are made already.
    pub fn of(
        rollout: &'s Rollout<'s>,
        text: &'s Text<'s>,
        reference: Option<&'s ReferenceView<'s>>,
    ) -> Self {
        Self {
            text,
            reference,
            prompt: rollout.prompt.as_ref(),
            tokens: rollout.tokens,
            generation: &rollout.generation,
            tools: rollout.tools.as_deref(),
            extra: &rollout.extra,
        }
    }

    /// The reference, which must not be blank: an empty response would equal it, and be right by saying nothing.
    fn reference(&self) -> Result<&'s Text<'s>, Outcome> {
        let reference = self.any_reference()?.as_text()?;
        if reference.stripped().is_empty() {
            return Err(Outcome::skipped(Code::EmptyReference));
        }
        Ok(reference)
    }

    /// The reference, whatever it is.
    fn any_reference(&self) -> Result<&'s ReferenceView<'s>, Outcome> {
        self.reference.ok_or_else(|| Outcome::skipped(self.no_reference()))
    }

    /// The reference that the rollout calls so.
    pub(crate) fn own_reference(&self) -> Option<&'s ReferenceView<'s>> {
        self.reference.filter(|reference| reference.field().is_none())
    }

    /// Why there is no reference, and which field of the row may be it.
    fn no_reference(&self) -> Reason {
        let inside = |(key, value): (&String, &Value)| {
            let inner =
                value.as_object().into_iter().flat_map(Map::keys).map(move |name| format!("{key}.{name}"));
            std::iter::once(key.clone()).chain(inner).collect::<Vec<_>>()
        };
        let names: Vec<String> = self.extra.iter().flat_map(inside).collect();
        match likely_reference(names.iter().map(String::as_str)) {
            None => Code::MissingReference.into(),
            // How a field is read as another one is for each front to say.
            Some(name) => Reason::new(
                Code::MissingReference,
                format!("The rollout has no reference. Its field `{name}` may be it."),
            ),
        }
    }

    /// The tokens of the response and of the reference, in lower case. A response that cannot be cut gets 0.
    fn token_pair(&self, tokenizer: &Tokenizer, scope: Scope) -> Result<(Rc<Tokens>, Rc<Tokens>), Outcome> {
        let wanted = self.reference()?.tokens(tokenizer, Case::Lower).map_err(Uncut::of_reference)?;
        if wanted.is_empty() {
            return Err(Outcome::skipped(Code::EmptyReference));
        }
        let given =
            scope.view(self.text).tokens(tokenizer, Case::Lower).map_err(|uncut| uncut.of_response(0.0))?;
        Ok((given, wanted))
    }
}

/// A loaded rule, ready to score.
#[derive(Debug)]
pub enum Rule {
    /// Scores one rollout at a time.
    Each(EachRule),
    /// Scores a group at a time.
    Group(GroupRule),
}

type EachFn = dyn Fn(&RuleInput<'_>) -> Outcome + Send + Sync;
type GroupFn = dyn Fn(&[RuleInput<'_>]) -> Vec<Outcome> + Send + Sync;

/// A rule that scores one rollout at a time.
pub type EachRule = RuleFn<EachFn>;
/// A rule that compares the rollouts of a group.
pub type GroupRule = RuleFn<GroupFn>;

/// The function of a rule, and what is known of it.
pub struct RuleFn<F: ?Sized> {
    /// The range, the floor and the limits.
    pub properties: Properties,
    /// What it says about references alone.
    references: Option<Arc<dyn ReferenceCheck>>,
    score: Box<F>,
}

/// The smallest group that a rule can compare.
pub const SMALLEST_GROUP: usize = 2;

impl EachRule {
    /// The outcome of one rollout. At most 50 ms for a response of 1 MB, whatever that holds.
    ///
    /// Where a reference is a list of accepted answers and the rule compares with one text, the best outcome over them.
    pub fn score(&self, sample: &RuleInput<'_>) -> Outcome {
        match sample.reference.and_then(ReferenceView::accepted) {
            Some(accepted) if self.properties.compares_text => {
                let each = |reference| (self.score)(&RuleInput { reference: Some(reference), ..*sample });
                best(accepted.iter().map(each))
            }
            _ => (self.score)(sample),
        }
    }
}

impl GroupRule {
    /// One outcome per rollout, in their order. The engine never calls it for fewer than [`SMALLEST_GROUP`].
    pub fn score(&self, samples: &[RuleInput<'_>]) -> Vec<Outcome> {
        (self.score)(samples)
    }
}

impl Rule {
    /// A rule that scores one rollout at a time: an outcome, or a result where the rule ends early with `?`. Its floor is
    /// the lower end of `range`.
    pub fn each<O: Into<Outcome>>(
        range: Range,
        score: impl Fn(&RuleInput<'_>) -> O + Send + Sync + 'static,
    ) -> Self {
        let score = Box::new(move |sample: &RuleInput<'_>| score(sample).into());
        Self::Each(EachRule { properties: Properties::new(range), references: None, score })
    }

    /// A rule that compares the rollouts of a group. Its floor is the lower end of `range`.
    pub fn group(
        range: Range,
        score: impl Fn(&[RuleInput<'_>]) -> Vec<Outcome> + Send + Sync + 'static,
    ) -> Self {
        let score = Box::new(score);
        Self::Group(GroupRule { properties: Properties::new(range), references: None, score })
    }

    /// The range, the floor and the limits.
    pub const fn properties(&self) -> &Properties {
        match self {
            Self::Each(rule) => &rule.properties,
            Self::Group(rule) => &rule.properties,
        }
    }

    const fn properties_mut(&mut self) -> &mut Properties {
        match self {
            Self::Each(rule) => &mut rule.properties,
            Self::Group(rule) => &mut rule.properties,
        }
    }

    /// What the rule says about references alone, where it can tell a good one from a bad one.
    pub fn reference_check(&self) -> Option<&dyn ReferenceCheck> {
        match self {
            Self::Each(rule) => rule.references.as_deref(),
            Self::Group(rule) => rule.references.as_deref(),
        }
    }

    /// The same rule, which can tell a good reference from a bad one.
    pub fn checks_references(mut self, check: Arc<dyn ReferenceCheck>) -> Self {
        match &mut self {
            Self::Each(rule) => rule.references = Some(check),
            Self::Group(rule) => rule.references = Some(check),
        }
        self
    }

    /// The same rule with a floor of its own, for a range without a lower end.
    pub const fn floor(mut self, floor: f64) -> Self {
        self.properties_mut().floor = floor;
        self
    }

    /// The same rule, which scores responses of any length fast enough where `any` is true.
    pub const fn any_length(mut self, any: bool) -> Self {
        self.properties_mut().any_length = any;
        self
    }

    /// The same rule, which compares with one text where `compares` is true: it is asked for each accepted answer of a list, and the
    /// best outcome counts.
    pub const fn compares_text(mut self, compares: bool) -> Self {
        self.properties_mut().compares_text = compares;
        self
    }

    /// The same rule, which skips rollouts without a token count where `needs` is true.
    pub const fn needs_tokens(mut self, needs: bool) -> Self {
        self.properties_mut().needs_tokens = needs;
        self
    }
}

impl<F: ?Sized> fmt::Debug for RuleFn<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RuleFn").field("properties", &self.properties).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::test_util::{TestRollout, outcomes};
    use super::*;
    use crate::conversation::FinishReason;
    use crate::outcome::Fact;
    use serde_json::json;

    #[test]
    fn declared_facts_are_numbers_in_the_info() {
        let call = json!({"name": "f", "arguments": {}});
        let turn = json!({"role": "assistant", "content": "<think>a</think> The boats wait for the tide in the morning.", "tool_calls": [call]});
        let extra = json!({"expected_calls": [call], "schema": {}, "language": "en",
            "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]});
        let rollout = TestRollout {
            turns: Some(json!([turn])),
            reference: Some("b"),
            tokens: Some(9),
            generation: FinishReason::Stop.into(),
            tools: Some(json!([{"name": "f"}])),
            extra: extra.as_object().unwrap().clone(),
            ..TestRollout::default()
        };
        for known in RULES.iter().filter(|known| !known.facts.is_empty()) {
            let rule = (known.build)(json!({}), &mut ResourceCache::default()).expect("a rule");
            for outcome in outcomes(&rule, &[rollout.clone(), rollout.clone()]) {
                let info = outcome.info().expect("a scored outcome");
                for fact in known.facts {
                    let number = matches!(info.get(fact), Some(Fact::Count(_) | Fact::Number(_)));
                    assert!(number, "{}.{fact}", known.name);
                }
            }
        }
    }
}
