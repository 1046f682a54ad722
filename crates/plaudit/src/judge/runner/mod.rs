//! How are the judges asked about all groups at once? Every group's calls go out together; whatever fails is data.

mod estimate;
mod queue;
mod shared;
mod usage;

pub use estimate::{CostEstimate, OversizedGroup};
pub use shared::SharedResources;
pub use usage::JudgeUsage;

use crate::error::RunError;
use crate::exec::CancelToken;
use crate::journal::Store;
use crate::judge::client::{CallOutcome, JudgeClient, JudgeSpec, Network, Price, Record, Secret, Tally};
use crate::judge::inquiry::{Answer, Inquiry};
use crate::judge::query::Voice;
use crate::judge::{Form, Query, Verdict};
use crate::plan::Plan;
use crate::plan::judges::Judge;
use crate::reason::{Code, Reason};
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use queue::{Place, Queue};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

/// What a runner needs from outside: keys, a journal, and whether judges may be asked at all.
pub struct EngineOptions<'s> {
    /// Where judgments are kept; without it, they live as long as the process.
    pub journal: Option<Store>,
    /// Whether judges may be asked, or only the journal.
    pub network: Network,
    /// Whether calls are only counted.
    pub dry: bool,
    /// What an environment variable holds.
    pub keys: &'s dyn Fn(&str) -> Option<String>,
    /// What the engine has in common with others.
    pub shared: Option<Arc<SharedResources>>,
}

impl Default for EngineOptions<'_> {
    fn default() -> Self {
        Self { journal: None, network: Network::Live, dry: false, keys: &|_| None, shared: None }
    }
}

/// One group's questions, and whom they go to.
#[derive(Debug)]
pub(crate) struct JudgeTask {
    /// The component that asks.
    pub(crate) component: String,
    /// The name of the group, where it is larger than the method takes.
    pub(crate) group: Option<String>,
    pub(crate) inquiry: Inquiry,
    /// The judge, and the one that gives a prior, as places in the plan.
    pub(crate) asks: (usize, Option<usize>),
    /// Whether most of the group has been compared before, so that a pair that was shown the other way round is shown so
    /// again rather than bought anew.
    pub(crate) again: bool,
}

/// What came of a task: the inquiry with its answers, or why it has none.
pub(crate) type JudgeTaskResult = Result<Inquiry, Code>;

/// The same, with the calls that were made.
type Told = Result<(Inquiry, Vec<CallTranscript>), Code>;

/// What came of the task of a task.
fn landed(task: Result<Told, JoinError>) -> Told {
    task.unwrap_or(Err(Code::Panic))
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
    /// The form that was asked for.
    pub form: Form,
    /// What the judge was asked.
    pub prompt: String,
    /// What it replied, where it did.
    pub reply: Option<Vec<u8>>,
    /// What that says.
    pub verdict: Result<Verdict, Reason>,
    /// Whether the answer came from the journal.
    pub cached: bool,
    /// How often it was asked.
    pub attempts: u32,
}

/// The judges of a plan, ready to be asked.
pub(crate) struct JudgeRunner {
    caller: JudgeClient,
    record: Arc<dyn Record>,
    secret: [u8; 32],
    shared: Arc<SharedResources>,
    accounts: Vec<Mutex<JudgeUsage>>,
    /// How many questions have been answered.
    answered: AtomicU64,
    timeout: Duration,
    /// How many calls each judge has before it.
    queues: Vec<Queue>,
    /// What would be asked, where calls are only counted.
    estimates: Option<Mutex<Vec<CostEstimate>>>,
    /// Whether calls in flight are waited for no longer.
    abandoned: watch::Sender<bool>,
}

impl fmt::Debug for JudgeRunner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("JudgeRunner").field("queues", &self.queues).finish_non_exhaustive()
    }
}

