//! Judge runner: runs judge tasks (the session of one group with one judge) on the judges' runtime, all groups at once.
//! Whatever fails is data.

mod ask;
mod estimate;
mod items;

pub use estimate::{CostEstimate, OversizedGroup};

use super::answer::{AnswerFormat, Verdict};
use super::client::{CallOutcome, JudgeClient, JudgeRegistry, UsageMeter};
use super::config::ResolvedJudge;
use super::group_view::GroupView;
use super::rubric_session::RubricSession;
use super::session::JudgeSession;
use super::stats::JudgeStats;
use crate::error::RunError;
use crate::exec::{CancelToken, SharedRuntime, SpanKind, TraceSpan, unless_cancelled};
use crate::outcome::Outcome;
use crate::reason::{Code, Reason};
use crate::record::{Network, Record};
use futures_util::future::join_all;
use items::ItemsRun;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The judge calls about one group, as a state machine: by what its members are judged decides which.
#[derive(Debug)]
pub(crate) enum Session {
    /// Its members are scored, compared or ranked.
    Group(JudgeSession),
    /// Its members are graded by the items of a rubric.
    Rubric(RubricSession),
}

impl Session {
    /// What the judge sees.
    pub(crate) fn view(&self) -> &GroupView {
        match self {
            Self::Group(session) => &session.view,
            Self::Rubric(session) => &session.view,
        }
    }

    /// One outcome a member, in their order, and what was found on the way.
    pub(crate) fn finish(&self) -> (Vec<Outcome>, JudgeStats) {
        match self {
            Self::Group(session) => session.finish(),
            Self::Rubric(session) => session.finish(),
        }
    }
}

/// One group, and the judges that are asked about it.
#[derive(Debug)]
pub(crate) struct JudgeTask {
    /// The component that asks.
    pub(crate) component: String,
    /// The name of the group, where it is larger than the method takes.
    pub(crate) group: Option<String>,
    pub(crate) session: Session,
    /// The judge, and the one that gives a prior, as indices in the plan.
    pub(crate) asks: (usize, Option<usize>),
}

/// A task that ran: the session with its answers, and the calls where they were asked for.
pub(crate) struct TaskOutput {
    pub(crate) session: Session,
    pub(crate) transcripts: Vec<CallTranscript>,
}

/// What came of a task, or why it has no answers.
pub(crate) type JudgeTaskResult = Result<TaskOutput, Code>;

/// How tasks are run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunOptions {
    /// Cancels the tasks.
    pub(crate) cancel: Option<CancelToken>,
    /// Whether every call is handed out to be read.
    pub(crate) transcripts: bool,
    /// Whether most of the groups have been compared before, so that a pair that was shown the other way round is shown
    /// so again rather than paid for anew.
    pub(crate) rescore: bool,
    /// The step that the tasks belong to, where steps are traced.
    pub(crate) span: Option<Arc<dyn TraceSpan>>,
    /// Counts the calls of the tasks.
    pub(crate) usage: Option<Arc<UsageMeter>>,
}

/// One call as a person may want to read it.
#[derive(Debug, Clone)]
pub struct CallTranscript {
    /// The component that asks.
    pub component: String,
    /// The judge's name.
    pub judge: String,
    /// The members that were shown, in order; none for the reference.
    pub shown: Vec<Option<usize>>,
    /// Their letters.
    pub labels: Vec<String>,
    /// The format that was asked for.
    pub format: AnswerFormat,
    /// What the judge was asked.
    pub prompt: String,
    /// The key of the judgment, where one was looked for.
    pub key: Option<[u8; 32]>,
    /// What it replied, where it did.
    pub reply: Option<Vec<u8>>,
    /// What that says.
    pub verdict: Result<Verdict, Reason>,
    /// Whether the answer came from the journal.
    pub cached: bool,
    /// How often it was asked.
    pub attempts: u32,
}

