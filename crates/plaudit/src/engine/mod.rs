//! The engine: rollouts in, a report out. `score_batch` is the path: groups > rules > programs > custom rewards > judges > totals >
//! report. A batch takes it whether its caller waits (`score`) or not (`submit`).

mod batch;
#[cfg_attr(
    not(feature = "code"),
    allow(
        dead_code,
        unreachable_code,
        unused_variables,
        clippy::default_constructed_unit_structs,
        reason = "there are no programs, and what follows one is known not to run"
    )
)]
mod code;
mod custom;
mod eligibility;
mod group_state;
mod judged;
mod options;
mod prescore;
mod rules;
mod shared;
mod totals;

pub use options::{EngineOptions, ScoreOptions};
pub use prescore::Prescored;
pub use shared::SharedResources;

use crate::code::Isolation;
use crate::error::RunError;
use crate::exec::{CancelToken, Clock, Monotonic, Pool, SpanKind, TraceSpan};
use crate::group::{self, Group, Key};
use crate::judge::client::{JudgeUsage, UsageMeter};
use crate::judge::runner::{CallTranscript, CostEstimate, JudgeRunner, RunOptions};
use crate::outcome::OutcomeKind;
use crate::plan::{GroupLimit, Plan};
use crate::reason::Code;
use crate::report::Report;
use crate::rollout::{AsRollout, Rollout};
use batch::{Batch, LentBatch, SubmittedBatch};
use code::CodeRunner;
use futures_util::FutureExt as _;
use group_state::GroupState;
use rules::GroupScorer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
    batch: Arc<SubmittedBatch<R>>,
    done: Option<Done<R>>,
}

impl<R> Submission<R> {
    fn finish(mut self, report: Result<Report, RunError>) {
        end_span(self.batch.calls.span.as_deref(), report.as_ref());
        if let Some(done) = self.done.take() {
            done(Arc::clone(&self.batch.rollouts), report);
        }
    }
}

impl<R> Drop for Submission<R> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            let rollouts = Arc::clone(&self.batch.rollouts);
            end_span(self.batch.calls.span.as_deref(), Err(&RunError::Panicked));
            // A drop may be part of an unwinding, and must not begin another one.
            drop(catch_unwind(AssertUnwindSafe(|| done(rollouts, Err(RunError::Panicked)))));
        }
    }
}

/// What the path makes of a batch: its report, and the judge calls where they were asked for.
type Scored = Result<(Report, Vec<CallTranscript>), RunError>;

