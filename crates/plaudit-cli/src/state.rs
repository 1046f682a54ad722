//! The state of a run (`--state`): journal, run manifest and copy of the rollouts, in a folder or in Redis.

use crate::console::Console;
use crate::error::CliError;
use crate::files::Output;
use crate::rollout_copy::{RolloutCopy, SavedRollouts};
use crate::summary::whole;
use plaudit::engine::{Engine, EngineOptions};
use plaudit::journal::{LastRun, Recovered, Store};
use plaudit::plan::Plan;
use plaudit::recipe::{Recipe, RecipeErrors, Source};
use plaudit::record::Network;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rollouts of the last run that finished.
const ROLLOUTS: &str = "rollouts.jsonl";
/// Its recipe and how it was read.
const RUN: &str = "run.json";

/// What `--state` names: a folder, or `redis://host:port/database`.
pub(crate) struct State {
    /// Its folder, where the journal is not in Redis.
    folder: PathBuf,
    pub(crate) journal: Store,
}

/// A run, so that it can be done again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunManifest {
    /// The recipe as it was written.
    recipe: Source,
    /// What was overridden.
    set: Vec<(String, String)>,
    /// How long groups were held.
    hold: u64,
}

impl RunManifest {
    /// The run of a recipe; none for a recipe that did not come as text.
    pub(crate) fn of(recipe: &Recipe, set: &[(String, String)], hold: u64) -> Option<Self> {
        Some(Self { recipe: recipe.source()?.clone(), set: set.to_vec(), hold })
    }

    /// What the run does.
    fn plan(&self) -> Result<Plan, RecipeErrors> {
        let mut recipe = Recipe::from_source(self.recipe.clone())?;
        for (key, value) in &self.set {
            recipe.set(key, value)?;
        }
        recipe.plan()
    }
}

impl State {
    /// Opens the state and says what it found there. No other process may have the same folder open.
    pub(crate) fn open(location: &str, console: &Console) -> Result<Self, CliError> {
        let (journal, found) = Store::open(location)?;
        print_recovery(&found, console);
        Ok(Self { folder: PathBuf::from(location), journal })
    }

    /// Whether there may be a state at a location.
    pub(crate) fn may_exist(location: &str) -> bool {
        Store::is_redis(location) || Path::new(location).exists()
    }

    /// Opens the state of a run; a folder that is not there is not made.
    pub(crate) fn existing(location: &str) -> Result<Self, CliError> {
        Store::check(location)?;
        if !Store::is_redis(location) && !Path::new(location).is_dir() {
            return Err(CliError::Arguments(format!(
                "there is no folder {location:?}: `plaudit score --state` makes one"
            )));
        }
        Self::open(location, &Console::errors())
    }

    /// The files of a state at a location, whether they are there or not.
    pub(crate) fn paths(location: &str) -> Vec<String> {
        match Store::is_redis(location) {
            true => Vec::new(),
            false => {
                [ROLLOUTS, RUN, "judgments.log", "secret"].map(|name| path(Path::new(location), name)).into()
            }
        }
    }

    /// The names of the files that a run writes.
    pub(crate) fn files(&self) -> Vec<String> {
        match &self.journal {
            Store::Folder(_) => vec![path(&self.folder, ROLLOUTS), path(&self.folder, RUN)],
            Store::Redis(_) => Vec::new(),
        }
    }

    /// Where the rollouts of this run go; they appear when it has finished.
    pub(crate) fn copy(&self) -> Result<RolloutCopy, CliError> {
        match &self.journal {
            Store::Folder(_) => Output::private(&path(&self.folder, ROLLOUTS)).map(RolloutCopy::File),
            Store::Redis(_) => Ok(RolloutCopy::small()),
        }
    }

    /// Keeps the run that has finished.
    pub(crate) fn keep(&self, run: &RunManifest, copy: RolloutCopy) -> Result<(), CliError> {
        let text =
            serde_json::to_string_pretty(run).map_err(|error| CliError::Arguments(error.to_string()))?;
        let rollouts = copy.finish()?;
        match &self.journal {
            Store::Redis(redis) => {
                let put = redis.put_run(&LastRun { run: text.into_bytes(), rollouts });
                // Its judgments are kept all the same, and what else was wrong with Redis is said in any case.
                if let Err(error) = put
                    && self.journal.is_stuck().is_none()
                {
                    Console::errors().warning(&format!("the run cannot be replayed or explained: {error}"));
                }
                Ok(())
            }
            Store::Folder(_) => {
                let name = path(&self.folder, RUN);
                let mut file = Output::private(&name)?;
                writeln!(file, "{text}").map_err(|error| CliError::writing(&name, error))?;
                file.finish()
            }
        }
    }

    /// An engine that answers from the journal of a state alone, with the last run that finished and its rollouts.
    pub(crate) fn replayed(location: &str) -> Result<(Self, Arc<Engine>, u64, SavedRollouts), CliError> {
        let state = Self::existing(location)?;
        let (manifest, rollouts) = state.last()?;
        let journal = Some(state.journal.clone());
        let setup = EngineOptions { journal, network: Network::Replay, ..EngineOptions::default() };
        let engine = Arc::new(Engine::open(manifest.plan()?, &setup)?);
        Ok((state, engine, manifest.hold, rollouts))
    }

    /// The last run that finished, and its rollouts.
    fn last(&self) -> Result<(RunManifest, SavedRollouts), CliError> {
        let none = |location: &str| {
            CliError::Arguments(format!(
                "{location} holds no run that has finished: finish one with `plaudit score --state`"
            ))
        };
        let (run, rollouts) = match &self.journal {
            Store::Redis(redis) => {
                let last = redis.last_run()?.ok_or_else(|| none("Redis"))?;
                let rollouts = last.rollouts.ok_or_else(|| {
                    CliError::Arguments(
                        "the last run was over more rollouts than Redis is given to keep: to replay and explain such \
                         a run, give it a folder as its --state"
                            .to_owned(),
                    )
                })?;
                (last.run, SavedRollouts::in_temp_file(&rollouts)?)
            }
            Store::Folder(_) => {
                let name = path(&self.folder, RUN);
                let run = std::fs::read(&name).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => none(&format!("{:?}", self.folder)),
                    _ => CliError::File(name.clone(), error),
                })?;
                (run, SavedRollouts::at(path(&self.folder, ROLLOUTS)))
            }
        };
        let manifest = serde_json::from_slice(&run)
            .map_err(|error| CliError::Arguments(format!("the last run cannot be read: {error}")))?;
        Ok((manifest, rollouts))
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// Says what a person should know of a journal that was found.
pub(crate) fn print_recovery(found: &Recovered, console: &Console) {
    found.warnings.iter().for_each(|warning| console.warning(warning));
    if found.damaged > 0 {
        console.warning(&format!(
            "the journal is damaged: {} records are lost ({} bytes), and judged again where they are still needed",
            whole(found.damaged),
            whole(found.lost_bytes)
        ));
    }
    if found.judgments > 0 {
        console.info(&format!("going on with {} judgments from the journal", whole(found.judgments)));
    }
    if found.open_intents > 0 {
        console.info(&format!(
            "{} calls were sent before and never answered: they may have been paid for",
            whole(found.open_intents)
        ));
    }
}
