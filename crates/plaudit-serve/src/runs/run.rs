//! A live run: the engine of one training, the joins where its rollouts meet, its steps, and the sampling of groups.

use super::abort::{self, RunAbort};
use super::sample::GroupSnapshot;
use super::steps::{NewestStep, OpenStep, Steps};
use super::store::{self, RunSummary, RunWriter};
use crate::admission::Load;
use crate::compat::implicit_groups::ImplicitGroups;
use crate::config::Keep;
use crate::http::response::ApiError;
use crate::unix_time;
use plaudit::abort::AbortAfter;
use plaudit::engine::{Engine, ScoreOptions};
use plaudit::exec::lock;
use plaudit::join::{Join, Observer, Policy};
use plaudit::judge::client::UsageMeter;
use plaudit::outcome::OutcomeKind;
use plaudit::report::{Report, Row};
use plaudit::rollout::Rollout;
use plaudit::statistics::Counts;
use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// How many further groups of a step are sampled because something in them is invalid.
const BAD: usize = 8;
/// How many bytes of scored groups the first join remembers for late members, and how many any join may at least.
const REMEMBERED: usize = 64 << 20;
const REMEMBERED_AT_LEAST: usize = 256 << 10;
/// How many bytes of stored steps are read when a run is opened again.
const REOPENED: u64 = 4 << 20;

/// A training that is being scored for.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: Arc<str>,
    pub(crate) engine: Arc<Engine>,
    /// Derives judge calls from the journal for sampled groups, where there are judges.
    replay: Option<Arc<Engine>>,
    pub(crate) load: Arc<Load>,
    /// Its rollouts that wait for their groups.
    pub(crate) joining: Arc<Load>,
    /// The bytes of both.
    pub(crate) texts: Arc<Load>,
    /// Groups for clients that name none.
    implicit_groups: Mutex<ImplicitGroups>,
    folder: PathBuf,
    writer: RunWriter,
    keep: Keep,
    join_limits: Arc<JoinLimits>,
    steps: Mutex<Steps>,
    abort: Mutex<RunAbort>,
    /// The join for rollouts without a step, and how often its results have been counted.
    stepless: Mutex<(Option<Arc<Join>>, u64)>,
    /// Itself, for the observers of its joins.
    me: Weak<Self>,
}

/// Memory limits of the joins of all runs together.
#[derive(Debug)]
pub(crate) struct JoinLimits {
    /// How many rollouts may wait in one join.
    most_waiting: usize,
    /// Every join holds a clone, so that they can be counted.
    open: Arc<()>,
}

impl JoinLimits {
    pub(crate) fn new(most_waiting: usize) -> Self {
        Self { most_waiting, open: Arc::new(()) }
    }

    /// How many bytes a new join may remember: the more joins there are, the fewer.
    fn remembered(&self) -> usize {
        (REMEMBERED / (Arc::strong_count(&self.open) - 1).max(1)).max(REMEMBERED_AT_LEAST)
    }
}

/// The longest name of a run.
const MAX_NAME: usize = 128;
/// The last step that a run may have: beyond it, a program whose numbers are all floating-point cannot tell steps apart.
pub(crate) const LAST_STEP: u64 = (1 << 53) - 1;

/// Whether a run may be called that.
pub(crate) fn check_name(name: &str) -> Result<(), ApiError> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let message = format!("run: a name of 1 to {MAX_NAME} bytes without control characters is wanted");
        return Err(ApiError::bad_request("run.name", message));
    }
    Ok(())
}

/// Whether a step may have that number: one that every client can read as it is.
pub(crate) fn check_step(step: Option<u64>) -> Result<(), ApiError> {
    match step {
        Some(step) if step > LAST_STEP => {
            Err(ApiError::bad_request("run.step", format!("step: a number from 0 to {LAST_STEP} is wanted")))
        }
        _ => Ok(()),
    }
}

/// Stored steps of a run that is opened again.
#[derive(Debug)]
pub(crate) struct LeftoverSteps {
    ended: Vec<String>,
    /// Those that had not ended when the service was killed.
    cut: Vec<String>,
    /// The number of the next group: the last groups may have been written after the last `run.json`.
    next_group: u64,
}

impl LeftoverSteps {
    /// Reads the newest steps of a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let (ended, cut) = store::newest_steps(folder, REOPENED);
        let groups =
            store::newest_lines(&folder.join("groups.jsonl"), REOPENED).unwrap_or_else(|_| Vec::new());
        let next_group = groups.iter().filter_map(|line| store::group_number(line)).max();
        Self { ended, cut, next_group: next_group.map_or(0, |last| last.saturating_add(1)) }
    }
}

