//! Judge statistics: consistency of verdicts and results against the reference, as rates with intervals.

use crate::judge::stats::JudgeStats;
use crate::reason::Code;
use crate::rubric::{ItemCounts, ItemStats};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// What a judge's verdicts look like over many groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judging(pub JudgeStats);

/// A share of something, with the interval that it lies in with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ShareReply")]
pub struct Share {
    /// The share.
    pub share: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Of how many.
    pub of: u64,
}

/// Two-sided, 95 %.
const Z: f64 = 1.959_963_984_540_054;

impl Share {
    /// The share `part` of `of`, a draw counting half, in the interval of Wilson, Probable inference (1927); none of
    /// nothing.
    pub fn new(part: f64, of: u64) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let n = of as f64;
        let share = part / n;
        let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        Some(Self { share, low: (centre - half).max(0.0), high: (centre + half).min(1.0), of })
    }
}

impl Judging {
    /// How often the response shown first is the better one, of those that are decided: half, for a judge without a
    /// bias, because sides are balanced.
    pub fn first(&self) -> Option<Share> {
        Share::new(self.0.first as f64, self.0.first + self.0.second)
    }

    /// How often a pair has the same verdict with its sides swapped.
    pub fn swap_agreement(&self) -> Option<Share> {
        Share::new(self.0.agreed as f64, self.0.swapped)
    }

    /// How often two responses tie.
    pub fn ties(&self) -> Option<Share> {
        Share::new(self.0.ties as f64, self.0.first + self.0.second + self.0.ties)
    }

    /// How often the verdicts about a group go round in a circle.
    pub fn cycles(&self) -> Option<Share> {
        Share::new(self.0.cyclic as f64, self.0.circles)
    }

    /// How often a rollout beats the reference.
    pub fn win_rate(&self) -> Option<Share> {
        Share::new(self.0.wins as f64, self.0.wins + self.0.draws + self.0.losses)
    }

    /// How often a rollout beats the reference or equals it.
    pub fn win_and_rate(&self) -> Option<Share> {
        Share::new((self.0.wins + self.0.draws) as f64, self.0.wins + self.0.draws + self.0.losses)
    }

    /// How much the verdicts tell apart, from 0 to 1, in the mean over groups.
    pub fn signal(&self) -> Option<f64> {
        (self.0.estimated > 0).then(|| self.0.signal / self.0.estimated as f64)
    }

    /// How many calls failed in the end.
    pub fn failed(&self) -> u64 {
        self.0.failed.values().sum()
    }
}

/// The verdicts of a component's judge, as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JudgingReply")]
struct JudgingJson<'j> {
    verdicts: u64,
    /// By code.
    #[schemars(with = "BTreeMap<String, u64>")]
    failed: &'j BTreeMap<Code, u64>,
    /// How often what is shown first wins.
    first: Option<Share>,
    ties: Option<Share>,
    /// How often the verdict is the same when the two are swapped.
    swap_agreement: Option<Share>,
    /// In how many groups a beats b, b beats c and c beats a.
    cycles: Option<Share>,
    /// How much the verdicts tell apart, from 0 to 1.
    signal: Option<f64>,
    no_signal_groups: u64,
    /// Against the reference: a draw counts half in the first, and whole in the second.
    win_rate: Option<Share>,
    win_and_rate: Option<Share>,
    duplicates: Option<Share>,
    /// Responses that try to talk to the judge.
    injections: u64,
    /// The items of rubrics, where responses are graded by some.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<ItemsJson<'j>>,
}

/// The items of rubrics.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RubricItemsReply")]
struct ItemsJson<'j> {
    /// All of them together.
    all: ItemJson,
    /// By tag, at most 50.
    tags: BTreeMap<&'j str, ItemJson>,
    /// How many criteria are kept apart, at most 1,000.
    criteria: usize,
    /// How often others were asked about.
    others: u64,
    /// The criteria that several groups share, those first that tell responses apart least, at most 100.
    shared: Vec<CriterionJson<'j>>,
}

/// One criterion.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RubricCriterionReply")]
struct CriterionJson<'j> {
    criterion: &'j str,
    #[serde(flatten)]
    counts: ItemJson,
}

/// What was said of an item, or of several.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RubricItemReply")]
struct ItemJson {
    /// How many responses it was asked about.
    asked: u64,
    /// How many meet it, to how many it does not apply, and how many have no verdict.
    met: u64,
    not_applicable: u64,
    missing: u64,
    /// The share of its answers that say it is met.
    met_share: Option<f64>,
    /// How its answers move with those to the other items inside groups, from -1 to 1; a fault is turned round.
    discrimination: Option<f64>,
    /// The share of groups in which all answers are equal.
    saturation: Option<f64>,
    /// The share of verdicts that came out otherwise when they were asked for once more, by `audit`.
    disagreement: Option<f64>,
}

/// The most criteria that are written.
const MAX_SHARED: usize = 100;

impl<'j> ItemsJson<'j> {
    fn of(items: &'j ItemStats) -> Option<Self> {
        let shared = items.shared().into_iter().take(MAX_SHARED);
        (items.all.asked > 0).then(|| Self {
            all: ItemJson::of(&items.all),
            tags: items.tags.iter().map(|(tag, found)| (tag.as_str(), ItemJson::of(found))).collect(),
            criteria: items.criteria.len(),
            others: items.others(),
            shared: shared
                .map(|(criterion, found)| CriterionJson { criterion, counts: ItemJson::of(found) })
                .collect(),
        })
    }
}

impl ItemJson {
    fn of(found: &ItemCounts) -> Self {
        Self {
            asked: found.asked,
            met: found.met,
            not_applicable: found.not_applicable,
            missing: found.missing,
            met_share: found.met_share(),
            discrimination: found.discrimination(),
            saturation: found.saturation(),
            disagreement: found.disagreement(),
        }
    }
}

json_schema_of!(Judging, JudgingJson<'static>);

impl Serialize for Judging {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let found = &self.0;
        let json = JudgingJson {
            verdicts: found.verdicts,
            failed: &found.failed,
            first: self.first(),
            ties: self.ties(),
            swap_agreement: self.swap_agreement(),
            cycles: self.cycles(),
            signal: self.signal(),
            no_signal_groups: found.gated,
            win_rate: self.win_rate(),
            win_and_rate: self.win_and_rate(),
            duplicates: Share::new(found.duplicates as f64, found.rollouts),
            injections: found.injections,
            items: ItemsJson::of(&found.items),
        };
        json.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_wilson() {
        let share = Share::new(8.0, 10).expect("a share");
        assert!((share.low - 0.490_16).abs() < 1e-4 && (share.high - 0.943_32).abs() < 1e-4, "{share:?}");
        let none = Share::new(0.0, 20).expect("a share");
        assert!(none.low == 0.0 && none.high > 0.1);
        assert_eq!(Share::new(0.0, 0), None);
    }
}
