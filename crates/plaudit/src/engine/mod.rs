//! The engine: rollouts in, a report out. The path is groups > rules > programs > custom rewards > judges > totals > report.
//!
//! `score` borrows its rollouts and blocks; `submit` owns them and calls back. They need two entries, because rules read
//! the texts on other threads: borrowed text allows that only while the caller blocks (`Pool::map`), and a batch without a
//! waiting thread must own its text (`Pool::map_then`). From [`Engine::judge`] on, both take the same path.

#[cfg_attr(
    not(feature = "code"),
    allow(
        dead_code,
        unreachable_code,
        unused_variables,
        reason = "there are no programs, and what follows one is known not to run"
    )
)]
mod code;
mod custom;
mod judged;
mod options;
mod prescore;
mod rules;

pub use crate::judge::runner::SharedResources;
pub use options::{EngineOptions, ScoreOptions};
pub use prescore::Prescored;

use crate::code::Tier;
use crate::compose::turn_rewards::TurnRewards;
use crate::compose::{self, Cause, Combine, Total};
use crate::error::RunError;
use crate::exec::{CancelToken, Clock, Monotonic, Pool, SpanKind, TraceSpan};
use crate::group::{self, Group, Key};
use crate::judge::client::{Tally, UsageMeter};
use crate::judge::runner::{CallTranscript, CostEstimate, JudgeRunner, RunOptions};
use crate::outcome::{Outcome, OutcomeKind, Score};
use crate::plan::{Branch, Gate, GroupLimit, Plan};
use crate::reason::{Code, Reason};
use crate::report::{Report, Row};
use crate::rollout::Rollout;
use code::{CodeRunner, Programs};
use custom::Questions;
use judged::{JudgedRows, PendingJudgments, RuleResults, TaskOutcomes};
use rules::GroupScorer;
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

/// A loaded recipe that scores rollouts. Starts no thread before the first batch that needs one.
#[derive(Debug)]
pub struct Engine {
    plan: Arc<Plan>,
    clock: Arc<dyn Clock>,
    pool: Arc<Pool>,
    runner: Option<Arc<JudgeRunner>>,
    code: Option<Arc<CodeRunner>>,
}

type Done<R> = Box<dyn FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send>;

/// A submitted batch. Dropped before it is done, it reports a panic, so that `done` is called exactly once.
struct Submission<R> {
    rollouts: Arc<Vec<R>>,
    prescored: Arc<Vec<Prescored>>,
    options: Arc<ScoreOptions>,
    /// Whether most of it has been scored before.
    rescore: bool,
    span: Option<Arc<dyn TraceSpan>>,
    done: Option<Done<R>>,
}

impl<R> Submission<R> {
    fn finish(mut self, report: Result<Report, RunError>) {
        end_span(self.span.take(), &report);
        if let Some(done) = self.done.take() {
            done(Arc::clone(&self.rollouts), report);
        }
    }
}

impl<R> Drop for Submission<R> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            let rollouts = Arc::clone(&self.rollouts);
            end_span(self.span.take(), &Err(RunError::Panicked));
            // A drop may be part of an unwinding, and must not begin another one.
            drop(catch_unwind(AssertUnwindSafe(|| done(rollouts, Err(RunError::Panicked)))));
        }
    }
}

impl Engine {
    /// An engine for a plan, without a journal and without keys.
    pub fn new(plan: Plan) -> Result<Self, RunError> {
        Self::open(plan, &EngineOptions::default())
    }

    /// An engine for a plan, with what its judges need.
    pub fn open(plan: Plan, options: &EngineOptions<'_>) -> Result<Self, RunError> {
        let own = || Arc::new(Pool::new(plan.groups.parallel));
        let pool = options.shared.as_ref().map_or_else(own, |shared| shared.pool());
        let shared = options.shared.clone().unwrap_or_else(|| Arc::new(SharedResources::default()));
        let runner = options.runner(&plan, &pool, &shared)?;
        let code = options.code_runner(&plan, &shared)?;
        Ok(Self { plan: Arc::new(plan), clock: Arc::new(Monotonic::start()), pool, runner, code })
    }