/// What a runner needs beside its judges.
pub(crate) struct RunnerOptions<'r> {
    /// Where judgments are stored.
    pub(crate) record: Arc<dyn Record>,
    /// What delimiters, labels and nonces are derived from.
    pub(crate) secret: [u8; 32],
    pub(crate) network: Network,
    /// Whether calls are only counted.
    pub(crate) dry: bool,
    /// The judges that are known already.
    pub(crate) registry: &'r JudgeRegistry,
    pub(crate) runtime: Arc<SharedRuntime>,
    /// How long a group may take once it is admitted.
    pub(crate) timeout: Duration,
    /// How many threads may ask.
    pub(crate) threads: usize,
}

/// The fewest threads that ask judges, and how many calls in flight keep one more busy.
const FEWEST_THREADS: usize = 2;
const CALLS_A_THREAD: usize = 64;

/// The judges of a plan, ready to be asked.
pub(crate) struct JudgeRunner {
    pub(crate) client: JudgeClient,
    secret: [u8; 32],
    runtime: Arc<SharedRuntime>,
    timeout: Duration,
    threads: usize,
    /// What would be asked, where calls are only counted.
    estimates: Option<Mutex<Vec<CostEstimate>>>,
}

impl fmt::Debug for JudgeRunner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("JudgeRunner").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl JudgeRunner {
    /// A runner for judges, which tasks name by their indices.
    pub(crate) fn new(judges: Vec<ResolvedJudge>, options: RunnerOptions<'_>) -> Result<Self, RunError> {
        let RunnerOptions { record, secret, network, dry, registry, runtime, timeout, threads } = options;
        let in_flight: usize = judges.iter().map(|judge| judge.config.concurrency).sum();
        let threads = (in_flight / CALLS_A_THREAD).min(threads).max(FEWEST_THREADS);
        let client = JudgeClient::new(judges, record, network, registry)
            .map_err(|error| RunError::NoConnections(error.to_string()))?;
        let estimates = dry.then(|| Mutex::new(Vec::new()));
        Ok(Self { client, secret, runtime, timeout, threads, estimates })
    }

    /// Whether calls are only counted.
    pub(crate) fn is_dry(&self) -> bool {
        self.estimates.is_some()
    }

    /// A meter for the calls of some tasks.
    pub(crate) fn usage_meter(&self) -> Arc<UsageMeter> {
        Arc::new(self.client.usage_meter())
    }

