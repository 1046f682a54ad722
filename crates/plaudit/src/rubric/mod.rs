//! Rubrics: lists of weighted criteria that judges grade responses by, item by item.
//!
//! [`read`] finds the rubric of a row in every shape that data sets publish and makes one normal form of it; [`score`] makes one
//! number of the verdicts about its items, and says how far that number could be from the truth where verdicts are missing.

pub mod check;
pub mod read;
pub mod score;
pub mod statistics;

pub use check::{ItemRemark, check};
pub(crate) use read::in_reference;
pub use read::{RubricError, at, columns, find, from_value, parse_file};
pub use score::{Bounds, ItemVerdict, RubricFormula, ScoreError};
pub use statistics::{ItemCounts, ItemStats};

use serde::Serialize;

/// One criterion of a rubric, in the normal form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// What the judge is asked about, as it is written.
    pub criterion: String,
    /// How much it counts. Below zero it is a fault that costs points where it is met.
    pub weight: f64,
    /// Whether meeting it is bad: its weight is below zero, or its row says that it passes when it is not met.
    pub negative: bool,
    /// The answers to choose from, worst to best; yes and no where there are none.
    pub choices: Option<Vec<String>>,
    /// What it is about, such as `axis:accuracy`.
    pub tags: Vec<String>,
}

/// How many items a call asks about where nothing is said: a quarter of the calls, for what `bench/rubrics.py` measures.
pub const ITEMS_PER_CALL: usize = 4;

/// The answers to an item without choices of its own, worst to best.
pub const YES_NO: [&str; 2] = ["no", "yes"];

impl Item {
    /// The answers that the judge may give, worst to best.
    pub fn answers(&self) -> impl ExactSizeIterator<Item = &str> {
        let own = self.choices.as_deref().unwrap_or(&[]);
        let count = if own.is_empty() { YES_NO.len() } else { own.len() };
        (0..count).map(move |at| own.get(at).map_or_else(|| YES_NO[at], String::as_str))
    }

    /// Whether what the item describes is there altogether.
    pub fn is_met(&self, verdict: ItemVerdict) -> bool {
        verdict == ItemVerdict::Answer(self.answers().len() - 1)
    }

    /// How much of the item an answer earns, from 0 to 1: its credit. One with a weight below zero is not turned round, because its
    /// weight says that already.
    fn earned(&self, answer: usize) -> f64 {
        if self.weight < 0.0 { self.rank(answer) } else { self.credit(answer) }
    }

    /// How good an answer is, from 0 to 1: its rank among the answers, turned round where it is bad to meet the item.
    fn credit(&self, answer: usize) -> f64 {
        if self.negative { 1.0 - self.rank(answer) } else { self.rank(answer) }
    }

    fn rank(&self, answer: usize) -> f64 {
        answer as f64 / (self.answers().len() - 1).max(1) as f64
    }
}
