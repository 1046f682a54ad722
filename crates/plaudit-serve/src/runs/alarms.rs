//! Alarms: what is wrong with the rewards of a step (length hacking, drift, position bias and others), as a code and a message.

use plaudit::outcome::OutcomeKind;
use plaudit::statistics::Statistics;
use plaudit::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every code there is.
pub(crate) const CODES: [&str; 7] = [
    "nothing_scored",
    "invalid",
    "length_hacking",
    "zero_variance",
    "position_bias",
    "drift",
    "judge_change",
];

/// Below so many rollouts there are no alarms.
pub(crate) const ENOUGH: u64 = 32;
/// Alarm above this share of invalid rollouts.
const INVALID: f64 = 0.02;
/// Alarm above this correlation of reward and length inside groups.
const LENGTH: f64 = 0.5;
/// Alarm above this share of groups with equal rewards.
const ZERO_VARIANCE: f64 = 0.5;
/// Alarm where the share of verdicts for the first response is this far from a half, with 95 % confidence.
const POSITION: f64 = 0.1;
/// Alarm above this Kolmogorov-Smirnov distance between the totals of this step and those of the steps before.
const DRIFT: f64 = 0.35;

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    /// What it is: `nothing_scored`, `invalid`, `length_hacking`, `zero_variance`, `position_bias`, `drift` or `judge_change`.
    pub code: String,
    /// The step in which it shows.
    pub step: u64,
    /// The number that it shows by.
    pub value: f64,
    /// In words.
    pub message: String,
}

/// The steps before.
#[derive(Debug, Default)]
pub(crate) struct Before<'b> {
    /// The totals of the steps before, newest last.
    pub(crate) totals: Option<&'b Distribution>,
    /// What the judges were, and what they are now.
    pub(crate) judges: Option<(&'b str, &'b str)>,
}

/// The alarms of a step.
pub(crate) fn of(step: u64, statistics: &Statistics, before: &Before<'_>) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let mut raise = |code: &str, value: f64, message: String| {
        alarms.push(Alarm { code: code.to_owned(), step, value, message });
    };
    if let Some((was, is)) = before.judges.filter(|(was, is)| was != is) {
        raise("judge_change", 1.0, format!("The judges changed: they were {was:?} and are {is:?}."));
    }
    let outcomes = &statistics.outcomes;
    let failed = outcomes.of(OutcomeKind::Invalid) + outcomes.of(OutcomeKind::Skipped);
    if failed > 0 && !outcomes.has_scored() {
        let reasons = outcomes.reasons().filter(|(kind, ..)| *kind != OutcomeKind::Floored);
        let most = reasons.max_by_key(|(_, _, count)| *count);
        let most = most.map_or_else(String::new, |(_, code, _)| format!(", mostly {code}"));
        raise("nothing_scored", 1.0, format!("Not one rollout could be scored{most}."));
    }
    if statistics.rollouts < ENOUGH {
        return alarms;
    }
    let invalid = statistics.outcomes.of(OutcomeKind::Invalid) as f64 / statistics.rollouts as f64;
    if invalid > INVALID {
        let most = statistics
            .outcomes
            .reasons()
            .filter(|(kind, ..)| *kind == OutcomeKind::Invalid)
            .max_by_key(|(_, _, count)| *count)
            .map_or_else(String::new, |(_, code, _)| format!(", mostly {code}"));
        raise("invalid", invalid, format!("{:.1} % of the rollouts are invalid{most}.", 100.0 * invalid));
    }
    if let Some(r) = statistics.length_correlation_in_groups.r().filter(|r| *r > LENGTH) {
        let message = format!(
            "Inside groups, longer responses get more reward (r = {r:.2}): check for length hacking."
        );
        raise("length_hacking", r, message);
    }
    if let Some(share) = statistics.groups.zero_variance_share().filter(|share| *share > ZERO_VARIANCE) {
        raise(
            "zero_variance",
            share,
            format!("In {:.0} % of the groups all totals are equal, and teach nothing.", 100.0 * share),
        );
    }
    for (name, component) in &statistics.components {
        let first = component.judging.as_ref().and_then(|judging| judging.first());
        let Some(first) = first else { continue };
        if first.low > 0.5 + POSITION || first.high < 0.5 - POSITION {
            let message = format!(
                "The judge of {name} prefers the response shown {} in {:.0} % of its verdicts.",
                if first.share > 0.5 { "first" } else { "second" },
                100.0 * first.share.max(1.0 - first.share)
            );
            raise("position_bias", first.share, message);
        }
    }
    if let Some(distance) = before.totals.and_then(|totals| totals.distance(&statistics.total))
        && distance > DRIFT
        && before.totals.is_some_and(|totals| totals.moments.count >= ENOUGH)
        && statistics.total.moments.count >= ENOUGH
    {
        let message =
            format!("The totals have moved away from those of the last steps (distance {distance:.2} of 1).");
        raise("drift", distance, message);
    }
    alarms
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::engine::Engine;
    use plaudit::recipe::Recipe;
    use plaudit::rollout::Rollout;

    fn statistics(texts: impl Iterator<Item = String>) -> Statistics {
        let yaml = "components: { length: { reward: length_penalty, min_length: 50, penalty_rate: 0.1 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let rollouts: Vec<Rollout<'_>> =
            texts.enumerate().map(|(at, text)| Rollout::new(text).in_group((at / 8).to_string())).collect();
        engine.score(&rollouts).unwrap().statistics
    }

    fn invalid(count: usize) -> Statistics {
        let yaml = "components: { math: { reward: math, required: true } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let rollouts: Vec<Rollout<'_>> = (0..count).map(|_| Rollout::new("42")).collect();
        engine.score(&rollouts).unwrap().statistics
    }

    fn codes(alarms: &[Alarm]) -> Vec<&str> {
        alarms.iter().map(|alarm| alarm.code.as_str()).collect()
    }

    #[test]
    fn alarms_are_raised_for_what_is_wrong() {
        let rising = statistics((0..64).map(|at| "x".repeat(1 + at % 8 * 5)));
        assert_eq!(codes(&of(3, &rising, &Before::default())), ["length_hacking"]);
        let equal = statistics((0..64).map(|_| "x".repeat(60)));
        assert_eq!(codes(&of(3, &equal, &Before::default())), ["zero_variance"]);
        let before = Before { totals: Some(&rising.total), judges: Some(("a=1", "a=2")) };
        let alarms = of(3, &equal, &before);
        assert_eq!(codes(&alarms), ["judge_change", "zero_variance", "drift"]);
        assert!(codes(&alarms).iter().all(|code| CODES.contains(code)));
        // A few totals are no other distribution.
        let sparse = Statistics { total: statistics((0..2).map(|_| "x".repeat(60))).total, ..equal.clone() };
        assert_eq!(codes(&of(3, &sparse, &before)), ["judge_change", "zero_variance"]);
        let nothing = invalid(8);
        assert_eq!(codes(&of(3, &nothing, &Before::default())), ["nothing_scored"]);
        assert!(of(3, &nothing, &Before::default())[0].message.contains("mostly input.missing_reference"));
        let few = statistics((0..16).map(|at| "x".repeat(1 + at % 8 * 5)));
        assert!(of(3, &few, &Before::default()).is_empty());
    }
}
