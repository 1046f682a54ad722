//! The steps of a run: open ones, ended ones, and ended ones that late rollouts open again, with statistics, usage and alarms.

use super::alarms::{self, Alarm, Before, ENOUGH};
use super::recount;
use super::store::{RunSummary, step_identity, step_number};
use plaudit::engine::Engine;
use plaudit::join::Join;
use plaudit::judge::client::BatchUsage;
use plaudit::outcome::OutcomeKind;
use plaudit::statistics::Statistics;
use plaudit::statistics::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The window of time that is one step where rollouts come without a step, in seconds.
pub(crate) const WINDOW: f64 = 10.0;
/// How long a step stays open for late rollouts after a newer one has begun.
const LATE: Duration = Duration::from_secs(3);
/// How long the newest step stays open while nothing comes.
const QUIET: Duration = Duration::from_secs(600);
/// How many ended steps are cached as JSON lines.
const AT_HAND: usize = 120;
/// How many steps may be open at once. A step whose rollouts are joined has threads of its own.
const MAX_OPEN: usize = 16;
/// How many bytes of ended steps are cached.
const AT_HAND_BYTES: usize = 2 << 20;
/// How many ended steps can be opened again.
const LATELY: usize = 3;
/// With the totals of how many steps those of the next are compared.
const COMPARED: usize = 5;

/// The steps of a run.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) summary: RunSummary,
    pub(crate) open: BTreeMap<u64, OpenStep>,
    /// Ended steps, as JSON lines.
    ended: VecDeque<(u64, Arc<str>)>,
    ended_bytes: usize,
    /// Lines of steps that ended because too many were open, until they are written.
    early: Vec<String>,
    /// The last ended steps, which late rollouts may open again.
    lately: VecDeque<(u64, OpenStep)>,
    /// The totals of the last steps.
    totals: VecDeque<Distribution>,
    pub(crate) touched: Instant,
    /// Whether something has come since the summary was last written.
    pub(crate) fresh: bool,
    /// How many write failures there were at the last tick.
    pub(crate) failures: usize,
    /// Whether its steps are windows of time.
    pub(crate) timed: bool,
    /// The judges before, where they have changed.
    changed: Option<String>,
}

/// A step that has not ended.
#[derive(Debug)]
pub(crate) struct OpenStep {
    from: f64,
    to: f64,
    touched: Instant,
    pub(crate) statistics: Statistics,
    pub(crate) join: Option<Arc<Join>>,
    /// What judges were asked for the batches that are counted in it; its join has a meter of its own.
    usage: Vec<BatchUsage>,
    /// How many of its groups are sampled, and how many because something in them is invalid.
    pub(crate) sampled: usize,
    pub(crate) bad: usize,
    /// Its alarms when it ended.
    alarms: Vec<Alarm>,
}

/// The newest complete step.
#[derive(Debug)]
pub(crate) struct NewestStep {
    pub(crate) step: u64,
    pub(crate) statistics: Statistics,
    pub(crate) alarms: Vec<Alarm>,
}

/// A step. One that was opened again after it had been written is there twice, under the same number.
// Of lines with the same step and beginning, the last counts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StepReply")]
pub(crate) struct StepLine<'s> {
    step: u64,
    /// When its first and its last rollout came, in seconds since 1970.
    from: f64,
    to: f64,
    /// Whether more may come.
    open: bool,
    statistics: &'s Statistics,
    judges: &'s [BatchUsage],
    alarms: Vec<Alarm>,
}

impl OpenStep {
    /// Everything that was scored in it.
    pub(crate) fn all(&self) -> Statistics {
        let mut all = self.statistics.clone();
        if let Some(join) = &self.join {
            all.merge(&join.statistics());
        }
        all
    }

    /// Counts a batch: what was scored, and what judges were asked for it.
    pub(crate) fn add(&mut self, statistics: &Statistics, usage: &[BatchUsage]) {
        self.statistics.merge(statistics);
        merge_usage(&mut self.usage, usage);
    }

    /// Everything that judges were asked in it.
    fn usage(&self) -> Vec<BatchUsage> {
        let mut all = self.usage.clone();
        if let Some(meter) = self.join.as_ref().and_then(|join| join.usage_meter()) {
            merge_usage(&mut all, &meter.usage());
        }
        all
    }

    /// Whether a rollout of it waits for its group.
    pub(crate) fn waits(&self) -> bool {
        self.join.as_ref().is_some_and(|join| join.status().waiting > 0)
    }
}

