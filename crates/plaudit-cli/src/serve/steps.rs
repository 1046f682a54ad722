//! How does a run go from step to step? Steps that are open, those that have ended, and one that is opened again by who is late.

use super::alarms::{self, Alarm, Before, ENOUGH};
use super::kept::{About, number};
use plaudit::engine::Engine;
use plaudit::join::Join;
use plaudit::judge::runner::JudgeUsage;
use plaudit::outcome::OutcomeKind;
use plaudit::statistics::Statistics;
use plaudit::statistics::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what comes without a number of a step is counted together, in seconds.
pub(super) const WINDOW: f64 = 10.0;
/// How long a step stays open after a newer one has come, for those who are late.
const LATE: Duration = Duration::from_secs(3);
/// How long the newest step stays open without anything coming.
const QUIET: Duration = Duration::from_secs(600);
/// How many steps that have ended are at hand as they are written.
const AT_HAND: usize = 120;
/// How many steps may be open at once. Each has threads of its own where rollouts meet in it.
const MOST_OPEN: usize = 16;
/// How many bytes of steps that have ended are at hand.
const AT_HAND_BYTES: usize = 2 << 20;
/// How many steps that have ended can be opened again.
const LATELY: usize = 3;
/// Of how many steps the totals are what the next one's are compared with.
const COMPARED: usize = 5;

/// The steps of a run.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) about: About,
    pub(super) open: BTreeMap<u64, Open>,
    /// Those that have ended, as they are written.
    ended: VecDeque<(u64, Arc<str>)>,
    ended_bytes: usize,
    /// Those that ended because too many were open, until they are written.
    early: Vec<String>,
    /// The last of them, for those who come late.
    lately: VecDeque<(u64, Open)>,
    /// The totals of the last steps.
    totals: VecDeque<Distribution>,
    /// What was asked before any step was open.
    spare: Vec<JudgeUsage>,
    pub(super) touched: Instant,
    /// Whether something has come since it was last written down.
    pub(super) fresh: bool,
    /// How often something could not be written when that was looked at last.
    pub(super) failures: usize,
    /// Whether its steps have no numbers of their own, and are cut by time.
    pub(super) timed: bool,
    /// What the judges were before, where they are others now.
    changed: Option<String>,
}

/// A step that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    from: f64,
    to: f64,
    touched: Instant,
    pub(super) statistics: Statistics,
    pub(super) join: Option<Arc<Join>>,
    accounts: Vec<JudgeUsage>,
    /// How many of its groups are kept, and how many because something in them is invalid.
    pub(super) kept: usize,
    pub(super) bad: usize,
    /// What was wrong with it when it ended.
    alarms: Vec<Alarm>,
}

/// What a step has come to.
#[derive(Debug)]
pub(crate) struct Newest {
    pub(crate) step: u64,
    pub(crate) statistics: Statistics,
    pub(crate) alarms: Vec<Alarm>,
}

/// A step as it is written and shown. Of lines with the same step and beginning, the last counts.
#[derive(Serialize)]
struct Shown<'s> {
    step: u64,
    from: f64,
    to: f64,
    open: bool,
    statistics: &'s Statistics,
    judges: &'s [JudgeUsage],
    alarms: Vec<Alarm>,
}

/// What is counted of a step that was written.
#[derive(Deserialize)]
struct Counted {
    statistics: CountedIn,
}

#[derive(Deserialize)]
struct CountedIn {
    rollouts: u64,
}

impl Open {
    /// Everything that was scored in it.
    pub(super) fn all(&self) -> Statistics {
        let mut all = self.statistics.clone();
        if let Some(join) = &self.join {
            all.merge(&join.statistics());
        }
        all
    }

    /// Whether somebody waits for a group of it.
    pub(super) fn waits(&self) -> bool {
        self.join.as_ref().is_some_and(|join| join.status().waiting > 0)
    }
}

impl Steps {
    pub(super) fn new(about: About, changed: Option<String>) -> Self {
        Self {
            about,
            open: BTreeMap::new(),
            ended: VecDeque::new(),
            ended_bytes: 0,
            early: Vec::new(),
            lately: VecDeque::new(),
            totals: VecDeque::new(),
            spare: Vec::new(),
            touched: Instant::now(),
            fresh: true,
            failures: 0,
            timed: false,
            changed,
        }
    }