impl Run {
    pub(crate) fn new(
        summary: RunSummary,
        (engine, replay): (Engine, Option<Engine>),
        (folder, writer, keep): (PathBuf, RunWriter, Keep),
        (join_limits, abort_after): (Arc<JoinLimits>, AbortAfter),
        changed: Option<String>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            id: Arc::from(summary.id.as_str()),
            engine: Arc::new(engine),
            replay: replay.map(Arc::new),
            load: Arc::new(Load::default()),
            joining: Arc::new(Load::default()),
            texts: Arc::new(Load::default()),
            implicit_groups: Mutex::new(ImplicitGroups::default()),
            folder,
            writer,
            keep,
            join_limits,
            steps: Mutex::new(Steps::new(summary, changed)),
            abort: Mutex::new(RunAbort::new(abort_after)),
            stepless: Mutex::new((None, 0)),
            me: Weak::clone(me),
        })
    }

    pub(crate) fn implicit_groups(&self) -> MutexGuard<'_, ImplicitGroups> {
        lock(&self.implicit_groups)
    }

    /// Its summary, as of now.
    pub(crate) fn summary(&self) -> RunSummary {
        self.count_stepless();
        lock(&self.steps).summary()
    }

    /// Its summary, and its newest complete step.
    pub(crate) fn newest_step(&self) -> (RunSummary, Option<NewestStep>) {
        self.count_stepless();
        let state = lock(&self.steps);
        (state.summary.clone(), state.newest())
    }

    /// Takes in stored steps: those that were open end now. All of them are counted in the summary.
    pub(crate) fn reopen(&self, leftover: LeftoverSteps) {
        let mut state = lock(&self.steps);
        for line in leftover.ended.iter().chain(&leftover.cut) {
            state.cache(line);
        }
        state.summary.next_group = state.summary.next_group.max(leftover.next_group);
        drop(state);
        for line in leftover.cut {
            self.writer.append(self.folder.join("steps.jsonl"), line);
        }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// For how long nothing has come.
    pub(crate) fn idle(&self) -> Duration {
        let waits = lock(&self.stepless).0.as_ref().is_some_and(|join| join.status().waiting > 0);
        let state = lock(&self.steps);
        if waits || self.load.rollouts() > 0 || state.open.values().any(OpenStep::waits) {
            return Duration::ZERO;
        }
        state.touched.elapsed()
    }

    /// Opens the step that a request belongs to: the given one, or the current window of time.
    pub(crate) fn begin(&self, given: Option<u64>) -> Result<u64, ApiError> {
        let mut state = lock(&self.steps);
        let now = unix_time();
        let step = given.unwrap_or_else(|| state.window(now));
        if !state.has_room(step) {
            let message = "too many steps of this run are open, and rollouts of each wait for their groups";
            return Err(ApiError::busy("run.too_many_steps", message, 5));
        }
        state.timed = given.is_none();
        // Opened before scoring, so that it shows as the one that is under way.
        state.touch(step, now, &self.engine);
        Ok(step)
    }

    /// Refuses the answer to a request where nothing of its run can be scored.
    pub(crate) fn check_abort(
        &self,
        step: Option<u64>,
        outcomes: &Counts,
        rows: &[Row],
        rollout: Option<&Rollout<'_>>,
    ) -> Result<(), ApiError> {
        match lock(&self.abort).observe(step, unix_time(), outcomes) {
            Some(ending) => Err(abort::refusal(ending, rows, rollout)),
            None => Ok(()),
        }
    }

    /// Whether what cannot be scored ends.
    pub(crate) fn may_abort(&self) -> bool {
        lock(&self.abort).is_on()
    }

    /// Counts a report with what judges were asked for it, as the options of its call say, and samples its groups.
    pub(crate) fn observe<R: Borrow<Rollout<'static>>>(
        &self,
        step: u64,
        rollouts: &[R],
        report: &Report,
        options: &ScoreOptions,
    ) {
        let usage = options.usage.as_ref().map_or_else(Vec::new, |meter| meter.usage());
        lock(&self.steps).touch(step, unix_time(), &self.engine).add(&report.statistics, &usage);
        self.sample(step, rollouts, report, options);
    }

    /// Samples some of the groups for the dashboard.
    fn sample<R: Borrow<Rollout<'static>>>(
        &self,
        step: u64,
        rollouts: &[R],
        report: &Report,
        options: &ScoreOptions,
    ) {
        let mut chosen = Vec::new();
        let mut state = lock(&self.steps);
        let mut next = state.summary.next_group;
        let open = state.touch(step, unix_time(), &self.engine);
        for group in &report.groups {
            let is_bad = |at: &usize| report.rows[*at].total.kind() == OutcomeKind::Invalid;
            if open.sampled < self.keep.groups {
                open.sampled += 1;
            } else if open.bad < BAD.min(self.keep.groups) && group.members.iter().any(is_bad) {
                open.bad += 1;
            } else {
                continue;
            }
            chosen.push((next, group));
            next = next.saturating_add(1);
        }
        state.summary.next_group = next;
        drop(state);
        for (id, group) in chosen {
            let judged = self.replay.clone().zip(options.usage.clone());
            let scored = (rollouts, report);
            let sample = GroupSnapshot::of((id, step), &group.members, scored, options.validate, judged);
            self.writer.put_group(self.folder.clone(), sample, self.keep.group_bytes);
        }
    }

    /// The join of a step. Rollouts without a step share one join, so that a group is not cut where one window of time ends.
    pub(crate) fn join(&self, step: Option<u64>) -> Arc<Join> {
        let Some(step) = step else {
            let mut stepless = lock(&self.stepless);
            return Arc::clone(stepless.0.get_or_insert_with(|| self.new_join(None)));
        };
        let mut state = lock(&self.steps);
        let open = state.touch(step, unix_time(), &self.engine);
        Arc::clone(open.join.get_or_insert_with(|| self.new_join(Some(step))))
    }

    /// Closes the joins: groups are scored without the members that are missing.
    pub(crate) fn close_joins(&self) {
        let stepless = lock(&self.stepless).0.clone();
        let joins: Vec<Arc<Join>> =
            lock(&self.steps).open.values().filter_map(|open| open.join.clone()).collect();
        // Without the lock, since observers call the run.
        for join in stepless.into_iter().chain(joins) {
            join.close();
        }
    }

    fn new_join(&self, step: Option<u64>) -> Arc<Join> {
        let (me, open) = (Weak::clone(&self.me), Arc::clone(&self.join_limits.open));
        let usage = self.engine.usage_meter();
        let options = ScoreOptions { usage: usage.clone(), ..ScoreOptions::default() };
        let observer: Observer = Box::new(move |rollouts, report| {
            let _open = &open;
            if let Some(run) = me.upgrade() {
                let step = step.unwrap_or_else(|| lock(&run.steps).window(unix_time()));
                run.sample(step, rollouts, report, &options);
            }
        });
        let (remember_bytes, most_waiting) = (self.join_limits.remembered(), self.join_limits.most_waiting);
        let policy = Policy { remember_bytes, most_waiting, ..Policy::of(self.engine.plan()) };
        Arc::new(Join::observed(&self.engine, policy, Some(observer), usage))
    }

    /// Counts what the join for rollouts without a step has scored since the last time.
    fn count_stepless(&self) {
        let mut stepless = lock(&self.stepless);
        stepless.1 += 1;
        let Some(join) = stepless.0.clone() else { return };
        let since = join.take_step(stepless.1);
        drop(stepless);
        if since.statistics.rollouts > 0 {
            let usage = join.usage_meter().map_or_else(Vec::new, UsageMeter::take);
            let now = unix_time();
            let mut state = lock(&self.steps);
            let step = state.window(now);
            state.touch(step, now, &self.engine).add(&since.statistics, &usage);
        }
    }

    /// The steps after a number, at most so many of the newest, as JSON lines; and whether older ones lie on the disk only.
    pub(crate) fn steps(&self, after: Option<u64>, most: usize) -> (Vec<String>, bool) {
        self.count_stepless();
        let (mut steps, older) = lock(&self.steps).after(after);
        steps.drain(..steps.len().saturating_sub(most));
        (steps, older)
    }

    /// Ends the steps that are over, and writes the summary and the open steps.
    pub(crate) fn tick(&self, now: f64, all: bool) {
        self.count_stepless();
        let mut state = lock(&self.steps);
        let ended = state.end_those_over(now, all);
        // With a slow disk this is skipped until there is time, but not at the end. After a failure it is written again.
        let failures = self.writer.failures();
        let has_failed = std::mem::replace(&mut state.failures, failures) != failures;
        state.fresh |= has_failed;
        let writes = state.fresh && (all || !self.writer.is_behind());
        let summary = writes.then(|| (serde_json::to_string(&state.summary), state.still_open(false)));
        state.fresh &= !writes;
        drop(state);
        for line in ended {
            self.writer.append(self.folder.join("steps.jsonl"), line);
        }
        if let Some((Ok(summary), open)) = summary {
            let open = open.into_iter().map(|line| line + "\n").collect();
            self.writer.replace(self.folder.join("open.json"), open);
            self.writer.replace(self.folder.join("run.json"), summary);
        }
    }
}