impl Steps {
    pub(crate) fn new(summary: RunSummary, changed: Option<String>) -> Self {
        Self {
            summary,
            open: BTreeMap::new(),
            ended: VecDeque::new(),
            ended_bytes: 0,
            early: Vec::new(),
            lately: VecDeque::new(),
            totals: VecDeque::new(),
            touched: Instant::now(),
            fresh: true,
            failures: 0,
            timed: false,
            changed,
        }
    }

    /// Caches the line of an ended step.
    pub(crate) fn cache(&mut self, line: &str) {
        let Some(step) = step_number(line) else { return };
        self.ended.retain(|(known, text)| *known != step || step_identity(text) != step_identity(line));
        self.ended.push_back((step, Arc::from(line)));
        self.ended_bytes = self.ended.iter().map(|(_, text)| text.len()).sum();
        while self.ended.len() > AT_HAND || (self.ended_bytes > AT_HAND_BYTES && self.ended.len() > 1) {
            let gone = self.ended.pop_front();
            self.ended_bytes -= gone.map_or(0, |(_, text)| text.len());
        }
    }

    /// Whether a step is open or can be opened; not where the most are open and rollouts wait in each.
    pub(crate) fn has_room(&self, step: u64) -> bool {
        self.open.len() < MAX_OPEN || self.open.contains_key(&step) || self.longest_quiet().is_some()
    }

    /// Of the open steps in which no rollout waits, the one that has been quiet longest.
    fn longest_quiet(&self) -> Option<u64> {
        let quiet = self.open.iter().filter(|(_, open)| !open.waits());
        quiet.min_by_key(|(_, open)| open.touched).map(|(step, _)| *step)
    }

    /// The number of the window of time.
    pub(crate) fn window(&self, now: f64) -> u64 {
        ((now - self.summary.started).max(0.0) / WINDOW) as u64
    }

    /// The open step of that number, which is opened, or opened again where it has just ended.
    pub(crate) fn touch(&mut self, step: u64, now: f64, engine: &Engine) -> &mut OpenStep {
        (self.summary.seen, self.touched, self.fresh) = (now, Instant::now(), true);
        if self.open.len() >= MAX_OPEN
            && !self.open.contains_key(&step)
            && let Some(oldest) = self.longest_quiet()
            && let Some(open) = self.open.remove(&oldest)
        {
            let text = self.end(oldest, open);
            self.early.extend(text);
        }
        if !self.open.contains_key(&step)
            && let Some(at) = self.lately.iter().position(|(known, _)| *known == step)
            && let Some((_, open)) = self.lately.remove(at)
        {
            self.uncount(step, &open);
            self.open.insert(step, open);
        }
        let open = self.open.entry(step).or_insert_with(|| OpenStep {
            from: now,
            to: now,
            touched: Instant::now(),
            statistics: Statistics::of(engine.plan()),
            join: None,
            usage: Vec::new(),
            sampled: 0,
            bad: 0,
            alarms: Vec::new(),
        });
        (open.to, open.touched) = (now, Instant::now());
        open
    }

    fn alarms(&self, step: u64, statistics: &Statistics) -> Vec<Alarm> {
        let mut before: Option<Distribution> = None;
        for totals in &self.totals {
            match &mut before {
                Some(before) => before.merge(totals),
                None => before = Some(totals.clone()),
            }
        }
        let judges = self.changed.as_deref().map(|was| (was, self.summary.fingerprint.as_str()));
        alarms::of(step, statistics, &Before { totals: before.as_ref(), judges })
    }

    fn shown(&self, step: u64, open: &OpenStep, is_open: bool) -> Option<String> {
        let statistics = open.all();
        let alarms = self.alarms(step, &statistics);
        let (from, to, usage) = (open.from, open.to, open.usage());
        let line =
            StepLine { step, from, to, open: is_open, statistics: &statistics, judges: &usage, alarms };
        serde_json::to_string(&line).ok().filter(|_| statistics.rollouts > 0)
    }

    /// The lines of the open steps.
    pub(crate) fn still_open(&self, is_open: bool) -> Vec<String> {
        self.open.iter().filter_map(|(step, open)| self.shown(*step, open, is_open)).collect()
    }