    /// What delimiters, labels and nonces are derived from.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Runs tasks without a thread that waits: `then` gets their results in their order, on a thread of the runtime that
    /// it must not hold up. In a dry run, calls are counted and the sessions come back unanswered.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        tasks: Vec<JudgeTask>,
        options: &RunOptions,
        then: impl FnOnce(Vec<JudgeTaskResult>) + Send + 'static,
    ) {
        let runtime = match self.runtime.get(self.threads) {
            Some(runtime) if !self.is_dry() => runtime,
            runtime => {
                if let Some(runtime) = runtime {
                    runtime.block_on(self.estimate(&tasks));
                }
                let output = |task: JudgeTask| TaskOutput { session: task.session, transcripts: Vec::new() };
                return then(tasks.into_iter().map(|task| Ok(output(task))).collect());
            }
        };
        // One tokio task each, so that a reply is read on the thread that it came in on.
        let spawn = |task: JudgeTask| {
            let (runner, options) = (Arc::clone(self), options.clone());
            runtime.spawn(async move {
                unless_cancelled(options.cancel.as_ref(), runner.run_task(task, &options)).await
            })
        };
        let tasks: Vec<_> = tasks.into_iter().map(spawn).collect();
        runtime.spawn(async move {
            let results = join_all(tasks).await;
            then(results.into_iter().map(|result| result.unwrap_or(Err(Code::Panic))).collect());
        });
    }

    async fn run_task(&self, task: JudgeTask, options: &RunOptions) -> TaskOutput {
        let JudgeTask { component, session, asks: (judge, prior), .. } = task;
        let mut transcripts = Vec::new();
        let span = options.span.as_ref().map(|span| {
            let span = span.child(SpanKind::Internal, &format!("judge {component}"));
            span.set("plaudit.component", component.as_str().into());
            span.set("plaudit.judge", self.client.judge(judge).name.as_str().into());
            span.set("plaudit.responses", session.view().candidates.len().into());
            span
        });
        let told = (span.as_deref(), options.usage.as_deref());
        // The time of a group begins when it is admitted, so that waiting behind other groups is not held against it.
        self.client.admit_group(judge).await;
        let deadline = Instant::now() + self.timeout;
        let mut session = match session {
            Session::Group(session) => session,
            Session::Rubric(session) => {
                let run = ItemsRun {
                    component: &component,
                    judge,
                    deadline,
                    told,
                    transcripts: options.transcripts,
                };
                return self.run_items(session, run).await;
            }
        };
        if let (Some(prior), Some(wave)) = (prior, session.prior()) {
            let settings = self.client.judge(prior);
            let calls: Vec<_> = wave.iter().map(|shown| session.prior_call(settings, shown)).collect();
            let outcomes = self.client.ask_all(prior, &calls, deadline, told).await;
            session.set_prior(outcomes.into_iter().map(|outcome| outcome.verdict).collect());
        }
        loop {
            let mut wave = session.next();
            if wave.is_empty() {
                break;
            }
            if options.rescore {
                wave = self.known_sides(judge, &session, wave).await;
            }
            let settings = self.client.judge(judge);
            let calls: Vec<_> = wave.iter().map(|shown| session.call(settings, shown)).collect();
            let outcomes = self.client.ask_all(judge, &calls, deadline, told).await;
            drop(calls);
            if options.transcripts {
                for (shown, outcome) in wave.iter().zip(&outcomes) {
                    transcripts.push(self.transcript(&component, judge, (&session, shown), outcome).await);
                }
            }
            session.take(wave, outcomes.into_iter().map(|outcome| outcome.verdict).collect());
        }
        TaskOutput { session: Session::Group(session), transcripts }
    }

    async fn transcript(
        &self,
        component: &str,
        judge: usize,
        (session, shown): (&JudgeSession, &[usize]),
        outcome: &CallOutcome,
    ) -> CallTranscript {
        let reply = match &outcome.key {
            Some(key) => self.client.record().get(key).await.ok().flatten(),
            None => None,
        };
        let settings = self.client.judge(judge);
        let attempt = outcome.attempts.saturating_sub(1);
        let prompt = session.call(settings, shown).user_message(outcome.format, attempt);
        CallTranscript {
            component: component.to_owned(),
            judge: settings.name.clone(),
            shown: shown.iter().map(|at| session.view.candidates[*at].member).collect(),
            labels: session.view.labels(shown),
            format: outcome.format,
            prompt: prompt.unwrap_or_else(|reason| reason.message.into_owned()),
            key: outcome.key,
            reply,
            verdict: outcome.verdict.clone(),
            cached: outcome.cached,
            attempts: outcome.attempts,
        }
    }

    /// The same calls, but each pair on the sides on which the record knows it.
    async fn known_sides(
        &self,
        judge: usize,
        session: &JudgeSession,
        wave: Vec<Vec<usize>>,
    ) -> Vec<Vec<usize>> {
        let settings = self.client.judge(judge);
        let mut sides = Vec::with_capacity(wave.len());
        for shown in &wave {
            let swapped: Vec<usize> = shown.iter().rev().copied().collect();
            let swaps = shown.len() == 2
                && !wave.contains(&swapped)
                && !self.client.is_cached(judge, &session.call(settings, shown)).await
                && self.client.is_cached(judge, &session.call(settings, &swapped)).await;
            sides.push(if swaps { swapped } else { shown.clone() });
        }
        sides
    }
}
