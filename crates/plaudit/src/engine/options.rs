//! Options of an engine, and of one scoring call.

use super::SharedResources;
use super::code::CodeRunner;
use crate::code::SandboxPolicy;
use crate::error::RunError;
use crate::exec::{CancelToken, Pool, TraceSpan};
use crate::journal::Store;
use crate::judge::client::UsageMeter;
use crate::judge::config::ResolvedJudge;
use crate::judge::runner::{JudgeRunner, RunnerOptions};
use crate::judge::secret::Secret;
use crate::plan::Plan;
use crate::record::{Network, Record};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an engine needs from outside: keys, a journal, and whether judges may be asked at all.
pub struct EngineOptions<'s> {
    /// Where judgments are stored; without it, they live as long as the process.
    pub journal: Option<Store>,
    /// Whether judges may be asked, or only the journal.
    pub network: Network,
    /// Whether calls are only counted.
    pub dry: bool,
    /// The value of an environment variable.
    pub keys: &'s dyn Fn(&str) -> Option<String>,
    /// What the engine shares with others.
    pub shared: Option<Arc<SharedResources>>,
    /// What programs may run in.
    pub sandbox: SandboxPolicy,
    /// Whose programs these are, where several engines have one owner, and how many of them may run at once; three quarters of the
    /// slots where nothing is said.
    pub owner: Option<(&'s str, Option<usize>)>,
}

impl Default for EngineOptions<'_> {
    fn default() -> Self {
        Self {
            journal: None,
            network: Network::Live,
            dry: false,
            keys: &|_| None,
            shared: None,
            sandbox: SandboxPolicy::default(),
            owner: None,
        }
    }
}

impl EngineOptions<'_> {
    /// The runner of a plan's judges; none where the plan asks no judge.
    pub(super) fn runner(
        &self,
        plan: &Plan,
        pool: &Pool,
        shared: &Arc<SharedResources>,
    ) -> Result<Option<Arc<JudgeRunner>>, RunError> {
        if plan.judges.is_empty() {
            return Ok(None);
        }
        let mut judges = plan.judges.clone();
        for judge in &mut judges {
            self.fill_in(judge)?;
        }
        let options = RunnerOptions {
            record: self.record(shared),
            secret: self.journal.as_ref().map_or_else(random, |journal| Ok(journal.secret()))?,
            network: self.network,
            dry: self.dry,
            registry: &shared.registry,
            runtime: Arc::clone(&shared.runtime),
            timeout: plan.groups.timeout,
            threads: pool.threads(),
        };
        Ok(Some(Arc::new(JudgeRunner::new(judges, options)?)))
    }

    /// What the plan's programs run on; none where it has none.
    pub(super) fn code_runner(
        &self,
        plan: &Plan,
        shared: &Arc<SharedResources>,
    ) -> Result<Option<Arc<CodeRunner>>, RunError> {
        // What is only counted is not run either.
        let network = if self.dry { Network::Replay } else { self.network };
        let record = self.record(shared);
        CodeRunner::open(plan, (self.sandbox, self.owner), network, record, &shared.runtime)
    }

    /// Where judgments and the results of programs are stored.
    fn record(&self, shared: &SharedResources) -> Arc<dyn Record> {
        let memory = || Arc::clone(&shared.record) as Arc<dyn Record>;
        self.journal.as_ref().map_or_else(memory, Store::record)
    }

    /// What the environment says of a judge that may be asked: its keys, and the proxies on the way to it.
    fn fill_in(&self, judge: &mut ResolvedJudge) -> Result<(), RunError> {
        if self.network != Network::Live {
            return Ok(());
        }
        let (mut api_key, mut header_keys) = (None, BTreeMap::new());
        for (header, variable) in judge.secret_variables() {
            let missing =
                || RunError::MissingKey { judge: judge.name.clone(), variable: variable.to_owned() };
            let key = (self.keys)(variable).filter(|key| !key.is_empty()).ok_or_else(missing)?;
            match header {
                Some(header) => drop(header_keys.insert(header.to_owned(), Secret::new(key))),
                None => api_key = Some(Secret::new(key)),
            }
        }
        let proxies = judge.find_proxies(self.keys);
        judge.proxies = proxies.map_err(|error| RunError::NoConnections(error.to_string()))?;
        (judge.api_key, judge.header_keys) = (api_key, header_keys);
        Ok(())
    }
}

fn random() -> Result<[u8; 32], RunError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| RunError::NoRandomness(error.to_string()))?;
    Ok(secret)
}

/// Options of one scoring call, beside the recipe.
#[derive(Debug, Clone, Default)]
pub struct ScoreOptions {
    /// Whether the reference takes part in comparisons; as the recipe says where nothing is said here.
    pub validate: Option<bool>,
    /// Cancels the call. Once it is cancelled, the call returns within 100 ms; rollouts without an outcome by then are
    /// invalid.
    pub cancel: Option<CancelToken>,
    /// The step of the caller's that the call belongs to, where its steps are traced.
    pub span: Option<Arc<dyn TraceSpan>>,
    /// Counts what judges are asked for the call, where somebody wants to know: [`super::Engine::usage_meter`].
    pub usage: Option<Arc<UsageMeter>>,
}
