//! Recounts a run from its step lines, for a `run.json` that is older than they are because the service was killed or still writes.

use super::alarms::Alarm;
use super::store::{self, RunSummary};
use serde_json::Value;
use std::path::Path;
use std::time::SystemTime;

/// What the line of a step adds to the counters of its run.
pub(crate) struct StepFigures {
    pub(crate) rollouts: u64,
    groups: u64,
    total_mean: Option<f64>,
    invalid: u64,
    alarms: Vec<Alarm>,
}

/// Reads the figures of a line; none where it is no step.
pub(crate) fn figures(line: &str) -> Option<StepFigures> {
    let mut step: Value = serde_json::from_str(line).ok()?;
    let alarms = step["alarms"].take();
    let statistics = &step["statistics"];
    Some(StepFigures {
        rollouts: statistics["rollouts"].as_u64()?,
        groups: statistics["groups"]["count"].as_u64()?,
        total_mean: statistics["total"]["mean"].as_f64(),
        invalid: statistics["outcomes"]["invalid"].as_u64()?,
        alarms: serde_json::from_value(alarms).unwrap_or_else(|_| Vec::new()),
    })
}

/// The summary with these steps added, the last of which is the newest.
pub fn with(mut summary: RunSummary, steps: &[String]) -> RunSummary {
    for figures in steps.iter().filter_map(|step| figures(step)) {
        summary.steps = summary.steps.saturating_add(1);
        summary.rollouts = summary.rollouts.saturating_add(figures.rollouts);
        summary.groups = summary.groups.saturating_add(figures.groups);
        summary.total_mean = figures.total_mean;
        summary.invalid_share = Some(figures.invalid as f64 / figures.rollouts.max(1) as f64);
        summary.alarms = figures.alarms;
    }
    summary
}

/// The summary with the counters of these steps alone.
pub fn of(summary: &RunSummary, steps: &[String]) -> RunSummary {
    with(RunSummary { steps: 0, rollouts: 0, groups: 0, ..summary.clone() }, steps)
}

/// The summary, recounted where the service was killed: open steps were not counted, and the last ended ones may not have been.
pub(crate) fn after_crash(summary: RunSummary, folder: &Path) -> RunSummary {
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|file| file.modified()).ok();
    let (steps, run): (Option<SystemTime>, _) = (changed("steps.jsonl"), changed("run.json"));
    let is_open = std::fs::metadata(folder.join("open.json")).is_ok_and(|open| open.len() > 0);
    if !is_open && steps <= run {
        return summary;
    }
    let Ok(steps) = store::steps(folder) else { return summary };
    let counted = of(&summary, &steps);
    // Of a very long run, not all steps are read.
    RunSummary {
        steps: counted.steps.max(summary.steps),
        rollouts: counted.rollouts.max(summary.rollouts),
        groups: counted.groups.max(summary.groups),
        ..counted
    }
}
