//! Runs the programs of a batch, each once: from the journal, from an equal program under way, or in the sandbox.

use super::batch::Batch;
use super::eligibility::ComponentRef;
use super::group_state::GroupState;
use super::rules::GroupScorer;
use crate::code::executor::{CodeResult, Executor, ProgramLane};
use crate::code::task::{CodeTask, ProgramInput, StoredRun, TaskMaker};
use crate::code::{CodeReward, Isolation, Language, SandboxError, SandboxPolicy};
use crate::error::RunError;
use crate::exec::single_flight::SingleFlight;
use crate::exec::{CancelToken, SharedRuntime, unless_cancelled};
use crate::group::Group;
use crate::outcome::Outcome;
use crate::plan::{Plan, Scorer};
use crate::reason::{Code, Reason};
use crate::record::{Network, Record, RecordSource};
use crate::report::Row;
use crate::rollout::Prompt;
use crate::rule::RuleInput;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The fewest threads of a runtime that only looks for results.
const THREADS: usize = 2;

/// The component and the member that a program belongs to.
pub(super) struct CodeTarget {
    pub(super) component: usize,
    pub(super) member: usize,
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
    runtime: Arc<SharedRuntime>,
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
        record: Arc<dyn Record>,
        runtime: &Arc<SharedRuntime>,
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
            SandboxError::NoIsolation(tried) => RunError::NoSandbox(tried),
            SandboxError::NoLanguage(why) => RunError::NoLanguage(why),
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
            record,
            runtime: Arc::clone(runtime),
            timeout: plan.groups.timeout,
            lane,
        })))
    }

    /// The isolation of the sandbox, where programs can be run.
    pub(super) fn isolation(&self) -> Option<Isolation> {
        self.executor.as_ref().map(|executor| executor.isolation())
    }

    /// Runs the programs of groups without a thread that waits: `then` gets the results in their order.
    pub(super) fn spawn(
        self: &Arc<Self>,
        groups: Vec<Vec<CodeTask>>,
        cancel: Option<&CancelToken>,
        then: impl FnOnce(Vec<Vec<CodeResult>>) + Send + 'static,
    ) {
        let Some(runtime) = self.runtime.get(THREADS) else {
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
                    unless_cancelled(cancel.as_ref(), runner.run(task, group, cancel.clone())).await?
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
        let key = task.key(self.isolation() != Some(Isolation::None));
        let flights = self.executor.as_ref().map_or(&self.flights, |executor| &executor.flights);
        let body = match flights.lead(&key).await {
            Ok(leader) => {
                let fetched = self.fetch(&task, &key, group, cancel).await;
                // That this caller has no more time does not concern others.
                let own = matches!(&fetched, Err(reason) if matches!(reason.code, Code::Stopped | Code::GroupDeadline));
                if !own {
                    leader.publish(fetched.clone());
                }
                fetched?
            }
            Err(shared) => shared?,
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
        self.record.store(RecordSource::Program(key), &body, started.elapsed()).await?;
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
    pub(super) fn programs(
        &self,
        samples: &[RuleInput<'_>],
        rows: &mut [Row],
    ) -> Vec<(CodeTarget, CodeTask)> {
        let mut tasks = Vec::new();
        for one in ComponentRef::all(self.plan) {
            let Scorer::Code(reward) = &one.component.scorer else { continue };
            let mut maker = TaskMaker::default();
            for (member, (sample, row)) in samples.iter().zip(rows.iter_mut()).enumerate() {
                if !one.is_asked(row, || sample.text.size()) {
                    continue;
                }
                let reference = sample.own_reference().map(|view| view.as_str());
                let prompt = sample.prompt.and_then(Prompt::task).unwrap_or("");
                let found = sample.reference.map(|view| view.as_str());
                let sample =
                    ProgramInput { text: sample.text, reference, found, extra: sample.extra, prompt };
                let task = catch_unwind(AssertUnwindSafe(|| maker.task(reward, &sample)));
                match task.unwrap_or_else(|_| Err(Outcome::invalid(Code::Panic))) {
                    Ok(task) => tasks.push((CodeTarget { component: one.at, member }, task)),
                    Err(outcome) => one.set_outcome(row, outcome),
                }
            }
        }
        tasks
    }
}

/// Runs the programs of all groups, and completes the groups that have some.
pub(super) async fn run_programs<B: Batch>(
    batch: &B,
    groups: &Arc<Vec<Group>>,
    mut states: Vec<GroupState>,
) -> Result<Vec<GroupState>, RunError> {
    let engine = batch.engine();
    let open: Vec<usize> = (0..states.len()).filter(|at| !states[*at].programs.is_empty()).collect();
    let (Some(code), false) = (&engine.code, open.is_empty()) else { return Ok(states) };
    let task = |(_, task): &(CodeTarget, CodeTask)| task.clone();
    let tasks = open.iter().map(|at| states[*at].programs.iter().map(task).collect()).collect();
    let cancel = batch.options().cancel.as_ref();
    let found = batch.receive(|reply| code.spawn(tasks, cancel, reply)).await.ok_or(RunError::Panicked)?;
    for (at, found) in open.iter().zip(&found) {
        let state = &mut states[*at];
        for (program, found) in std::mem::take(&mut state.programs).iter().zip(found) {
            state.set_program(&engine.plan, program, found);
        }
    }
    let rows: Vec<Vec<Row>> = open.iter().map(|at| states[*at].rows.clone()).collect();
    let open: Arc<[usize]> = open.into();
    let (shared, places) = (Arc::clone(groups), Arc::clone(&open));
    let complete = move |batch: &B, at: usize| {
        let scorer = batch.engine().scorer(batch.options());
        scorer.complete_group(batch.rollouts(), &shared[places[at]], rows[at].clone())
    };
    for (at, completed) in open.iter().zip(batch.map(open.len(), complete).await) {
        let completed = completed.unwrap_or_else(|| GroupState::panicked(batch.rollouts(), &groups[*at]));
        states[*at] = GroupState { tests: std::mem::take(&mut states[*at].tests), ..completed };
    }
    Ok(states)
}