impl JudgeRunner {
    /// The runner of a plan; none where the plan asks no judge.
    pub(crate) fn new(plan: &Plan, setup: &EngineOptions<'_>) -> Result<Option<Self>, RunError> {
        if plan.judges.is_empty() {
            return Ok(None);
        }
        let mut specs = Vec::with_capacity(plan.judges.len());
        for judge in &plan.judges {
            let api_key = match (&judge.api_key_env, setup.network) {
                (Some(variable), Network::Live) => match (setup.keys)(variable).filter(|key| !key.is_empty())
                {
                    Some(key) => Some(Secret::new(key)),
                    None => {
                        let (judge, variable) = (judge.name.clone(), variable.clone());
                        return Err(RunError::MissingKey { judge, variable });
                    }
                },
                _ => None,
            };
            specs.push(JudgeSpec {
                name: judge.name.clone(),
                base_urls: judge.base_urls.clone(),
                identity: judge.identity.clone(),
                api_key,
                concurrency: judge.concurrency,
                timeout: judge.timeout,
                connect_timeout: judge.connect_timeout,
                attempts: judge.attempts,
                patience: judge.patience,
                hedge: judge.hedge,
                retries: judge.retries,
                budget_calls: judge.budget_calls,
                budget_cost: judge.budget_cost,
                price: judge.price.map(|(input, cached, output)| Price { input, cached, output }),
                per_minute: judge.per_minute,
                tokens_per_minute: judge.tokens_per_minute,
                budget_daily: judge.budget_daily,
                ..JudgeSpec::at(&judge.name, "")
            });
        }
        let secret = match &setup.journal {
            Some(journal) => journal.secret(),
            None => random()?,
        };
        let shared = setup.shared.clone().unwrap_or_else(|| Arc::new(SharedResources::default()));
        let record: Arc<dyn Record> = match &setup.journal {
            Some(journal) => journal.record(),
            None => Arc::clone(&shared.record) as Arc<dyn Record>,
        };
        let usage = |judge: &Judge| {
            let price = judge.price.map(|(input, cached, output)| Price { input, cached, output });
            Mutex::new(JudgeUsage::none(&judge.name, price))
        };
        let accounts = plan.judges.iter().map(usage).collect();
        let caller = JudgeClient::of(specs, Arc::clone(&record), setup.network, &shared.registry)
            .map_err(|unusable| RunError::NoConnections(unusable.to_string()))?;
        let queues = plan.judges.iter().map(|judge| Queue::of(judge.concurrency)).collect();
        let timeout = plan.groups.timeout;
        let estimates = setup.dry.then(|| Mutex::new(Vec::new()));
        let abandoned = watch::Sender::new(false);
        let answered = AtomicU64::new(0);
        Ok(Some(Self {
            caller,
            record,
            secret,
            shared,
            accounts,
            answered,
            timeout,
            queues,
            estimates,
            abandoned,
        }))
    }

    /// Whether calls are only counted.
    pub(crate) fn is_dry(&self) -> bool {
        self.estimates.is_some()
    }

