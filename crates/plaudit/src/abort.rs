//! When a run in which nothing can be scored ends: the setting `abort_after`, and the counter behind it.
//!
//! A run ends at once where nothing of its first steps could be scored and no reason can heal by itself
//! ([`Code::can_heal`]), and after `abort_after` steps in a row without one valid rollout where one can.

use crate::input::{likely_reference, some_names};
use crate::outcome::OutcomeKind;
use crate::reason::Code;
use crate::statistics::Counts;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The word for a run that goes on whatever happens.
const NEVER: &str = "never";

/// The setting `abort_after`: how many steps in a row without one valid rollout end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortAfter {
    /// So many, at least one.
    Steps(u32),
    /// The run goes on.
    Never,
}

/// The number of steps where nothing is said.
pub const DEFAULT: u32 = 10;

impl Default for AbortAfter {
    fn default() -> Self {
        Self::Steps(DEFAULT)
    }
}

impl AbortAfter {
    /// The same for what cannot heal, and no limit for what can.
    #[must_use]
    pub fn patient(self) -> Self {
        match self {
            Self::Steps(_) => Self::Steps(u32::MAX),
            Self::Never => Self::Never,
        }
    }
}

impl FromStr for AbortAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == NEVER => Ok(Self::Never),
            Ok(steps) if steps > 0 => Ok(Self::Steps(steps)),
            _ => Err(format!("a whole number from 1 is wanted, or {NEVER}, not {text:?}")),
        }
    }
}

impl fmt::Display for AbortAfter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(steps) => write!(out, "{steps}"),
            Self::Never => out.write_str(NEVER),
        }
    }
}

impl Serialize for AbortAfter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Steps(steps) => to.serialize_u32(*steps),
            Self::Never => to.serialize_str(NEVER),
        }
    }
}

impl<'de> Deserialize<'de> for AbortAfter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(from)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for AbortAfter {
    fn schema_name() -> Cow<'static, str> {
        "AbortAfter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of steps, or `never`.",
            "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "enum": [NEVER] }],
        })
    }
}

/// Why rollouts have no total: a code, what it says, and how many there are.
pub type Failure<'f> = (&'f str, Cow<'f, str>, u64);

/// Why a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// How many steps in a row had no valid rollout.
    pub steps: u32,
    /// The most frequent reason.
    pub code: String,
    /// What it says.
    pub message: String,
    /// Whether it may go away by itself.
    pub can_heal: bool,
}

impl fmt::Display for Abort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, code, message, can_heal } = self;
        match (can_heal, steps) {
            (false, _) => write!(out, "no rollout can be scored, and this does not heal by itself")?,
            (true, 1) => write!(out, "no rollout of a step could be scored")?,
            (true, steps) => write!(out, "no rollout could be scored for {steps} steps in a row")?,
        }
        write!(out, ": {code}: {message}")
    }
}

impl Abort {
    /// What the rows have, where something of them is missing. `rename` is how `COLUMN` is made the reference.
    pub fn advice<'n>(
        &self,
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
        rename: &str,
    ) -> Option<String> {
        let is_missing =
            self.code.starts_with("input.missing_") || self.code == Code::EmptyReference.as_str();
        if !is_missing || names.len() == 0 {
            return None;
        }
        let has = format!("the rows have {}", some_names(names.clone()));
        let of_reference = [Code::MissingReference, Code::EmptyReference].map(Code::as_str);
        Some(match of_reference.contains(&&*self.code) {
            true => {
                format!("{has}: {}", rename.replace("COLUMN", likely_reference(names).unwrap_or("COLUMN")))
            }
            false => has,
        })
    }
}

/// Counts the steps of a run that have no valid rollout.
#[derive(Debug, Clone)]
pub struct AbortCounter {
    after: AbortAfter,
    had_scored: bool,
    steps: u32,
}

impl AbortCounter {
    /// A run that begins.
    pub fn new(after: AbortAfter) -> Self {
        Self { after, had_scored: false, steps: 0 }
    }

    /// Counts a step: whether any of its rollouts was scored, and why others have no total. Says whether the run is to end. A step
    /// whose rollouts are all floored is the model's own doing, and does not count.
    pub fn observe<'f>(
        &mut self,
        any_scored: bool,
        failures: impl IntoIterator<Item = Failure<'f>>,
    ) -> Option<Abort> {
        if any_scored {
            (self.had_scored, self.steps) = (true, 0);
            return None;
        }
        let failures: Vec<Failure<'f>> = failures.into_iter().collect();
        let AbortAfter::Steps(most) = self.after else { return None };
        // Of equally frequent ones the first, so that the sentence does not depend on anything else.
        let (code, message, _) = failures.iter().rev().max_by_key(|(.., count)| *count)?;
        self.steps = self.steps.saturating_add(1);
        let can_heal = self.had_scored || failures.iter().any(|(code, ..)| may_heal(code));
        let abort = || Abort {
            steps: self.steps,
            code: (*code).to_owned(),
            message: message.trim().to_owned(),
            can_heal,
        };
        (!can_heal || self.steps >= most).then(abort)
    }

    /// The same for counted outcomes; nothing where there are none.
    pub fn observe_counts(&mut self, counts: &Counts) -> Option<Abort> {
        self.observe(counts.has_scored(), failures(counts))
    }
}