    /// Takes up a step that has ended, as it was written.
    pub(super) fn recall(&mut self, line: &str) {
        let Some(step) = number(line) else { return };
        self.ended.retain(|(known, text)| *known != step || identity(text) != identity(line));
        self.ended.push_back((step, Arc::from(line)));
        self.ended_bytes = self.ended.iter().map(|(_, text)| text.len()).sum();
        while self.ended.len() > AT_HAND || (self.ended_bytes > AT_HAND_BYTES && self.ended.len() > 1) {
            let gone = self.ended.pop_front();
            self.ended_bytes -= gone.map_or(0, |(_, text)| text.len());
        }
    }

    /// Whether a step is open or can be opened: not where so many are open that somebody waits in each of them.
    pub(super) fn has_room(&self, step: u64) -> bool {
        self.open.len() < MOST_OPEN || self.open.contains_key(&step) || self.longest_quiet().is_some()
    }

    /// Of the open steps in which nobody waits, the one for which nothing has come for the longest time.
    fn longest_quiet(&self) -> Option<u64> {
        let quiet = self.open.iter().filter(|(_, open)| !open.waits());
        quiet.min_by_key(|(_, open)| open.touched).map(|(step, _)| *step)
    }

    /// The number of the time that something came at.
    pub(super) fn window(&self, now: f64) -> u64 {
        ((now - self.about.started).max(0.0) / WINDOW) as u64
    }

    /// The step of that number, which is opened where it is not, and opened again where it has just ended.
    pub(super) fn touch(&mut self, step: u64, now: f64, engine: &Engine) -> &mut Open {
        (self.about.seen, self.touched, self.fresh) = (now, Instant::now(), true);
        if self.open.len() >= MOST_OPEN
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
        let spare = &mut self.spare;
        let open = self.open.entry(step).or_insert_with(|| Open {
            from: now,
            to: now,
            touched: Instant::now(),
            statistics: Statistics::of(engine.plan()),
            join: None,
            accounts: std::mem::take(spare),
            kept: 0,
            bad: 0,
            alarms: Vec::new(),
        });
        (open.to, open.touched) = (now, Instant::now());
        open
    }

    /// Takes in what judges were asked.
    pub(super) fn absorb(&mut self, accounts: &[JudgeUsage]) {
        let into = self.open.values_mut().next_back().map_or(&mut self.spare, |open| &mut open.accounts);
        if into.is_empty() {
            into.extend_from_slice(accounts);
        } else {
            into.iter_mut().zip(accounts).for_each(|(ours, theirs)| ours.merge(theirs));
        }
    }

    fn alarms(&self, step: u64, statistics: &Statistics) -> Vec<Alarm> {
        let mut before: Option<Distribution> = None;
        for totals in &self.totals {
            match &mut before {
                Some(before) => before.merge(totals),
                None => before = Some(totals.clone()),
            }
        }
        let judges = self.changed.as_deref().map(|was| (was, self.about.fingerprint.as_str()));
        alarms::of(step, statistics, &Before { totals: before.as_ref(), judges })
    }

    fn shown(&self, step: u64, open: &Open, is_open: bool) -> Option<String> {
        let statistics = open.all();
        let alarms = self.alarms(step, &statistics);
        let (from, to, judges) = (open.from, open.to, open.accounts.as_slice());
        let shown = Shown { step, from, to, open: is_open, statistics: &statistics, judges, alarms };
        serde_json::to_string(&shown).ok().filter(|_| statistics.rollouts > 0)
    }

    /// The steps that are open, as they are written.
    pub(super) fn still_open(&self, is_open: bool) -> Vec<String> {
        self.open.iter().filter_map(|(step, open)| self.shown(*step, open, is_open)).collect()
    }