/// The path of a batch: each step takes what is known of the groups and hands on what it has added. One that has nothing to do
/// costs nothing.
async fn score_batch<B: Batch>(batch: &B) -> Scored {
    let engine = batch.engine();
    let groups = Arc::new(engine.gather(batch.rollouts())?);
    let states = rules::score_rules(batch, &groups).await;
    let states = code::run_programs(batch, &groups, states).await?;
    let states = custom::score_custom(batch, &groups, states).await?;
    let states = judged::ask_judges(batch, states).await?;
    engine.report(batch.rollouts(), Arc::unwrap_or_clone(groups), states)
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

    /// The isolation of the sandbox that programs run in, where the recipe has some and they may be run.
    pub fn sandbox_isolation(&self) -> Option<Isolation> {
        self.code.as_ref().and_then(|code| code.isolation())
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
    pub fn judge_usage(&self) -> Vec<JudgeUsage> {
        self.runner.as_ref().map_or_else(Vec::new, |runner| runner.client.judge_usage())
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
    pub fn submit<R: AsRollout + Send + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.start((rollouts, Vec::new()), options, false, Box::new(done));
    }

    /// Scores a batch of which rollouts have been prescored, by [`Engine::prescore`] with the same options: what is known
    /// by now is not computed again, and the report is the same. `prescored` goes side by side with the rollouts, or is
    /// empty.
    pub fn submit_prescored<R: AsRollout + Send + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        prescored: Vec<Prescored>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.start((rollouts, prescored), options, false, Box::new(done));
    }

    /// Scores a group most of which has been scored before: judgments of then are used, on the sides on which they were
    /// shown.
    pub(crate) fn submit_rescore<R: AsRollout + Send + 'static>(
        self: &Arc<Self>,
        rollouts: Vec<R>,
        options: ScoreOptions,
        done: impl FnOnce(Arc<Vec<R>>, Result<Report, RunError>) + Send + 'static,
    ) {
        self.start((rollouts, Vec::new()), options, true, Box::new(done));
    }

    /// Starts a batch that nobody waits for.
    fn start<R: AsRollout + Send + 'static>(
        self: &Arc<Self>,
        (rollouts, prescored): (Vec<R>, Vec<Prescored>),
        options: ScoreOptions,
        rescore: bool,
        done: Done<R>,
    ) {
        let calls = RunOptions { rescore, ..self.calls(&options, rollouts.len()) };
        let (engine, rollouts) = (Arc::clone(self), Arc::new(rollouts));
        let batch = Arc::new(SubmittedBatch { engine, rollouts, prescored, options, calls });
        let submission = Submission { batch, done: Some(done) };
        self.pool.run(async move {
            let scored = score_batch(&submission.batch).await;
            submission.finish(scored.map(|(report, _)| report));
        });
    }

    /// Scores a rollout alone whose group is not complete yet. The result is put into `prescored`, which goes to
    /// [`Engine::submit_prescored`] later. It returns at once.
    pub fn prescore<R: AsRollout + Send + 'static>(
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
            let (tasks, programs) = prescored.fill(&engine.scorer(&options), rollout.as_rollout());
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
    pub fn refuse<R: AsRollout>(&self, rollouts: &[R], code: Code) -> Report {
        Report::refused(Arc::clone(&self.plan), rollouts, code)
    }

    /// Scores a batch while its caller waits. A panic that is no rollout's is an error, as it is of a submitted batch.
    fn run(&self, rollouts: &[Rollout<'_>], options: &ScoreOptions, transcripts: bool) -> Scored {
        let calls = &RunOptions { transcripts, ..self.calls(options, rollouts.len()) };
        let batch = LentBatch { engine: self, rollouts, options, calls };
        // Each of its steps is done when it returns, so that the path never stands still.
        let score = || score_batch(&batch).now_or_never().unwrap_or(Err(RunError::Panicked));
        let scored = catch_unwind(AssertUnwindSafe(score)).unwrap_or(Err(RunError::Panicked));
        end_span(calls.span.as_deref(), scored.as_ref().map(|(report, _)| report));
        scored
    }

    /// How judges are asked for a batch. Its span begins, where the caller traces its steps.
    fn calls(&self, options: &ScoreOptions, rollouts: usize) -> RunOptions {
        let span = options.span.as_ref().map(|span| {
            let span = span.child(SpanKind::Internal, &format!("score {}", self.plan.name));
            span.set("plaudit.recipe", self.plan.name.as_str().into());
            span.set("plaudit.rollouts", rollouts.into());
            span
        });
        let ScoreOptions { cancel, usage, .. } = options.clone();
        RunOptions { cancel, usage, span, ..RunOptions::default() }
    }

    /// The groups of a batch, where the recipe takes them as they are.
    fn gather<R: AsRollout>(&self, rollouts: &[R]) -> Result<Vec<Group>, RunError> {
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
    fn report<R: AsRollout>(&self, rollouts: &[R], groups: Vec<Group>, states: Vec<GroupState>) -> Scored {
        let rules_only = self.is_rules_only();
        let mut rows = Vec::with_capacity(states.len());
        let (mut tests, mut verdicts, mut transcripts) = (Vec::new(), Vec::new(), Vec::new());
        for mut state in states {
            if !rules_only {
                totals::set_totals(&self.plan, &mut state.rows);
            }
            rows.push(state.rows);
            tests.append(&mut state.tests);
            verdicts.append(&mut state.verdicts);
            transcripts.append(&mut state.transcripts);
        }
        let plan = Arc::clone(&self.plan);
        let mut report = Report::new(plan, &self.pool, rollouts, groups, rows, &verdicts)?;
        tests.iter().for_each(|(component, found)| report.statistics.observe_tests(component, found));
        Ok((report, transcripts))
    }
}

/// Ends the span of a batch with what came of it.
fn end_span(span: Option<&dyn TraceSpan>, report: Result<&Report, &RunError>) {
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

fn refuse_uneven<R: AsRollout>(rollouts: &[R], groups: &[Group]) -> Result<(), RunError> {
    let Some((usual, odd)) = group::uneven(groups) else { return Ok(()) };
    let name = |at: usize| {
        let first = groups[at].members[0];
        let key = Key::of(rollouts[first].as_rollout()).map(|key| key.label().into_owned());
        key.unwrap_or_else(|| format!("rollout {}", first + 1))
    };
    Err(RunError::UnevenGroups { usual, odd: odd.into_iter().map(|(at, size)| (name(at), size)).collect() })
}
