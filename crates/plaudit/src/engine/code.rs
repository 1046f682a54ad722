//! Runs the programs of a batch, each once: from the journal, from an equal program under way, or in the sandbox.

use super::judged::RuleResults;
use super::rules::GroupScorer;
use crate::code::executor::{CodeResult, Executor, ProgramLane};
use crate::code::task::{CodeSample, CodeTask, StoredRun, TaskMaker};
use crate::code::{CodeReward, Language, SandboxPolicy, SandboxUnavailable, Tier};
use crate::error::RunError;
use crate::exec::CancelToken;
use crate::exec::single_flight::{FlightRole, SingleFlight, follow};
use crate::judge::client::{Claim, Network, Record};
use crate::judge::runner::SharedResources;
use crate::outcome::Outcome;
use crate::plan::{Branch, Plan, Scorer};
use crate::reason::{Code, Reason};
use crate::report::Row;
use crate::rollout::Prompt;
use crate::rule::Sample;
use crate::statistics::testing::TestStats;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The name under which the journal keeps results.
const SANDBOX: &str = "sandbox";

/// The fewest threads of a runtime that only looks for results.
const THREADS: usize = 2;

/// The component and the member that a program belongs to.
pub(super) struct CodeTarget {
    component: usize,
    member: usize,
}

/// What the programs of a batch run on.
pub(super) struct CodeRunner {
    /// Runs programs; none where only the journal may answer.
    executor: Option<Arc<Executor>>,
    /// Where none runs them.
    flights: SingleFlight,
    /// By the identity of a reward, its language.
    languages: BTreeMap<Vec<u8>, Arc<Language>>,
    record: Arc<dyn Record>,
    shared: Arc<SharedResources>,
    timeout: Duration,
    /// Whose programs these are.
    lane: ProgramLane,
}

impl std::fmt::Debug for CodeRunner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CodeRunner").field("executor", &self.executor).finish_non_exhaustive()
    }
}

impl CodeRunner {
    /// What a plan's programs run on; none where it has no code rewards.
    pub(super) fn open(
        plan: &Plan,
        (policy, owner): (SandboxPolicy, Option<(&str, Option<usize>)>),
        network: Network,
        record: Option<Arc<dyn Record>>,
        shared: &Arc<SharedResources>,
    ) -> Result<Option<Arc<Self>>, RunError> {
        static NEXT_LANE: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_LANE.fetch_add(1, Ordering::Relaxed);
        let lane = match owner {
            Some((name, most)) => {
                ProgramLane { id, owner: rapidhash::v3::rapidhash_v3(name.as_bytes()), most }
            }
            None => ProgramLane { id, owner: id, most: Some(usize::MAX) },
        };
        let rewards: Vec<&CodeReward> = plan.code_rewards().map(Arc::as_ref).collect();
        if rewards.is_empty() {
            return Ok(None);
        }
        let unavailable = |error| match error {
            SandboxUnavailable::NoTier(tried) => RunError::NoSandbox(tried),
            SandboxUnavailable::NoLanguage(why) => RunError::NoLanguage(why),
        };
        let mut languages = BTreeMap::new();
        let executor = match network {
            Network::Replay => None,
            Network::Live => {
                let executor = Executor::open(policy, &rewards).map_err(unavailable)?;
                for reward in rewards {
                    let language = executor.language(reward).map_err(unavailable)?;
                    languages.insert(reward.identity().to_vec(), language);
                }
                Some(executor)
            }
        };
        Ok(Some(Arc::new(Self {
            executor,
            flights: SingleFlight::default(),
            languages,
            record: record.unwrap_or_else(|| shared.memory()),
            shared: Arc::clone(shared),
            timeout: plan.groups.timeout,
            lane,
        })))
    }

    /// The tier of the sandbox, where programs can be run.
    pub(super) fn tier(&self) -> Option<Tier> {
        self.executor.as_ref().map(|executor| executor.tier())
    }