    /// The same engine, which takes its time from a clock of the caller's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The plan that the engine carries out.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The component that takes the smallest groups, where there is a limit. A larger group is invalid with
    /// `group.too_large`, and no judge is asked about it; a trainer that knows its group size can refuse it at the start.
    pub fn group_limit(&self) -> Option<GroupLimit> {
        self.plan.group_limit()
    }

    /// Whether rules alone decide every total: no judge and no function of the caller's is asked, and no program is run.
    pub fn is_rules_only(&self) -> bool {
        is_rules_only(&self.plan)
    }

    /// The tier of the sandbox that programs run in, where the recipe has some and they may be run.
    pub fn sandbox_tier(&self) -> Option<Tier> {
        self.code.as_ref().and_then(|code| code.tier())
    }

    /// The plan, shared.
    pub(crate) fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// Where it takes its time from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The threads that groups are scored on, for a front that has work of the same kind.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What the judges have been asked so far, in the order of the plan.
    pub fn tallies(&self) -> Vec<Tally> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.client.tallies())
    }

    /// A meter that counts what judges are asked for the calls whose options hold it; none where the plan asks no judge.
    pub fn usage_meter(&self) -> Option<Arc<UsageMeter>> {
        self.runner.as_ref().map(|runner| runner.usage_meter())
    }

    /// How many calls have got a verdict so far, so that who waits can tell whether there is progress.
    pub fn answered(&self) -> u64 {
        self.runner.as_ref().map_or(0, |runner| runner.client.answered())
    }

    /// What would be asked, where the engine was set up to count only.
    pub fn estimates(&self) -> Vec<CostEstimate> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.estimates())
    }

    /// Starts no further judge call; calls in flight are still answered and stored.
    pub fn stop(&self) {
        if let Some(runner) = &self.runner {
            runner.client.stop();
        }
    }

    /// Starts no further judge call and drops those in flight, which may have been paid for and are not stored.
    pub fn abandon(&self) {
        if let Some(runner) = &self.runner {
            runner.client.abandon();
        }
    }

    /// Scores a batch. The rows of the report stand in the order of the rollouts, and are the same at any
    /// parallelism.
    pub fn score(&self, rollouts: &[Rollout<'_>]) -> Result<Report, RunError> {
        self.score_with(rollouts, &ScoreOptions::default())
    }

    /// Scores a batch with options.
    pub fn score_with(&self, rollouts: &[Rollout<'_>], options: &ScoreOptions) -> Result<Report, RunError> {
        self.run(rollouts, options, false).map(|(report, _)| report)
    }

    /// Scores a batch and returns every judge call that was made for it.
    pub fn explain(
        &self,
        rollouts: &[Rollout<'_>],
        options: &ScoreOptions,
    ) -> Result<(Report, Vec<CallTranscript>), RunError> {
        self.run(rollouts, options, true)
    }

    /// Scores a batch as [`Engine::score_with`] does, without a thread that waits for it: `done` is called exactly once,
    /// with the rollouts and their report, on a thread of the engine's that it must not hold up for long. Thousands of
    /// batches may be under way at once.
    pub fn submit<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.submit_prescored(rollouts, Vec::new(), options, done);
    }

    /// Scores a batch of which rollouts have been prescored, by [`Engine::prescore`] with the same options: what is known
    /// by now is not computed again, and the report is the same. `prescored` goes side by side with the rollouts, or is
    /// empty.
    pub fn submit_prescored<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        prescored: Vec<Prescored>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        let span = self.begin_span(&options, rollouts.len());
        let (rollouts, prescored, options) = (Arc::new(rollouts), Arc::new(prescored), Arc::new(options));
        let done: Option<Done<R>> = Some(Box::new(done));
        self.run_submission(Submission { rollouts, prescored, options, rescore: false, span, done });
    }

    /// Scores a group most of which has been scored before: judgments of then are used, on the sides on which they were
    /// shown.
    pub(crate) fn submit_rescore<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        let span = self.begin_span(&options, rollouts.len());
        let (rollouts, prescored, options) = (Arc::new(rollouts), Arc::new(Vec::new()), Arc::new(options));
        let done: Option<Done<R>> = Some(Box::new(done));
        self.run_submission(Submission { rollouts, prescored, options, rescore: true, span, done });
    }

    /// Scores a rollout alone whose group is not complete yet. The result is put into `prescored`, which goes to
    /// [`Engine::submit_prescored`] later. It returns at once.
    pub fn prescore<R: Borrow<Rollout<'static>> + Send + 'static>(
        self: &Arc<Self>,
        rollout: R,
        options: &ScoreOptions,
        prescored: &Prescored,
    ) {
        let (engine, options, prescored) = (Arc::clone(self), options.clone(), prescored.clone());
        self.pool.spawn(move || {
            let cancelled = options.cancel.as_ref().is_some_and(CancelToken::is_cancelled);
            if cancelled || !prescored.is_awaited() {
                return;
            }
            let (tasks, programs) = prescored.fill(&engine.scorer(&options), rollout.borrow());
            if let (Some(code), false) = (&engine.code, programs.is_empty()) {
                code.spawn(vec![programs], options.cancel.as_ref(), drop);
            }
            let runner = engine.runner.as_ref().filter(|runner| !runner.is_dry() && !tasks.is_empty());
            if let Some(runner) = runner {
                let ScoreOptions { cancel, span, usage, .. } = options;
                let options = RunOptions { cancel, span, usage, ..RunOptions::default() };
                runner.spawn(tasks, &options, drop);
            }
        });
    }

    /// The report of rollouts that cannot be scored, such as those that come after their group has been.
    pub fn refuse<'r, R: Borrow<Rollout<'r>>>(&self, rollouts: &[R], code: Code) -> Report {
        Report::refused(Arc::clone(&self.plan), rollouts, code)
    }

    /// The path of borrowed rollouts. A panic that is no rollout's is an error, as it is of a submitted batch.
    fn run(
        &self,
        rollouts: &[Rollout<'_>],
        options: &ScoreOptions,
        transcripts: bool,
    ) -> Result<(Report, Vec<CallTranscript>), RunError> {
        let run = || self.run_borrowed(rollouts, options, transcripts);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(RunError::Panicked))
    }

    fn run_borrowed(
        &self,
        rollouts: &[Rollout<'_>],
        options: &ScoreOptions,
        transcripts: bool,
    ) -> Result<(Report, Vec<CallTranscript>), RunError> {
        let span = self.begin_span(options, rollouts.len());
        let groups = self.gather(rollouts)?;
        let scorer = self.scorer(options);
        let mut rule_results = self.pool.map(&groups, |group| scorer.score_group(rollouts, &[], group));
        self.run_programs(rollouts, options, &groups, &mut rule_results)?;
        let (cancel, usage) = (options.cancel.clone(), options.usage.clone());
        let options = RunOptions { cancel, transcripts, rescore: false, span: span.clone(), usage };
        let questions = Questions { runner: self.runner.as_ref(), options: options.clone() };
        custom::score_custom(&self.plan, &questions, rollouts, &groups, &mut rule_results);
        let (send, receive) = mpsc::sync_channel(1);
        self.judge(rule_results, options, move |judged| drop(send.send(judged)));
        let mut judged = self.pool.wait(&receive).ok_or(RunError::Panicked)?;
        let transcripts = std::mem::take(&mut judged.transcripts);
        let report = self.report(rollouts, groups, judged);
        end_span(span, &report);
        Ok((report?, transcripts))
    }

    /// Runs the programs of borrowed rollouts, and completes the groups that have some.
    fn run_programs(
        &self,
        rollouts: &[Rollout<'_>],
        options: &ScoreOptions,
        groups: &[Group],
        rule_results: &mut [RuleResults],
    ) -> Result<(), RunError> {
        let (Some(code), Some(programs)) = (&self.code, Programs::take(rule_results)) else { return Ok(()) };
        let (send, receive) = mpsc::sync_channel(1);
        code.spawn(programs.tasks.clone(), options.cancel.as_ref(), move |found| drop(send.send(found)));
        let found = self.pool.wait(&receive).ok_or(RunError::Panicked)?;
        let open = programs.groups();
        programs.apply(&self.plan, rule_results, found);
        let scorer = self.scorer(options);
        let complete =
            |at: &usize| scorer.complete_group(rollouts, &groups[*at], rule_results[*at].rows.clone());
        let completed = self.pool.map(&open, complete);
        for (at, results) in open.into_iter().zip(completed) {
            rule_results[at].completed(results);
        }
        Ok(())
    }

    /// The path of owned rollouts, up to the judges. Each step hands over to the next.
    fn run_submission<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: &Arc<Self>,
        submission: Submission<R>,
    ) {
        let engine = Arc::clone(self);
        self.pool.spawn(move || {
            let groups = match engine.gather(&submission.rollouts) {
                Ok(groups) => Arc::new(groups),
                Err(error) => return submission.finish(Err(error)),
            };
            let work = {
                let (engine, groups) = (Arc::clone(&engine), Arc::clone(&groups));
                let (rollouts, options) = (Arc::clone(&submission.rollouts), Arc::clone(&submission.options));
                let prescored = Arc::clone(&submission.prescored);
                move |at: usize| engine.scorer(&options).score_group(&rollouts, &prescored, &groups[at])
            };
            let (pool, count) = (Arc::clone(&engine.pool), groups.len());
            pool.map_then(count, work, move |rule_results| {
                let rule_results = rule_results.into_iter().zip(groups.iter()).map(|(results, group)| {
                    results.unwrap_or_else(|| RuleResults::panicked(&submission.rollouts, group))
                });
                let rule_results: Vec<RuleResults> = rule_results.collect();
                engine.run_submitted_programs(submission, groups, rule_results);
            });
        });
    }

    /// The same for owned rollouts, which then go on to custom rewards and judges.
    fn run_submitted_programs<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        submission: Submission<R>,
        groups: Arc<Vec<Group>>,
        mut rule_results: Vec<RuleResults>,
    ) {
        let (Some(code), Some(programs)) = (self.code.clone(), Programs::take(&mut rule_results)) else {
            return self.ask_custom(submission, groups, rule_results);
        };
        let (tasks, cancel) = (programs.tasks.clone(), submission.options.cancel.clone());
        let engine = self;
        code.spawn(tasks, cancel.as_ref(), move |found| {
            let open = programs.groups();
            programs.apply(&engine.plan, &mut rule_results, found);
            let rows: Vec<Vec<Row>> = open.iter().map(|at| rule_results[*at].rows.clone()).collect();
            let complete = {
                let (engine, groups, open) = (Arc::clone(&engine), Arc::clone(&groups), open.clone());
                let (rollouts, options) = (Arc::clone(&submission.rollouts), Arc::clone(&submission.options));
                move |at: usize| {
                    engine.scorer(&options).complete_group(&rollouts, &groups[open[at]], rows[at].clone())
                }
            };
            let (pool, count) = (Arc::clone(&engine.pool), open.len());
            pool.map_then(count, complete, move |completed| {
                for (at, results) in open.into_iter().zip(completed) {
                    let panicked = || RuleResults::panicked(&submission.rollouts, &groups[at]);
                    rule_results[at].completed(results.unwrap_or_else(panicked));
                }
                engine.ask_custom(submission, groups, rule_results);
            });
        });
    }

    /// Asks the caller's rewards about owned rollouts, then the judges.
    fn ask_custom<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        submission: Submission<R>,
        groups: Arc<Vec<Group>>,
        mut rule_results: Vec<RuleResults>,
    ) {
        if !custom::has_custom(&self.plan) {
            return self.judge_submission(submission, groups, rule_results);
        }
        // On a thread of its own, because nobody knows how long a caller's function takes. Where the system gives none,
        // the submission is dropped, which reports that it has failed.
        let thread = std::thread::Builder::new().name("plaudit-custom".to_owned());
        let _ = thread.spawn(move || {
            let (cancel, span) = (submission.options.cancel.clone(), submission.span.clone());
            let options = RunOptions { cancel, span, ..RunOptions::default() };
            let questions = Questions { runner: self.runner.as_ref(), options };
            custom::score_custom(&self.plan, &questions, &submission.rollouts, &groups, &mut rule_results);
            self.judge_submission(submission, groups, rule_results);
        });
    }

    fn judge_submission<R: Borrow<Rollout<'static>> + Send + Sync + 'static>(
        self: Arc<Self>,
        submission: Submission<R>,
        groups: Arc<Vec<Group>>,
        rule_results: Vec<RuleResults>,
    ) {
        let ScoreOptions { cancel, usage, .. } = submission.options.as_ref().clone();
        let span = submission.span.clone();
        let options = RunOptions { cancel, transcripts: false, rescore: submission.rescore, span, usage };
        let engine = Arc::clone(&self);
        self.judge(rule_results, options, move |judged| {
            let report = engine.report(&submission.rollouts, Arc::unwrap_or_clone(groups), judged);
            submission.finish(report);
        });
    }

    /// Runs the judge tasks of all groups at once and writes their outcomes into the rows. `then` is called once, on this
    /// thread where there are no tasks, else on one of the pool.
    fn judge(
        &self,
        rule_results: Vec<RuleResults>,
        options: RunOptions,
        then: impl FnOnce(JudgedRows) + Send + 'static,
    ) {
        let (pending, tasks) = PendingJudgments::split(rule_results);
        let (Some(runner), false) = (&self.runner, tasks.is_empty()) else {
            return then(pending.apply(&self.plan, Vec::new()));
        };
        let (plan, pool, cancel) = (Arc::clone(&self.plan), Arc::clone(&self.pool), options.cancel.clone());
        runner.spawn(tasks, &options, move |mut results| {
            let outputs = results.iter_mut().filter_map(|result| result.as_mut().ok());
            let transcripts = outputs.flat_map(|output| std::mem::take(&mut output.transcripts)).collect();
            // On the pool, because aggregation takes longer than the calls of other groups may wait for this thread.
            let count = results.len();
            let finish = move |at: usize| -> TaskOutcomes {
                match &results[at] {
                    Ok(_) if cancel.as_ref().is_some_and(CancelToken::is_cancelled) => Err(Code::Stopped),
                    Ok(output) => Ok(output.session.finish()),
                    Err(code) => Err(*code),
                }
            };
            pool.map_then(count, finish, move |finished| {
                then(JudgedRows { transcripts, ..pending.apply(&plan, finished) });
            });
        });
    }

    /// Begins the span of a batch, where the caller traces its steps.
    fn begin_span(&self, options: &ScoreOptions, rollouts: usize) -> Option<Arc<dyn TraceSpan>> {
        let span = options.span.as_ref()?.child(SpanKind::Internal, &format!("score {}", self.plan.name));
        span.set("plaudit.recipe", self.plan.name.as_str().into());
        span.set("plaudit.rollouts", rollouts.into());
        Some(span)
    }

    /// The groups of a batch, where the recipe takes them as they are.
    fn gather<'r, R: Borrow<Rollout<'r>>>(&self, rollouts: &[R]) -> Result<Vec<Group>, RunError> {
        let groups = group::gather(rollouts);
        if self.plan.groups.same_size {
            refuse_uneven(rollouts, &groups)?;
        }
        Ok(groups)
    }

    fn scorer<'e>(&'e self, options: &'e ScoreOptions) -> GroupScorer<'e> {
        let secret = self.runner.as_ref().map(|runner| runner.secret());
        GroupScorer { plan: &self.plan, clock: self.clock.as_ref(), secret, options }
    }

    /// Makes the report. Totals that rules alone decide have been set with the rules.
    fn report<'r, R: Borrow<Rollout<'r>> + Sync>(
        &self,
        rollouts: &[R],
        groups: Vec<Group>,
        mut judged: JudgedRows,
    ) -> Result<Report, RunError> {
        if !self.is_rules_only() {
            judged.rows.iter_mut().for_each(|rows| set_totals(&self.plan, rows));
        }
        let plan = Arc::clone(&self.plan);
        let mut report = Report::new(plan, &self.pool, rollouts, groups, judged.rows, &judged.stats)?;
        for (component, found) in &judged.tests {
            report.statistics.observe_tests(component, found);
        }
        Ok(report)
    }
}

