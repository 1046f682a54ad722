//! Is something wrong with the rewards of a step? What a person should look at, in a code and in words.

use plaudit::outcome::OutcomeKind;
use plaudit::statistics::Statistics;
use plaudit::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every code there is.
pub(crate) const CODES: [&str; 6] =
    ["invalid", "length_hacking", "zero_variance", "position_bias", "drift", "judge_change"];

/// Below so many rollouts nothing is said.
pub(crate) const ENOUGH: u64 = 32;
/// The share of invalid rollouts from which on it is said.
const INVALID: f64 = 0.02;
/// How closely rewards follow the length of responses inside groups before it is said.
const LENGTH: f64 = 0.5;
/// The share of groups with equal rewards from which on it is said.
const ZERO_VARIANCE: f64 = 0.5;
/// How far from a half the share of verdicts for the first response must surely be.
const POSITION: f64 = 0.1;
/// How far apart the totals of this step and those of the steps before must be: the statistic of Kolmogorov and Smirnov.
const DRIFT: f64 = 0.35;

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Alarm {
    /// What it is: `invalid`, `length_hacking`, `zero_variance`, `position_bias`, `drift` or `judge_change`.
    pub(crate) code: String,
    /// The step in which it shows.
    pub(crate) step: u64,
    /// The number that it shows by.
    pub(crate) value: f64,
    /// In words.
    pub(crate) message: String,
}

/// What was before a step.
#[derive(Debug, Default)]
pub(crate) struct Before<'b> {
    /// The totals of the steps before, newest last.
    pub(crate) totals: Option<&'b Distribution>,
    /// What the judges were, and what they are now.
    pub(crate) judges: Option<(&'b str, &'b str)>,
}

/// What is wrong with a step.
pub(crate) fn of(step: u64, statistics: &Statistics, before: &Before<'_>) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let mut say = |code: &str, value: f64, message: String| {
        alarms.push(Alarm { code: code.to_owned(), step, value, message });
    };
    if let Some((was, is)) = before.judges.filter(|(was, is)| was != is) {
        say("judge_change", 1.0, format!("The judges changed: they were {was:?} and are {is:?}."));
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
        say("invalid", invalid, format!("{:.1} % of the rollouts are invalid{most}.", 100.0 * invalid));
    }
    if let Some(r) = statistics.length_correlation_in_groups.r().filter(|r| *r > LENGTH) {
        say(
            "length_hacking",
            r,
            format!(
                "Inside groups, longer responses get more reward (r = {r:.2}): check for length hacking."
            ),
        );
    }
    if let Some(share) = statistics.groups.zero_variance_share().filter(|share| *share > ZERO_VARIANCE) {
        say(
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
            say("position_bias", first.share, message);
        }
    }
    if let Some(distance) = before.totals.and_then(|totals| totals.distance(&statistics.total))
        && distance > DRIFT
        && before.totals.is_some_and(|totals| totals.moments.count >= ENOUGH)
    {
        let message =
            format!("The totals have moved away from those of the last steps (distance {distance:.2} of 1).");
        say("drift", distance, message);
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

    fn codes(alarms: &[Alarm]) -> Vec<&str> {
        alarms.iter().map(|alarm| alarm.code.as_str()).collect()
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_not_is_not() {
        let rising = statistics((0..64).map(|at| "x".repeat(1 + at % 8 * 5)));
        assert_eq!(codes(&of(3, &rising, &Before::default())), ["length_hacking"]);
        let equal = statistics((0..64).map(|_| "x".repeat(60)));
        assert_eq!(codes(&of(3, &equal, &Before::default())), ["zero_variance"]);
        let before = Before { totals: Some(&rising.total), judges: Some(("a=1", "a=2")) };
        let said = of(3, &equal, &before);
        assert_eq!(codes(&said), ["judge_change", "zero_variance", "drift"]);
        assert!(codes(&said).iter().all(|code| CODES.contains(code)));
        let few = statistics((0..16).map(|at| "x".repeat(1 + at % 8 * 5)));
        assert!(of(3, &few, &Before::default()).is_empty());
    }
}