    /// Runs the programs of groups without a thread that waits: `then` gets the results in their order.
    pub(super) fn spawn(
        self: &Arc<Self>,
        groups: Vec<Vec<CodeTask>>,
        cancel: Option<&CancelToken>,
        then: impl FnOnce(Vec<Vec<CodeResult>>) + Send + 'static,
    ) {
        let Some(runtime) = self.shared.runtime(THREADS) else {
            let failed = |_: CodeTask| Err(Reason::new(Code::SandboxFailed, "The system gives no threads."));
            return then(groups.into_iter().map(|tasks| tasks.into_iter().map(failed).collect()).collect());
        };
        static NEXT_GROUP: AtomicU64 = AtomicU64::new(0);
        let first = NEXT_GROUP.fetch_add(groups.len() as u64, Ordering::Relaxed);
        let mut under_way = Vec::with_capacity(groups.len());
        for (group, tasks) in (first..).zip(groups) {
            let start = |task: CodeTask| {
                let (runner, cancel) = (Arc::clone(self), cancel.cloned());
                runtime.spawn(async move {
                    let run = runner.run(task, group, cancel.clone());
                    let Some(cancel) = &cancel else { return run.await };
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => Err(Code::Stopped.into()),
                        result = run => result,
                    }
                })
            };
            under_way.push(tasks.into_iter().map(start).collect::<Vec<_>>());
        }
        runtime.spawn(async move {
            let mut results = Vec::with_capacity(under_way.len());
            for group in under_way {
                let group = join_all(group).await;
                let found =
                    group.into_iter().map(|result| result.unwrap_or_else(|_| Err(Code::Panic.into())));
                results.push(found.collect());
            }
            then(results);
        });
    }

    /// The result of one program, which equal programs share.
    async fn run(&self, task: CodeTask, group: u64, cancel: Option<CancelToken>) -> CodeResult {
        let key = task.key(self.tier() != Some(Tier::None));
        let flights = self.executor.as_ref().map_or(&self.flights, |executor| &executor.flights);
        let body = loop {
            match flights.join(&key) {
                FlightRole::Leader(leader) => {
                    let fetched = self.fetch(&task, &key, group, cancel).await;
                    // That this caller has no more time does not concern others.
                    let own = matches!(&fetched, Err(reason) if matches!(reason.code, Code::Stopped | Code::GroupDeadline));
                    if !own {
                        leader.publish(fetched.clone());
                    }
                    break fetched?;
                }
                FlightRole::Follower(flight) => {
                    if let Some(result) = follow(flight).await {
                        break result?;
                    }
                }
            }
        };
        serde_json::from_slice(&body).map_err(|_| Code::JournalDamaged.into())
    }

    async fn fetch(
        &self,
        task: &CodeTask,
        key: &[u8; 32],
        group: u64,
        cancel: Option<CancelToken>,
    ) -> Result<Arc<[u8]>, Reason> {
        if let Some(body) = self.record.get(key).await? {
            return Ok(Arc::from(body));
        }
        let language = self.languages.get(task.reward().identity());
        let (Some(executor), Some(language)) = (&self.executor, language) else {
            // Tests that cannot be read are that, whether or not the program may run.
            task.check_tests()?;
            return Err(Code::SandboxNotRecorded.into());
        };
        let started = Instant::now();
        let (send, receive) = oneshot::channel();
        let (turn, limits) = ((self.lane, group), (self.timeout, cancel));
        executor.submit(task.clone(), Arc::clone(language), turn, limits, |result| drop(send.send(result)));
        let stored: StoredRun = receive.await.unwrap_or_else(|_| Err(Code::Stopped.into()))?;
        let body = serde_json::to_vec(&stored)
            .map_err(|error| Reason::new(Code::SandboxFailed, error.to_string()))?;
        let claim = Claim { key, judge: SANDBOX, request_id: u64::MAX };
        self.record.store(claim, &body, started.elapsed()).await?;
        Ok(Arc::from(body))
    }
}

impl Drop for CodeRunner {
    fn drop(&mut self) {
        if let Some(executor) = &self.executor {
            executor.forget(self.lane.id);
        }
    }
}