/// Ends the span of a batch with what came of it.
fn end_span(span: Option<Arc<dyn TraceSpan>>, report: &Result<Report, RunError>) {
    let Some(span) = span else { return };
    match report {
        Ok(report) => {
            span.set("plaudit.groups", report.groups.len().into());
            span.set("plaudit.invalid", report.statistics.outcomes.of(OutcomeKind::Invalid).into());
        }
        Err(error) => span.fail(error.code()),
    }
    span.end();
}

/// Whether rules alone decide every total.
fn is_rules_only(plan: &Plan) -> bool {
    plan.judges.is_empty() && !custom::has_custom(plan) && plan.code_rewards().next().is_none()
}

/// Makes the totals of a group.
fn set_totals(plan: &Plan, rows: &mut [Row]) {
    for (index, branch) in plan.branches.iter().enumerate() {
        for (at, _) in branch.parts.iter().enumerate().filter(|(_, part)| part.normalize.is_some()) {
            let value = |row: &Row| match row.branch == Some(index) {
                true => row.outcomes[at].as_ref().and_then(Outcome::value),
                false => None,
            };
            let values: Vec<Option<f64>> = rows.iter().map(value).collect();
            for (row, value) in rows.iter_mut().zip(compose::normalized(&values)) {
                if let Some(value) = value {
                    row.details_mut().normalized.push((at, value));
                }
            }
        }
    }
    rows.iter_mut().for_each(|row| set_total(plan, row));
}