    /// The lines of the steps after a number, and whether there are older ones that are not cached.
    pub(crate) fn after(&self, after: Option<u64>) -> (Vec<String>, bool) {
        let wanted = |step: u64| after.is_none_or(|after| step > after);
        let ended = self.ended.iter().filter(|(step, _)| wanted(*step)).map(|(_, text)| text.to_string());
        let open = self.open.iter().filter(|(step, _)| wanted(**step));
        let open = open.filter_map(|(step, open)| self.shown(*step, open, true));
        let steps = ended.chain(open).collect();
        let more = self.summary.steps as usize > self.ended.len();
        let first = self.ended.front().map(|(first, _)| *first);
        (steps, more && after.is_none_or(|after| first.is_none_or(|first| first > after)))
    }

    /// Ends the steps that are over, or all, and returns their lines.
    pub(crate) fn end_those_over(&mut self, now: f64, all: bool) -> Vec<String> {
        let newest = self.open.keys().next_back().copied();
        let window = self.timed.then(|| self.window(now));
        let is_over = |step: u64, open: &OpenStep| {
            let quiet = open.touched.elapsed();
            let passed = Some(step) != newest || window.is_some_and(|window| step < window) || quiet > QUIET;
            all || (passed && quiet > LATE && !open.waits())
        };
        let over = self.open.iter().filter(|(step, open)| is_over(**step, open)).map(|(step, _)| *step);
        let over: Vec<u64> = over.collect();
        let mut ended = std::mem::take(&mut self.early);
        for step in over {
            let text = self.open.remove(&step).and_then(|open| self.end(step, open));
            ended.extend(text);
        }
        ended
    }

    /// Counts an ended step and returns its line, where it has rollouts.
    fn end(&mut self, step: u64, mut open: OpenStep) -> Option<String> {
        let statistics = open.all();
        let text = self.shown(step, &open, false)?;
        open.alarms = self.alarms(step, &statistics);
        self.summary.alarms.clone_from(&open.alarms);
        self.changed = None;
        count(&mut self.summary, &statistics);
        self.totals.push_back(statistics.total);
        if self.totals.len() > COMPARED {
            self.totals.pop_front();
        }
        self.cache(&text);
        self.lately.push_back((step, open));
        if self.lately.len() > LATELY {
            self.lately.pop_front();
        }
        self.fresh = true;
        Some(text)
    }

    /// Undoes the counts of an ended step.
    fn uncount(&mut self, step: u64, open: &OpenStep) {
        let statistics = open.all();
        self.summary.steps = self.summary.steps.saturating_sub(1);
        self.summary.rollouts = self.summary.rollouts.saturating_sub(statistics.rollouts);
        self.summary.groups = self.summary.groups.saturating_sub(statistics.groups.count);
        self.ended.retain(|(known, _)| *known != step);
    }

    /// The summary of the run, as of now.
    pub(crate) fn summary(&self) -> RunSummary {
        let mut summary = self.summary.clone();
        for (step, open) in &self.open {
            let all = open.all();
            // A few rollouts say nothing yet, so the alarms of the last step stay.
            if all.rollouts >= ENOUGH {
                summary.alarms = self.alarms(*step, &all);
            }
            if all.rollouts > 0 {
                count(&mut summary, &all);
            }
        }
        summary
    }

    /// The newest complete step: one that has ended, or has as many rollouts as the one before it.
    pub(crate) fn newest(&self) -> Option<NewestStep> {
        let lately = self.lately.iter().map(|(step, open)| (*step, open, false));
        let open = self.open.iter().map(|(step, open)| (*step, open, true));
        let mut steps: Vec<(u64, &OpenStep, bool)> = lately.chain(open).collect();
        steps.sort_by_key(|(step, ..)| *step);
        let written =
            self.ended.iter().filter(|(step, _)| steps.first().is_none_or(|(first, ..)| step < first));
        let last = written.max_by_key(|(step, _)| *step);
        let mut before = last.and_then(|(_, text)| recount::figures(text)).map(|figures| figures.rollouts);
        let mut newest = None;
        for (step, open, is_open) in steps {
            let statistics = open.all();
            let rollouts = statistics.rollouts;
            if rollouts > 0 && (!is_open || before.is_none_or(|before| rollouts >= before)) {
                let alarms = if is_open { self.alarms(step, &statistics) } else { open.alarms.clone() };
                newest = Some(NewestStep { step, statistics, alarms });
            }
            before = Some(rollouts);
        }
        newest
    }
}