    /// The steps after a number, and whether there are older ones that are not at hand.
    pub(super) fn after(&self, after: Option<u64>) -> (Vec<String>, bool) {
        let wanted = |step: u64| after.is_none_or(|after| step > after);
        let ended = self.ended.iter().filter(|(step, _)| wanted(*step)).map(|(_, text)| text.to_string());
        let open = self.open.iter().filter(|(step, _)| wanted(**step));
        let open = open.filter_map(|(step, open)| self.shown(*step, open, true));
        let steps = ended.chain(open).collect();
        let more = self.about.steps as usize > self.ended.len();
        let first = self.ended.front().map(|(first, _)| *first);
        (steps, more && after.is_none_or(|after| first.is_none_or(|first| first > after)))
    }

    /// Ends the steps that are over, or all; what they are written as.
    pub(super) fn end_those_over(&mut self, now: f64, all: bool) -> Vec<String> {
        let newest = self.open.keys().next_back().copied();
        let window = self.timed.then(|| self.window(now));
        let is_over = |step: u64, open: &Open| {
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

    /// Counts a step that is over; what it is written as, where there is anything in it.
    fn end(&mut self, step: u64, mut open: Open) -> Option<String> {
        let statistics = open.all();
        let text = self.shown(step, &open, false)?;
        open.alarms = self.alarms(step, &statistics);
        self.about.alarms.clone_from(&open.alarms);
        self.changed = None;
        self.about.steps = self.about.steps.saturating_add(1);
        self.about.rollouts = self.about.rollouts.saturating_add(statistics.rollouts);
        self.about.groups = self.about.groups.saturating_add(statistics.groups.count);
        (self.about.total_mean, self.about.invalid_share) = figures(&statistics);
        self.totals.push_back(statistics.total);
        if self.totals.len() > COMPARED {
            self.totals.pop_front();
        }
        self.recall(&text);
        self.lately.push_back((step, open));
        if self.lately.len() > LATELY {
            self.lately.pop_front();
        }
        self.fresh = true;
        Some(text)
    }

    /// Takes back that a step has ended.
    fn uncount(&mut self, step: u64, open: &Open) {
        let statistics = open.all();
        self.about.steps = self.about.steps.saturating_sub(1);
        self.about.rollouts = self.about.rollouts.saturating_sub(statistics.rollouts);
        self.about.groups = self.about.groups.saturating_sub(statistics.groups.count);
        self.ended.retain(|(known, _)| *known != step);
    }

    /// What the run is, as of now.
    pub(super) fn about(&self) -> About {
        let mut about = self.about.clone();
        for (step, open) in &self.open {
            let all = open.all();
            // Of a few rollouts nothing can be said yet, and what was wrong with the last step stays.
            if all.rollouts >= ENOUGH {
                about.alarms = self.alarms(*step, &all);
            }
            if all.rollouts > 0 {
                about.steps = about.steps.saturating_add(1);
                about.rollouts = about.rollouts.saturating_add(all.rollouts);
                about.groups = about.groups.saturating_add(all.groups.count);
                (about.total_mean, about.invalid_share) = figures(&all);
            }
        }
        about
    }

    /// The newest step that is complete: that has ended, or has as many rollouts as the one before it.
    pub(super) fn newest(&self) -> Option<Newest> {
        let lately = self.lately.iter().map(|(step, open)| (*step, open, false));
        let open = self.open.iter().map(|(step, open)| (*step, open, true));
        let mut steps: Vec<(u64, &Open, bool)> = lately.chain(open).collect();
        steps.sort_by_key(|(step, ..)| *step);
        let written =
            self.ended.iter().filter(|(step, _)| steps.first().is_none_or(|(first, ..)| step < first));
        let mut before = written.max_by_key(|(step, _)| *step).and_then(|(_, text)| counted(text));
        let mut newest = None;
        for (step, open, is_open) in steps {
            let statistics = open.all();
            let rollouts = statistics.rollouts;
            if rollouts > 0 && (!is_open || before.is_none_or(|before| rollouts >= before)) {
                let alarms = if is_open { self.alarms(step, &statistics) } else { open.alarms.clone() };
                newest = Some(Newest { step, statistics, alarms });
            }
            before = Some(rollouts);
        }
        newest
    }
}

/// How many rollouts a step has, as it is written.
fn counted(line: &str) -> Option<u64> {
    serde_json::from_str(line).ok().map(|counted: Counted| counted.statistics.rollouts)
}

/// The mean total and the share of invalid rollouts.
fn figures(statistics: &Statistics) -> (Option<f64>, Option<f64>) {
    let moments = &statistics.total.moments;
    let invalid = statistics.outcomes.of(OutcomeKind::Invalid) as f64;
    let share = (statistics.rollouts > 0).then(|| invalid / statistics.rollouts as f64);
    ((moments.count > 0).then_some(moments.mean), share)
}

/// What makes two lines the same step: its number and when it began.
pub(crate) fn identity(line: &str) -> &str {
    line.split_once(",\"to\":").map_or(line, |(identity, _)| identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plaudit::recipe::Recipe;
    use plaudit::rollout::Rollout;

    fn about() -> About {
        serde_json::from_value(serde_json::json!({
            "id": "i", "name": "n", "owner": "o", "recipe": "r", "started": 100.0, "seen": 100.0, "steps": 0, "rollouts": 0,
            "groups": 0, "total_mean": null, "invalid_share": null, "alarms": [], "fingerprint": "", "components": [], "judges": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_step_that_has_ended_is_opened_again_by_who_is_late_and_counts_once() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let mut steps = Steps::new(about(), None);
        let score = |steps: &mut Steps, step: u64| {
            let report = engine.score(&[Rollout::new("a"), Rollout::new("b")]).unwrap();
            steps.touch(step, 100.0 + step as f64, &engine).statistics.merge(&report.statistics);
        };
        score(&mut steps, 1);
        score(&mut steps, 2);
        assert_eq!(steps.end_those_over(200.0, true).len(), 2);
        assert_eq!((steps.about().rollouts, steps.about().steps), (4, 2));
        score(&mut steps, 1);
        assert_eq!((steps.about().rollouts, steps.about().steps), (6, 2));
        let lines = steps.end_those_over(200.0, true);
        assert!(lines[0].contains("\"rollouts\":4"), "{}", lines[0]);
        let (all, older) = steps.after(None);
        assert_eq!((all.len(), older, steps.about().rollouts), (2, false, 6));
        assert_eq!(steps.after(Some(1)).0.len(), 1);
        assert_eq!((steps.window(100.0), steps.window(125.0)), (0, 2));
    }

    #[test]
    fn what_is_wrong_with_an_open_step_is_said_once_it_has_enough_rollouts() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let mut steps = Steps::new(about(), None);
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
        assert_eq!((steps.about().alarms.len(), newest(&steps)), (0, Some((1, 0))));
        score(&mut steps, 1, 8);
        assert_eq!(steps.about().alarms[0].code, "zero_variance");
        steps.end_those_over(200.0, true);
        score(&mut steps, 2, 8);
        assert_eq!(
            (steps.about().alarms[0].step, newest(&steps)),
            (1, Some((1, 1))),
            "step 2 is not complete"
        );
        score(&mut steps, 2, 8);
        assert_eq!((steps.about().alarms[0].step, newest(&steps)), (2, Some((2, 1))));
    }

    #[test]
    fn a_client_that_names_another_step_every_time_does_not_fill_the_memory() {
        let yaml = "components: { length: { reward: length_penalty, min_length: 4, penalty_rate: 1.0 } }\n";
        let engine = Engine::new(Recipe::from_yaml(yaml).unwrap().plan().unwrap()).unwrap();
        let report = engine.score(&[Rollout::new("a")]).unwrap();
        let mut steps = Steps::new(about(), None);
        let mut lines = 0;
        for step in 0..3000_u64 {
            let step = u64::MAX - step * 7;
            assert!(steps.has_room(step));
            steps.touch(step, 100.0, &engine).statistics.merge(&report.statistics);
            assert!(steps.open.len() <= MOST_OPEN);
            if step % 100 == 0 {
                lines += steps.end_those_over(200.0, false).len();
            }
        }
        lines += steps.end_those_over(200.0, true).len();
        assert_eq!((lines, steps.about().steps, steps.about().rollouts), (3000, 3000, 3000));
        assert!(steps.ended_bytes <= AT_HAND_BYTES && steps.ended.len() <= AT_HAND);
    }
}