impl GroupScorer<'_> {
    /// The programs of a group that are to be run, each with whose it is. An outcome that needs no run goes into its row.
    pub(super) fn programs(&self, samples: &[Sample<'_>], rows: &mut [Row]) -> Vec<(CodeTarget, CodeTask)> {
        let mut tasks = Vec::new();
        for (index, branch) in self.plan.branches.iter().enumerate() {
            for (component, settings) in branch.components.iter().enumerate() {
                let Scorer::Code(reward) = &settings.scorer else { continue };
                let mut maker = TaskMaker::default();
                for (member, (sample, row)) in samples.iter().zip(rows.iter_mut()).enumerate() {
                    if row.branch != Some(index) || row.closed_by().is_some() {
                        continue;
                    }
                    if branch.is_settled(component, &row.outcomes) {
                        row.outcomes[component] = Some(Outcome::skipped(Code::Settled));
                        continue;
                    }
                    if sample.text.size() > self.plan.longest_response {
                        row.outcomes[component] = Some(Outcome::floored(settings.floor, self.too_long()));
                        continue;
                    }
                    let reference = sample.own_reference().map(|view| view.as_str());
                    let prompt = sample.prompt.and_then(Prompt::task).unwrap_or("");
                    let sample = CodeSample { text: sample.text, reference, extra: sample.extra, prompt };
                    let task = catch_unwind(AssertUnwindSafe(|| maker.task(reward, &sample)));
                    match task.unwrap_or_else(|_| Err(Outcome::invalid(Code::Panic))) {
                        Ok(task) => tasks.push((CodeTarget { component, member }, task)),
                        Err(outcome) => {
                            row.outcomes[component] = Some(outcome);
                            close_gate(branch, component, row);
                        }
                    }
                }
            }
        }
        tasks
    }
}

/// The programs of a batch, group by group.
pub(super) struct Programs {
    targets: Vec<Vec<CodeTarget>>,
    pub(super) tasks: Vec<Vec<CodeTask>>,
}

impl Programs {
    /// Takes the programs out of the groups, so that all run at once; none where there are none.
    pub(super) fn take(results: &mut [RuleResults]) -> Option<Self> {
        let (targets, tasks): (_, Vec<Vec<CodeTask>>) =
            results.iter_mut().map(|group| std::mem::take(&mut group.programs).into_iter().unzip()).unzip();
        tasks.iter().any(|tasks| !tasks.is_empty()).then_some(Self { targets, tasks })
    }

    /// The places of the groups that have programs.
    pub(super) fn groups(&self) -> Vec<usize> {
        self.tasks.iter().enumerate().filter(|(_, tasks)| !tasks.is_empty()).map(|(at, _)| at).collect()
    }

    /// Writes what came of the programs into the rows.
    pub(super) fn apply(self, plan: &Plan, results: &mut [RuleResults], found: Vec<Vec<CodeResult>>) {
        let programs = self.targets.into_iter().zip(&self.tasks).zip(found);
        for (results, ((targets, tasks), found)) in results.iter_mut().zip(programs) {
            let found = targets.into_iter().zip(tasks).zip(found);
            results.tests = found_in_group(plan, &mut results.rows, found);
        }
    }
}

/// Writes what came of the programs of a group into its rows, closes the gates that are low, and counts the tests.
fn found_in_group<'t>(
    plan: &Plan,
    rows: &mut [Row],
    found: impl Iterator<Item = ((CodeTarget, &'t CodeTask), CodeResult)>,
) -> Vec<(String, TestStats)> {
    let mut stats: Vec<(String, TestStats)> = Vec::new();
    for ((CodeTarget { component, member }, task), found) in found {
        let row = &mut rows[member];
        let Some(branch) = row.branch.map(|index| &plan.branches[index]) else { continue };
        let name = &branch.components[component].name;
        let at = stats.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            stats.push((name.clone(), TestStats::default()));
            stats.len() - 1
        });
        row.outcomes[component] = Some(match &found {
            Ok(stored) => {
                stats[at].1.observe(stored.results().iter().flatten());
                task.outcome(stored)
            }
            Err(reason) => Outcome::invalid(reason.clone()),
        });
        close_gate(branch, component, row);
    }
    stats
}

/// Closes the gate of a component that is low, where it is one and no other is closed.
fn close_gate(branch: &Branch, component: usize, row: &mut Row) {
    let Some(gate) = &branch.components[component].gate else { return };
    let low = match &row.outcomes[component] {
        Some(outcome) => match outcome.value() {
            Some(value) => value < gate.min,
            None => matches!(outcome, Outcome::Invalid(_)),
        },
        None => false,
    };
    if low && row.closed_by().is_none() {
        row.details_mut().closed_by = Some(component);
    }
}