/// Adds usage of the same judges, in the same order.
fn merge_usage(into: &mut Vec<BatchUsage>, usage: &[BatchUsage]) {
    if into.is_empty() {
        into.extend_from_slice(usage);
    } else {
        into.iter_mut().zip(usage).for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

/// Counts a step, which is the newest, in the summary of its run.
fn count(summary: &mut RunSummary, statistics: &Statistics) {
    let (moments, rollouts) = (&statistics.total.moments, statistics.rollouts);
    let invalid = statistics.outcomes.of(OutcomeKind::Invalid) as f64;
    summary.steps = summary.steps.saturating_add(1);
    summary.rollouts = summary.rollouts.saturating_add(rollouts);
    summary.groups = summary.groups.saturating_add(statistics.groups.count);
    summary.total_mean = (moments.count > 0).then_some(moments.mean);
    summary.invalid_share = (rollouts > 0).then(|| invalid / rollouts as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::recipe::Recipe;
    use plaudit::rollout::Rollout;

    fn summary() -> RunSummary {
        serde_json::from_value(serde_json::json!({
            "id": "i", "name": "n", "owner": "o", "recipe": "r", "started": 100.0, "seen": 100.0, "steps": 0, "rollouts": 0,
            "groups": 0, "total_mean": null, "invalid_share": null, "alarms": [], "fingerprint": "", "components": [], "judges": [],
        }))
        .unwrap()
    }

    #[test]
    fn late_rollouts_open_an_ended_step_again() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let mut steps = Steps::new(summary(), None);
        let score = |steps: &mut Steps, step: u64| {
            let report = engine.score(&[Rollout::new("a"), Rollout::new("b")]).unwrap();
            steps.touch(step, 100.0 + step as f64, &engine).statistics.merge(&report.statistics);
        };
        score(&mut steps, 1);
        score(&mut steps, 2);
        assert_eq!(steps.end_those_over(200.0, true).len(), 2);
        assert_eq!((steps.summary().rollouts, steps.summary().steps), (4, 2));
        score(&mut steps, 1);
        assert_eq!((steps.summary().rollouts, steps.summary().steps), (6, 2));
        let lines = steps.end_those_over(200.0, true);
        assert!(lines[0].contains("\"rollouts\":4"), "{}", lines[0]);
        let (all, older) = steps.after(None);
        assert_eq!((all.len(), older, steps.summary().rollouts), (2, false, 6));
        assert_eq!(steps.after(Some(1)).0.len(), 1);
        assert_eq!((steps.window(100.0), steps.window(125.0)), (0, 2));
    }

    #[test]
    fn open_steps_raise_alarms_with_enough_rollouts() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let mut steps = Steps::new(summary(), None);
        let score = |steps: &mut Steps, step: u64, groups: usize| {
            let pair = |at: usize| {
                [Rollout::new("a").in_group(at.to_string()), Rollout::new("b").in_group(at.to_string())]
            };
            let report = engine.score(&(0..groups).flat_map(pair).collect::<Vec<_>>()).unwrap();
            steps.touch(step, 100.0, &engine).statistics.merge(&report.statistics);
        };
        let newest = |steps: &Steps| steps.newest().map(|newest| (newest.step, newest.alarms.len()));
        assert_eq!(newest(&steps), None);
        score(&mut steps, 1, 8);
        assert_eq!((steps.summary().alarms.len(), newest(&steps)), (0, Some((1, 0))));
        score(&mut steps, 1, 8);
        assert_eq!(steps.summary().alarms[0].code, "zero_variance");
        steps.end_those_over(200.0, true);
        score(&mut steps, 2, 8);
        assert_eq!(
            (steps.summary().alarms[0].step, newest(&steps)),
            (1, Some((1, 1))),
            "step 2 is not complete"
        );
        score(&mut steps, 2, 8);
        assert_eq!((steps.summary().alarms[0].step, newest(&steps)), (2, Some((2, 1))));
    }

    #[test]
    fn open_steps_are_bounded() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let report = engine.score(&[Rollout::new("a")]).unwrap();
        let mut steps = Steps::new(summary(), None);
        let mut lines = 0;
        for step in 0..3000_u64 {
            let step = u64::MAX - step * 7;
            assert!(steps.has_room(step));
            steps.touch(step, 100.0, &engine).statistics.merge(&report.statistics);
            assert!(steps.open.len() <= MAX_OPEN);
            if step % 100 == 0 {
                lines += steps.end_those_over(200.0, false).len();
            }
        }
        lines += steps.end_those_over(200.0, true).len();
        assert_eq!((lines, steps.summary().steps, steps.summary().rollouts), (3000, 3000, 3000));
        assert!(steps.ended_bytes <= AT_HAND_BYTES && steps.ended.len() <= AT_HAND);
    }
}
