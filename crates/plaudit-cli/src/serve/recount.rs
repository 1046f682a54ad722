//! Counters of a run from its steps, as they are written: for a run whose `run.json` is older than they are, because the service
//! was killed or is still writing.

use super::alarms::Alarm;
use super::kept::{self, About};
use serde::Deserialize;
use std::path::Path;
use std::time::SystemTime;

/// What is counted of a step that is written.
#[derive(Deserialize)]
struct Step {
    statistics: Statistics,
    #[serde(default)]
    alarms: Vec<Alarm>,
}

#[derive(Deserialize)]
struct Statistics {
    rollouts: u64,
    groups: Groups,
    total: Total,
    outcomes: Outcomes,
}

#[derive(Deserialize)]
struct Groups {
    count: u64,
}

#[derive(Deserialize)]
struct Total {
    mean: Option<f64>,
}

#[derive(Deserialize)]
struct Outcomes {
    invalid: u64,
}

/// What a run is with these steps besides, the last of which is its newest.
pub(crate) fn with(mut about: About, steps: &[String]) -> About {
    for Step { statistics, alarms } in steps.iter().filter_map(|step| serde_json::from_str(step).ok()) {
        about.steps = about.steps.saturating_add(1);
        about.rollouts = about.rollouts.saturating_add(statistics.rollouts);
        about.groups = about.groups.saturating_add(statistics.groups.count);
        about.total_mean = statistics.total.mean;
        about.invalid_share = Some(statistics.outcomes.invalid as f64 / statistics.rollouts.max(1) as f64);
        about.alarms = alarms;
    }
    about
}

/// What a run is by the steps in its folder alone.
pub(crate) fn of(about: &About, steps: &[String]) -> About {
    with(About { steps: 0, rollouts: 0, groups: 0, ..about.clone() }, steps)
}

/// The same run, counted anew where its service was killed: steps that were open were not counted yet, and the last that ended may
/// not have been.
pub(crate) fn after_a_crash(about: About, folder: &Path) -> About {
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|about| about.modified()).ok();
    let (steps, run): (Option<SystemTime>, _) = (changed("steps.jsonl"), changed("run.json"));
    let is_open = std::fs::metadata(folder.join("open.json")).is_ok_and(|open| open.len() > 0);
    if !is_open && steps <= run {
        return about;
    }
    let Ok(steps) = kept::steps(folder) else { return about };
    let counted = of(&about, &steps);
    // Of a very long run, not all steps are read.
    About {
        steps: counted.steps.max(about.steps),
        rollouts: counted.rollouts.max(about.rollouts),
        groups: counted.groups.max(about.groups),
        ..counted
    }
}