/// Makes the total of a row out of its outcomes, and says whether the answer is right.
fn set_total(plan: &Plan, row: &mut Row) {
    let Some(branch) = row.branch.map(|index| &plan.branches[index]) else { return };
    if row.closed_by().is_none() {
        branch.set_first_of(&mut row.outcomes);
    }
    let gate = row.closed_by().and_then(|at| Some((at, branch.components[at].gate?)));
    row.total = match gate {
        Some((at, gate)) => closed_total(branch, &row.outcomes, at, gate),
        None => {
            let normalized = row.details.as_ref().map_or(&[][..], |details| &details.normalized);
            let outcomes = row.outcomes.iter().map(Option::as_ref);
            compose::total(branch.combine, &branch.parts, outcomes, normalized)
        }
    };
    row.correct = branch.right_from.and_then(|(at, right)| match row.outcomes[at].as_ref()? {
        Outcome::Scored { value, .. } => Some(value.get() >= right),
        // The model's own output broke a limit.
        Outcome::Floored { .. } => Some(false),
        Outcome::Skipped(_) | Outcome::Invalid(_) => None,
    });
    if let Some(turn_rewards) = branch.turn_rewards {
        set_turn_rewards(branch, turn_rewards, row);
    }
}

/// Spreads the total of a row over the model's turns.
fn set_turn_rewards(branch: &Branch, turn_rewards: TurnRewards, row: &mut Row) {
    let Some(total) = row.total.value() else { return };
    let whole = match branch.combine {
        Combine::Sum => 1.0,
        Combine::Mean => branch.parts.iter().map(|part| part.weight).sum(),
    };
    let details = row.details_mut();
    if details.turns == 0 {
        // The model has no turn that could get anything.
        return;
    }
    let weighed = |(at, states): &(usize, Vec<Option<f64>>)| {
        let weight = branch.parts[*at].weight / whole;
        states.iter().map(|state| state.map(|state| state * weight)).collect()
    };
    let states: Vec<Vec<Option<f64>>> = details.states.iter().map(weighed).collect();
    details.turn_rewards = Some(turn_rewards.spread(total, details.turns, &states));
}