/// Why a file cannot be scored at all: none of its rollouts has a total, all for one reason, which cannot heal.
pub fn hopeless(counts: &Counts) -> Option<Abort> {
    let all: Vec<Failure<'_>> = failures(counts).collect();
    let [(_, _, count)] = all.as_slice() else { return None };
    let is_same = *count + counts.of(OutcomeKind::Floored) == counts.all();
    AbortCounter::new(AbortAfter::default().patient()).observe(counts.has_scored() || !is_same, all)
}

fn failures(counts: &Counts) -> impl Iterator<Item = Failure<'static>> {
    let failed = |kind: OutcomeKind| matches!(kind, OutcomeKind::Invalid | OutcomeKind::Skipped);
    let reasons = counts.reasons().filter(move |(kind, ..)| failed(*kind));
    reasons.map(|(_, code, count)| (code.as_str(), code.meaning().into(), count))
}

/// A code that is not in the list comes from outside the engine, as where a service cannot be reached.
fn may_heal(code: &str) -> bool {
    Code::parse(code).is_none_or(Code::can_heal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: &'static str) -> [Failure<'static>; 1] {
        [(code, code.into(), 8)]
    }

    #[test]
    fn ends_at_once_for_what_cannot_heal() {
        let mut counter = AbortCounter::new(AbortAfter::default());
        let abort = counter.observe(false, failed("input.missing_reference")).unwrap();
        assert!(!abort.can_heal && abort.to_string().contains("does not heal by itself: input.missing_"));
        let mixed = [("input.missing_reference", "".into(), 8), ("judge.connect", "".into(), 1)];
        assert_eq!(AbortCounter::new(AbortAfter::default()).observe(false, mixed), None);
    }

    #[test]
    fn ends_after_steps_in_a_row_for_what_can_heal() {
        let mut counter = AbortCounter::new(AbortAfter::Steps(3));
        for code in ["judge.connect", "engine.unreachable"] {
            assert_eq!(counter.observe(false, failed(code)), None);
        }
        let abort = counter.observe(false, failed("judge.connect")).unwrap();
        assert_eq!(
            abort.to_string(),
            "no rollout could be scored for 3 steps in a row: judge.connect: judge.connect"
        );
        assert_eq!(counter.observe(true, failed("judge.connect")), None);
        // What was scored once is not a wrong column, so that it gets the same patience.
        for _ in 0..2 {
            assert_eq!(counter.observe(false, failed("input.missing_reference")), None);
        }
        assert!(counter.observe(false, failed("input.missing_reference")).unwrap().can_heal);
    }

    #[test]
    fn never_goes_on_and_empty_steps_do_not_count() {
        let mut counter = AbortCounter::new(AbortAfter::Never);
        assert!((0..100).all(|_| counter.observe(false, failed("reward.failed")).is_none()));
        let mut counter = AbortCounter::new(AbortAfter::Steps(1));
        assert_eq!(counter.observe(false, []), None, "all of it floored");
        assert_eq!(counter.observe(false, failed("judge.dns")).unwrap().steps, 1);
    }

    #[test]
    fn advice_names_the_columns_and_the_likely_reference() {
        let abort = |code| AbortCounter::new(AbortAfter::Steps(1)).observe(false, failed(code)).unwrap();
        let advice = |code, names: &[&'static str]| {
            abort(code).advice(names.iter().copied(), "--field reference=COLUMN")
        };
        let told = |text: &str| Some(text.to_owned());
        let missing = "input.missing_reference";
        assert_eq!(
            advice(missing, &["gold", "level"]),
            told("the rows have \"gold\", \"level\": --field reference=gold")
        );
        assert_eq!(advice(missing, &["level"]), told("the rows have \"level\": --field reference=COLUMN"));
        assert_eq!(advice("input.missing_tests", &["gold"]), told("the rows have \"gold\""));
        assert_eq!(advice(missing, &[]), None);
        assert_eq!(advice("judge.connect", &["gold"]), None);
    }

    #[test]
    fn setting_is_a_number_or_never() {
        for (text, after) in [("never", AbortAfter::Never), ("7", AbortAfter::Steps(7))] {
            assert_eq!(text.parse(), Ok(after));
            assert_eq!(serde_json::from_value::<AbortAfter>(serde_json::json!(after)).unwrap(), after);
            assert_eq!(after.to_string(), text);
        }
        for wrong in ["0", "-1", "Never", "1.5", ""] {
            assert!(wrong.parse::<AbortAfter>().is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<AbortAfter>("null").is_err());
    }
}
