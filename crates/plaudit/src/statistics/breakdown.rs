//! Statistics broken down by a field, such as the step or the data set.

use super::Statistics;
use crate::report::Report;
use crate::rollout::Rollout;
use serde::Serialize;

/// The most values that are told apart; what comes after is counted together under [`OTHERS`].
const MAX_VALUES: usize = 1024;
/// The name of what comes after the most values.
const OTHERS: &str = "others";
/// The name of rollouts that do not have the field.
const NONE: &str = "none";

/// Statistics by the value of a field of `extra`.
#[derive(Debug)]
pub struct Breakdown {
    path: Vec<String>,
    parts: Vec<(String, Statistics)>,
    found: bool,
}

/// The rollouts of one value.
#[derive(Debug, Serialize)]
pub struct BreakdownPart<'b> {
    /// The value of the field.
    pub value: &'b str,
    /// How far the totals are from those of the part before: 0 for the same spread, 1 for none in common. Steps of a
    /// training drift where this rises.
    pub drift: Option<f64>,
    /// Over the rollouts of this value.
    pub statistics: &'b Statistics,
}

impl Breakdown {
    /// By a field such as `step` or `data.source`.
    pub fn by(field: &str) -> Self {
        Self { path: field.split('.').map(str::to_owned).collect(), parts: Vec::new(), found: false }
    }

    /// Whether some rollout has the field.
    pub fn is_found(&self) -> bool {
        self.found
    }

    /// Takes a report in. A group counts for the value of its first member.
    pub fn observe(&mut self, report: &Report, rollouts: &[Rollout<'_>]) {
        for (row, rollout) in report.rows.iter().zip(rollouts) {
            self.of(report, rollout).observe(&report.plan, row, rollout.tokens);
        }
        for group in &report.groups {
            let first = group.members.first().map(|place| &rollouts[*place]);
            if let Some(first) = first {
                self.of(report, first).observe_group(group.members.iter().map(|place| &report.rows[*place]));
            }
        }
    }

    fn of(&mut self, report: &Report, rollout: &Rollout<'_>) -> &mut Statistics {
        let value = rollout.field(&self.path);
        self.found |= value.is_some();
        let value = value.as_deref().unwrap_or(NONE);
        // Rollouts of one value mostly follow one another.
        let known = self.parts.iter().rposition(|(known, _)| known == value);
        let full = self.parts.len() >= MAX_VALUES;
        let place = known.or_else(|| {
            let others = || self.parts.iter().position(|(known, _)| known == OTHERS);
            if full { others() } else { None }
        });
        let place = place.unwrap_or_else(|| {
            let name = if full { OTHERS } else { value };
            self.parts.push((name.to_owned(), Statistics::of(&report.plan)));
            self.parts.len() - 1
        });
        &mut self.parts[place].1
    }

    /// The parts: by number where all values are numbers, as steps are, and else in the order of their coming.
    pub fn parts(&self) -> Vec<BreakdownPart<'_>> {
        let mut parts: Vec<&(String, Statistics)> = self.parts.iter().collect();
        let number =
            |part: &(String, Statistics)| part.0.parse::<f64>().ok().filter(|number| number.is_finite());
        if parts.iter().all(|part| number(part).is_some()) {
            parts.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal));
        }
        let mut before: Option<&Statistics> = None;
        parts
            .into_iter()
            .map(|(value, statistics)| {
                let drift = before.and_then(|before| statistics.total.distance(&before.total));
                before = Some(statistics);
                BreakdownPart { value, drift, statistics }
            })
            .collect()
    }
}