    /// What fences, letters and nonces are derived from.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// What the judges have been asked so far.
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        self.caller.tallies()
    }

    /// What was asked since the last time that this was asked, judge by judge.
    pub(crate) fn take_usage(&self) -> Vec<JudgeUsage> {
        let take = |usage: &Mutex<JudgeUsage>| usage.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.accounts.iter().map(take).collect()
    }

    /// How many questions have been answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Lets no further call begin.
    pub(crate) fn stop(&self) {
        self.caller.stop();
    }

    /// Lets no further call begin, and lets go of those in flight.
    pub(crate) fn abandon(&self) {
        self.caller.stop();
        self.abandoned.send_replace(true);
    }

    /// Asks all questions of all groups, and gives back what was heard, in their order. Where `read` is given, it gets
    /// every call of the groups as well, in the order of asking.
    pub(crate) fn run(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        tasks: Vec<JudgeTask>,
        cancel: Option<&CancelToken>,
        mut read: Option<&mut Vec<CallTranscript>>,
    ) -> Vec<JudgeTaskResult> {
        let (runtime, tasks) = match self.ready(plan, tasks) {
            Ok(ready) => ready,
            Err(unheard) => return unheard,
        };
        let told = read.is_some();
        let tasks = self.begin(runtime, plan, tasks, cancel, told);
        let heard = runtime.block_on(futures_util::future::join_all(tasks));
        let mut keep = |(inquiry, exchanges)| {
            if let Some(read) = read.as_deref_mut() {
                read.extend(exchanges);
            }
            inquiry
        };
        heard.into_iter().map(landed).map(|heard| heard.map(&mut keep)).collect()
    }

    /// As [`JudgeRunner::run`], but without a thread that waits: `then` gets what was heard, on a thread of the runner's that it
    /// must not hold up.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        tasks: Vec<JudgeTask>,
        cancel: Option<&CancelToken>,
        then: impl FnOnce(Vec<JudgeTaskResult>) + Send + 'static,
    ) {
        let (runtime, tasks) = match self.ready(plan, tasks) {
            Ok(ready) => ready,
            Err(unheard) => return then(unheard),
        };
        let tasks = self.begin(runtime, plan, tasks, cancel, false);
        runtime.spawn(async move {
            let heard = futures_util::future::join_all(tasks).await;
            then(heard.into_iter().map(landed).map(|heard| heard.map(|(inquiry, _)| inquiry)).collect());
        });
    }

    /// What the tasks run on, or what they come to where nobody is asked.
    fn ready(
        &self,
        plan: &Plan,
        tasks: Vec<JudgeTask>,
    ) -> Result<(&Runtime, Vec<JudgeTask>), Vec<JudgeTaskResult>> {
        let unheard = |tasks: Vec<JudgeTask>| tasks.into_iter().map(|task| Ok(task.inquiry)).collect();
        let Some(runtime) = self.shared.runtime() else { return Err(unheard(tasks)) };
        if !self.is_dry() {
            return Ok((runtime, tasks));
        }
        runtime.block_on(async {
            for task in &tasks {
                self.foresee(plan, task).await;
            }
        });
        Err(unheard(tasks))
    }

    /// Starts a task a group, so that a reply is read on the thread that it came in on.
    fn begin(
        self: &Arc<Self>,
        runtime: &Runtime,
        plan: &Arc<Plan>,
        tasks: Vec<JudgeTask>,
        cancel: Option<&CancelToken>,
        told: bool,
    ) -> Vec<JoinHandle<Told>> {
        let task = |task| {
            let (runner, plan, cancel) = (Arc::clone(self), Arc::clone(plan), cancel.cloned());
            runtime.spawn(async move {
                let task = runner.run_task(&plan, task, told);
                let Some(cancel) = cancel else { return Ok(task.await) };
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Err(Code::Stopped),
                    heard = task => Ok(heard),
                }
            })
        };
        tasks.into_iter().map(task).collect()
    }

    async fn run_task(&self, plan: &Plan, task: JudgeTask, told: bool) -> (Inquiry, Vec<CallTranscript>) {
        let JudgeTask { component, mut inquiry, asks: (judge, prior), again, .. } = task;
        let mut exchanges = Vec::new();
        // The time of a group begins when it is taken up, so that waiting behind other groups is not held against it.
        self.queues[judge].admit().await;
        let deadline = Instant::now() + self.timeout;
        if let (Some(prior), Some(wave)) = (prior, inquiry.prior()) {
            let voice = &plan.judges[prior].voice;
            let calls: Vec<_> = wave.iter().map(|shown| inquiry.prior_call(voice, shown)).collect();
            let asked = self.ask_all(prior, &calls, deadline).await;
            let scores: Vec<Answer> = asked.into_iter().map(|asked| asked.verdict).collect();
            inquiry.expect(scores);
        }
        loop {
            let mut wave = inquiry.next();
            if wave.is_empty() {
                break;
            }
            let voice = &plan.judges[judge].voice;
            if again {
                wave = self.as_before(judge, &inquiry, voice, wave).await;
            }
            let calls: Vec<_> = wave.iter().map(|shown| inquiry.call(voice, shown)).collect();
            let asked = self.ask_all(judge, &calls, deadline).await;
            if told {
                for (call, asked) in calls.iter().zip(&asked) {
                    let reply = match &asked.key {
                        Some(key) => self.record.get(key).await.ok().flatten(),
                        None => None,
                    };
                    let attempt = asked.attempts.saturating_sub(1);
                    exchanges.push(CallTranscript {
                        component: component.clone(),
                        judge: plan.judges[judge].name.clone(),
                        shown: call.shown.iter().map(|at| inquiry.case.entries[*at].member).collect(),
                        labels: inquiry.case.labels(call.shown),
                        form: asked.form,
                        prompt: call
                            .text(asked.form, attempt)
                            .unwrap_or_else(|reason| reason.message.into_owned()),
                        reply,
                        verdict: asked.verdict.clone(),
                        cached: asked.cached,
                        attempts: asked.attempts,
                    });
                }
            }
            drop(calls);
            inquiry.take(wave, asked.into_iter().map(|asked| asked.verdict).collect());
        }
        (inquiry, exchanges)
    }

    /// The same calls, but with the sides on which the record knows them.
    async fn as_before(
        &self,
        judge: usize,
        inquiry: &Inquiry,
        voice: &Voice,
        wave: Vec<Vec<usize>>,
    ) -> Vec<Vec<usize>> {
        let mut sides = Vec::with_capacity(wave.len());
        for shown in &wave {
            let turned: Vec<usize> = shown.iter().rev().copied().collect();
            let turns = shown.len() == 2
                && !wave.contains(&turned)
                && !self.caller.is_known(judge, &inquiry.call(voice, shown)).await
                && self.caller.is_known(judge, &inquiry.call(voice, &turned)).await;
            sides.push(if turns { turned } else { shown.clone() });
        }
        sides
    }

    /// Asks all of a wave.
    async fn ask_all<Q: Query>(&self, judge: usize, calls: &[Q], deadline: Instant) -> Vec<CallOutcome> {
        // All are counted before the first is sent, so that the next group sees them.
        let places: Vec<Place<'_>> = calls.iter().map(|_| self.queues[judge].begin()).collect();
        let asks = calls.iter().zip(places).map(|(call, place)| async {
            let asked = self.caller.ask(judge, call, deadline).await;
            drop(place);
            self.accounts[judge].lock().unwrap_or_else(PoisonError::into_inner).observe(&asked);
            self.answered.fetch_add(u64::from(asked.verdict.is_ok()), Ordering::Relaxed);
            asked
        });
        // Each is woken alone: `join_all` looks at all calls of a small group whenever something happens to one of them.
        let asked = asks.collect::<FuturesOrdered<_>>().collect();
        let mut abandoned = self.abandoned.subscribe();
        tokio::select! {
            biased;
            asked = asked => asked,
            _ = abandoned.wait_for(|abandoned| *abandoned) => calls.iter().map(|_| CallOutcome::stopped()).collect(),
        }
    }
}

fn random() -> Result<[u8; 32], RunError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| RunError::NoRandomness(error.to_string()))?;
    Ok(secret)
}
