//! How is a rule tried in a test? By its parameters as a recipe gives them, and one rollout.

use super::{Reward, Sample, Scorer};
use crate::outcome::Outcome;
use crate::text::Text;
use crate::tokenizer::ResourceCache;
use serde_json::{Map, Value};

fn built<R: Reward>(parameters: Value) -> Result<Scorer, Vec<super::ParamError>> {
    serde_json::from_value::<R>(parameters).expect("parameters").build(&mut ResourceCache::default())
}

/// The parameters that the reward refuses.
pub(super) fn refused<R: Reward>(parameters: Value) -> Vec<&'static str> {
    match built::<R>(parameters) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(|refusal| refusal.key).collect(),
    }
}

/// One rollout of a trial.
#[derive(Default, Clone)]
pub(super) struct Rollout<'r> {
    pub(super) response: &'r str,
    pub(super) reference: Option<&'r str>,
    pub(super) tokens: Option<u64>,
    pub(super) extra: Map<String, Value>,
}

/// What the reward says of a group of rollouts, or of each of them.
pub(super) fn tried<R: Reward>(parameters: Value, rollouts: &[Rollout<'_>]) -> Vec<Outcome> {
    asked(&built::<R>(parameters).unwrap_or_else(|refusals| panic!("{refusals:?}")), rollouts)
}

/// What a reward with these parameters says of one response, beside a reference where there is one.
pub(super) fn score(reward: impl Reward, response: &str, reference: Option<&str>) -> Outcome {
    let scorer =
        reward.build(&mut ResourceCache::default()).unwrap_or_else(|refusals| panic!("{refusals:?}"));
    asked(&scorer, &[Rollout { response, reference, ..Rollout::default() }]).remove(0)
}

fn asked(scorer: &Scorer, rollouts: &[Rollout<'_>]) -> Vec<Outcome> {
    let texts: Vec<_> =
        rollouts.iter().map(|each| (Text::new(each.response), each.reference.map(Text::new))).collect();
    let samples: Vec<Sample<'_>> = texts
        .iter()
        .zip(rollouts)
        .map(|((text, reference), each)| Sample {
            text,
            reference: reference.as_ref(),
            prompt: None,
            tokens: each.tokens,
            extra: &each.extra,
        })
        .collect();
    let outcomes: Vec<Outcome> = match scorer {
        Scorer::Each(rule) => samples.iter().map(|sample| rule.score(sample)).collect(),
        Scorer::Group(rule) => rule.score(&samples),
    };
    let range = scorer.stated().range();
    for value in outcomes.iter().filter_map(Outcome::value) {
        assert!((range.min..=range.max).contains(&value), "{value} is outside {range:?}");
    }
    assert!(scorer.stated().floor().is_finite());
    outcomes
}

/// What the reward says of one rollout.
pub(super) fn one<R: Reward>(parameters: Value, rollout: Rollout<'_>) -> Outcome {
    tried::<R>(parameters, &[rollout]).remove(0)
}

/// What the reward says of a response alone.
pub(super) fn scored<R: Reward>(parameters: Value, response: &str) -> Outcome {
    one::<R>(parameters, Rollout { response, ..Rollout::default() })
}

/// What the reward says of a response beside a reference.
pub(super) fn compared<R: Reward>(parameters: Value, response: &str, reference: Option<&str>) -> Outcome {
    one::<R>(parameters, Rollout { response, reference, ..Rollout::default() })
}

/// What the reward says of a response that came with a token count.
pub(super) fn counted<R: Reward>(parameters: Value, tokens: u64) -> Outcome {
    one::<R>(parameters, Rollout { tokens: Some(tokens), ..Rollout::default() })
}