/// The total of a rollout whose gate is closed: what the recipe says, or what the gates that were asked give.
fn closed_total(branch: &Branch, outcomes: &[Option<Outcome>], at: usize, gate: Gate) -> Total {
    let cause = |reason: Reason| Cause { reason, component: Some(at) };
    if let Some(Outcome::Invalid(reason)) = &outcomes[at] {
        return Total::Invalid(cause(reason.clone()));
    }
    let closed = cause(Reason::new(Code::GateClosed, "The component is below its gate."));
    let own =
        || compose::total(branch.combine, &branch.parts, outcomes.iter().map(Option::as_ref), &[]).value();
    match gate.total.or_else(own).and_then(Score::new) {
        Some(value) => Total::Floored(value, closed),
        None => Total::Skipped(closed),
    }
}

fn refuse_uneven<'r, R: Borrow<Rollout<'r>>>(rollouts: &[R], groups: &[Group]) -> Result<(), RunError> {
    let Some((usual, odd)) = group::uneven(groups) else { return Ok(()) };
    let name = |at: usize| {
        let first = groups[at].members[0];
        let key = Key::of(rollouts[first].borrow()).map(|key| key.label().into_owned());
        key.unwrap_or_else(|| format!("rollout {}", first + 1))
    };
    Err(RunError::UnevenGroups { usual, odd: odd.into_iter().map(|(at, size)| (name(at), size)).collect() })
}
