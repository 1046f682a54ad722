//! Test helpers for rules: load one from parameters as a recipe gives them, and score rollouts with it.

use super::{ParamError, ResourceCache, Reward, Rule, RuleInput};
use crate::conversation::{Conversation, Tool};
use crate::input::{read_response, read_tools};
use crate::outcome::Outcome;
use crate::rollout::{Generation, Prompt};
use crate::rule::reference_view::ReferenceView;
use crate::text::Text;
use serde_json::{Map, Value};
use std::sync::Arc;

fn load<R: Reward<Rule>>(parameters: Value) -> Result<Rule, Vec<ParamError>> {
    serde_json::from_value::<R>(parameters).expect("parameters").build(&mut ResourceCache::default())
}

/// The keys of the parameters that `build` rejects.
pub(super) fn rejected<R: Reward<Rule>>(parameters: Value) -> Vec<&'static str> {
    match load::<R>(parameters) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.key).collect(),
    }
}

/// One rollout of a test.
#[derive(Default, Clone)]
pub(super) struct TestRollout<'r> {
    pub(super) prompt: Option<Prompt<'r>>,
    pub(super) response: &'r str,
    /// The messages of a response that is a conversation.
    pub(super) turns: Option<Value>,
    pub(super) generation: Generation,
    /// Declarations of tools.
    pub(super) tools: Option<Value>,
    pub(super) reference: Option<&'r str>,
    pub(super) tokens: Option<u64>,
    pub(super) extra: Map<String, Value>,
}

/// The outcomes of a group of rollouts, or of each of them.
pub(super) fn score_group<R: Reward<Rule>>(parameters: Value, rollouts: &[TestRollout<'_>]) -> Vec<Outcome> {
    outcomes(&load::<R>(parameters).unwrap_or_else(|errors| panic!("{errors:?}")), rollouts)
}

/// The outcome of one response with these parameters, beside a reference where there is one.
pub(super) fn score(reward: impl Reward<Rule>, response: &str, reference: Option<&str>) -> Outcome {
    let rule = reward.build(&mut ResourceCache::default()).unwrap_or_else(|errors| panic!("{errors:?}"));
    outcomes(&rule, &[TestRollout { response, reference, ..TestRollout::default() }]).remove(0)
}

/// The outcomes of a loaded rule. Values must lie in its range, and its floor must be finite.
pub(super) fn outcomes(rule: &Rule, rollouts: &[TestRollout<'_>]) -> Vec<Outcome> {
    let conversations: Vec<Option<Arc<Conversation>>> = rollouts
        .iter()
        .map(|each| read_response(each.turns.clone()?, "response", false).expect("a response").conversation)
        .collect();
    let tools: Vec<Option<Arc<[Tool]>>> =
        rollouts.iter().map(|each| read_tools(each.tools.as_ref()?, "tools").expect("tools")).collect();
    let texts: Vec<_> = (rollouts.iter().zip(&conversations))
        .map(|(each, conversation)| {
            let text = conversation.as_ref().map(|turns| Text::of_conversation(turns));
            (text.unwrap_or_else(|| Text::new(each.response)), each.reference.map(ReferenceView::from))
        })
        .collect();
    let samples: Vec<RuleInput<'_>> = (texts.iter().zip(rollouts).zip(&tools))
        .map(|(((text, reference), each), tools)| RuleInput {
            text,
            reference: reference.as_ref(),
            prompt: each.prompt.as_ref(),
            tokens: each.tokens,
            generation: &each.generation,
            tools: tools.as_deref(),
            extra: &each.extra,
        })
        .collect();
    let outcomes: Vec<Outcome> = match rule {
        Rule::Each(rule) => samples.iter().map(|sample| rule.score(sample)).collect(),
        Rule::Group(rule) => rule.score(&samples),
    };
    let range = rule.properties().range;
    for value in outcomes.iter().filter_map(Outcome::value) {
        assert!((range.min..=range.max).contains(&value), "{value} is outside {range:?}");
    }
    assert!(rule.properties().floor.is_finite());
    outcomes
}

/// The outcomes of one rollout.
pub(super) fn one<R: Reward<Rule>>(parameters: Value, rollout: TestRollout<'_>) -> Outcome {
    score_group::<R>(parameters, &[rollout]).remove(0)
}

/// The outcomes of a response alone.
pub(super) fn scored<R: Reward<Rule>>(parameters: Value, response: &str) -> Outcome {
    one::<R>(parameters, TestRollout { response, ..TestRollout::default() })
}

/// The outcomes of a response beside a reference.
pub(super) fn compared<R: Reward<Rule>>(
    parameters: Value,
    response: &str,
    reference: Option<&str>,
) -> Outcome {
    one::<R>(parameters, TestRollout { response, reference, ..TestRollout::default() })
}

/// The outcomes of a response that came with a token count.
pub(super) fn counted<R: Reward<Rule>>(parameters: Value, tokens: u64) -> Outcome {
    one::<R>(parameters, TestRollout { tokens: Some(tokens), ..TestRollout::default() })
}
